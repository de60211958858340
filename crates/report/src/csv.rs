//! Comma-separated values as RFC 4180 has them, lines ended by a bare newline.

use std::borrow::Cow;

use atlas_core::escape;

/// A line.
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
