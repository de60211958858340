//! The optimizer: a goal and constraints, a search that runs in the background, and its results. The
//! results belong to the scenario that the search began with; an edit stops the search.

pub(in crate::tui) mod candidates;
pub(in crate::tui) mod export;
pub mod state;
pub mod view;

pub use state::{OptimizerForm, Question, SearchResult};

use std::sync::Arc;

use super::{Spec, Tab};
use crate::demo::Setup;
use crate::tui::app::{Answer, App, View};
use crate::tui::input::keymap::{self, Action, Keys, Place, bind};
use crate::tui::message::Effect;
use crate::tui::update::applying;
use crate::tui::update::showing::explain_metric;
use crate::tui::update::status::{fail, note};
use crate::tui::widgets::line::Line;
use crate::tui::work::job::{Job, Product};
use atlas_config::Mode;
use atlas_plan::engine::analytical_scenario;
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::optimize::{Candidate, Problem, default_conditions, freed};
use atlas_plan::search::{Condition, Gauge, optimize};
use atlas_report::optimum::defaults;

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Optimize",
    tab: Tab { place: 5, name: "Optimize", short: "Opt" },
    synonyms: "optimize optimise search best",
    opening: Some(bind(
        &["6"],
        Action::Show(View::Optimum),
        "optimize: find the best knobs for this target",
        Some("optimize"),
    )),
    keys_place: Place::BeforeEsc,
    keys: &[
        Keys::In(
            &[keymap::Mode::Bounding],
            &[
                bind(&["Enter", "Tab"], Action::Accept, "set the bound; leave it empty for no bound", Some("set")),
                bind(&["Esc"], Action::Escape, "keep the previous bound", Some("cancel")),
            ],
        ),
        Keys::Own(&[
            bind(&["Enter"], Action::Accept, "edit bound, search, or apply candidate", Some("apply")),
            bind(&["→", "Space"], Action::Step(1), "next objective", Some("goal")),
            bind(&["←"], Action::Step(-1), "previous objective", None),
            bind(&["Backspace", "Delete"], Action::Reset, "remove the bound", Some("no bound")),
            bind(&["R"], Action::Search, "search", Some("search")),
        ]),
    ],
    rows: |app| rows(app).len(),
    draw: view::optimum,
    info: view::info,
    document: |app, _| export::document(app),
    statements: export::statements,
    opened,
    follow: stop_if_outdated,
    hidden: stop_if_outdated,
    stop: |app, effects| app.queries.optimum.stop(effects),
    works: |app, action| match action {
        Action::Step(_) => row_under_cursor(app) == Row::Objective,
        Action::Reset => matches!(row_under_cursor(app), Row::Bound(..)),
        _ => true,
    },
    hint: |app, row| match (row.action, row_under_cursor(app)) {
        (Action::Accept, Row::Objective) => Some("next goal"),
        (Action::Accept, Row::Bound(..)) => Some("type bound"),
        (Action::Accept, Row::Idle) => Some("change"),
        (Action::Accept, Row::Search) => Some("search"),
        (Action::Accept, Row::Candidate(_)) => Some("apply"),
        _ => row.hint,
    },
    accept,
    update,
    click: |app, (column, y)| {
        let row = view::row_at(app, column, y)?;
        (std::mem::replace(&mut app.view_row, row) == row).then_some(Action::Accept)
    },
    ..Spec::DEFAULT
};

/// Performs an action of the view.
fn update(app: &mut App, action: Action, effects: &mut Vec<Effect>) -> bool {
    match action {
        Action::Step(by) => step(app, by),
        Action::Reset => clear(app),
        Action::Search => search(app, effects),
        _ => return false,
    }
    true
}

/// Returns the objective if the candidate is the current scenario.
fn current_metric(app: &App, candidate: usize) -> Option<&'static Metric> {
    let (setup, _) = current_result(app)?.candidates.get(candidate)?;
    (*setup == app.now.setup).then_some(app.queries.optimum.question()?.objective)
}

