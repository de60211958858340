//! Memory of the pipeline stages that may hold most, under any recomputation plan.

use super::kept::LayerLevels;
use super::stage::{ModelStates, Stage, device_share, gathered_head, gathered_layer, non_activation_memory};
use super::{MemoryBreakdown, convolutional_activations};
use crate::constants::Constants;
use crate::training::input::{Plan, TrainingInput};
use crate::training::pipeline::{in_flight, max_in_flight};
use crate::training::stages::{longest_middle_stage, stage_layers};
use atlas_core::count::Count;

/// The pipeline stages that may hold most, with the part of their memory that does not depend on recomputation, so that
/// several plans can be evaluated.
pub struct PeakStages<'a> {
    i: &'a TrainingInput,
    c: &'a Constants,
    levels: LayerLevels<'a>,
    first: StageMemory,
    /// The first of the longest stages between the ends, if it may hold more than the first stage.
    middle: Option<StageMemory>,
    /// `None` for a pipeline of one stage.
    last: Option<StageMemory>,
}

struct StageMemory {
    stage: Stage,
    /// Number of micro-batches in flight.
    in_flight: f64,
    /// The stage of the opposite direction on the same device, with its micro-batches in flight.
    opposite: Option<(Stage, f64)>,
    /// Layers per chunk.
    layers: f64,
    /// Memory other than activations, while layers run.
    rest: MemoryBreakdown,
    /// Bytes of gathered weights and their gradient while the output layer runs, beyond those in `rest`. No layer is
    /// recomputed then.
    head: f64,
}

impl<'a> PeakStages<'a> {
    /// Computes the plan-independent memory of the stages that may hold most.
    pub fn of(i: &'a TrainingInput, c: &'a Constants) -> Self {
        let gathered = gathered_layer(i);
        let end = |number: f64| {
            let stage = Stage::of(i, number);
            let layers = i.arch.depth() * stage.share / i.vpp.max(Count::ONE);
            let opposite = (i.copies() > 1.0).then(|| {
                let number = i.pp - 1.0 - number;
                (Stage::of(i, number), in_flight(i, number))
            });
            let rest = non_activation_memory(i, c, &stage, gathered);
            // The next layer is gathered while the output layer runs.
            let head = if stage.has_logits(i) { gathered_head(i) - gathered } else { 0.0 };
            StageMemory { rest, head: head.max(0.0), in_flight: in_flight(i, number), opposite, layers, stage }
        };
        let first = end(0.0);
        // In a bidirectional pipeline, the first device has few micro-batches of the last stage.
        let longer =
            |number: &f64| i.copies() > 1.0 || stage_layers(i, *number) > i.arch.depth() * first.stage.share + 1e-9;
        let middle = longest_middle_stage(i).filter(longer).map(end);
        PeakStages { i, c, levels: LayerLevels::of(i), middle, last: (i.pp > 1.0).then(|| end(i.pp - 1.0)), first }
    }

    /// Memory of the accelerator that holds most under `plan`.
    pub fn under(&self, plan: &Plan) -> MemoryBreakdown {
        let load = self.activation_load(plan);
        self.other_stages()
            .map(|end| self.stage_memory(end, &load))
            .fold(self.stage_memory(&self.first, &load), |a, b| self.larger(a, b))
    }

