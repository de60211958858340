//! The document of the measurements: the proposed calibration, every measured value with its prediction, and the
//! errors.

use crate::tui::app::App;
use crate::tui::dialogs::export::parts::{charted, left, right, titled};
use crate::tui::views::measurements::{evaluated_rows, rows_without_prediction};
use atlas_core::plan::Engine;
use atlas_core::units;
use atlas_evidence::calibrate::judge::EvaluatedMetric;
use atlas_evidence::calibrate::predict::PredictedMetric;
use atlas_report::calibration::changes;
use atlas_report::chart::{Axis, Plot, Series};
use atlas_report::document::Document;
use atlas_report::study::{Block, Cell, Grid};

pub(in crate::tui) fn document(app: &App) -> Document {
    let title = format!("Measured runs compared with predictions for {}", app.now.setup.target);
    let mut blocks = Vec::new();
    if !app.measured.problems.is_empty() {
        blocks.push(Block::List(app.measured.problems.clone()));
    }
    let all = evaluated_rows(app);
    let rows = table(all);
    if app.measured.rows.is_empty() {
        blocks.push(Block::Text("No measurements are loaded.".to_owned()));
        return titled(title, blocks, rows);
    }
    if let Some(proposal) = &app.measured.proposal {
        let figure = |value: f64| Cell::number(units::significant(value, 4), value);
        let none = || Cell::text("–");
        let parameters = proposal.outcome.all().into_iter().map(|one| {
            let [low, high] = one.interval.map_or_else(|| [none(), none()], |ends| ends.map(figure));
            let n = Cell::text(one.n.to_string());
            vec![Cell::text(one.symbol), one.before.map_or_else(none, figure), figure(one.value), low, high, n]
        });
        let head = vec![left("parameter"), right("before"), right("value"), right("low"), right("high"), right("n")];
        blocks.push(Block::Heading(2, "Proposed calibration".to_owned()));
        blocks.push(Block::Table(Grid { head, rows: parameters.collect() }));
        blocks.push(Block::List(proposal.outcome.warnings.clone()));
    }
    let errors = changes(all).into_iter().map(|(name, n, before, after)| {
        format!("{name} (n = {n}): median error {before:.1} %, calibrated {after:.1} %")
    });
    let errors: Vec<String> = errors.collect();
    if !errors.is_empty() {
        blocks.push(Block::List(errors));
    }
    blocks.extend(PredictedMetric::ALL.into_iter().filter_map(|figure| charted(&plot(all, figure)?)));
    if !rows.rows.is_empty() {
        blocks.push(Block::Table(rows.clone()));
    }
    if let Some((n, reason)) = rows_without_prediction(app) {
        blocks.push(Block::Text(format!("{n} of {} rows have no prediction; {reason}.", app.measured.rows.len())));
    }
    blocks.retain(|block| !matches!(block, Block::List(points) if points.is_empty()));
    titled(title, blocks, rows)
}

fn table(all: &[EvaluatedMetric]) -> Grid {
    let figure = |value: f64| Cell::number(units::significant(value, 4), value);
    let share = |value: f64| Cell::number(format!("{:+.1} %", 100.0 * value), value);
    let none = || Cell::text("–");
    let rows = all.iter().map(|one| {
        vec![
            Cell::text(one.source.clone()),
            Cell::text(one.engine.name()),
            Cell::text(one.figure.name()),
            figure(one.measured),
            figure(one.before),
            share(one.error_before()),
            one.after.map_or_else(none, figure),
            one.error_after().map_or_else(none, share),
        ]
    });
    let mut head = ["row", "engine", "figure"].map(left).to_vec();
    head.extend(["measured", "predicted", "error", "calibrated", "calibrated error"].map(right));
    Grid { head, rows: rows.collect() }
}

/// Plots the predictions of a metric over the measured values, with the line on which they are equal.
fn plot(all: &[EvaluatedMetric], figure: PredictedMetric) -> Option<Plot> {
    // Ratio of the largest to the smallest value above which axes are logarithmic.
    const DECADES: f64 = 10.0;
    let own = || all.iter().filter(|one| one.figure == figure);
    let highest = own().map(|one| one.measured).fold(0.0, f64::max);
    let metric = figure.metric();
    let (factor, unit) = metric.axis_unit(highest);
    let of = |engine: Engine| {
        let own = own().filter(move |one| one.engine == engine);
        own.map(|one| (factor * one.measured, factor * one.after.unwrap_or(one.before))).collect::<Vec<(f64, f64)>>()
    };
    let mut series: Vec<Series> = [Engine::Analytical, Engine::SemiEmpirical]
        .into_iter()
        .map(|engine| Series { name: engine.name().to_owned(), points: of(engine), joined: false })
        .filter(|series| !series.points.is_empty())
        .collect();
    let ends = || series.iter().flat_map(|series| &series.points).flat_map(|(x, y)| [*x, *y]);
    let (low, high) = (ends().fold(f64::INFINITY, f64::min), ends().fold(0.0, f64::max));
    if !(low > 0.0 && high.is_finite() && low.is_finite()) {
        return None;
    }
    let name = metric.label;
    let axis = |what: &str| {
        let label = if unit.is_empty() { format!("{name}, {what}") } else { format!("{name}, {what} ({unit})") };
        if high / low > DECADES { Axis::log(label) } else { Axis { from_zero: false, ..Axis::linear(label) } }
    };
    series.push(Series { name: "equality".to_owned(), points: vec![(low, low), (high, high)], joined: true });
    Some(Plot {
        title: format!("{}: predicted over measured", figure.name()),
        across: axis("measured"),
        up: axis("predicted"),
        series,
        highlighted: None,
    })
}
