//! Charts as lines, rectangles and words in their places: laid out once, written as SVG or painted as PNG.

use super::{Bars, Plot};

/// Series and parts are distinguished by eight colors (Okabe and Ito's, legible to the color-blind), then again.
pub const COLOURS: usize = 8;
/// Maximum points of a line that are marked one by one.
const MARKED: usize = 40;
/// Height of a line of the legend.
const LEGEND: f64 = 22.0;

/// What something is, by which it is colored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Words.
    Text,
    /// Words of less weight.
    Dim,
    /// Lines behind everything.
    Grid,
    /// Emphasis: intervals, the user's scenario.
    Mark,
    /// A limit.
    Limit,
    /// A series or part, by its number.
    Colour(usize),
    /// A share of the first color, percent: of a heat map.
    Shade(u8),
    /// An empty place.
    None,
}

/// Alignment of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// One thing drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Points joined by lines.
    Line(Ink, Vec<(f64, f64)>),
    /// A disc.
    Dot(Ink, f64, f64),
    /// A circle around a place.
    Circle(Ink, f64, f64),
    /// A rectangle: left, top, width, height, and its tooltip.
    Rectangle(Ink, [f64; 4], String),
    /// A text, its baseline at a place.
    Text(Ink, Anchor, f64, f64, String),
}

/// A laid-out chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// Its heading.
    pub title: String,
    /// What is drawn, in order.
    pub items: Vec<Item>,
    /// Names of the colors; empty if one alone needs none.
    pub legend: Vec<String>,
}

impl Drawing {
    pub(super) fn text(&mut self, ink: Ink, anchor: Anchor, x: f64, y: f64, text: impl Into<String>) {
        self.items.push(Item::Text(ink, anchor, x, y, text.into()));
    }

    /// The same with its heading above it and its legend below, as a file of its own needs them.
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
                (x, y) = (16.0, y + LEGEND);
            }
            self.items.push(Item::Rectangle(Ink::Colour(number), [x, y - 9.0, 10.0, 10.0], String::new()));
            self.text(Ink::Text, Anchor::Start, x + 15.0, y, name);
            x += wide;
            self.height = y + 10.0;
        }
        self
    }
}

/// Points over two axes; `None` if there is nothing to draw.
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
        let ink = Ink::Colour(number);
        let shown = series.points.iter().filter(|(px, py)| plot.across.scale.shows(*px) && plot.up.scale.shows(*py));
        let places: Vec<(f64, f64)> = shown.map(|(px, py)| (x(*px), y(*py))).collect();
        if !series.joined || places.len() <= MARKED {
            out.items.extend(places.iter().map(|(px, py)| Item::Dot(ink, *px, *py)));
        }
        if series.joined && places.len() > 1 {
            out.items.push(Item::Line(ink, places));
        }
    }
    if let Some((px, py)) = plot.here.filter(|(px, py)| plot.across.scale.shows(*px) && plot.up.scale.shows(*py)) {
        out.items.push(Item::Circle(Ink::Mark, x(px), y(py)));
    }
    if plot.series.len() > 1 {
        out.legend = plot.series.iter().map(|series| series.name.clone()).collect();
    }
    Some(out)
}

/// Bars below each other; `None` if nothing has a length.
#[must_use]
pub fn bars(bars: &Bars, width: f64) -> Option<Drawing> {
    const ROW: f64 = 26.0;
    let reach = bars.reach();
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
            let colour = names.iter().position(|known| known == name).unwrap_or_default();
            let place = [x(from), top, (x(from + value) - x(from)).max(0.0), ROW - 8.0];
            let described = format!("{name} {}", atlas_core::units::si(*value));
            out.items.push(Item::Rectangle(Ink::Colour(colour), place, described));
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
        out.text(Ink::Text, Anchor::Start, end + 6.0, text, bar.shown.clone());
    }
    if names.len() > 1 {
        out.legend = names.into_iter().map(str::to_owned).collect();
    }
    Some(out)
}
