//! The breakdown as a document.

use crate::tui::app::{Answer, App};
use crate::tui::dialogs::export::parts::{about, empty, entry, titled};
use atlas_report::document::Document;
use atlas_report::study::{self, Cell, Grid, Study};
use atlas_report::table::Align;

/// Time and memory of the scenario; `None` if the engine has no breakdown.
pub(super) fn document(app: &App, made: &str) -> Option<Document> {
    let study = Study { entries: vec![entry(&app.answer, &app.now.setup)?], ..empty(app, made) };
    let mut blocks = Vec::new();
    study::content::breakdowns(&study, &mut blocks);
    (!blocks.is_empty())
        .then(|| titled(format!("Where time and memory go: {}", about(&app.now.setup)), blocks, parts(&app.answer)))
}

/// The parts of the time and of the memory, in seconds and bytes.
fn parts(answer: &Answer) -> Grid {
    let head = ["of", "part", "value", "unit"].into_iter().map(|name| (name.to_owned(), Align::Left)).collect();
    let mut rows = Vec::new();
    if let Some(detail) = answer.detail() {
        let times = detail.time.parts().map(|(part, seconds)| ("time", part.name(), seconds, "s"));
        let bytes = detail.memory.parts.parts().map(|(part, bytes)| ("memory", part.name(), bytes, "B"));
        for (of, part, value, unit) in times.chain(bytes) {
            let value = Cell::number(value.to_string(), value);
            rows.push(vec![Cell::text(of), Cell::text(part), value, Cell::text(unit)]);
        }
    }
    Grid { head, rows }
}
