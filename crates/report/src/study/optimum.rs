//! How the best configuration of a target was found: objective, runners-up, active limits, best compromises, and extent
//! of the search.

use super::{Block, Cell, Grid};
use crate::optimum::{changes, describe_extent, differences_from_best};
use crate::table::Align;
use atlas_plan::estimate::Metric;
use atlas_plan::search::optimize::{Candidate, Optimum, Problem};

/// Maximum compromises listed.
const MAX_COMPROMISES: usize = 20;

/// Cell with the value of a metric.
fn cell(metric: &Metric, candidate: &Candidate) -> Cell {
    let text = candidate.shown(metric);
    match candidate.value(metric) {
        Some(value) => Cell::number(text, value),
        None => Cell::text(text),
    }
}

/// Renders the result of a search under a third-level heading.
#[must_use]
pub fn blocks(problem: &Problem<'_>, found: &Optimum) -> Vec<Block> {
    let metric = problem.objective;
    let mut out = vec![Block::Heading(3, problem.parts.target.name.to_string())];
    let axes = problem.space.axes().iter().map(|axis| format!("{} ({})", axis.knob.name(), axis.values.len()));
    let mut points = vec![
        format!("objective: {} ({})", metric.label, metric.help),
        format!("searched knobs (number of values): {}", axes.collect::<Vec<_>>().join(", ")),
    ];
    points.extend(problem.conditions.iter().map(|condition| format!("where {condition}")));
    points.push(describe_extent(&found.extent));
    out.push(Block::List(points));
    let left = |name: &str| (name.to_owned(), Align::Left);
    let right = |name: &str| (name.to_owned(), Align::Right);
    let Some(best) = &found.best else {
        out.push(Block::Callout("No combination of the knobs meets all constraints.".to_owned()));
        return out;
    };
    let row = |name: String, candidate: &Candidate, differs: String| {
        let values = best.value(metric).zip(candidate.value(metric));
        let change = values.map_or_else(String::new, |(best, own)| metric.change(best, own));
        vec![Cell::text(name), cell(metric, candidate), Cell::text(change), Cell::text(differs)]
    };
    let mut rows = vec![row("best".to_owned(), best, changes(best))];
    if let Some(first) = rows.first_mut().and_then(|row| row.get_mut(1)) {
        first.best = true;
    }
    let runners = found.runners_up.iter().enumerate();
    rows.extend(
        runners.map(|(i, candidate)| row((i + 2).to_string(), candidate, differences_from_best(best, candidate))),
    );
    for (name, candidate) in [("start", &found.start), ("hill-climb", &found.hill_climb)] {
        let stands = if candidate.meets(problem) { "" } else { "; violates a constraint" };
        rows.push(row(name.to_owned(), candidate, format!("{}{stands}", differences_from_best(best, candidate))));
    }
    let head = vec![left(""), right(metric.label), right("vs. best"), left("knobs, compared with the best")];
    out.push(Block::Table(Grid { head, rows }));
    let bound = |bound: &&atlas_plan::search::optimize::Bound| bound.alone.is_some_and(|alone| alone > 0);
    let bounds = found.bounds.iter().filter(bound).map(|bound| {
        let without =
            bound.without.as_ref().map_or_else(|| Cell::text("no better"), |candidate| cell(metric, candidate));
        let removed = Cell::number(bound.removed.to_string(), bound.removed as f64);
        vec![Cell::text(bound.what.clone()), removed, without]
    });
    let rows: Vec<Vec<Cell>> = bounds.collect();
    if !rows.is_empty() {
        out.push(Block::Text("Cost of each constraint:".to_owned()));
        let head = vec![left("constraint"), right("candidates removed"), right(metric.label)];
        out.push(Block::Table(Grid { head, rows }));
    }
    if found.front.len() > 1 {
        out.push(Block::Text("Pareto front:".to_owned()));
        let mut head: Vec<(String, Align)> = problem.front.iter().map(|metric| right(metric.label)).collect();
        head.push(left("knobs"));
        // Longer fronts are sampled evenly, including both ends.
        let shown = found.front.len().min(MAX_COMPROMISES);
        let picked = (0..shown).filter_map(|i| found.front.get(i * (found.front.len() - 1) / (shown - 1).max(1)));
        let rows = picked.map(|candidate| {
            let figures = problem.front.iter().map(|metric| cell(metric, candidate));
            figures.chain([Cell::text(changes(candidate))]).collect()
        });
        out.push(Block::Table(Grid { head, rows: rows.collect() }));
    }
    out
}
