//! Draws the last line: the keys that have an effect, most useful first.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{App, Pane};
use crate::tui::input::keymap::{self, Action, Mode};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::widgets::draw::Canvas;

/// Maximum number of keys in the footer, in addition to the one for help.
const HINTS: usize = 5;

/// Whether an action would have an effect now. The result must not depend on the row under the cursor, because moving the
/// cursor only repaints the view.
fn works(app: &App, action: Action) -> bool {
    match (app.mode(), action) {
        // The key of the current view would change nothing.
        (_, Action::Show(view)) => view != app.view,
        (Mode::Results, Action::Goal | Action::Accept) => app.answer.outcome.is_ok(),
        (Mode::View(view), _) => (view.spec().works)(app, action),
        _ => true,
    }
}

/// Describes what a key does.
fn hint(app: &App, row: &keymap::Binding) -> Option<&'static str> {
    match app.mode() {
        Mode::View(view) => (view.spec().hint)(app, row),
        _ => row.hint,
    }
}

/// Draws all keys that can follow the first one, over the lines above if one line is too short.
fn second_keys(app: &App, canvas: &mut Canvas<'_>, area: Rect, first: &str) {
    let (bright, dim) = (canvas.role(Role::Key), canvas.role(Role::Hint));
    let second = |row: &keymap::Binding| row.keys.iter().copied().find_map(keymap::second_key);
    let hints = keymap::rows(app.mode()).filter_map(|row| Some((second(row)?, row.hint?)));
    let mut lines = vec![Vec::new()];
    let mut x = 0;
    for (key, hint) in hints.chain([("Esc", "cancel")]) {
        let width = key.width() + hint.width() + 3;
        if x + width > usize::from(area.width.saturating_sub(3)) {
            lines.push(Vec::new());
            x = 0;
        }
        x += width;
        lines.last_mut().into_iter().for_each(|line| line.push((key, hint)));
    }
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(area.bottom());
    let above = Rect { y: area.bottom() - height, height, ..area };
    canvas.clear(above);
    canvas.text(above.x + 1, above.y, above.width, first, bright);
    for (y, line) in (above.y..above.bottom()).zip(lines) {
        let mut x = above.x + 3;
        for (key, hint) in line {
            x = canvas.text(x, y, above.width, key, bright);
            x = canvas.text(x + 1, y, above.width, hint, dim) + 2;
        }
    }
}

/// Draws the first keys of the table of the mode; help is always last.
pub(super) fn footer(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    if let Some(first) = app.mode().first_key() {
        return second_keys(app, canvas, area, first);
    }
    let useful = keymap::rows(app.mode()).filter(|row| works(app, row.action));
    let alone = |row: &keymap::Binding| row.keys.iter().copied().find(|key| keymap::second_key(key).is_none());
    let hints: Vec<(&str, &str)> =
        useful.filter_map(|row| Some((app.glyphs.key(alone(row)?), hint(app, row)?))).collect();
    let width =
        |(key, hint): &(&str, &str)| u16::try_from(key.chars().count() + hint.chars().count() + 3).unwrap_or_default();
    let (last, first): (Vec<_>, Vec<_>) = hints.into_iter().partition(|(key, _)| *key == "?");
    let mut room = area.width.saturating_sub(1 + last.iter().map(width).sum::<u16>());
    let fitting = first.into_iter().take(HINTS).take_while(|hint| {
        let fits = width(hint) <= room;
        room = room.saturating_sub(width(hint));
        fits
    });
    let mut x = area.x + 1;
    let shown: Vec<_> = fitting.collect();
    for (key, hint) in shown.into_iter().chain(last) {
        let (bright, dim) = (canvas.role(Role::Key), canvas.role(Role::Hint));
        x = canvas.text(x, area.y, area.width, key, bright);
        x = canvas.text(x + 1, area.y, area.width, hint, dim) + 2;
    }
    if app.pane == Pane::Targets && app.mode() == Mode::Targets && x + 20 < area.right() {
        let name = app.theme().map_or("", |theme| theme.name());
        let dim = canvas.role(Role::Dim);
        canvas.right(area.right() - 18, area.y, 17, name, dim);
    }
}
