//! Measured runs as a document: metrics, predictions, and charts of throughput, memory, time and loss.

use super::{Measured, prediction};
use crate::chart::{Axis, Bar, Bars, Plot, Series, drawing, svg};
use crate::study::{Block, Cell, Grid, markdown};
use crate::table::Align;
use atlas_core::units::significant;

/// Maximum points of a curve; more cannot be distinguished on a page.
const MAX_POINTS: usize = 400;

/// Builds the blocks of the document.
#[must_use]
pub fn blocks(runs: &[Measured], command: &str) -> Vec<Block> {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let mut out = vec![Block::Heading(1, format!("Measured runs: {}", names.join(", ")))];
    out.push(Block::Heading(2, "Throughput".to_owned()));
    out.push(Block::Bars(bars(runs, "tokens/s of all accelerators", "tokens/s", |run| {
        run.predicted.as_ref().map(|predicted| predicted.tokens_per_second)
    })));
    out.push(Block::Bars(bars(runs, "tokens/s per accelerator", "tokens/s/accelerator", |_| None)));
    let memory = bars(runs, "peak memory of an accelerator, GB", "memory used GB", |run| {
        run.predicted.as_ref().and_then(|predicted| predicted.memory_gb)
    });
    if !memory.bars.is_empty() {
        out.push(Block::Heading(2, "Memory".to_owned()));
        out.push(Block::Bars(memory));
    }
    out.push(Block::Heading(2, "Curves over steps".to_owned()));
    let curve = |title: &str, label: &str, get: fn(&Measured) -> &Vec<f64>, up: Axis| {
        let series: Vec<Series> = runs
            .iter()
            .filter(|run| get(run).len() > 1)
            .map(|run| Series { name: run.name.clone(), points: points(get(run)), joined: true })
            .collect();
        let plot = Plot {
            title: title.to_owned(),
            across: Axis::linear("step"),
            up: Axis { label: label.to_owned(), ..up },
            series,
            highlighted: None,
        };
        plot.ranges().is_some().then_some(Block::Plot(plot))
    };
    out.extend(curve("step time", "s", |run| &run.steps.seconds, Axis::linear("")));
    out.extend(curve("loss", "loss", |run| &run.steps.loss, Axis::linear("")));
    out.extend(curve("learning rate", "learning rate", |run| &run.steps.learning_rate, Axis::linear("")));
    if runs.iter().any(|run| run.predicted.is_some()) {
        out.push(Block::Heading(2, "Predicted and measured".to_owned()));
        out.push(Block::Table(predicted(runs)));
    }
    out.push(Block::Heading(2, "Figures".to_owned()));
    out.push(Block::Table(figures(runs)));
    let notes: Vec<String> =
        runs.iter().flat_map(|run| run.notes.iter().map(|note| format!("{}: {note}", run.name))).collect();
    if !notes.is_empty() {
        out.push(Block::Heading(2, "Notes".to_owned()));
        out.push(Block::List(notes));
    }
    out.push(Block::Heading(2, "Command".to_owned()));
    out.push(Block::Code(command.to_owned()));
    out
}

/// A bar per run that has the metric, and one for its prediction.
fn bars(
    runs: &[Measured],
    title: &str,
    name: &'static str,
    predicted: impl Fn(&Measured) -> Option<prediction::PredictedValue>,
) -> Bars {
    let mut all = Vec::new();
    for run in runs {
        let Some(value) = run.figure(name) else { continue };
        let limit = run.capacity_gb.filter(|_| name.starts_with("memory"));
        let bar = |name: String, value: f64, what: &str, interval| Bar {
            name,
            parts: vec![(what.to_owned(), value)],
            label: significant(value, 4),
            interval,
            limit,
        };
        all.push(bar(run.name.clone(), value, "measured", None));
        if let Some(figure) = predicted(run) {
            let interval = figure.low.zip(figure.high);
            all.push(bar(format!("{}, predicted", run.name), figure.value, "predicted", interval));
        }
    }
    Bars { title: title.to_owned(), bars: all }
}

