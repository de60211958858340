//! Power of accelerators at a given utilization, power limits, and power of the rest of the node.
//!
//! The power of an accelerator is the sum of a constant idle power, a constant while kernels run, and terms for
//! arithmetic and memory traffic, limited to the design power, at which clocks drop. Comparison with published
//! measurements:
//!
//! * 8 × H100, training and fine-tuning (arXiv 2412.08602; MLPerf Training 4.1 power, Dell XE9680): 8.2 to 8.6 kW per
//!   node; here 7.75 kW
//! * 8 × H100, Llama 3.1 405B decoding (dstack's benchmark of MI300X and H100): 448 to 469 W each; here 440 W
//! * 8 × H200, gpt-oss-120b decoding, 64 requests (Nebius, nvidia-smi): 304 W each; here 320 W
//! * 8 × MI300X, idle with a model loaded (dstack, rocm-smi): 123 to 136 W each; here 105 W

use crate::estimate::{NodePower, Verdict};
use crate::scenario::Scenario;
use atlas_core::count::Count;
use atlas_core::math;
pub use atlas_perf::constants::documented::{FLOP_SHARE_AT_TDP, GEMM_TRAFFIC};
use atlas_perf::serving::arithmetic::Arithmetic;
use atlas_perf::serving::{Load, ServingEstimate, ServingInput};
use atlas_perf::training::TrainingEstimate;

/// Idle power relative to design power: an H100 SXM 70 W of 700, an A100 SXM 55 W of 400, an MI300X 116 to 130 W of 750
/// (nvidia-smi and rocm-smi outputs published by operators).
pub const IDLE_SHARE: f64 = 0.14;
/// Additional power while any kernel runs, relative to design power: raised clocks, active schedulers, caches and
/// links. Between the phases of a training step, power drops to about a third of the design power (Patel et al., ASPLOS
/// 2024, arXiv 2308.12908, section 4).
pub const ACTIVE_SHARE: f64 = 0.18;
/// Additional power at full memory bandwidth, relative to design power: an HBM access costs 3.9 pJ/bit (O'Connor et
/// al., MICRO 2017, table 1) and about as much again to cross the die, which at 3.35 TB/s is 210 of an H100's 700 W.
pub const MEMORY_SHARE: f64 = 0.30;
/// Additional power of arithmetic at the peak rate, relative to design power: the remainder where GEMMs reach the
/// design power.
pub const COMPUTE_SHARE: f64 = (1.0 - IDLE_SHARE - ACTIVE_SHARE - MEMORY_SHARE * GEMM_TRAFFIC) / FLOP_SHARE_AT_TDP;
/// Share of the power of the rest of the node (hosts, NICs, switches, fans) that is drawn when idle. A DGX-class node
/// with 8 H100 idles at about 2.9 kW (the same MLPerf log), of which the GPUs draw 0.8; the rest has a nominal power of
/// 4.6 kW.
pub const NODE_OVERHEAD_IDLE_SHARE: f64 = 0.45;
/// Share of the power of the rest of the node that is drawn at full load; nominal power is the rating of the power
/// supplies. Such a node peaks at 8.4 kW of 10.2 (arXiv 2412.08602).
pub const NODE_OVERHEAD_LOADED_SHARE: f64 = 0.65;
/// Share of the accelerators in a node's nominal power if no design power is published: that of a DGX H100, 5.6 of 10.2
/// kW.
pub const ACCELERATOR_POWER_SHARE: f64 = 0.55;
/// Exponent of frequency in the power of clocked logic.
pub const FREQUENCY_EXPONENT: f64 = 2.3;
/// Minimum power cap that drivers accept, relative to design power: 200 of an H100's 700 W, 100 of an A100's 400
/// (nvidia-smi).
pub const MIN_POWER_CAP_SHARE: f64 = 0.3;
/// Relative clock above which memory bandwidth is saturated: decode throughput is unaffected down to about half of the
/// clock.
const MEMORY_CLOCK: f64 = 0.5;
/// Share of the memory bandwidth that the best streaming kernels reach (BabelStream on A100, H100, MI300X: 0.85 to
/// 0.92).
const MAX_BANDWIDTH_SHARE: f64 = 0.85;

/// Utilization of an accelerator's units, relative to their peaks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DeviceUtilization {
    /// Utilization of the matrix units, in the format in use.
    pub compute: f64,
    /// Utilization of memory bandwidth.
    pub memory: f64,
    /// Share of the time in which any kernel runs.
    pub active: f64,
}

impl DeviceUtilization {
    /// Utilization in training. `clock` is relative to the maximum clock.
    #[must_use]
    pub fn training(out: &TrainingEstimate, clock: f64) -> DeviceUtilization {
        let t = &out.time;
        let streaming = MAX_BANDWIDTH_SHARE * traffic(clock) * (t.elementwise + t.optimizer)
            + GEMM_TRAFFIC * clock * (t.gemm + t.attention + t.recompute + t.images);
        let memory = (streaming / out.step_seconds.max(1e-12)).clamp(0.0, 1.0);
        DeviceUtilization { compute: out.hfu.clamp(0.0, 1.0), memory, active: 1.0 }
    }

