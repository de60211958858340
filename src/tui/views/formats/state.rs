//! State of the view of formats.

use std::sync::Arc;

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The formats, with the generation of the scenario.
    pub(in crate::tui) listed: Option<(u64, Listed)>,
}

/// The formats in which the scenario could run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed {
    /// The formats, those with the most bits per weight first.
    pub rows: Vec<Row>,
    /// Index of the current format.
    pub current: Option<usize>,
    /// Throughput of the current scenario.
    pub throughput: Option<f64>,
    /// Formats and memory of the current scenario; see [`Row::details`].
    pub details: Vec<Detail>,
}

/// A format.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Value of the knob `precision`.
    pub name: Arc<str>,
    /// Format of matrix products.
    pub products: Arc<str>,
    /// Values of the metrics returned by `metrics`, in that order.
    pub values: Vec<Option<f64>>,
    /// Short reason why the scenario cannot run.
    pub refused: Option<String>,
    /// The reason in full.
    pub reason: Option<String>,
    /// Formats, and the parts of the memory of the fullest accelerator.
    pub details: Vec<Detail>,
}

/// A property of the scenario in a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// Its name: that of a knob, or of a part of the memory.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}
