//! Result of comparing a watched run with its prediction.

/// Position of the run relative to the predicted interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Standing {
    /// There is not enough data.
    #[default]
    Waiting,
    /// There is no prediction to compare with.
    Unplanned,
    /// Within the interval.
    Within,
    /// Slower than the upper bound of the interval.
    Slower {
        /// First slow step; `None` if the run was slow from the start.
        since: Option<u64>,
        /// Relative slowdown compared with the prediction.
        share: f64,
    },
    /// Faster than the lower bound of the interval.
    Faster {
        /// Relative speedup compared with the prediction.
        share: f64,
    },
}

impl Standing {
    /// Name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Standing::Waiting => "waiting",
            Standing::Unplanned => "unplanned",
            Standing::Within => "within",
            Standing::Slower { .. } => "slower",
            Standing::Faster { .. } => "faster",
        }
    }

    /// Whether two verdicts are equal, except for how fast or slow the run is.
    #[must_use]
    pub fn is_same(self, other: Standing) -> bool {
        match (self, other) {
            (Standing::Slower { since: a, .. }, Standing::Slower { since: b, .. }) => a == b,
            _ => self.name() == other.name(),
        }
    }

    /// The verdict as text. `counter` is the unit of the points, see
    /// [`WatchState::counter`](super::WatchState::counter).
    #[must_use]
    pub fn text(self, counter: &str) -> String {
        match self {
            Standing::Waiting => "not enough data to compare".to_owned(),
            Standing::Unplanned => "no prediction to compare with".to_owned(),
            Standing::Within => "within the interval".to_owned(),
            Standing::Slower { since, share } => {
                let since = since.map_or_else(|| "from the start".to_owned(), |step| format!("since {counter} {step}"));
                format!("{:.0} % slower than predicted {since}", 100.0 * share)
            }
            Standing::Faster { share } => format!("{:.0} % faster than predicted", 100.0 * share),
        }
    }
}
