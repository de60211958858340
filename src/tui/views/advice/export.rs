//! The advice as a document.

use crate::tui::app::App;
use crate::tui::dialogs::export::parts::{about, titled};
use atlas_plan::advice::Advice;
use atlas_report::document::Document;
use atlas_report::study::{self, Block};

/// The advice that the filter shows.
pub(super) fn document(app: &App) -> Document {
    let shown = app.advice_shown();
    let named: Vec<(&str, &Advice)> = shown.iter().map(|advice| ("", *advice)).collect();
    let table = study::advice::table(&named, false);
    let blocks = vec![Block::Table(table.clone())];
    titled(format!("Advice: {}", about(&app.now.setup)), blocks, table)
}
