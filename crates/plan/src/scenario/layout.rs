//! The layout where the files leave it open: tensor-parallel ranks, attention groups, replicas.

use super::{Machine, Phase, Scenario};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_perf::arch::Architecture;
use atlas_perf::serving::Layout;
use atlas_perf::serving::shape::Shape;
use atlas_perf::traits::Accumulation;

/// Share of an accelerator's memory that weights may take in a default layout; the rest is for KV cache, activations and the
/// runtime.
const WEIGHT_SHARE: f64 = 0.6;

/// Share of the replicas that may idle so that the others divide a global batch.
const IDLE_REPLICAS: f64 = 0.125;

impl Scenario {
    /// Fills in what the files leave open of the layout.
    pub(super) fn fill(&mut self) {
        self.default_ranks();
        self.default_groups();
        self.default_replicas();
    }

    /// Serves with the fewest ranks whose weights leave room for the KV cache, if no layout is stated.
    fn default_ranks(&mut self) {
        let (Some(machine), Some(model)) = (self.machine, self.model) else { return };
        let have = self.accelerators() * machine.dies;
        let reasons = self.engine.reasons();
        for phase in self.all_phases() {
            let open = reasons && phase.states_no_layout();
            let ranks = open.then(|| fewest_ranks(phase, &machine, &model, have));
            let (tp, pp) = ranks.unwrap_or((Count::ONE, Count::ONE));
            (phase.shape.tp, phase.shape.pp) = (phase.plan.tp.unwrap_or(tp), phase.plan.pp.unwrap_or(pp));
        }
    }

    /// Whether tensor-parallel ranks and stages are the fewest that the weights need, since no layout is stated.
    #[must_use]
    pub fn has_default_layout(&self, phase: &Phase) -> bool {
        self.engine.reasons() && self.machine.is_some() && self.model.is_some() && phase.states_no_layout()
    }

    /// Shares experts over groups of data-parallel attention if more expert-parallel ranks are stated than `tp`, and `dp`
    /// but no groups: `vllm serve --data-parallel-size 8 --enable-expert-parallel`, where `dp` counts the groups of all replicas.
    fn default_groups(&mut self) {
        let mixture = self.model.is_some_and(|model| model.is_moe());
        let supported = mixture && self.in_force.serving.attention_dp && self.engine.reasons();
        for phase in self.all_phases().filter(|phase| phase.shape.mode == Mode::Inference) {
            phase.default_groups = Count::ONE;
            let Some(dp) = phase.plan.dp else { continue };
            phase.shape.dp = dp;
            let Some(ep) = phase.plan.ep.filter(|_| supported && phase.plan.attention_dp.is_none()) else { continue };
            let groups = Count::exact(ep / phase.shape.tp.max(Count::ONE)).filter(|groups| *groups > 1.0);
            let replicas = groups.and_then(|groups| Count::exact(dp / groups)).and_then(Count::nonzero);
            if let (Some(groups), Some(replicas)) = (groups, replicas) {
                (phase.default_groups, phase.shape.dp) = (groups, replicas);
            }
        }
    }

    /// Lets replicas fill the target where their number is not stated, or as much of it as lets them share a stated global
    /// batch.
    fn default_replicas(&mut self) {
        let microbatch = self.microbatch;
        let accumulates = self.micro_stated || self.in_force.training.accumulation == Accumulation::MicroBatches;
        let have = self.accelerators() * self.machine.as_ref().map_or(1.0, |machine| machine.dies);
        for phase in self.all_phases().filter(|phase| phase.plan.dp.is_none()) {
            let groups = phase.groups();
            let replica = phase.shape.tp * phase.shape.pp * groups;
            let most = Count::floor((have - phase.set_apart()) / replica).max(Count::ONE);
            let batch = phase.plan.global.filter(|_| accumulates && phase.shape.mode == Mode::Training);
            phase.shape.dp = batch.and_then(|global| dividing(most, global, microbatch)).unwrap_or(most);
        }
    }
}

impl Phase {
    /// Whether it serves and leaves its layout open.
    fn states_no_layout(&self) -> bool {
        let (plan, pools) = (&self.plan, &self.plan.serving.pools);
        let stated = plan.tp.or(plan.pp).or(plan.ep).or(plan.attention_dp).or(pools.prefill.tp).or(pools.decode.tp);
        self.shape.mode == Mode::Inference && stated.is_none()
    }
}

/// The fewest tensor-parallel ranks, a power of two that divides the heads, and pipeline stages whose weights take at most
/// [`WEIGHT_SHARE`] of the memory. There are stages only if all ranks of a fast domain do not suffice, as vLLM's documentation
/// advises (parallelism and scaling): tensor parallelism within a node, pipeline parallelism over nodes.
fn fewest_ranks(phase: &Phase, machine: &Machine, model: &Architecture, have: f64) -> (Count, Count) {
    let room = WEIGHT_SHARE * machine.device.capacity();
    let domain = Count::floor(machine.domain).max(Count::ONE);
    let powers = |most: f64| (0..16_u32).map(|power| Count::new(1 << power)).take_while(move |ranks| *ranks <= most);
    let divides = |tp: &Count| model.heads <= 0.0 || (model.heads / *tp).fract() == 0.0;
    let suffices = |tp: Count, pp: Count| {
        let layout = Layout { tp, pp, ..Layout::default() };
        Shape::new(model, &phase.served.formats, &layout).resident_bytes <= room
    };
    let tensor = || powers(f64::from(domain)).filter(divides);
    let most = tensor().last().unwrap_or(Count::ONE);
    let within = tensor().map(|tp| (tp, Count::ONE));
    let beyond = powers((have / most).min(f64::from(model.layers))).map(|pp| (most, pp));
    within
        .chain(beyond.clone())
        .find(|(tp, pp)| suffices(*tp, *pp))
        .or_else(|| beyond.last())
        .unwrap_or((most, Count::ONE))
}

/// The most replicas, at most `most` and not many fewer, whose micro-batches divide a global batch.
fn dividing(most: Count, global: Count, microbatch: Count) -> Option<Count> {
    let least = Count::floor((f64::from(most) * (1.0 - IDLE_REPLICAS)).ceil()).max(Count::ONE).get();
    let micro_batches = Count::exact(global / microbatch)?.nonzero()?.get();
    let most = most.max(Count::ONE).get();
    // Replicas, or the micro-batches of one, whichever are fewer: never more than the root of all.
    let found = if most <= micro_batches / most {
        (least..=most).rev().find(|dp| micro_batches.is_multiple_of(*dp))
    } else {
        let mut each = micro_batches.div_ceil(most)..=micro_batches / least;
        each.find(|each| micro_batches.is_multiple_of(*each)).map(|each| micro_batches / each)
    };
    found.map(Count::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_divide_the_batch_and_billions_of_them_are_not_tried() {
        for most in 1..70 {
            for global in 1..300 {
                for micro in 1..4 {
                    let least = (f64::from(most) * (1.0 - IDLE_REPLICAS)).ceil() as u32;
                    let tried = (least.max(1)..=most).rev().find(|dp| global % (dp * micro) == 0).map(Count::new);
                    assert_eq!(dividing(Count::new(most), Count::new(global), Count::new(micro)), tried);
                }
            }
        }
        assert_eq!(dividing(Count::MAX, Count::new(16_777_213), Count::ONE), None);
        assert_eq!(dividing(Count::MAX, Count::MAX, Count::ONE), Some(Count::MAX));
    }
}
