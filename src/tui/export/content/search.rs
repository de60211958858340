//! Documents of the views that search: sweeps, frontiers, the optimizer.

use std::sync::Arc;

use super::{left, right, titled};
use crate::tui::app::App;
use crate::tui::frontier::Front;
use crate::tui::optimum;
use crate::tui::race::layout::layout_of;
use crate::tui::sweeping::Curves;
use atlas_core::sort;
use atlas_plan::estimate::{Better, Metric};
use atlas_plan::knob::Setting;
use atlas_plan::scenario::Parts;
use atlas_plan::search::optimize::Candidate;
use atlas_report::chart::pictures;
use atlas_report::chart::pictures::Heat;
use atlas_report::chart::{Axis, Bar, Bars, Plot, Series, drawing};
use atlas_report::document::Document;
use atlas_report::optimum::changes;
use atlas_report::study;
use atlas_report::study::{Block, Cell, Grid};

/// Width of a picture, in its own units.
pub(super) const WIDTH: f64 = 760.0;
/// Ratio of the largest to the smallest value above which an axis is logarithmic.
const DECADES: f64 = 50.0;

/// A chart whose values are also listed in a table.
pub(super) fn charted(plot: &Plot) -> Option<Block> {
    drawing::plot(plot, WIDTH, 420.0).map(Block::Picture)
}

/// An axis for these values: logarithmic if their magnitudes differ much, else linear.
pub(super) fn axis(label: String, values: impl Iterator<Item = f64>) -> Axis {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if low > 0.0 && high / low > DECADES { Axis::log(label) } else { Axis::linear(label) }
}

/// The factor by which an axis multiplies these values of a metric, and the axis, labeled with the metric's name and
/// the resulting unit.
fn scaled(metric: &Metric, values: impl Iterator<Item = f64> + Clone) -> (f64, Axis) {
    let high = values.clone().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let (factor, unit) = metric.axis_unit(high);
    // The label of a rate contains its unit.
    let said = unit.is_empty() || (unit == metric.unit && metric.label.contains('/'));
    let label = if said { metric.label.to_owned() } else { format!("{} ({unit})", metric.label) };
    (factor, axis(label, values.map(|value| factor * value)))
}

/// The metric over the swept knobs: a chart, and every point of it.
pub(super) fn sweep(app: &App, about: &str) -> Option<Document> {
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
            let figure = cell.value.is_finite().then(|| Cell::figure(metric.show(cell.value), cell.value));
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
    let sign = match metric.better {
        Better::Higher => 1.0,
        Better::Lower => -1.0,
        Better::Neutral => return None,
    };
    let runs = cells.iter().enumerate().filter(|(_, cell)| cell.feasible && cell.value.is_finite());
    runs.max_by(|a, b| (sign * a.1.value).total_cmp(&(sign * b.1.value))).map(|(point, _)| point)
}

fn setting(setting: Option<&Setting>) -> Cell {
    match setting {
        Some(Setting::Number(value)) => Cell::figure(value.to_string(), *value),
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
            shown: metric.show(figure),
            interval: None,
            limit: None,
        };
        let bars = curves.across.values.iter().enumerate().flat_map(|(at, value)| {
            curves.curves.iter().filter_map(move |(target, grid)| {
                let cell = grid.cells.get(at).filter(|cell| cell.feasible && cell.value.is_finite())?;
                Some(bar(target, value, cell.value))
            })
        });
        return drawing::bars(&Bars { title, bars: bars.collect() }, WIDTH).map(Block::Picture);
    }
    let cells = curves.curves.iter().flat_map(|(_, grid)| &grid.cells).filter(|cell| cell.feasible);
    let (factor, up) = scaled(metric, cells.map(|cell| cell.value));
    let series = curves.curves.iter().map(|(target, grid)| {
        let points = values.iter().zip(&grid.cells).filter(|(_, cell)| cell.feasible);
        let points = points.map(|(x, cell)| (*x, factor * cell.value));
        Series { name: target.to_string(), points: points.collect(), joined: true }
    });
    let here = curves.curves.first().and_then(|(_, grid)| {
        let at = grid.here?;
        let cell = grid.cells.get(at).filter(|cell| cell.feasible)?;
        Some((*values.get(at)?, factor * cell.value))
    });
    let spec = curves.across.knob.spec();
    let across = if spec.unit.is_empty() { spec.name.to_owned() } else { format!("{} ({})", spec.name, spec.unit) };
    charted(&Plot { title, across: axis(across, values.iter().copied()), up, series: series.collect(), here })
}

