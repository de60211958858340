//! A training run, with recomputation in terms of the tools.

use atlas_core::count::Count;
use atlas_core::plan::{Format, Optimizer, Recompute, Sharding};
use atlas_plan::engine::answer::training::closed;
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::{Parts, Scenario};

use super::{count, maybe};
use crate::launch::{Options, STEPS};

/// A training run.
#[derive(Debug)]
pub(crate) struct Training {
    pub(crate) tp: u64,
    pub(crate) pp: u64,
    pub(crate) vpp: u64,
    pub(crate) cp: u64,
    pub(crate) ep: u64,
    pub(crate) etp: u64,
    pub(crate) dp: u64,
    pub(crate) sequence_parallel: bool,
    pub(crate) micro: u64,
    pub(crate) global: u64,
    pub(crate) sequence: u64,
    pub(crate) steps: u64,
    pub(crate) format: Format,
    /// Number of layers that are computed in 16 bit at the start and at the end of the model, if the format is narrower.
    pub(crate) bf16_ends: Option<[u64; 2]>,
    pub(crate) sharding: Sharding,
    /// Number of replicas over which the state is sharded, if not all.
    pub(crate) shard: Option<u64>,
    pub(crate) recompute: Recompute,
    /// Number of layers that are fully recomputed, if not all.
    pub(crate) recompute_layers: Option<u64>,
    /// Whether selective recomputation includes MLPs or mixtures of experts.
    pub(crate) recompute_mlps: bool,
    /// Whether memory suffices without recomputation.
    pub(crate) fits_without_recomputation: bool,
    /// Number of layers whose full recomputation replaces a selective one that memory requires.
    pub(crate) layers_instead: Option<u64>,
    pub(crate) optimizer: Optimizer,
}

impl Training {
    /// Derives the run from a training scenario.
    pub(super) fn of(scenario: &Scenario, parts: &Parts, options: &Options) -> Training {
        let (phase, plan) = (&scenario.base, &scenario.base.plan);
        let moe = scenario.model.is_some_and(|model| model.is_moe());
        let recomputation = Recomputation::of(scenario, parts);
        let (global, sequence) = (count(scenario.global(phase)), count(phase.shape.prompt + phase.shape.generate));
        let by_tokens = plan.train_tokens.map(|tokens| count((tokens / (global as f64 * sequence as f64)).ceil()));
        Training {
            tp: count(phase.shape.tp),
            pp: count(phase.shape.pp),
            vpp: count(plan.vpp.unwrap_or(Count::ONE)),
            cp: count(plan.cp.unwrap_or(Count::ONE)),
            ep: if moe { count(plan.ep.unwrap_or(Count::ONE)) } else { 1 },
            etp: count(scenario.expert_tensor_ranks(phase)),
            dp: count(phase.shape.dp),
            sequence_parallel: scenario.sequence_parallel(phase),
            micro: count(scenario.micro(phase)),
            global,
            sequence,
            steps: options.steps.or(by_tokens).unwrap_or(STEPS),
            format: scenario.format(phase),
            bf16_ends: scenario
                .training_input(phase)
                .map(|input| input.bf16_ends().map(|layers| layers as u64))
                .filter(|ends| *ends != [0, 0]),
            sharding: scenario.sharding(phase),
            shard: maybe(plan.shard),
            recompute: recomputation.mode,
            recompute_layers: recomputation.layers,
            recompute_mlps: recomputation.mlps,
            fits_without_recomputation: recomputation.fits_without,
            layers_instead: recomputation.instead,
            optimizer: plan.optimizer.unwrap_or(Optimizer::Adam),
        }
    }

    /// Number of micro-batches per rank and step.
    pub(crate) fn accumulation(&self) -> u64 {
        self.global / (self.micro * self.dp).max(1)
    }
}

/// Recomputation in terms of the tools, which recompute parts of all layers, or a number of whole layers.
struct Recomputation {
    mode: Recompute,
    /// Number of layers that are fully recomputed while the others recompute nothing, if not all.
    layers: Option<u64>,
    /// Whether MLPs or mixtures of experts are recomputed.
    mlps: bool,
    /// Whether memory suffices without recomputation.
    fits_without: bool,
    /// Number of layers whose full recomputation frees the planned memory, for tools without recomputed modules.
    instead: Option<u64>,
}

impl Recomputation {
    fn of(scenario: &Scenario, parts: &Parts) -> Recomputation {
        let stated = scenario.recompute(&scenario.base);
        // The capacity, and the most memory that a scenario with these knobs uses.
        let memory = |knobs: &[(Knob, Setting)]| {
            let mut other = scenario.clone();
            knobs.iter().try_for_each(|(knob, setting)| other.set(*knob, setting, parts)).ok()?;
            let (input, _, out) = closed(&other, &other.base)?;
            Some((input.accelerator.capacity(), out.memory_upper))
        };
        let none = (Knob::Recompute, Setting::Choice(Recompute::None.name().into()));
        let fits_without = memory(std::slice::from_ref(&none)).is_some_and(|(capacity, upper)| upper <= capacity);
        let whole = Recomputation { mode: stated, layers: None, mlps: false, fits_without, instead: None };
        let stated_layers = scenario.base.plan.recompute_layers.map(count);
        let Some((input, _, planned)) = closed(scenario, &scenario.base) else { return whole };
        let shares = planned.recompute;
        if matches!(stated, Recompute::None | Recompute::Full) {
            let mode = if stated_layers.is_some() { Recompute::Full } else { stated };
            return Recomputation { mode, layers: stated_layers, ..whole };
        }
        if shares.full_share >= 1.0 {
            return Recomputation { mode: Recompute::Full, ..whole };
        }
        let layers = count(input.arch.depth());
        let enough = |layers: &u64| {
            let number = (Knob::RecomputeLayers, Setting::Number(*layers as f64));
            memory(&[none.clone(), number]).is_some_and(|(_, upper)| upper <= planned.memory_upper * 1.001)
        };
        if shares.full_share > 0.0 {
            // The planned layers, whose others recompute their MLPs, are fewer than those that free the same memory.
            let least = stated_layers.unwrap_or(1).max(1);
            return Recomputation { mode: Recompute::Full, layers: (least..layers).find(enough), ..whole };
        }
        let some = stated == Recompute::Selective || shares.selective_share > 0.0 || shares.mlp_share > 0.0;
        let mode = if some { Recompute::Selective } else { Recompute::None };
        let instead = (some && !fits_without).then(|| (1..=layers).find(enough)).flatten();
        Recomputation { mode, mlps: shares.mlp_share > 0.0, instead, ..whole }
    }
}
