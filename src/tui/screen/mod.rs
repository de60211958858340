//! Views: pure functions of the state that fill a buffer.

mod footer;
pub mod knobs;
pub mod lists;
#[cfg(test)]
mod small_screens;
pub mod tabs;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::tui::app::stale::DirtyRegion;
pub use crate::tui::dialogs::popup::popup_row;
use crate::tui::dialogs::{help, popup};
use crate::tui::input::keymap::Mode;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::tour;
use crate::tui::views::layout::{self, Areas, MIN_COLUMNS, MIN_ROWS};
use crate::tui::views::{optimum, outlook, overview, race, results, scenarios};
use crate::tui::widgets::draw::{self, Canvas};
use crate::tui::widgets::graphics::{Chart, Graphics};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::{App, Edit, Overlay};
use crate::theme::Role;

/// Returns a canvas with the theme of the application.
fn canvas<'a>(app: &'a App, buffer: &'a mut Buffer) -> Canvas<'a> {
    // Dialogs have no background color, so an image would be visible through them.
    let images = app.graphics == Graphics::Kitty && app.overlay.is_none() && app.glyphs.has_braille();
    Canvas::new(buffer, app.theme().map(AsRef::as_ref), &app.glyphs, images)
}

/// Result of [`redraw`].
#[derive(Debug, Default, PartialEq)]
pub struct Drawn {
    /// Areas that were drawn: the whole screen, or a part of it and the information line.
    pub parts: Vec<Rect>,
    /// Curves to be shown as images. `None` if charts were not redrawn and the images on the screen stay.
    pub charts: Option<Vec<Chart>>,
}

/// Draws the stale parts of the last frame, or everything if `empty`.
pub fn redraw(app: &App, picture: &mut Buffer, empty: bool) -> Drawn {
    let areas = layout::areas(app);
    let part = match app.stale {
        DirtyRegion::View if !empty => areas.body,
        DirtyRegion::Pane(pane) if !empty => areas.pane(pane),
        DirtyRegion::Outlook if !empty => areas.outlook,
        DirtyRegion::Nothing if !empty => return Drawn::default(),
        _ => {
            let screen = picture.area;
            let mut canvas = canvas(app, picture);
            canvas.clear(screen);
            whole(app, &mut canvas, &areas);
            return Drawn { parts: vec![screen], charts: Some(canvas.into_charts()) };
        }
    };
    let mut canvas = canvas(app, picture);
    for part in [part, areas.info] {
        canvas.clear(part);
    }
    match app.stale {
        DirtyRegion::Pane(pane) => overview::draw_pane(app, &mut canvas, pane, &areas),
        DirtyRegion::Outlook if areas.outlook.height > 2 => outlook::view::outlook(app, &mut canvas, areas.outlook),
        DirtyRegion::Outlook => {}
        _ => (app.view.spec().draw)(app, &mut canvas, areas.body),
    }
    info(app, &mut canvas, areas.info);
    // Of the panes of the overview, only the outlook has a chart.
    let charts = matches!(app.stale, DirtyRegion::View | DirtyRegion::Outlook).then(|| canvas.into_charts());
    Drawn { parts: vec![part, areas.info], charts }
}

/// Draws the whole screen.
pub fn view(app: &App, buffer: &mut Buffer) {
    let mut canvas = canvas(app, buffer);
    canvas.clear(Rect::new(0, 0, app.size.0, app.size.1));
    whole(app, &mut canvas, &layout::areas(app));
}

/// Draws the whole screen, which must have been cleared.
fn whole(app: &App, canvas: &mut Canvas<'_>, areas: &Areas) {
    if !layout::fits(app.size) {
        too_small(app.size, canvas);
        return;
    }
    header(app, canvas, areas.header);
    if areas.scenarios.height > 0 {
        scenarios::view::strip(app, canvas, areas.scenarios);
    }
    if areas.tabs.height > 0 {
        tabs::tabs(app, canvas, areas.tabs);
    }
    (app.view.spec().draw)(app, canvas, areas.body);
    if app.tour.is_some() {
        tour::view::caption(app, canvas, areas.caption);
    }
    info(app, canvas, areas.info);
    footer::footer(app, canvas, areas.footer);
    match &app.overlay {
        Some(Overlay::Help { .. }) => help::help(app, canvas),
        Some(Overlay::Finder(finder)) => popup::finder(app, canvas, finder),
        Some(Overlay::Palette(palette)) => popup::palette(app, canvas, palette),
        Some(Overlay::WriteBack { plan, scroll }) => popup::write_back(app.size, canvas, plan, *scroll),
        Some(Overlay::Demos { cursor }) => popup::demos(app, canvas, *cursor),
        Some(Overlay::Form(form)) => crate::tui::dialogs::form::view::draw(app.size, canvas, form),
        Some(Overlay::Goal(seek)) => crate::tui::dialogs::goal::draw(app, canvas, seek),
        Some(Overlay::Assistant) => crate::tui::views::assistant::view::draw(app, canvas),
        Some(Overlay::Detect) => crate::tui::dialogs::detecting::draw(app, canvas),
        Some(Overlay::Export(export)) => popup::export(app.size, canvas, export),
        None => {}
    }
}

