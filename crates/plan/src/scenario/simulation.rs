//! What only simulations use: how long a run is, what is uneven, what fails.

use super::{Phase, Scenario};
use atlas_core::count::Count;
use atlas_core::plan::{Arrivals, LoadKind, Routing};
use atlas_perf::serving::{Load, ServingInput};

/// Independent runs by default: the least whose spread can be described from chance with some confidence.
const REPLICATIONS: Count = Count::new(3);
/// Optimizer steps of a run by default: the first one fills buffers, the others differ only by chance.
const STEPS: Count = Count::new(4);
/// How much slower a slow node is by default: about what a thermally throttled accelerator loses, and what
/// MegaScale's diagnosis looked for (arXiv 2402.15627, section 6.3: slow machines took 10 % longer for the same pass).
pub const SLOW_FACTOR: f64 = 1.1;
/// Seconds from a failure until work continues by default: MegaScale detects and diagnoses in less than ten minutes
/// (arXiv 2402.15627, section 4).
const RESTART_S: f64 = 600.0;
/// Bytes per second at which a node's states reach storage by default: Llama 3's file system sustained 2 TB/s for
/// 2,048 nodes (arXiv 2407.21783, section 3.3.1).
const CHECKPOINT_BYTES_PER_NODE: f64 = 1e9;
/// Bytes that a checkpoint keeps of a weight under Adam: master weights and two moments in fp32, and the weight in 16 bit.
const CHECKPOINT_BYTES_PER_WEIGHT: f64 = 14.0;
/// Bytes per second at which an accelerator's states reach host memory: PCIe 4.0 x16, of whose 32 GB/s copies take about
/// four fifths. MegaScale's copies take several seconds (arXiv 2402.15627, section 4.4).
const HOST_COPY: f64 = 25e9;

/// The settings of a phase in effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Simulation {
    /// Seed of the first run; the others count up from it.
    pub seed: u64,
    /// Independent runs.
    pub replications: u32,
    /// Requests of a run; `None`: as many as the load needs.
    pub requests: Option<u32>,
    /// Optimizer steps of a run.
    pub steps: u32,
    /// How requests come.
    pub arrivals: Arrivals,
    /// Standard deviation of gamma arrivals' gaps over their mean.
    pub arrival_cv: f64,
    /// Spread of the prompts' lengths.
    pub prompt_cv: f64,
    /// Spread of the outputs' lengths.
    pub generate_cv: f64,
    /// Which replica a request goes to.
    pub routing: Routing,
    /// Maximum prompt tokens of one request in a step.
    pub long_prefill_token_threshold: Option<u32>,
    /// Limits of a good request, ms: TTFT, TPOT, E2E.
    pub slo_ms: [Option<f64>; 3],
    /// Spread of one rank's pass.
    pub jitter: f64,
    /// Nodes that are slow all the time.
    pub slow_nodes: Count,
    /// How slow.
    pub slow_factor: f64,
    /// Mean time between failures of a node, s; `None`: nodes do not fail.
    pub node_mtbf: Option<f64>,
    /// Work between two checkpoints, s; `None` = Daly's interval.
    pub checkpoint_interval: Option<f64>,
    /// Time for which a checkpoint stops the work, s.
    pub checkpoint: f64,
    /// In which it is written while work continues, s.
    pub checkpoint_write: f64,
    /// What a failure costs besides lost work, s.
    pub restart: f64,
}

impl Simulation {
    /// Settings that do not change the load of a deployment: one run, equal requests.
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
    /// The settings of a simulation of this phase.
    #[must_use]
    pub fn simulation(&self, phase: &Phase) -> Simulation {
        let stated = &phase.plan.simulation;
        let rate = phase.plan.serving.request_rate;
        let or_zero = |value: Option<f64>| value.unwrap_or(0.0);
        let write = self.checkpoint_write(phase);
        let beside = stated.checkpoint_async == Some(true);
        let copy = (self.checkpoint_bytes() / (self.accelerators().max(1.0) * HOST_COPY)).min(write);
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
            checkpoint: if beside { copy } else { write },
            checkpoint_write: if beside { write } else { 0.0 },
            restart: stated.restart_s.unwrap_or(RESTART_S),
        }
    }

    fn checkpoint_bytes(&self) -> f64 {
        self.model.map_or(0.0, |model| model.params()) * CHECKPOINT_BYTES_PER_WEIGHT
    }

    /// In which a checkpoint is written, s: unless stated, all nodes write their part of it at once.
    pub(super) fn checkpoint_write(&self, phase: &Phase) -> f64 {
        let usual = || self.checkpoint_bytes() / (self.num_nodes.max(Count::ONE) * CHECKPOINT_BYTES_PER_NODE);
        phase.plan.simulation.checkpoint_s.unwrap_or_else(usual)
    }
}

/// A seed as the kernel's streams take it: any whole number's low bits.
fn seed(seed: i128) -> u64 {
    let [low, high] = [seed, seed >> 64].map(|part| (part & i128::from(u64::MAX)) as u64);
    // Numbers that fit 64 bits, negative ones included, are used as they are; the rest are folded.
    if i128::from(low as i64) == seed || i128::from(low) == seed { low } else { low ^ high.rotate_left(17) }
}
