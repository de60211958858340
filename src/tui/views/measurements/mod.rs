//! Measured rows with their predictions, and a proposed calibration until the user accepts or discards it.

pub(in crate::tui) mod export;
pub mod state;
pub mod view;

pub use state::{Measured, Proposal};

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Spec, Tab};
use crate::tui::app::{App, MeasuredSubject, View};
use crate::tui::input::keymap::{Action, Keys, bind};
use crate::tui::message::Effect;
use crate::tui::update::showing::explain;
use crate::tui::update::status::{fail, note};
use atlas_config::profile::stem_for;
use atlas_core::units;
use atlas_evidence::calibrate;
use atlas_evidence::calibrate::judge::{EvaluatedMetric, current_scenario, evaluate_current};
use atlas_evidence::calibrate::predict::PredictedMetric;
use atlas_evidence::calibrate::{RowPredictor, Start};
use atlas_plan::engine;

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Measurements",
    tab: Tab { place: 15, name: "Measured", short: "Meas" },
    synonyms: "measured validation accuracy benchmark",
    opening: Some(bind(
        &["vm"],
        Action::Show(View::Measurements),
        "measured runs against predictions",
        Some("measured"),
    )),
    keys: &[Keys::Own(&[
        bind(&["f"], Action::Calibrate, "calibrate the target from these rows (writes nothing yet)", Some("calibrate")),
        bind(
            &["Enter"],
            Action::Accept,
            "explain the prediction; for a proposed calibration, write the profile",
            Some("open"),
        ),
        bind(&["Backspace"], Action::Discard, "discard the proposed calibration", Some("discard")),
    ])],
    is_empty: |app| app.measured.is_empty(),
    rows: view::rows,
    lines_of: view::lines_of,
    draw: view::measurements,
    info: view::info,
    document: |app, _| Some(export::document(app)),
    copied_table: Some(|app| Some(("the table of measurements".to_owned(), view::text(app)))),
    works: |app, action| match action {
        Action::Accept | Action::Calibrate => !app.measured.rows.is_empty(),
        Action::Discard => app.measured.proposal.is_some(),
        _ => true,
    },
    accept: |app, effects| accept(app, view::prediction_under_cursor(app).cloned(), effects),
    update,
    ..Spec::DEFAULT
};

/// Performs an action of the view.
fn update(app: &mut App, action: Action, effects: &mut Vec<Effect>) -> bool {
    match action {
        Action::Calibrate => propose(app, effects),
        Action::Discard => discard(app, effects),
        // Esc stops a running simulation first.
        Action::Escape if app.measured.proposal.is_some() && app.queries.simulation.progress().is_none() => {
            app.measured.proposal = None;
        }
        _ => return false,
    }
    true
}

/// Maximum number of rows that are evaluated. More would delay the response to a key press too long.
const MAX_ROWS: usize = 2_000;

/// Measured rows with their predictions. If there is a proposal, they include the predictions of the proposed
/// calibration.
#[must_use]
pub fn evaluated_rows(app: &App) -> &[EvaluatedMetric] {
    if let Some(proposal) = &app.measured.proposal {
        return &proposal.outcome.judged;
    }
    app.measured.evaluated.get_or_init(|| {
        let Some(target) = &app.answer.target else { return Vec::new() };
        let workload = app.answer.workload.as_ref();
        let bench = RowPredictor::new(&app.library, target, workload).complete_rows_first();
        let rows = app.measured.rows.get(..MAX_ROWS).unwrap_or(&app.measured.rows);
        evaluate_current(&bench, rows, &Start::of(&app.library, target))
    })
}

/// Number of rows without a prediction, and the reason for the first of them.
#[must_use]
pub fn rows_without_prediction(app: &App) -> Option<(usize, String)> {
    let target = app.answer.target.as_ref()?;
    let answered: HashSet<&str> = evaluated_rows(app).iter().map(|one| one.source.as_str()).collect();
    let left = || app.measured.rows.iter().filter(|row| !answered.contains(row.source.as_str()));
    let first = left().next()?;
    let bench = RowPredictor::new(&app.library, target, app.answer.workload.as_ref()).complete_rows_first();
    let foreign = bench.other_accelerator(first).map(|device| format!("measured on {device}"));
    let reason = foreign.or_else(|| bench.analytical(first).err());
    let reason = reason.unwrap_or_else(|| "it contains no metric that an engine predicts".to_owned());
    Some((left().count(), format!("{}: {reason}", first.short())))
}

