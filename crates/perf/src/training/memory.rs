//! Memory that one accelerator needs for training: weights, gradients, optimizer states, activations, buffers.
//!
//! Activations follow Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models"
//! (arXiv 2205.05198), section 4, generalized from its 4h MLP with multi-head attention to any width.

mod ends;
mod kept;
mod stage;

pub use ends::PeakStages;
pub use stage::{ModelStates, Sharded, gathered_head, gathered_layer, keeps_gathered_weights};

use crate::constants::Constants;
use crate::convolution::Residual;
use crate::parts::MemoryPart;
use crate::training::adapters::Adapters;
use crate::training::input::{Plan, TrainingInput};
use atlas_core::plan::Recompute;
use kept::LayerLevels;
use stage::Stage;

/// Bytes on the accelerator that holds most, by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MemoryBreakdown {
    /// Weights in the format of the GEMMs.
    pub weights: f64,
    /// Gradients in the format in which they are stored.
    pub gradients: f64,
    /// Optimizer states and master weights.
    pub optimizer: f64,
    /// Activations kept for the backward pass.
    pub activations: f64,
    /// Activations of the layer that is being recomputed.
    pub recomputed: f64,
    /// Logits and their gradient on the last stage.
    pub logits: f64,
    /// Collective buffers, gathered layers, library workspaces.
    pub buffers: f64,
    /// Memory that the allocator reserves beyond its allocations, in blocks that do not fit new requests.
    pub fragmentation: f64,
    /// Driver context and framework reserve.
    pub reserve: f64,
}

impl MemoryBreakdown {
    /// Sum of all parts: the memory in use as reported by the driver's tools (`nvidia-smi`), which is the allocator's
    /// reservation and the context.
    pub fn total(&self) -> f64 {
        self.values().iter().sum()
    }

    /// The parts in order of declaration.
    pub const PARTS: [MemoryPart; 9] = [
        MemoryPart::Weights,
        MemoryPart::Gradients,
        MemoryPart::Optimizer,
        MemoryPart::Activations,
        MemoryPart::RecomputedLayer,
        MemoryPart::Logits,
        MemoryPart::Buffers,
        MemoryPart::Fragmentation,
        MemoryPart::Reserve,
    ];

    /// Bytes in order of declaration.
    pub fn values(&self) -> [f64; 9] {
        [
            self.weights,
            self.gradients,
            self.optimizer,
            self.activations,
            self.recomputed,
            self.logits,
            self.buffers,
            self.fragmentation,
            self.reserve,
        ]
    }

    /// Bytes that the framework reports as allocated (`max_memory_allocated`).
    pub fn allocated(&self) -> f64 {
        self.total() - self.reserve - self.fragmentation
    }

    /// Bytes that the framework's allocator reserves (`max_memory_reserved`).
    pub fn reserved(&self) -> f64 {
        self.total() - self.reserve
    }

    /// Upper bound: three times the usual fragmentation of transient memory.
    pub fn upper(&self, c: &Constants) -> f64 {
        self.total() + 2.0 * c.fragmentation * self.transient()
    }

    /// Memory that is allocated and freed within a step.
    fn transient(&self) -> f64 {
        self.activations + self.recomputed + self.logits + self.buffers
    }
}

/// Bytes of host memory that the offloaded states of one accelerator take, mean over the pipeline stages: what leaves the
/// device, and the 16-bit gradients that the host's optimizer receives (arXiv 2101.06840, section 4).
#[must_use]
pub fn host_bytes(i: &TrainingInput) -> f64 {
    if i.offload.optimizer <= 0.0 && i.offload.weights <= 0.0 {
        return 0.0;
    }
    let states = ModelStates::of(i, &LocalParams::of(i));
    let (o, parts) = (&i.offload, [states.dense, states.experts]);
    let sum = |part: fn(&Sharded, &TrainingInput) -> f64| parts.iter().map(|states| part(states, i)).sum::<f64>();
    let received = |states: &Sharded, _: &TrainingInput| 2.0 * states.trained / states.shards[2];
    let weights = sum(|states, i| states.bytes(i)[0] + states.bytes(i)[1]);
    let weights = o.weights.clamp(0.0, 1.0) * weights + (o.optimizer - o.weights).clamp(0.0, 1.0) * sum(received);
    weights + o.optimizer.clamp(0.0, 1.0) * sum(|states, i| states.bytes(i)[2])
}

/// Number of weights on one accelerator before any sharding over data-parallel ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalParams {
    /// Weights that are replicated over the data-parallel ranks.
    pub dense: f64,
    /// Weights of routed experts, which are replicated over fewer ranks.
    pub experts: f64,
    /// Embedding or output layer on the first or last stage (counted once, since they are on different stages).
    pub embedding: f64,
}