fn too_small(size: (u16, u16), canvas: &mut Canvas<'_>) {
    let (columns, rows) = size;
    let lines = [
        format!("{columns}x{rows} is too small"),
        format!("atlas needs {MIN_COLUMNS}x{MIN_ROWS}"),
        "q quits".to_owned(),
    ];
    let top = rows.saturating_sub(3) / 2;
    for (y, line) in (top..rows).zip(&lines) {
        let width = u16::try_from(line.chars().count()).unwrap_or_default();
        canvas.text(columns.saturating_sub(width) / 2, y, columns, line, canvas.role(Role::Warn));
    }
}

/// Draws the header: the name of the program, the scenario, and what needs attention.
fn header(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let brand = canvas.role(Role::Brand);
    let mut x = canvas.text(area.x, area.y, area.width, " atlas ", brand) + 1;
    let mut notes = Vec::new();
    let marked = app.now.marks.len();
    if marked > 0 {
        notes.push((Role::Mark, format!("{marked} marked")));
    }
    if app.answer.outcome.is_err() {
        notes.push((Role::Error, "no estimate".to_owned()));
    } else if !app.answer.fits() {
        let words = app.answer.detail().map_or("", |detail| results::refusal(&detail.verdict));
        notes.push((Role::Error, format!("{} {words}", app.glyphs.cross)));
    }
    let changed = app.now.setup.overrides.len();
    if changed > 0 {
        notes.push((Role::Changed, format!("{changed} changed")));
    }
    if !app.problems.is_empty() {
        let role = if app.problems.has_errors() { Role::Error } else { Role::Warn };
        notes.push((role, app.problems.summary()));
    }
    let width: u16 = notes.iter().map(|(_, text)| u16::try_from(text.chars().count() + 2).unwrap_or_default()).sum();
    let mut right = area.right().saturating_sub(width);
    let room = right.saturating_sub(x + 1);
    let title = canvas.role(Role::Title);
    let setup = &app.now.setup;
    x = canvas.text(x, area.y, room, &format!("{} × {}", setup.target, setup.workload), title);
    let about = match (&app.answer.scenario, &app.answer.workload) {
        (Some(scenario), Some(workload)) => {
            format!(
                "  {}, {} accelerators, {}",
                workload.shape.mode.name(),
                scenario.accelerators(),
                scenario.engine.name()
            )
        }
        _ => String::new(),
    };
    let dim = canvas.role(Role::Dim);
    let room = right.saturating_sub(x + 1);
    if usize::from(room) >= about.len() {
        canvas.text(x, area.y, room, &about, dim);
    }
    for (role, text) in notes {
        let style = canvas.role(role);
        right = canvas.text(right, area.y, area.right() - right, &text, style) + 2;
    }
}

/// Returns a note or an error, otherwise information on the item under the cursor.
fn info_text(app: &App) -> (Role, Cow<'_, str>) {
    if let Some(prompt) = &app.prompt {
        return (Role::Error, prompt.error.as_deref().unwrap_or_default().into());
    }
    let mode = app.mode();
    let bound = app.optimizer.typing.as_ref().filter(|_| mode == Mode::Bounding);
    match (&app.edit, &app.status) {
        (Some(Edit { error: Some(error), .. }), _) => (Role::Error, error.into()),
        _ if app.race.typing.as_ref().is_some_and(|(_, error)| error.is_some()) && mode == Mode::Asking => {
            (Role::Warn, race::view::info(app).into())
        }
        _ if bound.is_some_and(|(_, error)| error.is_some()) => (Role::Error, optimum::view::info(app).into()),
        (_, Some(status)) => (if status.error { Role::Error } else { Role::Good }, (&status.text).into()),
        _ => (Role::Dim, about(app, mode).into()),
    }
}

/// Whether the information takes more than one line.
#[must_use]
pub fn is_multiline(app: &App) -> bool {
    needs_more_lines(app, &info_text(app).1)
}

fn needs_more_lines(app: &App, text: &str) -> bool {
    // Most texts are short enough in bytes, which is cheap to check.
    let wide = text.len() + 2 > usize::from(app.size.0) && text.width() + 2 > usize::from(app.size.0);
    wide || (app.prompt.is_some() && !text.is_empty())
}

/// Maximum lines of information; errors may be longer.
const ABOUT_LINES: usize = 2;

/// Draws the information line. A longer text extends upward over the body, so that the remedy, which comes last, is
/// never cut off.
fn info(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let width = area.width.saturating_sub(2);
    let (role, text) = info_text(app);
    let style = canvas.role(role);
    if !needs_more_lines(app, &text) {
        canvas.text(area.x + 1, area.y, width, &text, style);
    } else {
        let mut lines = draw::wrap(&text, usize::from(width));
        if role == Role::Dim && lines.len() > ABOUT_LINES {
            lines.truncate(ABOUT_LINES);
            lines.last_mut().into_iter().for_each(|last| last.push_str(canvas.glyphs.ellipsis));
        }
        // The prompt keeps the last line.
        let bottom = area.bottom() - u16::from(app.prompt.is_some());
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(area.y / 2);
        let above = Rect { y: bottom - height, height, ..area };
        canvas.clear(above);
        for (y, line) in (above.y..bottom).zip(&lines) {
            canvas.text(area.x + 1, y, width, line, style);
        }
    }
    if let Some(prompt) = &app.prompt {
        popup::prompt(canvas, area, prompt);
    }
}

fn about(app: &App, mode: Mode) -> String {
    match mode {
        Mode::Editing | Mode::Asking | Mode::Bounding => (app.view.spec().info)(app),
        mode if mode.is_screen() => (app.view.spec().info)(app),
        _ => String::new(),
    }
}