    /// Utilization of serving accelerators. `clock` is relative to the maximum clock.
    #[must_use]
    pub fn serving(
        input: &ServingInput,
        out: &ServingEstimate,
        arithmetic: &Arithmetic,
        clock: f64,
    ) -> DeviceUtilization {
        // With random arrivals, the system is empty with the probability of a Poisson count of 0 (M/G/∞).
        let decoding = match input.load {
            Load::Open { .. } => 1.0 - math::exp(-out.batch),
            // The batch is a mean over the replicas of the decode pool.
            _ if input.pools.is_some() => out.batch.min(1.0),
            // With fewer requests than replicas, some replicas are idle.
            Load::Closed { concurrency: in_flight, .. }
            | Load::Static { batch: in_flight }
            | Load::DecodeOnly { batch: in_flight }
            | Load::PrefillOnly { batch: in_flight }
            | Load::Burst { requests: in_flight } => (in_flight / input.layout.dp.max(Count::ONE)).min(1.0),
        };
        // Separate pools are busy independently of each other; the time of a step is that of the decode pool.
        let prefill_pool = input.pools.map_or(0.0, |pools| {
            let of_prefill = pools.prefill.accelerators();
            of_prefill / (of_prefill + pools.decode.accelerators()).max(1.0)
        });
        let (decoding, prefilling) = ((1.0 - prefill_pool) * decoding, prefill_pool * out.prefill_busy);
        let active = decoding + prefilling;
        let streaming = out.time.traffic + GEMM_TRAFFIC * clock * out.time.images;
        let memory = decoding * streaming / out.time.total().max(1e-12) + GEMM_TRAFFIC * clock * prefilling;
        DeviceUtilization { compute: arithmetic.computed.clamp(0.0, 1.0), memory: memory.clamp(0.0, 1.0), active }
    }
}

impl DeviceUtilization {
    /// Returns the utilization for an observed share of active time.
    #[must_use]
    pub fn while_active(self, active: f64) -> DeviceUtilization {
        let memory = if self.active > 0.0 { self.memory / self.active } else { 0.0 };
        DeviceUtilization { active, memory: (memory * active).clamp(0.0, 1.0), ..self }
    }
}

/// Memory bandwidth relative to that at the maximum clock.
#[must_use]
pub fn traffic(clock: f64) -> f64 {
    (clock / MEMORY_CLOCK).min(1.0)
}

/// Power of an accelerator in W. `clock` is relative to the maximum clock. The power while running depends on frequency
/// and voltage, the energy per operation only on voltage.
#[must_use]
pub fn device(tdp_w: f64, used: &DeviceUtilization, clock: f64) -> f64 {
    let relative = |exponent| if clock == 1.0 { 1.0 } else { math::powf(clock, exponent) };
    let running = ACTIVE_SHARE * used.active * relative(FREQUENCY_EXPONENT);
    let arithmetic = COMPUTE_SHARE * used.compute * relative(FREQUENCY_EXPONENT - 1.0);
    let dynamic = running + arithmetic + MEMORY_SHARE * used.memory;
    tdp_w * (IDLE_SHARE + dynamic).min(1.0)
}

/// Design power of an accelerator, W: from the catalog, otherwise its share of the node power.
#[must_use]
pub fn design(scenario: &Scenario) -> f64 {
    let share = ACCELERATOR_POWER_SHARE * scenario.node_watts / scenario.accelerators_per_node.max(Count::ONE);
    scenario.machine.and_then(|machine| machine.device.tdp_w).unwrap_or(share)
}

/// Number of nodes per rack, if the rack power is limited.
#[must_use]
pub fn nodes_of_rack(scenario: &Scenario) -> Option<f64> {
    let terms = &scenario.terms;
    let bears = |kw: f64| (1e3 * kw / scenario.node_watts.max(1.0)).floor().max(1.0);
    terms.rack_kw.map(|kw| terms.nodes_per_rack.map_or_else(|| bears(kw), f64::from))
}

