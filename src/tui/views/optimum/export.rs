//! The result of a search as a document.

use super::{Row, bound, current_result, objective, problem, rows};
use crate::tui::app::App;
use crate::tui::dialogs::export::parts::{WIDTH, about, charted, left, right, titled};
use crate::tui::views::frontier::export::compromises;
use atlas_plan::scenario::Parts;
use atlas_plan::search::optimize::Candidate;
use atlas_report::chart::{Bar, Bars, drawing};
use atlas_report::document::Document;
use atlas_report::optimum::changes;
use atlas_report::study::{self, Block, Cell, Grid};

/// The question and the result of the search; `None` before there is a result.
/// The form: a line for each row, with the number that opens it.
pub(super) fn statements(app: &App) -> Vec<String> {
    let row = |(at, row): (usize, Row)| {
        let text = match row {
            Row::Objective => format!("goal: {}", objective(app).map_or("nothing", |(words, _)| words)),
            Row::Bound(metric, below) => {
                let sign = if below { "at least" } else { "at most" };
                let bound = bound(app, metric);
                bound.map_or_else(
                    || format!("{}: no bound", metric.label),
                    |bound| format!("{} {sign} {}", metric.label, bound.bound_text()),
                )
            }
            Row::Idle => format!("idle accelerators: {}", if app.optimizer.idle { "allowed" } else { "none" }),
            Row::Search => "search".to_owned(),
            Row::Candidate(nth) => format!("apply candidate {}", nth + 1),
        };
        format!("{}. {text}", at + 1)
    };
    rows(app).into_iter().enumerate().map(row).collect()
}

pub(in crate::tui) fn document(app: &App) -> Option<Document> {
    let about = &about(&app.now.setup);
    let found = current_result(app)?;
    let question = app.queries.optimum.question()?;
    let parts = Parts::find(&app.library, &found.of.target, &found.of.workload).ok()?;
    let problem = problem(&found.optimum.start.scenario, &parts, question);
    let metric = question.objective;
    let mut blocks = study::optimum::blocks(&problem, &found.optimum);
    blocks.extend(found.warnings.iter().map(|warning| Block::Callout(format!("Warning: {warning}."))));
    // The heading of the first block names the target, which the title contains.
    blocks.retain(|block| !matches!(block, Block::Heading(3, _)));
    let named = |(nth, (_, candidate)): (usize, &(crate::demo::Setup, Candidate))| {
        (if nth == 0 { "best".to_owned() } else { (nth + 1).to_string() }, candidate.clone())
    };
    let mut all: Vec<(String, Candidate)> = found.candidates.iter().enumerate().map(named).collect();
    all.push(("start".to_owned(), found.optimum.start.clone()));
    all.push(("hill-climb".to_owned(), found.optimum.hill_climb.clone()));
    let bars = all.iter().filter_map(|(name, candidate)| {
        let value = candidate.value(metric)?;
        Some(Bar {
            name: name.clone(),
            parts: vec![(metric.label.to_owned(), value)],
            label: metric.show(value),
            interval: None,
            limit: None,
        })
    });
    let bars = Bars { title: metric.label.to_owned(), bars: bars.collect() };
    if let Some(bars) = drawing::bars(&bars, WIDTH) {
        let after = blocks.iter().position(|block| matches!(block, Block::Table(_))).unwrap_or(blocks.len());
        blocks.insert(after, Block::Picture(bars));
    }
    if let ([across, up, ..], true) = (problem.front.as_slice(), found.optimum.front.len() > 1) {
        let curve = std::iter::once((&*found.of.target, found.optimum.front.iter()));
        let (plot, _) = compromises("Pareto frontier", [across, up], curve, None);
        blocks.extend(charted(&plot));
    }
    let rows = all.iter().map(|(name, candidate)| {
        let holds = candidate.meets(&problem);
        vec![
            Cell::text(name.clone()),
            candidate.value(metric).map_or_else(|| Cell::text("–"), |value| Cell::number(metric.show(value), value)),
            Cell::text(if holds { "yes" } else { "no" }),
            Cell::text(changes(candidate)),
        ]
    });
    let head = vec![left("candidate"), right(metric.name), left("meets constraints"), left("knobs")];
    let rows = Grid { head, rows: rows.collect() };
    Some(titled(format!("Best {} of {about}", metric.label), blocks, rows))
}
