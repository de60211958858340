//! Draws the strip of views below the header, each with the key that shows it.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{self, Action};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::widgets::draw::Canvas;

/// A view on the strip.
struct Tab {
    key: &'static str,
    name: &'static str,
    short: &'static str,
    action: Action,
}

impl Tab {
    fn of(view: View) -> Tab {
        let action = Action::Show(view);
        let label = &view.spec().tab;
        Tab { key: keymap::key_of(action), name: label.name, short: label.short, action }
    }

    fn tours() -> Tab {
        Tab { key: keymap::key_of(Action::Demos), name: "Tours", short: "Tours", action: Action::Demos }
    }

    fn width(&self) -> u16 {
        u16::try_from(self.key.width() + self.name.width() + 1).unwrap_or(u16::MAX)
    }
}

/// Returns the width of all tabs with a gap between them.
fn required_width(tabs: &[Tab], gap: u16) -> u16 {
    tabs.iter().map(|tab| tab.width().saturating_add(gap)).fold(1, u16::saturating_add)
}

/// Returns the first and last column of each tab. If not all fit, first views without a number are left out, then long
/// names are shortened, the current view's last, then gaps.
fn places(app: &App, area: Rect) -> impl Iterator<Item = (u16, u16, Tab)> {
    let shown = Action::Show(app.view);
    let mut views: Vec<View> =
        View::ALL.iter().copied().filter(|view| *view == app.view || !(view.spec().is_empty)(app)).collect();
    views.sort_by_key(|view| view.spec().tab.place);
    let mut tabs: Vec<Tab> = views.into_iter().map(Tab::of).chain([Tab::tours()]).collect();
    let fits = |tabs: &[Tab], gap: u16| required_width(tabs, gap) <= area.width.saturating_add(gap);
    while !fits(&tabs, 2) {
        let spare = |tab: &Tab| !keymap::is_number(tab.key) && tab.action != shown;
        let Some(last) = tabs.iter().rposition(spare) else { break };
        tabs.remove(last);
    }
    // Shorten the longest names first, until there are gaps of two columns.
    while !fits(&tabs, 2) {
        let spared = |tab: &Tab| tab.name.width() - tab.short.width();
        let others = tabs.iter_mut().filter(|tab| tab.action != shown && spared(tab) > 0);
        let Some(longest) = others.max_by_key(|tab| spared(tab)) else { break };
        longest.name = longest.short;
    }
    let gap = [3, 2, 1].into_iter().find(|gap| fits(&tabs, *gap)).unwrap_or(1);
    if !fits(&tabs, gap) {
        tabs.iter_mut().filter(|tab| !keymap::is_number(tab.key)).for_each(|tab| tab.name = tab.short);
    }
    // On the narrowest screens only numbers are shown.
    while !fits(&tabs, gap) {
        let Some(last) = tabs.iter_mut().rfind(|tab| tab.action != shown && !tab.name.is_empty()) else { break };
        last.name = "";
    }
    let mut x = area.x + 1;
    tabs.into_iter().map(move |tab| {
        let begin = x;
        let end = begin.saturating_add(tab.width());
        x = end.saturating_add(gap);
        (begin, end, tab)
    })
}

/// Returns the action of a click on the strip.
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
    for (begin, end, Tab { key, name, action, .. }) in places(app, area) {
        if end > area.right() {
            break;
        }
        let here = action == Action::Show(app.view);
        let style = if here { canvas.role(Role::TitleFocused) } else { dim };
        let x = canvas.text(begin, area.y, end - begin, key, key_style);
        canvas.text(x + 1, area.y, end.saturating_sub(x + 1), name, style);
        if here {
            canvas.tint(Rect::new(begin - 1, area.y, end - begin + 2, 1), canvas.role(Role::SelectionDim));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::testing::TestApp;

    #[test]
    fn numbered_and_current_tabs_are_labeled_at_every_usual_width() {
        let mut hands = TestApp::new();
        for width in [80, 100, 120, 140, 160, 200] {
            hands.app.size = (width, 40);
            for view in View::ALL {
                hands.app.view = *view;
                let Tab { name, short, action, .. } = Tab::of(*view);
                let places: Vec<(u16, u16, Tab)> = places(&hands.app, Rect::new(0, 1, width, 1)).collect();
                let numbered: Vec<&Tab> =
                    places.iter().map(|(.., tab)| tab).filter(|tab| keymap::is_number(tab.key)).collect();
                assert_eq!(numbered.len(), 10, "{width}");
                assert!(numbered.iter().all(|tab| !tab.name.is_empty()), "{width} {name}: a tab has no label");
                let here = places.iter().find(|(.., tab)| tab.action == action);
                assert!(
                    here.is_some_and(|(_, end, tab)| [name, short].contains(&tab.name) && *end <= width),
                    "{width} {name}"
                );
            }
        }
    }
}
