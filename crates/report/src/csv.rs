//! Comma-separated values per RFC 4180, except that lines end in a bare newline.

use std::borrow::Cow;

use atlas_core::escape;

/// Formats one line, escaping fields where needed.
#[must_use]
pub fn line<'f>(fields: impl IntoIterator<Item = &'f str>) -> String {
    let fields: Vec<Cow<'_, str>> = fields.into_iter().map(escape::csv).collect();
    fields.join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(line(["a,b", "c\"d", "e", ""]), "\"a,b\",\"c\"\"d\",e,\n");
    }
}
