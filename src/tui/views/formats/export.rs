//! The formats as a document.

use atlas_report::document::Document;
use atlas_report::study::{Block, Cell, Grid};
use atlas_report::table::Align;

use super::{listed, metrics};
use crate::tui::app::App;
use crate::tui::views::alternatives;

/// Returns every format with its metrics, or why it cannot run; `None` if no format is listed.
#[must_use]
pub fn document(app: &App) -> Option<Document> {
    let all = listed(app).filter(|all| !all.rows.is_empty())?;
    let metrics = metrics(app.answer.mode());
    let text = |name: &str| (name.to_owned(), Align::Left);
    let mut head = vec![text("format"), text("products")];
    head.extend(metrics.iter().map(|metric| (metric.label.to_owned(), Align::Right)));
    head.push(text("note"));
    let rows = all.rows.iter().enumerate().map(|(index, row)| {
        let current = if all.current == Some(index) { "current" } else { "" };
        let note = row.reason.as_deref().unwrap_or(current);
        let first = [&row.name, &row.products].map(|name| Cell::text(name.to_string()));
        let values = alternatives::cells(&metrics, &row.values);
        first.into_iter().chain(values).chain([Cell::text(note.to_owned())]).collect()
    });
    let table = Grid { head, rows: rows.collect() };
    let setup = &app.now.setup;
    let title = format!("Formats: {} on {}", setup.workload, setup.target);
    let blocks = vec![Block::Heading(1, title.clone()), Block::Table(table.clone())];
    Some(Document { title, blocks, rows: table })
}
