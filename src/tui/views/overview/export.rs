//! The report of the scenario.

use crate::tui::app::{App, Setup};
use crate::tui::dialogs::export::parts::{empty, entry, of_study};
use atlas_plan::knob::Overrides;
use atlas_report::document::Document;
use atlas_report::study::{Entry, Study};

/// The full report of the scenario and the reference of its deltas, side by side.
pub(super) fn document(app: &App, made: &str) -> Option<Document> {
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
