//! Draws the comparison side by side: a column for each target, metrics in rows.

use ratatui::layout::Rect;

use super::{
    BEST, LABEL, RATIO, Row, TIED, UNIT, bar_width, base, build, column_ranks, column_width, compares, cursor_line,
    metric_index, number, ratio, ratio_style, ratio_text, scale, sign,
};
use crate::theme::Role;
use crate::tui::app::{Answer, App};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::widgets::draw::Canvas;
use atlas_plan::estimate::{Metric, Scale};

/// Splits a name that is too long for its column after the last separator that fits.
fn split_name(name: &str, width: usize) -> (&str, &str) {
    if name.width() <= width {
        return (name, "");
    }
    let joints = name.match_indices(['_', '-', '.', ' ', '/']).map(|(at, _)| at + 1).rev();
    let parts = joints.filter_map(|at| name.split_at_checked(at)).find(|(first, _)| first.width() <= width);
    parts.unwrap_or((name, ""))
}

pub(super) fn columns(app: &App, canvas: &mut Canvas<'_>, area: Rect, inner: Rect) {
    let width = column_width(app.columns.len(), area.width);
    let reference = app.reference_column();
    let slots = || (0u16..).zip(app.columns.iter().enumerate());
    for (slot, (index, (name, answer))) in slots() {
        let x = inner.x + LABEL + slot * width;
        let title = canvas.role(if index == app.column { Role::TitleFocused } else { Role::Title });
        let (name, rest) = split_name(name, usize::from(width - 1));
        canvas.right(x, inner.y, width - 1, name, title);
        let (role, text) = match answer.detail() {
            _ if answer.outcome.is_err() => (Role::Error, "no estimate"),
            Some(detail) if !detail.verdict.fits() => {
                (Role::Error, crate::tui::views::results::refusal(&detail.verdict))
            }
            _ if !compares(app, answer) => (Role::Warn, "other engine"),
            _ if index == reference => (Role::Baseline, if answer.pending { "~ reference" } else { "reference" }),
            _ if answer.pending => (Role::Dim, "~ closed form"),
            _ => (Role::Dim, ""),
        };
        let style = canvas.role(role);
        canvas.right(x, inner.y + 1, width - 1, text, style);
        let said = u16::try_from(text.width() + usize::from(!text.is_empty())).unwrap_or_default();
        canvas.right(x, inner.y + 1, (width - 1).saturating_sub(said), rest, title);
    }
    let all = build(app, area.width);
    let height = inner.height.saturating_sub(2);
    for (line, row) in (0..height).zip(all.iter().skip(app.view_scroll)) {
        let y = inner.y + 2 + line;
        match row {
            Row::Heading(name) => {
                let style = canvas.role(Role::Heading);
                canvas.text(inner.x + 1, y, LABEL, name, style);
            }
            Row::Problem(text) => {
                let style = canvas.role(Role::Error);
                canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), text, style);
            }
            Row::Metric(metric) => {
                let style = canvas.role(if *metric == app.figure { Role::TitleFocused } else { Role::Text });
                canvas.text(inner.x + 2, y, LABEL - 2, metric.label, style);
                let (scale, dim) = (scale(&app.columns, metric), canvas.role(Role::Dim));
                if usize::from(LABEL) > metric.label.width() + scale.unit().width() + 3 {
                    canvas.right(inner.x + LABEL - UNIT, y, UNIT, scale.unit(), dim);
                }
                let standing = column_ranks(app, metric);
                let base = base(app, metric);
                let most = app.columns.iter().filter_map(|(_, answer)| answer.value(metric)).fold(0.0, f64::max);
                let bar = bar_width(width);
                for (slot, (index, (_, answer))) in slots() {
                    let x = inner.x + LABEL + slot * width;
                    if let Some(value) = answer.value(metric).filter(|_| bar > 0 && most > 0.0) {
                        // Thin and gray, so that numbers stay prominent.
                        let filled = (f64::from(bar - 2) * value / most).round().max(0.0) as usize;
                        let text = canvas.glyphs.levels[2].repeat(filled);
                        canvas.text(x + 2, y, bar - 2, &text, canvas.role(Role::Border));
                    }
                    let cell = Rect::new(x + bar, y, width - bar - 1, 1);
                    let ratio = base.and_then(|base| ratio(app, metric, base, (index, answer)));
                    value(canvas, cell, (metric, &scale), answer, ratio, sign(standing.get(index)));
                }
            }
        }
    }
    if let Ok(slot) = u16::try_from(app.column) {
        let x = inner.x + LABEL + slot * width;
        canvas.tint(Rect::new(x, inner.y, width, 1), canvas.role(Role::Selection));
        let here = cursor_line(app).max(usize::from(metric_index(app) == 0));
        if let Some(y) = here.checked_sub(app.view_scroll).and_then(|y| u16::try_from(y).ok()).filter(|y| *y < height) {
            canvas.tint(Rect::new(inner.x, inner.y + 2 + y, inner.width, 1), canvas.role(Role::SelectionDim));
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(height) < all.len());
}

/// Draws a cell: the value, its mark, and the ratio to the reference.
fn value(
    canvas: &mut Canvas<'_>,
    cell: Rect,
    (metric, scale): (&Metric, &Scale),
    answer: &Answer,
    ratio: Option<f64>,
    sign: &str,
) {
    // Narrow columns show ratios with one digit less.
    let ratio_width = if cell.width < 22 { RATIO - 1 } else { RATIO };
    let room = cell.width.saturating_sub(ratio_width + 1);
    let Some(value) = answer.value(metric) else {
        let dim = canvas.role(Role::Dim);
        canvas.right(cell.x, cell.y, room.saturating_sub(1), "–", dim);
        return;
    };
    let style = canvas.role(match () {
        () if sign == BEST => Role::Best,
        () if answer.fits() => Role::Value,
        () => Role::Dim,
    });
    number(canvas, Rect { width: room, ..cell }, &scale.show(value), style, sign);
    if let Some(ratio) = ratio {
        let text = ratio_text(ratio, ratio_width);
        // The intervals of tied values overlap, so it is uncertain which is better.
        let style = if sign == TIED { canvas.role(Role::Dim) } else { ratio_style(canvas, metric.better, ratio) };
        canvas.right(cell.x + room + 1, cell.y, ratio_width, &text, style);
    }
}

#[cfg(test)]
mod tests {
    use super::split_name;

    #[test]
    fn long_names_break_after_a_separator() {
        assert_eq!(split_name("NVIDIA_H100_8x_NVLink", 19), ("NVIDIA_H100_8x_", "NVLink"));
        assert_eq!(split_name("NVIDIA_H100_8x_NVLink", 21), ("NVIDIA_H100_8x_NVLink", ""));
        assert_eq!(split_name("unbroken", 4), ("unbroken", ""));
    }
}
