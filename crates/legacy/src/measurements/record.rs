//! Builder for a typed row. Every cell is either copied verbatim from the old row or listed with a reason.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::TableKind;
use super::schema::{self, Type};
use super::table::Row;
use super::text::quantity;

/// A cell that could not be converted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Problem {
    /// Column of the typed table.
    pub column: String,
    /// Text in the old row.
    pub found: String,
    /// Description of the expected value.
    pub expected: String,
}

/// A typed row under construction.
#[derive(Debug, Clone)]
pub(super) struct Record {
    kind: TableKind,
    cells: BTreeMap<&'static str, String>,
    converted: Vec<(&'static str, String)>,
    assumed: Vec<(&'static str, String)>,
    inferred: Vec<&'static str>,
    excluded: Vec<String>,
    /// Cells that could not be converted.
    pub problems: Vec<Problem>,
}

/// Formats a number for a cell, with at most nine significant digits and without an exponent.
fn number(x: f64) -> String {
    let rounded: f64 = format!("{x:.8e}").parse().unwrap_or(x);
    format!("{rounded}")
}

/// A value that can be written to a cell.
pub(super) trait Cell {
    /// Returns the text of the cell.
    fn cell(&self) -> String;
}

impl Cell for f64 {
    fn cell(&self) -> String {
        number(*self)
    }
}

impl Cell for bool {
    fn cell(&self) -> String {
        self.to_string()
    }
}

impl Cell for &str {
    fn cell(&self) -> String {
        (*self).to_owned()
    }
}

impl Cell for String {
    fn cell(&self) -> String {
        self.clone()
    }
}

impl Record {
    pub(super) fn new(kind: TableKind) -> Record {
        Record {
            kind,
            cells: BTreeMap::new(),
            converted: Vec::new(),
            assumed: Vec::new(),
            inferred: Vec::new(),
            excluded: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Sets a cell if the text has the column's type. Otherwise reports a problem and returns false.
    fn set_if_valid(&mut self, column: &'static str, text: String) -> bool {
        let Some(kind) = schema::type_of(self.kind, column) else {
            self.problem(column, &text, "a column of this table");
            return false;
        };
        if !kind.accepts(&text) {
            self.problem(column, &text, &kind.expected());
            return false;
        }
        // A later value replaces an earlier one together with its reason.
        self.clear_reasons(column);
        self.cells.insert(column, text);
        true
    }

    fn clear_reasons(&mut self, column: &str) {
        self.converted.retain(|(name, _)| *name != column);
        self.assumed.retain(|(name, _)| *name != column);
        self.inferred.retain(|name| *name != column);
    }

    /// Clears a cell and its reason.
    pub(super) fn clear_cell(&mut self, column: &str) {
        self.clear_reasons(column);
        self.cells.remove(column);
    }

    /// Reports text that could not be converted.
    pub(super) fn problem(&mut self, column: &str, found: &str, expected: &str) {
        let problem = Problem { column: column.into(), found: found.into(), expected: expected.into() };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Copies text of the old row verbatim. Empty text is ignored.
    pub(super) fn copy_text(&mut self, column: &'static str, text: &str) {
        if !text.is_empty() {
            self.set_if_valid(column, text.to_owned());
        }
    }

    /// Sets a value that the old row states in another form. `why` names the place.
    pub(super) fn convert(&mut self, column: &'static str, value: impl Cell, why: impl Display) {
        if self.set_if_valid(column, value.cell()) {
            self.converted.push((column, why.to_string()));
        }
    }

    /// Sets a default or convention for a value that the row does not state.
    pub(super) fn assume(&mut self, column: &'static str, value: impl Cell, why: impl Display) {
        if self.set_if_valid(column, value.cell()) {
            self.assumed.push((column, why.to_string()));
        }
    }

    /// Sets a value that is derived from the row's measurement, or from the fact that the run fit in memory.
    pub(super) fn infer(&mut self, column: &'static str, value: impl Cell, why: impl Display) {
        if self.set_if_valid(column, value.cell()) {
            self.inferred.push(column);
            self.assumed.push((column, format!("inferred, {why}")));
        }
    }

    /// Excludes the row as an unusable measurement.
    pub(super) fn exclude(&mut self, why: impl Display) {
        let why = why.to_string();
        if !self.excluded.contains(&why) {
            self.excluded.push(why);
        }
    }

    /// Whether the row is excluded.
    pub(super) fn is_excluded(&self) -> bool {
        !self.excluded.is_empty()
    }

    /// Returns the text of a cell; empty if blank.
    pub(super) fn text(&self, column: &str) -> &str {
        self.cells.get(column).map_or("", String::as_str)
    }

    /// Returns a cell as a number.
    pub(super) fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok()
    }

    /// Whether a cell is not blank.
    pub(super) fn has(&self, column: &str) -> bool {
        self.cells.contains_key(column)
    }

    /// Copies a number from column `old` of the old row to the cell `new`, verbatim or without its unit. Returns the
    /// number if the cell was set.
    pub(super) fn take(&mut self, row: &Row, old: &str, new: &'static str) -> Option<f64> {
        let text = row.text(old);
        if text.is_empty() {
            return None;
        }
        let kind = schema::type_of(self.kind, new).unwrap_or(Type::Positive);
        let Some((value, plain)) = quantity(text) else {
            self.problem(new, text, &kind.expected());
            return None;
        };
        match plain {
            true => self.copy_text(new, text),
            false => self.convert(new, value, format!("column {old} \"{text}\"")),
        }
        self.has(new).then_some(value)
    }

    /// Returns the cells in the order of the columns, including the bookkeeping columns.
    pub(super) fn row(&self) -> Vec<String> {
        let listed = |all: &[(&'static str, String)]| {
            all.iter()
                .map(|(column, why)| format!("{column}: {}", normalize_reason(why)))
                .collect::<Vec<_>>()
                .join("; ")
        };
        schema::columns(self.kind)
            .map(|column| match column.name {
                "excluded" => self.excluded.iter().map(|why| normalize_reason(why)).collect::<Vec<_>>().join("; "),
                "inferred" => self.inferred.join("; "),
                "assumed" => listed(&self.assumed),
                "converted" => listed(&self.converted),
                name => self.text(name).to_owned(),
            })
            .collect()
    }

    /// Returns the numbers of converted, assumed and inferred cells. An inferred cell is not counted as assumed.
    pub(super) fn counts(&self) -> [usize; 3] {
        [self.converted.len(), self.assumed.len() - self.inferred.len(), self.inferred.len()]
    }
}

/// Normalizes a reason: replaces semicolons, which separate the entries of the bookkeeping cells, and collapses white
/// space.
fn normalize_reason(why: &str) -> String {
    why.replace(';', ",").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_cell_is_reported_and_left_blank() {
        let mut record = Record::new(TableKind::Training);
        record.convert("tp", "eight", "notes");
        record.copy_text("pp", "0");
        assert_eq!((record.text("tp"), record.text("pp")), ("", ""));
        assert_eq!(record.problems.len(), 2);
    }

    #[test]
    fn a_later_value_replaces_the_earlier_one_and_its_reason() {
        let mut record = Record::new(TableKind::Training);
        record.assume("tp", 1.0, "usual");
        record.infer("tp", 8.0, "the run; fit");
        assert_eq!(record.text("tp"), "8");
        assert_eq!(record.counts(), [0, 0, 1]);
        assert!(record.row().contains(&"tp: inferred, the run, fit".to_owned()));
    }

    #[test]
    fn number_cell_has_at_most_nine_significant_digits() {
        assert_eq!(number(0.9 * 1024.0), "921.6");
        assert_eq!(number(8.0), "8");
        assert_eq!(number(1.0 / 3.0), "0.333333333");
    }
}
