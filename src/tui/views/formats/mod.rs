//! The formats: every number format of the weights with the metrics that the scenario would have, to show what a
//! narrower or wider one would change.
//!
//! * this file – computes the rows and handles keys
//! * `view` – drawing
//! * `export` – the formats as a document

pub mod state;

pub mod export;
#[cfg(test)]
mod tests;
pub mod view;

pub use state::{Detail, Listed, Row, State};

use std::sync::Arc;

use atlas_config::Mode;
use atlas_core::plan::{Format, Preset};
use atlas_core::units::BYTES_PER_GB;
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::Scenario;

use super::{Spec, Tab, alternatives};
use crate::tui::app::{Answer, App, View};
use crate::tui::input::keymap::{Action, Keys, bind};
use crate::tui::message::Effect;
use crate::tui::update::status::{fail, note};

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Formats",
    tab: Tab { place: 20, name: "Formats", short: "Fmt" },
    synonyms: "formats dtype fp8 int4 nvfp4 mxfp4",
    opening: Some(bind(
        &["vf"],
        Action::Show(View::Formats),
        "number formats: memory, speed and cost of each",
        Some("formats"),
    )),
    keys: &[Keys::Own(&[bind(&["Enter"], Action::Accept, "switch to this format", Some("set"))])],
    shared_keys: &[],
    rows: |app| listed(app).map_or(0, |all| all.rows.len()),
    lines_of: super::one_line,
    heading: |_| alternatives::HEADING,
    page: |_, lines| view::page(lines),
    draw: view::draw,
    info: view::info,
    document: |app, _| export::document(app),
    opened: |app, _| app.formats = State::default(),
    follow: |app, _| follow(app),
    works: |app, action| action != Action::Accept || listed(app).is_some_and(|all| !all.rows.is_empty()),
    accept: apply,
    ..Spec::DEFAULT
};

/// Returns the metrics that formats are compared by: throughput, memory per accelerator, times and cost.
#[must_use]
pub fn metrics(mode: Mode) -> Vec<&'static Metric> {
    let mut metrics: Vec<&Metric> = alternatives::metrics(mode).collect();
    metrics.insert(1, MetricId::PeakMemGb.metric());
    metrics
}

/// Returns the formats of the current scenario.
#[must_use]
pub fn listed(app: &App) -> Option<&Listed> {
    app.formats.listed.as_ref().map(|(_, listed)| listed)
}

/// Returns the format under the cursor.
#[must_use]
pub fn selected(app: &App) -> Option<&Row> {
    listed(app)?.rows.get(app.view_row)
}

/// What a format changes. Formats with equal values have equal estimates.
type Effective = ([Setting; 4], bool);

fn effective(scenario: &Scenario) -> Effective {
    let knobs = [Knob::Precision, Knob::Compute, Knob::WeightBits, Knob::ExpertPrecision];
    let phase = &scenario.base;
    let nvfp4 = match scenario.mode() {
        Mode::Training => phase.plan.nvfp4 == Some(true),
        Mode::Inference => phase.serving_defaults.nvfp4,
    };
    let is_fp4 = scenario.get(Knob::Precision) == Setting::Choice(Format::Fp4.name().into());
    (knobs.map(|knob| scenario.get(knob)), nvfp4 && is_fp4)
}

fn affects(knob: Knob, scenario: &Scenario) -> bool {
    knob.spec().affects(scenario.mode(), scenario.engine)
}

fn details(answer: &Answer) -> Vec<Detail> {
    let Some(scenario) = &answer.scenario else { return Vec::new() };
    let knobs = [Knob::Compute, Knob::WeightBits, Knob::ExpertPrecision, Knob::KvPrecision, Knob::GradientFormat];
    let own = |knob| knob != Knob::ExpertPrecision || scenario.get(knob) != scenario.get(Knob::Precision);
    let applicable = knobs.into_iter().filter(|knob| affects(*knob, scenario) && own(*knob));
    let formats = applicable.map(|knob| Detail { name: knob.spec().name, value: scenario.get(knob).to_string() });
    let memory = answer.detail().map(|detail| detail.memory.parts.parts()).into_iter().flatten();
    let memory =
        memory.map(|(part, size)| Detail { name: part.name(), value: format!("{:.1} GB", size / BYTES_PER_GB) });
    formats.chain(memory).collect()
}

/// Evaluates every format. Of names with the same effect, only one is listed.
fn list(app: &App) -> Listed {
    let scenario = app.answer.scenario.as_ref().filter(|scenario| affects(Knob::Precision, scenario));
    let Some(scenario) = scenario else { return Listed::default() };
    let metrics = metrics(scenario.mode());
    // The scales of other names of 4-bit floating point are those of `nvfp4` or `mxfp4`, which are listed instead.
    let has_scales = |name: &&&str| {
        Preset::named(name).is_some_and(|preset| preset.weights != Format::Fp4 || preset.nvfp4.is_some())
    };
    let mut rows: Vec<(Effective, f64, Row)> = Vec::new();
    for name in Format::NAMES.iter().chain(Preset::NAMES).filter(has_scales) {
        let name: Arc<str> = (*name).into();
        let answer = alternatives::answer(app, Knob::Precision, &name);
        let Some(scenario) = &answer.scenario else { continue };
        let effective = effective(scenario);
        let Setting::Number(bits) = scenario.get(Knob::WeightBits) else { continue };
        if rows.iter().any(|(known, ..)| *known == effective) {
            continue;
        }
        let verdict = answer.detail().map(|detail| detail.verdict).filter(|verdict| !verdict.fits());
        let row = Row {
            name,
            products: scenario.get(Knob::Compute).to_string().into(),
            values: metrics.iter().map(|metric| answer.value(metric)).collect(),
            refused: alternatives::refused(&answer),
            reason: answer.outcome.as_ref().err().cloned().or(verdict.map(|verdict| verdict.describe())),
            details: details(&answer),
        };
        rows.push((effective, bits, row));
    }
    rows.sort_by(|(_, first, _), (_, second, _)| second.total_cmp(first));
    let now = effective(scenario);
    Listed {
        current: rows.iter().position(|(effective, ..)| *effective == now),
        rows: rows.into_iter().map(|(.., row)| row).collect(),
        throughput: metrics.first().and_then(|metric| app.answer.value(metric)),
        details: details(&app.answer),
    }
}

/// Evaluates the formats if the scenario has changed. The cursor starts on the current format, and stays on its format.
fn follow(app: &mut App) {
    if app.formats.listed.as_ref().is_some_and(|(generation, _)| *generation == app.generation) {
        return;
    }
    let before = selected(app).map(|row| Arc::clone(&row.name));
    let all = list(app);
    let same = before.and_then(|name| all.rows.iter().position(|row| row.name == name));
    app.view_row = same.or(all.current).unwrap_or_default();
    app.formats.listed = Some((app.generation, all));
}

/// Applies the format under the cursor.
fn apply(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(row) = selected(app) else { return fail(app, "there are no formats to choose from") };
    let name = Arc::clone(&row.name);
    if listed(app).is_some_and(|all| all.current == Some(app.view_row)) {
        return note(app, format!("{name} is the current format"), effects);
    }
    alternatives::set(app, Knob::Precision, &name, effects);
}