/// Calibrates the scenario's target with all rows, and proposes the result.
fn propose(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(target) = app.answer.target.clone() else { return fail(app, "no target to calibrate") };
    if app.measured.rows.is_empty() {
        return fail(app, "no measurements to calibrate with: use --measured FILE… or put logs in measurements/");
    }
    let start = Start::of(&app.library, &target);
    let workload = app.answer.workload.clone();
    let outcome = {
        let bench = RowPredictor::new(&app.library, &target, workload.as_ref()).complete_rows_first();
        let rows = app.measured.rows.get(..MAX_ROWS).unwrap_or(&app.measured.rows);
        calibrate::calibrate(&bench, rows, &start)
    };
    if outcome.is_empty() {
        let why = outcome.refused.first().map_or_else(String::new, |(row, reason)| format!(": {row}: {reason}"));
        return fail(app, format!("no parameter of {} can be determined from these rows{why}", target.name));
    }
    // The target's own profile is replaced in place; shipped profiles and those of vendors are never changed.
    let stem = stem_for(&target.name);
    let own = app.library.profiles().find(|profile| *profile.name == *stem && !profile.origin.is_built_in());
    let path = own.map_or_else(
        || app.profiles.join(format!("{stem}.yaml")),
        |profile| PathBuf::from(profile.origin.file.as_ref()),
    );
    let text = format!("calibrated {}: Enter writes {}, Backspace discards", target.name, path.display());
    let proposal = Proposal { replaces: own.is_some(), outcome, start, vendor: target.vendor.clone(), path };
    app.measured.proposal = Some(Arc::new(proposal));
    (app.view_scroll, app.view_row) = (0, 0);
    note(app, text, effects);
}

/// Explains the prediction in `row`. Without a row, writes the proposal, or calibrates if there is none.
fn accept(app: &mut App, row: Option<EvaluatedMetric>, effects: &mut Vec<Effect>) {
    match (row, app.measured.proposal.clone()) {
        (Some(row), _) => match subject(app, &row) {
            Some(subject) => {
                app.figure = row.figure.metric();
                explain(app, effects);
                app.subject = Some(Arc::new(subject));
            }
            None => note(app, "this prediction cannot be explained", effects),
        },
        (None, Some(proposal)) => effects.push(Effect::WriteProfile(proposal)),
        (None, None) => propose(app, effects),
    }
}

/// The prediction for a row as the subject of an explanation, computed with the parameters in effect.
fn subject(app: &App, judged: &EvaluatedMetric) -> Option<MeasuredSubject> {
    let target = app.answer.target.as_ref()?;
    let row = app.measured.rows.iter().find(|row| row.source == judged.source)?;
    let bench = RowPredictor::new(&app.library, target, app.answer.workload.as_ref()).complete_rows_first();
    let scenario = current_scenario(&bench, row, judged.engine, &Start::of(&app.library, target))?;
    let parts = bench.parts(row, judged.engine)?;
    let measured = units::significant(judged.measured, 4);
    // The explained metric is a mean. The name says so if the measured value is a median.
    let median = if judged.figure == PredictedMetric::TpotMs { " (median)" } else { "" };
    let name = format!("{}, measured {measured}{median}", row.short());
    Some(MeasuredSubject { name, estimate: engine::estimate(&scenario), scenario, parts })
}

/// Discards the proposal.
fn discard(app: &mut App, effects: &mut Vec<Effect>) {
    let text = match app.measured.proposal.take() {
        Some(_) => {
            (app.view_scroll, app.view_row) = (0, 0);
            "discarded the proposed calibration"
        }
        None => "no proposed calibration to discard",
    };
    note(app, text, effects);
}
