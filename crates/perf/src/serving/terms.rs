//! Terms of the request rate and of the time per output token, for callers that show them.

/// Terms of a request rate. The engine computes the rate from these terms, so they always agree.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Rate {
    /// Nothing is served.
    #[default]
    None,
    /// Concurrent sequences, each replaced when it ends.
    ClosedLoop {
        /// Share of the replicas that are busy.
        busy: f64,
        /// Concurrent sequences.
        sequences: f64,
        /// Time that a sequence runs, s.
        seconds: f64,
        /// Time from the end of a sequence to the start of its replacement, s.
        between: f64,
        /// Factor for the drain at the end of a run; 1 without a drain.
        drained: f64,
    },
    /// The front end is saturated.
    FrontEnd {
        /// Share of the replicas that are busy.
        busy: f64,
        /// Maximum requests per second of the front end.
        most: f64,
        /// Factor for the drain at the end of a run; 1 without a drain.
        drained: f64,
    },
    /// The prefill pool is saturated.
    PrefillPool {
        /// Replicas of the prefill pool.
        replicas: f64,
        /// Time that a replica spends on a request, s.
        seconds: f64,
    },
    /// The links between the prefill and the decode pool are saturated.
    KvLinks {
        /// Links that transfer the KV caches of different requests.
        links: f64,
        /// Time that a request occupies a link, s.
        seconds: f64,
    },
    /// A run from its first request to its last response.
    Run {
        /// Number of requests.
        requests: f64,
        /// Duration of the run, s.
        seconds: f64,
    },
    /// The arrival rate, requests per second.
    Arrivals(f64),
}

impl Rate {
    /// `sequences` concurrent sequences that run for `seconds` each, without gaps or a drain.
    #[must_use]
    pub fn turnover(sequences: f64, seconds: f64) -> Rate {
        Rate::ClosedLoop { busy: 1.0, sequences, seconds, between: 0.0, drained: 1.0 }
    }

    /// Requests per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        match *self {
            Rate::None => 0.0,
            Rate::ClosedLoop { busy, sequences, seconds, between, drained } => {
                busy * (sequences / (seconds + between)) * drained
            }
            Rate::FrontEnd { busy, most, drained } => busy * most * drained,
            Rate::PrefillPool { replicas, seconds } => replicas / seconds,
            Rate::KvLinks { links, seconds } => links / seconds,
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

/// Terms of the mean time per output token.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum TokenTime {
    /// No token follows the first.
    #[default]
    None,
    /// The time that a sequence runs, without the time before its first token.
    SequenceDuration {
        /// Time that a sequence runs, s.
        seconds: f64,
        /// Part of `seconds` before the first token, s.
        before: f64,
        /// Tokens after the first.
        tokens: f64,
    },
    /// Decoding that arriving prompts interrupt: the completion time of a job with interruptions,
    /// (decoding + behind) / (1 - interrupted), of which a share `before_end` of the interruptions counts (Gaver, J. Royal Stat. Soc. B 24 (1962)). A random arrival meets all
    /// sequences, where in a closed loop one of them has just ended.
    Interrupted {
        /// Decode time without interruptions, s.
        decoding: f64,
        /// Prefill of the prompts that arrived between this one and its first token, s.
        behind: f64,
        /// Share of the time for which prompts of later arrivals are computed.
        interrupted: f64,
        /// Share of the interruptions that occur before the last token: each step computes prompts only once.
        before_end: f64,
        /// Tokens after the first.
        tokens: f64,
    },
    /// Decode steps.
    Steps {
        /// Number of steps.
        steps: f64,
        /// Time of a step, s.
        seconds: f64,
        /// Tokens generated in these steps.
        tokens: f64,
    },
}

impl TokenTime {
    /// Time per output token, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        match *self {
            TokenTime::None => 0.0,
            TokenTime::SequenceDuration { seconds, before, tokens } => (seconds - before) / tokens,
            TokenTime::Interrupted { decoding, behind, interrupted, before_end, tokens } => {
                let interruptions = (decoding + behind) / (1.0 - interrupted) - decoding;
                (decoding + before_end * interruptions) / tokens
            }
            TokenTime::Steps { steps, seconds, tokens } => steps * seconds / tokens,
        }
    }

    /// The longer of two times.
    #[must_use]
    pub fn at_least(self, least: TokenTime) -> TokenTime {
        if least.seconds() > self.seconds() { least } else { self }
    }
}
