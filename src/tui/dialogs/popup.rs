//! Draws dialogs over the screen: the finder, the palette, the list of tours, the diff before writing.

use std::sync::Arc;

use ratatui::layout::Rect;

use crate::demo::Demo;
use crate::theme::Role;
use crate::tui::app::{App, Finder, Overlay, Palette, WritePlan};
use crate::tui::dialogs::export::Export;
use crate::tui::dialogs::prompt::state::Prompt;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::widgets::draw::{Canvas, wrap};

/// Returns the area of the open dialog. A dialog whose rows change with the typed text keeps its size; others have the
/// height of their rows.
fn area(app: &App) -> Rect {
    let (columns, rows) = app.size;
    let width = columns.saturating_sub(4).min(70);
    let wanted = match &app.overlay {
        Some(Overlay::Demos { .. }) => u16::try_from(tour_lines(&app.demos).len() + 2).unwrap_or(u16::MAX),
        _ => 20,
    };
    let height = rows.saturating_sub(4).min(wanted);
    Rect::new((columns - width) / 2, (rows - height) / 2, width, height)
}

/// Returns the number of rows of a dialog's list that fit, and the first row shown.
fn window(app: &App, heading: u16, cursor: usize) -> (u16, usize) {
    let room = area(app).height.saturating_sub(2 + heading);
    (room, (cursor + 1).saturating_sub(usize::from(room)))
}

/// Returns the row of the open dialog's list at a screen position.
#[must_use]
pub fn popup_row(app: &App, column: u16, row: u16) -> Option<usize> {
    let area = area(app);
    let (heading, cursor) = match &app.overlay {
        Some(Overlay::Finder(finder)) => (2, finder.cursor),
        Some(Overlay::Palette(palette)) => (2, palette.cursor),
        Some(Overlay::Demos { cursor }) => (0, tour_line(&app.demos, *cursor)),
        _ => return None,
    };
    if !area.contains((column, row).into()) {
        return None;
    }
    let (room, scroll) = window(app, heading, cursor);
    let line = row.checked_sub(area.y + 1 + heading).filter(|line| *line < room)?;
    let row = usize::from(line) + scroll;
    match &app.overlay {
        // A click on a heading has no effect.
        Some(Overlay::Demos { .. }) => match tour_lines(&app.demos).get(row)? {
            TourLine::Tour(index, _) => Some(*index),
            TourLine::Heading(_) => Some(usize::MAX),
        },
        _ => Some(row),
    }
}

/// Draws the finder.
pub(in crate::tui) fn finder(app: &App, canvas: &mut Canvas<'_>, finder: &Finder) {
    let area = area(app);
    canvas.clear(area);
    let remark = format!("{} targets, workloads, knobs", finder.matches.len());
    let inner = canvas.frame(area, "Find", &remark, true);
    let style = canvas.role(Role::Input);
    let key = canvas.role(Role::Key);
    canvas.text(inner.x + 1, inner.y, 1, "/", key);
    canvas.typed(inner.x + 3, inner.y, inner.width.saturating_sub(4), &finder.line, style);
    let (room, scroll) = window(app, 2, finder.cursor);
    if finder.matches.is_empty() {
        let dim = canvas.role(Role::Dim);
        canvas.text(inner.x + 3, inner.y + 2, inner.width.saturating_sub(4), "no matches", dim);
    }
    for (line, (index, place)) in (0..room).zip(finder.matches.iter().enumerate().skip(scroll)) {
        let y = inner.y + 2 + line;
        let (text, dim) = (canvas.role(Role::Text), canvas.role(Role::Dim));
        canvas.text(inner.x + 3, y, inner.width.saturating_sub(14), place.name(), text);
        canvas.right(inner.x, y, inner.width.saturating_sub(1), place.kind(), dim);
        if index == finder.cursor {
            canvas.tint(Rect::new(inner.x, y, inner.width, 1), canvas.role(Role::Selection));
        }
    }
}

/// Examples of other input.
const EXAMPLES: &str = "or tp=8, b200, cheapest tpot<50ms on h100,h200, why is TTFT high?";