/// Power limit of an accelerator by knob or rack, W.
#[must_use]
pub fn cap(scenario: &Scenario) -> Option<f64> {
    let stated = scenario.terms.power_cap;
    let rack = scenario.terms.rack_kw.zip(nodes_of_rack(scenario)).and_then(|(kw, nodes)| {
        let budget = 1e3 * kw / nodes;
        let count = scenario.accelerators_per_node.max(Count::ONE);
        let around = (scenario.node_watts - count * design(scenario)).max(0.0);
        (budget < scenario.node_watts).then(|| ((budget - NODE_OVERHEAD_LOADED_SHARE * around) / count).max(0.0))
    });
    match (stated, rack) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// Verdict on nodes whose power exceeds the limit of their rack: the power cap of accelerators has a lower bound.
#[must_use]
pub fn over_rack(scenario: &Scenario, node: &NodePower) -> Option<Verdict> {
    let (kw, nodes) = scenario.terms.rack_kw.zip(nodes_of_rack(scenario))?;
    let nodes = nodes.min(f64::from(scenario.num_nodes));
    let (needs, has) = (nodes * node.total(), 1e3 * kw);
    // The cap is computed from the power of a loaded host, so that a node at the cap draws exactly its share.
    (needs > 1.001 * has).then_some(Verdict::RackPower { nodes, needs, has })
}

/// Power of one node, W. `at_work` is the share of its accelerators in use; the others are idle.
#[must_use]
pub fn node(scenario: &Scenario, used: &DeviceUtilization, at_work: f64) -> NodePower {
    let (tdp, count) = (design(scenario), scenario.accelerators_per_node);
    let share = at_work.clamp(0.0, 1.0);
    let allowed = cap(scenario).map_or(tdp, |cap| cap.max(MIN_POWER_CAP_SHARE * tdp));
    let at_work = device(tdp, used, scenario.terms.clock_share).min(allowed);
    let accelerators = count * (share * at_work + (1.0 - share) * device(tdp, &DeviceUtilization::default(), 1.0));
    let around = (scenario.node_watts - count * tdp).max(0.0);
    let load = (accelerators / (count * tdp).max(1e-9)).min(1.0);
    NodePower {
        accelerators,
        around: around * (NODE_OVERHEAD_IDLE_SHARE + (NODE_OVERHEAD_LOADED_SHARE - NODE_OVERHEAD_IDLE_SHARE) * load),
    }
}

impl Scenario {
    /// Power of a node that does not work, W.
    #[must_use]
    pub fn idle_node_watts(&self) -> f64 {
        node(self, &DeviceUtilization::default(), 0.0).total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_power_ranges_from_idle_to_tdp() {
        let all = DeviceUtilization { compute: 1.0, memory: 1.0, active: 1.0 };
        assert!((device(700.0, &DeviceUtilization::default(), 1.0) - 98.0).abs() < 1e-9);
        assert!((device(700.0, &all, 1.0) - 700.0).abs() < 1e-9);
        // The best large GEMM draws exactly the design power.
        let multiplying = DeviceUtilization { compute: FLOP_SHARE_AT_TDP, memory: GEMM_TRAFFIC, active: 1.0 };
        assert!((device(700.0, &multiplying, 1.0) - 700.0).abs() < 1e-9);
    }

    #[test]
    fn device_power_does_not_drop_with_utilization() {
        let mut before = 0.0;
        for step in 0..=20 {
            let share = f64::from(step) / 20.0;
            let now = device(1000.0, &DeviceUtilization { compute: 0.4 * share, memory: share, active: 1.0 }, 1.0);
            assert!(now >= before);
            before = now;
        }
    }

    #[test]
    fn arithmetic_is_relative_to_the_accelerators_of_both_pools() {
        use atlas_perf::serving::{Layout, Pools};
        let layout = |dp| Layout { dp: Count::new(dp), ..Layout::default() };
        let load = Load::Closed { concurrency: 32.0, requests: f64::INFINITY };
        let pools = Some(Pools { prefill: layout(1), decode: layout(1) });
        let compute = |dp| {
            let input = ServingInput { layout: layout(dp), pools, load, ..ServingInput::default() };
            let out = atlas_perf::serving::estimate(&input, &Default::default());
            DeviceUtilization::serving(&input, &out, &Arithmetic::of(&input, &out), 1.0).compute
        };
        // The layout besides the pools is that of the decode pool, or of the whole deployment.
        assert_eq!(compute(1), compute(2));
    }

    #[test]
    fn pools_are_active_while_they_compute() {
        use atlas_perf::serving::{Layout, Pools};
        let pool = |dp| Layout { dp: Count::new(dp), ..Layout::default() };
        let pools = Some(Pools { prefill: pool(3), decode: pool(1) });
        let load = Load::Closed { concurrency: 4.0, requests: f64::INFINITY };
        let input = ServingInput { pools, load, ..ServingInput::default() };
        let out = atlas_perf::serving::estimate(&input, &Default::default());
        let used = DeviceUtilization::serving(&input, &out, &Arithmetic::of(&input, &out), 1.0);
        assert!((used.active - 0.25 - 0.75 * out.prefill_busy).abs() < 1e-9, "{used:?}");
        assert!(out.prefill_busy < 0.1 && used.active < 0.35, "{used:?} {}", out.prefill_busy);
    }

    #[test]
    fn device_power_matches_published_measurements() {
        // Utilization computed by hand: 405B in fp8 on 8 H100 reads its 51 GB of weights 40 times per second.
        let decoding = DeviceUtilization { compute: 0.15, memory: 0.62, active: 1.0 };
        assert!((device(700.0, &decoding, 1.0) / 459.0 - 1.0).abs() < 0.1, "{}", device(700.0, &decoding, 1.0));
        let training = DeviceUtilization { compute: 0.45, memory: 0.3, active: 1.0 };
        assert!((550.0..=700.0).contains(&device(700.0, &training, 1.0)));
    }
}
