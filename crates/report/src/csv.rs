//! Comma-separated values per RFC 4180, except that lines end in a bare newline.

use std::fmt::Display;

use atlas_core::escape;

/// Formats fields without the end of the line, escaping them where needed.
#[must_use]
pub fn fields<F: AsRef<str>>(fields: impl IntoIterator<Item = F>) -> String {
    let mut out = String::new();
    for (index, field) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&escape::csv(field.as_ref()));
    }
    out
}

/// Formats one line, escaping fields where needed.
#[must_use]
pub fn line<F: AsRef<str>>(fields: impl IntoIterator<Item = F>) -> String {
    self::fields(fields) + "\n"
}

/// Text of a value that can be absent. It is then empty.
#[must_use]
pub fn optional(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(line(["a,b", "c\"d", "e", ""]), "\"a,b\",\"c\"\"d\",e,\n");
        assert_eq!(fields([optional(Some(1.5)), optional(None::<f64>)]), "1.5,");
    }
}
