//! The prediction with which a run is compared.

use atlas_config::Mode;
use atlas_plan::estimate::{Estimate, TimePart};
use atlas_plan::scenario::{Parts, Scenario};

/// The quantity that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Time per training step, s.
    Step,
    /// Time between two tokens of one request, s.
    Token,
}

impl Quantity {
    /// The unit to which the time refers, in text.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Quantity::Step => "step",
            Quantity::Token => "token",
        }
    }
}

/// The parts of a prediction that are compared with a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Names of target and workload.
    pub name: String,
    /// The quantity that is compared.
    pub quantity: Quantity,
    /// Predicted time, s.
    pub seconds: f64,
    /// Lower and upper bound of the 90 % interval, s.
    pub band: [f64; 2],
    /// Parts of the predicted time, s. They sum to the predicted time.
    pub terms: Vec<(TimePart, f64)>,
    /// Number of accelerators of the job.
    pub accelerators: f64,
    /// Tokens per training step.
    pub tokens_per_step: Option<f64>,
    /// Number of steps of the whole training run.
    pub steps: Option<u64>,
    /// Cost of the job per hour, USD.
    pub usd_per_hour: Option<f64>,
    /// Power of one accelerator, W.
    pub watts: Option<f64>,
    /// Number of requests in the batch of a replica.
    pub batch: Option<f64>,
}

/// Category of a term of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Computation on the accelerators.
    Device,
    /// Waiting for other accelerators.
    Network,
    /// The host: kernel launches, data loading, offloading.
    Host,
    /// Reading the KV cache.
    Cache,
    /// Waiting for slow accelerators, and failures.
    Others,
}

/// Category of a term.
#[must_use]
pub fn part(term: TimePart) -> Part {
    match term {
        TimePart::TensorParallel
        | TimePart::ContextParallel
        | TimePart::ExpertParallel
        | TimePart::PipelineTransfer
        | TimePart::DataParallel
        | TimePart::Communication
        | TimePart::AllReduce => Part::Network,
        TimePart::Host | TimePart::Launch | TimePart::Offload | TimePart::DataLoading => Part::Host,
        TimePart::KvCache => Part::Cache,
        TimePart::Stragglers | TimePart::Failures => Part::Others,
        TimePart::Gemm
        | TimePart::Attention
        | TimePart::Elementwise
        | TimePart::Recompute
        | TimePart::PipelineBubble
        | TimePart::Optimizer
        | TimePart::Images
        | TimePart::Compute
        | TimePart::Weights
        | TimePart::Activations => Part::Device,
    }
}

impl Prediction {
    /// The parts of an estimate that a watch needs.
    ///
    /// # Errors
    /// The estimate has no interval, or its time is not a positive number.
    pub fn of_estimate(
        parts: &Parts,
        scenario: &Scenario,
        estimate: &Estimate,
        steps: Option<u64>,
    ) -> Result<Prediction, String> {
        let engine = scenario.engine.name();
        let Some(detail) = &estimate.detail else {
            return Err(format!("the {engine} engine has no prediction interval; use --engine analytical"));
        };
        let training = scenario.mode() == Mode::Training;
        let serving = detail.serving.as_ref();
        let (quantity, seconds, interval) = match serving.filter(|_| !training) {
            Some(serving) => (Quantity::Token, serving.tpot_ms.mean / 1e3, serving.tpot_interval),
            None => {
                let ms = estimate.total.step_time_ms.ok_or_else(|| format!("the {engine} engine has no step time"))?;
                (Quantity::Step, ms / 1e3, detail.throughput_interval.inverse())
            }
        };
        let (low, high) = interval.around(seconds);
        if !(seconds > 0.0 && low > 0.0 && high.is_finite()) {
            return Err(format!("the predicted time is not usable: {seconds} s"));
        }
        let tokens_per_step = detail.training.as_ref().map(|training| training.tokens_per_step);
        let planned = scenario.base.plan.train_tokens.zip(tokens_per_step).filter(|(_, tokens)| *tokens > 0.0);
        Ok(Prediction {
            name: format!("{} × {}", parts.target.name, parts.workload.name),
            quantity,
            seconds,
            band: [low, high],
            terms: detail.time.parts().filter(|(_, seconds)| *seconds > 0.0).collect(),
            accelerators: scenario.accelerators(),
            tokens_per_step,
            steps: steps.or(planned.map(|(all, tokens)| (all / tokens).ceil() as u64)),
            usd_per_hour: Some(estimate.cost.usd_per_hour).filter(|usd| *usd > 0.0),
            // A node's power includes more than its accelerators, and their share is not known here.
            watts: Some(estimate.total.node_power_w / scenario.accelerators_per_node).filter(|watts| *watts > 0.0),
            batch: serving.map(|serving| serving.batch),
        })
    }

    /// Predicted time of a category, s.
    #[must_use]
    pub fn of(&self, wanted: Part) -> f64 {
        self.terms.iter().filter(|(term, _)| part(*term) == wanted).map(|(_, seconds)| seconds).sum()
    }

    /// Name of the largest term of a category.
    #[must_use]
    pub fn largest(&self, wanted: Part) -> Option<&'static str> {
        let terms = self.terms.iter().filter(|(term, seconds)| part(*term) == wanted && *seconds > 0.0);
        terms.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(term, _)| term.name())
    }
}
