//! Default parallel layout for values that the files do not state: tensor-parallel ranks, attention groups, replicas.

use super::{Machine, Phase, Scenario};
use crate::knob::Knob;
use atlas_config::Mode;
use atlas_config::workload::PlanSpec;
use atlas_core::count::Count;
use atlas_perf::arch::Architecture;
use atlas_perf::constants::Constants;
use atlas_perf::serving::Layout;
use atlas_perf::serving::shape::Shape;
use atlas_perf::training::memory::training_memory;
use atlas_perf::traits::{Accumulation, ModelSplit};

/// Maximum share of an accelerator's memory for weights in a default layout. The rest is for KV cache, activations and
/// the runtime.
const WEIGHT_SHARE: f64 = 0.6;

/// Maximum share of an accelerator's memory for weights, gradients and optimizer states in a default layout. The rest
/// holds the activations of a micro-batch, with recomputation if necessary.
const STATE_SHARE: f64 = 0.8;

/// Maximum share of the replicas that may idle so that the number of the others divides the global batch.
const IDLE_REPLICAS: f64 = 0.125;

impl Scenario {
    /// Completes the layout with defaults for values that are not stated.
    pub(super) fn complete_layout(&mut self) {
        self.default_ranks();
        self.default_groups();
        self.default_replicas();
    }

    /// Selects the ranks that are not stated: the fewest serving ranks whose weights leave enough memory for the KV
    /// cache, or the fewest training ranks that hold weights, gradients and optimizer states.
    fn default_ranks(&mut self) {
        let ranks = self.ranks(&self.base);
        ranks.complete(&mut self.base);
        for at in 0..self.phases.len() {
            let ranks = self.phases.get(at).map(|phase| self.ranks(phase));
            if let (Some(ranks), Some(phase)) = (ranks, self.phases.get_mut(at)) {
                ranks.complete(phase);
            }
        }
    }

    /// Default ranks of a phase. If the user stated some of them, the others are those that would have been selected
    /// with them, or the fewest that fit beside the stated ones.
    fn ranks(&self, phase: &Phase) -> Ranks {
        if !self.has_default_layout(phase) || !self.has_open_ranks(phase) {
            return Ranks::ONE;
        }
        let mut silent = *phase;
        (silent.plan.tp, silent.plan.pp, silent.plan.ep) = (None, None, None);
        let usual = self.fewest_ranks(&silent);
        if usual.agree_with(&phase.plan) { usual } else { self.fewest_ranks(phase) }
    }

    /// Whether a phase leaves ranks open that have a default other than one.
    fn has_open_ranks(&self, phase: &Phase) -> bool {
        let mixture = phase.shape.mode == Mode::Training && self.model.is_some_and(|model| model.is_moe());
        let in_domain = if mixture { phase.plan.ep } else { phase.plan.tp };
        phase.plan.pp.is_none() || in_domain.is_none()
    }

    /// Fewest ranks that fit, including those that the phase states.
    fn fewest_ranks(&self, phase: &Phase) -> Ranks {
        let (Some(machine), Some(model)) = (&self.machine, &self.model) else { return Ranks::ONE };
        let devices = self.accelerators() * machine.dies;
        match phase.shape.mode {
            Mode::Training => self.fewest_training_ranks(phase, machine, model, devices),
            Mode::Inference => {
                let split = self.active_software.serving.split;
                let (tp, pp) = fewest_serving_ranks(phase, machine, model, split, devices);
                Ranks { tp, pp, ..Ranks::ONE }
            }
        }
    }

