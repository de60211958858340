//! Rows of tables in Markdown.

/// The cells of a row.
pub(crate) fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// Whether they are the line between the header and the rows: `---`, `:--`, `--:`.
pub(crate) fn is_rule(cells: &[impl AsRef<str>]) -> bool {
    cells.iter().all(|cell| cell.as_ref().bytes().all(|byte| matches!(byte, b'-' | b':')))
}
