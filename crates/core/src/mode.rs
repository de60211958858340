//! Mode of a workload.

/// Training or inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Training: throughput and step time matter.
    Training,
    /// Serving: latency matters too.
    Inference,
}

impl Mode {
    /// Names of the modes, as spelled in documents.
    pub const WORDS: [(&'static str, Mode); 2] = [("training", Mode::Training), ("inference", Mode::Inference)];

    /// Name of the mode: `training` or `inference`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Training => "training",
            Mode::Inference => "inference",
        }
    }

    /// Mode of a workload with `mode: written`, or by default derived from its name. `None` if `written` is not a mode.
    #[must_use]
    pub fn of(written: Option<&str>, name: &str) -> Option<Mode> {
        match written {
            Some(written) => Mode::WORDS.iter().find(|(mode, _)| *mode == written).map(|(_, mode)| *mode),
            None if name.to_lowercase().contains("inference") => Some(Mode::Inference),
            None => Some(Mode::Training),
        }
    }
}
