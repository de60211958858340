//! Charts, drawn for terminals and for documents.
//!
//! * [`axis`] – ranges, round ticks, linear and logarithmic
//! * [`text`] – braille pictures with labeled axes
//! * [`drawing`] – the same as lines and words in their places
//! * [`pictures`] – heat maps, tornados and lanes, laid out likewise
//! * [`svg`] – which are written for documents, in colors that follow the reader's light or dark
//! * [`png`] – or painted
//! * [`sheet`] – pixels that charts are painted on

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

/// Points of one kind, joined by a line or left alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points, in the order in which a line joins them. What is not finite is left out.
    pub points: Vec<(f64, f64)>,
    /// Whether a line joins them.
    pub joined: bool,
}

/// Points over two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Its heading.
    pub title: String,
    /// What runs across.
    pub across: Axis,
    /// What runs up.
    pub up: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// A point that stands out: where the user is.
    pub here: Option<(f64, f64)>,
}

impl Plot {
    /// Every point that both axes can show.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let all = self.series.iter().flat_map(|series| series.points.iter().copied()).chain(self.here);
        all.filter(|(x, y)| self.across.scale.shows(*x) && self.up.scale.shows(*y))
    }

    /// Both axes' ranges, widened to round ticks; `None` if there is nothing to draw.
    #[must_use]
    pub fn ranges(&self) -> Option<(axis::Range, axis::Range)> {
        let across = self.across.range(self.points().map(|(x, _)| x))?;
        Some((across, self.up.range(self.points().map(|(_, y)| y))?))
    }
}