    /// Smallest share of the way from plan `from` to plan `to`, which recomputes more in one respect, at which the
    /// upper bound on memory is `capacity`; 0 if `from` fits, 1 if neither does.
    pub fn share(&self, from: &Plan, to: &Plan, capacity: f64) -> f64 {
        let before = self.activation_load(from);
        if self.other_stages().chain([&self.first]).all(|end| self.stage_memory(end, &before).upper(self.c) <= capacity)
        {
            return 0.0;
        }
        let after = self.activation_load(to);
        let least = |end: &StageMemory| {
            let [kept, all] = [&before, &after].map(|load| self.activations(end, load));
            let (own, peak) = (before.recompute_bytes(0.0), after.recompute_bytes(0.0));
            // Three bounds, all linear in the share: the kept activations, the memory while the last layer is
            // recomputed, and that while the output layer runs.
            let gone = end.layers * (before.layer - after.layer).max(0.0) * self.tokens();
            let of = |now: f64, then: f64| {
                if now <= capacity { 0.0 } else { ((now - capacity) / (now - then).max(1.0)).clamp(0.0, 1.0) }
            };
            let upper = |activations, again| self.in_layers(end, activations, again).upper(self.c);
            let [now, then] = [upper(kept, peak - gone), upper(all, peak)];
            let head = [kept, all].map(|activations| self.in_head(end, activations).upper(self.c));
            let share = of(upper(kept, own), upper(all, own)).max(of(now, then)).max(of(head[0], head[1]));
            // Recomputation may need more memory than it frees.
            if now + share * (then - now) > capacity + 1.0 { 1.0 } else { share }
        };
        self.other_stages().map(least).fold(least(&self.first), f64::max)
    }

    /// As [`PeakStages::under`], with the number of micro-batches in flight, if the schedule uses the remaining memory
    /// for more of them ([`max_in_flight`]).
    pub(crate) fn with_extra_micro_batches(&self, plan: &Plan) -> (MemoryBreakdown, f64) {
        let i = self.i;
        let memory = self.under(plan);
        let (least, most) = (self.first.in_flight, max_in_flight(i));
        if most <= least {
            return (memory, least);
        }
        let load = self.activation_load(plan);
        let spare = |end: &StageMemory| {
            let held = self.stage_memory(end, &load);
            let one = self.activations(end, &load) / end.in_flight * (1.0 + 3.0 * self.c.fragmentation);
            (i.accelerator.capacity() - held.upper(self.c)) / one.max(1.0)
        };
        let spare = self.other_stages().map(spare).fold(spare(&self.first), f64::min);
        let held = (least + spare).floor().clamp(least, most);
        // All stages use the same memory.
        let more = |end: &StageMemory| {
            let activations = self.activations(end, &load) / end.in_flight * held;
            self.with_fragmentation(end, activations, load.recompute_bytes(end.layers))
        };
        let memory = self.other_stages().map(more).fold(more(&self.first), |a, b| self.larger(a, b));
        (memory, held)
    }

    /// Parameters of the weights, gradients and optimizer states in a breakdown returned by [`PeakStages::under`].
    #[must_use]
    pub fn model_states(&self, of: &MemoryBreakdown) -> Option<ModelStates> {
        let held = |m: &MemoryBreakdown| [m.weights, m.gradients, m.optimizer, m.logits];
        let end = self.other_stages().chain([&self.first]).find(|end| held(&end.rest) == held(of))?;
        Some(ModelStates::on(self.i, &end.stage))
    }

    fn larger(&self, a: MemoryBreakdown, b: MemoryBreakdown) -> MemoryBreakdown {
        if b.upper(self.c) > a.upper(self.c) { b } else { a }
    }

    fn other_stages(&self) -> impl Iterator<Item = &StageMemory> {
        self.middle.iter().chain(&self.last)
    }

    fn activation_load(&self, plan: &Plan) -> ActivationLoad {
        let i = self.i;
        if let Some(network) = &i.arch.convolutions {
            return ActivationLoad { images: convolutional_activations(i, network), ..ActivationLoad::default() };
        }
        let (whole, kept) = (self.levels.whole(), self.levels.under(plan));
        let images = i.images.map_or(0.0, |images| {
            i.micro * (images.kept + plan.full_share * (images.kept_input_bytes - images.kept)) / i.tp.max(Count::ONE)
        });
        let mut load =
            ActivationLoad { layer: kept.layer(i), layers: Some(*plan), images, ..ActivationLoad::default() };
        // The first layers of a stage are recomputed last, when the activations of the later ones are freed. The logits
        // are freed by then as well, but a caching allocator that groups blocks by size can rarely reuse their memory.
        let again = |of: f64, share: f64, without: Plan, with: Plan| {
            let freed = self.levels.under(&without).layer(i) - self.levels.under(&with).layer(i);
            RecomputeMemory {
                recomputed_bytes: of * self.tokens(),
                freed: (1.0 - share) * freed.max(0.0) * self.tokens(),
            }
        };
        if plan.mlp_share > 0.0 && plan.full_share < 1.0 {
            let of = if i.arch.moe_layers() > 0.0 { whole.mixture } else { whole.mlp };
            let at = |mlp_share| Plan { mlp_share, full_share: 0.0, ..*plan };
            load.mlp = again(of, plan.mlp_share, at(0.0), at(1.0));
        }
        if plan.full_share > 0.0 {
            let at = |full_share| Plan { full_share, ..*plan };
            load.full = again(whole.layer(i), plan.full_share, at(0.0), Plan::FULL);
        }
        load
    }

