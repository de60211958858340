//! A single run of a deployment under load, and its measurements.

use super::{Problems, Run, SimulationMetric};
use atlas_perf::serving::step::StepTime;
use atlas_perf::serving::{Load, ServingInput, estimate};
use atlas_sim::kernel::Progress;
use atlas_sim::serving;
use atlas_sim::serving::{Arrivals, Input, Output, Slo};

/// Deployment and its load.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Input of the simulation.
    pub input: Input,
    /// Replicas that the target holds.
    pub held: f64,
}

/// Measurements of the first run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The deployment.
    pub system: ServingInput,
    /// Output of the simulation.
    pub output: Output,
    /// Latency limits (SLOs) of a good request.
    pub slo: Slo,
    /// Offered requests per second; `None` if arrivals depend on completions, or all arrive at once.
    pub offered: Option<f64>,
    /// Time breakdown of the mean step according to the closed form, seconds.
    pub step: StepTime,
    /// Share of device memory for weights and engine reserve, and share available for the KV cache.
    pub memory: (f64, f64),
    /// Output tokens per second according to the closed form for the same load.
    pub analytical_tokens_per_sec: f64,
}

impl Measured {
    /// Output tokens per second in the steady state, while requests arrive; of the whole run if all arrive at once.
    #[must_use]
    pub fn steady_rate(&self) -> f64 {
        steady(&self.output) * self.tokens_per_output()
    }

    /// Tokens of a request per token that the simulation counts as its output. If nothing is generated, it counts one
    /// token per request, but rates are those of prompts.
    #[must_use]
    pub fn tokens_per_output(&self) -> f64 {
        tokens_per_output(&self.system)
    }

    /// Communication share of a step.
    #[must_use]
    pub fn communication(&self) -> f64 {
        self.step.communication / self.step.total().max(1e-12)
    }

    /// Mean and maximum share of device memory in use.
    #[must_use]
    pub fn memory_use(&self) -> (f64, f64) {
        let (fixed, keys) = self.memory;
        (fixed + keys * self.output.kv_share, fixed + keys * self.output.max_kv_share)
    }
}

pub(super) fn run(work: &Work, seed: u64, progress: &Progress, first: bool) -> Result<Run, Problems> {
    let output = serving::simulate(&work.input, seed, progress)?;
    let metrics = metrics(&output, &work.input);
    let (events, canceled) = (output.events, output.canceled);
    let measured = first.then(|| super::Measured::Serving(Box::new(measure(&work.input, output))));
    Ok(Run { metrics, measured, events, canceled })
}

fn steady(o: &Output) -> f64 {
    if o.steady_output_tokens_per_sec > 0.0 { o.steady_output_tokens_per_sec } else { o.output_tokens_per_sec }
}

/// See [`Measured::tokens_per_output`].
fn tokens_per_output(system: &ServingInput) -> f64 {
    if system.counts_prompts() { system.isl } else { 1.0 }
}

fn metrics(o: &Output, input: &Input) -> Vec<(SimulationMetric, f64)> {
    use SimulationMetric as M;
    let each = tokens_per_output(&input.system);
    let total = if input.system.counts_prompts() { each * o.output_tokens_per_sec } else { o.total_tokens_per_sec };
    let mut all = vec![
        (M::TokensPerSec, each * o.output_tokens_per_sec),
        (M::SteadyTokensPerSec, each * steady(o)),
        (M::TotalTokensPerSec, total),
        (M::RequestsPerSec, o.requests_per_sec),
        (M::TtftP50, 1e3 * o.ttft.p50),
        (M::TtftP90, 1e3 * o.ttft.p90),
        (M::TtftP99, 1e3 * o.ttft.p99),
        (M::TpotP50, 1e3 * o.tpot.p50),
        (M::TpotP90, 1e3 * o.tpot.p90),
        (M::TpotP99, 1e3 * o.tpot.p99),
        (M::ItlP99, 1e3 * o.itl.p99),
        (M::E2eP50, 1e3 * o.e2e.p50),
        (M::E2eP90, 1e3 * o.e2e.p90),
        (M::E2eP99, 1e3 * o.e2e.p99),
        (M::Waiting, o.waiting),
        (M::Running, o.running),
        (M::ReplicasBusy, o.busy),
        (M::KvBlocks, o.kv_share),
        (M::PrefixHit, o.prefix_hit),
    ];
    if input.autoscaling.is_some() {
        all.push((M::Replicas, o.replicas));
        all.push((M::MaxReplicas, o.max_replicas));
    }
    if input.slo != Slo::default() {
        all.push((M::Goodput, o.goodput));
        all.push((M::GoodShare, o.slo_share));
    }
    all
}

