//! Output of a sensitivity analysis.

use serde_json::{Value, json};

use super::chart::pictures;
use super::study::{Block, Cell, Grid};
use super::table::{Align, Table, left, wrap};
use super::{ReportError, csv};
use atlas_core::units;
use atlas_plan::scenario::Parts;
use atlas_plan::search::sensitivity::{Lever, Outcome, Swing, Tornado};

/// Renders a plain table with the most influential lever first, and a bar for each lever's influence.
#[must_use]
pub fn table(parts: &Parts, tornado: &Tornado) -> String {
    const BAR: f64 = 20.0;
    let metric = tornado.metric;
    let mut out = format!("{} × {}\n", parts.target.name, parts.workload.name);
    out.push_str(&format!("{} is {}\n\n", metric.label, metric.brief(tornado.value)));
    let head = ["", "is", "down to", "change", "up to", "change"];
    let align = |i: usize| if i == 0 { Align::Left } else { Align::Right };
    let head = head.iter().enumerate().map(|(i, name)| ((*name).to_owned(), align(i)));
    let mut table = Table::new(head.chain([left("reach".to_owned())]));
    let farthest = tornado.swings.iter().map(|swing| swing.max_change.min(1.0)).fold(0.0, f64::max);
    let mut troubles = Vec::new();
    for swing in &tornado.swings {
        let mut cells = vec![swing.lever.name().to_owned(), swing.from.clone()];
        for outcome in [&swing.down, &swing.up] {
            let Some(outcome) = outcome else {
                cells.extend(["–".to_owned(), String::new()]);
                continue;
            };
            cells.push(outcome.to.clone());
            match &outcome.failure {
                None => cells.push(units::relative(tornado.value, outcome.value)),
                Some(trouble) => {
                    cells.push("cannot run".to_owned());
                    troubles.push(format!("{} {}: {trouble}", swing.lever.name(), outcome.to));
                }
            }
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bar of some columns")]
        let columns = (BAR * swing.max_change.min(1.0) / farthest.max(1e-12)).round() as usize;
        cells.push("#".repeat(columns));
        table.row(cells);
    }
    out.push_str(&table.render());
    if !tornado.idle.is_empty() {
        let idle: Vec<&str> = tornado.idle.iter().map(|lever| lever.name()).collect();
        out.push('\n');
        out.push_str(&wrap(&format!("no effect: {}", idle.join(", ")), 100, "  "));
        out.push('\n');
    }
    if !troubles.is_empty() || !tornado.notes.is_empty() {
        out.push('\n');
    }
    troubles.extend(tornado.notes.iter().map(|note| (*note).to_owned()));
    for trouble in troubles {
        out.push_str(&wrap(&trouble, 100, "  "));
        out.push('\n');
    }
    out
}

/// Renders a document: a tornado chart, all levers in full, and the levers without influence. The second value holds
/// the rows for programs.
#[must_use]
pub fn blocks(tornado: &Tornado) -> (Vec<Block>, Grid) {
    /// Maximum levers in the chart.
    const MAX_LEVERS: usize = 24;
    const WIDTH: f64 = 760.0;
    let metric = tornado.metric;
    let change = |outcome: &Outcome| Some(outcome.value / tornado.value - 1.0).filter(|change| change.is_finite());
    let described = |outcome: &Option<Outcome>| match outcome {
        None => (None, String::new()),
        Some(outcome) if outcome.failure.is_some() => (None, format!("{}: cannot run", outcome.to)),
        Some(outcome) => {
            let words = format!("{}: {}", outcome.to, units::relative(tornado.value, outcome.value));
            (change(outcome), words)
        }
    };
    let swings = tornado.swings.iter().take(MAX_LEVERS).map(|swing| pictures::Swing {
        name: swing.lever.name().to_owned(),
        moves: [described(&swing.down), described(&swing.up)],
    });
    let picture = pictures::tornado(&format!("Sensitivity of {}", metric.label), &swings.collect::<Vec<_>>(), WIDTH);
    let (mut rows, mut troubles) = (Vec::new(), Vec::new());
    for swing in &tornado.swings {
        let mut cells =
            vec![Cell::text(swing.lever.name()), Cell::text(kind(swing.lever)), Cell::text(swing.from.clone())];
        for outcome in [&swing.down, &swing.up] {
            let Some(outcome) = outcome else {
                cells.extend(["–"; 3].map(Cell::text));
                continue;
            };
            cells.push(Cell::text(outcome.to.clone()));
            match &outcome.failure {
                None => {
                    cells.push(Cell::number(metric.brief(outcome.value), outcome.value));
                    let share = change(outcome).unwrap_or_default();
                    cells.push(Cell::number(units::relative(tornado.value, outcome.value), share));
                }
                Some(trouble) => {
                    cells.extend([Cell::text("cannot run"), Cell::text("–")]);
                    troubles.push(format!("{} {}: {trouble}", swing.lever.name(), outcome.to));
                }
            }
        }
        rows.push(cells);
    }
    let names = ["lever", "kind", "is", "down to", "there", "change down", "up to", "there above", "change up"];
    let align = |at: usize| if at < 2 { Align::Left } else { Align::Right };
    let head = names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), align(at))).collect();
    let rows = Grid { head, rows };
    let mut blocks = vec![Block::Text(format!(
        "{} is {}. One input is changed at a time: knobs by one step, hardware parameters by ±10 %.",
        metric.label,
        metric.show(tornado.value)
    ))];
    blocks.extend(picture.map(Block::Picture));
    blocks.push(Block::Table(rows.clone()));
    if !tornado.idle.is_empty() {
        let idle: Vec<&str> = tornado.idle.iter().map(|lever| lever.name()).collect();
        blocks.push(Block::Text(format!("No effect: {}.", idle.join(", "))));
    }
    troubles.extend(tornado.notes.iter().map(|note| (*note).to_owned()));
    if !troubles.is_empty() {
        blocks.push(Block::List(troubles));
    }
    (blocks, rows)
}