    /// Fewest ranks whose weights, gradients and optimizer states take at most [`STATE_SHARE`] of the memory, or, if
    /// none suffice, those with the smallest states. Dense models are split by tensor parallelism within a scale-up
    /// domain first and by pipeline stages second, mixtures of experts by expert parallelism first, as the
    /// Megatron-Core guides recommend (parallelism; MoE). Ranks that the phase states are kept.
    fn fewest_training_ranks(&self, phase: &Phase, machine: &Machine, model: &Architecture, devices: f64) -> Ranks {
        let domain = f64::from(Count::floor(machine.domain).max(Count::ONE));
        let (mixture, heads, experts) = (model.is_moe(), f64::from(model.heads), f64::from(model.experts));
        let divided = if mixture { experts } else { heads };
        let plan = &phase.plan;
        let ones = Ranks {
            tp: plan.tp.unwrap_or(Count::ONE),
            pp: plan.pp.unwrap_or(Count::ONE),
            ep: plan.ep.unwrap_or(Count::ONE),
        };
        // Without further stages, experts must be spread over more nodes.
        let most = match (mixture, plan.pp) {
            (false, _) => domain,
            (true, None) => domain / f64::from(ones.tp),
            (true, Some(pp)) => devices / (ones.tp * pp),
        };
        let in_domain = powers(most).filter(|ranks| divided <= 0.0 || (divided / *ranks).fract() == 0.0);
        let in_domain = in_domain.map(|ranks| match mixture {
            true => Ranks { ep: plan.ep.unwrap_or(ranks), ..ones },
            false => Ranks { tp: plan.tp.unwrap_or(ranks), ..ones },
        });
        let widest = in_domain.clone().last().unwrap_or(ones);
        let stages = powers((devices / (widest.tp * widest.ep)).min(f64::from(model.layers))).skip(1);
        let stages = stages.map(|pp| Ranks { pp: plan.pp.unwrap_or(pp), ..widest });
        let max_bytes = STATE_SHARE * machine.device.capacity();
        let mut smallest: Option<(f64, Ranks)> = None;
        for ranks in in_domain.chain(stages) {
            let Some(states) = self.state_bytes(phase, ranks, devices) else { continue };
            if states <= max_bytes {
                return ranks;
            }
            if smallest.is_none_or(|(smallest, _)| states < smallest) {
                smallest = Some((states, ranks));
            }
        }
        smallest.map_or(Ranks::ONE, |(_, ranks)| ranks)
    }

    /// Bytes of weights, gradients and optimizer states on the fullest accelerator; `None` if the software does not
    /// support the layout or the target is too small.
    fn state_bytes(&self, phase: &Phase, ranks: Ranks, devices: f64) -> Option<f64> {
        let mut trial = *phase;
        ranks.complete(&mut trial);
        let replica = trial.shape.tp * trial.shape.pp * trial.groups();
        trial.shape.dp = phase.plan.dp.unwrap_or(Count::floor(devices / replica));
        let fits = trial.shape.dp >= 1.0 && trial.shape.dp * replica <= devices;
        // Experts are distributed over the ranks of one stage. Replicas that are not stated are rounded down.
        let group = self.replicas_per_expert_group(&trial);
        let spread = match phase.plan.dp {
            Some(dp) => dp % group == 0.0,
            None => trial.shape.dp >= group,
        };
        let input = self.training_input(&trial).filter(|_| fits && spread && self.software_supports(&trial))?;
        let memory = training_memory(&input, &Constants::default(), input.recompute);
        Some(memory.weights + memory.gradients + memory.optimizer)
    }

    /// Bytes of a checkpoint: trained weights with their optimizer states. Frozen weights are not saved: they do not change.
    pub(super) fn checkpoint_bytes(&self, phase: &Phase) -> f64 {
        let input = self.training_input(phase).filter(|_| phase.shape.mode == Mode::Training);
        input.map_or(0.0, |input| self.trained_params(phase) * (input.weight_bytes + input.optimizer_bytes))
    }

    /// Whether the files state no layout, so that the numbers of tensor-parallel, pipeline and expert-parallel ranks are
    /// defaults unless the user states them. Files that state part of a layout are read as the software would read
    /// them: it does not split further on its own.
    #[must_use]
    pub fn has_default_layout(&self, phase: &Phase) -> bool {
        self.engine.models_hardware() && self.machine.is_some() && self.model.is_some() && phase.splits_by_default()
    }

    /// Whether ranks that this scenario states, and `from` leaves to their default, would be different ones if this
    /// scenario left them to their default, too.
    pub(crate) fn ranks_would_change(&self, knob: Knob, from: &Scenario) -> bool {
        if !matches!(knob, Knob::Tp | Knob::Pp | Knob::Ep) || self.follows(knob) || !from.follows(knob) {
            return false;
        }
        let mut silent = self.clone();
        let plan = &mut silent.base.plan;
        match knob {
            Knob::Tp => plan.tp = None,
            Knob::Pp => plan.pp = None,
            _ => plan.ep = None,
        }
        silent.complete_layout();
        silent.get(knob) != self.get(knob)
    }

