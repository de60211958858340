//! What a row's notes say of an engine's command line: `--max-num-seqs 256`, `--tp_size=8`, `--enforce-eager`.

/// Command-line options that notes quote. Dashes and underscores are one; a value follows a space or `=`.
#[derive(Debug, Clone, Copy)]
pub struct Flags<'a>(&'a str);

impl<'a> Flags<'a> {
    /// The options in a text.
    pub fn of(notes: &'a str) -> Flags<'a> {
        Flags(notes)
    }

    /// Every option with what follows it, if that is a value.
    fn all(self) -> impl Iterator<Item = (String, &'a str)> {
        self.0.split(" --").skip(1).chain(self.0.strip_prefix("--")).map(|piece| {
            let end = piece.find([' ', '=', ';', ',', ')', '"']).unwrap_or(piece.len());
            let (name, rest) = piece.split_at_checked(end).unwrap_or((piece, ""));
            let value = rest.strip_prefix(['=', ' ']).unwrap_or("");
            let value = value.split([' ', ';', ',', ')', '"']).next().unwrap_or("");
            (name.to_ascii_lowercase().replace('_', "-"), value)
        })
    }

    /// Whether the text quotes a command line at all.
    pub fn any(self) -> bool {
        self.all().next().is_some()
    }

    /// Whether one of the options stands there; a name cut short by the end of the notes counts.
    pub fn has(self, names: &[&str]) -> bool {
        let cut = |found: &str, name: &str| found.len() >= 10 && name.starts_with(found) && self.0.ends_with(found);
        self.all().any(|(found, _)| names.iter().any(|name| found == *name || cut(&found, name)))
    }

    /// The value of one of the options.
    pub fn value(self, names: &[&str]) -> Option<&'a str> {
        self.all().find(|(found, value)| names.contains(&found.as_str()) && !value.is_empty()).map(|(_, value)| value)
    }

    /// The value as a positive number.
    pub fn number(self, names: &[&str]) -> Option<f64> {
        self.value(names)?.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    #[test]
    fn options_are_found_in_either_spelling() {
        let f =
            Flags::of("flags: vllm serve m --max-num-seqs 64 --tp_size=8 --enforce-eager; 3 runs --kv-cache-dtype fp8");
        assert_eq!(f.number(&["max-num-seqs"]), Some(64.0));
        assert_eq!(f.number(&["tp", "tp-size"]), Some(8.0));
        assert!(f.has(&["enforce-eager"]) && !f.has(&["eager"]));
        assert_eq!(f.value(&["kv-cache-dtype"]), Some("fp8"));
        assert_eq!(f.number(&["enforce-eager"]), None);
    }

    #[test]
    fn a_text_without_a_command_line_has_none() {
        for text in ["", "--", " -- ", "static batch - one repeat", "in/out --", "=--=", "ümlaut --ä"] {
            let f = Flags::of(text);
            assert_eq!(f.number(&["max-num-seqs"]), None);
            assert!(!f.has(&["enforce-eager"]));
        }
        assert!(!Flags::of("static batch").any());
    }
}
