//! The releases as a document.

use atlas_report::document::Document;
use atlas_report::study::{Block, Cell, Grid};
use atlas_report::table::Align;

use super::{Difference, listed};
use crate::tui::app::App;
use crate::tui::views::alternatives;

/// Returns every release with its metrics and the traits that it changed; `None` if no release is known.
#[must_use]
pub fn document(app: &App) -> Option<Document> {
    let all = listed(app).filter(|all| !all.rows.is_empty())?;
    let columns: Vec<_> = alternatives::metrics(app.answer.mode()).collect();
    let mut head: Vec<(String, Align)> =
        ["release", "date"].into_iter().map(|name| (name.to_owned(), Align::Left)).collect();
    head.extend(columns.iter().map(|metric| (metric.label.to_owned(), Align::Right)));
    head.extend(["changed", "note"].map(|name| (name.to_owned(), Align::Left)));
    let rows = all.rows.iter().enumerate().map(|(index, row)| {
        let changed = |change: &Difference| format!("{} {} → {}", change.name, change.before, change.after);
        let changed: Vec<String> = row.brought.iter().map(changed).collect();
        let current = if all.current == Some(index) { "current" } else { "" };
        let note = row.refused.clone().unwrap_or_else(|| current.to_owned());
        let first = [row.release.clone(), row.date.clone()].into_iter().map(Cell::text);
        first
            .chain(alternatives::cells(&columns, &row.values))
            .chain([changed.join("; "), note].into_iter().map(Cell::text))
            .collect()
    });
    let table = Grid { head, rows: rows.collect() };
    let setup = &app.now.setup;
    let title = format!("Releases of {}: {} on {}", all.family, setup.workload, setup.target);
    let blocks = vec![Block::Heading(1, title.clone()), Block::Table(table.clone())];
    Some(Document { title, blocks, rows: table })
}
