//! The schedule as a document.

use crate::tui::app::App;
use crate::tui::dialogs::export::parts::{about, empty, entry, titled};
use atlas_report::document::Document;
use atlas_report::study::{self, Block, Study};

/// The phases of the workload; `None` if it has none.
pub(super) fn document(app: &App, made: &str) -> Option<Document> {
    let study = Study { entries: vec![entry(&app.answer, &app.now.setup)?], ..empty(app, made) };
    let mut blocks = Vec::new();
    study::content::schedule(&study, &mut blocks);
    let table = blocks.iter().find_map(|block| match block {
        Block::Table(grid) => Some(grid.clone()),
        _ => None,
    });
    Some(titled(format!("Schedule of {}", about(&app.now.setup)), blocks, table?))
}
