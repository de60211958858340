//! Draws the tornado chart: how much each knob and each hardware parameter changes the metric, largest effect first.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{self, Action};
use crate::tui::views::results::change_style;
use crate::tui::views::sweep::view::{draw_no_answer, remark_or_method};
use crate::tui::views::tornado::current_tornado;
use crate::tui::widgets::draw::{Canvas, wrap};
use atlas_core::units;
use atlas_plan::estimate::Direction;
use atlas_plan::search::sensitivity::{Lever, Outcome, Swing, Tornado};

/// Number of rows above the first lever, which do not scroll.
pub const HEADING: u16 = 2;
/// Width of a change, and minimum width of a bar; narrower bars are left out.
const CHANGE: u16 = 11;
const MIN_BAR: u16 = 10;
/// Minimum width for showing the changed values, and for showing the current values.
const MIN_WIDTH_FOR_TO: u16 = 100;
const MIN_WIDTH_FOR_FROM: u16 = 68;

/// Widths of the name, of the current value, and of a changed one.
struct Columns {
    name: u16,
    from: u16,
    to: u16,
}

impl Columns {
    fn of(row: Rect) -> Columns {
        Columns {
            name: 23.min(row.width.saturating_sub(2 * CHANGE + 1).max(8)),
            from: if row.width >= MIN_WIDTH_FOR_FROM { 12 } else { 0 },
            to: if row.width >= MIN_WIDTH_FOR_TO { 12 } else { 0 },
        }
    }

    /// Returns the area of the bars, between the columns on both sides; empty if there is no space.
    fn track(&self, row: Rect) -> Rect {
        let left = self.name + self.from + self.to + CHANGE + 1;
        let width = row.width.saturating_sub(left + CHANGE + self.to);
        Rect { x: row.x + left, width: if width >= MIN_BAR { width } else { 0 }, ..row }
    }
}

/// Number of levers that can be selected.
#[must_use]
pub fn rows(app: &App) -> usize {
    current_tornado(app).map_or(0, |tornado| tornado.swings.len())
}

/// Draws the view.
pub fn sensitivity(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let query = &app.queries.tornado;
    let title = match current_tornado(app) {
        Some(tornado) => format!("Sensitivity of {}", tornado.metric.label),
        None => "Sensitivity".to_owned(),
    };
    let inner = canvas.view(area, View::Sensitivity, &title, &remark_or_method(&app.answer, query), app.tour.is_none());
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let Some(tornado) = current_tornado(app) else {
        let refused = app.answer.detail().map(|detail| detail.verdict).filter(|verdict| !verdict.fits());
        let advice = keymap::key_of(Action::Show(View::Advice));
        let refused =
            refused.map(|verdict| format!("{}. Press {advice} for changes that make it run.", verdict.describe()));
        return draw_no_answer(&app.answer, refused.as_deref().or(query.problem()), canvas, inner);
    };
    let (dim, heading) = (canvas.role(Role::Dim), canvas.role(Role::Heading));
    let now = format!("{} is {}", tornado.metric.label, tornado.metric.brief(tornado.value));
    canvas.text(inner.x, inner.y, inner.width, &now, canvas.role(Role::Value));
    let explained = "one at a time: knobs ±1 step, hardware ±10 %";
    if usize::from(inner.width) > now.len() + explained.len() + 4 {
        canvas.right(inner.x, inner.y, inner.width, explained, dim);
    }
    let y = inner.y + 1;
    let columns = Columns::of(inner);
    let (track, to) = (columns.track(inner), columns.to);
    if columns.from > 0 {
        canvas.right(inner.x + columns.name, y, columns.from - 1, "current", heading);
    }
    canvas.right(inner.x + columns.name + columns.from, y, to + CHANGE, "down", heading);
    canvas.right(track.right(), y, CHANGE + to, "up", heading);
    let notes = notes(tornado, inner.width);
    let below = u16::try_from(notes.len()).unwrap_or_default().min(inner.height / 3);
    let list = Rect { y: y + 1, height: inner.height.saturating_sub(2 + below), ..inner };
    let reach = tornado.swings.iter().map(|swing| swing.max_change.min(1.0)).fold(0.0, f64::max).max(1e-9);
    for (line, (at, swing)) in tornado.swings.iter().enumerate().skip(app.view_scroll).enumerate() {
        let row = Rect { y: list.y + line as u16, height: 1, ..list };
        if row.y >= list.bottom() {
            break;
        }
        lever(canvas, row, tornado, swing, reach);
        if at == app.view_row {
            let selection = canvas.role(Role::Selection);
            canvas.tint(Rect { width: columns.name, ..row }, selection);
        }
    }
    let end = list.y + u16::try_from(tornado.swings.len()).unwrap_or(list.height).min(list.height);
    for (y, note) in (end + u16::from(end < list.bottom())..inner.bottom()).zip(&notes) {
        canvas.text(inner.x, y, inner.width, note, dim);
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(list.height) < tornado.swings.len());
}

