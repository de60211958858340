//! Words of a command line, quoted where necessary, and lines of arguments with comments.

use atlas_detect::text::shell_word;

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// Text that the program receives unchanged.
    Plain(String),
    /// A shell expression written by this program, such as `"$HEAD_NODE:29500"`.
    Shell(&'static str),
}

impl Word {
    /// The word in shell syntax.
    pub(crate) fn shell(&self) -> String {
        match self {
            // A shell word cannot contain NUL.
            Word::Plain(text) => shell_word(&text.replace('\0', "")),
            Word::Shell(expression) => (*expression).to_owned(),
        }
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Word {
        Word::Plain(text.to_owned())
    }
}

impl From<String> for Word {
    fn from(text: String) -> Word {
        Word::Plain(text)
    }
}

impl From<u64> for Word {
    fn from(count: u64) -> Word {
        Word::Plain(count.to_string())
    }
}

/// A flag with its value, or a comment between flags.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    /// A comment on the following lines.
    Comment(String),
    /// A setting that is checked against the table of flags.
    Setting(String, Option<Word>),
    /// Words that are not settings: addresses, data, names.
    Other(Vec<Word>),
}

/// Arguments of a program, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) lines: Vec<Line>,
}

impl Arguments {
    /// Starts a group of flags with a comment.
    pub(crate) fn comment(&mut self, text: &str) -> &mut Self {
        self.lines.push(Line::Comment(text.to_owned()));
        self
    }

    /// Adds a flag with a value.
    pub(crate) fn put(&mut self, flag: &str, value: impl Into<Word>) -> &mut Self {
        self.lines.push(Line::Setting(flag.to_owned(), Some(value.into())));
        self
    }

    /// Adds a flag with several values.
    pub(crate) fn put_list(&mut self, flag: &str, values: &[&str]) -> &mut Self {
        if let Some((first, rest)) = values.split_first() {
            self.put(flag, *first).push_unchecked(rest.iter().map(|value| Word::from(*value)));
        }
        self
    }

    /// Adds a flag if it has a value.
    pub(crate) fn put_optional(&mut self, flag: &str, value: Option<impl Into<Word>>) -> &mut Self {
        if let Some(value) = value {
            self.put(flag, value);
        }
        self
    }

    /// Adds a flag without a value if `on`.
    pub(crate) fn put_switch(&mut self, flag: &str, on: bool) -> &mut Self {
        if on {
            self.lines.push(Line::Setting(flag.to_owned(), None));
        }
        self
    }

    /// Adds words that are not checked against the table of flags.
    pub(crate) fn push_unchecked(&mut self, words: impl IntoIterator<Item = Word>) -> &mut Self {
        self.lines.push(Line::Other(words.into_iter().collect()));
        self
    }

    /// Adds a `key=value` setting.
    pub(crate) fn assign(&mut self, key: &str, value: impl Into<Word>) -> &mut Self {
        self.lines.push(Line::Setting(format!("{key}="), Some(value.into())));
        self
    }

    /// The flags to check against the table, with their values.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.lines.iter().filter_map(|line| match line {
            Line::Setting(flag, value) => {
                let value = value.as_ref().and_then(|word| match word {
                    Word::Plain(text) => Some(text.as_str()),
                    Word::Shell(_) => None,
                });
                Some((flag.trim_end_matches('='), value))
            }
            Line::Comment(_) | Line::Other(_) => None,
        })
    }

    /// Formats the arguments as a bash array.
    pub(crate) fn array(&self, name: &str) -> String {
        let mut out = format!("{name}=(\n");
        for (index, line) in self.lines.iter().enumerate() {
            // Comments without flags are left out.
            if matches!((line, self.lines.get(index + 1)), (Line::Comment(_), None | Some(Line::Comment(_)))) {
                continue;
            }
            let text = match line {
                Line::Comment(text) => format!("# {}", one_line(text)),
                Line::Setting(key, Some(value)) if key.ends_with('=') => format!("{key}{}", value.shell()),
                Line::Setting(flag, Some(value)) => format!("{flag} {}", value.shell()),
                Line::Setting(flag, None) => flag.clone(),
                Line::Other(words) => words.iter().map(Word::shell).collect::<Vec<_>>().join(" "),
            };
            out.push_str(&format!("  {text}\n"));
        }
        out.push_str(")\n");
        out
    }

    /// The arguments as plain words for manifests; `None` if one of them needs a shell.
    pub(crate) fn plain(&self) -> Option<Vec<String>> {
        let text = |word: &Word| match word {
            Word::Plain(text) => Some(text.clone()),
            Word::Shell(_) => None,
        };
        let mut out = Vec::new();
        for line in &self.lines {
            match line {
                Line::Comment(_) => {}
                Line::Setting(key, Some(value)) if key.ends_with('=') => out.push(format!("{key}{}", text(value)?)),
                Line::Setting(flag, value) => {
                    out.push(flag.clone());
                    if let Some(value) = value {
                        out.push(text(value)?);
                    }
                }
                Line::Other(words) => {
                    for word in words {
                        out.push(text(word)?);
                    }
                }
            }
        }
        Some(out)
    }
}

/// Replaces control characters with spaces, so that the text is a single-line comment.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Converts a text to a name for jobs, files and Kubernetes objects: lower-case letters, digits and single dashes. It
/// has at most 52 characters, since controllers add suffixes and a label is limited to 63.
pub(crate) fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if out.len() >= 52 {
            break;
        }
    }
    let out = out.trim_end_matches('-');
    match out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => out.to_owned(),
        false => format!("job-{out}").trim_end_matches('-').to_owned(),
    }
}

/// Formats a YAML scalar: plain if every parser reads it as a string, otherwise in double quotes.
pub(crate) fn yaml_text(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(plain)
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"]
            .iter()
            .any(|reserved| text.eq_ignore_ascii_case(reserved));
    if word { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// Indents the lines of a YAML block scalar.
pub(crate) fn block(text: &str, indent: usize) -> String {
    let pad = " ".repeat(indent);
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{pad}{line}\n") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quoted_shell_word_round_trips_through_bash(text in "[\\PC\\n\\t]{0,40}") {
            let word = Word::from(text.as_str()).shell();
            let script = format!("printf %s {word}");
            let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }

        #[test]
        fn slug_is_a_valid_kubernetes_name(text in "\\PC{0,80}") {
            let name = slug(&text);
            prop_assert!(!name.is_empty() && name.len() <= 56, "{}", name);
            prop_assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
            prop_assert!(name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.ends_with('-'));
        }
    }

    #[test]
    fn yaml_text_is_quoted_when_ambiguous() {
        assert_eq!(yaml_text("llama3"), "llama3");
        assert_eq!(yaml_text("no"), "\"no\"");
        assert_eq!(yaml_text("0.5"), "\"0.5\"");
        assert_eq!(yaml_text("a: b"), "\"a: b\"");
    }
}
