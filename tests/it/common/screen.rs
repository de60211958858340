//! The TUI's screen as text.

use atlas_fabric::tui::app::App;
use atlas_fabric::tui::screen::view;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The screen line by line, without trailing spaces.
pub(crate) fn text(app: &App) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.size.0, app.size.1));
    view(app, &mut buffer);
    written(&buffer)
}

/// A buffer line by line, without trailing spaces.
pub(crate) fn written(buffer: &Buffer) -> String {
    let rows = buffer.content.chunks(usize::from(buffer.area.width.max(1)));
    let lines = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}
