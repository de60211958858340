//! Memory of the pipeline stages that may hold most, under any recomputation plan.

use super::kept::{Kept, Levels};
use super::stage::{ModelStates, Stage, here, rest};
use super::{MemoryBreakdown, convolutional_activations};
use crate::constants::Constants;
use crate::training::input::{Plan, TrainingInput};
use crate::training::pipeline::{in_flight, most_in_flight};
use crate::training::stages::{longest_middle, stage_layers};
use atlas_core::count::Count;

/// The pipeline stages that may hold most, with the part of their memory that does not depend on recomputation, so that
/// several plans can be evaluated.
pub struct Ends<'a> {
    i: &'a TrainingInput,
    c: &'a Constants,
    levels: Levels<'a>,
    first: End,
    /// The first of the longest stages between the ends, if it is longer than the first stage.
    middle: Option<End>,
    /// `None` for a pipeline of one stage.
    last: Option<End>,
}

struct End {
    stage: Stage,
    /// Number of micro-batches in flight.
    held: f64,
    /// Layers per chunk.
    layers: f64,
    /// Memory other than activations.
    rest: MemoryBreakdown,
}

impl<'a> Ends<'a> {
    /// Computes the plan-independent memory of the stages that may hold most.
    pub fn of(i: &'a TrainingInput, c: &'a Constants) -> Self {
        let end = |number: f64| {
            let stage = Stage::of(i, number);
            let held = in_flight(i, number);
            let layers = i.arch.depth() * stage.share / i.vpp.max(Count::ONE);
            End { rest: rest(i, c, &stage), held, layers, stage }
        };
        let first = end(0.0);
        let longer = |number: &f64| stage_layers(i, *number) > i.arch.depth() * first.stage.share + 1e-9;
        let middle = longest_middle(i).filter(longer).map(end);
        Ends { i, c, levels: Levels::of(i), middle, last: (i.pp > 1.0).then(|| end(i.pp - 1.0)), first }
    }

    /// Memory of the accelerator that holds most under `plan`.
    pub fn under(&self, plan: &Plan) -> MemoryBreakdown {
        let load = self.load(plan);
        self.others().map(|end| self.held(end, &load)).fold(self.held(&self.first, &load), |a, b| self.fuller(a, b))
    }

    /// Smallest share of the way from plan `from` to plan `to`, which recomputes more in one respect, at which the
    /// upper bound on memory is `room`; 0 if `from` fits, 1 if neither does.
    pub fn share(&self, from: &Plan, to: &Plan, room: f64) -> f64 {
        let before = self.load(from);
        if self.others().chain([&self.first]).all(|end| self.held(end, &before).upper(self.c) <= room) {
            return 0.0;
        }
        let after = self.load(to);
        let least = |end: &End| {
            let [kept, all] = [&before, &after].map(|load| self.activations(end, load));
            let (own, peak) = (before.again(0.0), after.again(0.0));
            // Two bounds, both linear in the share: the kept activations, and the memory while the last layer is
            // recomputed.
            let gone = end.layers * (before.layer - after.layer).max(0.0) * self.tokens();
            let of = |now: f64, then: f64| {
                if now <= room { 0.0 } else { ((now - room) / (now - then).max(1.0)).clamp(0.0, 1.0) }
            };
            let upper = |activations, again| self.sum(end, activations, again).upper(self.c);
            let [now, then] = [upper(kept, peak - gone), upper(all, peak)];
            let share = of(upper(kept, own), upper(all, own)).max(of(now, then));
            // Recomputation may need more memory than it frees.
            if now + share * (then - now) > room + 1.0 { 1.0 } else { share }
        };
        self.others().map(least).fold(least(&self.first), f64::max)
    }

    /// As [`Ends::under`], with the number of micro-batches in flight, if the schedule uses the remaining memory for
    /// more of them ([`most_in_flight`]).
    pub(crate) fn filled(&self, plan: &Plan) -> (MemoryBreakdown, f64) {
        let i = self.i;
        let memory = self.under(plan);
        let (least, most) = (self.first.held, most_in_flight(i));
        if most <= least {
            return (memory, least);
        }
        let load = self.load(plan);
        let spare = |end: &End| {
            let held = self.held(end, &load);
            let one = self.activations(end, &load) / end.held * (1.0 + 3.0 * self.c.fragmentation);
            (i.accelerator.capacity() - held.upper(self.c)) / one.max(1.0)
        };
        let spare = self.others().map(spare).fold(spare(&self.first), f64::min);
        let held = (least + spare).floor().clamp(least, most);
        // All stages use the same memory.
        let more = |end: &End| {
            let activations = self.activations(end, &load) / end.held * held;
            self.sum(end, activations, load.again(end.layers))
        };
        let memory = self.others().map(more).fold(more(&self.first), |a, b| self.fuller(a, b));
        (memory, held)
    }

