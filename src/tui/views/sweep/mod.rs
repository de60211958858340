//! The sweep: values of the selected metric of the results over one or two knobs around their current values, for the
//! selected and marked targets. It is recomputed after every edit.

pub(in crate::tui) mod export;
pub(in crate::tui) mod heat;
pub mod state;
pub mod view;

pub use state::{Curves, Question, SweepSettings};

use std::sync::Arc;

use super::{Spec, Tab, keys, points};
use crate::demo::Setup;
use crate::tui::app::{Answer, App, View};
use crate::tui::input::keymap::{Action, Keys, Place, bind};
use crate::tui::input::movement::Movement;
use crate::tui::message::Effect;
use crate::tui::update::applying;
use crate::tui::update::status::fail;
use crate::tui::work::job::{Job, Product};
use atlas_plan::estimate::Metric;
use atlas_plan::knob::{KNOBS, Knob};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::optimize::{Candidate, freed};
use atlas_plan::search::sweep::Sweep;
use atlas_plan::search::{Axis, Gauge, Space, axis_around};

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Sweep",
    tab: Tab { place: 3, name: "Sweep", short: "Sweep" },
    synonyms: "sweep plot chart curve graph",
    opening: Some(bind(&["4"], Action::Show(View::Sweep), "sweep: a metric over one or two knobs", Some("sweep"))),
    keys_place: Place::BeforeEsc,
    keys: &[
        Keys::Own(&points::KEYS),
        Keys::Own(&[
            bind(&["Tab"], Action::Across(1), "sweep the next knob (/ to search)", Some("knob")),
            bind(&["Shift-Tab"], Action::Across(-1), "sweep the previous knob", None),
            bind(&["n"], Action::Against(1), "add a second knob, or switch to the next one", Some("2nd knob")),
            bind(&["N"], Action::Against(-1), "previous second knob, or none", None),
        ]),
        Keys::Own(&keys::METRICS),
    ],
    draw: view::sweep,
    info: view::info,
    document: |app, _| export::document(app),
    follow,
    hidden: |app, effects| app.queries.sweep.forget(effects),
    stop: |app, effects| app.queries.sweep.stop(effects),
    works: |app, action| !matches!(action, Action::Accept | Action::Focus(_)) || app.queries.sweep.answer().is_some(),
    move_cursor,
    accept,
    update: |app, action, _| {
        match action {
            Action::Focus(by) => go(app, (by, 0)),
            Action::Across(by) => turn_across(app, by),
            Action::Against(by) => turn_against(app, by),
            _ => return false,
        }
        true
    },
    click: view::click,
    ..Spec::DEFAULT
};

/// Applies the point under the cursor, or explains its metric.
fn accept(app: &mut App, effects: &mut Vec<Effect>) {
    let curves = app.queries.sweep.answer();
    let point = curves.and_then(|curves| Some((reading(app, curves)?.0, curves.metric)));
    let Some(point) = point else {
        fail(app, "this point does not exist: the target or its profile does not support these values");
        return forget_cursor(app);
    };
    if points::accept(app, point, effects) {
        forget_cursor(app);
    }
}

fn forget_cursor(app: &mut App) {
    app.sweep.cursor = None;
    app.sweep.curve = 0;
}

/// Moves along the sweep, or to the ends of its axis.
fn move_cursor(app: &mut App, movement: &Movement, _: usize) {
    const ALL: i32 = i32::MAX;
    let by = match movement {
        Movement::By(by) => (0, -*by),
        Movement::Page(by) => (0, -by.saturating_mul(8)),
        Movement::To(0) => (-ALL, 0),
        Movement::To(_) => (ALL, 0),
    };
    go(app, by);
}

/// Number of steps of a real number along a curve, and (`STEPS_EACH`) along each side of a heat map.
const STEPS: u32 = 32;
const STEPS_EACH: u32 = 10;

#[derive(Debug)]
struct Work {
    sweep: Sweep,
    names: Vec<Arc<str>>,
    metric: &'static Metric,
}

