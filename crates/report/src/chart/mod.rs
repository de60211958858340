//! Charts for terminals and documents.
//!
//! * [`axis`] – ranges, round ticks, linear and logarithmic scales
//! * [`text`] – braille plots with labeled axes, for terminals
//! * [`drawing`] – plots and bars laid out as lines and text at fixed positions
//! * [`pictures`] – layout of heat maps, tornado charts and lanes
//! * [`svg`] – SVG output, in colors that follow the reader's light or dark mode
//! * [`png`] – PNG output
//! * [`sheet`] – pixel buffer that charts are painted on

pub mod axis;
pub mod bars;
pub mod drawing;
pub mod pictures;
pub mod png;
pub mod sheet;
pub mod svg;
pub mod text;

pub use axis::{Axis, Scale};
pub use bars::{Bar, Bars};

/// A series of points, joined by a line or separate.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points, in the order in which a line joins them. Points that are not finite are omitted.
    pub points: Vec<(f64, f64)>,
    /// Whether a line joins them.
    pub joined: bool,
}

/// A chart of points over two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Heading.
    pub title: String,
    /// Horizontal axis.
    pub across: Axis,
    /// Vertical axis.
    pub up: Axis,
    /// Series to draw.
    pub series: Vec<Series>,
    /// Highlighted point: the user's scenario.
    pub highlighted: Option<(f64, f64)>,
}

impl Plot {
    /// All points that both axes can show.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let all = self.series.iter().flat_map(|series| series.points.iter().copied()).chain(self.highlighted);
        all.filter(|(x, y)| self.across.scale.shows(*x) && self.up.scale.shows(*y))
    }

    /// Ranges of both axes, widened to round ticks; `None` if there is nothing to draw.
    #[must_use]
    pub fn ranges(&self) -> Option<(axis::Range, axis::Range)> {
        let across = self.across.range(self.points().map(|(x, _)| x))?;
        Some((across, self.up.range(self.points().map(|(_, y)| y))?))
    }
}
