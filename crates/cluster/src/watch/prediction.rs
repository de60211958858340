//! What a run is compared with.

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Seconds of a training step.
    Step,
    /// Seconds between two tokens of one request.
    Token,
}

impl Quantity {
    /// One of it, in words.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Quantity::Step => "step",
            Quantity::Token => "token",
        }
    }
}

/// A prediction, as far as a watched run is compared with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Target and workload.
    pub name: String,
    /// What is compared.
    pub quantity: Quantity,
    /// Predicted seconds.
    pub seconds: f64,
    /// Lower and upper end of the 90 % interval, s.
    pub band: [f64; 2],
    /// Where the time goes: named terms in seconds, which sum to the predicted time.
    pub terms: Vec<(String, f64)>,
    /// Accelerators of the job.
    pub accelerators: f64,
    /// Tokens of a training step.
    pub tokens_per_step: Option<f64>,
    /// Steps of the whole training.
    pub steps: Option<u64>,
    /// Cost of the job.
    pub usd_per_hour: Option<f64>,
    /// Power of one accelerator, W.
    pub watts: Option<f64>,
    /// Requests in the batch of a replica.
    pub batch: Option<f64>,
}

/// What a term of an estimate belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Work of the accelerators.
    Device,
    /// Waiting for other accelerators.
    Network,
    /// The host: launches, data, offload.
    Host,
    /// Reading keys and values.
    Cache,
    /// Waiting for slow accelerators, and failures.
    Others,
}

/// What a term belongs to, by the name that estimates give it.
#[must_use]
pub fn part(term: &str) -> Part {
    match term {
        "tensor parallel" | "context parallel" | "expert parallel" | "pipeline transfer" | "data parallel"
        | "communication" | "all-reduce" => Part::Network,
        "host" | "launch" | "offload" => Part::Host,
        "KV cache" => Part::Cache,
        "stragglers" | "failures" => Part::Others,
        _ => Part::Device,
    }
}

impl Prediction {
    /// Predicted seconds of a part.
    #[must_use]
    pub fn of(&self, wanted: Part) -> f64 {
        self.terms.iter().filter(|(name, _)| part(name) == wanted).map(|(_, seconds)| seconds).sum()
    }

    /// The largest term of a part.
    #[must_use]
    pub fn largest(&self, wanted: Part) -> Option<&str> {
        let terms = self.terms.iter().filter(|(name, seconds)| part(name) == wanted && *seconds > 0.0);
        terms.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name.as_str())
    }
}
