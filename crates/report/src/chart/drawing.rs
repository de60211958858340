//! Charts laid out as lines, rectangles and text at fixed positions, to be written as SVG or painted as PNG.

use super::{Bars, Plot};

/// Number of distinct colors (Okabe and Ito's color-blind-safe palette). Series beyond it reuse them from the start.
pub const COLORS: usize = 8;
/// Maximum points of a line that get individual markers.
const MAX_MARKED_POINTS: usize = 40;
/// Height of one legend line.
const LEGEND_LINE_HEIGHT: f64 = 22.0;

/// Role of an item, which determines its color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Text.
    Text,
    /// Secondary text.
    Dim,
    /// Grid lines.
    Grid,
    /// Emphasis: intervals and the user's scenario.
    Mark,
    /// A limit.
    Limit,
    /// Series or part by its index.
    Color(usize),
    /// Shade of the first color in percent, for heat maps.
    Shade(u8),
    /// Empty cell.
    None,
}

/// Horizontal alignment of a text relative to its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The text begins at the position.
    Start,
    /// The text is centered on the position.
    Middle,
    /// The text ends at the position.
    End,
}

/// One drawn item.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Polyline through the points.
    Line(Ink, Vec<(f64, f64)>),
    /// Filled disc at a position.
    Dot(Ink, f64, f64),
    /// Circle around a position.
    Circle(Ink, f64, f64),
    /// Rectangle (left, top, width, height) with a tooltip.
    Rectangle(Ink, [f64; 4], String),
    /// Text with its baseline at a position.
    Text(Ink, Anchor, f64, f64, String),
}

/// A laid-out chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// Width in drawing units.
    pub width: f64,
    /// Height in drawing units.
    pub height: f64,
    /// Heading.
    pub title: String,
    /// Items in drawing order.
    pub items: Vec<Item>,
    /// Names of the colors; empty where a single color needs no legend.
    pub legend: Vec<String>,
}

impl Drawing {
    pub(super) fn text(&mut self, ink: Ink, anchor: Anchor, x: f64, y: f64, text: impl Into<String>) {
        self.items.push(Item::Text(ink, anchor, x, y, text.into()));
    }

    /// Adds the heading above and the legend below, for a chart that is a file of its own.
    #[must_use]
    pub fn complete(mut self) -> Drawing {
        let above = 26.0;
        for item in &mut self.items {
            match item {
                Item::Line(_, points) => points.iter_mut().for_each(|(_, y)| *y += above),
                Item::Dot(_, _, y) | Item::Circle(_, _, y) | Item::Text(_, _, _, y, _) => *y += above,
                Item::Rectangle(_, [_, top, ..], _) => *top += above,
            }
        }
        self.height += above;
        let title = self.title.clone();
        self.text(Ink::Text, Anchor::Start, 12.0, 18.0, title);
        let (mut x, mut y) = (16.0, self.height + 12.0);
        let legend = std::mem::take(&mut self.legend);
        for (number, name) in legend.into_iter().enumerate() {
            let wide = 26.0 + 7.0 * name.chars().count() as f64;
            if x + wide > self.width && x > 16.0 {
                (x, y) = (16.0, y + LEGEND_LINE_HEIGHT);
            }
            self.items.push(Item::Rectangle(Ink::Color(number), [x, y - 9.0, 10.0, 10.0], String::new()));
            self.text(Ink::Text, Anchor::Start, x + 15.0, y, name);
            x += wide;
            self.height = y + 10.0;
        }
        self
    }
}

