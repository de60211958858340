//! Parser for command-line options quoted in notes: `--max-num-seqs 256`, `--tp_size=8`, `-tp 8`, `--enforce-eager`.

/// The command-line options in a text. Dashes and underscores in names are equivalent. A value follows a space or `=`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flags<'a>(&'a str);

impl<'a> Flags<'a> {
    /// Creates a parser for the options in a text.
    pub(super) fn of(notes: &'a str) -> Flags<'a> {
        Flags(notes)
    }

    /// Returns the names of all options with their values; empty for options without a value.
    fn all(self) -> impl Iterator<Item = (String, &'a str)> {
        let starts = self.0.match_indices(" -").map(|(at, _)| at + 1).chain(self.0.starts_with('-').then_some(0));
        let text = self.0;
        starts.filter_map(move |at| {
            let piece = text.get(at..)?.trim_start_matches('-');
            if !piece.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return None;
            }
            let end = piece.find([' ', '=', ';', ',', ')', '"', '\'']).unwrap_or(piece.len());
            let (name, rest) = piece.split_at_checked(end).unwrap_or((piece, ""));
            let value = rest.strip_prefix(['=', ' ']).unwrap_or("");
            let value = value.split([' ', ';', ',', ')', '"', '\'']).next().unwrap_or("");
            let value = if value.starts_with('-') { "" } else { value };
            Some((name.to_ascii_lowercase().replace('_', "-"), value))
        })
    }

    /// Whether the text quotes a command line, that is, contains an option with two dashes.
    pub(super) fn any(self) -> bool {
        (self.0.starts_with("--") || self.0.contains(" --")) && self.all().next().is_some()
    }

    /// Whether the text contains one of the options. A name that is truncated at the end of the text counts as well.
    pub(super) fn has(self, names: &[&str]) -> bool {
        let cut = |found: &str, name: &str| found.len() >= 10 && name.starts_with(found) && self.0.ends_with(found);
        self.all().any(|(found, _)| names.iter().any(|name| found == *name || cut(&found, name)))
    }

    /// Returns the value of the first of the options that has one.
    pub(super) fn value(self, names: &[&str]) -> Option<&'a str> {
        self.all().find(|(found, value)| names.contains(&found.as_str()) && !value.is_empty()).map(|(_, value)| value)
    }

    /// Like [`value`](Flags::value), as a positive finite number.
    pub(super) fn number(self, names: &[&str]) -> Option<f64> {
        self.value(names)?.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    #[test]
    fn flags_parse_with_space_or_equals_and_dash_or_underscore() {
        let f =
            Flags::of("flags: vllm serve m --max-num-seqs 64 --tp_size=8 -pp 2 --enforce-eager; --kv-cache-dtype fp8");
        assert_eq!(f.number(&["max-num-seqs"]), Some(64.0));
        assert_eq!(f.number(&["tp", "tp-size"]), Some(8.0));
        assert_eq!(f.number(&["pp"]), Some(2.0));
        assert!(f.has(&["enforce-eager"]) && !f.has(&["eager"]) && f.any());
        assert_eq!(f.value(&["kv-cache-dtype"]), Some("fp8"));
        assert_eq!(f.number(&["enforce-eager"]), None);
    }

    #[test]
    fn text_without_command_line_yields_no_flags() {
        for text in ["", "--", " -- ", "static batch - one repeat", "in/out --", "=--=", "ümlaut --ä", "+-10 % -5"] {
            let f = Flags::of(text);
            assert_eq!(f.number(&["max-num-seqs"]), None);
            assert!(!f.has(&["enforce-eager"]) && !f.any(), "{text}");
        }
    }
}
