//! Draws the diagnostics of the files, in full.

pub(in crate::tui) mod export;

use ratatui::layout::Rect;

use super::{Spec, Tab};
use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{Action, Keys, SharedKeys, bind};
use crate::tui::tables::state::Table;
use crate::tui::update::files::open_editor;
use crate::tui::views::layout;
use crate::tui::widgets::draw::{Canvas, wrap};
use atlas_document::{Diagnostic, Severity};

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Problems",
    tab: Tab { place: 19, name: "Problems", short: "Prob" },
    synonyms: "problems errors warnings check",
    opening: Some(bind(&["!", "vp"], Action::Show(View::Problems), "problems in the files", Some("problems"))),
    keys: &[Keys::Own(&[
        bind(&["Enter"], Action::Accept, "open the file at this line in $EDITOR", Some("edit file")),
        bind(&["o"], Action::Sort, "cycle sort column (last: file order)", Some("sort")),
    ])],
    shared_keys: &[SharedKeys::Filter],
    is_empty: |app| app.problems.is_empty(),
    table: |_| Some(Table::Problems),
    rows,
    lines_of,
    draw: problems,
    info: |app| match app.problems.is_empty() {
        true => String::new(),
        false => "entries with errors keep their last valid content; Enter opens the file at the error".to_owned(),
    },
    document: |app, _| Some(export::document(app)),
    // The view shows the problems in full.
    opened: |app, _| app.status = None,
    works: |app, action| !matches!(action, Action::Accept | Action::Sort) || !app.problems_shown().is_empty(),
    accept: open_editor,
    ..Spec::DEFAULT
};

fn lines(problem: &Diagnostic, width: u16) -> Vec<(Role, String)> {
    // The frame, a margin on either side, and the indentation.
    let width = usize::from(width.saturating_sub(6));
    let role = if problem.severity == Severity::Error { Role::Error } else { Role::Warn };
    let path = if problem.path.is_empty() { String::new() } else { format!("  {}", problem.path) };
    let mut lines = vec![(role, format!("{} {}{path}", problem.severity.name(), problem.location()))];
    lines.extend(wrap(&problem.message, width).into_iter().map(|line| (Role::Text, format!("  {line}"))));
    if let Some(help) = &problem.help {
        lines.extend(wrap(help, width).into_iter().map(|line| (Role::Good, format!("  {line}"))));
    }
    lines
}

/// Number of diagnostics shown.
#[must_use]
fn rows(app: &App) -> usize {
    app.problems_shown().len()
}

/// Returns the first and last line of a diagnostic.
#[must_use]
fn lines_of(app: &App, row: usize) -> Option<(usize, usize)> {
    let width = layout::areas(app).body.width;
    let shown = app.problems_shown();
    let first = shown.iter().take(row).map(|problem| lines(problem, width).len()).sum::<usize>();
    Some((first, first + shown.get(row).map_or(0, |problem| lines(problem, width).len().saturating_sub(1))))
}

/// Draws the view.
fn problems(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let shown = app.problems_shown();
    let remark = app.filter_remark(Table::Problems, shown.len(), app.problems.iter().count());
    let summary = || if app.problems.is_empty() { String::new() } else { app.problems.summary() };
    let remark = remark.unwrap_or_else(summary);
    let inner = canvas.view(area, View::Problems, "Problems", &remark, app.tour.is_none());
    if shown.is_empty() {
        let style = canvas.role(Role::Good);
        let none = "No problems: all files are valid. Files are reloaded when they change.";
        let text = if app.problems.is_empty() { none } else { "no matches; Esc shows all" };
        canvas.message(inner, text, style);
    }
    let all = shown.iter().enumerate().flat_map(|(row, problem)| {
        lines(problem, area.width).into_iter().enumerate().map(move |(line, text)| (row, line == 0, text))
    });
    let all: Vec<(usize, bool, (Role, String))> = all.collect();
    for (line, (row, first, (role, text))) in (0..inner.height).zip(all.iter().skip(app.view_scroll)) {
        let style = canvas.role(*role);
        let y = inner.y + line;
        canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), text, style);
        if *row == app.view_row && *first {
            canvas.tint(Rect { y, height: 1, ..inner }, canvas.role(Role::Selection));
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(inner.height) < all.len());
}
