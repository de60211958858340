//! The knobs, by group, with what has been turned.

use ratatui::layout::Rect;

use super::draw::Canvas;
use crate::knob::{Knob, Setting, Spec};
use crate::tui::app::{App, Pane, View};
use crate::tui::theme::Role;
use crate::units;

/// A row of the pane: a heading, or a knob by its index.
#[derive(Debug, Clone, Copy)]
enum Row {
    Heading(&'static str),
    Knob(&'static Spec),
}

fn rows(app: &App) -> impl Iterator<Item = Row> {
    let mut group = None;
    app.knobs().flat_map(move |spec| {
        let first = group.replace(spec.group) != Some(spec.group);
        first.then_some(Row::Heading(spec.group.name())).into_iter().chain(std::iter::once(Row::Knob(spec)))
    })
}

/// The row of a knob.
#[must_use]
pub fn row_of(app: &App, knob: Knob) -> usize {
    rows(app).position(|row| matches!(row, Row::Knob(spec) if spec.knob == knob)).unwrap_or_default()
}

/// The knob of a row.
#[must_use]
pub fn knob_at(app: &App, row: usize) -> Option<Knob> {
    match rows(app).nth(row) {
        Some(Row::Knob(spec)) => Some(spec.knob),
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
    let total = rows(app).count();
    let scroll = app.scroll[2];
    let longest = app.knobs().map(|spec| spec.name.len()).max().unwrap_or_default();
    for (line, row) in (0..inner.height).zip(rows(app).skip(scroll)) {
        let y = inner.y + line;
        match row {
            Row::Heading(name) => {
                let style = canvas.role(Role::Heading);
                canvas.text(inner.x + 1, y, inner.width.saturating_sub(1), name, style);
            }
            Row::Knob(spec) => knob(app, canvas, Rect::new(inner.x, y, inner.width, 1), longest, spec, focused),
        }
    }
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < total);
}

fn knob(app: &App, canvas: &mut Canvas<'_>, area: Rect, longest: usize, spec: &Spec, focused: bool) {
    let here = app.knob_here() == spec.knob;
    let turned = app.now.setup.overrides.contains_key(&spec.knob);
    let text = canvas.role(if turned { Role::Changed } else { Role::Text });
    let sign = if turned { canvas.glyphs.changed } else { " " };
    canvas.text(area.x, area.y, 1, sign, text);
    // name | value, flush right | unit 5
    let unit = if area.width >= 30 && longest < 20 { 6 } else { 0 };
    let name = (u16::try_from(longest).unwrap_or(15) + 1).min(area.width * 3 / 4);
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
        // A word that is too long for the column of numbers takes the column of units as well, where there is none.
        let long = spec.unit.is_empty() && shown.chars().count() > usize::from(value);
        canvas.right(x, area.y, if long { value + unit } else { value }, &shown, style);
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
    let (Some(workload), Some(scenario)) = (&app.answer.workload, &app.answer.scenario) else { return Vec::new() };
    let named = workload.phases.iter().zip(&scenario.phases);
    named.filter(|(_, phase)| phase.pinned.pins(knob)).map(|(spec, _)| &*spec.name).collect()
}