    /// Infers data-parallel attention groups if more expert-parallel ranks than `tp` are stated, and `dp`, but no
    /// groups. This is the meaning of `vllm serve --data-parallel-size 8 --enable-expert-parallel`, where `dp` counts
    /// the groups of all replicas.
    fn default_groups(&mut self) {
        let mixture = self.model.is_some_and(|model| model.is_moe());
        let generates = self.model.is_none_or(|model| model.causal);
        let supported = mixture && self.active_software.serving.attention_dp && self.engine.models_hardware();
        for phase in self.all_phases().filter(|phase| phase.shape.mode == Mode::Inference) {
            phase.default_groups = Count::ONE;
            phase.generates = generates;
            let Some(dp) = phase.plan.dp else { continue };
            phase.shape.dp = dp;
            let Some(ep) = phase.plan.ep.filter(|_| supported && phase.plan.attention_dp.is_none()) else { continue };
            let groups = Count::from_exact(ep / phase.shape.tp.max(Count::ONE)).filter(|groups| *groups > 1.0);
            let replicas = groups.and_then(|groups| Count::from_exact(dp / groups)).and_then(Count::nonzero);
            if let (Some(groups), Some(replicas)) = (groups, replicas) {
                (phase.default_groups, phase.shape.dp) = (groups, replicas);
            }
        }
    }

    /// Fewest replicas whose ranks of a stage hold all experts of a layer. Only multiples of them are possible.
    fn replicas_per_expert_group(&self, phase: &Phase) -> Count {
        if phase.shape.mode != Mode::Training || !self.model.is_some_and(|model| model.is_moe()) {
            return Count::ONE;
        }
        let group = Count::floor(phase.ep() * self.expert_tensor_ranks(phase)).max(Count::ONE).get();
        let ranks = Count::floor(phase.shape.tp * phase.groups()).max(Count::ONE).get();
        Count::new(group / greatest_common_divisor(group, ranks))
    }

    /// Sets the number of replicas, if it is not stated, to fill the target, or somewhat less if that divides a stated
    /// global batch.
    fn default_replicas(&mut self) {
        let microbatch = self.microbatch;
        let accumulates = self.micro_stated || self.active_software.training.accumulation == Accumulation::MicroBatches;
        let devices = self.accelerators() * self.machine.as_ref().map_or(1.0, |machine| machine.dies);
        let multiples: Vec<Count> = std::iter::once(&self.base)
            .chain(&self.phases)
            .map(|phase| self.replicas_per_expert_group(phase))
            .collect();
        for (phase, group) in self.all_phases().zip(multiples).filter(|(phase, _)| phase.plan.dp.is_none()) {
            let groups = phase.groups();
            let replica = phase.shape.tp * phase.shape.pp * groups;
            let max_replicas = Count::floor((devices - phase.dedicated_accelerators()) / replica).max(Count::ONE);
            let batch = phase.plan.global.filter(|_| accumulates && phase.shape.mode == Mode::Training);
            let whole = Count::floor((max_replicas / group).floor() * group).nonzero().unwrap_or(max_replicas);
            phase.shape.dp =
                batch.and_then(|global| dividing(max_replicas, group, global, microbatch)).unwrap_or(whole);
        }
    }
}

impl Phase {
    /// Whether the plan states no layout.
    pub(super) fn states_no_layout(plan: &PlanSpec, mode: Mode) -> bool {
        let stated = plan.tp.or(plan.pp).or(plan.ep);
        let stated = match mode {
            Mode::Training => stated.or(plan.cp).or(plan.vpp),
            Mode::Inference => stated,
        };
        stated.is_none() && !Phase::states_other_split(plan, mode)
    }

    /// Whether the plan states a split in place of the default one: a sharding of model states, or attention groups and
    /// pools with ranks of their own.
    fn states_other_split(plan: &PlanSpec, mode: Mode) -> bool {
        let pools = &plan.serving.pools;
        match mode {
            Mode::Training => plan.sharding.is_some(),
            Mode::Inference => plan.attention_dp.or(pools.prefill.tp).or(pools.decode.tp).is_some(),
        }
    }

