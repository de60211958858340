//! The race: searches for the best layout of each target under the same constraints, and ranks the targets by one
//! objective while the searches run.
//!
//! * this file – key handling and updates of the state
//! * `job` – runs the searches on a worker thread
//! * `entry` – result of a target, and the ranking of results
//! * `layout` – formats the knobs of a row
//! * `view` – drawing
//! * `export` – the ranking as a document

pub mod state;

mod entry;
pub mod export;
mod job;
pub mod layout;
mod table;
#[cfg(test)]
mod tests;
pub mod view;

pub use state::{Batch, Lane, Race, Round};

use std::sync::Arc;

pub use entry::{ChosenLayout, Entry, Outcome};

use super::{Spec, Tab};
use crate::demo::Setup;
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{Action, Keys, Mode, Place, bind};
use crate::tui::message::Effect;
use crate::tui::update::applying;
use crate::tui::update::showing::open_from_here;
use crate::tui::update::status::fail;
use crate::tui::widgets::line::Line;
use atlas_assistant::{Known, Question, parse};
use atlas_config::Target;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::search::methodology::{price_type, prices_prevent_ranking};

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Race",
    tab: Tab { place: 1, name: "Race", short: "Race" },
    synonyms: "race leaderboard best of",
    opening: Some(bind(
        &["c", "2"],
        Action::Show(View::Race),
        "race: rank targets by their best layout under the same constraints",
        Some("race"),
    )),
    is_in_footers: true,
    keys_place: Place::BeforeEsc,
    keys: &[
        Keys::Own(&[
            bind(&["Enter"], Action::Accept, "apply the layout", Some("apply")),
            bind(
                &["/", "Tab"],
                Action::Question,
                "edit the question: cheapest tpot<50ms 10% free on h100, b200",
                Some("question"),
            ),
        ]),
        Keys::In(
            &[Mode::Asking],
            &[
                bind(&["Enter"], Action::Accept, "run the question", Some("run")),
                bind(&["Esc"], Action::Escape, "keep the previous question", Some("cancel")),
            ],
        ),
    ],
    shared_keys: &[],
    rows: |app| ranked(app).len(),
    lines_of: super::one_line,
    heading: |_| view::HEADING,
    draw: view::race,
    info: view::info,
    document: |app, _| export::document(app),
    statements: |app| vec![format!("Question: {}. Type question to ask another.", question(app))],
    item: Some(|app| Some(("the layout".to_owned(), layout::layout(entry_under_cursor(app)?.pick()?)))),
    opened: |app, _| opened(app),
    follow,
    hidden,
    stop: |app, effects| app.queries.race.stop(effects),
    works: |app, action| action != Action::Accept || !ranked(app).is_empty(),
    accept: apply,
    update,
    ..Spec::DEFAULT
};

/// Performs an action of the view.
fn update(app: &mut App, action: Action, effects: &mut Vec<Effect>) -> bool {
    match action {
        Action::Question => edit(app),
        Action::Show(view) if !matches!(view, View::Race | View::Main | View::Compare) => open(app, view, effects),
        _ => return false,
    }
    true
}

/// Shows another view of the layout under the cursor; Esc returns.
fn open(app: &mut App, view: View, effects: &mut Vec<Effect>) {
    if entry_under_cursor(app).and_then(Entry::setup).is_some_and(|setup| *setup != app.now.setup) {
        apply(app, effects);
    }
    if view == View::Explain {
        app.figure = objective(app);
    }
    open_from_here(app, view, effects);
}

/// Returns the question as typed, with the default objective if it has none.
#[must_use]
pub fn question(app: &App) -> Question {
    let usual = Question::default_for(app.answer.mode());
    match &app.race.question {
        None => usual,
        Some(question) => Question { objective: question.objective.or(usual.objective), ..question.clone() },
    }
}

/// Returns the metric that targets are ranked by.
#[must_use]
pub fn objective(app: &App) -> &'static Metric {
    question(app).objective.unwrap_or(atlas_assistant::Objective::Cheapest).metric(app.answer.mode())
}