    /// Parameters of the weights, gradients and optimizer states in a breakdown returned by [`Ends::under`].
    #[must_use]
    pub fn states(&self, of: &MemoryBreakdown) -> Option<ModelStates> {
        let held = |m: &MemoryBreakdown| [m.weights, m.gradients, m.optimizer, m.logits];
        let end = self.others().chain([&self.first]).find(|end| held(&end.rest) == held(of))?;
        Some(ModelStates::on(self.i, &end.stage))
    }

    fn fuller(&self, a: MemoryBreakdown, b: MemoryBreakdown) -> MemoryBreakdown {
        if b.upper(self.c) > a.upper(self.c) { b } else { a }
    }

    fn others(&self) -> impl Iterator<Item = &End> {
        self.middle.iter().chain(&self.last)
    }

    fn load(&self, plan: &Plan) -> Load {
        let i = self.i;
        if let Some(network) = &i.arch.convolutions {
            return Load { images: convolutional_activations(i, network), ..Load::default() };
        }
        let kept = self.levels.under(plan);
        let images = i.images.map_or(0.0, |images| {
            i.micro * (images.kept + plan.full_share * (images.kept_inputs - images.kept)) / i.tp.max(Count::ONE)
        });
        let mut load = Load { layer: kept.layer(i), kept: Some(kept), images, ..Load::default() };
        // The first layers of a stage are recomputed last, when the activations of the later ones are freed. The logits
        // are freed by then as well, but a caching allocator that groups blocks by size can rarely reuse their memory.
        let again = |of: f64, share: f64, without: Plan, with: Plan| {
            let freed = self.levels.under(&without).layer(i) - self.levels.under(&with).layer(i);
            RecomputeMemory { held: of * self.tokens(), freed: (1.0 - share) * freed.max(0.0) * self.tokens() }
        };
        if plan.mlp_share > 0.0 && plan.full_share < 1.0 {
            let of = if i.arch.moe_layers() > 0.0 { self.levels.whole.mixture } else { self.levels.whole.mlp };
            let at = |mlp_share| Plan { mlp_share, full_share: 0.0, ..*plan };
            load.mlp = again(of, plan.mlp_share, at(0.0), at(1.0));
        }
        if plan.full_share > 0.0 {
            let at = |full_share| Plan { full_share, ..*plan };
            load.full = again(self.levels.whole.layer(i), plan.full_share, at(0.0), Plan::FULL);
        }
        load
    }

    /// Tokens of a micro-batch on one accelerator.
    fn tokens(&self) -> f64 {
        self.i.micro * self.i.seq / self.i.cp
    }

    /// Bytes of activations kept on `end`.
    fn activations(&self, end: &End, load: &Load) -> f64 {
        let encoded = if end.stage.is_first() { load.images } else { 0.0 };
        let one = load.kept.as_ref().map_or(load.images, |kept| end.stage.sum(self.i, kept) + encoded);
        end.held * one * here(self.i.offload.activations)
    }

    /// Memory of `end`.
    fn held(&self, end: &End, load: &Load) -> MemoryBreakdown {
        self.sum(end, self.activations(end, load), load.again(end.layers))
    }

    fn sum(&self, end: &End, activations: f64, recomputed: f64) -> MemoryBreakdown {
        let parts = MemoryBreakdown { activations, recomputed, ..end.rest };
        MemoryBreakdown { fragmentation: self.c.fragmentation * parts.transient(), ..parts }
    }
}

/// Kept and recomputed activations under a plan.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    /// Bytes per token; `None` for convolutional networks.
    kept: Option<Kept>,
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

impl Load {
    /// Bytes needed to recompute in a chunk of `layers` layers.
    fn again(&self, layers: f64) -> f64 {
        [&self.mlp, &self.full].into_iter().fold(0.0, |most: f64, of| most.max(of.held - layers * of.freed))
    }
}

/// Bytes per micro-batch while part of the layers is recomputed.
#[derive(Debug, Clone, Copy, Default)]
struct RecomputeMemory {
    /// Bytes of the recomputed activations.
    held: f64,
    /// Mean bytes freed before by each layer of the chunk.
    freed: f64,
}
