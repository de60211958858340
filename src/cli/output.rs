//! Output to stdout and stderr: only characters that the terminal supports, and no panic on a closed pipe.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use atlas_core::escape;

/// The character set of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// Unicode.
    Unicode,
    /// ASCII only.
    Ascii,
}

impl Charset {
    /// The character set of the locale: `LC_ALL`, else `LC_CTYPE`, else `LANG`.
    #[must_use]
    pub fn of_locale() -> Charset {
        let value = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
            .unwrap_or_default()
            .to_lowercase();
        if value.contains("utf-8") || value.contains("utf8") { Charset::Unicode } else { Charset::Ascii }
    }

    /// Converts the text to this character set. Control characters are replaced by `?` in both.
    #[must_use]
    pub fn write(self, text: &str) -> Cow<'_, str> {
        let text = escape::terminal(text);
        let bad = |c: char| self == Charset::Ascii && !c.is_ascii();
        if !text.contains(bad) {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                c if !bad(c) => out.push(c),
                '–' | '—' | '−' | '─' | '·' => out.push('-'),
                '×' => out.push('x'),
                '±' => out.push_str("+-"),
                'µ' => out.push('u'),
                '…' => out.push_str("..."),
                '→' => out.push_str("->"),
                '’' => out.push('\''),
                '≤' => out.push_str("<="),
                '≥' => out.push_str(">="),
                '⌈' => out.push_str("ceil("),
                '⌉' => out.push(')'),
                '│' => out.push('|'),
                '├' | '└' => out.push('+'),
                '█' | '▓' => out.push('#'),
                '░' => out.push('.'),
                '∞' => out.push_str("inf"),
                _ => out.push('?'),
            }
        }
        Cow::Owned(out)
    }
}

/// Writes `text` to stdout.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Writes a line to stderr; failures are ignored.
pub fn write_stderr(text: &str) {
    // Names in messages come from files and could contain control sequences.
    let text = Charset::of_locale().write(text).into_owned();
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Width of the terminal on stdout, or 100 without one.
#[must_use]
pub fn width() -> usize {
    let size = io::stdout().is_terminal().then(|| crossterm::terminal::size().ok()).flatten();
    size.map_or(100, |(columns, _)| usize::from(columns).max(20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_transliterates_symbols_and_control_characters_are_replaced() {
        assert_eq!(Charset::Ascii.write("a × b … 3 µs"), "a x b ... 3 us");
        assert_eq!(Charset::Unicode.write("a × b\n"), "a × b\n");
        assert_eq!(Charset::Unicode.write("a\u{1b}[31mb"), "a?[31mb");
        assert_eq!(Charset::Ascii.write("日"), "?");
    }
}
