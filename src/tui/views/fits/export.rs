//! The table of models and targets as a document.

use atlas_report::document::Document;
use atlas_report::study::{self, Block};
use atlas_report::table::Align;

use super::{Cell, filtered_rows, speed};
use crate::tui::app::App;

/// Returns the rows that match the filter, or `None` before the table is computed.
#[must_use]
pub fn document(app: &App) -> Option<Document> {
    let grid = app.fits.table.answer()?;
    let metric = speed(app.answer.mode());
    let mut head = vec![("model".to_owned(), Align::Left), ("parameters".to_owned(), Align::Right)];
    head.extend(grid.targets.iter().map(|name| (name.to_string(), Align::Right)));
    let rows = filtered_rows(app).into_iter().map(|row| {
        let cells = row.cells.iter().map(|cell| match cell {
            Cell::Fits { speed: Some(speed), .. } => study::Cell::number(metric.brief(*speed), *speed),
            Cell::Fits { speed: None, .. } => study::Cell::text("–"),
            Cell::Short(bytes) => study::Cell::text(format!("{:.0} GB short", bytes / atlas_core::units::BYTES_PER_GB)),
            Cell::Cannot(why) => study::Cell::text(why.clone()),
        });
        let size = study::Cell::number(format!("{:.1} B", row.parameters * 1e-9), row.parameters);
        std::iter::once(study::Cell::text(row.model.to_string())).chain([size]).chain(cells).collect()
    });
    let table = study::Grid { head, rows: rows.collect() };
    let title = format!("What runs, {}: {} with every model", metric.label, app.now.setup.workload);
    let blocks = vec![Block::Heading(1, title.clone()), Block::Table(table.clone())];
    Some(Document { title, blocks, rows: table })
}
