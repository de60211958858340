//! The metrics that the comparison shows.

use atlas_config::Mode;
use atlas_plan::estimate::Metric;

/// The metrics that the user chose for the comparison, in order, for each mode.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chosen {
    /// In training.
    pub training: Option<Vec<&'static Metric>>,
    /// In serving.
    pub inference: Option<Vec<&'static Metric>>,
}

impl Chosen {
    /// The metrics of a mode.
    #[must_use]
    pub fn of(&self, mode: Mode) -> Option<&[&'static Metric]> {
        match mode {
            Mode::Training => self.training.as_deref(),
            Mode::Inference => self.inference.as_deref(),
        }
    }

    /// Sets the metrics of a mode; `None` for the default.
    pub fn set(&mut self, mode: Mode, metrics: Option<Vec<&'static Metric>>) {
        match mode {
            Mode::Training => self.training = metrics,
            Mode::Inference => self.inference = metrics,
        }
    }
}
