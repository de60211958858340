//! Draws the strip of scenarios if there are several: key and name of each, the pinned one marked.

use crate::theme::Role;
use crate::tui::app::App;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::widgets::draw::{Canvas, fit};
use ratatui::layout::Rect;

/// Minimum width of a tab.
const MIN_TAB_WIDTH: usize = 6;

/// Returns the first and last column of each tab, and its text. If not all fit, those around the current one are shown.
fn places(app: &App, area: Rect) -> Vec<(usize, u16, u16, String)> {
    let count = app.tabs.count();
    let room = usize::from(area.width.saturating_sub(2));
    let pinned = app.tabs.pinned();
    let texts = |limit: usize| -> Vec<(usize, String)> {
        (0..count)
            .map(|place| {
                let sign = if pinned == Some(place) { format!("{} ", app.glyphs.mark) } else { String::new() };
                // Digits without Alt are the keys of views.
                let key = if place < 9 { format!("Alt-{} ", place + 1) } else { String::new() };
                let text = format!("{sign}{key}{}", app.tab_label(place));
                (place, fit(&text, limit, app.glyphs.ellipsis))
            })
            .collect()
    };
    let width = |all: &[(usize, String)]| all.iter().map(|(_, text)| text.width() + 3).sum::<usize>();
    let mut all = texts(room);
    if width(&all) > room {
        all = texts((room / count.max(1)).saturating_sub(3).max(MIN_TAB_WIDTH));
    }
    while width(&all) > room && all.len() > 1 {
        // The tab farthest from the current one is left out first.
        let first_is_farther = all.first().is_some_and(|(first, _)| {
            all.last().is_some_and(|(last, _)| app.tabs.current().abs_diff(*first) > app.tabs.current().abs_diff(*last))
        });
        if first_is_farther { drop(all.remove(0)) } else { drop(all.pop()) }
    }
    let mut x = area.x + 1;
    let mut placed = Vec::new();
    for (place, text) in all {
        let end = x + u16::try_from(text.width()).unwrap_or_default();
        placed.push((place, x, end, text));
        x = end + 3;
    }
    placed
}

/// Returns the tab at a screen position.
#[must_use]
pub fn tab_at(app: &App, area: Rect, column: u16, row: u16) -> Option<usize> {
    let inside = area.contains((column, row).into());
    let all = if inside { places(app, area) } else { Vec::new() };
    all.into_iter()
        .find(|(_, begin, end, _)| (begin.saturating_sub(1)..=*end).contains(&column))
        .map(|(place, ..)| place)
}

/// Draws the strip.
pub(in crate::tui) fn strip(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let pinned = app.tabs.pinned();
    for (place, begin, end, text) in places(app, area) {
        let here = place == app.tabs.current();
        let role = match () {
            () if here => Role::TitleFocused,
            () if pinned == Some(place) => Role::Baseline,
            () => Role::Hint,
        };
        let style = canvas.role(role);
        canvas.text(begin, area.y, end - begin, &text, style);
        if here {
            canvas.tint(Rect::new(begin - 1, area.y, end - begin + 2, 1), canvas.role(Role::SelectionDim));
        }
    }
}
