//! Where a watched run stands against its prediction.

/// Where the run stands against its interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Standing {
    /// Too little was read.
    #[default]
    Waiting,
    /// There is no prediction to hold it against.
    Unplanned,
    /// Inside.
    Within,
    /// Slower than its upper end.
    Slower {
        /// The first slow step; `None` if it was slow from the start.
        since: Option<u64>,
        /// By which share slower than predicted.
        share: f64,
    },
    /// Faster than its lower end.
    Faster {
        /// By which share faster than predicted.
        share: f64,
    },
}

impl Standing {
    /// Its name in JSON.
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

    /// Whether two verdicts differ at most in how fast or slow the run is.
    #[must_use]
    pub fn is_same(self, other: Standing) -> bool {
        match (self, other) {
            (Standing::Slower { since: a, .. }, Standing::Slower { since: b, .. }) => a == b,
            _ => self.name() == other.name(),
        }
    }

    /// In words; `counter` is what counts the points, see [`WatchState::counter`](super::WatchState::counter).
    #[must_use]
    pub fn text(self, counter: &str) -> String {
        match self {
            Standing::Waiting => "not enough data to compare".to_owned(),
            Standing::Unplanned => "nothing to compare with".to_owned(),
            Standing::Within => "within the interval".to_owned(),
            Standing::Slower { since, share } => {
                let since = since.map_or_else(|| "from the start".to_owned(), |step| format!("since {counter} {step}"));
                format!("{:.0} % slower than predicted {since}", 100.0 * share)
            }
            Standing::Faster { share } => format!("{:.0} % faster than predicted", 100.0 * share),
        }
    }
}
