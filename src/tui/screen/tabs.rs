//! Draws the strip of views below the header, each with the key that shows it.

use ratatui::layout::Rect;

use crate::tui::app::{App, View};
use crate::tui::input::keymap::{self, Action};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::theme::Role;
use crate::tui::widgets::draw::Canvas;

/// The numbered views in order, then the others: name, short name and action.
const TABS: [(&str, &str, Action); 21] = [
    ("Overview", "Over", Action::Show(View::Main)),
    ("Race", "Race", Action::Show(View::Race)),
    ("Breakdown", "Break", Action::Show(View::Breakdown)),
    ("Sweep", "Sweep", Action::Show(View::Sweep)),
    ("Frontier", "Front", Action::Show(View::Frontier)),
    ("Optimize", "Opt", Action::Show(View::Optimum)),
    ("Explain", "Why", Action::Show(View::Explain)),
    ("Advice", "Adv", Action::Show(View::Advice)),
    ("Timeline", "Time", Action::Show(View::Timeline)),
    ("Sensitivity", "Sens", Action::Show(View::Sensitivity)),
    ("Compare", "Comp", Action::Show(View::Compare)),
    ("What runs", "Runs", Action::Show(View::Fits)),
    ("Releases", "Rel", Action::Show(View::Releases)),
    ("Difference", "Diff", Action::Show(View::Diff)),
    ("Schedule", "Sched", Action::Show(View::Schedule)),
    ("Measured", "Meas", Action::Show(View::Measurements)),
    ("Launch", "Launch", Action::Show(View::Launch)),
    ("Watch", "Watch", Action::Show(View::Watch)),
    ("History", "Hist", Action::Show(View::History)),
    ("Problems", "Prob", Action::Show(View::Problems)),
    ("Tours", "Tours", Action::Demos),
];

/// A view on the strip.
struct Tab {
    key: &'static str,
    name: &'static str,
    short: &'static str,
    action: Action,
}

impl Tab {
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
    let empty = |action: Action| match action {
        Action::Show(View::Measurements) => app.measured.is_empty(),
        Action::Show(View::Problems) => app.problems.is_empty(),
        Action::Show(View::Watch) => app.watch.logs.is_empty(),
        Action::Show(View::History | View::Launch) => app.history.store.is_none(),
        Action::Show(View::Schedule) => app.answer.workload.as_ref().is_none_or(|workload| workload.phases.is_empty()),
        _ => false,
    };
    let wanted = TABS.iter().filter(|(.., action)| *action == shown || !empty(*action));
    let tab = |(name, short, action): &(&'static str, &'static str, Action)| Tab {
        key: keymap::key_of(*action),
        name,
        short,
        action: *action,
    };
    let mut tabs: Vec<Tab> = wanted.map(tab).collect();
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
            for (name, short, action) in TABS {
                let Action::Show(view) = action else { continue };
                hands.app.view = view;
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