/// Arrival rate of an open load; `None` for other loads.
pub(super) fn offered(input: &Input) -> Option<f64> {
    match &input.arrivals {
        Arrivals::Poisson { rate } | Arrivals::Gamma { rate, .. } => Some(*rate),
        Arrivals::Phases(phases) => {
            let (requests, seconds) = phases.iter().fold((0.0, 0.0), |(requests, seconds), phase| {
                (requests + phase.rate * phase.seconds, seconds + phase.seconds)
            });
            Some(requests / f64::max(seconds, 1e-12))
        }
        Arrivals::Trace(trace) => {
            trace.last().map(|last| (trace.len() as f64 - 1.0) / last.seconds.max(1e-9)).filter(|rate| *rate < 1e9)
        }
        Arrivals::Burst | Arrivals::Closed { .. } => None,
    }
}

fn measure(input: &Input, output: Output) -> Measured {
    let lengths = &input.lengths;
    let mut system = ServingInput { isl: lengths.isl.mean(), osl: lengths.osl.mean(), ..input.system };
    if let Arrivals::Trace(trace) = &input.arrivals {
        let mean = |of: fn(&serving::TraceRequest) -> u32| {
            trace.iter().map(|r| f64::from(of(r))).sum::<f64>() / trace.len().max(1) as f64
        };
        (system.isl, system.osl) = (mean(|r| r.isl).max(1.0), mean(|r| r.osl).max(1.0));
    }
    let offered = offered(input);
    system.load = match (&input.arrivals, offered) {
        (Arrivals::Closed { concurrency }, _) => {
            Load::Closed { concurrency: f64::from(*concurrency), requests: f64::INFINITY }
        }
        (_, Some(rate)) => Load::Open { rate },
        _ => match input.system.load {
            // The batch that the scenario states, unless the options state another number of requests.
            Load::Static { batch } | Load::PrefillOnly { batch } if batch == f64::from(input.requests) => {
                input.system.load
            }
            _ => Load::Burst { requests: f64::from(input.requests) },
        },
    };
    // Use the prefix hit rate of the simulation in the closed form too.
    system.prefix_hit = output.prefix_hit;
    let closed = estimate(&system, &input.constants);
    Measured {
        memory: memory(&system, &input.constants),
        step: closed.time,
        analytical_tokens_per_sec: closed.requests_per_sec
            * if system.counts_prompts() { system.isl } else { system.osl },
        slo: input.slo,
        offered,
        system,
        output,
    }
}

/// Shares of the memory of a decoding device: the fixed part, and the part available for the KV cache.
fn memory(system: &ServingInput, c: &atlas_perf::constants::Constants) -> (f64, f64) {
    use atlas_perf::serving::kv;
    use atlas_perf::serving::machine::Machine;
    let layout = system.pools.map_or(system.layout, |pools| pools.decode);
    let machine = Machine::new(system, &layout, c);
    let free = kv::capacity(system, &layout, &machine.shape, c).free_bytes.max(0.0);
    let device = system.accelerator.capacity().max(1.0);
    let fixed = (device * system.memory_utilization - free).max(0.0);
    (fixed / device, free / device)
}
