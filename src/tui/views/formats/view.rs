//! Draws the formats: a row for each with its metrics; below, formats and memory of the one under the cursor next to the
//! current ones.

use ratatui::layout::Rect;

use super::{Detail, Listed, Row, listed, metrics, selected};
use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::views::alternatives::{CHANGE, Columns, FIGURE, HEADING, rule};
use crate::tui::widgets::draw::{Canvas, fit, wrap};

/// Width of the name of a format.
const NAME: u16 = 10;
/// Maximum width of a bar, and the least that is drawn.
const BAR: u16 = 40;
const MIN_BAR: u16 = 10;
/// Width of a detail with both values.
const DETAIL: u16 = 38;

/// Height of the lower part: a rule and the details.
fn below(height: u16) -> u16 {
    if height < 12 { 0 } else { (height / 3).clamp(5, 16) }
}

/// Number of visible formats for this number of lines.
#[must_use]
pub fn page(lines: usize) -> usize {
    let lines = u16::try_from(lines).unwrap_or(u16::MAX);
    usize::from(lines.saturating_sub(HEADING + below(lines)))
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    let Some(Row { name, reason, .. }) = selected(app) else {
        return "the engine does not model formats, or the scenario is incomplete".to_owned();
    };
    let is_current = listed(app).is_some_and(|all| all.current == Some(app.view_row));
    match reason {
        Some(why) => format!("{name}: {why}"),
        None if is_current => format!("{name} is the current format"),
        None => format!("Enter sets precision={name}; nothing else changes"),
    }
}

/// Draws the view.
pub fn draw(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let empty = Listed::default();
    let all = listed(app).unwrap_or(&empty);
    let runs = all.rows.iter().filter(|row| row.refused.is_none()).count();
    let remark = format!("{runs} of {} run", all.rows.len());
    let inner = canvas.view(area, View::Formats, "Formats", &remark, app.tour.is_none());
    if all.rows.is_empty() {
        canvas.text(inner.x + 1, inner.y, inner.width.saturating_sub(2), &info(app), canvas.role(Role::Dim));
        return;
    }
    let below = below(inner.height);
    let upper = Rect { height: inner.height - below, ..inner };
    table(app, canvas, upper, all);
    let height = usize::from(upper.height.saturating_sub(HEADING));
    let frame = Rect { height: area.height - below, ..area };
    canvas.more(frame, app.view_scroll > 0, app.view_scroll + height < all.rows.len());
    if below > 0
        && let Some(row) = selected(app)
    {
        details(canvas, Rect { y: upper.bottom(), height: below, ..inner }, all, row);
    }
}

fn table(app: &App, canvas: &mut Canvas<'_>, area: Rect, all: &Listed) {
    let (heading, dim) = (canvas.role(Role::Heading), canvas.role(Role::Dim));
    let metrics = metrics(app.answer.mode());
    let x = area.x + 2;
    // The format of products is shown if there is space for it next to all metrics.
    let needed = u16::try_from(metrics.len()).map_or(u16::MAX, |count| 3 + 2 * NAME + count * FIGURE + CHANGE);
    let products = if area.width >= needed { NAME } else { 0 };
    canvas.text(x, area.y, NAME, "format", heading);
    canvas.text(x + NAME, area.y, products, "products", heading);
    let values = all.rows.iter().map(|row| &row.values);
    let columns = Columns::draw(canvas, (area, x + NAME + products), &metrics, values, all.throughput);
    let bar = area.right().saturating_sub(columns.end() + 2).min(BAR);
    let first = |row: &Row| row.values.first().copied().flatten().filter(|_| row.refused.is_none());
    let most = all.rows.iter().filter_map(first).fold(0.0, f64::max);
    let height = area.height.saturating_sub(HEADING);
    let shown = all.rows.iter().enumerate().skip(app.view_scroll).take(height.into());
    for (y, (index, row)) in (area.y + HEADING..).zip(shown) {
        let current = all.current == Some(index);
        let mark = if current { canvas.glyphs.changed } else { "" };
        canvas.text(area.x, y, 1, mark, canvas.role(Role::Accent));
        canvas.text(x, y, NAME - 1, &row.name, canvas.role(if current { Role::Changed } else { Role::Text }));
        canvas.text(x + NAME, y, products, &row.products, dim);
        let room = usize::from(area.right().saturating_sub(columns.end() + 1));
        let why = row.reason.as_deref().filter(|reason| reason.width() <= room).or(row.refused.as_deref());
        columns.row(canvas, y, &row.values, why);
        if let (Some(value), true) = (first(row), bar >= MIN_BAR && most > 0.0) {
            canvas.segment(Rect::new(columns.end(), y, bar, 1), (0.0, value / most), canvas.role(Role::Bar1));
        }
        if index == app.view_row {
            let width = (2 + NAME + products).min(area.width);
            canvas.tint(Rect { y, height: 1, width, ..area }, canvas.role(Role::Selection));
        }
    }
}

/// Draws why the format under the cursor cannot run, and its formats and memory, with the current ones if they differ.
fn details(canvas: &mut Canvas<'_>, mut area: Rect, all: &Listed, row: &Row) {
    let differs = row.details != all.details;
    let title = match all.current.and_then(|at| all.rows.get(at)).filter(|_| differs) {
        Some(current) => format!("{}, compared with the current {}", row.name, current.name),
        None => format!("{}: formats, and memory per accelerator", row.name),
    };
    rule(canvas, area, &title);
    area = Rect { y: area.y + 1, height: area.height - 1, ..area };
    if let Some(why) = &row.reason {
        for line in wrap(why, usize::from(area.width.saturating_sub(4))).into_iter().take(area.height.into()) {
            canvas.text(area.x + 2, area.y, area.width.saturating_sub(3), &line, canvas.role(Role::Error));
            area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        }
    }
    if area.height == 0 {
        return;
    }
    let arrow = if canvas.glyphs.is_ascii() { "->" } else { "→" };
    let columns = (area.width.saturating_sub(2) / DETAIL).max(1);
    let width = (area.width.saturating_sub(2) / columns).saturating_sub(2);
    let lines = usize::from(area.height);
    let shown = row.details.iter().take(lines * usize::from(columns));
    for (index, Detail { name, value }) in shown.enumerate() {
        let (column, line) = (index / lines, index % lines);
        let [column, line] = [column, line].map(|at| u16::try_from(at).unwrap_or(u16::MAX));
        let (x, y) = (area.x + 2 + column * (width + 2), area.y + line);
        let before = all.details.iter().find(|detail| detail.name == *name).map(|detail| &detail.value);
        let (text, role) = match before.filter(|before| *before != value) {
            // The unit is stated once.
            Some(before) if value.ends_with(" GB") => {
                (format!("{} {arrow} {value}", before.trim_end_matches(" GB")), Role::Value)
            }
            Some(before) => (format!("{before} {arrow} {value}"), Role::Value),
            None => (value.clone(), Role::Dim),
        };
        let label = (width / 2).min(20);
        canvas.text(
            x,
            y,
            label.saturating_sub(1),
            &fit(name, usize::from(label) - 1, canvas.glyphs.ellipsis),
            canvas.role(Role::Text),
        );
        canvas.text(x + label, y, width - label, &text, canvas.role(role));
    }
}
