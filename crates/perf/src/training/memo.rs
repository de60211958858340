//! What estimates of neighbors have in common. A user who changes one knob after another needs thousands of estimates, and most
//! knobs leave much as it was: all of the step, or what a micro-batch takes in a layer, operator by operator, which is the
//! larger part of the work.

use super::layer::{self, LayerTime};
use super::step::{self, Settled, Step};
use super::terms::token_flops;
use super::{Plan, Recompute, Schedule, Sharding, TrainingInput, convolution};
use crate::accelerator::Accelerator;
use crate::constants::Constants;
use atlas_core::count::Count;

/// One micro-batch in one layer and at the model's end, and what a token requests.
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
            None => (layer::mean_layer(i, c, plan, &mut ()), layer::head(i, c, &mut ())),
        };
        let flops = |halved| token_flops(i, halved).total();
        Passes { layer, head, flops: flops(false), causal_flops: flops(true) }
    }
}

/// The last estimate's step and its passes, for the next one to take where they are the same. It changes no figure by a
/// bit: each is kept with all that it was worked out from.
#[derive(Debug, Clone, Default)]
pub struct Memo {
    constants: Constants,
    step: Option<(TrainingInput, Step)>,
    passes: Option<(TrainingInput, Plan, Passes)>,
    settled: Option<(TrainingInput, Settled)>,
}

impl Memo {
    /// The step of [`step::timed`].
    pub(super) fn step(&mut self, i: &TrainingInput, c: &Constants) -> Step {
        if self.constants != *c {
            *self = Memo { constants: *c, ..Memo::default() };
        }
        // How many micro-batches there are decides, not how full the last one is.
        let read = TrainingInput { global: i.micro_batches(), ..*i };
        if let Some((known, step)) = &self.step
            && same(known, &read)
        {
            return *step;
        }
        let step = step::timed(i, c, None, Some(self));
        self.step = Some((read, step));
        step
    }

    /// The plan and the memory of [`Settled::of`].
    pub(super) fn settled(&mut self, i: &TrainingInput, c: &Constants) -> Settled {
        // Memory depends on the number of micro-batches as far as they are in flight, and not on the network.
        let most = if i.schedule == Schedule::AllForward { f64::INFINITY } else { 2.0 * i.pp };
        let read = TrainingInput {
            accelerator: Accelerator { nic_bw: 0.0, ..i.accelerator },
            oversubscription: 0.0,
            global: i.micro_batches().min(most),
            ..*i
        };
        if let Some((known, settled)) = &self.settled
            && same(known, &read)
        {
            return *settled;
        }
        let settled = Settled::of(i, c);
        self.settled = Some((read, settled));
        settled
    }

    /// The passes of [`Passes::of`].
    pub(super) fn passes(&mut self, i: &TrainingInput, c: &Constants, plan: Plan) -> Passes {
        // Neither batch nor layout over stages and replicas, nor the network.
        let read = TrainingInput {
            accelerator: Accelerator { nic_bw: 0.0, domain: 0.0, ..i.accelerator },
            accelerators: 0.0,
            domain: 0.0,
            oversubscription: 0.0,
            global: 0.0,
            pp: Count::ZERO,
            vpp: Count::ZERO,
            first_layers: None,
            last_layers: None,
            dp: Count::ZERO,
            sharding: Sharding::None,
            reshard: None,
            shard: None,
            schedule: Schedule::OneForwardOneBackward,
            recompute: Recompute::Auto,
            recompute_layers: None,
            recompute_reserve: 0.0,
            ..*i
        };
        if let Some((known, by, passes)) = &self.passes
            && *by == plan
            && same(known, &read)
        {
            return *passes;
        }
        let passes = Passes::of(i, c, plan);
        self.passes = Some((read, plan, passes));
        passes
    }
}

/// What is changed most is compared first: the whole takes a hundred comparisons.
fn same(a: &TrainingInput, b: &TrainingInput) -> bool {
    a.global == b.global && a.micro == b.micro && a.seq == b.seq && a.dp == b.dp && a == b
}
