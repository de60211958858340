//! Draws the knobs by group, with the source of each value: changed by the user, written in a file, or derived.

use crate::theme::Role;
use crate::tui::app::{Answer, App, Pane, View};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::tables::state::Table;
use crate::tui::views::layout;
use crate::tui::widgets::draw::Canvas;
use ratatui::layout::Rect;

use atlas_core::units;
use atlas_plan::knob::{FileLocation, Knob, Setting, Spec};

/// A row of the pane: a heading, or a knob.
#[derive(Debug, Clone, Copy)]
enum Row {
    Heading(&'static str),
    Knob(&'static Spec),
}

fn rows(app: &App) -> impl Iterator<Item = Row> {
    let mut group = None;
    let grouped = app.knobs_are_grouped();
    app.knobs().flat_map(move |spec| {
        let first = grouped && group.replace(spec.group) != Some(spec.group);
        first.then_some(Row::Heading(spec.group.name())).into_iter().chain(std::iter::once(Row::Knob(spec)))
    })
}

/// Returns the row of a knob.
#[must_use]
pub fn row_of(app: &App, knob: Knob) -> usize {
    rows(app).position(|row| matches!(row, Row::Knob(spec) if spec.knob == knob)).unwrap_or_default()
}

/// Returns the knob of a row.
#[must_use]
pub fn knob_at(app: &App, row: usize) -> Option<Knob> {
    match rows(app).nth(row) {
        Some(Row::Knob(spec)) => Some(spec.knob),
        _ => None,
    }
}

/// Formats a setting of a knob for the pane: a dash if it is not set.
#[must_use]
pub fn show(spec: &Spec, setting: &Setting) -> String {
    match setting {
        Setting::Number(value) if *value == 0.0 && spec.zero_is_unset => "–".to_owned(),
        Setting::Number(value) if value.abs() >= 1e9 => units::si(*value),
        other => other.to_string(),
    }
}

/// Source of the value of a knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Changed by the user.
    Changed,
    /// Stated in a file.
    File,
    /// Derived from other values, or the default.
    Default,
}

/// Returns the source of the value of a knob in the current scenario.
#[must_use]
pub fn source(app: &App, spec: &Spec) -> Source {
    if app.now.setup.overrides.contains_key(&spec.knob) {
        return Source::Changed;
    }
    let (target, workload) = (app.answer.target.as_ref(), app.answer.workload.as_ref());
    let written = match spec.location {
        FileLocation::Workload(path) => workload.is_some_and(|workload| {
            // In plans the micro-batch is next to the global batch.
            let also: &[&str] = if spec.knob == Knob::Microbatch { &["batch", "micro"] } else { path };
            let apart = spec.knob.of_decode_pool().is_some_and(|own| workload.document.at_path(own).is_some());
            apart || workload.document.at_path(path).is_some() || workload.document.at_path(also).is_some()
        }),
        FileLocation::Target(path) => target.is_some_and(|target| target.document.at_path(path).is_some()),
        FileLocation::Nowhere => false,
    };
    if written { Source::File } else { Source::Default }
}

/// Draws the pane.
pub fn knobs(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let focused = app.pane == Pane::Knobs && app.view == View::Main && app.tour.is_none();
    let changed = app.now.setup.overrides.len();
    let remark = match app.tables.filter(Table::Knobs) {
        Some(filter) => format!("{} /{}", app.knobs().count(), filter.text()),
        None if changed > 0 => format!("{changed} changed"),
        None => String::new(),
    };
    let inner = canvas.pane(area, Pane::Knobs, &remark, focused);
    let all: Vec<Row> = rows(app).collect();
    let here = app.selected_knob();
    let scroll = app.scroll[2].min(all.len().saturating_sub(1));
    if all.is_empty() {
        let dim = canvas.role(Role::Dim);
        canvas.text(inner.x + 1, inner.y, inner.width.saturating_sub(2), "no matches; Esc shows all", dim);
    }
    for (line, row) in (0..inner.height).zip(all.iter().skip(scroll)) {
        let y = inner.y + line;
        let heading = match row {
            Row::Heading(name) => Some(*name),
            // The first visible row shows the group of the rows below it.
            Row::Knob(spec) if line == 0 && app.knobs_are_grouped() => Some(spec.group.name()),
            Row::Knob(_) => None,
        };
        match (heading, row) {
            (Some(name), _) => {
                let style = canvas.role(Role::Heading);
                canvas.text(inner.x + 1, y, inner.width.saturating_sub(1), name, style);
            }
            (None, Row::Knob(spec)) => {
                let line = Rect::new(inner.x, y, inner.width, 1);
                knob(app, canvas, line, spec, focused, here == spec.knob);
            }
            _ => {}
        }
    }
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < all.len());
}

