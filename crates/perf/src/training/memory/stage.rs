//! One pipeline stage: its layers, and the memory that does not depend on recomputation.

use super::kept::KeptActivations;
use super::{LocalParams, MemoryBreakdown, embedding, logits};
use crate::arch::Architecture;
use crate::constants::Constants;
use crate::training::adapters::Adapters;
use crate::training::input::TrainingInput;
use crate::training::stages::{bf16_stage_layers, stage_layers};
use atlas_core::count::Count;
use atlas_core::plan::{PipelineSchedule as Schedule, Sharding};

/// Position of a pipeline stage, as far as it affects memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StagePosition {
    /// The first stage, or the only one.
    First,
    /// A stage between the first and the last.
    Middle,
    Last,
}

/// The layers of one pipeline stage. Leading dense layers are on the first stages.
pub(super) struct Stage {
    place: StagePosition,
    /// Share of the model's layers.
    pub(super) share: f64,
    /// Share of the layers of the stage that are computed in 16 bit; see [`TrainingInput::bf16_layers`].
    pub(super) bf16_share: f64,
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
            StagePosition::First
        } else if number >= i.pp - 1.0 {
            StagePosition::Last
        } else {
            StagePosition::Middle
        };
        let own = stage_layers(i, number);
        let share = own / a.depth().max(1.0);
        // Multi-token-prediction layers are of the same kind as the last layer.
        let further = if number >= i.pp - 1.0 { i.mtp_layers } else { Count::ZERO };
        let bf16_share = bf16_stage_layers(i, number) / (own + further).max(1e-9);
        let (attention, linear, layers) =
            (a.attention_layers() * share + further, a.linear_layers() * share, a.mlp_layers() * share);
        if !a.is_moe() {
            return Stage { place, share, bf16_share, number, attention, linear, dense: layers + further, moe: 0.0 };
        }
        let before = match place {
            StagePosition::First => 0.0,
            StagePosition::Middle => a.mlp_layers() * number / i.pp,
            StagePosition::Last => a.mlp_layers() - layers,
        };
        let leading = (a.dense_layers - before).clamp(0.0, layers);
        let moe = (layers - leading) / a.moe_step.max(Count::ONE);
        Stage { place, share, bf16_share, number, attention, linear, dense: layers - moe, moe: moe + further }
    }

    /// Whether it is the first stage, or the only one.
    pub(super) fn is_first(&self) -> bool {
        self.place == StagePosition::First
    }

    /// Whether the device of the stage computes logits.
    pub(super) fn has_logits(&self, i: &TrainingInput) -> bool {
        let last = self.place == StagePosition::Last;
        i.pp <= 1.0 || last || (i.copies() > 1.0 && self.place == StagePosition::First)
    }

    /// Number of weights of the stage; in a bidirectional pipeline, also of the opposite direction's stage on the same
    /// device.
    fn resident_params(&self, i: &TrainingInput) -> LocalParams {
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

    /// Number of weights: layers, and the embedding or output layer of the first or last stage.
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
        // The projections that join the embedding of a predicted token with the output of the previous layer.
        let joins = if self.number >= i.pp - 1.0 { i.mtp_layers * 2.0 * a.hidden * a.hidden } else { 0.0 };
        let dense = dense + joins;
        // Multi-token prediction looks up embeddings of the predicted tokens. Unless the first stage is on the same
        // device, the last one has a copy of the embedding besides the output layer (Megatron-Core, `GPTModel`).
        let copied = self.place == StagePosition::Last && i.mtp_layers > 0.0 && i.copies() <= 1.0 && !a.tied;
        let embedding = match self.place {
            StagePosition::Middle => 0.0,
            StagePosition::Last if copied => 2.0 * embedding(i),
            StagePosition::First | StagePosition::Last => embedding(i),
        };
        // The image encoder is part of the first stage.
        let images = i.images.filter(|_| self.number <= 0.0).map_or(0.0, |images| images.trained_params());
        LocalParams {
            dense: (dense + images) / i.tp,
            experts: self.moe * a.expert_params() / (i.ep * i.etp).max(1.0),
            embedding,
        }
    }

    /// Bytes of one micro-batch's layers that keep `kept` bytes per token.
    pub(super) fn kept_bytes(&self, i: &TrainingInput, kept: &KeptActivations) -> f64 {
        let a = &i.arch;
        let tokens = i.micro * i.target() / i.cp;
        let own = self.attention * kept.attention
            + self.linear * kept.linear
            + self.dense * kept.mlp
            + self.moe * kept.mixture;
        if a.encoder_layers <= 0.0 {
            return tokens * own;
        }
        // Cross attention keeps the same as attention. The encoder's layers are added.
        let layers = a.encoder_layers * self.share;
        let inputs = i.micro * i.seq / i.cp;
        tokens * (own + self.attention * kept.attention) + inputs * layers * (kept.attention + kept.mlp)
    }
}