/// Number of rows of the list of levers.
#[must_use]
pub fn page(app: &App, rows: usize) -> usize {
    let width = crate::tui::views::layout::areas(app).body.width.saturating_sub(4);
    let below = current_tornado(app).map_or(0, |tornado| notes(tornado, width).len()).min(rows / 3);
    rows.saturating_sub(usize::from(HEADING) + below)
}

/// Formats notes on levers that cannot run, that are unexpected, or that have no effect.
fn notes(tornado: &Tornado, width: u16) -> Vec<String> {
    let mut notes: Vec<String> = tornado.notes.iter().map(|note| (*note).to_owned()).collect();
    let idle: Vec<&str> = tornado.idle.iter().map(|lever| lever.name()).collect();
    if !idle.is_empty() {
        notes.push(format!("no effect: {}", idle.join(", ")));
    }
    notes.iter().flat_map(|note| wrap(note, usize::from(width))).collect()
}

fn lever(canvas: &mut Canvas<'_>, row: Rect, tornado: &Tornado, swing: &Swing, reach: f64) {
    let (text, dim, value) = (canvas.role(Role::Text), canvas.role(Role::Dim), canvas.role(Role::Value));
    let name = canvas.role(if matches!(swing.lever, Lever::Hardware(_)) { Role::Accent } else { Role::Text });
    let columns = Columns::of(row);
    canvas.text(row.x, row.y, columns.name - 1, swing.lever.name(), name);
    if columns.from > 0 {
        canvas.right(row.x + columns.name, row.y, columns.from - 1, &swing.from, value);
    }
    let track = Rect { y: row.y, height: 1, ..columns.track(row) };
    let middle = track.x + track.width / 2;
    let change = |outcome: &Option<Outcome>| {
        let outcome = outcome.as_ref().filter(|outcome| outcome.failure.is_none())?;
        Some(outcome.value / tornado.value - 1.0).filter(|change| change.is_finite())
    };
    // If both changes are in the same direction, the larger one is drawn.
    let moves = [change(&swing.down), change(&swing.up)].map(Option::unwrap_or_default);
    let sides = [moves.into_iter().fold(0.0, f64::min), moves.into_iter().fold(0.0, f64::max)];
    for change in sides.into_iter().filter(|change| *change != 0.0) {
        let half = 0.5 * (change / reach).clamp(-1.0, 1.0);
        let role = match (tornado.metric.better, change > 0.0) {
            (Direction::Neutral, _) => Role::Bar1,
            (Direction::Higher, true) | (Direction::Lower, false) => Role::Good,
            _ => Role::Bad,
        };
        let style = canvas.role(role);
        canvas.segment(track, (0.5 + half.min(0.0), 0.5 + half.max(0.0)), style);
    }
    if track.width > 0 && canvas.is_blank(middle, row.y) {
        let vertical = canvas.glyphs.border[1];
        canvas.text(middle, row.y, 1, vertical, canvas.role(Role::Border));
    }
    let width = columns.to;
    let left = row.x + columns.name + columns.from;
    // Changes are next to the bars, changed values outside.
    for (outcome, place, change_at) in
        [(&swing.down, left, left + width), (&swing.up, track.right() + CHANGE, track.right())]
    {
        let Some(outcome) = outcome else {
            canvas.right(change_at, row.y, CHANGE, "–", dim);
            continue;
        };
        let (shown, style) = match &outcome.failure {
            Some(_) => ("cannot run".to_owned(), canvas.role(Role::Warn)),
            None if outcome.value == tornado.value => ("±0 %".to_owned(), dim),
            None => {
                let style = change_style(canvas, tornado.metric.better, outcome.value - tornado.value);
                (units::relative(tornado.value, outcome.value), style)
            }
        };
        canvas.right(place, row.y, width, &outcome.to, text);
        canvas.right(change_at, row.y, CHANGE, &shown, style);
    }
}

/// Returns the information line: why the lever cannot be changed, or its description.
#[must_use]
pub fn info(app: &App) -> String {
    let Some(swing) = current_tornado(app).and_then(|tornado| tornado.swings.get(app.view_row)) else {
        return String::new();
    };
    let trouble = [&swing.down, &swing.up].into_iter().flatten().find_map(|outcome| {
        outcome.failure.as_ref().map(|trouble| format!("{} {}: {trouble}", swing.lever.name(), outcome.to))
    });
    trouble.unwrap_or_else(|| match swing.lever {
        Lever::Knob(knob) => format!("{}: {}", knob.name(), knob.spec().help),
        Lever::Hardware(hardware) => format!("{}: ±10 %; Enter explains", hardware.name()),
    })
}
