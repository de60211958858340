//! Two scenarios side by side, and only what differs: target, workload, knobs, and every figure with its change.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::tui::app::{Answer, App, View};
use crate::tui::draw::{Canvas, wrap};
use crate::tui::layout;
use crate::tui::scenarios::other_side;
use crate::tui::theme::Role;
use atlas_core::units;
use atlas_plan::estimate::{Format, Metric, digits};
use atlas_plan::knob::Knob;

/// A row of the view.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// A heading.
    Heading(&'static str),
    /// A setting in words: its name, the other value, this value.
    Words(String, String, String),
    /// A figure: the other value, this value.
    Figure(&'static Metric, Option<f64>, Option<f64>),
    /// A remark.
    Text(Role, String),
}

/// Everything that differs, and the name of the other side.
#[must_use]
pub fn rows_of(app: &App) -> (String, Vec<Row>) {
    let (label, other, setup) = other_side(app);
    let here = &app.now.setup;
    let mut rows = Vec::new();
    let mut words = Vec::new();
    if setup.target != here.target {
        words.push(Row::Words("target".to_owned(), setup.target.to_string(), here.target.to_string()));
    }
    if setup.workload != here.workload {
        words.push(Row::Words("workload".to_owned(), setup.workload.to_string(), here.workload.to_string()));
    }
    if !words.is_empty() {
        rows.push(Row::Heading("scenario"));
        rows.append(&mut words);
    }
    let knobs: Vec<Row> = Knob::all().filter_map(|knob| differing(knob, &other, &app.answer)).collect();
    if !knobs.is_empty() {
        rows.push(Row::Heading("knobs"));
        rows.extend(knobs);
    }
    for (name, answer) in [(label.as_str(), &other), ("this scenario", &app.answer)] {
        match (&answer.outcome, answer.detail()) {
            (Err(complaint), _) => rows.push(Row::Text(Role::Error, format!("{name}: {complaint}"))),
            (_, Some(detail)) if !detail.verdict.fits() => {
                rows.push(Row::Text(Role::Error, format!("{name}: {}", detail.verdict.describe())));
            }
            _ => {}
        }
    }
    let (mut section, scenario) = (None, rows.len());
    let headlines: Vec<&Metric> = Metric::headlines(app.answer.mode()).collect();
    for metric in Metric::by_importance(app.answer.mode()) {
        let (before, after) = (other.value(metric), app.answer.value(metric));
        let same = match (before, after) {
            // Skip changes that neither the digits nor the percentage show.
            (Some(before), Some(after)) => is_least(metric, before, after) && metric.show(before) == metric.show(after),
            (None, None) => true,
            _ => false,
        };
        if same {
            continue;
        }
        let name = if headlines.contains(&metric) { "key figures" } else { metric.section.name() };
        if section.replace(name) != Some(name) {
            rows.push(Row::Heading(name));
        }
        rows.push(Row::Figure(metric, before, after));
    }
    if rows.is_empty() {
        rows.push(Row::Text(Role::Dim, format!("Nothing differs from {label}.")));
        let how = "Change a knob (K), select another target (H), or press b to make this scenario the baseline.";
        rows.push(Row::Text(Role::Dim, how.to_owned()));
    } else if rows.len() == scenario {
        rows.push(Row::Text(Role::Dim, "no metric differs".to_owned()));
    }
    let width = usize::from(layout::areas(app).body.width.saturating_sub(5));
    let broken = |row: Row| match row {
        Row::Text(role, text) => wrap(&text, width).into_iter().map(|line| Row::Text(role, line)).collect(),
        row => vec![row],
    };
    (label, rows.into_iter().flat_map(broken).collect())
}

/// The figure under the cursor.
#[must_use]
pub fn figure_here(app: &App) -> Option<&'static Metric> {
    let all = rows_of(app).1;
    match stops(&all).get(app.view_row).and_then(|at| all.get(*at)) {
        Some(Row::Figure(metric, ..)) => Some(metric),
        _ => None,
    }
}

/// Whether a figure differs, so that there is something to explain.
#[must_use]
pub fn has_figures(app: &App) -> bool {
    rows_of(app).1.iter().any(|row| matches!(row, Row::Figure(..)))
}

/// A knob with different values, or that applies to one side only.
fn differing(knob: Knob, other: &Answer, this: &Answer) -> Option<Row> {
    let value = |answer: &Answer| {
        let scenario = answer.scenario.as_ref()?;
        scenario.heeds(knob).then(|| super::knobs::show(&scenario.get(knob)))
    };
    let (before, after) = (value(other), value(this));
    let spec = knob.spec();
    let name = if spec.unit.is_empty() { spec.name.to_owned() } else { format!("{} ({})", spec.name, spec.unit) };
    let show = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    (before != after).then(|| Row::Words(name, show(before), show(after)))
}

/// Whether a change is negligible: below 0.1 points between shares, below 0.1 % otherwise.
fn is_least(metric: &Metric, before: f64, after: f64) -> bool {
    let whole = if metric.format == Format::Percent { 1.0 } else { before.abs() };
    (after - before).abs() < super::results::LEAST * whole
}

/// A change of a figure in words: the arrow, the sign and the share.
#[must_use]
pub fn change(app: &App, metric: &Metric, before: f64, after: f64) -> String {
    let arrow = if after > before { app.glyphs.up } else { app.glyphs.down };
    let text = match (metric.format, is_least(metric, before, after)) {
        // For shares, the difference in points is more useful.
        (Format::Percent, true) => "<0.1 pt".to_owned(),
        (Format::Percent, false) => format!("{:+.1} pt", 100.0 * (after - before)),
        (_, true) => "<0.1 %".to_owned(),
        (_, false) => units::relative(before, after),
    };
    format!("{arrow}{text}")
}