/// Returns the entries, best first. If prices prevent a common ranking, entries with prices of the same type are together.
#[must_use]
pub fn ranked(app: &App) -> Vec<&Entry> {
    let metric = objective(app);
    let mut all: Vec<&Entry> = app.race.entries.iter().collect();
    all.sort_by(|a, b| a.rank(metric).total_cmp(&b.rank(metric)).then_with(|| a.name.cmp(&b.name)));
    if is_ranked_by_price_type(app) {
        let basis = |entry: &Entry| entry.pick().and_then(|pick| pick.scenario.price_basis());
        all.sort_by_key(|entry| (basis(entry).is_none(), basis(entry)));
    }
    all.sort_by_key(|entry| entry.class());
    all
}

/// Whether the best layouts are ranked for each type of price separately, because the objective is a cost at prices of
/// different types.
#[must_use]
pub(super) fn is_ranked_by_price_type(app: &App) -> bool {
    let best = app.race.entries.iter().filter_map(|entry| match &entry.outcome {
        Outcome::Best(pick) => Some(&pick.scenario),
        _ => None,
    });
    prices_prevent_ranking(objective(app), best)
}

/// Returns the place of each row among those it is ranked with, counted from 0, and how many of those are tied for the
/// first place.
fn places(app: &App, rows: &[&Entry]) -> Vec<(usize, usize)> {
    let metric = objective(app);
    let by_price = is_ranked_by_price_type(app);
    let price = |entry: &Entry| entry.pick().filter(|_| by_price).map(|pick| price_type(&pick.scenario));
    let groups = rows.chunk_by(|a, b| a.class() == b.class() && price(a) == price(b));
    groups.flat_map(|group| (0..group.len()).map(move |at| (at, entry::tied_rows(group, metric)))).collect()
}

/// Returns the entry under the cursor.
#[must_use]
pub fn entry_under_cursor(app: &App) -> Option<&Entry> {
    ranked(app).get(app.view_row).copied()
}

/// Whether some lanes have no result yet.
#[must_use]
pub fn is_running(app: &App) -> bool {
    app.race.entries.len() < app.race.lanes.len() && app.queries.race.problem().is_none()
}

/// Starts the race when the view is opened, unless its results are those of the current scenario.
fn opened(app: &mut App) {
    let setup = &app.now.setup;
    // After a row was applied, the race it belongs to is kept.
    let own = app.race.entries.iter().any(|entry| entry.setup() == Some(setup));
    let same = app.race.base.as_ref() == Some(setup) || own;
    if !same || lanes(app).as_ref() != Ok(&app.race.lanes) {
        begin(app);
    }
}

/// Returns the lanes: the targets named in the question, otherwise the marked ones, otherwise all.
fn lanes(app: &App) -> Result<Vec<Lane>, String> {
    let question = question(app);
    if !question.hardware.is_empty() {
        let known = Known::of(&app.library);
        let targets = question.targets(&known).map_err(|trouble| trouble.to_string())?;
        return Ok(targets
            .into_iter()
            .map(|(target, nodes)| Lane { target: target.name.as_str().into(), nodes })
            .collect());
    }
    let marked = |target: &&Arc<Target>| app.now.marks.len() < 2 || app.now.marks.contains(&target.name);
    let all = app.library.targets().iter().filter(marked);
    Ok(all.map(|target| Lane { target: Arc::clone(&target.name), nodes: None }).collect())
}

/// Restarts the race.
pub(in crate::tui) fn begin(app: &mut App) {
    let lanes = lanes(app);
    let race = &mut app.race;
    race.serial += 1;
    race.base = Some(app.now.setup.clone());
    race.entries.clear();
    (race.lanes, race.problem) = match lanes {
        Ok(lanes) => (lanes, None),
        Err(trouble) => (Vec::new(), Some(trouble)),
    };
    app.view_row = 0;
}

