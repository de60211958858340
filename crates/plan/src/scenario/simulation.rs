//! Settings that only simulations use: length of a run, variation, failures.

use super::{Phase, Scenario};
use atlas_core::count::Count;
use atlas_core::plan::{Arrivals, LoadKind, Routing};
use atlas_perf::serving::{Load, ServingInput};

/// Default number of independent runs: the smallest whose spread gives a usable estimate of the random error.
const REPLICATIONS: Count = Count::new(3);
/// Default number of optimizer steps per run: the first one fills buffers, the others differ only by random variation.
const STEPS: Count = Count::new(4);
/// Default slowdown of a slow node: about that of a thermally throttled accelerator, and that of the slow machines
/// found by MegaScale's diagnosis (arXiv 2402.15627, section 6.3: they took 10 % longer for the same pass).
pub const SLOW_FACTOR: f64 = 1.1;
/// Default time from a failure until work continues, s: MegaScale detects and diagnoses a failure in less than ten
/// minutes (arXiv 2402.15627, section 4).
const RESTART_S: f64 = 600.0;
/// Default write bandwidth to storage per node, bytes per second: the file system of Llama 3 sustained 2 TB/s for 2,048
/// nodes (arXiv 2407.21783, section 3.3.1).
const CHECKPOINT_BYTES_PER_NODE: f64 = 1e9;
/// Copy bandwidth from an accelerator to host memory, bytes per second: about 80 % of the 32 GB/s of PCIe 4.0 x16.
/// MegaScale's copies take several seconds (arXiv 2402.15627, section 4.4).
const HOST_COPY: f64 = 25e9;

/// Simulation settings of a phase in effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Simulation {
    /// Seed of the first run; the seeds of further runs count up from it.
    pub seed: u64,
    /// Number of independent runs.
    pub replications: u32,
    /// Requests per run; `None`: as many as the load needs.
    pub requests: Option<u32>,
    /// Optimizer steps per run.
    pub steps: u32,
    /// Arrival process of requests.
    pub arrivals: Arrivals,
    /// Coefficient of variation of the gaps of gamma arrivals.
    pub arrival_cv: f64,
    /// Coefficient of variation of prompt lengths.
    pub prompt_cv: f64,
    /// Coefficient of variation of output lengths.
    pub generate_cv: f64,
    /// How requests are routed to replicas.
    pub routing: Routing,
    /// Maximum prompt tokens of one request per step.
    pub long_prefill_token_threshold: Option<u32>,
    /// Latency limits (SLOs) of a good request, ms: TTFT, TPOT, E2E.
    pub slo_ms: [Option<f64>; 3],
    /// Relative spread of the duration of one rank's pass.
    pub jitter: f64,
    /// Number of permanently slow nodes.
    pub slow_nodes: Count,
    /// Slowdown factor of slow nodes.
    pub slow_factor: f64,
    /// Mean time between failures of a node, s; `None`: nodes do not fail.
    pub node_mtbf: Option<f64>,
    /// Working time between two checkpoints, s; `None`: Daly's optimal interval.
    pub checkpoint_interval: Option<f64>,
    /// Time for which a checkpoint blocks the work, s.
    pub checkpoint: f64,
    /// Time for which a checkpoint is written in the background, s.
    pub checkpoint_write: f64,
    /// Cost of a failure in addition to lost work, s.
    pub restart: f64,
}

impl Simulation {
    /// Settings that reproduce the load of a deployment as it is: one run, identical requests, no variation.
    #[must_use]
    pub fn measured(system: &ServingInput) -> Simulation {
        Simulation {
            seed: 0,
            replications: 1,
            requests: None,
            steps: STEPS.get(),
            arrivals: match system.load {
                Load::Open { .. } => Arrivals::Poisson,
                Load::Burst { .. } => Arrivals::Burst,
                _ => Arrivals::Closed,
            },
            arrival_cv: 1.0,
            prompt_cv: 0.0,
            generate_cv: 0.0,
            routing: Routing::Least,
            long_prefill_token_threshold: None,
            slo_ms: [None; 3],
            jitter: 0.0,
            slow_nodes: Count::ZERO,
            slow_factor: SLOW_FACTOR,
            node_mtbf: None,
            checkpoint_interval: None,
            checkpoint: 0.0,
            checkpoint_write: 0.0,
            restart: RESTART_S,
        }
    }
}

