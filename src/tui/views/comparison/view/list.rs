//! Draws the comparison as a list, if not all targets fit side by side: a row for each target, metrics in columns.

use ratatui::layout::Rect;

use super::{
    RATIO, base, column_ranks, compares, metric_index, metrics, number, ratio, ratio_style, ratio_text, scale, sign,
};
use crate::theme::Role;
use crate::tui::app::App;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::views::layout;
use crate::tui::widgets::draw::Canvas;
use atlas_plan::estimate::standing::Rank;
use atlas_plan::estimate::{Metric, Scale};

/// Width of a metric.
const METRIC_WIDTH: u16 = 13;
/// Width of an interval, and minimum width of the list for showing it. Narrower lists show another metric instead.
const INTERVAL: u16 = 15;
const INTERVAL_FROM: u16 = 130;
/// Minimum number of visible metrics for which the most important one is always visible.
const MIN_METRICS_TO_PIN: usize = 3;

/// Splits the name of a metric into one or two heading lines.
fn heading_lines(metric: &Metric) -> (&'static str, &'static str) {
    const MAX_HEADING_CHARACTERS: usize = 11;
    if metric.label.width() <= MAX_HEADING_CHARACTERS {
        return (metric.label, "");
    }
    let slash = || metric.label.split_at_checked(metric.label.find('/')?);
    metric.label.rsplit_once(' ').or_else(slash).unwrap_or((metric.label, ""))
}

/// The layout of the columns.
struct Columns {
    /// Width of the names.
    name: u16,
    /// Indices of the metrics shown.
    shown: Vec<usize>,
    /// Total number of metrics.
    all: usize,
    /// Width of the interval of the metric under the cursor.
    interval: u16,
}

impl Columns {
    fn of(app: &App, inner: Rect) -> Columns {
        let longest = app.columns.iter().map(|(name, _)| name.width()).max().unwrap_or_default();
        let name = u16::try_from(longest + 3).unwrap_or(u16::MAX).clamp(12, 34).min(inner.width / 3);
        let interval = if inner.width >= INTERVAL_FROM { INTERVAL } else { 0 };
        let room = inner.width.saturating_sub(name + RATIO + 2 + interval);
        let all = metrics(app).count();
        let fit = usize::from(room / METRIC_WIDTH).clamp(1, all.max(1));
        // The most important metric is always visible; the others scroll so that the one under the cursor is the last.
        let pinned = usize::from(fit >= MIN_METRICS_TO_PIN);
        let from = (metric_index(app) + 1).saturating_sub(fit).min(all.saturating_sub(fit)) + pinned;
        let shown = (0..pinned).chain(from..from + fit - pinned).filter(|index| *index < all).collect();
        Columns { name, shown, all, interval }
    }

    /// Formats which metrics are shown, if not all are.
    fn remark(&self) -> String {
        let first = self.shown.get(1).filter(|second| **second > 1).or(self.shown.first());
        match (first, self.shown.last()) {
            (Some(first), Some(last)) if self.shown.len() < self.all => {
                format!("{}–{} of {}", first + 1, last + 1, self.all)
            }
            _ => String::new(),
        }
    }
}

/// Returns the metric whose heading is at a screen position.
pub(super) fn heading_at(app: &App, body: Rect, x: u16, y: u16) -> Option<&'static Metric> {
    let inner = layout::inner(body);
    let columns = Columns::of(app, inner);
    let slot = usize::from(x.checked_sub(inner.x + columns.name)? / METRIC_WIDTH);
    let heading = (inner.y..inner.y + 2).contains(&y);
    columns.shown.get(slot).filter(|_| heading).and_then(|index| metrics(app).nth(*index))
}

