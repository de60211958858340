//! Memoization between similar estimates. A user who changes one knob after another causes thousands of estimates, and
//! most knobs leave the whole step unchanged, or at least the time of a micro-batch in a layer, which is the larger
//! part of the work.

use super::step::{self, Passes, ResolvedPlan, Step};
use super::{Plan, Recompute, Schedule, Sharding, TrainingEstimate, TrainingInput};
use crate::accelerator::Accelerator;
use crate::constants::Constants;
use atlas_core::count::Count;

/// Intermediate results of the last estimate, reused by the next one if their inputs are equal. Each is stored with all
/// of its inputs, so the results are bitwise identical to those without a memo.
#[derive(Debug, Clone, Default)]
pub struct Memo {
    constants: Constants,
    step: Option<(TrainingInput, Step)>,
    passes: Option<(TrainingInput, Plan, Passes)>,
    resolved: Option<(TrainingInput, ResolvedPlan)>,
}

impl Memo {
    /// Returns the result of [`step::step_with_passes`].
    fn step(&mut self, i: &TrainingInput, c: &Constants) -> Step {
        if self.constants != *c {
            *self = Memo { constants: *c, ..Memo::default() };
        }
        // The step depends on the number of micro-batches, but not on the size of the last one.
        let read = TrainingInput { global: i.micro_batches(), ..*i };
        if let Some((known, step)) = &self.step
            && same(known, &read)
        {
            return *step;
        }
        let resolved = self.resolved(i, c);
        let step = step::step_with_passes(i, c, resolved, self.passes(i, c, resolved.plan));
        self.step = Some((read, step));
        step
    }

    /// Returns the result of [`ResolvedPlan::of`].
    fn resolved(&mut self, i: &TrainingInput, c: &Constants) -> ResolvedPlan {
        // Memory depends on the number of micro-batches only up to the maximum in flight, and not on the network.
        let most = if i.schedule == Schedule::AllForward { f64::INFINITY } else { 2.0 * i.pp };
        let read = TrainingInput {
            accelerator: Accelerator { nic_bw: 0.0, ..i.accelerator },
            oversubscription: 0.0,
            global: i.micro_batches().min(most),
            ..*i
        };
        if let Some((known, resolved)) = &self.resolved
            && same(known, &read)
        {
            return *resolved;
        }
        let resolved = ResolvedPlan::of(i, c);
        self.resolved = Some((read, resolved));
        resolved
    }

    /// Returns the result of [`Passes::of`].
    fn passes(&mut self, i: &TrainingInput, c: &Constants, plan: Plan) -> Passes {
        // The passes depend neither on the batch, nor on stages and replicas, nor on the network.
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

/// As [`step::estimate`], reusing results in `memo`. The estimate is the same with and without a memo.
pub fn memoized(i: &TrainingInput, c: &Constants, memo: Option<&mut Memo>) -> TrainingEstimate {
    match memo {
        Some(memo) => step::report(i, &memo.step(i, c)),
        None => step::estimate(i, c),
    }
}

/// Compares inputs, starting with the fields that change most often: the full comparison has about a hundred fields.
fn same(a: &TrainingInput, b: &TrainingInput) -> bool {
    a.global == b.global && a.micro == b.micro && a.seq == b.seq && a.dp == b.dp && a == b
}
