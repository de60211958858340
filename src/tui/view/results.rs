//! The results: every figure with its change against the baseline.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::draw::{Canvas, wrap};
use crate::engine::notes::notes;
use crate::estimate::{Better, Format, Metric};
use crate::tui::app::{App, Pane, View};
use crate::tui::theme::Role;
use crate::units;

/// A row of the pane.
#[derive(Debug, Clone, PartialEq)]
enum Row {
    Heading(&'static str),
    Figure(&'static Metric),
    Blank,
    Complaint(String),
    Note(String),
}

/// Rows of the figures alone.
#[must_use]
pub fn figure_rows(app: &App) -> usize {
    let mut sections: Vec<_> = app.answer.metrics().map(|metric| metric.section).collect();
    let figures = sections.len();
    sections.dedup();
    figures + sections.len()
}

/// All rows in a pane whose inside has this width.
#[must_use]
pub fn rows(app: &App, width: u16) -> usize {
    build(app, width).len()
}

fn build(app: &App, width: u16) -> Vec<Row> {
    let width = usize::from(width.saturating_sub(2));
    let mut rows = Vec::new();
    if let Err(complaint) = &app.answer.outcome {
        rows.extend(wrap(complaint, width).into_iter().map(Row::Complaint));
        rows.push(Row::Blank);
    }
    let mut section = None;
    for metric in app.answer.metrics() {
        if section != Some(metric.section) {
            rows.push(Row::Heading(metric.section.name()));
            section = Some(metric.section);
        }
        rows.push(Row::Figure(metric));
    }
    let remarks = app.answer.scenario.as_ref().map(notes).unwrap_or_default();
    for (i, remark) in remarks.iter().enumerate() {
        if i == 0 {
            rows.push(Row::Heading("what to know"));
        }
        for (j, line) in wrap(remark, width.saturating_sub(2)).into_iter().enumerate() {
            rows.push(Row::Note(format!("{} {line}", if j == 0 { app.glyphs.bullet } else { " " })));
        }
    }
    rows
}

/// The baseline in words.
#[must_use]
pub fn baseline_name(app: &App) -> String {
    match &app.now.baseline {
        None => "files".to_owned(),
        Some(setup) if setup.target != app.now.setup.target => setup.target.to_string(),
        Some(setup) if setup.workload != app.now.setup.workload => setup.workload.to_string(),
        Some(_) => "baseline".to_owned(),
    }
}

/// Draws the pane.
pub fn results(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let focused = app.pane == Pane::Results && app.view == View::Main && app.tour.is_none();
    let remark = format!("{} vs {}", canvas.glyphs.delta, baseline_name(app));
    let inner = canvas.frame(area, "4 Results", &remark, focused);
    let all = build(app, inner.width);
    let scroll = app.scroll[3].min(all.len().saturating_sub(1));
    for (line, row) in (0..inner.height).zip(all.iter().skip(scroll)) {
        let row_area = Rect::new(inner.x + 1, inner.y + line, inner.width.saturating_sub(2), 1);
        let whole = |canvas: &mut Canvas<'_>, text: &str, role: Role| {
            let style = canvas.role(role);
            canvas.text(row_area.x, row_area.y, row_area.width, text, style);
        };
        match row {
            Row::Heading(name) => whole(canvas, name, Role::Heading),
            Row::Complaint(text) => whole(canvas, text, Role::Error),
            Row::Note(text) => whole(canvas, text, Role::Dim),
            Row::Figure(metric) => figure(app, canvas, row_area, metric),
            Row::Blank => {}
        }
    }
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < all.len());
}

/// Columns: label, value, absolute change, relative change; with room also a bar for shares.
fn figure(app: &App, canvas: &mut Canvas<'_>, area: Rect, metric: &'static Metric) {
    const ABSOLUTE: u16 = 11;
    const RELATIVE: u16 = 10;
    let (label, value) = if area.width >= 51 { (16, 13) } else { (14, 12) };
    let text = canvas.role(Role::Text);
    canvas.text(area.x + 1, area.y, label - 1, metric.label, text);
    let now = app.answer.value(metric);
    let shown = now.map_or_else(|| "–".to_owned(), |now| metric.show(now));
    let role = if app.flash.metrics.contains(metric.name) { Role::Flash } else { Role::Value };
    let style = canvas.role(role);
    let mut x = area.x + label;
    canvas.right(x, area.y, value, &shown, style);
    x += value;
    let (Some(now), before) = (now, app.baseline.value(metric)) else { return };
    if let Some(before) = before.filter(|before| (now - before).abs() > 1e-9 * before.abs()) {
        let style = change_style(canvas, metric.better, now - before);
        let arrow = if now > before { canvas.glyphs.up } else { canvas.glyphs.down };
        canvas.right(x, area.y, ABSOLUTE, &signed(metric, now - before), style);
        x += ABSOLUTE;
        canvas.right(x, area.y, RELATIVE.min(area.right().saturating_sub(x)), &units::relative(before, now), style);
        x += RELATIVE;
        canvas.text(x + 1, area.y, 1.min(area.right().saturating_sub(x + 1)), arrow, style);
    } else {
        x += ABSOLUTE + RELATIVE;
    }
    let x = x + 4;
    let room = area.right().saturating_sub(x);
    if metric.format == Format::Percent && room >= 8 {
        let style = canvas.role(Role::Bar1);
        let bar = canvas.glyphs.bar(now, usize::from(room.min(20)));
        canvas.text(x, area.y, room, &bar, style);
    }
}

/// A change with its sign; its unit stands beside the value.
fn signed(metric: &Metric, change: f64) -> String {
    let text = match metric.format {
        // The difference of two shares is in points; its relative change stands beside it in per cent.
        Format::Percent => format!("{:.1} pt", change.abs() * 100.0),
        // Three digits without the sign of the currency: small prices fit, and it stands beside the value.
        Format::Usd if change.abs() < 1.0 => units::significant(change.abs(), 3),
        Format::Usd if change.abs() < 10_000.0 => format!("{:.2}", change.abs()),
        Format::Usd => units::si(change.abs()),
        format => format.show(change.abs()),
    };
    format!("{}{text}", if change < 0.0 { "-" } else { "+" })
}

/// Better is one colour, worse another; the arrow and the sign say it too.
pub(super) fn change_style(canvas: &Canvas<'_>, better: Better, change: f64) -> Style {
    let role = match (better, change > 0.0) {
        (Better::Higher, true) | (Better::Lower, false) => Role::Good,
        (Better::Higher, false) | (Better::Lower, true) => Role::Bad,
        (Better::Neutral, _) => Role::Dim,
    };
    canvas.role(role)
}