    /// Whether ranks that are not stated have a default.
    fn splits_by_default(&self) -> bool {
        self.layout_in_files_is_open && !Phase::states_other_split(&self.plan, self.shape.mode)
    }
}

/// Default tensor-parallel ranks, pipeline stages and expert-parallel ranks.
#[derive(Debug, Clone, Copy)]
struct Ranks {
    tp: Count,
    pp: Count,
    ep: Count,
}

impl Ranks {
    const ONE: Ranks = Ranks { tp: Count::ONE, pp: Count::ONE, ep: Count::ONE };

    /// Applies the ranks to a phase, except where it states its own.
    fn complete(self, phase: &mut Phase) {
        let plan = &phase.plan;
        (phase.shape.tp, phase.shape.pp) = (plan.tp.unwrap_or(self.tp), plan.pp.unwrap_or(self.pp));
        phase.default_ep = self.ep;
    }

    /// Whether the ranks include those that a plan states.
    fn agree_with(self, plan: &PlanSpec) -> bool {
        [(plan.tp, self.tp), (plan.pp, self.pp), (plan.ep, self.ep)]
            .into_iter()
            .all(|(stated, ranks)| stated.is_none_or(|stated| stated == ranks))
    }
}

/// Powers of two up to `limit`.
fn powers(limit: f64) -> impl Iterator<Item = Count> + Clone {
    (0..16_u32).map(|power| Count::new(1 << power)).take_while(move |ranks| *ranks <= limit)
}

