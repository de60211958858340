//! Text, report and JSON rendering of a calibration.

use serde_json::{Value, json};

use super::study::{Block, Cell, Grid};
use super::table::{Align, Table, left, right};
use atlas_config::corrections::{Quantity, REFERENCE_UNCERTAINTY};
use atlas_core::plan::Engine;
use atlas_core::sort;
use atlas_core::units;
use atlas_evidence::calibrate::judge::{EvaluatedMetric, median_errors};
use atlas_evidence::calibrate::plan::Plan;
use atlas_evidence::calibrate::{Outcome, Parameter};

/// Formats a parameter value with four significant digits.
fn format_value(value: f64) -> String {
    units::significant(value, 4)
}

fn interval(ends: Option<[f64; 2]>) -> String {
    ends.map_or_else(|| "unknown".to_owned(), |[low, high]| format!("{} – {}", format_value(low), format_value(high)))
}

fn percent(error: f64) -> String {
    let percent = 100.0 * error;
    if percent.abs() < 1e6 { format!("{percent:+.1} %") } else { format!("{percent:+.1e} %") }
}

/// Formats an error in percent, without a sign.
fn size(percent: f64) -> String {
    if percent < 1e6 { format!("{percent:.1} %") } else { format!("{percent:.1e} %") }
}

/// Renders the parameters as a table.
#[must_use]
pub fn parameters(all: &[Parameter]) -> String {
    let mut table = Table::new([
        left("parameter"),
        right("before"),
        right("value"),
        right("95 % interval"),
        right("n"),
        right("R²"),
        left("path in the profile"),
    ]);
    for one in all {
        table.row([
            one.symbol.clone(),
            one.before.map_or_else(|| "-".to_owned(), format_value),
            format_value(one.value),
            interval(one.interval),
            one.n.to_string(),
            one.r2.map_or_else(String::new, |r2| format!("{r2:.3}")),
            one.path.clone(),
        ]);
    }
    table.render()
}

/// Renders the measured rows and their predictions as a table.
#[must_use]
pub fn measurements_table(all: &[EvaluatedMetric], max_rows: usize) -> String {
    let mut table = Table::new([
        left("row"),
        left("engine"),
        left("figure"),
        right("measured"),
        right("predicted"),
        right("error"),
        right("calibrated"),
        right("error"),
    ]);
    for one in all.iter().take(max_rows) {
        table.row([
            one.source.rsplit(['/', '\\']).next().unwrap_or_default().to_owned(),
            one.engine.name().to_owned(),
            one.figure.name().to_owned(),
            format_value(one.measured),
            format_value(one.before),
            percent(one.error_before()),
            one.after.map_or_else(String::new, format_value),
            one.error_after().map_or_else(String::new, percent),
        ]);
    }
    let mut out = table.render();
    if all.len() > max_rows {
        out += &format!("… and {} more; use --format json to list all\n", all.len() - max_rows);
    }
    out
}

/// Change in error per engine and metric: name, number of rows, median error before and after in percent.
#[must_use]
pub fn changes(all: &[EvaluatedMetric]) -> Vec<(String, usize, f64, f64)> {
    let mut out = Vec::new();
    for engine in [Engine::Analytical, Engine::SemiEmpirical] {
        for figure in atlas_evidence::calibrate::predict::PredictedMetric::ALL {
            let of = all.iter().filter(|one| one.engine == engine && one.figure == figure);
            if let Some((n, before, after)) = median_errors(of) {
                out.push((format!("{}: {}", engine.name(), figure.name()), n, before, after));
            }
        }
    }
    out
}

