//! Heat map: a metric over two knobs as density and number. The best point is marked, points that cannot run are
//! crossed out.

use crate::theme::Role;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::widgets::draw::Canvas;
use atlas_plan::knob::Setting;
use ratatui::layout::Rect;

use atlas_core::units;
use atlas_plan::estimate::metric::Format;
use atlas_plan::estimate::{Direction, Metric};
use atlas_plan::search::Axis;
use atlas_plan::search::sweep::Cell;

/// Maximum width and height of a cell.
const MAX_CELL_WIDTH: u16 = 20;
const MAX_CELL_HEIGHT: u16 = 5;

/// A heat map.
pub(in crate::tui) struct Heat<'c> {
    pub(in crate::tui) metric: &'static Metric,
    pub(in crate::tui) across: &'c Axis,
    pub(in crate::tui) against: &'c Axis,
    /// Cells row by row, from the bottom; within a row from the left.
    pub(in crate::tui) cells: &'c [Cell],
    pub(in crate::tui) here: Option<(usize, usize)>,
    pub(in crate::tui) cursor: (usize, usize),
}

/// Formats a value briefly, without its unit, which is below the map.
fn short(metric: &Metric, value: f64) -> String {
    match metric.format {
        Format::Si | Format::Count => {
            let (scale, prefix) = match value.abs() {
                size if size >= 999.5e9 => (1e12, "T"),
                size if size >= 999.5e6 => (1e9, "G"),
                size if size >= 999.5e3 => (1e6, "M"),
                size if size >= 999.5 => (1e3, "k"),
                _ => (1.0, ""),
            };
            units::significant(value / scale, 3) + prefix
        }
        format => format.show(value).replace(' ', ""),
    }
}

/// Layout of the cells: the first column and row shown, the upper left corner, the size of a cell, and their number.
#[derive(Debug, Clone, Copy)]
struct Frame {
    first: (usize, usize),
    left: u16,
    top: u16,
    size: (u16, u16),
    shown: (usize, usize),
}

