//! Draws the table of models and targets: the speed, with a color for whether the model fits.

use atlas_core::units::BYTES_PER_GB;
use atlas_plan::estimate::{MetricId, Scale};
use atlas_plan::search::optimize::HEADROOM;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{Cell, Grid, cell_under_cursor, filtered_rows, speed};
use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::tables::state::Table;
use crate::tui::views::layout;
use crate::tui::widgets::draw::{Canvas, fit};
use atlas_config::Mode;

const VIEW: View = View::Fits;
/// Lines above the rows: the names of the targets in two lines. The second also names the metric, on the left.
pub const HEADING: u16 = 2;
/// Minimum and maximum width of a target's column.
const COLUMN: (u16, u16) = (13, 26);
/// Minimum width of a bar. With less space, a single glyph replaces it.
const MIN_BAR: u16 = 5;
/// Width of a speed; the rest of a target's column is a bar.
const SPEED: u16 = 9;
/// Marks a cell whose memory is nearly full, so that the information is not conveyed by color alone.
const TIGHT_SIGN: &str = "!";
/// Width of the number of parameters after a model's name.
const SIZE: u16 = 8;

/// Number of rows.
#[must_use]
pub fn rows(app: &App) -> usize {
    filtered_rows(app).len()
}

/// Describes a cell in words.
#[must_use]
pub fn describe(mode: Mode, cell: &Cell) -> String {
    match cell {
        Cell::Fits { layout: (tp, pp), free, speed: value, price } => {
            let metric = speed(mode);
            let speed = value.map_or_else(String::new, |value| format!(", {} {}", metric.label, metric.brief(value)));
            let per_token = MetricId::DollarPer1mTokens.metric();
            let shown = |price: f64| format!(", {} {}", per_token.label, per_token.brief(price));
            let price = price.map_or_else(String::new, shown);
            format!("fits with tp={tp} pp={pp}, {:.0} % free{speed}{price}", 100.0 * free)
        }
        Cell::Short(bytes) => {
            format!("does not fit: exceeds the memory of each device by {:.0} GB", bytes / BYTES_PER_GB)
        }
        Cell::Cannot(why) => why.clone(),
    }
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    let legend = format!("bar: memory in use; {TIGHT_SIGN} under {:.0} % free", 100.0 * HEADROOM);
    match cell_under_cursor(app) {
        Some((target, row, cell)) => {
            format!("{} on {target}: {}; {legend}", row.model, describe(app.answer.mode(), cell))
        }
        None => legend,
    }
}

/// Returns the width of the names of the models with their numbers of parameters.
fn name_width(app: &App) -> u16 {
    let longest = filtered_rows(app).iter().map(|row| row.model.width()).max().unwrap_or_default();
    let inner = layout::inner(layout::areas(app).body).width;
    u16::try_from(longest + 2).unwrap_or(u16::MAX).clamp(16, 30).min(inner / 3) + SIZE
}

/// Returns the number of targets that fit on the screen.
fn fit_targets(app: &App, grid: &Grid) -> usize {
    let inner = layout::inner(layout::areas(app).body).width;
    usize::from(inner.saturating_sub(name_width(app) + 1) / COLUMN.0).clamp(1, grid.targets.len().max(1))
}

/// Returns the width of each target's column. The targets share the available space.
fn column_width(app: &App, targets: usize) -> u16 {
    let inner = layout::inner(layout::areas(app).body).width;
    let targets = u16::try_from(targets.max(1)).unwrap_or(u16::MAX);
    (inner.saturating_sub(name_width(app) + 1) / targets).clamp(COLUMN.0, COLUMN.1)
}

/// Returns the first visible target, chosen such that the target under the cursor is visible.
fn first_target(app: &App, grid: &Grid) -> usize {
    let fits = fit_targets(app, grid);
    (app.fits.column + 1).saturating_sub(fits).min(grid.targets.len().saturating_sub(fits))
}

