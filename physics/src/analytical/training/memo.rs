//! What estimates of neighbours have in common. Who turns one knob after another asks for thousands of estimates, and most
//! knobs leave a layer as it was: what a micro-batch takes in it, operator by operator, is the larger part of the work.

use super::layer::{self, LayerTime};
use super::{Plan, Recompute, Schedule, Sharding, TrainingInput, convolution};
use crate::analytical::accelerator::Accelerator;
use crate::analytical::constants::Constants;

/// One micro-batch in one layer and at the model's end, and what a token asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Passes {
    /// A mean layer.
    pub(super) layer: LayerTime,
    /// Output layer and loss.
    pub(super) head: LayerTime,
    /// Model FLOPs of a token.
    pub(super) flops: f64,
    /// The same with only what causal masks leave of attention.
    pub(super) causal_flops: f64,
}

impl Passes {
    pub(super) fn of(i: &TrainingInput, c: &Constants, plan: Plan) -> Passes {
        let (layer, head) = match &i.arch.convolutions {
            Some(network) => (convolution::mean(i, c, network), convolution::head(i, c, network)),
            None => (layer::mean_layer(i, c, plan), layer::head(i, c)),
        };
        let flops = |causal| i.arch.flops_per_token(i.seq, i.target(), causal);
        Passes { layer, head, flops: flops(false), causal_flops: flops(true) }
    }
}

/// The passes of the last estimate, for the next one to take where they are the same. It changes no figure by a bit.
#[derive(Debug, Clone, Default)]
pub struct Memo {
    last: Option<Known>,
}

#[derive(Debug, Clone)]
struct Known {
    input: TrainingInput,
    constants: Constants,
    plan: Plan,
    passes: Passes,
}

impl Memo {
    pub(super) fn passes(&mut self, i: &TrainingInput, c: &Constants, plan: Plan) -> Passes {
        let input = read(i);
        if let Some(last) = &self.last
            && last.plan == plan
            && last.input == input
            && last.constants == *c
        {
            return last.passes;
        }
        let passes = Passes::of(i, c, plan);
        self.last = Some(Known { input, constants: *c, plan, passes });
        passes
    }
}

/// The input without what passes do not read: batch, layout over stages and replicas, and the network.
fn read(i: &TrainingInput) -> TrainingInput {
    TrainingInput {
        accelerator: Accelerator { nic_bw: 0.0, domain: 0.0, ..i.accelerator },
        accelerators: 0.0,
        domain: 0.0,
        nic_bw: 0.0,
        oversubscription: 0.0,
        global: 0.0,
        pp: 0.0,
        vpp: 0.0,
        dp: 0.0,
        sharding: Sharding::None,
        shard: 0.0,
        schedule: Schedule::OneForwardOneBackward,
        recompute: Recompute::Auto,
        ..*i
    }
}
