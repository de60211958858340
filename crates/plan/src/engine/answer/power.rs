//! Power: what accelerators draw for the work they do, what they may draw, and what the node around them adds.
//!
//! An accelerator's power is a sum of what it always draws, what running kernels cost whatever they do, what arithmetic
//! and what memory traffic cost, capped at the design power, where clocks fall. Held against what was published:
//!
//! | machine and work | published | here |
//! | --- | --- | --- |
//! | 8 × H100, training and fine-tuning (arXiv 2412.08602; MLPerf Training 4.1 power, Dell XE9680) | 8.2 to 8.6 kW a node | 7.75 kW |
//! | 8 × H100, Llama 3.1 405B decoding (dstack's benchmark of MI300X and H100) | 448 to 469 W each | 440 W |
//! | 8 × H200, gpt-oss-120b decoding, 64 requests (Nebius, nvidia-smi) | 304 W each | 320 W |
//! | 8 × MI300X, idle with a model loaded (dstack, rocm-smi) | 123 to 136 W each | 105 W |

use crate::estimate::NodePower;
use crate::scenario::Scenario;
use atlas_core::count::Count;
use atlas_core::math;
use atlas_perf::serving::{Load, ServingEstimate, ServingInput};
use atlas_perf::training::TrainingEstimate;

/// Share of the design power that an idle accelerator draws: an H100 SXM 70 W of 700, an A100 SXM 55 W of 400, an
/// MI300X 116 to 130 W of 750 (nvidia-smi and rocm-smi outputs that operators publish).
pub const IDLE_SHARE: f64 = 0.14;
/// What running kernels add, whatever they do: clocks up, schedulers, caches and links awake. Between the phases of a
/// training step power falls to about a third of the design power (Patel et al., ASPLOS 2024, arXiv 2308.12908, section 4).
pub const ACTIVE_SHARE: f64 = 0.18;
/// What memory traffic adds at full bandwidth: an access to HBM costs 3.9 pJ/bit (O'Connor et al., MICRO 2017, table 1)
/// and about as much again to cross the die, which for 3.35 TB/s is 210 of an H100's 700 W.
pub const MEMORY_SHARE: f64 = 0.30;
/// Share of the peak matrix rate at which large multiplications meet the design power: the best that they sustain, since
/// clocks fall there for lack of power (the catalog's measured matmul rates, 0.6 to 0.8 of the peak).
pub const FLOP_SHARE_AT_TDP: f64 = 0.70;
/// Share of the memory bandwidth that a large matrix multiplication uses: with tiles of 128 × 256, a megabyte moves for
/// 200 GFLOP, of which a cache as large as an H100's answers about half.
pub const GEMM_TRAFFIC: f64 = 0.25;
/// What arithmetic adds at the peak rate: what is left of the design power where multiplications meet it.
pub const COMPUTE_SHARE: f64 = (1.0 - IDLE_SHARE - ACTIVE_SHARE - MEMORY_SHARE * GEMM_TRAFFIC) / FLOP_SHARE_AT_TDP;
/// Share of a node's nominal power beyond its accelerators (hosts, NICs, switches, fans) that is drawn when idle. A
/// DGX-class node with 8 H100 idles at about 2.9 kW (the same MLPerf log), of which 0.8 are the GPUs', of 4.6 nominal.
pub const AROUND_IDLE: f64 = 0.45;
/// And at full load: nominal power is what supplies are rated for. Such a node peaks at 8.4 kW of 10.2 (arXiv 2412.08602).
pub const AROUND_LOADED: f64 = 0.65;
/// The accelerators' share of a node's nominal power where no design power was published: a DGX H100's, 5.6 of 10.2 kW.
pub const ACCELERATORS_OF_NODE: f64 = 0.55;
/// Power of clocked logic goes with this power of its frequency.
pub const EXPONENT: f64 = 2.3;
/// Least share of the design power that drivers let users set: 200 of an H100's 700 W, 100 of an A100's 400 (nvidia-smi).
pub const LEAST_SHARE: f64 = 0.3;
/// Clock, over the highest, from which on memory is saturated: decoding keeps its pace to about half of the clock.
const MEMORY_CLOCK: f64 = 0.5;
/// Share of the memory bandwidth that the best streaming kernels reach (BabelStream on A100, H100, MI300X: 0.85 to 0.92).
const STREAMED: f64 = 0.85;