fn heat(curves: &Curves) -> Heat {
    let metric = curves.metric;
    let against = curves.against.as_ref().unwrap_or(&curves.across);
    let words = |axis: &atlas_plan::search::Axis| axis.values.iter().map(ToString::to_string).collect::<Vec<_>>();
    let first = curves.curves.first();
    let cells = first.map_or(&[][..], |(_, grid)| grid.cells.as_slice());
    let runs = || cells.iter().filter(|cell| cell.feasible && cell.value.is_finite()).map(|cell| cell.value);
    let (low, high) = (runs().fold(f64::INFINITY, f64::min), runs().fold(f64::NEG_INFINITY, f64::max));
    let share = |value: f64| if high > low { (value - low) / (high - low) } else { 1.0 };
    let cell = |(column, row): (usize, usize)| match cells.get(curves.point((column, row))) {
        Some(cell) if cell.feasible && cell.value.is_finite() => (Some(share(cell.value)), metric.show(cell.value)),
        Some(cell) if cell.value.is_finite() => (None, "cannot run".to_owned()),
        _ => (None, "–".to_owned()),
    };
    let columns = curves.across.values.len();
    Heat {
        title: format!("{} over {} and {}", metric.label, curves.across.knob.name(), against.knob.name()),
        across: (curves.across.knob.name().to_owned(), words(&curves.across)),
        up: (against.knob.name().to_owned(), words(against)),
        cells: (0..curves.rows()).map(|row| (0..columns).map(|column| cell((column, row))).collect()).collect(),
        here: first.and_then(|(_, grid)| grid.here).map(|point| curves.place(point)),
    }
}

/// Pareto frontier of every target: a chart, and the knobs that lead to each.
pub(super) fn frontier(app: &App, about: &str) -> Option<Document> {
    let front = app.queries.frontier.answer()?;
    let here = app.answer.value(front.across).zip(app.answer.value(front.up)).filter(|_| app.answer.fits());
    let curves = front.curves.iter().map(|curve| (&*curve.target, curve.points.iter().map(|(_, candidate)| candidate)));
    let (plot, rows) = compromises(front.pair.name, [front.across, front.up], curves, here);
    let blocks = std::iter::once(Block::Text(remark(front))).chain(charted(&plot));
    let blocks = blocks.chain([Block::Table(rows.clone())]).collect();
    Some(titled(format!("Pareto frontier, {}: {about}", front.pair.name), blocks, rows))
}

fn remark(front: &Front) -> String {
    let none: Vec<&str> = front.curves.iter().filter(|c| c.points.is_empty()).map(|c| &*c.target).collect();
    let points: usize = front.curves.iter().map(|curve| curve.points.len()).sum();
    let mut text =
        format!("{points} Pareto-optimal points: no layout improves one metric without worsening the other.");
    if !none.is_empty() {
        text += &format!(" No layout can run this workload on {}.", none.join(", "));
    }
    text
}

/// Pareto frontiers of several targets over two metrics, as a plot and a table.
fn compromises<'c>(
    title: &str,
    [across, up]: [&'static Metric; 2],
    curves: impl Iterator<Item = (&'c str, impl Iterator<Item = &'c Candidate>)>,
    here: Option<(f64, f64)>,
) -> (Plot, Grid) {
    let value = |metric: &Metric, candidate: &Candidate| (metric.get)(&candidate.estimate, &candidate.scenario);
    let (mut series, mut rows) = (Vec::new(), Vec::new());
    for (target, points) in curves {
        let mut places = Vec::new();
        for candidate in points {
            let place = (value(across, candidate), value(up, candidate));
            places.push(place);
            rows.push(vec![
                Cell::text(target),
                Cell::figure(across.show(place.0), place.0),
                Cell::figure(up.show(place.1), place.1),
                // The changes relative to the scenario do not suffice to reproduce a point.
                Cell::text(layout_of(&candidate.scenario)),
                Cell::text(changes(candidate)),
            ]);
        }
        sort::by(&mut places, |a, b| a.0.total_cmp(&b.0));
        series.push(Series { name: target.to_owned(), points: places, joined: true });
    }
    let all = || series.iter().flat_map(|series: &Series| series.points.iter().copied()).chain(here);
    let (factor_x, across_axis) = scaled(across, all().map(|(x, _)| x));
    let (factor_y, up_axis) = scaled(up, all().map(|(_, y)| y));
    let place = |(x, y): (f64, f64)| (factor_x * x, factor_y * y);
    let here = here.map(place);
    let series = series.iter().map(|series| {
        let points = series.points.iter().copied().map(place).collect();
        Series { name: series.name.clone(), points, joined: series.joined }
    });
    let plot = Plot { title: title.to_owned(), across: across_axis, up: up_axis, series: series.collect(), here };
    (plot, Grid { head: vec![left("target"), right(across.name), right(up.name), left("layout"), left("knobs")], rows })
}

/// The question and the result of the search; `None` before there is a result.
pub(super) fn optimum(app: &App, about: &str) -> Option<Document> {
    let found = optimum::shown(app)?;
    let question = app.queries.optimum.question()?;
    let parts = Parts::find(&app.library, &found.of.target, &found.of.workload).ok()?;
    let problem = optimum::problem(&found.optimum.start.scenario, &parts, question);
    let metric = question.objective;
    let value = |candidate: &Candidate| (metric.get)(&candidate.estimate, &candidate.scenario);
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
    let bars = all.iter().map(|(name, candidate)| Bar {
        name: name.clone(),
        parts: vec![(metric.label.to_owned(), value(candidate))],
        shown: metric.show(value(candidate)),
        interval: None,
        limit: None,
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
            Cell::figure(metric.show(value(candidate)), value(candidate)),
            Cell::text(if holds { "yes" } else { "no" }),
            Cell::text(changes(candidate)),
        ]
    });
    let head = vec![left("candidate"), right(metric.name), left("meets constraints"), left("knobs")];
    let rows = Grid { head, rows: rows.collect() };
    Some(titled(format!("Best {} of {about}", metric.label), blocks, rows))
}
