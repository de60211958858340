//! Contents of exported documents, by view.

mod measurements;
mod search;
mod timeline;

use crate::tui::app::{Answer, App, Setup, View};
use crate::tui::view;
use atlas_core::escape;
use atlas_plan::engine::at_once;
use atlas_plan::explain::{Term, explain};
use atlas_plan::knob::Overrides;
use atlas_report::document::Document;
use atlas_report::study;
use atlas_report::study::{Block, Cell, Entry, Grid, Study};
use atlas_report::table::Align;
use atlas_report::{explanation, tornado};

/// Depth to which an explanation is rendered, and the width of its lines.
const DERIVATION: (usize, usize) = (12, 110);

/// The current view as a document; `None` if it is empty. `made` is the current time, which is passed in so that the
/// function is pure.
#[must_use]
pub fn document(app: &App, made: &str) -> Option<Document> {
    let setup = &app.now.setup;
    let about = format!("{} on {}", setup.workload, setup.target);
    match app.view {
        View::Main | View::Help => report(app, made),
        View::Race => crate::tui::race::export::document(app),
        View::Compare => comparison(app, made),
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
        View::Explain => derivation(app, &about),
        View::Problems => Some(problems(app)),
        View::Diff => Some(difference(app)),
        View::Sweep => search::sweep(app, &about),
        View::Frontier => search::frontier(app, &about),
        View::Optimum => search::optimum(app, &about),
        View::Sensitivity => {
            let tornado = crate::tui::tornado::shown(app)?;
            let (blocks, rows) = tornado::blocks(tornado);
            Some(titled(format!("Sensitivity of {}: {about}", tornado.metric.label), blocks, rows))
        }
        View::Timeline => timeline::document(app, &about),
        View::Measurements => Some(measurements::document(app)),
        View::Panel(panel) => crate::tui::panels::document(app, panel),
    }
}

fn left(name: &str) -> (String, Align) {
    (name.to_owned(), Align::Left)
}

fn right(name: &str) -> (String, Align) {
    (name.to_owned(), Align::Right)
}

fn titled(title: String, blocks: Vec<Block>, rows: Grid) -> Document {
    let blocks = std::iter::once(Block::Heading(1, title.clone())).chain(blocks).collect();
    Document { title, blocks, rows }
}

/// The answer as shown on the screen. If its simulation is pending, the entry has the closed-form scenario.
fn entry(answer: &Answer, setup: &Setup) -> Option<Entry> {
    let (scenario, estimate) = (answer.scenario.as_ref()?, answer.outcome.as_ref().ok()?);
    estimate.finite().ok()?;
    Some(Entry {
        name: setup.target.to_string(),
        parts: answer.parts.clone()?,
        overrides: setup.overrides.clone(),
        scenario: if answer.pending { at_once(scenario) } else { scenario.clone() },
        estimate: estimate.clone(),
    })
}

