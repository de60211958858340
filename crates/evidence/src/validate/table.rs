//! Parses CSV files into rows of named cells.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use atlas_core::sort;
use atlas_legacy::measurements::{self, ConvertError, FreeText};

use super::ValidateError;
use super::columns::{COLUMNS, Column, ColumnTarget, canonical};

/// A row whose cells are accessed by column name.
#[derive(Debug, Clone)]
pub struct Row {
    columns: Arc<HashMap<String, usize>>,
    cells: csv::StringRecord,
    /// Line on which it begins, from 1.
    line: u64,
}

/// A cell that its column does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{field}: {column}: found \"{found}\", expected {expected}")]
pub struct BadCell {
    /// Line of the file on which the row begins, from 1.
    pub line: u64,
    /// Index of the cell in the row, from 1.
    pub field: usize,
    /// Column of the cell.
    pub column: &'static str,
    /// Text of the cell.
    pub found: String,
    /// What the column accepts.
    pub expected: String,
}

impl Row {
    /// Creates a row from column names and cells.
    #[must_use]
    pub fn of<'c>(cells: impl IntoIterator<Item = (&'c str, &'c str)>) -> Row {
        let (names, cells): (Vec<&str>, Vec<&str>) = cells.into_iter().unzip();
        let columns = names.into_iter().enumerate().map(|(at, name)| (name.to_owned(), at)).collect();
        Row { columns: Arc::new(columns), cells: cells.into_iter().collect(), line: 1 }
    }

    /// Returns the trimmed text of a cell, or an empty string if the column is missing.
    #[must_use]
    pub fn text(&self, column: &str) -> &str {
        self.columns.get(column).and_then(|&at| self.cells.get(at)).unwrap_or("").trim()
    }

    /// Returns all columns with their cells, in the order of the file.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut columns: Vec<(&str, usize)> = self.columns.iter().map(|(name, at)| (name.as_str(), *at)).collect();
        sort::by_key(&mut columns, |(_, at)| *at);
        columns.into_iter().map(|(name, at)| (name, self.cells.get(at).unwrap_or_default().trim()))
    }

    /// Returns the cells that their columns do not accept.
    pub fn bad_cells(&self) -> impl Iterator<Item = BadCell> {
        COLUMNS.iter().filter_map(|column| {
            let found = self.text(column.name);
            let expected = column.expected(found)?;
            let field = self.columns.get(column.name)? + 1;
            Some(BadCell { line: self.line, field, column: column.name, found: found.to_owned(), expected })
        })
    }

    /// Scenario and measurements in a normalized form that is equal for equal rows: numbers are compared as numbers.
    #[must_use]
    pub fn normalized(&self) -> String {
        let states = |column: &&Column| column.place != ColumnTarget::Record;
        let cell = |column: &Column| match self.number(column.name) {
            Some(number) => format!("{number}"),
            None => self.text(column.name).to_ascii_lowercase(),
        };
        COLUMNS.iter().filter(states).map(cell).collect::<Vec<_>>().join("\n")
    }

    /// Returns the cell as a finite number.
    #[must_use]
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok().filter(|x: &f64| x.is_finite())
    }

    /// Returns the cell as a positive number.
    #[must_use]
    pub fn positive(&self, column: &str) -> Option<f64> {
        self.number(column).filter(|x| *x > 0.0)
    }

    /// Returns the cell as a boolean.
    #[must_use]
    pub fn flag(&self, column: &str) -> Option<bool> {
        match self.text(column).to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Some(true),
            "false" | "no" | "0" => Some(false),
            _ => None,
        }
    }
}

/// Reads all rows of CSV text with a header. Tables with the columns of version 0.1 are converted, ignoring their
/// prose.
///
/// # Errors
/// Returns an error if the text is not valid CSV, or if the header contains a column twice.
pub fn read(text: &str) -> Result<Vec<Row>, ValidateError> {
    typed_rows(&with_current_columns(text)?)
}