impl Heat<'_> {
    fn cell(&self, column: usize, row: usize) -> Option<Cell> {
        self.cells.get(row * self.across.values.len() + column).copied()
    }

    /// Returns the width of a cell with its density, its number and a gap.
    fn numbered(&self) -> u16 {
        let runs = self.cells.iter().filter_map(Cell::feasible_value);
        let widest = runs.map(|value| short(self.metric, value).width()).max().unwrap_or_default();
        u16::try_from(widest + 2).unwrap_or(MAX_CELL_WIDTH).clamp(5, MAX_CELL_WIDTH)
    }

    /// Returns the layout with the largest cells that fit. If not all fit, those around the cursor are shown.
    fn frame(&self, area: Rect) -> Frame {
        let label = self.against.values.iter().map(|value| format_setting(value).width()).max().unwrap_or_default();
        let margin = u16::try_from(label + 2).unwrap_or(10).min(area.width / 3);
        let (columns, rows) = (self.across.values.len().max(1), self.against.values.len().max(1));
        let (width, height) = (area.width.saturating_sub(margin), area.height.saturating_sub(4));
        let fit = |room: u16, count: usize, most: u16| (usize::from(room) / count).clamp(1, usize::from(most)) as u16;
        // A cell narrower than its number is useless: show fewer cells and scroll with the cursor.
        let size = (
            fit(width, columns, MAX_CELL_WIDTH).max(self.numbered().min(width.max(1))),
            fit(height, rows, MAX_CELL_HEIGHT),
        );
        let shown =
            ((usize::from(width / size.0.max(1))).min(columns), (usize::from(height / size.1.max(1))).min(rows));
        let first =
            |at: usize, shown: usize, count: usize| at.saturating_sub(shown / 2).min(count.saturating_sub(shown));
        Frame {
            first: (first(self.cursor.0, shown.0, columns), first(self.cursor.1, shown.1, rows)),
            left: area.x + margin,
            top: area.y + 1,
            size,
            shown,
        }
    }

    /// Returns the cell at a screen position.
    pub(in crate::tui) fn cell_at(&self, area: Rect, column: u16, row: u16) -> Option<(usize, usize)> {
        let frame = self.frame(area);
        let at = (
            usize::from(column.checked_sub(frame.left)? / frame.size.0.max(1)),
            usize::from(row.checked_sub(frame.top)? / frame.size.1.max(1)),
        );
        let inside = at.0 < frame.shown.0 && at.1 < frame.shown.1;
        inside.then(|| (frame.first.0 + at.0, frame.first.1 + frame.shown.1 - 1 - at.1))
    }

    /// Draws the map, the values of its axes, and the scale of the densities.
    pub(in crate::tui) fn draw(&self, canvas: &mut Canvas<'_>, area: Rect) {
        let dim = canvas.role(Role::Dim);
        let frame = self.frame(area);
        if frame.shown.0 == 0 || frame.shown.1 == 0 {
            // Without cells, the axes would overlap each other and the text below.
            if area.height > 0 {
                canvas.text(area.x, area.y, area.width, "enlarge the terminal to see the chart", dim);
            }
            return;
        }
        // If not all fit, state which are visible; the map scrolls with the cursor.
        let part = |first: usize, seen: usize, count: usize| match count > seen {
            true => format!(" {}–{} of {count}", first + 1, first + seen),
            false => String::new(),
        };
        let part_up = part(frame.first.1, frame.shown.1, self.against.values.len());
        let up = format!("{} {}{part_up}", canvas.glyphs.up, self.against.knob.name());
        canvas.text(area.x, area.y, area.width, &up, dim);
        let runs = self.cells.iter().filter_map(Cell::feasible_value);
        let (low, high) =
            runs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let best = if self.metric.better == Direction::Lower { low } else { high };
        for line in 0..frame.shown.1 {
            let row = frame.first.1 + frame.shown.1 - 1 - line;
            let y = frame.top + line as u16 * frame.size.1;
            let label = self.against.values.get(row).map(format_setting).unwrap_or_default();
            canvas.right(area.x, y + frame.size.1 / 2, frame.left - area.x - 1, &label, dim);
            for place in 0..frame.shown.0 {
                let column = frame.first.0 + place;
                let Some(cell) = self.cell(column, row) else { continue };
                let at = Rect::new(frame.left + place as u16 * frame.size.0, y, frame.size.0, frame.size.1);
                self.draw_cell(canvas, at, (column, row), cell, (low, high, best));
            }
        }
        let below = frame.top + frame.shown.1 as u16 * frame.size.1;
        for place in 0..frame.shown.0 {
            let label = self.across.values.get(frame.first.0 + place).map(format_setting).unwrap_or_default();
            canvas.right(frame.left + place as u16 * frame.size.0, below, frame.size.0 - 1, &label, dim);
        }
        let seen = part(frame.first.0, frame.shown.0, self.across.values.len());
        let across = format!("{}{seen} →", self.across.knob.name());
        canvas.right(
            area.x,
            below + 1,
            area.width.min(frame.left - area.x + frame.shown.0 as u16 * frame.size.0),
            &across,
            dim,
        );
        if low <= high {
            let [_, sparse, .., full] = canvas.glyphs.shades;
            let show = |value: f64| self.metric.show(value);
            let text = format!("{}: {sparse} {}   {full} {}", self.metric.label, show(low), show(high));
            canvas.text(area.x, below + 2, area.width, &text, dim);
        } else {
            canvas.text(area.x, below + 2, area.width, "no combination of these values can run", dim);
        }
    }

    fn draw_cell(
        &self,
        canvas: &mut Canvas<'_>,
        at: Rect,
        place: (usize, usize),
        cell: Cell,
        (low, high, best): (f64, f64, f64),
    ) {
        let numbered = at.width >= self.numbered();
        let width = at.width - u16::from(at.width > 1);
        if let Some(value) = cell.feasible_value() {
            let share = if high > low { (value - low) / (high - low) } else { 1.0 };
            let role = if value == best { Role::Best } else { Role::Bar1 };
            let style = canvas.role(role);
            let shade = canvas.glyphs.shade(share);
            // If a cell has several lines, one of them shows the number.
            let rows = if numbered && at.height > 1 { at.height - 1 } else { at.height };
            let columns = if numbered && at.height == 1 { 1 } else { width };
            for y in at.y..at.y + rows {
                canvas.text(at.x, y, columns, &shade.repeat(usize::from(columns)), style);
            }
            if numbered {
                let number = short(self.metric, value);
                let style = canvas.role(if value == best { Role::Best } else { Role::Value });
                let skip = u16::from(at.height == 1);
                canvas.right(at.x + skip, at.bottom() - 1, width - skip, &number, style);
            }
        } else {
            let style = canvas.role(Role::Dim);
            let cross = canvas.glyphs.cross;
            canvas.right(at.x, at.bottom() - 1, width, cross, style);
        }
        if self.here == Some(place) {
            let (mark, style) = (canvas.glyphs.mark, canvas.role(Role::Mark));
            canvas.text(at.x, at.y, 1, mark, style);
        }
        if self.cursor == place {
            let style = canvas.role(Role::Selection);
            // Only the number is highlighted: a highlight of the density would look like another value.
            let skip = u16::from(at.height == 1 && numbered);
            canvas.tint(Rect { x: at.x + skip, y: at.bottom() - 1, width: width - skip, height: 1 }, style);
        }
    }
}

/// Formats the value of a knob briefly.
pub(in crate::tui) fn format_setting(setting: &Setting) -> String {
    match setting {
        Setting::Number(value) if *value >= 10_000.0 => units::si(*value).replace(' ', ""),
        other => other.to_string(),
    }
}