/// A study without entries, with the command that reproduces it.
fn empty(app: &App, made: &str) -> Study {
    let setup = &app.now.setup;
    let mut command = "atlas report".to_owned();
    let compared: Vec<&str> = app.columns.iter().map(|(name, _)| &**name).collect();
    let targets = if app.view == View::Compare { compared } else { vec![&*setup.target] };
    for target in targets {
        command += &format!(" --target {}", escape::shell(target));
    }
    command += &format!(" --workload {}", escape::shell(&setup.workload));
    for (knob, setting) in &setup.overrides {
        command += &format!(" --set {}", escape::shell(&format!("{}={setting}", knob.name())));
    }
    Study { made: made.to_owned(), command, entries: Vec::new(), failed: Vec::new() }
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

fn comparison(app: &App, made: &str) -> Option<Document> {
    let mut study = empty(app, made);
    for (name, answer) in &app.columns {
        let setup = Setup { target: std::sync::Arc::clone(name), ..app.now.setup.clone() };
        match (entry(answer, &setup), &answer.outcome) {
            (Some(entry), _) => study.entries.push(entry),
            (None, Err(why)) => study.failed.push((name.to_string(), why.clone())),
            (None, Ok(_)) => study.failed.push((name.to_string(), "its metrics are not finite".to_owned())),
        }
    }
    (!study.entries.is_empty()).then(|| of_study(&study))
}

/// A study as a document; its rows are the metrics of each target.
fn of_study(study: &Study) -> Document {
    let names = ["target", "metric", "value", "low", "high", "unit", "fits"];
    let head = names.into_iter().map(|name| (name.to_owned(), Align::Left)).collect();
    let mut rows = Vec::new();
    for entry in &study.entries {
        for metric in atlas_plan::estimate::METRICS.iter() {
            let Some(value) = entry.value(metric) else { continue };
            let end = |end: Option<f64>| end.map_or_else(Cell::default, |end| Cell::figure(metric.show(end), end));
            let interval = metric.interval(&entry.estimate, &entry.scenario);
            rows.push(vec![
                Cell::text(entry.name.clone()),
                Cell::text(metric.name),
                Cell::figure(metric.show(value), value),
                end(interval.map(|(low, _)| low)),
                end(interval.map(|(_, high)| high)),
                Cell::text(metric.unit),
                Cell::text(entry.fits().to_string()),
            ]);
        }
    }
    let blocks = study::content::blocks(study);
    let title = match blocks.first() {
        Some(Block::Heading(_, title)) => title.clone(),
        _ => String::new(),
    };
    Document { title, blocks, rows: Grid { head, rows } }
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

fn derivation(app: &App, about: &str) -> Option<Document> {
    let answer = &app.answer;
    let metric = app.figure_here()?;
    let (scenario, parts, estimate) =
        (answer.scenario.as_ref()?, answer.parts.as_ref()?, answer.outcome.as_ref().ok()?);
    let tree = explain(scenario, parts, estimate, metric);
    let names = ["depth", "symbol", "name", "value", "unit", "equation", "origin"];
    let mut grid =
        Grid { head: names.into_iter().map(|name| (name.to_owned(), Align::Left)).collect(), rows: Vec::new() };
    terms(&tree, 0, &mut grid);
    let described = explanation::render(&tree, metric.name, DERIVATION.0, DERIVATION.1);
    Some(titled(format!("Where {} comes from: {about}", metric.label), vec![Block::Code(described)], grid))
}

fn terms(term: &Term, depth: usize, grid: &mut Grid) {
    let value = match &term.word {
        Some(word) => Cell::text(word.to_string()),
        None => Cell::figure(term.shown(), term.value),
    };
    grid.rows.push(vec![
        Cell::figure(depth.to_string(), depth as f64),
        Cell::text(term.symbol.to_string()),
        Cell::text(term.name.to_string()),
        value,
        Cell::text(term.unit),
        Cell::text(term.in_symbols().unwrap_or_default()),
        Cell::text(term.origin.as_ref().map(ToString::to_string).unwrap_or_default()),
    ]);
    for below in term.terms.iter().chain(&term.bearing) {
        terms(below, depth + 1, grid);
    }
}

fn problems(app: &App) -> Document {
    let names = ["severity", "where", "path", "message", "help"];
    let head = names.into_iter().map(|name| (name.to_owned(), Align::Left)).collect();
    let rows = app.problems.iter().filter(|problem| app.asks_for_problem(problem)).map(|problem| {
        let help = problem.help.clone().unwrap_or_default();
        [problem.severity.name().to_owned(), problem.location(), problem.path.clone(), problem.message.clone(), help]
            .map(Cell::text)
            .to_vec()
    });
    let rows = Grid { head, rows: rows.collect() };
    let blocks = if rows.rows.is_empty() {
        vec![Block::Text("No problems.".to_owned())]
    } else {
        vec![Block::Table(rows.clone())]
    };
    titled(format!("Files: {}", app.problems.summary()), blocks, rows)
}

fn difference(app: &App) -> Document {
    use view::diff::Row;
    let (label, all) = view::diff::rows_of(app);
    let here = app.tab_label(app.tabs.current());
    let head = [("what", Align::Left), (&label, Align::Right), (&here, Align::Right), ("change", Align::Right)];
    let head = head.into_iter().map(|(name, align)| (name.to_owned(), align)).collect();
    let mut rows = Vec::new();
    let mut remarks = Vec::new();
    for row in &all {
        match row {
            Row::Heading(_) => {}
            Row::Text(_, text) => remarks.push(text.clone()),
            Row::Words(what, before, after) => {
                rows.push(vec![Cell::text(what), Cell::text(before), Cell::text(after), Cell::default()]);
            }
            Row::Figure(metric, before, after) => {
                let cell = |value: &Option<f64>| {
                    value.map_or_else(|| Cell::text("–"), |value| Cell::figure(metric.show(value), value))
                };
                let change = match (before, after) {
                    (Some(before), Some(after)) => view::results::described(&app.glyphs, metric, *before, *after),
                    _ => String::new(),
                };
                rows.push(vec![Cell::text(metric.label), cell(before), cell(after), Cell::text(change)]);
            }
        }
    }
    let rows = Grid { head, rows };
    let mut blocks = vec![Block::Text(format!("{here} compared with {label}: differences only."))];
    if !remarks.is_empty() {
        blocks.push(Block::List(remarks));
    }
    if !rows.rows.is_empty() {
        blocks.push(Block::Table(rows.clone()));
    }
    titled(format!("{here} compared with {label}"), blocks, rows)
}
