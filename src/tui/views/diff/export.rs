//! The differences as a document.

use super::{Row, rows_of};
use crate::tui::app::App;
use crate::tui::dialogs::export::parts::titled;
use crate::tui::views::results::change_text;
use atlas_report::document::Document;
use atlas_report::study::{Block, Cell, Grid};
use atlas_report::table::Align;

/// The differences between the scenario and the one it is compared with.
pub(in crate::tui) fn document(app: &App) -> Document {
    let (label, all) = rows_of(app);
    let here = app.tab_label(app.tabs.current());
    let head = [("what", Align::Left), (&label, Align::Right), (&here, Align::Right), ("change", Align::Right)];
    let head = head.into_iter().map(|(name, align)| (name.to_owned(), align)).collect();
    let mut rows = Vec::new();
    let mut remarks = Vec::new();
    for row in &all {
        match row {
            Row::Heading(_) => {}
            Row::Text(_, text) => remarks.push(text.clone()),
            Row::Words(what, before, after) => {
                rows.push(vec![Cell::text(what), Cell::text(before), Cell::text(after), Cell::default()]);
            }
            Row::Metric(metric, before, after) => {
                let cell = |value: &Option<f64>| {
                    value.map_or_else(|| Cell::text("–"), |value| Cell::number(metric.show(value), value))
                };
                let change = match (before, after) {
                    (Some(before), Some(after)) => change_text(&app.glyphs, metric, *before, *after),
                    _ => String::new(),
                };
                rows.push(vec![Cell::text(metric.label), cell(before), cell(after), Cell::text(change)]);
            }
        }
    }
    let rows = Grid { head, rows };
    let mut blocks = vec![Block::Text(format!("{here} compared with {label}: differences only."))];
    if !remarks.is_empty() {
        blocks.push(Block::List(remarks));
    }
    if !rows.rows.is_empty() {
        blocks.push(Block::Table(rows.clone()));
    }
    titled(format!("{here} compared with {label}"), blocks, rows)
}
