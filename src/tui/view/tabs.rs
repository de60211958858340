//! The strip of views below the header, each with the key that shows it.

use ratatui::layout::Rect;

use super::draw::Canvas;
use crate::tui::app::{App, View};
use crate::tui::keymap::Action;
use crate::tui::theme::Role;

/// The views in the order of their keys.
const TABS: [(&str, &str, View); 10] = [
    ("1–4", "Overview", View::Main),
    ("5", "Compare", View::Compare),
    ("6", "Breakdown", View::Breakdown),
    ("v", "Sweep", View::Sweep),
    ("E", "Timeline", View::Timeline),
    ("7", "Advice", View::Advice),
    ("8", "Explain", View::Explain),
    ("9", "Schedule", View::Schedule),
    ("0", "Problems", View::Problems),
    ("M", "Measured", View::Measurements),
];

/// Where each begins and ends.
fn places(app: &App, area: Rect) -> impl Iterator<Item = (u16, u16, &'static str, &'static str, View)> {
    let mut x = area.x + 1;
    // Where nothing was measured there is nothing to show.
    let measured = !app.measured.is_empty() || app.view == View::Measurements;
    let shown = TABS.into_iter().filter(move |(.., view)| *view != View::Measurements || measured);
    shown.map(move |(key, name, view)| {
        let begin = x;
        let width = key.chars().count() + name.chars().count() + 1;
        x += u16::try_from(width).unwrap_or_default() + 3;
        (begin, x - 3, key, name, view)
    })
}

/// What a click on the strip asks for.
#[must_use]
pub fn tab_at(app: &App, area: Rect, column: u16, row: u16) -> Option<Action> {
    if !area.contains((column, row).into()) {
        return None;
    }
    let (.., view) = places(app, area).find(|(begin, end, ..)| (*begin..*end).contains(&column))?;
    Some(Action::Show(view))
}

/// Draws the strip.
pub(super) fn tabs(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let (key_style, dim) = (canvas.role(Role::Key), canvas.role(Role::Hint));
    for (begin, end, key, name, view) in places(app, area) {
        let here = app.view == view;
        let style = if here { canvas.role(Role::TitleFocused) } else { dim };
        let x = canvas.text(begin, area.y, end - begin, key, key_style);
        canvas.text(x + 1, area.y, end.saturating_sub(x + 1), name, style);
        if here {
            canvas.tint(Rect::new(begin - 1, area.y, end - begin + 2, 1), canvas.role(Role::SelectionDim));
        }
    }
}
