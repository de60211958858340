//! State of the view of models and targets.

use crate::tui::work::query::Query;
use std::sync::Arc;

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The table. Each answer has more rows than the previous one, until it is complete.
    pub table: Query<Question, Arc<Grid>>,
    /// Column of the cursor.
    pub column: usize,
}

/// Key of the table: the generation of the scenario, the targets, and the number of models already tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub(in crate::tui) generation: u64,
    pub(in crate::tui) targets: Vec<Arc<str>>,
    pub(in crate::tui) done: usize,
}

/// Table of models and targets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grid {
    /// Number of models tried so far.
    pub done: usize,
    /// Total number of models.
    pub of: usize,
    /// The targets, in the order of the files.
    pub targets: Vec<Arc<str>>,
    /// Models that at least one target can run or is too small for, smallest first.
    pub rows: Vec<Row>,
}

/// Row of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Key of the model in the catalog.
    pub model: Arc<str>,
    /// Number of parameters.
    pub parameters: f64,
    /// One cell per target.
    pub cells: Vec<Cell>,
}

/// Result of a model on a target.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// The model fits in memory.
    Fits {
        /// TP and PP degrees of the smallest layout that fits.
        layout: (f64, f64),
        /// Fraction of the memory that stays free.
        free: f64,
        /// Value of the metric returned by `speed`, if the model has it.
        speed: Option<f64>,
        /// Price of a million tokens, if known.
        price: Option<f64>,
    },
    /// The model does not fit: bytes missing per device, in the layout that needs the least memory.
    Short(f64),
    /// The model cannot be run, and why.
    Cannot(String),
}