/// Fewest tensor-parallel ranks (a power of two that divides the heads) and pipeline stages whose weights take at most
/// [`WEIGHT_SHARE`] of the memory. Pipeline stages are used only if all ranks of a scale-up domain do not suffice, as
/// vLLM's documentation recommends (parallelism and scaling): tensor parallelism within a node, pipeline parallelism
/// across nodes. Software that splits layers by default uses pipeline stages only.
fn fewest_serving_ranks(
    phase: &Phase,
    machine: &Machine,
    model: &Architecture,
    split: ModelSplit,
    devices: f64,
) -> (Count, Count) {
    let max_bytes = WEIGHT_SHARE * machine.device.capacity();
    let domain = Count::floor(machine.domain).max(Count::ONE);
    let divides = |tp: &Count| model.heads <= 0.0 || (model.heads / *tp).fract() == 0.0;
    let suffices = |tp: Count, pp: Count| {
        let layout = Layout { tp, pp, ..Layout::default() };
        Shape::new(model, &phase.serving_defaults.formats, &layout).resident_bytes <= max_bytes
    };
    let most = match split {
        ModelSplit::Tensors => f64::from(domain),
        ModelSplit::Layers => 1.0,
    };
    let (stated_tp, stated_pp) = (phase.plan.tp, phase.plan.pp);
    let tensor = || powers(most).filter(divides).map(|tp| stated_tp.unwrap_or(tp));
    let widest = tensor().last().unwrap_or(Count::ONE);
    let one_stage = tensor().map(|tp| (tp, stated_pp.unwrap_or(Count::ONE)));
    let stages = powers((devices / widest).min(f64::from(model.layers)));
    let stages = stages.map(|pp| (widest, stated_pp.unwrap_or(pp)));
    one_stage
        .chain(stages.clone())
        .find(|(tp, pp)| suffices(*tp, *pp))
        .or_else(|| stages.last())
        .unwrap_or((widest, Count::ONE))
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Largest multiple of `group` replicas up to `max_replicas`, with at most [`IDLE_REPLICAS`] idle, whose micro-batches
/// divide the global batch.
fn dividing(max_replicas: Count, group: Count, global: Count, microbatch: Count) -> Option<Count> {
    let min_replicas = Count::floor((f64::from(max_replicas) * (1.0 - IDLE_REPLICAS)).ceil()).max(Count::ONE).get();
    let micro_batches = Count::from_exact(global / microbatch)?.nonzero()?;
    // From here on, counts are of groups.
    let group = group.max(Count::ONE);
    let micro_batches = Count::from_exact(micro_batches / group)?.get();
    let max_replicas = Count::floor(max_replicas.max(Count::ONE) / group).nonzero()?.get();
    let min_replicas = min_replicas.div_ceil(group.get());
    // Iterate over the replicas or over the micro-batches per replica, whichever are fewer: at most the square root of
    // all.
    let found = if max_replicas <= micro_batches / max_replicas {
        (min_replicas..=max_replicas).rev().find(|dp| micro_batches.is_multiple_of(*dp))
    } else {
        let mut each = micro_batches.div_ceil(max_replicas)..=micro_batches / min_replicas;
        each.find(|each| micro_batches.is_multiple_of(*each)).map(|each| micro_batches / each)
    };
    found.map(|groups| Count::new(groups * group.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::testing;

    fn without_layout(target: &str, workload: &str, stated: &[&str]) -> Scenario {
        testing::scenario_without_layout(target, workload, stated).1
    }

    fn ranks(scenario: &Scenario) -> [f64; 3] {
        let base = &scenario.base;
        [base.shape.tp, base.shape.pp, base.ep()].map(f64::from)
    }

    #[test]
    fn stating_one_degree_keeps_the_defaults_of_the_others() {
        let state = |stated: &[&str]| {
            without_layout("h100-sxm-1024", "deepseek-v3-train", &[&["precision=fp8"], stated].concat())
        };
        let assumed = ranks(&state(&[]));
        let [tp, pp, ep] = assumed;
        assert!(tp <= 1.0 && pp > 1.0 && ep > 1.0, "{assumed:?}");
        for shown in [format!("tp={tp}"), format!("pp={pp}"), format!("ep={ep}")] {
            assert_eq!(ranks(&state(&[&shown])), assumed, "{shown}");
        }
        assert_eq!(ranks(&state(&["vpp=2"])), assumed);
        assert_eq!(ranks(&state(&["pp=8", "ep=64", "tp=1"])), [1.0, 8.0, 64.0]);
        for stated in ["ep=64", "pp=8", "pp=32", "tp=2"] {
            let scenario = state(&[stated]);
            let [tp, pp, ep] = ranks(&scenario).map(Count::floor);
            let held = scenario.state_bytes(&scenario.base, Ranks { tp, pp, ep }, scenario.devices());
            let capacity = scenario.machine.map_or(0.0, |machine| machine.device.capacity());
            assert!(held.is_some_and(|bytes| bytes <= capacity), "{stated}: {tp} {pp} {ep}, {held:?}");
        }
    }

    #[test]
    fn stating_one_degree_keeps_the_defaults_in_serving() {
        let state = |stated: &[&str]| {
            ranks(&without_layout("h100-sxm-64", "llama3.1-405b-serve", &[&["precision=bf16"], stated].concat()))
        };
        assert_eq!(state(&[]), [8.0, 2.0, 1.0]);
        assert_eq!(state(&["tp=8"]), [8.0, 2.0, 1.0]);
        assert_eq!(state(&["pp=2"]), [8.0, 2.0, 1.0]);
        assert_eq!(state(&["pp=4"]), [4.0, 4.0, 1.0]);
        assert_eq!(state(&["tp=4"]), [4.0, 4.0, 1.0]);
    }

    #[test]
    fn files_that_state_one_degree_are_not_split_further() {
        let (_, scenario) = testing::scenario("h100-sxm-64", "llama3.1-405b-serve", &["precision=bf16"]);
        assert_eq!(ranks(&scenario), [8.0, 1.0, 1.0]);
    }

    #[test]
    fn replica_search_matches_brute_force_and_handles_maximum_counts() {
        for max_replicas in 1..70 {
            for global in 1..300 {
                for (micro, group) in [(1, 1), (2, 1), (3, 1), (1, 2), (2, 4), (1, 8)] {
                    let min_replicas = (f64::from(max_replicas) * (1.0 - IDLE_REPLICAS)).ceil() as u32;
                    let tried = (min_replicas.max(1)..=max_replicas)
                        .rev()
                        .find(|dp| global % (dp * micro) == 0 && dp % group == 0)
                        .map(Count::new);
                    let [max, group, global, micro] = [max_replicas, group, global, micro].map(Count::new);
                    assert_eq!(dividing(max, group, global, micro), tried);
                }
            }
        }
        assert_eq!(dividing(Count::MAX, Count::ONE, Count::new(16_777_213), Count::ONE), None);
        assert_eq!(dividing(Count::MAX, Count::ONE, Count::MAX, Count::ONE), Some(Count::MAX));
    }
}
