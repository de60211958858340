//! Draws the edits of the scenario as a strip: a sparkline of each key metric over the states that undo and redo move
//! through.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::views::edits::{Point, describe_changes};
use crate::tui::views::layout;
use crate::tui::views::results::tiles;
use crate::tui::widgets::draw::Canvas;
use atlas_plan::estimate::Metric;

/// Number of metrics shown.
const FIGURES: usize = 3;
/// Widths of a metric's name and of its value.
const LABEL: u16 = 13;
const VALUE: u16 = 12;

/// Returns the metrics shown.
fn figures(app: &App, area: Rect) -> Vec<&'static Metric> {
    let mut all = tiles(app, area.width.saturating_sub(2));
    all.truncate(FIGURES);
    all
}

/// Returns the points that fit, including the current scenario, and the first column.
fn visible_points(app: &App, area: Rect) -> (&[Point], u16) {
    let inner = layout::inner(area);
    let first = inner.x + 1 + LABEL + VALUE + 1;
    let room = usize::from(inner.right().saturating_sub(first + 1));
    let all = app.trail();
    let here = all.iter().position(|point| point.step == 0).unwrap_or_default();
    let from = (here + 1 + room / 4).min(all.len()).saturating_sub(room);
    (all.get(from..(from + room).min(all.len())).unwrap_or_default(), first)
}

/// Draws the strip.
pub(in crate::tui) fn history(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let all = app.trail();
    let here = all.iter().position(|point| point.step == 0).unwrap_or_default();
    let back = if here > 0 { ", u back" } else { "" };
    let forward = if here + 1 < all.len() { ", U forward" } else { "" };
    let remark = format!("point {} of {}{back}{forward}", here + 1, all.len());
    let focused = false;
    let inner = canvas.frame(area, "History", &remark, focused);
    let (points, first) = visible_points(app, area);
    let (text, value, dim) = (canvas.role(Role::Text), canvas.role(Role::Value), canvas.role(Role::Dim));
    let figures = figures(app, area);
    for (y, metric) in (inner.y..inner.bottom().saturating_sub(1)).zip(&figures) {
        canvas.text(inner.x + 1, y, LABEL, metric.label, text);
        let now = app.answer.format_metric(metric).unwrap_or_else(|| "–".to_owned());
        canvas.right(inner.x + 1 + LABEL, y, VALUE, &now, value);
        let values = || points.iter().filter_map(|point| point.value(metric)).filter(|value| value.is_finite());
        let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        for (x, point) in (first..).zip(points) {
            let Some(at) = point.value(metric) else { continue };
            let share = if high > low { (at - low) / (high - low) } else { 0.5 };
            let role = match () {
                () if point.step == 0 => Role::Accent,
                () if !point.fits => Role::Bad,
                () => Role::Dim,
            };
            let (glyph, style) = (canvas.glyphs.level(share), canvas.role(role));
            canvas.text(x, y, 1, glyph, style);
        }
    }
    if let Some(at) = points.iter().position(|point| point.step == 0).and_then(|at| u16::try_from(at).ok()) {
        let height = u16::try_from(figures.len()).unwrap_or_default();
        canvas.tint(Rect::new(first + at, inner.y, 1, height), canvas.role(Role::SelectionDim));
    }
    let named = app.points.iter().find(|named| named.setup == app.now.setup).map(|named| named.name.to_string());
    let last = here
        .checked_sub(1)
        .and_then(|before| all.get(before))
        .map(|before| describe_changes(&app.answer, &before.setup, &app.now.setup));
    let said = named.or(last).unwrap_or_else(|| "start; z names a point".to_owned());
    let y = inner.bottom().saturating_sub(1);
    let width = inner.width.saturating_sub(2);
    canvas.text(
        inner.x + 1,
        y,
        width,
        &crate::tui::widgets::draw::fit(&said, usize::from(width), app.glyphs.ellipsis),
        dim,
    );
    debug_assert!(said.width() > 0, "every point is described");
}

/// Returns the number of undo or redo steps to the point at a screen position.
#[must_use]
pub fn step_at(app: &App, column: u16, row: u16) -> Option<i32> {
    let area = layout::areas(app).history;
    if app.view != View::Main || !area.contains((column, row).into()) {
        return None;
    }
    let (points, first) = visible_points(app, area);
    points.get(usize::from(column.checked_sub(first)?)).map(|point| point.step)
}