impl LocalParams {
    /// Mean over the pipeline stages.
    pub fn of(i: &TrainingInput) -> Self {
        let a = &i.arch;
        let experts = a.moe_layers() * a.expert_params() / (i.pp * i.ep * i.etp).max(1.0);
        let images = i.images.map_or(0.0, |images| images.trained_params());
        let dense =
            (a.convolutions.map_or_else(|| a.dense_params(), |network| network.params()) + images) / (i.pp * i.tp);
        LocalParams { dense, experts, embedding: embedding(i) }
    }

    /// Number of trained parameters. Adapters are part of layers only, so that embeddings have none.
    #[must_use]
    pub fn trained(&self, i: &TrainingInput) -> LocalParams {
        LocalParams {
            dense: self.dense * i.trained,
            experts: self.experts * i.trained_experts,
            embedding: if i.adapters == Adapters::None { self.embedding * i.trained } else { 0.0 },
        }
    }

    /// Sum of all weights.
    pub fn total(&self) -> f64 {
        self.dense + self.experts + self.embedding
    }
}

/// Weights of the embedding or output layer at one end of the pipeline; of both if there is one stage and they are not
/// tied.
fn embedding(i: &TrainingInput) -> f64 {
    let copies = if i.pp > 1.0 || i.arch.tied { 1.0 } else { 2.0 };
    copies * i.arch.vocab * i.arch.hidden / i.tp
}

/// Bytes of activations that the layers of one micro-batch keep on one accelerator under `plan`.
pub fn kept(i: &TrainingInput, plan: Plan) -> f64 {
    let stage = Stage::of(i, 0.0);
    match &i.arch.convolutions {
        Some(network) => convolutional_activations(i, network),
        None => stage.kept_bytes(i, &LayerLevels::of(i).of_stage(stage.bf16_share, &plan)),
    }
}

/// Bytes of activations kept by a convolutional network. Per pixel and channel: the convolution's output, which the
/// batch norm needs, and the activation function's, which the next convolution needs.
fn convolutional_activations(i: &TrainingInput, network: &Residual) -> f64 {
    2.0 * i.element_bytes() * network.outputs() * i.micro
}

/// Memory of the accelerator that holds most under `recompute`. The first stage holds most micro-batches, the last one
/// the logits and, in models with leading dense layers, most experts; the stages between may have more layers.
pub fn training_memory(i: &TrainingInput, c: &Constants, recompute: Recompute) -> MemoryBreakdown {
    PeakStages::of(i, c).under(&Plan::of(recompute))
}