/// Whether fully sharded weights are gathered once per step and kept until its end, in the format of the GEMMs (FSDP2,
/// `MixedPrecisionPolicy.param_dtype`).
#[must_use]
pub fn keeps_gathered_weights(i: &TrainingInput) -> bool {
    let once = i.sharding == Sharding::Zero3 && i.persistent_sharding() != Sharding::Zero3;
    once && i.packed_bytes.is_none() && i.adapters == Adapters::None
}

/// Number of parameters on one accelerator, and the ranks over which their states are sharded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharded {
    /// Number of parameters before sharding.
    pub params: f64,
    /// Number of those that may be stored in fewer bytes than in the format of the GEMMs.
    pub packed: f64,
    /// Number of trained parameters: some or all of the above, or adapters that are added to them.
    pub trained: f64,
    /// Number of ranks over which weights, gradients and optimizer states are sharded.
    pub shards: [f64; 3],
}

impl Sharded {
    /// Creates the sharding of `params` parameters, replicated over `ranks`, of which `packed` may be packed, and of
    /// `trained` ones.
    fn of(i: &TrainingInput, [params, packed, trained]: [f64; 3], ranks: f64) -> Sharded {
        let ranks = ranks.max(1.0);
        let shard = i.shard_ranks(ranks);
        let held = i.persistent_sharding();
        let over = |sharded: bool| if sharded { shard } else { 1.0 };
        let shards = [
            over(held == Sharding::Zero3),
            over(matches!(held, Sharding::Zero2 | Sharding::Zero3) && !i.software.deferred_reduction),
            over(i.sharding != Sharding::None),
        ];
        Sharded { params, packed, trained, shards }
    }

    /// Bytes of the weights before sharding, including adapters.
    #[must_use]
    pub fn weight_bytes(&self, i: &TrainingInput) -> f64 {
        let adapters = if i.adapters == Adapters::None { 0.0 } else { self.trained * i.weight_bytes };
        let weights = match i.packed_bytes {
            // Embedding and output layer are stored in the format of the GEMMs.
            Some(bytes) => self.packed * bytes + (self.params - self.packed) * i.weight_bytes,
            None => self.params * i.weight_bytes,
        };
        weights + adapters
    }

    /// Bytes of weights, gradients and optimizer states.
    pub(super) fn bytes(&self, i: &TrainingInput) -> [f64; 3] {
        let [weights, gradients, optimizer] = self.shards;
        let trained = self.trained;
        let weights = if keeps_gathered_weights(i) {
            // Shards in the format in which they are updated, and all weights in that of the GEMMs.
            self.params * i.element_bytes() + self.weight_bytes(i) / optimizer
        } else {
            self.weight_bytes(i) / weights
        };
        [weights, trained * i.held_gradient_bytes() / gradients, trained * i.optimizer_bytes / optimizer]
    }
}