/// How busy an accelerator's parts are, shares of their peaks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Use {
    /// Of the matrix units, in the format that is multiplied.
    pub compute: f64,
    /// Of memory bandwidth.
    pub memory: f64,
    /// Of the time, in which kernels run at all.
    pub active: f64,
}

impl Use {
    /// While training, at this clock over the highest.
    #[must_use]
    pub fn training(out: &TrainingEstimate, clock: f64) -> Use {
        let t = &out.time;
        let streaming = STREAMED * traffic(clock) * (t.elementwise + t.optimizer)
            + GEMM_TRAFFIC * clock * (t.gemm + t.attention + t.recompute + t.images);
        let memory = (streaming / out.step_seconds.max(1e-12)).clamp(0.0, 1.0);
        Use { compute: out.hfu.clamp(0.0, 1.0), memory, active: 1.0 }
    }

    /// Of the accelerators that serve, at this clock over the highest.
    #[must_use]
    pub fn serving(input: &ServingInput, out: &ServingEstimate, clock: f64) -> Use {
        // With random arrivals the system is empty with the probability of a Poisson count of 0 (M/G/∞).
        let active = match input.load {
            Load::Open { .. } => 1.0 - math::exp(-out.batch),
            // Fewer requests than replicas leave some of these idle.
            Load::Closed { concurrency: in_flight, .. }
            | Load::Static { batch: in_flight }
            | Load::DecodeOnly { batch: in_flight }
            | Load::PrefillOnly { batch: in_flight }
            | Load::Burst { requests: in_flight } => (in_flight / replicas(input)).min(1.0),
        };
        let streaming = STREAMED * traffic(clock) * (out.time.weights + out.time.kv + out.time.activations)
            + GEMM_TRAFFIC * clock * (out.time.compute + out.time.images);
        let memory = active * streaming / out.time.total().max(1e-12);
        // What generates nothing multiplies neither embedding nor output layer.
        let arch = &input.arch;
        let idle = if arch.causal { 0.0 } else { arch.embedding_params() };
        let images = input.images.map_or(0.0, |images| images.flops() * out.requests_per_sec);
        let flops = 2.0 * (arch.active_params() - idle) * out.total_tokens_per_sec + images;
        let peak = input.accelerator.peak(input.formats.dense) * input.layout.accelerators().max(1.0);
        Use { compute: (flops / peak).clamp(0.0, 1.0), memory: memory.clamp(0.0, 1.0), active }
    }
}

/// Replicas of both pools, where there are two.
fn replicas(input: &ServingInput) -> f64 {
    input.pools.map_or(input.layout.dp.into(), |pools| pools.prefill.dp + pools.decode.dp).max(1.0)
}

impl Use {
    /// The same, where the share of the time in which kernels run was observed.
    #[must_use]
    pub fn while_active(self, active: f64) -> Use {
        let memory = if self.active > 0.0 { self.memory / self.active } else { 0.0 };
        Use { active, memory: (memory * active).clamp(0.0, 1.0), ..self }
    }
}

/// Rate of memory traffic over that at the highest clock.
#[must_use]
pub fn traffic(clock: f64) -> f64 {
    (clock / MEMORY_CLOCK).min(1.0)
}

/// Watts of an accelerator of this design power, so used at this clock over the highest. What running takes falls with
/// frequency and voltage; an operation's energy, with the voltage alone.
#[must_use]
pub fn device(tdp_w: f64, used: &Use, clock: f64) -> f64 {
    let running = ACTIVE_SHARE * used.active * math::powf(clock, EXPONENT);
    let arithmetic = COMPUTE_SHARE * used.compute * math::powf(clock, EXPONENT - 1.0);
    let dynamic = running + arithmetic + MEMORY_SHARE * used.memory;
    tdp_w * (IDLE_SHARE + dynamic).min(1.0)
}