/// Names of objectives and their metrics. The first that applies is the default.
const OBJECTIVES: [(&str, &Metric); 7] = [
    ("highest throughput", MetricId::TokensPerSec.metric()),
    ("lowest cost per token", MetricId::DollarPer1mTokens.metric()),
    ("lowest latency", MetricId::P99Ms.metric()),
    ("shortest step time", MetricId::StepTimeMs.metric()),
    ("lowest energy per token", MetricId::JoulesPerToken.metric()),
    ("shortest time to train", MetricId::TimeToTrainH.metric()),
    ("fewest accelerators", MetricId::Accelerators.metric()),
];

/// Metrics that can be bounded, and whether from below.
const BOUNDS: [(&Metric, bool); 10] = [
    (MetricId::TtftMs.metric(), false),
    (MetricId::TtftP99Ms.metric(), false),
    (MetricId::TpotMs.metric(), false),
    (MetricId::ItlP99Ms.metric(), false),
    (MetricId::P99Ms.metric(), false),
    (MetricId::TimeToTrainH.metric(), false),
    (MetricId::DollarPer1mTokens.metric(), false),
    (MetricId::UsdPerHour.metric(), false),
    (MetricId::PowerW.metric(), false),
    (MetricId::Headroom.metric(), true),
];

#[derive(Debug)]
struct Work {
    before: Setup,
    from: Scenario,
    parts: Parts,
    question: Question,
}

impl Job for Work {
    fn run(&self, gauge: &Gauge) -> Result<Product, String> {
        let start = freed(&self.from, &|_| false, &self.parts);
        let problem = problem(&start, &self.parts, &self.question);
        let optimum = optimize(&problem, gauge);
        let best = optimum.best.iter().chain(&optimum.runners_up);
        let candidates = best.map(|candidate| {
            let setup = applying::setup(&self.before, &self.from, &candidate.scenario, &self.parts);
            (setup, Candidate::of(candidate.scenario.clone(), &self.from))
        });
        // The scenario itself is shown above the candidates as their reference, so candidates without changes are
        // dropped, except the best.
        let differs = |(nth, (_, candidate)): &(usize, (Setup, Candidate))| *nth == 0 || !candidate.changes.is_empty();
        let candidates = candidates.enumerate().filter(differs).map(|(_, candidate)| candidate).collect();
        let warnings = optimum.warnings(&problem);
        let defaults = defaults(&problem, &optimum);
        Ok(Product::Optimum(Arc::new(SearchResult {
            candidates,
            warnings,
            defaults,
            optimum,
            of: self.before.clone(),
        })))
    }
}

/// The search problem of a question.
pub(in crate::tui) fn problem<'p>(start: &'p Scenario, parts: &'p Parts, question: &Question) -> Problem<'p> {
    let mut problem = Problem::of(start, parts, question.objective);
    problem.conditions.clone_from(&question.conditions);
    problem.idle |= question.idle;
    problem.with_default_conditions(&question.without)
}

/// A row of the form or of the results.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row {
    /// The objective.
    Objective,
    /// A bound on a metric, and whether it is a lower bound.
    Bound(&'static Metric, bool),
    /// Whether accelerators may stay idle.
    Idle,
    /// Starts the search.
    Search,
    /// A candidate that was found, by rank from the best.
    Candidate(usize),
}

/// Objectives that apply to the current scenario.
#[must_use]
pub fn objectives(answer: &Answer) -> Vec<(&'static str, &'static Metric)> {
    let Some(scenario) = &answer.scenario else { return Vec::new() };
    let known = OBJECTIVES.into_iter();
    known.filter(|(_, metric)| metric.applies_to(scenario)).collect()
}

/// The objective.
#[must_use]
pub fn objective(app: &App) -> Option<(&'static str, &'static Metric)> {
    let all = objectives(&app.answer);
    all.get(app.optimizer.objective).or(all.first()).copied()
}

/// The rows of the form, then those of the results.
#[must_use]
pub fn rows(app: &App) -> Vec<Row> {
    let Some(scenario) = &app.answer.scenario else { return Vec::new() };
    let known = BOUNDS.into_iter().filter(|(metric, _)| metric.applies_to(scenario));
    let bounds = known.map(|(metric, below)| Row::Bound(metric, below));
    let form = std::iter::once(Row::Objective).chain(bounds).chain([Row::Idle, Row::Search]);
    form.chain((0..current_result(app).map_or(0, |found| found.candidates.len())).map(Row::Candidate)).collect()
}

