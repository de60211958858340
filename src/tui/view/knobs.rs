//! The knobs, by group, with what has been turned.

use ratatui::layout::Rect;

use super::draw::Canvas;
use crate::knob::{KNOBS, Knob, Setting, Spec};
use crate::tui::app::{App, Pane, View};
use crate::tui::theme::Role;
use crate::units;

/// A row of the pane: a heading, or a knob by its index.
#[derive(Debug, Clone, Copy)]
enum Row {
    Heading(&'static str),
    Knob(usize, &'static Spec),
}

fn rows() -> impl Iterator<Item = Row> {
    KNOBS.iter().enumerate().flat_map(|(index, spec)| {
        let first =
            index.checked_sub(1).and_then(|before| KNOBS.get(before)).is_none_or(|before| before.group != spec.group);
        first.then_some(Row::Heading(spec.group.name())).into_iter().chain(std::iter::once(Row::Knob(index, spec)))
    })
}

/// The row of a knob.
#[must_use]
pub fn row_of(knob: usize) -> usize {
    rows().position(|row| matches!(row, Row::Knob(index, _) if index == knob)).unwrap_or_default()
}

/// The knob of a row.
#[must_use]
pub fn knob_at(row: usize) -> Option<usize> {
    match rows().nth(row) {
        Some(Row::Knob(index, _)) => Some(index),
        _ => None,
    }
}

/// A setting as the pane shows it.
#[must_use]
pub fn show(setting: &Setting) -> String {
    match setting {
        Setting::Number(value) if value.abs() >= 1e9 => units::si(*value),
        other => other.to_string(),
    }
}

/// Draws the pane.
pub fn knobs(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let focused = app.pane == Pane::Knobs && app.view == View::Main && app.tour.is_none();
    let turned = app.now.setup.overrides.len();
    let remark = if turned > 0 { format!("{turned} changed") } else { String::new() };
    let inner = canvas.frame(area, "3 Knobs", &remark, focused);
    let total = rows().count();
    let scroll = app.scroll[2];
    for (line, row) in (0..inner.height).zip(rows().skip(scroll)) {
        let y = inner.y + line;
        match row {
            Row::Heading(name) => {
                let style = canvas.role(Role::Heading);
                canvas.text(inner.x + 1, y, inner.width.saturating_sub(1), name, style);
            }
            Row::Knob(index, spec) => knob(app, canvas, Rect::new(inner.x, y, inner.width, 1), index, spec, focused),
        }
    }
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < total);
}

fn knob(app: &App, canvas: &mut Canvas<'_>, area: Rect, index: usize, spec: &Spec, focused: bool) {
    let here = app.knob == index;
    let turned = app.now.setup.overrides.contains_key(&spec.knob);
    let text = canvas.role(if turned { Role::Changed } else { Role::Text });
    let sign = if turned { canvas.glyphs.changed } else { " " };
    canvas.text(area.x, area.y, 1, sign, text);
    // name 15 | value, flush right | unit 5
    let unit = if area.width >= 30 { 6 } else { 0 };
    let name = 15.min(area.width / 2 + 1);
    let value = area.width.saturating_sub(2 + name + unit + 1);
    canvas.text(area.x + 2, area.y, name, spec.name, text);
    let x = area.x + 2 + name;
    let editing = app.edit.as_ref().filter(|edit| edit.knob == spec.knob);
    if here {
        let role = if focused { Role::Selection } else { Role::SelectionDim };
        if focused || editing.is_some() {
            canvas.tint(area, canvas.role(role));
        }
    }
    if let Some(edit) = editing {
        let style = canvas.role(if edit.error.is_some() { Role::Error } else { Role::Input });
        canvas.typed(x, area.y, value, &edit.line, style);
    } else {
        let shown =
            app.answer.scenario.as_ref().map_or_else(|| "–".to_owned(), |scenario| show(&scenario.get(spec.knob)));
        let role = if turned { Role::Changed } else { Role::Value };
        let mut style = canvas.role(role);
        if here && focused {
            style = style.patch(canvas.role(Role::Selection));
        }
        if app.flash.knobs.contains(&spec.knob) {
            style = style.patch(canvas.role(Role::Flash));
        }
        canvas.right(x, area.y, value, &shown, style);
    }
    if unit > 0 {
        let mut style = canvas.role(Role::Dim);
        if here && focused {
            style = style.patch(canvas.role(Role::Selection));
        }
        canvas.text(x + value + 1, area.y, unit, spec.unit, style);
    }
}

/// What the line of information says about the knob under the cursor.
#[must_use]
pub fn info(app: &App) -> String {
    let knob = app.knob_here();
    let spec = knob.spec();
    let file = app.answer.files.as_ref().map(|files| show(&files.get(knob)));
    let file = match file.filter(|_| app.now.setup.overrides.contains_key(&knob)) {
        Some(file) => format!(" [file: {file}]"),
        None => String::new(),
    };
    let pinned = pinned_by(app, knob);
    let pinned = if pinned.is_empty() { String::new() } else { format!(" [phase {} sets its own]", pinned.join(", ")) };
    format!("{}: {}{file}{pinned}", spec.name, spec.help)
}

/// The phases whose overrides set this knob's number themselves.
fn pinned_by(app: &App, knob: Knob) -> Vec<&str> {
    let Some(workload) = &app.answer.workload else { return Vec::new() };
    let pins = |phase: &&crate::spec::workload::PhaseSpec| match knob {
        Knob::Tp => phase.pinned.tp,
        Knob::Pp => phase.pinned.pp,
        Knob::Dp => phase.pinned.dp,
        Knob::Prompt => phase.pinned.prompt,
        Knob::Generate => phase.pinned.generate,
        _ => false,
    };
    workload.phases.iter().filter(pins).map(|phase| &*phase.name).collect()
}