    /// Tokens of a micro-batch on one accelerator.
    fn tokens(&self) -> f64 {
        self.i.micro * self.i.seq / self.i.cp
    }

    /// Bytes of activations kept on `end`.
    fn activations(&self, end: &StageMemory, load: &ActivationLoad) -> f64 {
        let one = |stage: &Stage| {
            let encoded = if stage.is_first() { load.images } else { 0.0 };
            let layers = load.layers.as_ref().map(|plan| {
                let kept = self.levels.of_stage(stage.bf16_share, plan);
                stage.kept_bytes(self.i, &kept)
            });
            layers.map_or(load.images, |layers| layers + encoded)
        };
        let opposite = end.opposite.as_ref().map_or(0.0, |(stage, in_flight)| in_flight * one(stage));
        (end.in_flight * one(&end.stage) + opposite) * device_share(self.i.offload.activations)
    }

    /// Memory of `end`.
    fn stage_memory(&self, end: &StageMemory, load: &ActivationLoad) -> MemoryBreakdown {
        self.with_fragmentation(end, self.activations(end, load), load.recompute_bytes(end.layers))
    }

    fn with_fragmentation(&self, end: &StageMemory, activations: f64, recomputed: f64) -> MemoryBreakdown {
        if end.head > recomputed {
            self.in_head(end, activations)
        } else {
            self.in_layers(end, activations, recomputed)
        }
    }

    /// Memory of `end` while layers run, of which `recomputed` bytes are recomputed.
    fn in_layers(&self, end: &StageMemory, activations: f64, recomputed: f64) -> MemoryBreakdown {
        let parts = MemoryBreakdown { activations, recomputed, ..end.rest };
        MemoryBreakdown { fragmentation: self.c.fragmentation * parts.transient(), ..parts }
    }

    /// Memory of `end` while the output layer runs.
    fn in_head(&self, end: &StageMemory, activations: f64) -> MemoryBreakdown {
        let parts = self.in_layers(end, activations, 0.0);
        let parts = MemoryBreakdown { buffers: parts.buffers + end.head, ..parts };
        MemoryBreakdown { fragmentation: self.c.fragmentation * parts.transient(), ..parts }
    }
}

/// Kept and recomputed activations under a plan.
#[derive(Debug, Clone, Copy, Default)]
struct ActivationLoad {
    /// The plan of the layers; `None` for convolutional networks.
    layers: Option<Plan>,
    /// Bytes per token kept by the largest layer.
    layer: f64,
    /// Bytes of images per micro-batch: all activations of a convolutional network, or the additional activations of
    /// the first stage.
    images: f64,
    /// Memory while an MLP is recomputed.
    mlp: RecomputeMemory,
    /// Memory while a layer is recomputed.
    full: RecomputeMemory,
}

impl ActivationLoad {
    /// Bytes needed to recompute in a chunk of `layers` layers.
    fn recompute_bytes(&self, layers: f64) -> f64 {
        [&self.mlp, &self.full].into_iter().fold(0.0, |most: f64, of| most.max(of.recomputed_bytes - layers * of.freed))
    }
}

/// Bytes per micro-batch while part of the layers is recomputed.
#[derive(Debug, Clone, Copy, Default)]
struct RecomputeMemory {
    /// Bytes of the recomputed activations.
    recomputed_bytes: f64,
    /// Mean bytes freed before by each layer of the chunk.
    freed: f64,
}
