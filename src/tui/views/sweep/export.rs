//! The sweep as a document.

use std::sync::Arc;

use super::Curves;
use crate::tui::app::App;
use crate::tui::dialogs::export::parts::{WIDTH, about, axis, charted, left, right, scaled, titled};
use atlas_plan::estimate::{Direction, Metric};
use atlas_plan::knob::Setting;
use atlas_report::chart::pictures::{self, Heat};
use atlas_report::chart::{Bar, Bars, Plot, Series, drawing};
use atlas_report::document::Document;
use atlas_report::study::{Block, Cell, Grid};

/// The metric over the swept knobs: a chart, and every point of it.
pub(in crate::tui) fn document(app: &App) -> Option<Document> {
    let about = &about(&app.now.setup);
    let curves = app.queries.sweep.answer()?;
    let metric = curves.metric;
    let across = curves.across.knob.spec();
    let over = match &curves.against {
        Some(against) => format!("{} and {}", across.name, against.knob.name()),
        None => across.name.to_owned(),
    };
    let points = curves.curves.iter().map(|(_, grid)| grid.cells.len()).sum::<usize>();
    let run = curves.curves.iter().flat_map(|(_, grid)| &grid.cells).filter(|cell| cell.feasible).count();
    let mut blocks = vec![Block::Text(format!(
        "{} at {points} points, {run} of them can run. {}: {}.",
        metric.label, across.name, across.help
    ))];
    blocks.extend(match &curves.against {
        Some(_) => pictures::heat(&heat(curves), WIDTH).map(Block::Picture),
        None => line(curves),
    });
    let mut head = vec![left("target")];
    head.extend(curves.against.iter().map(|axis| right(axis.knob.name())));
    head.extend([right(across.name), right(metric.name), left("runs"), left("here")]);
    let mut rows = Vec::new();
    for (target, grid) in &curves.curves {
        let best = best(metric, &grid.cells);
        for (point, cell) in grid.cells.iter().enumerate() {
            let (column, row) = curves.place(point);
            let mut cells = vec![Cell::text(target.to_string())];
            cells.extend(curves.against.iter().map(|axis| setting(axis.values.get(row))));
            cells.push(setting(curves.across.values.get(column)));
            let figure = cell.value.map(|value| Cell::number(metric.show(value), value));
            cells.push(Cell { best: best == Some(point), ..figure.unwrap_or_else(|| Cell::text("–")) });
            cells.push(Cell::text(if cell.feasible { "yes" } else { "no" }));
            cells.push(Cell::text(if grid.here == Some(point) { "here" } else { "" }));
            rows.push(cells);
        }
    }
    let rows = Grid { head, rows };
    blocks.push(Block::Table(rows.clone()));
    Some(titled(format!("{} over {over}: {about}", metric.label), blocks, rows))
}

/// The best point that can run; `None` for a metric of which neither high nor low values are better.
fn best(metric: &Metric, cells: &[atlas_plan::search::sweep::Cell]) -> Option<usize> {
    let runs = cells.iter().enumerate();
    let runs = runs.filter_map(|(point, cell)| Some((point, metric.better.sort_key(cell.feasible_value()?))));
    let best = runs.max_by(|a, b| b.1.total_cmp(&a.1)).map(|(point, _)| point);
    best.filter(|_| metric.better != Direction::Neutral)
}

fn setting(setting: Option<&Setting>) -> Cell {
    match setting {
        Some(Setting::Number(value)) => Cell::number(value.to_string(), *value),
        Some(other) => Cell::text(other.to_string()),
        None => Cell::default(),
    }
}

/// A curve for each target; bars if the values of the knob are words.
fn line(curves: &Curves) -> Option<Block> {
    let metric = curves.metric;
    let title = format!("{} over {}", metric.label, curves.across.knob.name());
    let number = |setting: &Setting| match setting {
        Setting::Number(value) => Some(*value),
        _ => None,
    };
    let values: Vec<f64> = curves.across.values.iter().filter_map(number).collect();
    if values.len() < curves.across.values.len() {
        let several = curves.curves.len() > 1;
        let bar = |target: &Arc<str>, value: &Setting, figure: f64| Bar {
            name: if several { format!("{value}, {target}") } else { value.to_string() },
            parts: vec![(metric.label.to_owned(), figure)],
            label: metric.show(figure),
            interval: None,
            limit: None,
        };
        let bars = curves.across.values.iter().enumerate().flat_map(|(at, value)| {
            curves
                .curves
                .iter()
                .filter_map(move |(target, grid)| Some(bar(target, value, grid.cells.get(at)?.feasible_value()?)))
        });
        return drawing::bars(&Bars { title, bars: bars.collect() }, WIDTH).map(Block::Picture);
    }
    let runs = curves.curves.iter().flat_map(|(_, grid)| &grid.cells).filter_map(|cell| cell.feasible_value());
    let (factor, up) = scaled(metric, runs);
    let series = curves.curves.iter().map(|(target, grid)| {
        let points = values.iter().zip(&grid.cells);
        let points = points.filter_map(|(x, cell)| Some((*x, factor * cell.feasible_value()?)));
        Series { name: target.to_string(), points: points.collect(), joined: true }
    });
    let here = curves.curves.first().and_then(|(_, grid)| {
        let at = grid.here?;
        Some((*values.get(at)?, factor * grid.cells.get(at)?.feasible_value()?))
    });
    let spec = curves.across.knob.spec();
    let across = if spec.unit.is_empty() { spec.name.to_owned() } else { format!("{} ({})", spec.name, spec.unit) };
    charted(&Plot {
        title,
        across: axis(across, values.iter().copied()),
        up,
        series: series.collect(),
        highlighted: here,
    })
}

fn heat(curves: &Curves) -> Heat {
    let metric = curves.metric;
    let against = curves.against.as_ref().unwrap_or(&curves.across);
    let words = |axis: &atlas_plan::search::Axis| axis.values.iter().map(ToString::to_string).collect::<Vec<_>>();
    let first = curves.curves.first();
    let cells = first.map_or(&[][..], |(_, grid)| grid.cells.as_slice());
    let runs = || cells.iter().filter_map(|cell| cell.feasible_value());
    let (low, high) = (runs().fold(f64::INFINITY, f64::min), runs().fold(f64::NEG_INFINITY, f64::max));
    let share = |value: f64| if high > low { (value - low) / (high - low) } else { 1.0 };
    let cell = |(column, row): (usize, usize)| {
        let cell = cells.get(curves.point((column, row)));
        match cell.and_then(|cell| Some((cell.value?, cell.feasible))) {
            Some((value, true)) => (Some(share(value)), metric.show(value)),
            Some((_, false)) => (None, "cannot run".to_owned()),
            None => (None, "–".to_owned()),
        }
    };
    let columns = curves.across.values.len();
    Heat {
        title: format!("{} over {} and {}", metric.label, curves.across.knob.name(), against.knob.name()),
        across: (curves.across.knob.name().to_owned(), words(&curves.across)),
        up: (against.knob.name().to_owned(), words(against)),
        cells: (0..curves.rows()).map(|row| (0..columns).map(|column| cell((column, row))).collect()).collect(),
        highlighted: first.and_then(|(_, grid)| grid.here).map(|point| curves.place(point)),
    }
}
