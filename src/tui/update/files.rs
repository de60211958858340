//! Actions that save a record, and open an entry in the editor.

use std::path::PathBuf;
use std::sync::Arc;

use super::{fail, note};
use crate::tui::app::{App, Pane, View};
use crate::tui::message::{Effect, RecordToSave};
use atlas_plan::record::Record;

pub(super) fn save(app: &mut App, effects: &mut Vec<Effect>) {
    let (Some(workload), Some(scenario), Ok(estimate)) =
        (&app.answer.workload, &app.answer.scenario, &app.answer.outcome)
    else {
        return fail(app, "nothing to save: the scenario has no estimate");
    };
    let setup = &app.now.setup;
    let track = workload.track.as_deref().unwrap_or("parity");
    let record = Record::new(&setup.target, workload, track, "pre-opt", scenario, &setup.overrides, estimate);
    // A track that is not stated and the seed are left out of the name.
    let long = record.file_name();
    let short = long.strip_suffix(&format!("_{track}_{}.json", record.seed)).map(|name| format!("{name}.json"));
    let name = short.filter(|_| workload.track.is_none()).unwrap_or(long);
    match serde_json::to_string_pretty(&record) {
        Ok(json) => {
            effects.push(Effect::Save(Box::new(RecordToSave { dir: app.out.clone(), name, json: json + "\n" })))
        }
        Err(error) => fail(app, format!("cannot write the record: {error}")),
    }
}

pub(in crate::tui) fn open_editor(app: &mut App, effects: &mut Vec<Effect>) {
    // The previous key press has offered a built-in file: open a copy of it, whatever is selected.
    if let Some((path, line)) = app.offer.take() {
        return effects.push(Effect::CopyAndEdit { path, line });
    }
    let origin = match app.pane {
        _ if app.view == View::Problems => {
            let shown = app.problems_shown();
            shown.get(app.view_row).map(|problem| (Arc::clone(&problem.file), problem.at.line))
        }
        Pane::Targets => {
            app.answer.target.as_ref().map(|target| (Arc::clone(&target.origin.file), target.origin.at.line))
        }
        Pane::Workloads | Pane::Knobs => {
            app.answer.workload.as_ref().map(|workload| (Arc::clone(&workload.origin.file), workload.origin.at.line))
        }
        Pane::Results => {
            app.answer.profile.as_ref().map(|profile| (Arc::clone(&profile.origin.file), profile.origin.at.line))
        }
    };
    match origin {
        None => fail(app, "no file to open for this selection"),
        Some((file, line)) if file.starts_with(atlas_document::Origin::BUILT_IN) => {
            let path = PathBuf::from(file.trim_start_matches(atlas_document::Origin::BUILT_IN));
            let text = format!("this entry is built in; press e again to copy it to {} and open it", path.display());
            app.offer = Some((path, line.max(1)));
            note(app, text, effects);
        }
        Some((file, line)) => effects.push(Effect::Edit { path: PathBuf::from(&*file), line: line.max(1) }),
    }
}