/// Draws targets as rows.
pub(super) fn list(app: &App, canvas: &mut Canvas<'_>, area: Rect, inner: Rect) {
    let all: Vec<&'static Metric> = metrics(app).collect();
    let places = Columns::of(app, inner);
    let name_width = places.name;
    let interval = places.interval;
    let here = metric_index(app);
    let shown = || (0u16..).zip(places.shown.iter().filter_map(|index| Some((*index, all.get(*index)?))));
    let here_slot = places.shown.iter().position(|index| *index == here);
    let (heading, dim) = (canvas.role(Role::Heading), canvas.role(Role::Dim));
    let metric_x = |slot: u16| inner.x + name_width + slot * METRIC_WIDTH;
    for (slot, (index, metric)) in shown() {
        let style = if index == here { canvas.role(Role::TitleFocused) } else { heading };
        let order = if app.order == Some(*metric) { canvas.glyphs.down } else { "" };
        let ((first, second), width) = (heading_lines(metric), METRIC_WIDTH - 2);
        canvas.right(metric_x(slot) - 1, inner.y, width, &format!("{order}{first}"), style);
        let unit = scale(&app.columns, metric).unit().to_owned();
        let x = metric_x(slot) - 1;
        canvas.right(x, inner.y + 1, width, &unit, dim);
        let taken = u16::try_from(unit.width() + usize::from(!unit.is_empty())).unwrap_or(width);
        canvas.right(x, inner.y + 1, width.saturating_sub(taken), second, style);
        if index == here {
            canvas.tint(Rect::new(metric_x(slot), inner.y, METRIC_WIDTH - 1, 2), canvas.role(Role::SelectionDim));
        }
    }
    canvas.right(inner.x, inner.y, inner.width.saturating_sub(1), &places.remark(), dim);
    canvas.right(inner.x, inner.y + 1, inner.width.saturating_sub(1), "to ref.", dim);
    canvas.right(inner.right() - RATIO - 2 - interval, inner.y + 1, interval, "90 % range", dim);
    canvas.text(inner.x + 2, inner.y, name_width - 2, "target", heading);
    let scales: Vec<Scale> = shown().map(|(_, (_, metric))| scale(&app.columns, metric)).collect();
    let ranks: Vec<Vec<Rank>> = shown().map(|(_, (_, metric))| column_ranks(app, metric)).collect();
    let reference = app.reference_column();
    let base = all.get(here).and_then(|metric| base(app, metric));
    let height = inner.height.saturating_sub(2);
    for (line, (index, (name, answer))) in (0..height).zip(app.columns.iter().enumerate().skip(app.view_scroll)) {
        let y = inner.y + 2 + line;
        let (state, role) = match () {
            () if !answer.fits() => (canvas.glyphs.cross, Role::Error),
            () if app.now.marks.contains(name) => (canvas.glyphs.mark, Role::Mark),
            () if answer.pending => ("~", Role::Dim),
            () if !compares(app, answer) => ("!", Role::Warn),
            () => ("", Role::Text),
        };
        let state_style = canvas.role(role);
        canvas.text(inner.x, y, 1, state, state_style);
        let style = canvas.role(if index == reference { Role::Baseline } else { Role::Text });
        canvas.text(inner.x + 2, y, name_width - 2, name, style);
        for (((slot, (_, metric)), rank), scale) in shown().zip(&ranks).zip(&scales) {
            let tie_sign = sign(rank.get(index));
            let style = canvas.role(match () {
                () if tie_sign == "*" => Role::Best,
                () if answer.fits() => Role::Value,
                () => Role::Dim,
            });
            let text = answer.value(metric).map_or_else(|| "–".to_owned(), |value| scale.show(value));
            number(canvas, Rect::new(metric_x(slot) - 1, y, METRIC_WIDTH - 1, 1), &text, style, tie_sign);
        }
        // The interval and the ratio of the metric under the cursor.
        let metric = all.get(here);
        let scale = here_slot.and_then(|slot| scales.get(slot));
        let ends = metric.and_then(|metric| {
            metric.interval(answer.outcome.as_ref().ok()?, answer.scenario.as_ref()?).filter(|(low, high)| low < high)
        });
        if let (Some((low, high)), Some(scale), true) = (ends, scale, interval > 0) {
            let text = scale.interval(low, high);
            canvas.right(inner.right() - RATIO - 2 - interval, y, interval, &text, dim);
        }
        if let (Some(metric), Some(base)) = (metric, base)
            && let Some(ratio) = ratio(app, metric, base, (index, answer))
        {
            // The intervals of tied values overlap, so it is uncertain which is better.
            let tied = here_slot.and_then(|slot| ranks.get(slot)?.get(index)) == Some(&Rank::Tied);
            let style = if tied { dim } else { ratio_style(canvas, metric.better, ratio) };
            let text = ratio_text(ratio, RATIO);
            canvas.right(inner.right() - 9, y, 8, &text, style);
        }
        if index == app.column {
            // Only the name and the selected cell: highlighting a wide row would send many bytes for every step.
            let selection = canvas.role(Role::Selection);
            canvas.tint(Rect::new(inner.x, y, name_width, 1), selection);
            if let Some(slot) = here_slot.and_then(|slot| u16::try_from(slot).ok()) {
                canvas.tint(Rect::new(metric_x(slot), y, METRIC_WIDTH - 1, 1), selection);
            }
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(height) < app.columns.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heading_of_the_comparison_list_fits_its_column() {
        for metric in atlas_plan::estimate::METRICS {
            let (first, second) = heading_lines(metric);
            // The first line may begin with an arrow.
            let widest = first.width().max(second.width());
            assert!(widest < usize::from(METRIC_WIDTH) - 1, "{}: {first} {second}", metric.name);
        }
    }
}