/// The bound on a metric: the user's own, else the default.
#[must_use]
pub fn bound(app: &App, metric: &Metric) -> Option<Condition> {
    if let Some(own) = app.optimizer.bounds.get(&metric.id) {
        return own.clone();
    }
    let (scenario, (_, objective)) = (app.answer.scenario.as_ref()?, objective(app)?);
    let stated: Vec<Condition> = app.optimizer.bounds.values().flatten().cloned().collect();
    let bounds = |known: &Condition| matches!(known, Condition::Metric(of, ..) if **of == *metric);
    default_conditions(scenario, objective, &stated).into_iter().find(bounds)
}

/// The row under the cursor.
#[must_use]
pub fn row_under_cursor(app: &App) -> Row {
    rows(app).get(app.view_row).copied().unwrap_or(Row::Objective)
}

/// The result of the search, if it belongs to the current target and workload.
#[must_use]
pub fn current_result(app: &App) -> Option<&SearchResult> {
    let found = app.queries.optimum.answer().map(AsRef::as_ref)?;
    let of = (&found.of.target, &found.of.workload);
    (of == (&app.now.setup.target, &app.now.setup.workload)).then_some(found)
}

/// Whether the scenario has been edited since the search.
#[must_use]
pub fn is_stale(app: &App) -> bool {
    app.queries.optimum.question().is_some_and(|question| question.generation != app.generation)
}

/// Stops a running search after an edit. Otherwise only Esc stops it.
fn stop_if_outdated(app: &mut App, effects: &mut Vec<Effect>) {
    let generation = app.generation;
    let overtaken = app.queries.optimum.current().is_some_and(|question| question.generation != generation);
    if overtaken && app.queries.optimum.stop(effects) {
        note(app, "search stopped: the scenario changed", effects);
    }
}

/// Reports an answer that arrived and moves the cursor to the best candidate.
pub(in crate::tui) fn report_answer(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(found) = app.queries.optimum.answer().cloned() else { return };
    if app.view == View::Optimum {
        let best = rows(app).iter().position(|row| *row == Row::Candidate(0));
        if let (Row::Search, Some(best)) = (row_under_cursor(app), best) {
            app.view_row = best;
        }
        return;
    }
    let best = found.candidates.first().zip(app.queries.optimum.question());
    let text = match best {
        Some(((_, best), question)) => {
            let value = best.shown(question.objective);
            format!("search finished: {} {value} (press 6 to see it)", question.objective.label)
        }
        None => "search finished: nothing meets all constraints (press 6 to see why)".to_owned(),
    };
    note(app, text, effects);
}

/// Handles Enter on the row under the cursor.
fn accept(app: &mut App, effects: &mut Vec<Effect>) {
    match row_under_cursor(app) {
        Row::Objective => step(app, 1),
        Row::Bound(metric, _) => {
            let bound = bound(app, metric).map_or_else(String::new, |bound| bound.bound_text());
            app.optimizer.typing = Some((Line::selected(bound), None));
        }
        Row::Idle => app.optimizer.idle = !app.optimizer.idle,
        Row::Search => search(app, effects),
        Row::Candidate(at) => {
            // If the scenario is already this candidate, Enter explains its metric.
            if let Some(metric) = current_metric(app, at) {
                return explain_metric(app, Some(metric), effects);
            }
            let setup = current_result(app).and_then(|found| found.candidates.get(at)).map(|(setup, _)| setup.clone());
            if let Some(setup) = setup {
                applying::apply_setup(app, setup, effects);
            }
        }
    }
}

/// Handles the arrow keys: selects the next or previous objective, or toggles a setting.
fn step(app: &mut App, by: i32) {
    match row_under_cursor(app) {
        Row::Objective => {
            let all = objectives(&app.answer);
            let now = all.iter().position(|known| Some(*known) == objective(app)).unwrap_or_default() as i64;
            let next = (now + i64::from(by)).rem_euclid(all.len().max(1) as i64);
            app.optimizer.objective = usize::try_from(next).unwrap_or_default();
        }
        Row::Idle => app.optimizer.idle = !app.optimizer.idle,
        _ => {}
    }
}