/// Design power of an accelerator: the catalog's, else its share of the node's.
#[must_use]
pub fn design(scenario: &Scenario) -> f64 {
    let published = scenario.machine.as_ref().map_or(0.0, |machine| machine.device.tdp_w);
    let share = ACCELERATORS_OF_NODE * scenario.node_watts / scenario.accelerators_per_node.max(Count::ONE);
    if published > 0.0 { published } else { share }
}

/// Nodes that share a rack, where its power is limited.
#[must_use]
pub fn nodes_of_rack(scenario: &Scenario) -> Option<f64> {
    let terms = &scenario.terms;
    let bears = |kw: f64| (1e3 * kw / scenario.node_watts.max(1.0)).floor().max(1.0);
    terms.rack_kw.map(|kw| terms.nodes_per_rack.map_or_else(|| bears(kw), f64::from))
}

/// Most that an accelerator may draw by knob or rack, W.
#[must_use]
pub fn cap(scenario: &Scenario) -> Option<f64> {
    let stated = scenario.terms.power_cap;
    let rack = scenario.terms.rack_kw.zip(nodes_of_rack(scenario)).and_then(|(kw, nodes)| {
        let budget = 1e3 * kw / nodes;
        let count = scenario.accelerators_per_node.max(Count::ONE);
        let around = (scenario.node_watts - count * design(scenario)).max(0.0);
        (budget < scenario.node_watts).then(|| ((budget - AROUND_LOADED * around) / count).max(0.0))
    });
    match (stated, rack) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// Watts of one node, of whose accelerators a share is at work and the rest idles.
#[must_use]
pub fn node(scenario: &Scenario, used: &Use, at_work: f64) -> NodePower {
    let (tdp, count) = (design(scenario), scenario.accelerators_per_node);
    let share = at_work.clamp(0.0, 1.0);
    let allowed = cap(scenario).map_or(tdp, |cap| cap.max(LEAST_SHARE * tdp));
    let at_work = device(tdp, used, scenario.terms.clock_share).min(allowed);
    let accelerators = count * (share * at_work + (1.0 - share) * device(tdp, &Use::default(), 1.0));
    let around = (scenario.node_watts - count * tdp).max(0.0);
    let load = (accelerators / (count * tdp).max(1e-9)).min(1.0);
    NodePower { accelerators, around: around * (AROUND_IDLE + (AROUND_LOADED - AROUND_IDLE) * load) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accelerator_draws_between_idle_and_its_design_power() {
        let all = Use { compute: 1.0, memory: 1.0, active: 1.0 };
        assert!((device(700.0, &Use::default(), 1.0) - 98.0).abs() < 1e-9);
        assert!((device(700.0, &all, 1.0) - 700.0).abs() < 1e-9);
        // The best large multiplication meets the design power, neither more nor less.
        let multiplying = Use { compute: FLOP_SHARE_AT_TDP, memory: GEMM_TRAFFIC, active: 1.0 };
        assert!((device(700.0, &multiplying, 1.0) - 700.0).abs() < 1e-9);
    }

    #[test]
    fn more_work_is_never_cheaper() {
        let mut before = 0.0;
        for step in 0..=20 {
            let share = f64::from(step) / 20.0;
            let now = device(1000.0, &Use { compute: 0.4 * share, memory: share, active: 1.0 }, 1.0);
            assert!(now >= before);
            before = now;
        }
    }

    #[test]
    fn published_figures_of_single_accelerators_are_met() {
        // Shares of use by hand: 405B in fp8 on 8 H100 reads its 51 GB of weights 40 times a second.
        let decoding = Use { compute: 0.15, memory: 0.62, active: 1.0 };
        assert!((device(700.0, &decoding, 1.0) / 459.0 - 1.0).abs() < 0.1, "{}", device(700.0, &decoding, 1.0));
        let training = Use { compute: 0.45, memory: 0.3, active: 1.0 };
        assert!((550.0..=700.0).contains(&device(700.0, &training, 1.0)));
    }
}
