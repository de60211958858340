//! Rows of Markdown tables.

use crate::recognizer::Outcome;

/// Splits a row into its cells.
pub(crate) fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// The outcome of a line of a table with `columns` columns that is not a row of values; `None` for a row of values.
/// `other_width` is the message about a row with another number of columns.
pub(crate) fn not_values(cells: &[&str], columns: usize, other_width: &'static str) -> Option<Outcome> {
    match cells.len() {
        _ if columns == 0 => Some(Outcome::NotRecognized),
        _ if is_rule(cells) => Some(Outcome::Recognized),
        width => (width != columns).then_some(Outcome::Unusable(other_width)),
    }
}

/// Whether the row is the delimiter between header and body: `---`, `:--`, `--:`.
pub(crate) fn is_rule(cells: &[impl AsRef<str>]) -> bool {
    cells.iter().all(|cell| cell.as_ref().bytes().all(|byte| matches!(byte, b'-' | b':')))
}
