//! The diagnostics of the files as a document.

use crate::tui::app::App;
use crate::tui::dialogs::export::parts::titled;
use atlas_report::document::Document;
use atlas_report::study::{Block, Cell, Grid};
use atlas_report::table::Align;

/// The diagnostics that the view shows.
pub(in crate::tui) fn document(app: &App) -> Document {
    let names = ["severity", "where", "path", "message", "help"];
    let head = names.into_iter().map(|name| (name.to_owned(), Align::Left)).collect();
    let rows = app.problems.iter().filter(|problem| app.problem_matches(problem)).map(|problem| {
        let help = problem.help.clone().unwrap_or_default();
        [problem.severity.name().to_owned(), problem.location(), problem.path.clone(), problem.message.clone(), help]
            .map(Cell::text)
            .to_vec()
    });
    let rows = Grid { head, rows: rows.collect() };
    let blocks = if rows.rows.is_empty() {
        vec![Block::Text("No problems.".to_owned())]
    } else {
        vec![Block::Table(rows.clone())]
    };
    titled(format!("Files: {}", app.problems.summary()), blocks, rows)
}
