//! One pipeline stage: its layers, and what it holds whatever is recomputed.

use super::kept::Kept;
use super::{LocalParams, MemoryBreakdown, embedding, logits};
use crate::arch::Architecture;
use crate::constants::Constants;
use crate::training::input::TrainingInput;
use crate::training::stages::stage_layers;
use atlas_core::count::Count;
use atlas_core::plan::{PipelineSchedule as Schedule, Sharding};

/// Which pipeline stage, as far as its memory differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The first one, or the only one.
    First,
    /// One between the ends.
    Middle,
    Last,
}

/// The layers of one pipeline stage: leading dense ones sit on the first stages.
pub(super) struct Stage {
    place: Place,
    /// Share of the model's layers.
    pub(super) share: f64,
    number: f64,
    attention: f64,
    linear: f64,
    dense: f64,
    moe: f64,
}

impl Stage {
    pub(super) fn of(i: &TrainingInput, number: f64) -> Self {
        let a = &i.arch;
        let place = if number <= 0.0 {
            Place::First
        } else if number >= i.pp - 1.0 {
            Place::Last
        } else {
            Place::Middle
        };
        let share = stage_layers(i, number) / a.depth().max(1.0);
        // Layers that predict further tokens are as the last one.
        let further = if number >= i.pp - 1.0 { i.mtp_layers } else { Count::ZERO };
        let (attention, linear, layers) =
            (a.attention_layers() * share + further, a.linear_layers() * share, a.mlp_layers() * share);
        if !a.is_moe() {
            return Stage { place, share, number, attention, linear, dense: layers + further, moe: 0.0 };
        }
        let before = match place {
            Place::First => 0.0,
            Place::Middle => a.mlp_layers() * number / i.pp,
            Place::Last => a.mlp_layers() - layers,
        };
        let leading = (a.dense_layers - before).clamp(0.0, layers);
        let moe = (layers - leading) / a.moe_step.max(Count::ONE);
        Stage { place, share, number, attention, linear, dense: layers - moe, moe: moe + further }
    }

    /// Whether it is the first one, or the only one.
    pub(super) fn is_first(&self) -> bool {
        self.place == Place::First
    }

    /// Weights of the stage, and of the one of the other way that its device holds where there are two ways.
    fn held(&self, i: &TrainingInput) -> LocalParams {
        let own = self.params(i);
        if i.copies() <= 1.0 {
            return own;
        }
        let other = Stage::of(i, i.pp - 1.0 - self.number).params(i);
        LocalParams {
            dense: own.dense + other.dense,
            experts: own.experts + other.experts,
            embedding: own.embedding + other.embedding,
        }
    }

    /// Weights: layers, and the embedding or the output layer that sits on this end.
    fn params(&self, i: &TrainingInput) -> LocalParams {
        let a = &i.arch;
        if a.convolutions.is_some() || a.encoder_layers > 0.0 {
            return LocalParams::of(i);
        }
        let norms = (self.attention + self.linear + self.dense + self.moe) * a.hidden;
        let dense = self.attention * a.attention_params()
            + self.linear * a.linear_params()
            + self.dense * a.mlp_params(f64::from(a.ffn))
            + self.moe * a.moe_fixed_params()
            + norms;
        // The projections that join a predicted token's embedding to the layer before.
        let joins = if self.number >= i.pp - 1.0 { i.mtp_layers * 2.0 * a.hidden * a.hidden } else { 0.0 };
        let dense = dense + joins;
        // The encoder of images stands before the first stage.
        let images = i.images.filter(|_| self.number <= 0.0).map_or(0.0, |images| images.trained_params());
        LocalParams {
            dense: (dense + images) / i.tp,
            experts: self.moe * a.expert_params() / (i.ep * i.etp).max(1.0),
            embedding: if self.place == Place::Middle { 0.0 } else { embedding(i) },
        }
    }

    /// Bytes of one micro-batch's layers that keep `kept` a token.
    pub(super) fn sum(&self, i: &TrainingInput, kept: &Kept) -> f64 {
        let a = &i.arch;
        let tokens = i.micro * i.target() / i.cp;
        let own = self.attention * kept.attention
            + self.linear * kept.linear
            + self.dense * kept.mlp
            + self.moe * kept.mixture;
        if a.encoder_layers <= 0.0 {
            return tokens * own;
        }
        // Cross attention keeps what attention does, and the encoder's layers what theirs need.
        let layers = a.encoder_layers * self.share;
        let inputs = i.micro * i.seq / i.cp;
        tokens * (own + self.attention * kept.attention) + inputs * layers * (kept.attention + kept.mlp)
    }
}

