//! What estimates of neighbors have in common. A user who changes one knob after another needs thousands of estimates, and most
//! knobs leave much as it was: all of the step, or what a micro-batch takes in a layer, operator by operator, which is the
//! larger part of the work.

use super::step::{self, Passes, Settled, Step};
use super::{Plan, Recompute, Schedule, Sharding, TrainingEstimate, TrainingInput};
use crate::accelerator::Accelerator;
use crate::constants::Constants;
use atlas_core::count::Count;

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
    fn step(&mut self, i: &TrainingInput, c: &Constants) -> Step {
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
        let settled = self.settled(i, c);
        let step = step::timed(i, c, settled, self.passes(i, c, settled.plan));
        self.step = Some((read, step));
        step
    }

    /// The plan and the memory of [`Settled::of`].
    fn settled(&mut self, i: &TrainingInput, c: &Constants) -> Settled {
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
    fn passes(&mut self, i: &TrainingInput, c: &Constants, plan: Plan) -> Passes {
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

/// As [`step::estimate`]; the memo carries over what neighboring inputs have in common and changes no figure.
pub fn memoized(i: &TrainingInput, c: &Constants, memo: Option<&mut Memo>) -> TrainingEstimate {
    match memo {
        Some(memo) => step::report(i, &memo.step(i, c)),
        None => step::estimate(i, c),
    }
}

/// What is changed most is compared first: the whole takes a hundred comparisons.
fn same(a: &TrainingInput, b: &TrainingInput) -> bool {
    a.global == b.global && a.micro == b.micro && a.seq == b.seq && a.dp == b.dp && a == b
}