/// Lays out a plot; `None` if there is nothing to draw.
#[must_use]
pub fn plot(plot: &Plot, width: f64, height: f64) -> Option<Drawing> {
    let (across, up) = plot.ranges()?;
    let (left, right, top, bottom) = (64.0, 22.0, 28.0, 46.0);
    let x = |value: f64| left + across.share(value) * (width - left - right);
    let y = |value: f64| top + (1.0 - up.share(value)) * (height - top - bottom);
    let mut out = Drawing { width, height, title: plot.title.clone(), items: Vec::new(), legend: Vec::new() };
    for (value, label) in across.ticks() {
        let at = x(value);
        out.items.push(Item::Line(Ink::Grid, vec![(at, top), (at, height - bottom)]));
        out.text(Ink::Text, Anchor::Middle, at, height - bottom + 16.0, label);
    }
    for (value, label) in up.ticks() {
        let at = y(value);
        out.items.push(Item::Line(Ink::Grid, vec![(left, at), (width - right, at)]));
        out.text(Ink::Text, Anchor::End, left - 6.0, at + 4.0, label);
    }
    out.text(Ink::Dim, Anchor::Start, left, 14.0, plot.up.label.clone());
    out.text(Ink::Dim, Anchor::End, width - right, height - 8.0, plot.across.label.clone());
    for (number, series) in plot.series.iter().enumerate() {
        let ink = Ink::Color(number);
        let shown = series.points.iter().filter(|(px, py)| plot.across.scale.shows(*px) && plot.up.scale.shows(*py));
        let places: Vec<(f64, f64)> = shown.map(|(px, py)| (x(*px), y(*py))).collect();
        if !series.joined || places.len() <= MAX_MARKED_POINTS {
            out.items.extend(places.iter().map(|(px, py)| Item::Dot(ink, *px, *py)));
        }
        if series.joined && places.len() > 1 {
            out.items.push(Item::Line(ink, places));
        }
    }
    if let Some((px, py)) = plot.highlighted.filter(|(px, py)| plot.across.scale.shows(*px) && plot.up.scale.shows(*py))
    {
        out.items.push(Item::Circle(Ink::Mark, x(px), y(py)));
    }
    if plot.series.len() > 1 {
        out.legend = plot.series.iter().map(|series| series.name.clone()).collect();
    }
    Some(out)
}

/// Lays out bars below each other; `None` if no bar has a length.
#[must_use]
pub fn bars(bars: &Bars, width: f64) -> Option<Drawing> {
    const ROW: f64 = 26.0;
    let reach = bars.max_extent();
    if reach <= 0.0 {
        return None;
    }
    let longest = bars.bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or_default();
    let left = (7.2 * longest as f64 + 12.0).min(0.4 * width);
    let right = 120.0;
    let x = |value: f64| left + value.clamp(0.0, reach) / reach * (width - left - right);
    let names = bars.names();
    let height = ROW * bars.bars.len() as f64 + 6.0;
    let mut out = Drawing { width, height, title: bars.title.clone(), items: Vec::new(), legend: Vec::new() };
    for (row, bar) in bars.bars.iter().enumerate() {
        let top = ROW * row as f64 + 4.0;
        let middle = top + 0.5 * ROW - 2.0;
        let text = middle + 4.0;
        out.text(Ink::Text, Anchor::End, left - 8.0, text, bar.name.clone());
        let mut from = 0.0;
        for (name, value) in bar.parts.iter().filter(|(_, value)| *value > 0.0 && value.is_finite()) {
            let color = names.iter().position(|known| known == name).unwrap_or_default();
            let place = [x(from), top, (x(from + value) - x(from)).max(0.0), ROW - 8.0];
            let described = format!("{name} {}", atlas_core::units::si(*value));
            out.items.push(Item::Rectangle(Ink::Color(color), place, described));
            from += value;
        }
        if let Some((low, high)) = bar.interval.filter(|(low, high)| low.is_finite() && high.is_finite()) {
            let (low, high) = (x(low), x(high));
            for ends in [
                [(low, middle), (high, middle)],
                [(low, middle - 4.0), (low, middle + 4.0)],
                [(high, middle - 4.0), (high, middle + 4.0)],
            ] {
                out.items.push(Item::Line(Ink::Mark, ends.to_vec()));
            }
        }
        if let Some(limit) = bar.limit.filter(|limit| limit.is_finite()) {
            out.items.push(Item::Line(Ink::Limit, vec![(x(limit), top - 4.0), (x(limit), top - 4.0 + ROW)]));
        }
        let end = x(bar.total().max(bar.interval.map_or(0.0, |(_, high)| high)).max(bar.limit.unwrap_or(0.0)));
        out.text(Ink::Text, Anchor::Start, end + 6.0, text, bar.label.clone());
    }
    if names.len() > 1 {
        out.legend = names.into_iter().map(str::to_owned).collect();
    }
    Some(out)
}