/// Parameters on one accelerator, and the ranks that their states are sharded over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharded {
    /// Parameters before sharding.
    pub params: f64,
    /// Those of them that may be stored in fewer bytes than they are multiplied in.
    pub packed: f64,
    /// Ranks that weights, gradients and optimizer states are sharded over.
    pub shards: [f64; 3],
}

impl Sharded {
    /// `params` parameters that are replicated over `ranks`, of which `packed` may be packed.
    fn of(i: &TrainingInput, params: f64, packed: f64, ranks: f64) -> Sharded {
        let ranks = ranks.max(1.0);
        let shard = i.shard_ranks(ranks);
        let held = i.held_sharding();
        let over = |sharded: bool| if sharded { shard } else { 1.0 };
        let shards = [
            over(held == Sharding::Zero3),
            over(matches!(held, Sharding::Zero2 | Sharding::Zero3)),
            over(i.sharding != Sharding::None),
        ];
        Sharded { params, packed, shards }
    }

    /// Bytes of the weights before sharding.
    #[must_use]
    pub fn weight_bytes(&self, i: &TrainingInput) -> f64 {
        match i.packed_bytes {
            // Embedding, output layer and adapters stay as they are multiplied.
            Some(bytes) => self.packed * bytes + (self.params * (1.0 + i.trained) - self.packed) * i.weight_bytes,
            None => self.params * i.weight_bytes,
        }
    }

    /// Bytes of weights, gradients and optimizer states.
    fn bytes(&self, i: &TrainingInput) -> [f64; 3] {
        let [weights, gradients, optimizer] = self.shards;
        let trained = self.params * i.trained;
        [self.weight_bytes(i) / weights, trained * i.grad_bytes / gradients, trained * i.optimizer_bytes / optimizer]
    }
}

/// The parameters whose weights, gradients and optimizer states a stage holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelStates {
    /// Everything but routed experts.
    pub dense: Sharded,
    /// Routed experts.
    pub experts: Sharded,
}

impl ModelStates {
    fn of(i: &TrainingInput, local: &LocalParams) -> ModelStates {
        ModelStates {
            dense: Sharded::of(i, local.dense + local.embedding, local.dense, i.copies() * i.dp * i.cp),
            experts: Sharded::of(
                i,
                local.experts,
                local.experts,
                i.copies() * i.dp * i.cp * i.tp / (i.ep * i.etp).max(1.0),
            ),
        }
    }

    /// Those of a stage.
    pub(super) fn on(i: &TrainingInput, stage: &Stage) -> ModelStates {
        ModelStates::of(i, &stage.held(i))
    }
}

/// What of a share on the host stays here.
pub(super) fn here(share: f64) -> f64 {
    1.0 - share.clamp(0.0, 1.0)
}

/// What a stage holds besides activations.
pub(super) fn rest(i: &TrainingInput, c: &Constants, stage: &Stage) -> MemoryBreakdown {
    let a: &Architecture = &i.arch;
    let local = stage.held(i);
    let states = ModelStates::of(i, &local);
    let (dense, expert) = (states.dense.bytes(i), states.experts.bytes(i));
    let ends = stage.place == Place::Last || (i.copies() > 1.0 && stage.place == Place::First);
    let with_logits = i.pp <= 1.0 || ends;
    // Where all forward passes come first, every micro-batch's wait for their backward pass.
    let waiting = if i.pp > 1.0 && i.schedule == Schedule::AllForward { i.micro_batches() } else { 1.0 };
    let logits = if with_logits { waiting * logits(i) * (1.0 + i.mtp_layers) } else { 0.0 };
    let layer = (a.params() - a.embedding_params()) / (a.depth() * i.tp * i.ep.max(Count::ONE));
    let gathered =
        if i.held_sharding() == Sharding::Zero3 { 2.0 * layer * i.packed_bytes.unwrap_or(i.weight_bytes) } else { 0.0 };
    // The matrix that is being multiplied: the largest of a layer.
    let unpacked = if i.packed_bytes.is_some() { a.hidden * a.ffn / i.tp * i.weight_bytes } else { 0.0 };
    let buckets = i.bucket_bytes.min(4.0 * (local.total()));
    let frozen = i.images.filter(|images| !images.trained && stage.number <= 0.0);
    let frozen = frozen.map_or(0.0, |images| images.params / i.tp * i.weight_bytes / states.dense.shards[0]);
    MemoryBreakdown {
        weights: (dense[0] + expert[0]) * here(i.offload.weights) + frozen,
        gradients: (dense[1] + expert[1]) * here(i.offload.weights),
        optimizer: (dense[2] + expert[2]) * here(i.offload.optimizer),
        activations: 0.0,
        recomputed: 0.0,
        logits,
        buffers: gathered + unpacked + buckets + c.workspace,
        fragmentation: 0.0,
        reserve: c.reserve,
    }
}
