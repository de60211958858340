//! A CSV file as rows of named cells.

use std::collections::HashMap;
use std::sync::Arc;

/// One row; cells are looked up by column name.
#[derive(Debug, Clone)]
pub struct Row {
    columns: Arc<HashMap<String, usize>>,
    cells: csv::StringRecord,
}

impl Row {
    /// The cell's text, trimmed; empty where the column is missing.
    pub fn text(&self, column: &str) -> &str {
        self.columns.get(column).and_then(|&i| self.cells.get(i)).unwrap_or("").trim()
    }

    /// Every column with its cell, in the order of the file.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut columns: Vec<(&str, usize)> = self.columns.iter().map(|(name, at)| (name.as_str(), *at)).collect();
        columns.sort_by_key(|(_, at)| *at);
        columns.into_iter().map(|(name, at)| (name, self.cells.get(at).unwrap_or_default().trim()))
    }

    /// The cell as a finite number, if it is one.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok().filter(|x: &f64| x.is_finite())
    }

    /// The cell as a positive number, if it is one.
    pub fn positive(&self, column: &str) -> Option<f64> {
        self.number(column).filter(|&x| x > 0.0)
    }

    /// The cell as yes or no, if it is one.
    pub fn flag(&self, column: &str) -> Option<bool> {
        match self.text(column).to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Some(true),
            "false" | "no" | "0" => Some(false),
            _ => None,
        }
    }
}

/// Reads all rows of CSV text with a header.
pub fn read(text: &str) -> Result<Vec<Row>, csv::Error> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let names = reader.headers()?.iter().enumerate().map(|(i, n)| (n.trim().to_string(), i)).collect();
    let columns = Arc::new(names);
    reader.records().map(|r| r.map(|cells| Row { columns: Arc::clone(&columns), cells })).collect()
}