/// Bytes of the logits of one micro-batch: bf16, with the fp32 softmax and its gradient.
#[must_use]
pub fn logits(i: &TrainingInput) -> f64 {
    let positions = i.micro * i.target() / i.cp * i.arch.head_share(i.seq);
    8.0 * positions * i.arch.head_width() / i.tp
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Architecture;
    use crate::training::Sharding;
    use crate::training::tests::llama_70b;
    use atlas_core::count::Count;

    /// B200, bf16, sequences of 4096, one per micro-batch, distributed optimizer, no recomputation: the setting of
    /// SimuMax 1.2's measurements (docs/b200, release v1.2, `alloc GiB real`).
    fn simumax(arch: Architecture, tp: f64, pp: f64, ep: f64, cp: f64, seq: f64) -> f64 {
        let dp = 8.0 / (tp * pp * cp);
        let i = TrainingInput {
            arch,
            tp: Count::floor(tp),
            pp: Count::floor(pp),
            ep: Count::floor(ep),
            cp: Count::floor(cp),
            dp: Count::floor(dp),
            seq,
            global: 8.0 * dp,
            sequence_parallel: tp > 1.0,
            recompute: Recompute::None,
            ..TrainingInput::default()
        };
        training_memory(&i, &Constants::default(), Recompute::None).allocated() / 1024f64.powi(3)
    }

    #[test]
    fn measured_allocations_are_met_within_five_percent() {
        let deepseek_v3 =
            Architecture { layers: Count::new(4), dense_layers: Count::ONE, ..Architecture::deepseek_v3() };
        let l = Architecture { layers: Count::new(12), ..llama_70b() };
        for (predicted, measured) in [
            (simumax(l, 1.0, 2.0, 1.0, 1.0, 4096.0), 66.55),
            (simumax(l, 2.0, 1.0, 1.0, 1.0, 4096.0), 60.68),
            (simumax(l, 4.0, 1.0, 1.0, 1.0, 4096.0), 39.07),
            (simumax(l, 8.0, 1.0, 1.0, 1.0, 4096.0), 28.29),
            (simumax(deepseek_v3, 1.0, 1.0, 8.0, 1.0, 4096.0), 104.30),
            (simumax(l, 2.0, 1.0, 1.0, 4.0, 32768.0), 68.43),
            (simumax(l, 1.0, 1.0, 1.0, 8.0, 131072.0), 147.99),
        ] {
            let miss = predicted / measured - 1.0;
            assert!(miss.abs() < 0.05, "{predicted} GiB against {measured} GiB");
        }
    }

    #[test]
    fn recomputing_more_never_needs_more_memory() {
        let c = Constants::default();
        let i = TrainingInput { arch: llama_70b(), tp: Count::new(8), pp: Count::new(4), ..TrainingInput::default() };
        let at = |r| training_memory(&i, &c, r).total();
        assert!(at(Recompute::Full) < at(Recompute::Selective));
        assert!(at(Recompute::Selective) <= at(Recompute::None));
    }

    #[test]
    fn sharding_more_never_needs_more_memory() {
        let c = Constants::default();
        let mut last = f64::INFINITY;
        for sharding in [Sharding::None, Sharding::Zero1, Sharding::Zero2, Sharding::Zero3] {
            let i = TrainingInput { arch: llama_70b(), sharding, ..TrainingInput::default() };
            let total = training_memory(&i, &c, Recompute::Full).total();
            assert!(total <= last * 1.001);
            last = total;
        }
    }

    #[test]
    fn fully_sharded_output_layer_is_gathered_while_the_logits_exist() {
        let c = Constants::default();
        let at = |vocab, sharding, recompute, trained| {
            let arch = Architecture { vocab: Count::new(vocab), ..llama_70b() };
            let i = TrainingInput { arch, sharding, trained, dp: Count::new(64), ..TrainingInput::default() };
            (training_memory(&i, &c, recompute), 2.0 * arch.hidden * f64::from(vocab), gathered_layer(&i))
        };
        // Weights in 16 bit and their gradient, and one layer instead of two.
        let (m, head, layer) = at(256_000, Sharding::Zero3, Recompute::None, 1.0);
        assert!((m.buffers - c.workspace - 2.0 * head - layer).abs() < 1.0, "{m:?}");
        // Frozen weights have no gradient.
        let (m, head, layer) = at(256_000, Sharding::Zero3, Recompute::None, 0.0);
        assert!((m.buffers - c.workspace - head - layer).abs() < 1.0, "{m:?}");
        // Recomputation of layers begins after the pass of the output layer.
        let (m, ..) = at(256_000, Sharding::Zero3, Recompute::Full, 1.0);
        assert_eq!(m.recomputed, 0.0);
        let (m, _, layer) = at(8_000, Sharding::Zero3, Recompute::Full, 1.0);
        assert!(m.recomputed > 0.0 && (m.buffers - c.workspace - 2.0 * layer).abs() < 1.0, "{m:?}");
        let (m, ..) = at(256_000, Sharding::Zero1, Recompute::None, 1.0);
        assert_eq!(m.buffers, c.workspace);
    }

    #[test]
    fn frozen_matrices_keep_no_inputs() {
        let base = TrainingInput { arch: llama_70b(), ..TrainingInput::default() };
        let a = base.arch;
        let bytes = |trained, adapters| kept(&TrainingInput { trained, adapters, ..base }, Plan::NONE);
        let per_token = |frozen: f64| (bytes(1.0, Adapters::None) - frozen) / (base.micro * base.seq * a.depth());
        assert_eq!(bytes(0.01, Adapters::All), bytes(1.0, Adapters::None));
        // The normalized input of the MLP and the output of its activation function, in 16 bit.
        let mlp = 2.0 * a.hidden + 2.0 * a.ffn;
        assert!((per_token(bytes(0.01, Adapters::Attention)) - mlp).abs() < 1e-6);
        // Also the normalized input of attention. Its output is needed by its own backward pass.
        assert!((per_token(bytes(0.01, Adapters::None)) - mlp - 2.0 * a.hidden).abs() < 1e-6);
        let mixture = TrainingInput { arch: Architecture::deepseek_v3(), adapters: Adapters::Attention, ..base };
        let all = TrainingInput { adapters: Adapters::All, ..mixture };
        let a = mixture.arch;
        let copies = f64::from(a.top_k);
        let each = 2.0 * a.hidden + 2.0 * copies * (a.expert_width() + a.moe_ffn) + 2.0 * a.shared_ffn;
        let saved = a.moe_layers() * each + (a.depth() - a.moe_layers()) * (2.0 * a.hidden + 2.0 * a.ffn);
        let found = kept(&all, Plan::NONE) - kept(&mixture, Plan::NONE);
        assert!((found / (saved * base.micro * base.seq) - 1.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn memory_upper_bound_is_at_least_the_estimate() {
        let c = Constants::default();
        let m = training_memory(&TrainingInput::default(), &c, Recompute::None);
        assert!(m.upper(&c) >= m.total());
        assert!(m.values().iter().all(|bytes| *bytes >= 0.0));
    }
}
