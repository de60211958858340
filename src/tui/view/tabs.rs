//! The strip of views below the header, each with the key that shows it.

use ratatui::layout::Rect;

use super::draw::Canvas;
use crate::tui::app::{App, View};
use crate::tui::keymap;
use crate::tui::keymap::Action;
use crate::tui::theme::Role;

/// The views that have a number, in its order, then the others.
const TABS: [(&str, Action); 15] = [
    ("Overview", Action::Show(View::Main)),
    ("Compare", Action::Show(View::Compare)),
    ("Breakdown", Action::Show(View::Breakdown)),
    ("Sweep", Action::Show(View::Sweep)),
    ("Frontier", Action::Show(View::Frontier)),
    ("Schedule", Action::Show(View::Schedule)),
    ("Explain", Action::Show(View::Explain)),
    ("Advice", Action::Show(View::Advice)),
    ("Problems", Action::Show(View::Problems)),
    ("Demos", Action::Demos),
    ("Sensitivity", Action::Show(View::Sensitivity)),
    ("Optimise", Action::Show(View::Optimum)),
    ("Timeline", Action::Show(View::Timeline)),
    ("Measured", Action::Show(View::Measurements)),
    ("Difference", Action::Show(View::Diff)),
];

/// A view on the strip.
struct Tab {
    key: &'static str,
    name: &'static str,
    action: Action,
}

/// Where each begins and ends. Where nothing was measured there is nothing to show of it; where not all have room, views without a number make way, but for the one that is shown.
fn places(app: &App, area: Rect) -> impl Iterator<Item = (u16, u16, Tab)> {
    let width = |tab: &Tab| tab.key.chars().count() + tab.name.chars().count() + 1;
    let mut tabs: Vec<Tab> =
        TABS.iter().map(|(name, action)| Tab { key: keymap::key_of(*action), name, action: *action }).collect();
    let shown = Action::Show(app.view);
    let measured = Action::Show(View::Measurements);
    if app.measured.is_empty() && shown != measured {
        tabs.retain(|tab| tab.action != measured);
    }
    let need = |tabs: &[Tab], gap: u16| tabs.iter().map(|tab| width(tab) + usize::from(gap)).sum::<usize>();
    let room = usize::from(area.width);
    // The same gap whichever view is shown, so that none moves when another is.
    let gap = if need(&tabs, 3) <= room { 3 } else { 2 };
    while need(&tabs, gap) > room {
        let spare = |tab: &Tab| !keymap::is_number(tab.key) && tab.action != shown;
        let Some(last) = tabs.iter().rposition(spare) else { break };
        tabs.remove(last);
    }
    // Where names have no room, the last lose theirs; a number says enough.
    while need(&tabs, gap) > room {
        let Some(last) = tabs.iter_mut().rfind(|tab| tab.action != shown && !tab.name.is_empty()) else { break };
        last.name = "";
    }
    let mut x = area.x + 1;
    tabs.into_iter().map(move |tab| {
        let begin = x;
        let end = begin + u16::try_from(width(&tab)).unwrap_or_default();
        x = end + gap;
        (begin, end, tab)
    })
}

/// What a click on the strip asks for.
#[must_use]
pub fn tab_at(app: &App, area: Rect, column: u16, row: u16) -> Option<Action> {
    if !area.contains((column, row).into()) {
        return None;
    }
    let (.., tab) = places(app, area).find(|(begin, end, _)| (*begin..*end).contains(&column))?;
    Some(tab.action)
}

/// Draws the strip.
pub(super) fn tabs(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let (key_style, dim) = (canvas.role(Role::Key), canvas.role(Role::Hint));
    for (begin, end, Tab { key, name, action }) in places(app, area) {
        let here = action == Action::Show(app.view);
        let style = if here { canvas.role(Role::TitleFocused) } else { dim };
        let x = canvas.text(begin, area.y, end - begin, key, key_style);
        canvas.text(x + 1, area.y, end.saturating_sub(x + 1), name, style);
        if here {
            canvas.tint(Rect::new(begin - 1, area.y, end - begin + 2, 1), canvas.role(Role::SelectionDim));
        }
    }
}