/// Returns the analysis as JSON or YAML.
///
/// # Errors
/// Serialization of the values is not expected to fail.
pub fn serialized(tornado: &Tornado, yaml: bool) -> Result<String, ReportError> {
    let outcome = |outcome: &Option<Outcome>| {
        let outcome = outcome.as_ref()?;
        Some(json!({"to": outcome.to, "value": outcome.value, "trouble": outcome.failure}))
    };
    let swing = |swing: &Swing| {
        json!({
            "lever": swing.lever.name(),
            "kind": kind(swing.lever),
            "from": swing.from,
            "down": outcome(&swing.down),
            "up": outcome(&swing.up),
            "reach": swing.max_change,
        })
    };
    let document: Value = json!({
        "metric": tornado.metric.name,
        "value": tornado.value,
        "swings": tornado.swings.iter().map(swing).collect::<Vec<_>>(),
        "notes": tornado.notes,
        "no_effect": tornado.idle.iter().map(|lever| lever.name()).collect::<Vec<_>>(),
    });
    super::serialized(&document, yaml)
}

fn kind(lever: Lever) -> &'static str {
    match lever {
        Lever::Knob(_) => "knob",
        Lever::Hardware(_) => "hardware",
    }
}

/// Returns CSV, a line per lever.
#[must_use]
pub fn csv(tornado: &Tornado) -> String {
    let head = ["lever", "kind", "from", "down_to", "down_value", "down_runs", "up_to", "up_value", "up_runs", "reach"];
    let mut out = csv::line(head);
    for swing in &tornado.swings {
        let mut cells = vec![swing.lever.name().to_owned(), kind(swing.lever).to_owned(), swing.from.clone()];
        for outcome in [&swing.down, &swing.up] {
            match outcome {
                Some(o) => cells.extend([o.to.clone(), o.value.to_string(), o.failure.is_none().to_string()]),
                None => cells.extend([String::new(), String::new(), String::new()]),
            }
        }
        cells.push(swing.max_change.to_string());
        out.push_str(&csv::line(&cells));
    }
    out
}
