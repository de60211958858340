//! Result of comparing a watched run with its prediction.

/// Position of the run relative to the predicted interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Position {
    /// There is not enough data.
    #[default]
    Waiting,
    /// There is no prediction to compare with.
    NoPrediction,
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

impl Position {
    /// Name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Position::Waiting => "waiting",
            Position::NoPrediction => "unplanned",
            Position::Within => "within",
            Position::Slower { .. } => "slower",
            Position::Faster { .. } => "faster",
        }
    }

    /// Whether two verdicts are equal, except for how fast or slow the run is.
    #[must_use]
    pub fn is_same(self, other: Position) -> bool {
        match (self, other) {
            (Position::Slower { since: a, .. }, Position::Slower { since: b, .. }) => a == b,
            _ => self.name() == other.name(),
        }
    }

    /// The verdict as text. `counter` is the unit of the points, see
    /// [`WatchState::counter`](super::WatchState::counter).
    #[must_use]
    pub fn text(self, counter: &str) -> String {
        match self {
            Position::Waiting => "not enough data to compare".to_owned(),
            Position::NoPrediction => "no prediction to compare with".to_owned(),
            Position::Within => "within the interval".to_owned(),
            Position::Slower { since, share } => {
                let since = since.map_or_else(|| "from the start".to_owned(), |step| format!("since {counter} {step}"));
                format!("{:.0} % slower than predicted {since}", 100.0 * share)
            }
            Position::Faster { share } => format!("{:.0} % faster than predicted", 100.0 * share),
        }
    }
}
