//! Contents of exported documents, by view.

use super::parts::{empty, entry, of_study, titled};
use crate::tui::app::{App, Setup, View};
use crate::tui::views;
use atlas_plan::knob::Overrides;
use atlas_report::document::Document;
use atlas_report::study::{self, Block, Cell, Entry, Grid, Study};
use atlas_report::table::Align;

/// The current view as a document; `None` if it is empty. `made` is the current time, which is passed in so that the
/// function is pure.
#[must_use]
pub fn document(app: &App, made: &str) -> Option<Document> {
    let setup = &app.now.setup;
    let about = format!("{} on {}", setup.workload, setup.target);
    match app.view {
        View::Main => report(app, made),
        View::Race => views::race::export::document(app),
        View::Compare => views::comparison::export::document(app, made),
        View::Breakdown => {
            let study = Study { entries: vec![entry(&app.answer, setup)?], ..empty(app, made) };
            let mut blocks = Vec::new();
            study::content::breakdowns(&study, &mut blocks);
            (!blocks.is_empty()).then(|| titled(format!("Where time and memory go: {about}"), blocks, parts(app)))
        }
        View::Schedule => {
            let study = Study { entries: vec![entry(&app.answer, setup)?], ..empty(app, made) };
            let mut blocks = Vec::new();
            study::content::schedule(&study, &mut blocks);
            let table = blocks.iter().find_map(|block| match block {
                Block::Table(grid) => Some(grid.clone()),
                _ => None,
            });
            Some(titled(format!("Schedule of {about}"), blocks, table?))
        }
        View::Advice => {
            let shown = app.advice_shown();
            let named: Vec<(&str, &atlas_plan::advice::Advice)> = shown.iter().map(|advice| ("", *advice)).collect();
            let table = study::advice::table(&named, false);
            let blocks = vec![Block::Table(table.clone())];
            Some(titled(format!("Advice: {about}"), blocks, table))
        }
        View::Explain => views::explain::export::document(app, &about),
        View::Problems => Some(views::problems::export::document(app)),
        View::Diff => Some(views::diff::export::document(app)),
        View::Sweep => views::sweep::export::document(app, &about),
        View::Frontier => views::frontier::export::document(app, &about),
        View::Optimum => views::optimum::export::document(app, &about),
        View::Sensitivity => views::tornado::export::document(app, &about),
        View::Timeline => views::timeline::export::document(app, &about),
        View::Measurements => Some(views::measurements::export::document(app)),
        view => (view.spec().document)(app),
    }
}

/// The full report of the scenario, beside the reference of its deltas.
fn report(app: &App, made: &str) -> Option<Document> {
    let setup = &app.now.setup;
    let mut study = Study { entries: vec![entry(&app.answer, setup)?], ..empty(app, made) };
    let files = Setup { overrides: Overrides::new(), ..setup.clone() };
    let reference = app.reference().unwrap_or(&files);
    if reference != setup && reference.workload == setup.workload {
        let name = if app.reference().is_some() { "baseline" } else { "saved values" };
        let other = entry(&app.baseline, reference);
        study.entries.extend(other.map(|other| Entry { name: format!("{} ({name})", reference.target), ..other }));
    }
    Some(of_study(&study))
}

/// The parts of the time and of the memory, in seconds and bytes.
fn parts(app: &App) -> Grid {
    let head = ["of", "part", "value", "unit"].into_iter().map(|name| (name.to_owned(), Align::Left)).collect();
    let mut rows = Vec::new();
    if let Some(detail) = app.answer.detail() {
        let times = detail.time.parts().map(|part| ("time", part, "s"));
        let bytes = detail.memory.parts.parts().map(|part| ("memory", part, "B"));
        for (of, (part, value), unit) in times.chain(bytes) {
            let value = Cell::figure(value.to_string(), value);
            rows.push(vec![Cell::text(of), Cell::text(part), value, Cell::text(unit)]);
        }
    }
    Grid { head, rows }
}
