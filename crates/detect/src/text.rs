//! Cleaning of text from tools, and parsing of the numbers in it.

/// Maximum number of characters of a cleaned text.
const MAX_CHARACTERS: usize = 200;

/// Removes terminal sequences and control characters, collapses whitespace, and truncates the text to 200 characters.
#[must_use]
pub fn clean(text: &str) -> String {
    let plain = strip_sequences(text);
    let mut out = String::with_capacity(plain.len().min(MAX_CHARACTERS));
    let mut kept = 0;
    for word in plain.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if kept > 0 {
            out.push(' ');
        }
        for c in word.chars().filter(|&c| !is_invisible(c)) {
            if kept >= MAX_CHARACTERS {
                out.push('…');
                return out;
            }
            out.push(c);
            kept += 1;
        }
    }
    out
}

/// Whether a character reorders or hides the text around it.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fffd}')
}

/// Removes terminal escape sequences, such as `ESC [ … letter`.
#[must_use]
pub fn strip_sequences(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        if rest.next_if_eq(&'[').is_some() {
            while rest.next_if(|&c| !('\u{40}'..='\u{7e}').contains(&c)).is_some() {}
            rest.next();
        }
    }
    out
}

/// Returns the trimmed text, or `None` if it is empty or a placeholder such as `N/A`.
#[must_use]
pub fn present(text: &str) -> Option<&str> {
    let text = text.trim();
    let inner = text.trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
    let absent =
        ["", "n/a", "na", "null", "none", "not supported", "unknown error", "unknown", "insufficient permissions"];
    (!absent.iter().any(|word| inner.eq_ignore_ascii_case(word))).then_some(text)
}

/// Parses the number at the beginning of a text, such as 700 in `700.00 W`. It is finite and not negative.
#[must_use]
pub fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, _) = text.split_at(end);
    number.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Parses a size such as `81559 MiB`, `192 GB` or `64Gi` into GiB. A number without a suffix counts units of `unit`
/// bytes.
#[must_use]
pub fn gib(text: &str, unit: f64) -> Option<f64> {
    let text = present(text)?;
    let value = leading_number(text)?;
    let suffix = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
    let bytes = match suffix.to_ascii_lowercase().as_str() {
        "" => unit,
        "b" | "bytes" => 1.0,
        "k" | "kb" | "kib" | "ki" => KIB,
        "m" | "mb" | "mib" | "mi" => MIB,
        "g" | "gb" | "gib" | "gi" => GIB,
        "t" | "tb" | "tib" | "ti" => GIB * 1024.0,
        _ => return None,
    };
    let size = value * bytes / GIB;
    (size > 0.0 && size < 1e7).then_some(size)
}

/// Quotes a text as one shell word.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '=' | ',' | '%' | '+');
    if !text.is_empty() && text.chars().all(safe) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Bytes in a KiB.
pub const KIB: f64 = 1024.0;
/// Bytes in a MiB.
pub const MIB: f64 = 1024.0 * 1024.0;
/// Bytes in a GiB.
pub const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn control_and_bidi_characters_are_removed_from_text() {
        assert_eq!(clean("\u{1b}[31mA\u{1b}[0m\u{7}B \n\t C\u{202e}D"), "A B CD");
        assert_eq!(clean(&"x".repeat(500)).chars().count(), 201);
        assert_eq!(strip_sequences("a\u{1b}"), "a");
        assert_eq!(strip_sequences("a\u{1b}[12"), "a");
    }

    #[test]
    fn placeholders_for_missing_values_are_absent() {
        for text in ["", " [N/A] ", "N/A", "(null)", "[Not Supported]", "[Unknown Error]", "None"] {
            assert_eq!(present(text), None, "{text:?}");
        }
        assert_eq!(present(" a100 "), Some("a100"));
    }

    #[test]
    fn shell_word_is_quoted_only_when_needed() {
        assert_eq!(shell_word("gpu-a100.x"), "gpu-a100.x");
        assert_eq!(shell_word("a;id"), "'a;id'");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn memory_sizes_parse_in_any_unit() {
        assert_eq!(gib("81920 MiB", 1.0), Some(80.0));
        assert_eq!(gib("64Gi", 1.0), Some(64.0));
        assert_eq!(gib("81920", MIB), Some(80.0));
        assert_eq!(gib("68719476736", 1.0), Some(64.0));
        assert_eq!(gib("12 parsecs", 1.0), None);
        assert_eq!(gib("[N/A]", 1.0), None);
        assert_eq!(gib("1e400", 1.0), None);
        assert_eq!(gib("0 MiB", 1.0), None);
    }
}
