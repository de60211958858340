//! Draws a form.

use ratatui::layout::Rect;

use super::{EntryKind, Form};
use crate::theme::Role;
use crate::tui::widgets::draw::{Canvas, wrap};

/// Width of the labels, in columns.
const LABEL: u16 = 24;
/// Maximum number of rows for matching names, and (`TROUBLE`) for the problem.
const MATCHES: u16 = 6;
const TROUBLE: u16 = 3;

/// Draws the form.
pub(in crate::tui) fn draw(size: (u16, u16), canvas: &mut Canvas<'_>, form: &Form) {
    let (columns, rows) = size;
    let fields = u16::try_from(form.fields.len()).unwrap_or(u16::MAX);
    let width = columns.saturating_sub(4).min(86);
    let height = (fields + MATCHES + TROUBLE + 4).min(rows.saturating_sub(2));
    let area = Rect::new((columns - width) / 2, rows.saturating_sub(height) / 2, width, height);
    canvas.clear(area);
    let title = match form.kind {
        EntryKind::Target => "New target",
        EntryKind::Workload => "New workload",
        EntryKind::Offer => "New price",
        EntryKind::Profile => "New profile",
    };
    let inner = canvas.frame(area, title, "Tab: next field; Enter on the last field previews the change", true);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let (text, value, dim) = (canvas.role(Role::Text), canvas.role(Role::Value), canvas.role(Role::Dim));
    let label = LABEL.min(inner.width / 2);
    let mut y = inner.y;
    // On a small screen the fields scroll, so that the problem is always visible.
    let seen = form.fields.len().min(usize::from(inner.height.saturating_sub(2))).max(1);
    let scroll = (form.cursor + 1).saturating_sub(seen);
    for (at, field) in form.fields.iter().enumerate().skip(scroll).take(seen) {
        if y >= inner.bottom() {
            return;
        }
        canvas.text(inner.x, y, label - 1, field.key.label(), text);
        let room = inner.width.saturating_sub(label);
        if at == form.cursor {
            let input = canvas.role(Role::Input);
            canvas.typed(inner.x + label, y, room, &field.line, input);
        } else {
            canvas.text(inner.x + label, y, room, field.line.text(), value);
        }
        y += 1;
    }
    y += 1;
    let (good, bad) = (canvas.role(Role::Good), canvas.role(Role::Error));
    // An empty field is not shown as an error.
    let blank = form.fields.get(form.cursor).is_some_and(|field| field.line.text().is_empty());
    let (said, style) = match &form.problem {
        Some(trouble) if blank => (format!("{} {trouble}", canvas.glyphs.cross), dim),
        Some(trouble) => (format!("{} {trouble}", canvas.glyphs.cross), bad),
        None => (format!("{} ready to write", canvas.glyphs.check), good),
    };
    for line in wrap(&said, usize::from(inner.width)).iter().take(usize::from(TROUBLE)) {
        if y < inner.bottom() {
            canvas.text(inner.x, y, inner.width, line, style);
        }
        y += 1;
    }
    for (line, name) in (y..inner.bottom()).zip(form.matches.iter().take(usize::from(MATCHES))) {
        canvas.text(inner.x + label, line, inner.width.saturating_sub(label), name, dim);
    }
}
