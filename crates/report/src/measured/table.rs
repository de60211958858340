//! Measured runs and their predictions as a table.

use super::prediction::{self, Prediction};
use super::{Measured, system_rows};
use crate::table::{Align, Table};
use atlas_core::units::significant;

/// Maximum runs whose names are used as column heads.
const MAX_NAMED_RUNS: usize = 3;

/// Renders the runs as a table, with ratios to the first run from the second run on. If there are many runs, they are
/// numbered and their names are listed first.
#[must_use]
pub fn table(runs: &[Measured]) -> String {
    let numbered = runs.len() > MAX_NAMED_RUNS;
    let mut list = String::new();
    let mut head = vec![(String::new(), Align::Left)];
    for (index, run) in runs.iter().enumerate() {
        let number = format!("#{}", index + 1);
        if numbered {
            list += &format!("{number:<4}{}\n", run.name);
        }
        head.push((if numbered { number } else { run.name.clone() }, Align::Right));
        if index > 0 {
            head.push((String::new(), Align::Right));
        }
    }
    let mut table = Table::new(head);
    let cells = |text: &dyn Fn(&Measured) -> String| {
        let mut out = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            out.push(text(run));
            if index > 0 {
                out.push(String::new());
            }
        }
        out
    };
    let mut row = vec!["accelerator".to_owned()];
    row.extend(cells(&|run| run.device.clone().unwrap_or_else(|| "-".to_owned())));
    table.row(row);
    for name in system_rows(runs) {
        let mut row = vec![name.to_owned()];
        row.extend(cells(&|run| run.system_value(name).unwrap_or("-").to_owned()));
        table.row(row);
    }
    for (line, name) in
        runs.first().into_iter().flat_map(|run| run.figures.iter().map(|figure| figure.name)).enumerate()
    {
        let value = |run: &Measured| run.figures.get(line).and_then(|figure| figure.value);
        if runs.iter().all(|run| value(run).is_none()) {
            continue;
        }
        let base = runs.first().and_then(value);
        let mut row = vec![name.to_owned()];
        for (index, run) in runs.iter().enumerate() {
            row.push(value(run).map_or_else(|| "-".to_owned(), format_value));
            if index > 0 {
                let more = run.figures.get(line).and_then(|figure| figure.more);
                let ratio = value(run).zip(base).filter(|(_, base)| *base != 0.0 && more.is_some());
                row.push(ratio.map_or_else(String::new, |(value, base)| format!("x{}", significant(value / base, 3))));
            }
        }
        table.row(row);
    }
    predicted_rows(runs, &mut table, &cells);
    let mut out = if numbered { format!("{list}\n{}", table.render()) } else { table.render() };
    // A note that applies to several runs is printed once.
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let name = if numbered { format!("#{}", index + 1) } else { run.name.clone() };
        for note in &run.notes {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, names)) => names.push(name.clone()),
                None => notes.push((note, vec![name.clone()])),
            }
        }
    }
    for (note, names) in notes {
        out += &format!("\n{}: {note}", names.join(", "));
    }
    out + "\n"
}

/// Builds a table cell per run by calling the given formatter.
type Cells<'a> = &'a dyn Fn(&dyn Fn(&Measured) -> String) -> Vec<String>;

/// Adds rows of predictions and measurements.
fn predicted_rows(runs: &[Measured], table: &mut Table, cells: Cells<'_>) {
    type Get = fn(&Prediction) -> Option<prediction::PredictedValue>;
    let figures: [(&str, Get); 3] = [
        ("tokens/s", |predicted| Some(predicted.tokens_per_second)),
        ("step time, s", |predicted| predicted.step_time_s),
        ("memory, GB", |predicted| predicted.memory_gb),
    ];
    for (name, get) in figures {
        let figure = |run: &Measured| run.predicted.as_ref().and_then(get);
        if runs.iter().all(|run| figure(run).is_none()) {
            continue;
        }
        let dash = || "-".to_owned();
        let mut line = |what: String, text: &dyn Fn(prediction::PredictedValue) -> Option<String>| {
            let shown = |run: &Measured| figure(run).and_then(text);
            if runs.iter().any(|run| shown(run).is_some()) {
                let mut row = vec![what];
                row.extend(cells(&|run| shown(run).unwrap_or_else(dash)));
                table.row(row);
            }
        };
        line(format!("predicted {name}"), &|figure| Some(significant(figure.value, 5)));
        line("  90 % interval".to_owned(), &|figure| {
            Some(format!("{}–{}", significant(figure.low?, 4), significant(figure.high?, 4)))
        });
        let error = |figure: prediction::PredictedValue| Some(format!("{:+.1}", figure.error_percent?));
        let what = if name == "tokens/s" { "prediction / measurement, %" } else { "  / measurement, %" };
        line(what.to_owned(), &error);
    }
}

/// Formats a value with five significant digits; integers with all digits.
pub(super) fn format_value(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { significant(value, 5) }
}
