//! What the rate of requests and the time per output token are computed from, for callers that show them.

/// What a rate of requests follows from. The engine computes the rate from it, so the two cannot differ.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Rate {
    /// Nothing is served.
    #[default]
    None,
    /// Sequences run side by side and are replaced as they end.
    Turnover {
        /// Share of the replicas that have work.
        busy: f64,
        /// Sequences that run.
        sequences: f64,
        /// For which each of them runs, s.
        seconds: f64,
        /// Between one sequence and the next that takes its place, s.
        between: f64,
        /// Share of the rate that the drain at the end of a run leaves.
        drained: f64,
    },
    /// The front end takes no more.
    FrontEnd {
        /// Share of the replicas that have work.
        busy: f64,
        /// Requests per second that it takes.
        most: f64,
        /// Share of the rate that the drain at the end of a run leaves.
        drained: f64,
    },
    /// The prefill pool works all the time.
    PrefillPool {
        /// Replicas that prefill.
        replicas: f64,
        /// For which each of them works on a request, s.
        seconds: f64,
    },
    /// A run from its first request to its last answer.
    Run {
        /// Requests of the run.
        requests: f64,
        /// Its length, s.
        seconds: f64,
    },
    /// As many as arrive.
    Arrivals(f64),
}

impl Rate {
    /// Sequences that run for so long each, with neither gaps nor a drain.
    #[must_use]
    pub fn turnover(sequences: f64, seconds: f64) -> Rate {
        Rate::Turnover { busy: 1.0, sequences, seconds, between: 0.0, drained: 1.0 }
    }

    /// Requests per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        match *self {
            Rate::None => 0.0,
            Rate::Turnover { busy, sequences, seconds, between, drained } => {
                busy * (sequences / (seconds + between)) * drained
            }
            Rate::FrontEnd { busy, most, drained } => busy * most * drained,
            Rate::PrefillPool { replicas, seconds } => replicas / seconds,
            Rate::Run { requests, seconds } => requests / seconds,
            Rate::Arrivals(rate) => rate,
        }
    }

    /// The smaller of two rates.
    #[must_use]
    pub fn or(self, other: Rate) -> Rate {
        if other.per_second() < self.per_second() { other } else { self }
    }
}

/// What the mean time per output token follows from.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum TokenTime {
    /// No token follows the first.
    #[default]
    None,
    /// The life of a sequence without what passes before its first token.
    Life {
        /// For which a sequence runs, s.
        seconds: f64,
        /// Of that, before its first token, s.
        before: f64,
        /// Tokens after the first.
        tokens: f64,
    },
    /// Decode steps.
    Steps {
        /// Steps.
        steps: f64,
        /// Of each, s.
        seconds: f64,
        /// Tokens that they yield.
        tokens: f64,
    },
}

impl TokenTime {
    /// Seconds of a token.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        match *self {
            TokenTime::None => 0.0,
            TokenTime::Life { seconds, before, tokens } => (seconds - before) / tokens,
            TokenTime::Steps { steps, seconds, tokens } => steps * seconds / tokens,
        }
    }

    /// The longer of two times.
    #[must_use]
    pub fn at_least(self, least: TokenTime) -> TokenTime {
        if least.seconds() > self.seconds() { least } else { self }
    }
}