/// Width of the units, and minimum width of the pane for showing them.
const UNIT: u16 = 8;
const UNITS_FROM: u16 = 30;

fn width_of(text: &str) -> u16 {
    u16::try_from(text.width()).unwrap_or(u16::MAX)
}

fn knob(app: &App, canvas: &mut Canvas<'_>, area: Rect, spec: &Spec, focused: bool, here: bool) {
    let source = source(app, spec);
    let editing = app.edit.as_ref().filter(|edit| edit.knob == spec.knob);
    let shown = format_value(&app.answer, spec);
    let Columns { right, unit, name: room } = Columns::of(area.width, spec, &shown);
    let role = match source {
        Source::Changed => Role::Changed,
        Source::File => Role::Value,
        Source::Default => Role::Dim,
    };
    let text = canvas.role(if source == Source::Changed { Role::Changed } else { Role::Text });
    let sign = if source == Source::Changed { canvas.glyphs.changed } else { " " };
    canvas.text(area.x, area.y, 1, sign, text);
    let end = canvas.text(area.x + 2, area.y, room, spec.name, text);
    if here && (focused || editing.is_some()) {
        let selection = canvas.role(if focused { Role::Selection } else { Role::SelectionDim });
        canvas.tint(area, selection);
    }
    if let Some(edit) = editing {
        let style = canvas.role(if edit.error.is_some() { Role::Error } else { Role::Input });
        let x = (end + 1).max(area.x + area.width / 2);
        canvas.typed(x, area.y, (area.x + right).saturating_sub(x).max(4), &edit.line, style);
    } else {
        let mut style = canvas.role(role);
        if here && focused {
            style = style.patch(canvas.role(Role::Selection));
        }
        if app.flash.knobs.contains(&spec.knob) {
            style = style.patch(canvas.role(Role::Flash));
        }
        canvas.right(area.x, area.y, right, &shown, style);
    }
    if !unit.is_empty() {
        let mut style = canvas.role(Role::Dim);
        if here && focused {
            style = style.patch(canvas.role(Role::Selection));
        }
        canvas.text(area.x + right + 1, area.y, area.width - right - 1, unit, style);
    }
}

/// Formats the value of a knob.
fn format_value(answer: &Answer, spec: &Spec) -> String {
    answer.scenario.as_ref().map_or_else(|| "–".to_owned(), |scenario| show(spec, &scenario.get(spec.knob)))
}

/// Layout of a row.
struct Columns {
    /// Column of the end of the value.
    right: u16,
    /// Unit after the value.
    unit: &'static str,
    /// Width of the name.
    name: u16,
}

impl Columns {
    /// Returns the layout: the name on the left, the value right-aligned before the units. Numbers stay in their
    /// column, and long names are truncated to make space for them. A long word extends into the column of units.
    fn of(width: u16, spec: &Spec, shown: &str) -> Columns {
        let (name, value) = (width_of(spec.name), width_of(shown));
        let wide = width >= UNITS_FROM;
        let right = width.saturating_sub(if wide { UNIT } else { 1 });
        let is_number = shown.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let fits = 2 + name + 1 + value <= right;
        let (right, unit) = match () {
            () if shown == "–" => (right, ""),
            () if wide && (fits || is_number) => (right, spec.unit),
            () if fits => (right, ""),
            () => (width, ""),
        };
        Columns { right, unit, name: right.saturating_sub(value + 3) }
    }
}

/// Returns the information line for the knob under the cursor.
#[must_use]
pub fn info(app: &App) -> String {
    let knob = app.selected_knob();
    let spec = knob.spec();
    let width = layout::inner(layout::areas(app).pane(Pane::Knobs)).width;
    // The full name if it is truncated in its row.
    let name = match Columns::of(width, spec, &format_value(&app.answer, spec)).name < width_of(spec.name) {
        true => format!("{}: ", spec.name),
        false => String::new(),
    };
    let file = app.answer.files.as_ref().map(|files| show(spec, &files.get(knob))).unwrap_or_default();
    let file = match source(app, spec) {
        Source::Changed => format!(" [was {file}]"),
        // The brightness of the row shows it.
        Source::File | Source::Default => String::new(),
    };
    let pinned = pinned_by(&app.answer, knob);
    let pinned =
        if pinned.is_empty() { String::new() } else { format!(" [overridden in phase {}]", pinned.join(", ")) };
    format!("{name}{}{file}{pinned}", spec.help)
}

/// Returns the phases whose overrides set this knob.
fn pinned_by(answer: &Answer, knob: Knob) -> Vec<&str> {
    let (Some(workload), Some(scenario)) = (&answer.workload, &answer.scenario) else { return Vec::new() };
    let named = workload.phases.iter().zip(&scenario.phases);
    named.filter(|(_, phase)| phase.pinned.contains(knob)).map(|(spec, _)| &*spec.name).collect()
}
