//! The Pareto frontier of two metrics over layouts and load, for the selected and marked targets. It is recomputed
//! after every edit.

pub(in crate::tui) mod export;
pub mod state;
pub mod view;

pub use state::{Curve, FrontierCurves, FrontierSettings, Question};

use std::sync::Arc;

use super::{Spec, Tab, points};
use crate::demo::Setup;
use crate::tui::app::{Answer, App, View};
use crate::tui::input::keymap::{Action, Keys, Place, bind};
use crate::tui::input::movement::Movement;
use crate::tui::message::Effect;
use crate::tui::update::applying;
use crate::tui::update::status::note;
use crate::tui::work::job::{Job, Product};
use atlas_core::sort;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::optimize::Candidate;
use atlas_plan::search::trade_off::Pair;
use atlas_plan::search::{Gauge, optimize};

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Frontier",
    tab: Tab { place: 4, name: "Frontier", short: "Front" },
    synonyms: "frontier pareto",
    opening: Some(bind(&["5"], Action::Show(View::Frontier), "Pareto frontier of two metrics", Some("frontier"))),
    keys_place: Place::BeforeEsc,
    keys: &[
        Keys::Own(&points::KEYS),
        Keys::Own(&[
            bind(&["."], Action::Metric(1), "next pair of metrics", Some("metrics")),
            bind(&[","], Action::Metric(-1), "previous pair of metrics", None),
        ]),
    ],
    draw: view::frontier,
    info: view::info,
    document: |app, _| export::document(app),
    follow,
    hidden: |app, effects| app.queries.frontier.forget(effects),
    stop: |app, effects| app.queries.frontier.stop(effects),
    works: |app, action| {
        !matches!(action, Action::Accept | Action::Focus(_)) || app.queries.frontier.answer().is_some()
    },
    move_cursor,
    accept,
    update: |app, action, _| {
        match action {
            Action::Focus(by) => go(app, (by, 0)),
            Action::Metric(by) => next_pair(app, by),
            _ => return false,
        }
        true
    },
    click: view::click,
    ..Spec::DEFAULT
};

/// Applies the point under the cursor, or explains its vertical metric.
fn accept(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(front) = app.queries.frontier.answer() else { return };
    let (curve, point) = cursor(app, front);
    let found = front.curves.get(curve).and_then(|curve| curve.points.get(point));
    let applied = match found.map(|(setup, _)| (setup.clone(), front.up)) {
        Some(point) => points::accept(app, point, effects),
        None => {
            note(app, "no point to apply", effects);
            true
        }
    };
    if applied {
        (app.frontier.curve, app.frontier.point) = (0, None);
    }
}

/// Moves between curves, or to the ends of one.
fn move_cursor(app: &mut App, movement: &Movement, _: usize) {
    const ALL: i32 = i32::MAX;
    let by = match movement {
        Movement::By(by) => (0, *by),
        Movement::Page(by) => (by.saturating_mul(8), 0),
        Movement::To(0) => (-ALL, 0),
        Movement::To(_) => (ALL, 0),
    };
    go(app, by);
}

#[derive(Debug)]
struct Work {
    before: Setup,
    contenders: Vec<(Parts, Scenario)>,
    pair: &'static Pair,
}

impl Job for Work {
    fn run(&self, gauge: &Gauge) -> Result<Product, String> {
        let [across, up] = self.pair.metrics();
        let mut curves = Vec::new();
        for (parts, from) in &self.contenders {
            let start = self.pair.start(from, parts);
            let problem = self.pair.problem(&start, parts);
            let placed = |candidate: Candidate| Some((candidate.value(across).zip(candidate.value(up))?, candidate));
            let mut front: Vec<_> = optimize(&problem, gauge).front.into_iter().filter_map(placed).collect();
            sort::by(&mut front, |((a, _), _), ((b, _), _)| a.total_cmp(b));
            let point = |(_, candidate): (_, Candidate)| {
                let setup = applying::setup(&self.before, from, &candidate.scenario, parts);
                // Changes are relative to the scenario, not to the start of the search.
                (setup, Candidate::of(candidate.scenario, from))
            };
            curves
                .push(Curve { target: Arc::clone(&parts.target.name), points: front.into_iter().map(point).collect() });
        }
        Ok(Product::Frontier(Arc::new(FrontierCurves { pair: self.pair, across, up, curves })))
    }
}

/// The pairs of metrics that apply to the current scenario.
#[must_use]
pub fn pairs(answer: &Answer) -> Vec<&'static Pair> {
    answer.scenario.as_ref().map(|scenario| Pair::of(scenario).collect()).unwrap_or_default()
}

/// The pair that is shown.
#[must_use]
pub fn pair(app: &App) -> Option<&'static Pair> {
    let pairs = pairs(&app.answer);
    pairs.get(app.frontier.pair).or(pairs.first()).copied()
}

/// Starts the query if the view is shown.
fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(pair) = pair(app) else {
        return app.queries.frontier.forget(effects);
    };
    let question = Question { generation: app.generation, pair, targets: app.contenders() };
    let (library, before) = (&app.library, &app.now.setup);
    let queries = &mut app.queries;
    queries.frontier.ask(question, &mut queries.serial, effects, |question| {
        let resolved = question.targets.iter().filter_map(|name| applying::resolve(library, name, before));
        Ok(Arc::new(Work { before: before.clone(), contenders: resolved.collect(), pair }))
    });
}

/// Indices of the curve and of the point under the cursor.
#[must_use]
pub fn cursor(app: &App, front: &FrontierCurves) -> (usize, usize) {
    let curve = app.frontier.curve.min(front.curves.len().saturating_sub(1));
    let points = front.curves.get(curve).map_or(&[][..], |curve| curve.points.as_slice());
    let nearest = || {
        let now = app.answer.value(front.across)?;
        let away = |(_, candidate): &(Setup, Candidate)| Some((front.place(candidate)?.0 - now).abs());
        (0..points.len()).min_by(|a, b| {
            let [a, b] = [a, b].map(|at| points.get(*at).and_then(away).unwrap_or(f64::MAX));
            a.total_cmp(&b)
        })
    };
    let point = app.frontier.point.or_else(nearest).unwrap_or_default();
    (curve, point.min(points.len().saturating_sub(1)))
}

/// Moves the cursor along a curve, or to another curve.
fn go(app: &mut App, (along, across): (i32, i32)) {
    let Some(front) = app.queries.frontier.answer().cloned() else { return };
    let (curve, point) = cursor(app, &front);
    let last = front.curves.len().saturating_sub(1);
    app.frontier.curve = curve.saturating_add_signed(across as isize).min(last);
    let to = front.curves.get(app.frontier.curve).map_or(0, |curve| curve.points.len().saturating_sub(1));
    app.frontier.point = if across == 0 { Some(point.saturating_add_signed(along as isize).min(to)) } else { None };
}

/// Selects the next or previous pair of metrics.
fn next_pair(app: &mut App, by: i32) {
    let count = pairs(&app.answer).len().max(1) as i64;
    let now = pairs(&app.answer).iter().position(|known| Some(*known) == pair(app)).unwrap_or_default() as i64;
    let next = usize::try_from((now + i64::from(by)).rem_euclid(count)).unwrap_or_default();
    app.frontier = FrontierSettings { pair: next, ..FrontierSettings::default() };
}