/// Returns the text of a table with the current columns: unchanged, or converted from the columns of version 0.1
/// without its prose.
///
/// # Errors
/// Returns an error if old columns match no kind of measurements, or if the text is not valid CSV.
pub fn with_current_columns(text: &str) -> Result<Cow<'_, str>, ValidateError> {
    if !measurements::is_untyped(text) {
        return Ok(Cow::Borrowed(text));
    }
    let (typed, _) = measurements::convert(text, None, FreeText::Ignore).map_err(|problem| match problem {
        ConvertError::Csv(problem) => ValidateError::Csv(problem),
        ConvertError::Columns(found) => ValidateError::Columns(found),
    })?;
    Ok(Cow::Owned(typed))
}

fn typed_rows(text: &str) -> Result<Vec<Row>, ValidateError> {
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    let headers = reader.headers()?;
    let mut names: HashMap<String, usize> = HashMap::new();
    for (at, name) in headers.iter().map(str::trim).enumerate().filter(|(_, name)| !name.is_empty()) {
        let known = COLUMNS.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        let name = known.map_or(name, |column| column.name);
        if let Some(first) = names.insert(name.to_owned(), at) {
            return Err(ValidateError::Twice { column: name.to_owned(), first: first + 1, again: at + 1 });
        }
    }
    // A column under its canonical name takes precedence over one under an alias.
    for (at, name) in headers.iter().enumerate() {
        names.entry(canonical(name).to_string()).or_insert(at);
    }
    let columns = Arc::new(names);
    let row = |record: Result<csv::StringRecord, csv::Error>| {
        let cells = record?;
        let line = cells.position().map_or(0, csv::Position::line);
        Ok(Row { columns: Arc::clone(&columns), cells, line })
    };
    reader.records().map(row).collect()
}

/// Returns for every row the first earlier row with the same scenario and measurements, if there is one. Excluded rows
/// are ignored.
#[must_use]
pub fn duplicates(rows: &[Row]) -> Vec<Option<&Row>> {
    let mut first: HashMap<String, &Row> = HashMap::new();
    let copy = |row| match first.entry(Row::normalized(row)) {
        _ if !row.text("excluded").is_empty() => None,
        Entry::Occupied(known) => Some(*known.get()),
        Entry::Vacant(place) => {
            place.insert(row);
            None
        }
    };
    rows.iter().map(copy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_aliases_are_accepted_and_the_canonical_name_has_priority() {
        let rows = read("GPU,num_gpus,seq_length,seq_len\nh100,8,1,4096\n").unwrap_or_default();
        let row = rows.first();
        assert_eq!(row.map(|row| row.text("accelerator")), Some("h100"));
        assert_eq!(row.and_then(|row| row.positive("num_accelerators")), Some(8.0));
        assert_eq!(row.and_then(|row| row.positive("seq_len")), Some(4096.0));
    }

    #[test]
    fn a_column_named_twice_is_refused() {
        let problem = read("id,tp,TP\na,1,2\n").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(problem.contains("`tp`") && problem.contains("2 and 3"), "{problem}");
    }

    #[test]
    fn a_bad_cell_is_found_with_its_line_and_field() {
        let rows = read("id,tp,mfu\na,1,0.4\n\"b\nb\",0.5,-1\n").unwrap_or_default();
        let found: Vec<String> = rows.iter().flat_map(Row::bad_cells).map(|cell| cell.to_string()).collect();
        let expected = [
            "3:2: tp: found \"0.5\", expected a whole number of at least 1",
            "3:3: mfu: found \"-1\", expected a number above 0",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn row_with_the_same_scenario_and_metrics_is_a_copy() {
        let text = "id,excluded,accelerator,tp,ttft_ms,notes\n\
                    a,yes,h100,8,12.5,\nb,,h100,8,12.5,\nc,,H100,8.0,12.50,other\nd,,h100,4,12.5,\ne,,h100,8,12.6,\n";
        let rows = read(text).unwrap_or_default();
        let copies: Vec<Option<&str>> = duplicates(&rows).iter().map(|row| row.map(|row| row.text("id"))).collect();
        assert_eq!(copies, [None, None, Some("b"), None, None]);
    }
}
