//! The strip of views below the header, each with the key that shows it.

use ratatui::layout::Rect;

use super::draw::Canvas;
use crate::tui::app::{App, View};
use crate::tui::keymap::Action;
use crate::tui::theme::Role;

/// The views in the order of their keys.
const TABS: [(&str, &str, View); 13] = [
    ("1–4", "Overview", View::Main),
    ("5", "Compare", View::Compare),
    ("6", "Breakdown", View::Breakdown),
    ("v", "Sweep", View::Sweep),
    ("F", "Frontier", View::Frontier),
    ("E", "Timeline", View::Timeline),
    ("7", "Advice", View::Advice),
    ("8", "Explain", View::Explain),
    ("9", "Schedule", View::Schedule),
    ("0", "Problems", View::Problems),
    ("i", "Sensitivity", View::Sensitivity),
    ("S", "Optimise", View::Optimum),
    ("M", "Measured", View::Measurements),
];

/// Where each begins and ends. Where nothing was measured there is nothing to show of it; where not all have room, views without a number make way, but for the one that is shown.
fn places(app: &App, area: Rect) -> impl Iterator<Item = (u16, u16, &'static str, &'static str, View)> {
    let width = |(key, name, _): &(&str, &str, View)| key.chars().count() + name.chars().count() + 1;
    let mut tabs: Vec<(&'static str, &'static str, View)> = TABS.to_vec();
    let shown = app.view;
    if app.measured.is_empty() && shown != View::Measurements {
        tabs.retain(|(.., view)| *view != View::Measurements);
    }
    let need = |tabs: &[(&str, &str, View)], gap: usize| tabs.iter().map(|tab| width(tab) + gap).sum::<usize>();
    while need(&tabs, 2) > usize::from(area.width) {
        let numbered = |key: &str| key.starts_with(|c: char| c.is_ascii_digit());
        let Some(last) = tabs.iter().rposition(|(key, _, view)| !numbered(key) && *view != shown) else { break };
        tabs.remove(last);
    }
    let gap = if need(&tabs, 3) > usize::from(area.width) { 2 } else { 3 };
    let mut x = area.x + 1;
    tabs.into_iter().map(move |tab| {
        let begin = x;
        let end = begin + u16::try_from(width(&tab)).unwrap_or_default();
        x = end + gap;
        (begin, end, tab.0, tab.1, tab.2)
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
