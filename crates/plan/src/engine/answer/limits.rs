//! Bottlenecks, derived from the parts of a step.

use crate::estimate::{Cause, Limits};
use atlas_perf::constants::Constants;
use atlas_perf::serving::ServingInput;
use atlas_perf::serving::machine::Machine;
use atlas_perf::serving::step::StepTime;
use atlas_perf::training::{TimeBreakdown, TrainingInput};

/// Bottlenecks of an optimizer step, of which `uneven` seconds are lost to slow nodes or failures. Communication is
/// attributed to the slowest fabric that its group spans.
pub(super) fn training(i: &TrainingInput, t: &TimeBreakdown, uneven: f64) -> Limits {
    let mut intra = 0.0;
    let mut inter = 0.0;
    let mut charge = |span: f64, seconds: f64| if span > i.domain { inter += seconds } else { intra += seconds };
    charge(f64::from(i.tp), t.tensor_parallel);
    charge(i.tp * i.cp, t.context_parallel);
    charge(i.ep * i.etp, t.expert_parallel);
    let replica = i.tp * i.cp;
    charge(replica * i.pp, t.pipeline_transfer);
    charge(i.accelerators, t.data_parallel);
    Limits::of([
        (Cause::Compute, t.gemm + t.attention + t.recompute + t.images),
        (Cause::MemoryBandwidth, t.elementwise + t.optimizer),
        (Cause::IntraNode, intra + t.offload),
        (Cause::InterNode, inter),
        (Cause::PipelineBubble, t.pipeline_bubble),
        (Cause::Launch, t.host),
        (Cause::Stragglers, uneven),
    ])
}

/// Bottlenecks of an output token, which separate pools generate in the decode pool. Communication is attributed to the
/// slowest fabric that its group spans.
pub(super) fn serving(input: &ServingInput, domain: f64, t: &StepTime, c: &Constants) -> Limits {
    let layout = input.pools.map_or(input.layout, |pools| pools.decode);
    let inter = if (layout.tp * layout.attention_dp).max(f64::from(layout.ep)) > domain {
        t.communication
    } else if layout.replica() > domain {
        Machine::new(input, &layout, c).stage_transfers(input).min(t.communication)
    } else {
        0.0
    };
    let intra = t.communication - inter;
    Limits::of([
        (Cause::Compute, t.compute + t.images),
        (Cause::MemoryBandwidth, t.weights + t.kv + t.activations),
        (Cause::IntraNode, intra),
        (Cause::InterNode, inter),
        (Cause::PipelineBubble, 0.0),
        (Cause::Launch, t.launch + t.host),
        (Cause::Stragglers, 0.0),
    ])
}