/// Renders the whole calibration as text.
#[must_use]
pub fn table(outcome: &Outcome) -> String {
    let all = outcome.all();
    let mut out = format!("Calibration of {}\n\n", outcome.target);
    if !all.is_empty() {
        out += &parameters(&all);
        out.push('\n');
    }
    let methods: Vec<&Parameter> = all.iter().filter(|one| !one.path.starts_with("corrections.")).collect();
    for one in methods {
        out += &format!("{}: {}; {}\n", one.symbol, one.method, one.sources.join(", "));
    }
    if let Some(found) = &outcome.corrections {
        for quantity in Quantity::ALL {
            let Some(one) = found.of(quantity) else { continue };
            let plural = if one.runs == 1 { "configuration" } else { "configurations" };
            let usual = 100.0 * REFERENCE_UNCERTAINTY;
            out += &format!(
                "{}: factors (measured / predicted) at an estimate uncertainty of {usual:.0} %, from {} {plural}\n",
                quantity.name(),
                one.runs
            );
            if one.growth > 0.0 {
                out += &format!("  otherwise, log(factor) × (uncertainty / {usual:.0} %)^{:.2}\n", one.growth);
            }
        }
    }
    if !outcome.judged.is_empty() {
        out += "\nMeasured and predicted\n\n";
        out += &measurements_table(&outcome.judged, 24);
        out += "\nMedian absolute error\n";
        for (name, n, before, after) in changes(&outcome.judged) {
            out += &format!("  {name} (n = {n}): {} before, {} after\n", size(before), size(after));
        }
    }
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            out += &format!("\n{title}\n");
            lines.iter().for_each(|line| out += &format!("  {line}\n"));
        }
    };
    list("Warnings", outcome.warnings.clone());
    let refused = outcome.refused.iter().map(|(row, reason)| format!("{row}: {reason}"));
    list("Rows that the analytical engine cannot estimate", refused.collect());
    let missing = outcome.missing.iter().map(|missing| format!("{}: needs {}", missing.symbol, missing.needs));
    list(
        "Not determined by these measurements (use atlas calibrate --plan for scripts that measure it)",
        missing.collect(),
    );
    out
}

/// Renders the whole calibration as the blocks of a report.
#[must_use]
pub fn blocks(outcome: &Outcome, date: &str, command: &str) -> Vec<Block> {
    let mut out = vec![Block::Heading(1, format!("Calibration of {}", outcome.target))];
    let all = outcome.all();
    let changes = changes(&outcome.judged);
    let measured: std::collections::BTreeSet<&str> =
        sort::collect_unsorted(outcome.judged.iter().map(|one| one.source.as_str()));
    let rows = if measured.len() == 1 { "measurement" } else { "measurements" };
    out.push(Block::Text(format!("{date}: {} parameters from {} {rows}.", all.len(), measured.len())));
    if let Some((name, n, before, after)) = changes.first() {
        let shown = format!("{name}: median error {} before, {} after (n = {n})", size(*before), size(*after));
        out.push(Block::Callout(shown));
    }
    let head = |names: &[(&str, Align)]| names.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
    let (left, right) = (Align::Left, Align::Right);
    if !changes.is_empty() {
        out.push(Block::Heading(2, "Errors before and after".to_owned()));
        let row = |(name, n, before, after): &(String, usize, f64, f64)| {
            let percent = |error: f64| Cell::number(size(error), error);
            vec![Cell::text(name.clone()), Cell::number(n.to_string(), *n as f64), percent(*before), percent(*after)]
        };
        let head =
            head(&[("engine and figure", left), ("n", right), ("median before", right), ("median after", right)]);
        out.push(Block::Table(Grid { head, rows: changes.iter().map(row).collect() }));
    }
    if !all.is_empty() {
        out.push(Block::Heading(2, "Parameters".to_owned()));
        let row = |one: &Parameter| {
            let r2 = one.r2.map_or_else(String::new, |r2| format!("{r2:.3}"));
            vec![
                Cell::text(one.symbol.clone()),
                Cell::text(one.before.map_or_else(|| "-".to_owned(), format_value)),
                Cell::number(format_value(one.value), one.value),
                Cell::text(interval(one.interval)),
                Cell::text(one.n.to_string()),
                Cell::text(r2),
                Cell::text(one.method.clone()),
                Cell::text(one.path.clone()),
            ]
        };
        let head = head(&[
            ("parameter", left),
            ("before", right),
            ("value", right),
            ("95 % interval", right),
            ("n", right),
            ("R²", right),
            ("method", left),
            ("path in the profile", left),
        ]);
        out.push(Block::Table(Grid { head, rows: all.iter().map(row).collect() }));
    }
    if !outcome.judged.is_empty() {
        out.push(Block::Heading(2, "Measured and predicted".to_owned()));
        let row = |one: &EvaluatedMetric| {
            let error = |error: f64| Cell::number(percent(error), 100.0 * error);
            let none = || Cell::text("-");
            vec![
                Cell::text(one.source.rsplit(['/', '\\']).next().unwrap_or_default()),
                Cell::text(one.engine.name()),
                Cell::text(one.figure.name()),
                Cell::number(format_value(one.measured), one.measured),
                Cell::number(format_value(one.before), one.before),
                error(one.error_before()),
                one.after.map_or_else(none, |after| Cell::number(format_value(after), after)),
                one.error_after().map_or_else(none, error),
            ]
        };
        let head = head(&[
            ("row", left),
            ("engine", left),
            ("figure", left),
            ("measured", right),
            ("predicted", right),
            ("error", right),
            ("calibrated", right),
            ("error", right),
        ]);
        out.push(Block::Table(Grid { head, rows: outcome.judged.iter().map(row).collect() }));
    }
    let refused = outcome.refused.iter().map(|(row, reason)| format!("{row}: {reason}"));
    let missing = outcome.missing.iter().map(|missing| format!("{}: needs {}", missing.symbol, missing.needs));
    for (title, lines) in [
        ("Warnings", outcome.warnings.clone()),
        ("Rows that the analytical engine cannot estimate", refused.collect()),
        ("Not determined by these measurements", missing.collect::<Vec<_>>()),
    ] {
        if !lines.is_empty() {
            out.push(Block::Heading(2, title.to_owned()));
            out.push(Block::List(lines));
        }
    }
    out.push(Block::Heading(2, "Command".to_owned()));
    out.push(Block::Code(command.to_owned()));
    out
}

