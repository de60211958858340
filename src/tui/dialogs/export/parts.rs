//! Parts of exported documents that several views share.

use crate::tui::app::{Answer, App, Setup, View};
use atlas_core::escape;
use atlas_plan::engine::analytical_scenario;
use atlas_plan::estimate::Metric;
use atlas_report::chart::{Axis, Plot, drawing};
use atlas_report::document::Document;
use atlas_report::study::{self, Block, Cell, Entry, Grid, Study};
use atlas_report::table::Align;

/// Width of a picture, in its own units.
pub(in crate::tui) const WIDTH: f64 = 760.0;

/// Ratio of the largest to the smallest value above which an axis is logarithmic.
const DECADES: f64 = 50.0;

/// The heading of a left-aligned column.
pub(in crate::tui) fn left(name: &str) -> (String, Align) {
    (name.to_owned(), Align::Left)
}

/// The heading of a right-aligned column.
pub(in crate::tui) fn right(name: &str) -> (String, Align) {
    (name.to_owned(), Align::Right)
}

/// The workload and the target, for titles.
pub(in crate::tui) fn about(setup: &Setup) -> String {
    format!("{} on {}", setup.workload, setup.target)
}

/// A document whose content begins with its title.
pub(in crate::tui) fn titled(title: String, blocks: Vec<Block>, rows: Grid) -> Document {
    let blocks = std::iter::once(Block::Heading(1, title.clone())).chain(blocks).collect();
    Document { title, blocks, rows }
}

/// A chart whose values are also listed in a table.
pub(in crate::tui) fn charted(plot: &Plot) -> Option<Block> {
    drawing::plot(plot, WIDTH, 420.0).map(Block::Picture)
}

/// An axis for these values: logarithmic if their magnitudes differ much, else linear.
pub(in crate::tui) fn axis(label: String, values: impl Iterator<Item = f64>) -> Axis {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if low > 0.0 && high / low > DECADES { Axis::log(label) } else { Axis::linear(label) }
}

/// The factor by which an axis multiplies these values of a metric, and the axis, labeled with the metric's name and
/// the resulting unit.
pub(in crate::tui) fn scaled(metric: &Metric, values: impl Iterator<Item = f64> + Clone) -> (f64, Axis) {
    let high = values.clone().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let (factor, unit) = metric.axis_unit(high);
    // The label of a rate contains its unit.
    let said = unit.is_empty() || (unit == metric.unit && metric.label.contains('/'));
    let label = if said { metric.label.to_owned() } else { format!("{} ({unit})", metric.label) };
    (factor, axis(label, values.map(|value| factor * value)))
}

/// The answer as shown on the screen. If its simulation is pending, the entry has the closed-form scenario.
pub(in crate::tui) fn entry(answer: &Answer, setup: &Setup) -> Option<Entry> {
    let (scenario, estimate) = (answer.scenario.as_ref()?, answer.outcome.as_ref().ok()?);
    estimate.finite().ok()?;
    Some(Entry {
        name: setup.target.to_string(),
        parts: answer.parts.clone()?,
        overrides: setup.overrides.clone(),
        scenario: if answer.pending { analytical_scenario(scenario) } else { scenario.clone() },
        estimate: estimate.clone(),
        changes: Vec::new(),
    })
}

/// A study without entries, with the command that reproduces it.
pub(in crate::tui) fn empty(app: &App, made: &str) -> Study {
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
    Study { created_at: made.to_owned(), command, entries: Vec::new(), failed: Vec::new() }
}

/// A study as a document; its rows are the metrics of each target.
pub(in crate::tui) fn of_study(study: &Study) -> Document {
    let names = ["target", "metric", "value", "low", "high", "unit", "fits"];
    let head = names.into_iter().map(|name| (name.to_owned(), Align::Left)).collect();
    let mut rows = Vec::new();
    for entry in &study.entries {
        for metric in atlas_plan::estimate::METRICS.iter() {
            let Some(value) = entry.value(metric) else { continue };
            let end = |end: Option<f64>| end.map_or_else(Cell::default, |end| Cell::number(metric.show(end), end));
            let interval = metric.interval(&entry.estimate, &entry.scenario);
            rows.push(vec![
                Cell::text(entry.name.clone()),
                Cell::text(metric.name),
                Cell::number(metric.show(value), value),
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
