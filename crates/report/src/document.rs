//! Export of a view or report to a file: blocks for human readers, rows for programs, in the requested format.

use atlas_core::sort;
use serde_json::{Value, json};

use super::chart::drawing::{self, Drawing};
use super::chart::svg;
use super::csv;
use super::study::{Block, Cell, Grid, html, markdown};

/// Width and height of a chart that is a file of its own, in drawing units.
const CHART: (f64, f64) = (760.0, 420.0);

/// File format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DocumentFormat {
    /// Markdown.
    #[default]
    Markdown,
    /// A self-contained HTML file without network access.
    Html,
    /// JSON.
    Json,
    /// Comma-separated values with a header.
    Csv,
    /// The first chart as an SVG file.
    Svg,
}

impl DocumentFormat {
    /// All formats.
    pub const ALL: [DocumentFormat; 5] = [
        DocumentFormat::Markdown,
        DocumentFormat::Html,
        DocumentFormat::Json,
        DocumentFormat::Csv,
        DocumentFormat::Svg,
    ];

    /// Display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DocumentFormat::Markdown => "Markdown",
            DocumentFormat::Html => "HTML",
            DocumentFormat::Json => "JSON",
            DocumentFormat::Csv => "CSV",
            DocumentFormat::Svg => "SVG",
        }
    }

    /// File name extension.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            DocumentFormat::Markdown => "md",
            DocumentFormat::Html => "html",
            DocumentFormat::Json => "json",
            DocumentFormat::Csv => "csv",
            DocumentFormat::Svg => "svg",
        }
    }
}

/// A document.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// Its title.
    pub title: String,
    /// Content for human readers.
    pub blocks: Vec<Block>,
    /// Content for programs.
    pub rows: Grid,
}

impl Document {
    /// Layout of the first chart; `None` without charts.
    fn chart(&self) -> Option<Drawing> {
        self.blocks.iter().find_map(|block| match block {
            Block::Plot(plot) => drawing::plot(plot, CHART.0, CHART.1),
            Block::Bars(bars) => drawing::bars(bars, CHART.0),
            Block::Picture(drawing) => Some(drawing.clone()),
            _ => None,
        })
    }

    /// Formats the document can be written in. SVG requires a chart.
    #[must_use]
    pub fn formats(&self) -> Vec<DocumentFormat> {
        let charted = self.chart().is_some();
        DocumentFormat::ALL.into_iter().filter(|kind| *kind != DocumentFormat::Svg || charted).collect()
    }

    /// Content of the file in the given format.
    #[must_use]
    pub fn write(&self, kind: DocumentFormat) -> String {
        match kind {
            DocumentFormat::Markdown => markdown::text(&self.blocks),
            DocumentFormat::Html => html::page(&self.title, &self.blocks),
            DocumentFormat::Json => self.json(),
            DocumentFormat::Csv => self.csv(),
            DocumentFormat::Svg => self.chart().map_or_else(String::new, svg::standalone),
        }
    }

    /// Writes numbers with all digits, not as they are displayed.
    fn csv(&self) -> String {
        let mut out = csv::line(self.rows.head.iter().map(|(name, _)| name.as_str()));
        for row in &self.rows.rows {
            let cells: Vec<String> = row
                .iter()
                .map(|cell| cell.value.map_or_else(|| cell_text(cell).to_owned(), |v| v.to_string()))
                .collect();
            out += &csv::line(&cells);
        }
        out
    }

    fn json(&self) -> String {
        let row = |cells: &Vec<Cell>| {
            let fields = self.rows.head.iter().zip(cells).map(|((name, _), cell)| {
                let value = match (cell.value, cell_text(cell)) {
                    (Some(value), _) => json!(value),
                    (None, "") => Value::Null,
                    (None, text) => json!(text),
                };
                (name.clone(), value)
            });
            Value::Object(sort::collect_unsorted(fields))
        };
        let rows: Vec<Value> = self.rows.rows.iter().map(row).collect();
        let version = env!("CARGO_PKG_VERSION");
        let document = json!({ "title": self.title, "made_by": format!("atlas {version}"), "rows": rows });
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }
}

/// Text of a cell, empty if the cell shows a dash.
fn cell_text(cell: &Cell) -> &str {
    if cell.text == "–" { "" } else { &cell.text }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::chart::{Bar, Bars};
    use crate::table::{left, right};

    fn document() -> Document {
        let head = vec![left("what".to_owned()), right("value".to_owned())];
        let rows = vec![
            vec![Cell::text("a, \"b\""), Cell::number("1.23 k".to_owned(), 1234.5)],
            vec![Cell::text("none"), Cell::text("–")],
        ];
        let rows = Grid { head, rows };
        let blocks = vec![Block::Heading(1, "A <title>".to_owned()), Block::Table(rows.clone())];
        Document { title: "A <title>".to_owned(), blocks, rows }
    }

    #[test]
    fn markdown_is_rounded_and_csv_json_and_html_data_are_exact() {
        let document = document();
        assert!(document.write(DocumentFormat::Markdown).contains("| a, \"b\" | 1.23 k |"));
        let page = document.write(DocumentFormat::Html);
        assert!(page.contains("A &lt;title&gt;") && page.contains("data-v=\"1234.5\""));
        assert_eq!(document.write(DocumentFormat::Csv), "what,value\n\"a, \"\"b\"\"\",1234.5\nnone,\n");
        let json: Value = serde_json::from_str(&document.write(DocumentFormat::Json)).unwrap();
        assert_eq!(json["rows"][0]["value"], 1234.5);
        assert_eq!(json["rows"][1]["value"], Value::Null);
    }

    #[test]
    fn svg_is_offered_only_for_documents_with_charts() {
        let mut document = document();
        assert!(!document.formats().contains(&DocumentFormat::Svg));
        let bar = |name: &str, value| Bar {
            name: name.to_owned(),
            parts: vec![("part".to_owned(), value)],
            label: value.to_string(),
            interval: None,
            limit: None,
        };
        document.blocks.push(Block::Bars(Bars { title: "bars".to_owned(), bars: vec![bar("x", 1.0), bar("y", 2.0)] }));
        assert!(document.formats().contains(&DocumentFormat::Svg));
        let picture = document.write(DocumentFormat::Svg);
        assert!(picture.starts_with("<svg") && picture.contains("<style>"), "{picture}");
    }
}
