//! Rows of Markdown tables.

/// Splits a row into its cells.
pub(crate) fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// Whether the row is the delimiter between header and body: `---`, `:--`, `--:`.
pub(crate) fn is_rule(cells: &[impl AsRef<str>]) -> bool {
    cells.iter().all(|cell| cell.as_ref().bytes().all(|byte| matches!(byte, b'-' | b':')))
}