/// Draws the view.
pub fn draw(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let state = &app.fits;
    let rows = filtered_rows(app);
    let metric = speed(app.answer.mode());
    let label = metric.label;
    let of = state.table.answer().map_or(0, |grid| grid.rows.len());
    let remark = app.filter_remark(Table::Fits, rows.len(), of).unwrap_or_else(|| match state.table.answer() {
        Some(grid) if grid.done < grid.of => format!("{} of {} models, {label}", grid.done, grid.of),
        _ => format!("{of} models, {label}"),
    });
    let remark = match state.table.answer() {
        Some(grid) if grid.targets.len() > fit_targets(app, grid) => {
            let first = first_target(app, grid);
            format!("targets {}–{} of {}; {remark}", first + 1, first + fit_targets(app, grid), grid.targets.len())
        }
        _ => remark,
    };
    let title = format!("What runs: {} with every model", app.now.setup.workload);
    let inner = canvas.view(area, VIEW, &title, &remark, app.tour.is_none());
    let dim = canvas.role(Role::Dim);
    let Some(grid) = state.table.answer() else {
        let text = state.table.problem().unwrap_or("checking which models fit");
        canvas.text(inner.x + 1, inner.y, inner.width.saturating_sub(2), text, dim);
        return;
    };
    if rows.is_empty() {
        let text = if grid.rows.is_empty() {
            "no model in the catalog can run with these settings"
        } else {
            "no matches; Esc shows all"
        };
        canvas.text(inner.x + 1, inner.y, inner.width.saturating_sub(2), text, dim);
        return;
    }
    let names = name_width(app);
    let (fits, first) = (fit_targets(app, grid), first_target(app, grid));
    let column_width = column_width(app, fits);
    let slots = || (0u16..).zip(first..(first + fits).min(grid.targets.len()));
    let heading = canvas.role(Role::Heading);
    canvas.text(inner.x + 1, inner.y, names - 1, "model", heading);
    canvas.right(inner.x, inner.y, names - 1, "params", heading);
    canvas.text(inner.x + 1, inner.y + 1, names.saturating_sub(SIZE + 2), label, dim);
    canvas.right(inner.x, inner.y + 1, names - 1, "billions", dim);
    for (slot, index) in slots() {
        let Some(name) = grid.targets.get(index) else { continue };
        let x = inner.x + names + slot * column_width;
        let style = if index == state.column { canvas.role(Role::TitleFocused) } else { heading };
        let width = column_width - 2;
        // With bars, speeds are at the left of their columns.
        let title = |canvas: &mut Canvas<'_>, y: u16, text: &str, style: Style| {
            let text = fit(text, usize::from(width), canvas.glyphs.ellipsis);
            match width > SPEED + MIN_BAR {
                true => {
                    canvas.text(x, y, width, &format!("{text:>pad$}", pad = usize::from(SPEED)), style);
                }
                false => canvas.right(x, y, width, &text, style),
            }
        };
        let (above, below) = split_name(name, usize::from(width));
        title(canvas, inner.y, above, style);
        title(canvas, inner.y + 1, below, style);
    }
    let speeds = grid.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| match cell {
        Cell::Fits { speed, .. } => *speed,
        _ => None,
    });
    let scale = Scale::of(metric, speeds);
    let lines = inner.height.saturating_sub(HEADING);
    for (line, (index, row)) in (0..lines).zip(rows.iter().enumerate().skip(app.view_scroll)) {
        let y = inner.y + HEADING + line;
        let name_width = names - SIZE - 2;
        let name = fit(&row.model, usize::from(name_width), canvas.glyphs.ellipsis);
        canvas.text(inner.x + 1, y, name_width, &name, canvas.role(Role::Text));
        canvas.right(inner.x, y, names - 1, &format!("{:.1}", row.parameters * 1e-9), dim);
        for (slot, column) in slots() {
            let Some(cell) = row.cells.get(column) else { continue };
            let place = Rect::new(inner.x + names + slot * column_width, y, column_width - 2, 1);
            draw_cell(canvas, place, cell, &scale);
            if (index, column) == (app.view_row, state.column) {
                canvas.tint(Rect { x: place.x + 1, width: column_width - 1, ..place }, canvas.role(Role::Selection));
            }
        }
        if index == app.view_row {
            canvas.tint(Rect { y, width: names - SIZE, height: 1, ..inner }, canvas.role(Role::Selection));
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(lines) < rows.len());
}

/// Draws a speed with the memory in use, or what is missing.
fn draw_cell(canvas: &mut Canvas<'_>, place: Rect, cell: &Cell, scale: &Scale) {
    let (dim, error) = (canvas.role(Role::Dim), canvas.role(Role::Error));
    match cell {
        Cell::Fits { free, speed, .. } => {
            let style = canvas.role(if *free < HEADROOM { Role::Warn } else { Role::Good });
            let text = speed.map_or_else(|| "–".to_owned(), |speed| scale.brief(speed));
            let sign = if *free < HEADROOM { TIGHT_SIGN } else { " " };
            let bar = place.width.saturating_sub(SPEED + 1);
            if bar < MIN_BAR {
                canvas.right(place.x, place.y, place.width - 2, &text, style);
                canvas.text(place.right() - 2, place.y, 1, sign, style);
                let glyph = canvas.glyphs.level(1.0 - free);
                canvas.text(place.right() - 1, place.y, 1, glyph, style);
                return;
            }
            canvas.right(place.x, place.y, SPEED, &text, style);
            canvas.text(place.x + SPEED, place.y, 1, sign, style);
            let track = Rect { x: place.x + SPEED + 1, width: bar, ..place };
            canvas.segment(track, (0.0, 1.0 - free), style);
        }
        Cell::Short(bytes) => {
            let text = format!("+{:.0} GB", bytes / BYTES_PER_GB);
            let (speed, sign) = if place.width.saturating_sub(SPEED + 1) < MIN_BAR {
                (place.width - 2, place.right() - 1)
            } else {
                (SPEED, place.x + SPEED + 1)
            };
            canvas.right(place.x, place.y, speed, &text, error);
            let cross = canvas.glyphs.cross;
            canvas.text(sign, place.y, 1, cross, error);
        }
        Cell::Cannot(_) => canvas.right(place.x, place.y, place.width.min(SPEED), "–", dim),
    }
}

/// Splits a name into two lines after the last `-`, `_` or `.` that fits.
fn split_name(name: &str, width: usize) -> (&str, &str) {
    if name.width() <= width {
        return (name, "");
    }
    let joints = name.match_indices(['-', '_', '.']).map(|(at, _)| at + 1).rev();
    let mut parts = joints.filter_map(|at| name.split_at_checked(at)).filter(|(first, _)| first.width() <= width);
    parts.next().unwrap_or((name, ""))
}
