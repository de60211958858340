//! Formats changes from the baseline, with colors.

use ratatui::style::Style;

use crate::theme::{Glyphs, Role};
use crate::tui::widgets::draw::Canvas;
use atlas_plan::estimate::{Direction, Metric};

/// Formats a change: an arrow, the sign, and percent or percentage points.
#[must_use]
pub fn change_text(glyphs: &Glyphs, metric: &Metric, before: f64, now: f64) -> String {
    format!("{}{}", if now > before { glyphs.up } else { glyphs.down }, metric.change(before, now))
}

/// Formats a change, and returns it with its style.
pub(in crate::tui) fn change(canvas: &Canvas<'_>, metric: &Metric, before: f64, now: f64) -> (String, Style) {
    let style = match metric.is_same(before, now) {
        true => canvas.role(Role::Dim),
        false => change_style(canvas, metric.better, now - before),
    };
    (change_text(canvas.glyphs, metric, before, now), style)
}

/// Returns the style of an improvement or a deterioration. Arrow and sign convey it without color.
pub(in crate::tui) fn change_style(canvas: &Canvas<'_>, better: Direction, change: f64) -> Style {
    let role = match (better, change > 0.0) {
        (Direction::Higher, true) | (Direction::Lower, false) => Role::Good,
        (Direction::Higher, false) | (Direction::Lower, true) => Role::Bad,
        (Direction::Neutral, _) => Role::Dim,
    };
    canvas.role(role)
}
