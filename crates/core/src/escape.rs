//! Escaping of text for each destination in which it is shown or parsed.
//!
//! Names, messages and numbers come from files, logs, hosts and endpoints, and may contain any characters. There is one
//! function per destination. It is applied where the text is inserted, and only there.

use std::borrow::Cow;

/// Whether a character changes how a terminal or browser shows the surrounding text: control characters, and characters
/// that set the text direction.
#[must_use]
pub fn is_control_or_bidi(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Escapes text for a terminal, possibly with several lines: control characters become `?`.
#[must_use]
pub fn terminal(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_control_or_bidi(c) && c != '\n', '?')
}

/// Quotes a value as one word of a POSIX shell: `'it'\''s'`. Plain words are not quoted.
#[must_use]
pub fn shell(value: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | ':' | '-' | '+' | ',' | '@' | '%' | '=');
    if !value.is_empty() && value.chars().all(plain) && !value.starts_with('=') {
        return value.to_owned();
    }
    // Shell words cannot contain NUL.
    format!("'{}'", value.replace('\0', "").replace('\'', "'\\''"))
}

/// Escapes text for HTML, XML or SVG: between tags, or in a double-quoted attribute value.
#[must_use]
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            // XML cannot represent these characters, or they would change the direction of the following text.
            c if is_control_or_bidi(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Escapes text for a line of Markdown: in a paragraph, heading or table cell. The result contains no tags, and does
/// not end the cell or line.
#[must_use]
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '|' => out.push_str("\\|"),
            // `a < b` is not a tag.
            '<' if chars.peek().is_none_or(|next| !matches!(next, ' ' | '=' | '0'..='9')) => out.push_str("&lt;"),
            '\n' | '\r' | '\t' => out.push(' '),
            c if is_control_or_bidi(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Formats a fenced code block in Markdown with the info string `language`, whatever the text contains.
#[must_use]
pub fn markdown_block(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{}\n{fence}\n", terminal(text))
}

/// Escapes a field of comma-separated values (RFC 4180), quoted if necessary. Text that a spreadsheet would evaluate as
/// a formula is prefixed with an apostrophe; numbers are not changed.
#[must_use]
pub fn csv(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number(text);
    let quoted = text.contains([',', '"', '\n', '\r']);
    match (formula, quoted) {
        (false, false) => Cow::Borrowed(text),
        (true, false) => Cow::Owned(format!("'{text}")),
        (formula, true) => {
            let apostrophe = if formula { "'" } else { "" };
            Cow::Owned(format!("\"{apostrophe}{}\"", text.replace('"', "\"\"")))
        }
    }
}

/// Whether text is a number, including the forms used in tables: `-1.5`, `+3 %`, `-`.
fn is_number(text: &str) -> bool {
    let bare = text.trim_end_matches(['%', ' ']);
    bare.parse::<f64>().is_ok() || matches!(bare, "-" | "+")
}

/// Replaces characters of a name so that it is a valid, printable file name component on every system.
#[must_use]
pub fn file_name(name: &str) -> String {
    let bad = |c: char| is_control_or_bidi(c) || matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
    let out = name.chars().map(|c| if bad(c) { '_' } else { c }).collect::<String>();
    if out.is_empty() || out.chars().all(|c| c == '.') { "_".repeat(out.len().max(1)) } else { out }
}

fn replaced(text: &str, bad: impl Fn(char) -> bool + Copy, with: char) -> Cow<'_, str> {
    if text.contains(bad) {
        Cow::Owned(text.chars().map(|c| if bad(c) { with } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// Arbitrary text with many characters that are special in one of the destinations.
    fn hostile() -> impl Strategy<Value = String> {
        let special = proptest::sample::select(
            "\u{1b}\u{7}\u{9b}\u{202e}\u{2066}\u{200f}\n\r\t\0'\"`$\\|<>&;(){}[]*?!#~=+-@,:/. aZ09é日"
                .chars()
                .collect::<Vec<_>>(),
        );
        proptest::collection::vec(prop_oneof![4 => special, 1 => any::<char>()], 0..24)
            .prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn terminal_text_has_no_control_characters(text in hostile()) {
            let shown = terminal(&text);
            prop_assert!(shown.chars().all(|c| c == '\n' || !is_control_or_bidi(c)));
            prop_assert_eq!(shown.chars().count(), text.chars().count());
            prop_assert_eq!(terminal(&shown), shown.clone());
        }

        #[test]
        fn escaped_html_has_no_tags_and_does_not_end_attributes(text in hostile()) {
            let shown = html(&text);
            prop_assert!(!shown.contains(['<', '>', '"', '\'']));
            for (at, _) in shown.match_indices('&') {
                let entity = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"].iter().any(|known| shown[at..].starts_with(known));
                prop_assert!(entity, "{}", shown);
            }
        }

        #[test]
        fn escaped_markdown_has_no_tags_and_does_not_end_cells(text in hostile()) {
            let shown = markdown(&text);
            let bad = ['\n', '\r', '\u{1b}'];
            prop_assert!(!shown.contains(bad));
            let tag = |(at, _): (usize, &str)| !shown[at + 1..].starts_with([' ', '=', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
            prop_assert!(!shown.match_indices('<').any(tag), "{}", shown);
            prop_assert!(shown.match_indices('|').all(|(at, _)| shown[..at].ends_with('\\')));
        }

        #[test]
        fn markdown_code_block_is_ended_only_by_its_fence(text in hostile()) {
            let block = markdown_block("text", &text);
            let fence: String = block.chars().take_while(|c| *c == '`').collect();
            prop_assert_eq!(block.matches(&fence).count(), 2, "{}", block);
        }

        #[test]
        fn escaped_csv_round_trips_and_is_not_a_formula(text in hostile()) {
            let field = csv(&text);
            let read = match field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
                Some(inner) => inner.replace("\"\"", "\""),
                None => {
                    prop_assert!(!field.contains([',', '"', '\n', '\r']));
                    field.to_string()
                }
            };
            let formula = read.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number(&read);
            prop_assert!(!formula, "{}", read);
            prop_assert_eq!(read.strip_prefix('\'').filter(|rest| *rest == text).unwrap_or(&read), &text);
        }

        #[test]
        fn file_names_stay_in_their_directory(text in hostile()) {
            let name = file_name(&text);
            prop_assert!(!name.is_empty() && name != "." && name != "..");
            prop_assert!(!name.contains(['/', '\\', ':', '\0', '\n']));
            prop_assert_eq!(file_name(&name), name.clone());
        }
    }

    #[test]
    fn shell_quoted_words_round_trip_through_sh() {
        let words = [
            "plain",
            "",
            "it's",
            "a b",
            "$HOME",
            "`id`",
            "$(id)",
            "a\nb",
            "*",
            "~",
            "!x",
            "-n",
            "a=b",
            "=cat",
            "\\",
            "\"",
            "#x",
            "é",
            "a;b",
            "a&b",
            "a|b",
            "{a,b}",
            "[a]",
            "''",
            "\u{1b}[31m",
            "a\\",
        ];
        for word in words {
            let output = Command::new("sh").arg("-c").arg(format!("printf %s {}", shell(word))).output();
            assert!(output.is_ok_and(|output| output.stdout == word.as_bytes()), "{word:?}");
        }
        assert_eq!(shell("a\0b"), "'ab'");
        assert_eq!(shell("tp=8"), "tp=8");
    }

    #[test]
    fn csv_escapes_formulas_but_not_numbers() {
        for text in ["-1.5", "+3", "-1e-7", "-", "-3 %", "4", "a=b"] {
            assert_eq!(csv(text), text);
        }
        assert_eq!(csv("=1+1"), "'=1+1");
        assert_eq!(csv("-2+cmd|' /C calc'!A0"), "'-2+cmd|' /C calc'!A0");
        assert_eq!(csv("@SUM(1,2)"), "\"'@SUM(1,2)\"");
    }
}
