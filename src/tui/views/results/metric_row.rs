//! Draws a metric as a row with aligned columns: label, value, unit, interval and change.

use crate::theme::Role;
use crate::tui::app::{Answer, App};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::widgets::draw::Canvas;
use ratatui::layout::Rect;

use super::change::change;
use atlas_core::units;
use atlas_plan::estimate::{Format, Metric, digits};

/// Columns of the row of a metric. The decimal point is in the same column of every row.
pub(super) struct Columns {
    label: u16,
    interval: u16,
    absolute: u16,
    relative: u16,
}

/// Headings of a wide and a narrow interval column, and of the change.
const INTERVAL: [&str; 2] = ["90 % range", "90 %"];
const CHANGE: &str = "change";
/// Width of two ends of up to five digits: `2300–13000`. In a narrower column all rows show relative ends.
const ENDS: usize = 10;

/// Widths of digits and sign before the decimal point; of the point and the digits after it; of a space and the unit.
const WHOLE: u16 = 5;
const FRACTION: u16 = 5;
const UNIT: u16 = 7;

impl Columns {
    /// Returns the columns that fit: the relative change has priority, then the interval, then the absolute change.
    pub(super) fn fit(width: u16, intervals: bool) -> Columns {
        let label = match width {
            66.. => 18,
            51.. => 14,
            _ => 13,
        };
        let mut room = width.saturating_sub(label + WHOLE + FRACTION + UNIT);
        let mut take = |wanted: u16, least: u16| {
            let taken = if room >= least { wanted.min(room) } else { 0 };
            room -= taken;
            taken
        };
        let relative = take(if width >= 53 { 9 } else { 8 }, 8);
        let interval = if intervals { take(12, 10) } else { 0 };
        let absolute = take(11, 10);
        Columns { label, interval, absolute, relative }
    }
}

/// Draws the headings of the columns on the line of the first group.
pub(super) fn headings(canvas: &mut Canvas<'_>, area: Rect, columns: &Columns, changed: bool) {
    let dim = canvas.role(Role::Dim);
    let x = area.x + columns.label + WHOLE + FRACTION + UNIT;
    if columns.interval > 0 {
        let [long, short] = INTERVAL;
        let heading = if usize::from(columns.interval) > long.len() { long } else { short };
        canvas.right(x, area.y, columns.interval - 1, heading, dim);
    }
    if changed {
        canvas.right(x + columns.interval + columns.absolute, area.y, columns.relative, CHANGE, dim);
    }
}

/// Splits a number as written by [`Metric::show`] into its three columns: before the decimal point, from the point on,
/// the unit.
pub(in crate::tui) fn split(shown: &str) -> (&str, &str, &str) {
    let (number, unit) = shown.split_once(' ').unwrap_or((shown, ""));
    let at = number.find(['.', 'e']).unwrap_or(number.len());
    let (whole, fraction) = number.split_at_checked(at).unwrap_or((number, ""));
    (whole, fraction, unit)
}

/// Rounds a fraction to its column if it is longer and followed by a unit.
fn short(whole: &str, fraction: &str, unit: &str) -> Option<String> {
    let digits = usize::from(FRACTION);
    if fraction.len() <= digits || unit.is_empty() {
        return None;
    }
    let number: f64 = format!("{whole}{fraction}").parse().ok()?;
    let rounded = format!("{number:.*}", digits - 1);
    rounded.find('.').and_then(|at| rounded.get(at..)).map(str::to_owned)
}