/// Draws the palette: commands, with their keys at the right.
pub(in crate::tui) fn palette(app: &App, canvas: &mut Canvas<'_>, palette: &Palette) {
    let area = area(app);
    canvas.clear(area);
    let count = palette.matches.len();
    let remark = if count == 1 { "1 match".to_owned() } else { format!("{count} matches") };
    let inner = canvas.frame(area, "Command or question", &remark, true);
    let (style, key) = (canvas.role(Role::Input), canvas.role(Role::Key));
    canvas.text(inner.x + 1, inner.y, 1, ":", key);
    canvas.typed(inner.x + 3, inner.y, inner.width.saturating_sub(4), &palette.line, style);
    if palette.line.text().is_empty() {
        let dim = canvas.role(Role::Dim);
        canvas.text(inner.x + 3, inner.y + 1, inner.width.saturating_sub(4), EXAMPLES, dim);
    }
    let (room, scroll) = window(app, 2, palette.cursor);
    if palette.matches.is_empty() {
        let dim = canvas.role(Role::Dim);
        let text = palette.trouble.as_deref().unwrap_or("unknown command");
        let width = inner.width.saturating_sub(4);
        let lines = wrap(text, usize::from(width));
        let first = palette.cursor.min(lines.len().saturating_sub(usize::from(room)));
        for (y, line) in (inner.y + 2..inner.bottom()).zip(lines.iter().skip(first)) {
            canvas.text(inner.x + 3, y, width, line, dim);
        }
        canvas.more(area, first > 0, first + usize::from(room) < lines.len());
    }
    for (line, (index, command)) in (0..room).zip(palette.matches.iter().enumerate().skip(scroll)) {
        let y = inner.y + 2 + line;
        let text = canvas.role(Role::Text);
        let keys = command.keys.iter().take(3).map(|key| app.glyphs.key(key)).collect::<Vec<_>>().join("  ");
        let taken = u16::try_from(keys.chars().count()).unwrap_or_default() + 2;
        canvas.text(inner.x + 3, y, inner.width.saturating_sub(4 + taken), &command.text, text);
        canvas.right(inner.x, y, inner.width.saturating_sub(1), &keys, key);
        if index == palette.cursor {
            canvas.tint(Rect::new(inner.x, y, inner.width, 1), canvas.role(Role::Selection));
        }
    }
}

/// Draws the diff before writing: removed and added lines.
pub(in crate::tui) fn write_back(size: (u16, u16), canvas: &mut Canvas<'_>, plan: &WritePlan, scroll: usize) {
    let (columns, rows) = size;
    let width = columns.saturating_sub(4).min(110);
    let lines: Vec<(Role, String)> = plan.lines();
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(rows.saturating_sub(4)).max(3);
    let area = Rect::new((columns - width) / 2, (rows - height) / 2, width, height);
    canvas.clear(area);
    let inner = canvas.frame(area, "Write to the files", "Enter writes, Esc cancels", true);
    for (y, (role, line)) in (inner.y..inner.bottom()).zip(lines.iter().skip(scroll)) {
        let style = canvas.role(*role);
        canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), line, style);
    }
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < lines.len());
}

/// A line of the list of tours.
enum TourLine<'a> {
    /// The heading of the tours below.
    Heading(&'a str),
    /// A tour and its index in the list.
    Tour(usize, &'a Demo),
}

/// Returns the tours; those with a section are at the end, under its heading.
fn tour_lines(demos: &[Arc<Demo>]) -> Vec<TourLine<'_>> {
    let mut section = None;
    let mut lines = Vec::new();
    for (index, demo) in demos.iter().enumerate() {
        if demo.section.as_deref() != section {
            section = demo.section.as_deref();
            lines.extend(section.map(TourLine::Heading));
        }
        lines.push(TourLine::Tour(index, demo));
    }
    lines
}

/// Returns the line of a tour.
fn tour_line(demos: &[Arc<Demo>], tour: usize) -> usize {
    let is = |line: &TourLine<'_>| matches!(line, TourLine::Tour(index, _) if *index == tour);
    tour_lines(demos).iter().position(is).unwrap_or_default()
}

