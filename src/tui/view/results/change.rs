//! Changes against the baseline, in words and colors.

use crate::tui::painter::cells::TextWidth as _;
use ratatui::style::Style;

use crate::tui::draw::Canvas;
use crate::tui::theme::Role;
use atlas_core::units;
use atlas_plan::estimate::{Better, Format, Metric};

/// A change with its sign; the unit is beside the value.
pub(super) fn signed(metric: &Metric, change: f64) -> String {
    let text = match metric.format {
        // The difference of two shares is in points; the relative change beside it is in percent.
        Format::Percent => format!("{:.1} pt", change.abs() * 100.0),
        // Three digits without the currency sign, which is beside the value, so that small prices fit.
        Format::Usd if change.abs() < 1.0 => units::significant(change.abs(), 3),
        Format::Usd if change.abs() < 10_000.0 => format!("{:.2}", change.abs()),
        Format::Usd => units::si(change.abs()),
        format => format.show(change.abs()),
    };
    format!("{}{text}", if change < 0.0 { "-" } else { "+" })
}

/// A change cut to its columns: three digits instead of four if it is too long.
pub(super) fn within(text: String, room: usize) -> String {
    if text.width() <= room {
        return text;
    }
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    match number.parse::<f64>() {
        Ok(value) => {
            let sign = if value < 0.0 { "-" } else { "+" };
            let short = format!("{sign}{} {unit}", units::significant(value.abs(), 3));
            if short.trim_end().width() <= room {
                return short;
            }
            // The smallest have more zeros than room; the unit is beside the value.
            let small = format!("{sign}{:.2e}", value.abs());
            if small.width() + 1 + unit.width() <= room { format!("{small} {unit}") } else { small }
        }
        Err(_) => text,
    }
}

/// Least change that is shown in digits; smaller ones are negligible.
pub(in crate::tui) const LEAST: f64 = 0.000_5;

/// A change as arrow, sign and color.
pub(in crate::tui) fn change(canvas: &Canvas<'_>, better: Better, before: f64, now: f64) -> (String, Style) {
    let arrow = if now > before { canvas.glyphs.up } else { canvas.glyphs.down };
    if (now - before).abs() < LEAST * before.abs() {
        return (format!("{arrow}<0.1 %"), canvas.role(Role::Dim));
    }
    (format!("{arrow}{}", units::relative(before, now)), change_style(canvas, better, now - before))
}

/// The style of an improvement or a deterioration; arrow and sign show it without color.
pub(in crate::tui) fn change_style(canvas: &Canvas<'_>, better: Better, change: f64) -> Style {
    let role = match (better, change > 0.0) {
        (Better::Higher, true) | (Better::Lower, false) => Role::Good,
        (Better::Higher, false) | (Better::Lower, true) => Role::Bad,
        (Better::Neutral, _) => Role::Dim,
    };
    canvas.role(role)
}
