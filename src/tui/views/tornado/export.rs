//! The sensitivity as a document.

use super::current_tornado;
use crate::tui::app::App;
use crate::tui::dialogs::export::parts::{about, titled};
use atlas_report::document::Document;
use atlas_report::tornado::blocks;

/// The effect of every knob on the metric; `None` before it is computed.
pub(in crate::tui) fn document(app: &App) -> Option<Document> {
    let about = &about(&app.now.setup);
    let tornado = current_tornado(app)?;
    let (blocks, rows) = blocks(tornado);
    Some(titled(format!("Sensitivity of {}: {about}", tornado.metric.label), blocks, rows))
}
