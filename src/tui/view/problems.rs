//! Complaints about the files, in full.

use ratatui::layout::Rect;

use super::draw::{Canvas, wrap};
use crate::spec::{Diagnostic, Severity};
use crate::tui::app::App;
use crate::tui::layout;
use crate::tui::tables::Table;
use crate::tui::theme::Role;

fn lines(problem: &Diagnostic, width: u16) -> Vec<(Role, String)> {
    let width = usize::from(width.saturating_sub(4));
    let role = if problem.severity == Severity::Error { Role::Error } else { Role::Warn };
    let path = if problem.path.is_empty() { String::new() } else { format!("  {}", problem.path) };
    let mut lines = vec![(role, format!("{} {}{path}", problem.severity.name(), problem.location()))];
    lines.extend(wrap(&problem.message, width).into_iter().map(|line| (Role::Text, format!("  {line}"))));
    if let Some(help) = &problem.help {
        lines.extend(wrap(help, width).into_iter().map(|line| (Role::Good, format!("  {line}"))));
    }
    lines
}

/// All lines of the view.
fn build(app: &App, width: u16) -> Vec<(Role, String)> {
    let shown = app.problems.iter().filter(|problem| app.asks_for_problem(problem));
    shown.flat_map(|problem| lines(problem, width)).collect()
}

/// How many lines there are.
#[must_use]
pub fn rows(app: &App) -> usize {
    build(app, layout::areas(app).body.width).len()
}

/// Draws the view.
pub fn problems(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let shown = app.problems.iter().filter(|problem| app.asks_for_problem(problem)).count();
    let remark = app.filter_remark(Table::Problems, shown, app.problems.iter().count());
    let remark = remark.unwrap_or_else(|| app.problems.summary());
    let inner = canvas.frame(area, "0 Problems", &remark, app.tour.is_none());
    let all = build(app, area.width);
    if all.is_empty() {
        let style = canvas.role(Role::Good);
        let text = if app.problems.is_empty() { "every file is good" } else { "nothing matches; Esc shows all" };
        canvas.text(inner.x + 1, inner.y, inner.width, text, style);
    }
    for (line, (role, text)) in (0..inner.height).zip(all.iter().skip(app.view_scroll)) {
        let style = canvas.role(*role);
        canvas.text(inner.x + 1, inner.y + line, inner.width.saturating_sub(2), text, style);
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(inner.height) < all.len());
}
