//! Power: what accelerators draw for the work they do, and what the node around them adds.

use crate::engine::analytical::serving::{ServingEstimate, ServingInput};
use crate::engine::analytical::training::{TrainingEstimate, TrainingInput};
use crate::scenario::Scenario;

/// Share of the thermal design power that an idle accelerator draws. An H100 SXM idles at 60 to 75 W of 700 W, an A100
/// SXM at 50 to 60 W of 400 W (nvidia-smi, as operators report); contexts and memory clocks held ready add to it.
const IDLE_SHARE: f64 = 0.12;
/// Share of the peak matrix rate at which arithmetic alone draws all of the design power: the best that large
/// multiplications sustain, since clocks fall there for want of power (the catalog's measured matmul rates, 0.6 to 0.8).
const FLOP_SHARE_AT_TDP: f64 = 0.70;
/// Share of the dynamic power that memory traffic draws at full bandwidth: an HBM access costs 3.9 pJ/bit (O'Connor et
/// al., MICRO 2017, table 1) and about as much again to cross the die, which for 3.35 TB/s is 210 of an H100's 616 W.
const MEMORY_SHARE: f64 = 0.35;
/// Share of the time's dynamic power that is drawn while waiting with clocks up (collectives, launches): clock trees and
/// caches do not sleep within a step.
const WAITING_SHARE: f64 = 0.25;
/// Share of a node's power beyond its accelerators (hosts, NICs, switches, fans) that is drawn whatever it does; the
/// nominal figure is a maximum, and fans and hosts follow the load.
const NODE_IDLE_SHARE: f64 = 0.5;

/// How busy an accelerator's parts are, shares of their peaks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    /// Of the matrix units, in the format that is multiplied.
    pub compute: f64,
    /// Of memory bandwidth.
    pub memory: f64,
}

impl Use {
    /// While training.
    #[must_use]
    pub fn training(i: &TrainingInput, out: &TrainingEstimate) -> Use {
        // Memory-bound operators run near the bandwidth; matrix multiplications stream about a third of it.
        let t = &out.time;
        let streaming = t.elementwise + t.optimizer + 0.33 * (t.gemm + t.attention + t.recompute);
        let _ = i;
        Use { compute: out.hfu.clamp(0.0, 1.0), memory: (streaming / out.step_seconds.max(1e-12)).clamp(0.0, 1.0) }
    }

    /// While serving.
    #[must_use]
    pub fn serving(input: &ServingInput, out: &ServingEstimate, devices: f64) -> Use {
        let total = out.time.total().max(1e-12);
        let streaming = (out.time.weights + out.time.kv + out.time.activations + 0.33 * out.time.compute) / total;
        let flops = 2.0 * input.arch.active_params() * out.total_tokens_per_sec;
        let peak = input.accelerator.peak(input.formats.dense) * devices.max(1.0);
        // Where requests are few the deployment waits between them.
        Use { compute: (flops / peak).clamp(0.0, 1.0), memory: (0.85 * streaming).clamp(0.0, 1.0) }
    }
}

/// Watts of one device under this use.
#[must_use]
pub fn device(tdp_w: f64, used: &Use) -> f64 {
    let dynamic = used.compute / FLOP_SHARE_AT_TDP + MEMORY_SHARE * used.memory + WAITING_SHARE * (1.0 - used.memory);
    tdp_w * (IDLE_SHARE + (1.0 - IDLE_SHARE) * dynamic.min(1.0))
}

/// Watts of one node, of whose accelerators a share is at work and the rest idles.
#[must_use]
pub fn node(scenario: &Scenario, used: &Use, at_work: f64) -> f64 {
    let Some(machine) = scenario.machine else { return scenario.node_watts };
    let tdp = machine.device.tdp_w;
    let count = scenario.accelerators_per_node;
    let share = at_work.clamp(0.0, 1.0);
    let devices = count * (share * device(tdp, used) + (1.0 - share) * IDLE_SHARE * tdp);
    let around = (scenario.node_watts - count * tdp).max(0.0);
    let load = devices / (count * tdp).max(1e-9);
    devices + around * (NODE_IDLE_SHARE + (1.0 - NODE_IDLE_SHARE) * load.min(1.0))
}