/// Removes the bound under the cursor, even a default one.
fn clear(app: &mut App) {
    if let Row::Bound(metric, _) = row_under_cursor(app) {
        app.optimizer.bounds.insert(metric.id, None);
    }
}

/// Updates the text of the bound.
pub(in crate::tui) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    if let Some((line, error)) = &mut app.optimizer.typing {
        change(line);
        *error = None;
    }
}

/// Accepts the typed bound; an empty text removes it.
pub(in crate::tui) fn accept_bound(app: &mut App) {
    let (Some((line, _)), Row::Bound(metric, below)) = (app.optimizer.typing.take(), row_under_cursor(app)) else {
        return;
    };
    let text = line.text().trim();
    if text.is_empty() {
        app.optimizer.bounds.insert(metric.id, None);
        return;
    }
    let sign = if below { ">=" } else { "<=" };
    match Condition::on(metric, &format!("{sign}{text}")) {
        Ok(condition) => {
            app.optimizer.bounds.insert(metric.id, Some(condition));
            let last = rows(app).len().saturating_sub(1);
            app.view_row = (app.view_row + 1).min(last);
        }
        Err(error) => app.optimizer.typing = Some((line, Some(error.to_string()))),
    }
}

/// Starts a search with the current bounds if the view is opened without results.
fn opened(app: &mut App, effects: &mut Vec<Effect>) {
    let searched = current_result(app).is_some() || app.queries.optimum.progress().is_some();
    if app.answer.outcome.is_ok() && !searched {
        search(app, effects);
        // The cursor stays on the form.
        app.view_row = 0;
    }
}

/// Begins the search.
fn search(app: &mut App, effects: &mut Vec<Effect>) {
    let (Ok(_), Some((_, objective))) = (&app.answer.outcome, objective(app)) else {
        return fail(app, "no scenario to start from");
    };
    let question = question(app, objective);
    let (from, parts, before) = (app.answer.scenario.clone(), app.answer.parts.clone(), app.now.setup.clone());
    let queries = &mut app.queries;
    // An explicit request restarts a stopped search.
    queries.optimum.forget(effects);
    queries.optimum.ask(question, &mut queries.serial, effects, |question| {
        let (from, parts) = from.zip(parts).ok_or("no scenario to start from")?;
        Ok(Arc::new(Work { before, from: analytical_scenario(&from), parts, question: question.clone() }))
    });
    // If the same question has been answered already, its answer is shown without a new search.
    let to = if app.queries.optimum.is_fresh() { Row::Candidate(0) } else { Row::Search };
    let place = |wanted: Row| rows(app).iter().position(|row| *row == wanted);
    app.view_row = place(to).or_else(|| place(Row::Search)).unwrap_or_default();
}

/// The question as stated by the form.
fn question(app: &App, objective: &'static Metric) -> Question {
    let own: Vec<(MetricId, Option<Condition>)> = (rows(app).into_iter())
        .filter_map(|row| match row {
            Row::Bound(metric, _) => Some((metric.id, app.optimizer.bounds.get(&metric.id)?.clone())),
            _ => None,
        })
        .collect();
    Question {
        generation: app.generation,
        objective,
        without: own.iter().filter(|(_, bound)| bound.is_none()).map(|(id, _)| *id).collect(),
        conditions: own.into_iter().filter_map(|(_, bound)| bound).collect(),
        idle: app.optimizer.idle,
    }
}

/// Size of the search space.
#[must_use]
pub fn size(app: &App) -> Option<u128> {
    let (scenario, parts, (_, metric)) = (app.answer.scenario.as_ref()?, app.answer.parts.as_ref()?, objective(app)?);
    let start = freed(scenario, &|_| false, parts);
    Some(problem(&start, parts, &question(app, metric)).space.size())
}

/// Whether the workload is serving and neither TTFT nor the P99 latency is bounded.
#[must_use]
pub fn unbounded(app: &App) -> bool {
    let serves = app.answer.scenario.as_ref().is_some_and(|scenario| scenario.mode() == Mode::Inference);
    const LATENCY_METRICS: [&Metric; 3] =
        [MetricId::TtftMs.metric(), MetricId::TtftP99Ms.metric(), MetricId::P99Ms.metric()];
    serves && LATENCY_METRICS.into_iter().all(|metric| bound(app, metric).is_none())
}