impl Job for Work {
    fn run(&self, gauge: &Gauge) -> Result<Product, String> {
        let grids = self.sweep.grids(self.metric, gauge).map_err(|error| error.to_string())?;
        let mut axes = self.sweep.space.axes().iter().rev().cloned();
        let across = axes.next().ok_or("no knob is swept")?;
        let curves = self.names.iter().cloned().zip(grids).collect();
        Ok(Product::Sweep(Arc::new(Curves { across, against: axes.next(), metric: self.metric, curves })))
    }
}

/// Whether a knob can be swept in the current scenario.
pub(in crate::tui) fn can_be_swept(answer: &Answer, knob: Knob) -> bool {
    let scenario = answer.scenario.as_ref();
    scenario.is_some_and(|scenario| axis_around(knob, scenario, answer.fabrics(), 2).is_some())
}

/// The knobs that can be swept, in the registry's order.
pub(in crate::tui) fn knobs(answer: &Answer) -> Vec<Knob> {
    KNOBS.iter().map(|spec| spec.knob).filter(|knob| can_be_swept(answer, *knob)).collect()
}

/// The knob of the horizontal axis: the chosen one, else the selected one. The engine, the first knob,
/// is swept only if it is chosen.
#[must_use]
pub fn across(app: &App) -> Option<Knob> {
    let here = Some(app.selected_knob()).filter(|knob| *knob != Knob::Engine);
    let wanted = [app.sweep.across, here, Some(Knob::Tp), Some(Knob::Microbatch)];
    wanted
        .into_iter()
        .flatten()
        .find(|knob| can_be_swept(&app.answer, *knob))
        .or_else(|| knobs(&app.answer).first().copied())
}

/// The knob of the vertical axis.
#[must_use]
pub fn against(app: &App) -> Option<Knob> {
    app.sweep.against.filter(|knob| Some(*knob) != across(app) && can_be_swept(&app.answer, *knob))
}

/// The scenario at which the sweep starts. If the layout is swept, replicas are derived from it, as in every search.
fn start(scenario: &Scenario, swept: &[Knob], parts: &Parts) -> Scenario {
    let layout = |knob: &Knob| matches!(knob, Knob::Tp | Knob::Pp | Knob::Cp | Knob::NumNodes);
    if swept.iter().any(layout) { freed(scenario, &|knob| swept.contains(&knob), parts) } else { scenario.clone() }
}

/// Starts the query if the view is shown.
fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let (Some(across), Some(metric)) = (across(app), app.selected_metric()) else {
        return app.queries.sweep.forget(effects);
    };
    let targets = app.contenders();
    let against = against(app);
    let question = Question { generation: app.generation, across, against, metric, targets };
    let (mut query, mut serial) = (std::mem::take(&mut app.queries.sweep), app.queries.serial);
    query.ask(question, &mut serial, effects, |question| order(app, question, metric));
    (app.queries.sweep, app.queries.serial) = (query, serial);
}

/// Builds the job of a sweep. It is computed analytically even if the engine simulates.
pub(in crate::tui) fn order(app: &App, question: &Question, metric: &'static Metric) -> Result<Arc<dyn Job>, String> {
    let nothing = || "no scenario to sweep".to_owned();
    let here = app.answer.scenario.as_ref().ok_or_else(nothing)?;
    let swept: Vec<Knob> = question.against.into_iter().chain([question.across]).collect();
    let steps = if question.against.is_some() { STEPS_EACH } else { STEPS };
    let axes: Vec<Axis> =
        swept.iter().filter_map(|knob| axis_around(*knob, here, app.answer.fabrics(), steps)).collect();
    let mut contenders = Vec::new();
    let mut names = Vec::new();
    for name in &question.targets {
        // Marked targets that cannot run this workload have no curve.
        let Some((parts, scenario)) = applying::resolve(&app.library, name, &app.now.setup) else { continue };
        let scenario = start(&scenario, &swept, &parts);
        contenders.push((parts, scenario));
        names.push(Arc::clone(name));
    }
    if contenders.is_empty() {
        return Err(app.answer.outcome.as_ref().err().cloned().unwrap_or_else(nothing));
    }
    let space = Space::of(axes).map_err(|error| error.to_string())?;
    Ok(Arc::new(Work { sweep: Sweep { contenders, space, conditions: Vec::new() }, names, metric }))
}

