//! Mode of a workload.

/// Training or inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Weights are learned; throughput and step time matter.
    Training,
    /// Requests are served; latency matters too.
    Inference,
}

impl Mode {
    /// Name and value, as documents are read.
    pub const WORDS: [(&'static str, Mode); 2] = [("training", Mode::Training), ("inference", Mode::Inference)];

    /// `training` or `inference`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Training => "training",
            Mode::Inference => "inference",
        }
    }

    /// The mode of a workload with `mode: written`, or that follows from its name; `None` if that is
    /// no mode.
    #[must_use]
    pub fn of(written: Option<&str>, name: &str) -> Option<Mode> {
        match written {
            Some(written) => Mode::WORDS.iter().find(|(mode, _)| *mode == written).map(|(_, mode)| *mode),
            None if name.to_lowercase().contains("inference") => Some(Mode::Inference),
            None => Some(Mode::Training),
        }
    }
}
