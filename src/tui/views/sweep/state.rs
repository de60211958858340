//! State of the sweep: the knobs and the curves.

use atlas_plan::estimate::Metric;
use atlas_plan::knob::Knob;
use atlas_plan::search::Axis;
use atlas_plan::search::sweep::Grid;
use std::sync::Arc;

/// Settings of the view.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SweepSettings {
    /// The knob of the horizontal axis; the selected knob if unset.
    pub across: Option<Knob>,
    /// The knob of the vertical axis, for a heat map.
    pub against: Option<Knob>,
    /// The point under the cursor, as an index on each axis; the scenario's if unset.
    pub cursor: Option<(usize, usize)>,
    /// The curve under the cursor.
    pub curve: usize,
}

/// The query of the view.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Generation of the scenario.
    pub generation: u64,
    /// The knob of the horizontal axis.
    pub across: Knob,
    /// The knob of the vertical axis.
    pub against: Option<Knob>,
    /// The metric.
    pub metric: &'static Metric,
    /// The targets, the selected one first.
    pub targets: Vec<Arc<str>>,
}

/// The answer: a grid for each target over the same axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    /// The horizontal axis.
    pub across: Axis,
    /// The vertical axis.
    pub against: Option<Axis>,
    /// The metric.
    pub metric: &'static Metric,
    /// Targets and their values of the metric. In the numbering of cells, the horizontal axis varies fastest.
    pub curves: Vec<(Arc<str>, Grid)>,
}

impl Curves {
    /// Number of values on the vertical axis; 1 without one.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.against.as_ref().map_or(1, |axis| axis.values.len())
    }

    /// Index of the cell at a column and a row.
    #[must_use]
    pub fn point(&self, (column, row): (usize, usize)) -> usize {
        // The horizontal axis varies fastest.
        row * self.across.values.len() + column
    }

    /// Column and row of a cell.
    #[must_use]
    pub fn place(&self, point: usize) -> (usize, usize) {
        let columns = self.across.values.len().max(1);
        (point % columns, point / columns)
    }
}