/// Points of a curve over the steps, thinned evenly if there are many.
fn points(values: &[f64]) -> Vec<(f64, f64)> {
    let every = values.len().div_ceil(MAX_POINTS).max(1);
    values.iter().enumerate().step_by(every).map(|(step, value)| ((step + 1) as f64, *value)).collect()
}

fn predicted(runs: &[Measured]) -> Grid {
    let right = |name: &str| (name.to_owned(), Align::Right);
    let mut head = vec![("run".to_owned(), Align::Left), ("figure".to_owned(), Align::Left)];
    head.extend(["measured", "predicted", "90 % interval", "error"].map(right));
    let mut rows = Vec::new();
    for run in runs {
        let Some(described) = &run.predicted else { continue };
        let figures = [
            ("tokens/s", Some(described.tokens_per_second)),
            ("step time, s", described.step_time_s),
            ("memory, GB", described.memory_gb),
        ];
        for (name, figure) in figures.into_iter().filter_map(|(name, figure)| Some((name, figure?))) {
            let shown = |value: Option<f64>| {
                value.map_or_else(|| Cell::text("-"), |value| Cell::number(significant(value, 5), value))
            };
            let ends = figure.low.zip(figure.high);
            let ends = ends.map_or_else(
                || "-".to_owned(),
                |(low, high)| format!("{}–{}", significant(low, 4), significant(high, 4)),
            );
            let error = figure.error_percent;
            let error = error.map_or_else(|| Cell::text("-"), |error| Cell::number(format!("{error:+.1} %"), error));
            rows.push(vec![
                Cell::text(run.name.clone()),
                Cell::text(name),
                shown(figure.measured),
                shown(Some(figure.value)),
                Cell::text(ends),
                error,
            ]);
        }
    }
    Grid { head, rows }
}

fn figures(runs: &[Measured]) -> Grid {
    let mut head = vec![(String::new(), Align::Left)];
    head.extend(runs.iter().map(|run| (run.name.clone(), Align::Right)));
    let devices = runs.iter().map(|run| Cell::text(run.device.clone().unwrap_or_else(|| "-".to_owned())));
    let mut rows = vec![std::iter::once(Cell::text("accelerator")).chain(devices).collect()];
    for name in super::system_rows(runs) {
        let cells = runs.iter().map(|run| Cell::text(run.system_value(name).unwrap_or("-")));
        rows.push(std::iter::once(Cell::text(name)).chain(cells).collect());
    }
    for figure in runs.first().into_iter().flat_map(|run| &run.figures) {
        let values: Vec<Option<f64>> = runs.iter().map(|run| run.figure(figure.name)).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let several = values.iter().flatten().count() > 1;
        let best = match figure.more.filter(|_| several) {
            Some(true) => values.iter().flatten().copied().max_by(f64::total_cmp),
            Some(false) => values.iter().flatten().copied().min_by(f64::total_cmp),
            None => None,
        };
        let cells = values.iter().map(|value| match value {
            Some(value) => {
                Cell { best: best == Some(*value), ..Cell::number(super::table::format_value(*value), *value) }
            }
            None => Cell::text("-"),
        });
        rows.push(std::iter::once(Cell::text(figure.name)).chain(cells).collect());
    }
    Grid { head, rows }
}

/// Returns the document as Markdown, and its charts as SVG files (name and content) to be written next to it. `stem` is
/// the document's file name without extension.
#[must_use]
pub fn as_markdown(blocks: &[Block], stem: &str) -> (String, Vec<(String, String)>) {
    let mut charts = Vec::new();
    let mut out: Vec<String> = Vec::new();
    for block in blocks {
        let (title, chart) = match block {
            Block::Bars(bars) => (&bars.title, drawing::bars(bars, 760.0)),
            Block::Plot(plot) => (&plot.title, drawing::plot(plot, 760.0, 420.0)),
            other => {
                out.push(markdown::text(std::slice::from_ref(other)));
                continue;
            }
        };
        let Some(chart) = chart else { continue };
        let plain: String =
            title.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
        let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
        let file = format!("{stem}-{}.svg", words.join("-"));
        out.push(format!("![{title}]({})\n", file.replace(' ', "%20")));
        charts.push((file, svg::standalone(chart)));
    }
    (out.join("\n"), charts)
}
