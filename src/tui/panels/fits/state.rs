//! State of the view: what runs where.

use crate::tui::work::query::Query;
use std::sync::Arc;

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The table; each answer has more rows than the one before, until it is complete.
    pub table: Query<Question, Arc<Grid>>,
    /// The column under the cursor.
    pub column: usize,
}

/// What the table is of: the generation of the scenario, and the targets; and how many models it has already.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub(in crate::tui) generation: u64,
    pub(in crate::tui) targets: Vec<Arc<str>>,
    pub(in crate::tui) done: usize,
}

/// Models on targets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grid {
    /// How many models have been tried.
    pub done: usize,
    /// How many there are.
    pub of: usize,
    /// The targets, in the order of the files.
    pub targets: Vec<Arc<str>>,
    /// The models that at least one target can run or is too small for, the smallest first.
    pub rows: Vec<Row>,
}

/// A model.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its key in the catalog.
    pub model: Arc<str>,
    /// Its parameters.
    pub parameters: f64,
    /// A cell a target.
    pub cells: Vec<Cell>,
}

/// A model on a target.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// It fits.
    Fits {
        /// Tensor-parallel ranks and pipeline stages of the smallest layout that does.
        layout: (f64, f64),
        /// Share of the memory that stays free.
        free: f64,
        /// The figure of `speed`.
        speed: f64,
        /// Price of a million tokens, where there is one.
        price: Option<f64>,
    },
    /// So many bytes are missing on a device of the layout that needs least.
    Short(f64),
    /// It cannot be run, and why.
    Cannot(String),
}