/// Draws the list of tours.
pub(in crate::tui) fn demos(app: &App, canvas: &mut Canvas<'_>, cursor: usize) {
    let area = area(app);
    canvas.clear(area);
    let inner = canvas.frame(area, "Guided tours", "Enter plays, Esc closes", true);
    let (room, scroll) = window(app, 0, tour_line(&app.demos, cursor));
    let (text, dim, heading) = (canvas.role(Role::Text), canvas.role(Role::Dim), canvas.role(Role::Heading));
    for (y, line) in (inner.y..inner.y + room).zip(tour_lines(&app.demos).into_iter().skip(scroll)) {
        let (index, demo) = match line {
            TourLine::Tour(index, demo) => (index, demo),
            TourLine::Heading(section) => {
                canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), section, heading);
                continue;
            }
        };
        let steps = format!("{} steps", demo.steps.len());
        let room = inner.width.saturating_sub(3 + u16::try_from(steps.chars().count()).unwrap_or_default());
        canvas.text(inner.x + 1, y, room, &demo.title, text);
        canvas.right(inner.x, y, inner.width.saturating_sub(1), &steps, dim);
        if index == cursor {
            canvas.tint(Rect::new(inner.x, y, inner.width, 1), canvas.role(Role::Selection));
        }
    }
}

/// Draws the prompt in the last line of the screen.
pub(in crate::tui) fn prompt(canvas: &mut Canvas<'_>, area: Rect, prompt: &Prompt) {
    let key = canvas.role(Role::Key);
    let x = canvas.text(area.x + 1, area.y, area.width.saturating_sub(2), prompt.label(), key) + 1;
    let width = area.right().saturating_sub(x + 1).min(48);
    let style = canvas.role(Role::Input);
    canvas.typed(x, area.y, width, &prompt.line, style);
}

/// Width of the key after the formats, and of the longest name of a format.
const KEY: usize = 4;
const LONGEST_KIND: u16 = 8;

/// Draws the export dialog: formats, file, and errors.
pub(in crate::tui) fn export(size: (u16, u16), canvas: &mut Canvas<'_>, export: &Export) {
    let (columns, rows) = size;
    let width = columns.saturating_sub(4).min(86);
    let trouble = wrap(export.error.as_deref().unwrap_or_default(), usize::from(width.saturating_sub(4)));
    // Errors are shown in full; the dialog grows downward for them.
    let height = 6 + u16::try_from(trouble.len().max(1)).unwrap_or(1);
    let top = rows.saturating_sub(8) / 2;
    let area = Rect::new((columns - width) / 2, top, width, height.min(rows - top));
    canvas.clear(area);
    let inner = canvas.frame(area, "Export this view", "Enter writes, Esc cancels", true);
    let (dim, hint) = (canvas.role(Role::Dim), canvas.role(Role::Hint));
    canvas.text(inner.x + 1, inner.y + 1, 8, "as", dim);
    let mut x = inner.x + 9;
    let all: usize = export.kinds.iter().map(|kind| kind.name().width() + 3).sum();
    // If not all formats fit, only the chosen one is shown, with its number.
    let abreast = all + KEY <= usize::from(inner.right().saturating_sub(x));
    if !abreast {
        let text = format!("{} of {}", export.chosen + 1, export.kinds.len());
        canvas.text(x + LONGEST_KIND + 2, inner.y + 1, 8, &text, dim);
    }
    for (place, kind) in export.kinds.iter().enumerate().filter(|(place, _)| abreast || *place == export.chosen) {
        let here = place == export.chosen;
        let style = canvas.role(if here { Role::TitleFocused } else { Role::Hint });
        let begin = x;
        x = canvas.text(x, inner.y + 1, inner.right().saturating_sub(x), kind.name(), style);
        if here {
            canvas.tint(Rect::new(begin - 1, inner.y + 1, x - begin + 2, 1), canvas.role(Role::Selection));
        }
        x += 3;
    }
    canvas.right(inner.x, inner.y + 1, inner.width.saturating_sub(1), "Tab", hint);
    canvas.text(inner.x + 1, inner.y + 2, 8, "file", dim);
    let style = canvas.role(Role::Input);
    canvas.typed(inner.x + 9, inner.y + 2, inner.width.saturating_sub(10), &export.line, style);
    let style = canvas.role(if export.overwrite { Role::Warn } else { Role::Error });
    for (y, line) in (inner.y + 4..inner.bottom()).zip(&trouble) {
        canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), line, style);
    }
}