/// Stops the searches.
fn hidden(app: &mut App, effects: &mut Vec<Effect>) {
    if app.queries.race.progress().is_some() {
        app.queries.race.forget(effects);
    }
}

/// Requests the missing results.
fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    if app.race.entries.len() >= app.race.lanes.len() {
        return;
    }
    let Some(base) = app.race.base.clone() else { return };
    let question = question(app);
    let work = job::Work {
        library: Arc::clone(&app.library),
        base,
        lanes: app.race.lanes.clone(),
        objective: objective(app),
        conditions: question.constraints,
        round: Round { serial: app.race.serial, from: app.race.entries.len() },
    };
    let queries = &mut app.queries;
    queries.race.ask(work.round, &mut queries.serial, effects, |_| Ok(Arc::new(work)));
}

/// Adds results that have arrived. The cursor stays on its target.
pub(in crate::tui) fn add_results(app: &mut App) {
    let Some(batch) = app.queries.race.answer().cloned() else { return };
    let at = entry_under_cursor(app).filter(|_| app.view_row > 0).map(|entry| entry.name.clone());
    if batch.round.serial == app.race.serial && batch.round.from == app.race.entries.len() {
        app.race.entries.extend(batch.entries.iter().cloned());
    }
    if let Some(name) = at {
        app.view_row = ranked(app).iter().position(|entry| entry.name == name).unwrap_or(app.view_row);
    }
}

/// Opens the constraint bar for typing.
fn edit(app: &mut App) {
    app.race.before.clone_from(&app.race.question);
    app.race.typing = Some((Line::new(question(app).to_string()), None));
}

/// Changes the typed line. The race restarts after every key press that leaves a valid question.
pub(in crate::tui) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    let Some((mut line, _)) = app.race.typing.take() else { return };
    change(&mut line);
    let error = match parse(line.text(), &Known::of(&app.library)) {
        Ok(question) if question.mode.is_some() || !question.model.is_empty() || !question.settings.is_empty() => {
            Some("Enter also selects the workload and sets the knobs".to_owned())
        }
        Ok(question) => {
            start_question(app, question);
            app.race.problem.clone()
        }
        Err(trouble) => Some(trouble.to_string()),
    };
    app.race.typing = Some((line, error));
}

fn start_question(app: &mut App, question: Question) {
    if app.race.question.as_ref() != Some(&question) {
        app.race.question = Some(question);
        begin(app);
    }
}

/// Accepts the typed question; an empty line stands for the default question. Returns the question for the caller to
/// carry out if it has to.
#[must_use]
pub(in crate::tui) fn accept_typed(app: &mut App) -> Option<Question> {
    let (line, _) = app.race.typing.take()?;
    if line.text().trim().is_empty() {
        app.race.question = None;
        begin(app);
        return None;
    }
    match parse(line.text(), &Known::of(&app.library)) {
        Ok(question) => Some(question),
        Err(trouble) => {
            app.race.typing = Some((line, Some(trouble.to_string())));
            None
        }
    }
}

/// Cancels typing and restores the previous question.
pub(in crate::tui) fn cancel_typed(app: &mut App) {
    app.race.typing = None;
    if app.race.question != app.race.before {
        app.race.question = app.race.before.take();
        begin(app);
    }
}

/// Applies the layout under the cursor to the scenario.
fn apply(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(entry) = entry_under_cursor(app) else { return };
    match (entry.setup().cloned(), &entry.outcome) {
        (Some(setup), _) => applying::apply_setup(app, setup, effects),
        (None, Outcome::Refused(why)) => {
            let text = format!("{}: {why}", entry.name);
            fail(app, text);
        }
        (None, _) => {}
    }
}

/// Returns the setup from which the search of a lane starts.
fn start_setup(base: &Setup, lane: &Lane) -> Setup {
    let mut setup = Setup { target: Arc::clone(&lane.target), ..base.clone() };
    if let Some(nodes) = lane.nodes {
        setup.overrides.insert(Knob::NumNodes, Setting::Number(f64::from(nodes)));
    }
    setup
}
