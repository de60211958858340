//! The explanation as a document.

use crate::tui::app::App;
use crate::tui::dialogs::export::parts::{about, titled};
use atlas_plan::explain::{Term, explain};
use atlas_report::document::Document;
use atlas_report::explanation;
use atlas_report::study::{Block, Cell, Grid};
use atlas_report::table::Align;

/// Depth to which an explanation is rendered, and the width of its lines.
const DERIVATION: (usize, usize) = (12, 110);

/// The explanation of the selected metric; `None` if it has no estimate.
pub(in crate::tui) fn document(app: &App) -> Option<Document> {
    let about = &about(&app.now.setup);
    let answer = &app.answer;
    let metric = app.selected_metric()?;
    let (scenario, parts, estimate) =
        (answer.scenario.as_ref()?, answer.parts.as_ref()?, answer.outcome.as_ref().ok()?);
    let tree = explain(scenario, parts, estimate, metric)?;
    let names = ["depth", "symbol", "name", "value", "unit", "equation", "origin"];
    let mut grid =
        Grid { head: names.into_iter().map(|name| (name.to_owned(), Align::Left)).collect(), rows: Vec::new() };
    terms(&tree, 0, &mut grid);
    let described = explanation::render(&tree, metric.name, DERIVATION.0, DERIVATION.1);
    Some(titled(format!("Where {} comes from: {about}", metric.label), vec![Block::Code(described)], grid))
}

fn terms(term: &Term, depth: usize, grid: &mut Grid) {
    let value = match &term.text {
        Some(word) => Cell::text(word.to_string()),
        None => Cell::number(term.shown(), term.value),
    };
    grid.rows.push(vec![
        Cell::number(depth.to_string(), depth as f64),
        Cell::text(term.symbol.to_string()),
        Cell::text(term.name.to_string()),
        value,
        Cell::text(term.unit),
        Cell::text(term.in_symbols().unwrap_or_default()),
        Cell::text(term.origin.as_ref().map(ToString::to_string).unwrap_or_default()),
    ]);
    for below in term.terms.iter().chain(&term.dependencies) {
        terms(below, depth + 1, grid);
    }
}
