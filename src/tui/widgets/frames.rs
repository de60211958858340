//! Frames whose titles begin with the key that opens them.

use ratatui::layout::Rect;

use crate::tui::app::{PANES, Pane, View, title};
use crate::tui::input::keymap::{self, Action};
use crate::tui::widgets::draw::Canvas;

impl Canvas<'_> {
    /// The frame of a view, with its key before the title.
    pub fn view(&mut self, area: Rect, view: View, title: &str, remark: &str, focused: bool) -> Rect {
        let key = keymap::key_of(Action::Show(view));
        self.frame(area, &format!("{key} {title}"), remark, focused)
    }

    /// The frame of a pane, with its key before the title.
    pub fn pane(&mut self, area: Rect, pane: Pane, remark: &str, focused: bool) -> Rect {
        let place = PANES.iter().position(|known| *known == pane).unwrap_or_default();
        let key = keymap::key_of(Action::FocusPane(u8::try_from(place + 1).unwrap_or(1)));
        self.frame(area, &format!("{key} {}", title(pane)), remark, focused)
    }
}