/// Parameters of the weights, gradients and optimizer states of a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelStates {
    /// All parameters except routed experts.
    pub dense: Sharded,
    /// Routed experts.
    pub experts: Sharded,
}

impl ModelStates {
    pub(super) fn of(i: &TrainingInput, local: &LocalParams) -> ModelStates {
        let trained = local.trained(i);
        let dense = [local.dense + local.embedding, local.dense, trained.dense + trained.embedding];
        let experts = [local.experts, local.experts, trained.experts];
        ModelStates {
            dense: Sharded::of(i, dense, i.copies() * i.dp * i.cp),
            experts: Sharded::of(i, experts, i.copies() * i.dp * i.cp * i.tp / (i.ep * i.etp).max(1.0)),
        }
    }

    /// Model states of `stage`.
    pub(super) fn on(i: &TrainingInput, stage: &Stage) -> ModelStates {
        ModelStates::of(i, &stage.resident_params(i))
    }
}

/// Share that remains on the device if `share` is offloaded to the host.
pub(super) fn device_share(share: f64) -> f64 {
    1.0 - share.clamp(0.0, 1.0)
}

/// Bytes of a gathered mean layer under full sharding, else 0.
#[must_use]
pub fn gathered_layer(i: &TrainingInput) -> f64 {
    let a = &i.arch;
    if i.persistent_sharding() != Sharding::Zero3 {
        return 0.0;
    }
    let layer = a.layer_params() / (a.depth() * i.tp * i.ep.max(Count::ONE));
    layer * i.gathered_bytes()
}

/// Bytes of the gathered output layer and, if it is trained, of its gradient before the reduction, under full sharding,
/// else 0. Both exist while the logits do.
#[must_use]
pub fn gathered_head(i: &TrainingInput) -> f64 {
    if i.persistent_sharding() != Sharding::Zero3 || i.arch.convolutions.is_some() {
        return 0.0;
    }
    let trained = if i.adapters == Adapters::None { i.trained } else { 0.0 };
    i.arch.hidden * i.arch.head_width() / i.tp * i.element_bytes() * (1.0 + trained)
}

/// Memory of a stage other than activations, given the bytes of a [`gathered_layer`].
pub(super) fn non_activation_memory(
    i: &TrainingInput,
    c: &Constants,
    stage: &Stage,
    gathered_layer: f64,
) -> MemoryBreakdown {
    let a: &Architecture = &i.arch;
    let local = stage.resident_params(i);
    let states = ModelStates::of(i, &local);
    let (dense, expert) = (states.dense.bytes(i), states.experts.bytes(i));
    let with_logits = stage.has_logits(i);
    // If all forward passes run first, the logits of every micro-batch are kept until the backward pass.
    let waiting = if i.pp > 1.0 && i.schedule == Schedule::AllForward { i.micro_batches() } else { 1.0 };
    let logits = if with_logits { waiting * logits(i) * (1.0 + i.mtp_layers) } else { 0.0 };
    let gathered = 2.0 * gathered_layer;
    // The matrix that is being multiplied: the largest one of a layer.
    let unpacked = if i.packed_bytes.is_some() { a.hidden * a.ffn / i.tp * i.weight_bytes } else { 0.0 };
    let buckets = i.bucket_bytes.min(4.0 * (local.total()));
    let frozen = i.images.filter(|images| !images.trained && stage.number <= 0.0);
    let frozen = frozen.map_or(0.0, |images| images.params / i.tp * i.weight_bytes / states.dense.shards[0]);
    MemoryBreakdown {
        weights: (dense[0] + expert[0]) * device_share(i.offload.weights) + frozen,
        gradients: (dense[1] + expert[1]) * device_share(i.offload.weights),
        optimizer: (dense[2] + expert[2]) * device_share(i.offload.optimizer),
        activations: 0.0,
        recomputed: 0.0,
        logits,
        buffers: gathered + unpacked + buckets + c.workspace,
        fragmentation: 0.0,
        reserve: c.reserve,
    }
}
