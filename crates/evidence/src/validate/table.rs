//! A CSV file as rows of named cells.

use std::collections::HashMap;
use std::sync::Arc;

use super::columns::canonical;

/// One row; cells are looked up by column name.
#[derive(Debug, Clone)]
pub struct Row {
    columns: Arc<HashMap<String, usize>>,
    cells: csv::StringRecord,
}

impl Row {
    /// A row of cells by the names of their columns.
    #[must_use]
    pub fn of<'c>(cells: impl IntoIterator<Item = (&'c str, &'c str)>) -> Row {
        let (names, cells): (Vec<&str>, Vec<&str>) = cells.into_iter().unzip();
        let columns = names.into_iter().enumerate().map(|(at, name)| (name.to_owned(), at)).collect();
        Row { columns: Arc::new(columns), cells: cells.into_iter().collect() }
    }

    /// The trimmed text of a cell; empty where the column is missing.
    #[must_use]
    pub fn text(&self, column: &str) -> &str {
        self.columns.get(column).and_then(|&at| self.cells.get(at)).unwrap_or("").trim()
    }

    /// Every column with its cell, in the order of the file.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut columns: Vec<(&str, usize)> = self.columns.iter().map(|(name, at)| (name.as_str(), *at)).collect();
        columns.sort_by_key(|(_, at)| *at);
        columns.into_iter().map(|(name, at)| (name, self.cells.get(at).unwrap_or_default().trim()))
    }

    /// The cell as a finite number.
    #[must_use]
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok().filter(|x: &f64| x.is_finite())
    }

    /// The cell as a positive number.
    #[must_use]
    pub fn positive(&self, column: &str) -> Option<f64> {
        self.number(column).filter(|x| *x > 0.0)
    }

    /// The cell as yes or no.
    #[must_use]
    pub fn flag(&self, column: &str) -> Option<bool> {
        match self.text(column).to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Some(true),
            "false" | "no" | "0" => Some(false),
            _ => None,
        }
    }
}

/// Reads all rows of CSV text with a header.
///
/// # Errors
/// Text that is not CSV.
pub fn read(text: &str) -> Result<Vec<Row>, csv::Error> {
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    let headers = reader.headers()?;
    let mut names: HashMap<String, usize> =
        headers.iter().enumerate().map(|(at, name)| (name.trim().to_string(), at)).collect();
    // A column under its own name wins over one under an alias.
    for (at, name) in headers.iter().enumerate() {
        names.entry(canonical(name).to_string()).or_insert(at);
    }
    let columns = Arc::new(names);
    reader.records().map(|record| record.map(|cells| Row { columns: Arc::clone(&columns), cells })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_under_aliases_but_their_own_name_wins() {
        let rows = read("GPU,num_gpus,seq_length,seq_len\nh100,8,1,4096\n").unwrap_or_default();
        let row = rows.first();
        assert_eq!(row.map(|row| row.text("accelerator")), Some("h100"));
        assert_eq!(row.and_then(|row| row.positive("num_accelerators")), Some(8.0));
        assert_eq!(row.and_then(|row| row.positive("seq_len")), Some(4096.0));
    }
}
