//! Copies the item under the cursor (`y`), or its whole table as tab-separated values (`Y`). Other views are copied as
//! drawn.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::app::App;
use crate::tui::message::Effect;
use crate::tui::update::status::fail;
use crate::tui::views::layout;
use crate::tui::{screen, views};

/// Copies the item under the cursor, or the whole table.
pub(in crate::tui) fn copy(app: &mut App, all: bool, effects: &mut Vec<Effect>) {
    let spec = app.view.spec();
    let text = match (spec.item.filter(|_| !all), spec.copied_table) {
        (Some(copied), _) | (None, Some(copied)) => copied(app),
        (None, None) => Some(("the view".to_owned(), drawn(app))),
    };
    match text {
        Some((what, text)) if !text.is_empty() => effects.push(Effect::Copy { text, what }),
        _ => fail(app, "nothing to copy"),
    }
}

/// The complete text of a full-screen view without its frame.
pub(in crate::tui) fn drawn(app: &App) -> String {
    let mut tall = app.clone();
    tall.view_scroll = 0;
    tall.overlay = None;
    tall.size.1 = u16::try_from(views::line_count(app) + 8).unwrap_or(u16::MAX).clamp(layout::MIN_ROWS, 2000);
    let body = layout::areas(&tall).body;
    let mut buffer = Buffer::empty(Rect::new(0, 0, tall.size.0, tall.size.1));
    screen::view(&tall, &mut buffer);
    let mut lines = Vec::new();
    for y in body.y + 1..body.bottom().saturating_sub(1) {
        let cells = (body.x + 1..body.right().saturating_sub(1)).filter_map(|x| buffer.cell((x, y)));
        lines.push(cells.map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n") + "\n"
}
