//! YAML scalars and comments, escaped so that any text is read back unchanged.

use crate::text::clean;

/// Formats text as a YAML scalar on one line: plain if that is safe, otherwise in double quotes.
#[must_use]
pub(super) fn text(value: &str) -> String {
    let value = clean(value);
    if is_plain(&value) {
        return value;
    }
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for c in value.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => {}
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether text can be a plain scalar: it begins with a letter, contains only safe characters, and is not a word that
/// YAML reads as another type.
fn is_plain(value: &str) -> bool {
    const WORDS: [&str; 12] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf", "infinity"];
    value.starts_with(|c: char| c.is_ascii_alphabetic())
        && !value.ends_with(' ')
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '/' | '+' | ';' | '(' | ')'))
        && !WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Returns the value if a target can hold it; `None` if it is not plausible as a size, rate or price.
#[must_use]
pub(super) fn plausible(value: Option<f64>) -> Option<f64> {
    value.filter(|value| (0.0..=1e9).contains(value))
}

/// Formats a number with at most three decimals and without trailing zeros.
#[must_use]
pub(super) fn number(value: f64) -> String {
    let rounded = (value * 1000.0).round() / 1000.0;
    format!("{rounded}")
}

/// Wraps text into comment lines of at most about 110 characters, indented by `depth`.
pub(super) fn comment(out: &mut String, depth: usize, value: &str) {
    let value = clean_long(value);
    let mut line = String::new();
    let mut first = true;
    let mut flush = |line: &mut String, first: &mut bool| {
        if !line.is_empty() {
            let indent = " ".repeat(depth);
            let hanging = if *first { "" } else { "  " };
            out.push_str(&format!("{indent}# {hanging}{line}\n"));
            line.clear();
            *first = false;
        }
    };
    for word in value.split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && line.chars().count() + word.chars().count() > 105 {
            flush(&mut line, &mut first);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    flush(&mut line, &mut first);
}

/// Like [`clean`], but for text of any length: cleans it word by word.
fn clean_long(value: &str) -> String {
    let words: Vec<String> = value.split(' ').take(400).map(clean).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_yaml_scalars_are_quoted() {
        for (value, written) in [
            ("gpu-a100", "gpu-a100"),
            ("no", "\"no\""),
            ("123", "\"123\""),
            ("1e3", "\"1e3\""),
            ("a: b", "\"a: b\""),
            ("x # y", "\"x # y\""),
            ("- x", "\"- x\""),
            ("q\"\\", "\"q\\\"\\\\\""),
            ("", "\"\""),
            ("a\nb: c", "\"a b: c\""),
        ] {
            assert_eq!(text(value), written);
        }
    }

    #[test]
    fn every_line_of_a_yaml_comment_is_prefixed_and_wrapped() {
        let mut out = String::new();
        comment(&mut out, 2, &format!("one\ntwo: 3\r\u{85}four\u{2028}five {}", "word ".repeat(60)));
        assert!(out.lines().count() > 2);
        assert!(out.lines().all(|line| line.starts_with("  # ") && line.chars().count() <= 115), "{out}");
        assert!(out.starts_with("  # one two: 3 four"), "{out}");
    }
}
