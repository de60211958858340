//! Targets side by side: a column each, a row a metric, the best of each row marked, the ratio to the reference column.

use ratatui::layout::Rect;

use super::draw::{Canvas, wrap};
use crate::estimate::{Better, METRICS, Metric};
use crate::tui::app::App;
use crate::tui::layout;
use crate::tui::theme::Role;
use crate::units;

const LABEL: u16 = 17;
const MIN_COLUMN: u16 = 20;
const MAX_COLUMN: u16 = 30;

/// A row of the table.
enum Row {
    Heading(&'static str),
    Figure(&'static Metric),
    Complaint(String),
}

/// The metrics any of the columns has.
fn metrics(app: &App) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(|metric| {
        app.columns
            .iter()
            .any(|(_, answer)| answer.scenario.as_ref().is_some_and(|scenario| metric.applies_to(scenario)))
    })
}

fn build(app: &App, width: u16) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut section = None;
    for metric in metrics(app) {
        if section != Some(metric.section) {
            rows.push(Row::Heading(metric.section.name()));
            section = Some(metric.section);
        }
        rows.push(Row::Figure(metric));
    }
    for (name, answer) in &app.columns {
        if let Err(complaint) = &answer.outcome {
            let text = format!("{name}: {complaint}");
            rows.extend(wrap(&text, usize::from(width.saturating_sub(2))).into_iter().map(Row::Complaint));
        }
    }
    rows
}

/// Rows below the two heading lines.
#[must_use]
pub fn rows(app: &App) -> usize {
    build(app, layout::areas(app).body.width).len() + 2
}

/// Width of a column, and the columns that are shown: from which, how many.
fn visible(app: &App, width: u16) -> (u16, usize, usize) {
    let room = width.saturating_sub(LABEL + 2);
    let total = app.columns.len().max(1);
    let fit = usize::from(room / MIN_COLUMN).clamp(1, total);
    let column = (room / u16::try_from(fit).unwrap_or(1)).min(MAX_COLUMN);
    let from = (app.column + 1).saturating_sub(fit).min(total - fit);
    (column, from, fit)
}

/// The column at a place of the screen.
#[must_use]
pub fn column_at(app: &App, x: u16) -> Option<usize> {
    let body = layout::areas(app).body;
    let (width, from, fit) = visible(app, body.width);
    let offset = x.checked_sub(body.x + 1 + LABEL)?;
    let index = usize::from(offset / width.max(1));
    (index < fit && from + index < app.columns.len()).then_some(from + index)
}

/// The index of the best column in a row, where one is best alone.
fn best(app: &App, metric: &Metric) -> Option<usize> {
    let values =
        app.columns.iter().enumerate().filter_map(|(i, (_, answer))| answer.value(metric).map(|value| (i, value)));
    let ordered = |a: f64, b: f64| if metric.better == Better::Higher { a > b } else { a < b };
    let mut best: Option<(usize, f64)> = None;
    let mut tie = false;
    for (i, value) in values {
        match best {
            // Figures that differ by rounding alone are equal to whoever reads them.
            Some((_, leader)) if (value - leader).abs() <= 1e-9 * leader.abs() => tie = true,
            Some((_, leader)) if !ordered(value, leader) => {}
            _ => {
                best = Some((i, value));
                tie = false;
            }
        }
    }
    best.filter(|_| !tie && metric.better != Better::Neutral).map(|(i, _)| i)
}

/// Draws the view.
pub fn compare(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let marked = app.now.marks.len();
    let remark =
        if marked < 2 { "all targets; mark two or more to choose".to_owned() } else { format!("{marked} marked") };
    let title = format!("Compare on {}", app.now.setup.workload);
    let inner = canvas.frame(area, &title, &remark, app.tour.is_none());
    let (width, from, fit) = visible(app, area.width);
    let reference = app.reference_column();
    let shown = app.columns.iter().enumerate().skip(from).take(fit);
    for (slot, (index, (name, _))) in (0u16..).zip(shown.clone()) {
        let x = inner.x + LABEL + slot * width;
        let style = canvas.role(if index == app.column { Role::TitleFocused } else { Role::Title });
        canvas.right(x, inner.y, width - 1, name, style);
        let (role, text) = if index == reference { (Role::Baseline, "reference") } else { (Role::Dim, "") };
        let style = canvas.role(role);
        canvas.right(x, inner.y + 1, width - 1, text, style);
    }
    let dim = canvas.role(Role::Dim);
    if fit < app.columns.len() {
        let place = format!("{}–{} of {}", from + 1, from + fit, app.columns.len());
        canvas.text(inner.x + 1, inner.y, LABEL - 1, &place, dim);
    }
    let all = build(app, area.width);
    let height = inner.height.saturating_sub(2);
    for (line, row) in (0..height).zip(all.iter().skip(app.view_scroll)) {
        let y = inner.y + 2 + line;
        match row {
            Row::Heading(name) => {
                let style = canvas.role(Role::Heading);
                canvas.text(inner.x + 1, y, LABEL, name, style);
            }
            Row::Complaint(text) => {
                let style = canvas.role(Role::Error);
                canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), text, style);
            }
            Row::Figure(metric) => {
                let style = canvas.role(Role::Text);
                canvas.text(inner.x + 2, y, LABEL - 2, metric.label, style);
                let best = best(app, metric);
                let base = app.columns.get(reference).and_then(|(_, answer)| answer.value(metric));
                for (slot, (index, (_, answer))) in (0u16..).zip(shown.clone()) {
                    let cell = Rect::new(inner.x + LABEL + slot * width, y, width - 1, 1);
                    value(canvas, cell, metric, answer.value(metric), base, index == reference, best == Some(index));
                }
            }
        }
    }
    if let Some(slot) = app.column.checked_sub(from).and_then(|slot| u16::try_from(slot).ok()) {
        let x = inner.x + LABEL + slot * width;
        canvas.tint(Rect::new(x, inner.y, width, 1), canvas.role(Role::Selection));
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(height) < all.len());
}

/// A cell: the value, a star where it is the best, and the ratio to the reference.
fn value(
    canvas: &mut Canvas<'_>,
    cell: Rect,
    metric: &Metric,
    value: Option<f64>,
    base: Option<f64>,
    reference: bool,
    best: bool,
) {
    const RATIO: u16 = 8;
    let room = cell.width.saturating_sub(RATIO + 1);
    let Some(value) = value else {
        let dim = canvas.role(Role::Dim);
        canvas.right(cell.x, cell.y, room, "–", dim);
        return;
    };
    let style = canvas.role(if best { Role::Best } else { Role::Value });
    // The label names the unit; where there is room it stands beside the number, too.
    let text = if room >= 14 { metric.show(value) } else { metric.format.show(value) };
    canvas.right(cell.x, cell.y, room, &text, style);
    if best {
        canvas.text(cell.x + room, cell.y, 1, "*", style);
    }
    let ratio = base.filter(|base| *base != 0.0 && !reference).map(|base| value / base);
    if let Some(ratio) = ratio {
        let text = format!("×{}", units::significant(ratio, 3));
        let style = if (ratio - 1.0).abs() < 1e-9 {
            canvas.role(Role::Dim)
        } else {
            super::results::change_style(canvas, metric.better, ratio - 1.0)
        };
        canvas.right(cell.x + room + 1, cell.y, RATIO, &text, style);
    }
}
