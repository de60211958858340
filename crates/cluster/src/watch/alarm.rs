//! The command of an alarm: a list of words that is run without a shell.

use std::str::FromStr;

use atlas_detect::runner::Command;

/// A program and its arguments. The placeholders `{message}`, `{cause}`, `{step}` and `{job}` are replaced when an
/// alarm is raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlarmCommand {
    program: String,
    arguments: Vec<String>,
}

impl FromStr for AlarmCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<AlarmCommand, String> {
        let mut words = words(text)?.into_iter();
        let program = words.next().filter(|word| !word.is_empty()).ok_or("expected a program and its arguments")?;
        Ok(AlarmCommand { program, arguments: words.collect() })
    }
}

impl AlarmCommand {
    /// The command with its placeholders replaced. A value remains part of its word, whatever characters it contains.
    #[must_use]
    pub fn command(&self, values: &[(&str, &str)]) -> Command {
        let arguments = self.arguments.iter().map(|word| replaced(word, values)).collect();
        Command { arguments, ..Command::new(&self.program, &[]) }
    }

    /// The command as a line for a shell, with the placeholders.
    #[must_use]
    pub fn shown(&self) -> String {
        self.command(&[]).shell_line()
    }
}

/// Splits a line into words. Shell quoting is supported, but no other shell syntax.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    // `None` between words.
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err("unclosed single quote".to_owned()),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                            Some(c) => word.extend(['\\', c]),
                            None => return Err("unclosed double quote".to_owned()),
                        },
                        Some(c) => word.push(c),
                        None => return Err("unclosed double quote".to_owned()),
                    }
                }
            }
            '\\' => match chars.next() {
                Some(c) => word.get_or_insert_default().push(c),
                None => return Err("trailing backslash".to_owned()),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Replaces all placeholders in a single pass, so that placeholders in values are not replaced.
fn replaced(text: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        match values.iter().find(|(name, _)| from.starts_with(name)) {
            Some((name, value)) => {
                out.push_str(value);
                rest = from.get(name.len()..).unwrap_or_default();
            }
            None => {
                out.push('{');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarm_command_is_split_like_a_shell_without_expansion() {
        let read = |text: &str| words(text).unwrap().join("|");
        assert_eq!(read(r#"mail -s 'a b' x\ y "c \" $d" e'f'g '' $(id)"#), r#"mail|-s|a b|x y|c " $d|efg||$(id)"#);
        for text in ["'a", "\"a", "a \\", "\"a\\"] {
            assert!(words(text).is_err(), "{text}");
        }
        for text in ["", "  ", "'' x"] {
            assert!(text.parse::<AlarmCommand>().is_err(), "{text}");
        }
    }

    #[test]
    fn placeholder_values_are_not_split_or_substituted_again() {
        let command: AlarmCommand = "notify {message} at={step} {other}".parse().unwrap();
        let filled = command.command(&[("{message}", "it's {step}; rm -rf /"), ("{step}", "7")]);
        assert_eq!(filled.arguments, ["it's {step}; rm -rf /", "at=7", "{other}"]);
        assert_eq!(command.shown(), "notify '{message}' 'at={step}' '{other}'");
    }
}
