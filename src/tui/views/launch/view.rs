//! Draws the launch files.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::views::{draw_lines, wrapped};
use crate::tui::widgets::draw::Canvas;

const VIEW: View = View::Launch;

/// Number of lines of all files.
#[must_use]
pub fn rows(app: &App) -> usize {
    text(app).len()
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    let directory = super::directory(&app.now.setup);
    format!("Enter writes the files to {}/; existing files are not overwritten", directory.display())
}

/// Draws the view.
pub fn draw(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let state = &app.launch;
    let tool = state.files.answer().map_or("", |files| &files.tool);
    let separator = if tool.is_empty() { "" } else { ", " };
    let remark = format!("{tool}{separator}{}", state.wrap_name());
    let inner = canvas.view(area, VIEW, "Launch", &remark, app.tour.is_none());
    let all = text(app);
    draw_lines(canvas, inner, &all, app.view_scroll);
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(inner.height) < all.len());
}

fn text(app: &App) -> Vec<(Role, String)> {
    let state = &app.launch;
    let Some(files) = state.files.answer() else {
        return vec![(Role::Dim, state.files.problem().unwrap_or("generating").to_owned())];
    };
    let mut out = Vec::new();
    if !files.refused.is_empty() {
        out.push((Role::Error, "not supported by the tool:".to_owned()));
        out.extend(files.refused.iter().map(|problem| (Role::Warn, format!("  {problem}"))));
    }
    for file in &files.files {
        out.push((Role::Title, file.name.clone()));
        out.extend(file.text.lines().map(|line| {
            let comment = line.trim_start().starts_with('#') && !line.starts_with("#!") && !line.starts_with("#SBATCH");
            (if comment { Role::Dim } else { Role::Text }, line.replace('\t', "    "))
        }));
        out.push((Role::Text, String::new()));
    }
    out.extend(files.notes.iter().map(|note| (Role::Warn, format!("note: {note}"))));
    wrapped(app.size, out)
}