/// Renders the recommended order of measurements as text.
#[must_use]
pub fn plan(target: &str, plan: &Plan) -> String {
    let mut out = format!("Measurements that would reduce the uncertainty of {target}, most useful first\n\n");
    let mut table = Table::new([
        right(""),
        left("measurement"),
        right("variance reduction"),
        right("left"),
        right("minutes"),
        left("determines"),
    ]);
    for (index, step) in plan.steps.iter().enumerate() {
        table.row([
            (index + 1).to_string(),
            step.measurement.name().to_owned(),
            units::percent(step.reduction),
            format!("±{:.1} %", 196.0 * step.left),
            format!("{:.0}", step.measurement.minutes()),
            step.measurement.determines().to_owned(),
        ]);
    }
    out += &table.render();
    out += &format!(
        "\nCurrent uncertainty of the metrics below: ±{:.1} % (95 %, root mean square); `left` is the uncertainty \
         after a measurement and all earlier ones.\n\n",
        196.0 * plan.now
    );
    for (name, sd) in &plan.figures {
        out += &format!("  {name}: ±{:.1} %\n", 196.0 * sd);
    }
    if !plan.due.is_empty() {
        out += "\nWhen to recalibrate\n";
        plan.due.iter().for_each(|line| out += &format!("  {line}\n"));
    }
    out
}

/// Returns the whole calibration as JSON.
#[must_use]
pub fn document(outcome: &Outcome, date: &str) -> Value {
    let rows: Vec<Value> = outcome.judged.iter().map(row).collect();
    let errors = changes(&outcome.judged).into_iter().map(|(name, n, before, after)| {
        json!({"what": name, "n": n, "median_abs_pct_before": before, "median_abs_pct_after": after})
    });
    let refused = outcome.refused.iter().map(|(row, reason)| json!({"row": row, "reason": reason}));
    json!({
        "target": outcome.target,
        "date": date,
        "parameters": outcome.all(),
        "errors": errors.collect::<Vec<_>>(),
        "rows": rows,
        "warnings": outcome.warnings,
        "missing": outcome.missing,
        "refused": refused.collect::<Vec<_>>(),
    })
}

/// Returns one judged prediction as JSON.
#[must_use]
pub fn row(one: &EvaluatedMetric) -> Value {
    json!({
        "row": one.source,
        "engine": one.engine.name(),
        "figure": one.figure.name(),
        "mode": one.mode.name(),
        "accelerators": one.accelerators,
        "measured": one.measured,
        "measured_interval": one.measured_interval,
        "predicted": one.before,
        "predicted_interval": one.before_interval,
        "error": one.error_before(),
        "calibrated": one.after,
        "calibrated_error": one.error_after(),
    })
}