/// Draws the row of a metric.
pub(super) fn draw(app: &App, canvas: &mut Canvas<'_>, area: Rect, columns: &Columns, metric: &'static Metric) {
    let now = app.answer.value(metric);
    let shown = app.answer.format_metric(metric).unwrap_or_else(|| "–".to_owned());
    let role = match () {
        () if app.flash.metrics.contains(&metric.id) => Role::Flash,
        () if app.answer.fits() => Role::Value,
        // The metrics of a scenario that does not fit in memory are dim.
        () => Role::Dim,
    };
    let (style, dim) = (canvas.role(role), canvas.role(Role::Dim));
    let (whole, fraction, unit) = split(&shown);
    let rounded = short(whole, fraction, unit);
    let fraction = rounded.as_deref().unwrap_or(fraction);
    let text = canvas.role(Role::Text);
    let indent = u16::from(columns.label > 13);
    // A long label may use columns that the digits leave free.
    let spare = usize::from(WHOLE).saturating_sub(whole.chars().count() + 1);
    let room = columns.label - indent + u16::try_from(spare).unwrap_or_default();
    canvas.text(area.x + indent, area.y, room, metric.label, text);
    let mut x = area.x + columns.label;
    canvas.right(x, area.y, WHOLE, whole, style);
    x += WHOLE;
    // Small prices have no unit and use its columns for digits.
    canvas.text(x, area.y, if unit.is_empty() { FRACTION + UNIT } else { FRACTION }, fraction, style);
    x += FRACTION;
    // A long unit begins in the columns that a short fraction leaves free.
    let long = u16::try_from(unit.width()).unwrap_or_default().saturating_sub(UNIT - 1);
    let spare = FRACTION.saturating_sub(u16::try_from(fraction.width()).unwrap_or(FRACTION));
    let early = long.min(spare);
    canvas.text(x + 1 - early, area.y, UNIT - 1 + early, unit, dim);
    x += UNIT;
    let (Some(now), before) = (now, app.baseline.value(metric)) else { return };
    if columns.interval > 0 {
        if let Some(interval) = interval(&app.answer, metric, now, usize::from(columns.interval - 2)) {
            canvas.right(x, area.y, columns.interval - 1, &interval, dim);
        }
        x += columns.interval;
    }
    // Negligible changes are not shown.
    let Some(before) = before.filter(|before| !metric.is_same(*before, now)) else { return };
    let (text, style) = change(canvas, metric, before, now);
    if columns.absolute > 0 {
        // The change of a percentage is already in percentage points.
        let known = app.answer.scenario.as_ref().zip(app.answer.outcome.as_ref().ok());
        if let Some((scenario, estimate)) = known.filter(|_| metric.format != Format::Percent) {
            let text = digits::difference(metric, scenario, estimate, before).unwrap_or_default();
            canvas.right(x, area.y, columns.absolute - 1, &text, style);
        }
        x += columns.absolute;
    }
    // A change of ten points or more is a column wider than others. It extends to the left, where the short unit of a
    // percentage leaves space, unless there is an interval column.
    let wide = u16::try_from(text.width()).unwrap_or_default().saturating_sub(columns.relative);
    if wide == 0 || columns.interval > 0 {
        let text = if wide > 0 { text.replace(' ', "") } else { text };
        canvas.right(x, area.y, columns.relative, &text, style);
    } else if columns.relative > 0 {
        canvas.right(x - wide, area.y, columns.relative + wide, &text, style);
    }
}

/// Formats the 90 % interval in the unit of the shown value, `31.2–41.0`, or relative to it, `-14/+13%`.
pub(super) fn interval(answer: &Answer, metric: &Metric, now: f64, room: usize) -> Option<String> {
    let (scenario, estimate) = (answer.scenario.as_ref()?, answer.outcome.as_ref().ok()?);
    let ends = digits::interval(metric, scenario, estimate)?;
    // The ends of an interval such as `0.083–0.149` may have one digit less.
    let short = |end: &String| end.parse().map_or_else(|_| end.clone(), |end| units::significant(end, 2));
    let texts = [&ends, &ends.each_ref().map(short)].map(|[low, high]| format!("{low}–{high}"));
    if let Some(text) = texts.into_iter().find(|text| room >= ENDS && text.width() <= room) {
        return Some(text);
    }
    let (low, high) = metric.interval(estimate, scenario)?;
    Some(format!("{:+.0}/{:+.0}%", 100.0 * (low / now - 1.0), 100.0 * (high / now - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_split_at_the_point_and_the_unit() {
        assert_eq!(split("36.22 ktok/s"), ("36", ".22", "ktok/s"));
        assert_eq!(split("2642 tok/s"), ("2642", "", "tok/s"));
        assert_eq!(split("$0.01047"), ("$0", ".01047", ""));
        assert_eq!(split("1.000e-9"), ("1", ".000e-9", ""));
        assert_eq!(split("–"), ("–", "", ""));
        assert_eq!(short("0", ".07196", "tok/J").as_deref(), Some(".0720"));
        assert_eq!((short("0", ".07196", ""), short("36", ".22", "tok/J")), (None, None));
    }

    #[test]
    fn result_columns_fit_every_width() {
        for width in 40..90 {
            for intervals in [false, true] {
                let c = Columns::fit(width, intervals);
                let used = c.label + WHOLE + FRACTION + UNIT + c.interval + c.absolute + c.relative;
                assert!(used <= width, "{used} of {width}");
            }
        }
        let narrow = Columns::fit(48, true);
        assert!(narrow.interval > 0 && narrow.relative > 0, "both fit 80 columns");
    }
}