/// The rows that can be selected: settings and figures.
fn stops(all: &[Row]) -> Vec<usize> {
    let stands = |row: &Row| matches!(row, Row::Words(..) | Row::Figure(..));
    all.iter().enumerate().filter(|(_, row)| stands(row)).map(|(at, _)| at).collect()
}

/// How many rows the cursor can select; all rows without a cursor.
#[must_use]
pub fn rows(app: &App) -> usize {
    let all = rows_of(app).1;
    let stops = stops(&all).len();
    if stops > 0 { stops } else { all.len() }
}

/// First and last line of a row, with its heading; the line of names does not scroll.
#[must_use]
pub fn lines_of(app: &App, row: usize) -> (usize, usize) {
    let all = rows_of(app).1;
    let line = stops(&all).get(row).copied().unwrap_or(row);
    let headed = line.checked_sub(1).and_then(|above| all.get(above));
    (if matches!(headed, Some(Row::Heading(_))) { line - 1 } else { line }, line + 1)
}

/// The information line.
#[must_use]
pub fn info(app: &App) -> String {
    match app.tabs.count() {
        1 => "compared with the baseline; T duplicates this scenario in a new tab".to_owned(),
        2 => "compared with the other tab; tp pins a tab as the baseline for all deltas".to_owned(),
        _ => "compared with another tab (arrow keys); tp pins a tab as the baseline for all deltas".to_owned(),
    }
}

/// Columns of the digits behind the point, and of the unit: the points of all figures stand below each other.
const FRACTION: u16 = 5;
/// Columns of a change.
const CHANGE: u16 = 14;
const UNIT: u16 = 8;

/// A figure in as many digits as are known of the scenario's own.
fn shown(app: &App, metric: &Metric, value: Option<f64>) -> String {
    let Some(value) = value else { return "–".to_owned() };
    let text = metric.show(value);
    let limited = match (&app.answer.scenario, &app.answer.outcome) {
        (Some(scenario), Ok(estimate)) => digits::are_three(metric, scenario, estimate),
        _ => false,
    };
    if limited { digits::three_digits(&text) } else { text }
}

/// A figure, aligned at the decimal point.
fn figure(canvas: &mut Canvas<'_>, cell: Rect, shown: &str, style: Style) {
    let (whole, fraction, unit) = super::results::split(shown);
    let point = cell.width.saturating_sub(FRACTION + UNIT);
    canvas.right(cell.x, cell.y, point, whole, style);
    // Small prices have no unit and use its columns for digits.
    let room = if unit.is_empty() { FRACTION + UNIT } else { FRACTION };
    canvas.text(cell.x + point, cell.y, room, fraction, style);
    let dim = canvas.role(Role::Dim);
    canvas.text(cell.x + point + FRACTION + 1, cell.y, UNIT - 1, unit, dim);
}

/// Draws the view.
pub fn diff(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let (label, all) = rows_of(app);
    let here = if app.tabs.count() > 1 {
        format!("{} {}", app.tabs.current() + 1, app.tab_label(app.tabs.current()))
    } else {
        "this scenario".to_owned()
    };
    let inner = canvas.view(area, View::Diff, "Difference", "only what differs", app.tour.is_none());
    let name = if inner.width >= 100 { 24 } else { 18 };
    let column = (inner.width.saturating_sub(name + CHANGE + 3) / 2).min(34);
    let (first, second) = (inner.x + 1 + name, inner.x + 1 + name + column);
    let third = second + column;
    let (dim, focused) = (canvas.role(Role::Baseline), canvas.role(Role::TitleFocused));
    canvas.right(first, inner.y, column - 1, &label, dim);
    canvas.right(second, inner.y, column - 1, &here, focused);
    let stop = stops(&all).get(app.view_row).copied();
    let text_style = canvas.role(Role::Text);
    let height = inner.height.saturating_sub(1);
    for (line, (index, row)) in (0..height).zip(all.iter().enumerate().skip(app.view_scroll)) {
        let y = inner.y + 1 + line;
        match row {
            Row::Heading(heading) => {
                let style = canvas.role(Role::Heading);
                canvas.text(inner.x + 1, y, inner.width, heading, style);
            }
            Row::Words(what, before, after) => {
                let (old, new) = (canvas.role(Role::Dim), canvas.role(Role::Changed));
                canvas.text(inner.x + 2, y, name - 1, what, text_style);
                canvas.right(first, y, column - 1, before, old);
                canvas.right(second, y, column - 1, after, new);
            }
            Row::Figure(metric, before, after) => {
                canvas.text(inner.x + 2, y, name - 1, metric.label, text_style);
                let (old, new) = (canvas.role(Role::Dim), canvas.role(Role::Value));
                figure(canvas, Rect::new(first, y, column - 1, 1), &shown(app, metric, *before), old);
                figure(canvas, Rect::new(second, y, column - 1, 1), &shown(app, metric, *after), new);
                if let (Some(before), Some(after)) = (before, after) {
                    let text = change(app, metric, *before, *after);
                    let style = match is_least(metric, *before, *after) {
                        true => canvas.role(Role::Dim),
                        false => super::results::change_style(canvas, metric.better, after - before),
                    };
                    canvas.right(third, y, CHANGE, &text, style);
                }
            }
            Row::Text(role, text) => {
                let style = canvas.role(*role);
                canvas.text(inner.x + 2, y, inner.width.saturating_sub(3), text, style);
            }
        }
        if stop == Some(index) {
            let width = (third + CHANGE + 1).min(inner.right()) - inner.x;
            canvas.tint(Rect::new(inner.x, y, width, 1), canvas.role(Role::Selection));
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(height) < all.len());
}