/// Limits the cursor to the curves that have arrived.
pub(in crate::tui) fn clamp_cursor(app: &mut App) {
    let Some(curves) = app.queries.sweep.answer() else { return };
    let last = (curves.across.values.len().saturating_sub(1), curves.rows().saturating_sub(1));
    let curve = app.sweep.curve.min(curves.curves.len().saturating_sub(1));
    app.sweep.curve = curve;
    app.sweep.cursor = app.sweep.cursor.map(|(column, row)| (column.min(last.0), row.min(last.1)));
}

/// Column and row of the point under the cursor, initially of the scenario.
#[must_use]
pub fn cursor(settings: &SweepSettings, curves: &Curves) -> (usize, usize) {
    let here = curves.curves.first().and_then(|(_, grid)| grid.here).map(|point| curves.place(point));
    settings.cursor.or(here).unwrap_or_default()
}

/// Moves the cursor.
fn go(app: &mut App, (across, up): (i32, i32)) {
    let Some(curves) = app.queries.sweep.answer().cloned() else { return };
    let (column, row) = cursor(&app.sweep, &curves);
    let to = |from: usize, by: i32, count: usize| from.saturating_add_signed(by as isize).min(count.saturating_sub(1));
    if curves.against.is_none() {
        // Curves are ordered as in the legend.
        app.sweep.curve = to(app.sweep.curve, -up, curves.curves.len());
    }
    app.sweep.cursor = Some((to(column, across, curves.across.values.len()), to(row, up, curves.rows())));
}

/// The setup of the point under the cursor, and the candidate with its full result. `None` if the point is not
/// possible.
#[must_use]
pub fn reading(app: &App, curves: &Curves) -> Option<(Setup, Candidate)> {
    let curve = if curves.against.is_some() { 0 } else { app.sweep.curve };
    let (target, _) = curves.curves.get(curve)?;
    let (parts, from) = applying::resolve(&app.library, target, &app.now.setup)?;
    let (column, row) = cursor(&app.sweep, curves);
    let axes = [(Some(&curves.across), column), (curves.against.as_ref(), row)];
    let axes: Vec<(&Axis, usize)> = axes.into_iter().filter_map(|(axis, at)| Some((axis?, at))).collect();
    let swept: Vec<Knob> = axes.iter().map(|(axis, _)| axis.knob).collect();
    let mut scenario = start(&from, &swept, &parts);
    for (axis, at) in axes.into_iter().rev() {
        scenario.set(axis.knob, axis.values.get(at)?, &parts).ok()?;
    }
    scenario.check(&parts).ok()?;
    let setup = applying::setup(&app.now.setup, &from, &scenario, &parts);
    Some((setup, Candidate::of(scenario, &from)))
}

/// Selects the next or previous knob of the horizontal axis.
fn turn_across(app: &mut App, by: i32) {
    let all = knobs(&app.answer);
    let at = across(app).and_then(|knob| all.iter().position(|known| *known == knob)).unwrap_or_default();
    let to = (at as i64 + i64::from(by)).rem_euclid(all.len().max(1) as i64);
    choose(app, all.get(to as usize).copied(), app.sweep.against);
}

/// Knobs for the vertical axis. Engines are excluded, because they are not compared on one color scale.
#[must_use]
pub fn seconds(app: &App) -> Vec<Knob> {
    let own = across(app);
    let mut all = knobs(&app.answer);
    all.retain(|knob| Some(*knob) != own && *knob != Knob::Engine && own != Some(Knob::Engine));
    all
}

/// Selects the next or previous knob of the vertical axis, with none between the last and the first.
fn turn_against(app: &mut App, by: i32) {
    let own = across(app);
    let all: Vec<Option<Knob>> = std::iter::once(None).chain(seconds(app).into_iter().map(Some)).collect();
    let now = against(app);
    let at = all.iter().position(|known| *known == now).unwrap_or_default();
    let to = (at as i64 + i64::from(by)).rem_euclid(all.len() as i64);
    choose(app, own, all.get(to as usize).copied().flatten());
}

/// Sweeps over these knobs.
pub(in crate::tui) fn choose(app: &mut App, across: Option<Knob>, against: Option<Knob>) {
    app.sweep =
        SweepSettings { across, against: against.filter(|knob| Some(*knob) != across), ..SweepSettings::default() };
}