impl Scenario {
    /// Simulation settings of a phase.
    #[must_use]
    pub fn simulation(&self, phase: &Phase) -> Simulation {
        let stated = &phase.plan.simulation;
        let rate = phase.plan.serving.request_rate;
        let or_zero = |value: Option<f64>| value.unwrap_or(0.0);
        let write = self.checkpoint_write(phase);
        let asynchronous = stated.checkpoint_async == Some(true);
        let accelerators = self.accelerators_per_node * self.job_nodes(phase);
        let copy = (self.checkpoint_bytes(phase) / (accelerators.max(1.0) * HOST_COPY)).min(write);
        Simulation {
            seed: seed(self.seed.saturating_add(i128::from(phase.index))),
            replications: stated.replications.unwrap_or(REPLICATIONS).get().max(1),
            requests: stated.requests.map(Count::get),
            steps: stated.steps.unwrap_or(STEPS).get().max(1),
            arrivals: stated.arrivals.unwrap_or(match (phase.plan.serving.load, rate, stated.arrival_cv) {
                (Some(LoadKind::Burst), ..) => Arrivals::Burst,
                (_, None, _) => Arrivals::Closed,
                (_, Some(_), Some(cv)) if cv != 1.0 => Arrivals::Gamma,
                (_, Some(_), _) => Arrivals::Poisson,
            }),
            arrival_cv: stated.arrival_cv.unwrap_or(1.0),
            prompt_cv: or_zero(stated.prompt_cv),
            generate_cv: or_zero(stated.generate_cv),
            routing: phase.plan.serving.routing.unwrap_or(Routing::Least),
            long_prefill_token_threshold: phase.plan.serving.long_prefill_token_threshold.map(Count::get),
            slo_ms: [stated.slo_ttft_ms, stated.slo_tpot_ms, stated.slo_e2e_ms],
            jitter: or_zero(stated.jitter),
            slow_nodes: stated.slow_nodes.unwrap_or(Count::ZERO),
            slow_factor: stated.slow_factor.unwrap_or(SLOW_FACTOR),
            node_mtbf: stated.node_mtbf_h.map(|hours| 3600.0 * hours),
            checkpoint_interval: stated.checkpoint_interval_s,
            checkpoint: if asynchronous { copy } else { write },
            checkpoint_write: if asynchronous { write } else { 0.0 },
            restart: stated.restart_s.unwrap_or(RESTART_S),
        }
    }

    /// Nodes with a rank of the job: only they write checkpoints, and only their failures stop it.
    fn job_nodes(&self, phase: &Phase) -> Count {
        let ranks = phase.shape.tp * phase.shape.pp * phase.groups() * phase.shape.dp;
        let each = self.accelerators_per_node * self.machine.map_or(1.0, |machine| machine.dies);
        Count::floor((ranks / each.max(1.0)).ceil()).max(Count::ONE)
    }

    /// Time to write a checkpoint, s. By default, all nodes of the job write their parts concurrently.
    pub(super) fn checkpoint_write(&self, phase: &Phase) -> f64 {
        let usual = || self.checkpoint_bytes(phase) / (self.job_nodes(phase) * CHECKPOINT_BYTES_PER_NODE);
        phase.plan.simulation.checkpoint_s.unwrap_or_else(usual)
    }
}

/// Reduces a seed to the 64 bits of the simulation kernel's random streams.
fn seed(seed: i128) -> u64 {
    let [low, high] = [seed, seed >> 64].map(|part| (part & i128::from(u64::MAX)) as u64);
    // Numbers that fit in 64 bits, including negative ones, keep their bits; larger ones are folded.
    if i128::from(low as i64) == seed || i128::from(low) == seed { low } else { low ^ high.rotate_left(17) }
}
