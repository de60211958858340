//! What a figure is: its definition, its value, how far it can be trusted.

use ratatui::layout::Rect;

use super::draw::{Canvas, wrap};
use crate::tui::app::App;
use crate::tui::layout;
use crate::tui::theme::Role;

/// What there is to say, line by line.
fn build(app: &App, width: u16) -> Vec<(Role, String)> {
    let Some(metric) = app.figure_here() else { return Vec::new() };
    let mut lines = vec![(Role::Heading, metric.label.to_owned())];
    let value = app.answer.value(metric).map_or_else(|| "–".to_owned(), |value| metric.show(value));
    lines.push((Role::Value, value));
    if let (Some(scenario), Ok(estimate)) = (&app.answer.scenario, &app.answer.outcome)
        && let Some((low, high)) = metric.interval(estimate, scenario)
    {
        let text = format!("nine measurements of ten lie between {} and {}", metric.show(low), metric.show(high));
        lines.push((Role::Dim, text));
    }
    let width = usize::from(width.saturating_sub(4));
    lines.extend(wrap(metric.help, width).into_iter().map(|line| (Role::Text, line)));
    lines
}

/// How many lines there are.
#[must_use]
pub fn rows(app: &App) -> usize {
    build(app, layout::areas(app).body.width).len()
}

/// The line under the cursor.
#[must_use]
pub fn text_here(app: &App) -> Option<String> {
    build(app, layout::areas(app).body.width).get(app.view_row).map(|(_, text)| text.clone())
}

/// What the line of information says.
#[must_use]
pub fn info(_: &App) -> String {
    "the figure under the cursor of the results".to_owned()
}

/// Folds or unfolds what is under the cursor.
pub fn fold(_: &mut App) {}

/// Draws the view.
pub fn explain(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let inner = canvas.frame(area, "8 Explain", "", app.tour.is_none());
    for (y, (role, line)) in (inner.y..inner.bottom()).zip(build(app, area.width).iter().skip(app.view_scroll)) {
        let style = canvas.role(*role);
        canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), line, style);
    }
}
