//! What one accelerator must hold while training: weights, gradients, optimizer states, activations, buffers.
//!
//! Activations follow Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models"
//! (arXiv 2205.05198), section 4, generalised from its 4h MLP with multi-head attention to any width.

use crate::analytical::accelerator::Precision;
use crate::analytical::arch::Architecture;
use crate::analytical::constants::Constants;
use crate::analytical::convolution::Residual;
use crate::analytical::training::{Plan, Recompute, Sharding, TrainingInput};

/// Bytes on the accelerator that holds most, by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MemoryBreakdown {
    /// Weights as they are multiplied.
    pub weights: f64,
    /// Gradients as they are kept.
    pub gradients: f64,
    /// Optimizer states and master weights.
    pub optimizer: f64,
    /// What the backward pass needs of the forward pass.
    pub activations: f64,
    /// The layer that is being recomputed.
    pub recomputed: f64,
    /// Logits and their gradient on the last stage.
    pub logits: f64,
    /// Collective buffers, gathered layers, workspaces.
    pub buffers: f64,
    /// What the allocator reserves beyond what it hands out: blocks that no longer fit what is asked of them.
    pub fragmentation: f64,
    /// Driver context and framework reserve.
    pub reserve: f64,
}

impl MemoryBreakdown {
    /// The point estimate: what the driver's tools show (`nvidia-smi`): the allocator's reservation and the context.
    pub fn total(&self) -> f64 {
        self.values().iter().sum()
    }

    /// Names of the purposes in order of declaration.
    pub const NAMES: [&'static str; 9] = [
        "weights",
        "gradients",
        "optimizer",
        "activations",
        "recomputed layer",
        "logits",
        "buffers",
        "fragmentation",
        "reserve",
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

    /// Names and bytes in order of declaration.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        Self::NAMES.into_iter().zip(self.values())
    }

    /// What the framework itself counts as allocated (`max_memory_allocated`).
    pub fn allocated(&self) -> f64 {
        self.total() - self.reserve - self.fragmentation
    }

    /// What the framework's allocator reserves (`max_memory_reserved`).
    pub fn reserved(&self) -> f64 {
        self.total() - self.reserve
    }

    /// Upper bound: three times the usual fragmentation of everything that comes and goes.
    pub fn upper(&self, c: &Constants) -> f64 {
        self.total() + 2.0 * c.fragmentation * self.transient()
    }

    /// What comes and goes in a step.
    fn transient(&self) -> f64 {
        self.activations + self.recomputed + self.logits + self.buffers
    }
}

/// Weights that one accelerator holds before any sharding over data-parallel ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalParams {
    /// Everything that is replicated over the data-parallel ranks.
    pub dense: f64,
    /// Routed experts, replicated over fewer ranks.
    pub experts: f64,
    /// Embedding or output layer on the stages at the ends (counted once: they sit on different stages).
    pub embedding: f64,
}

impl LocalParams {
    /// Mean of the pipeline stages.
    pub fn of(i: &TrainingInput) -> Self {
        let a = &i.arch;
        let experts = a.moe_layers() * a.expert_params() / (i.pp * i.ep * i.etp).max(1.0);
        let dense = a.convolutions.map_or_else(|| a.dense_params(), |network| network.params()) / (i.pp * i.tp);
        LocalParams { dense, experts, embedding: embedding(i) }
    }

    /// All of them.
    pub fn total(&self) -> f64 {
        self.dense + self.experts + self.embedding
    }
}

/// Embedding or output layer of one end, both where there is one stage and they are not tied.
fn embedding(i: &TrainingInput) -> f64 {
    let copies = if i.pp > 1.0 || i.arch.tied { 1.0 } else { 2.0 };
    copies * i.arch.vocab * i.arch.hidden / i.tp
}

/// Bytes a token that the parts of a layer keep for their backward pass.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Kept {
    /// Attention with its norm and residual.
    attention: f64,
    /// Linear mixer with its norm and residual.
    linear: f64,
    /// Dense MLP with its norm and residual.
    mlp: f64,
    /// Mixture of experts with its norm and residual.
    mixture: f64,
}

impl Kept {
    fn of(i: &TrainingInput, recompute: Recompute) -> Kept {
        let a = &i.arch;
        let split = if i.sequence_parallel { i.tp } else { 1.0 };
        let input = 2.0 * a.hidden / split;
        if recompute == Recompute::Full {
            // A layer's input, whatever it is made of: half of it for each of two blocks.
            let blocks = a.attention_share + a.mlp_share + a.linear.map_or(0.0, |linear| linear.share);
            let each = input / blocks.max(1.0);
            return Kept { attention: each, linear: each, mlp: each, mixture: each };
        }
        // Norm inputs, and the block inputs that the projections keep (in the format they multiply); selective
        // recomputation re-runs norms and activation functions, so their outputs need not be kept.
        let kept = if i.precision.is_narrow() { i.precision.bytes() } else { 2.0 };
        let again = recompute == Recompute::Selective;
        let products = if again && i.software.alternate_recompute { 0.5 } else { 1.0 };
        let masks = if i.software.dropout { a.hidden / split } else { 0.0 };
        let plain = input + if again { 0.0 } else { kept * a.hidden / split } + masks;
        let kv = a.kv_heads.max(i.tp) * a.head_dim * 2.0;
        let gate = if a.attention_gate { a.v_width() } else { 0.0 };
        let qkv = products * 2.0 * (a.q_width() + gate + kv) / i.tp;
        let attention_out = (2.0 + if kept < 2.0 { kept } else { 0.0 }) * a.v_width() / i.tp;
        let (ups, routed) = (a.mlp_matrices() - 1.0, a.top_k * i.imbalance);
        let width = products * 2.0 * ups + if again { 0.0 } else { kept };
        // A routed copy keeps its input, the up-projections and the activation's output.
        let mixture = routed * (kept * a.expert_width() + width * a.moe_ffn) / split + width * a.shared_ffn / i.tp;
        // Scores, softmax and dropout of unfused attention: 5 bytes per head and pair of positions.
        let scores = if i.software.fused_attention || recompute == Recompute::Selective {
            4.0 * a.heads / i.tp
        } else {
            5.0 * a.heads * i.seq / (i.tp * i.cp)
        };
        let indexer = a.indexer.map_or(0.0, |x| 2.0 * (x.heads + 1.0) * x.dim + 4.0 * x.top_k);
        // Projected input, and the recurrence's output; the scan's backward pass recomputes its states.
        let linear = a.linear.map_or(0.0, |x| (2.0 * x.projected() + 2.0 * kept * x.inner()) / i.tp);
        Kept {
            attention: plain + qkv + attention_out + scores + indexer,
            linear: plain + linear,
            mlp: plain + width * a.ffn / i.tp,
            mixture: plain + mixture,
        }
    }

    /// The same with MLPs and mixtures recomputed from their inputs.
    fn without_mlps(self, i: &TrainingInput) -> Kept {
        let split = if i.sequence_parallel { i.tp } else { 1.0 };
        let input = 2.0 * i.arch.hidden / split;
        Kept { mlp: input.min(self.mlp), mixture: input.min(self.mixture), ..self }
    }

    /// The largest layer.
    fn layer(&self, i: &TrainingInput) -> f64 {
        let a = &i.arch;
        let mixer = if a.attention_share > 0.0 { self.attention } else { 0.0 };
        let mixer = mixer.max(if a.linear.is_some() { self.linear } else { 0.0 });
        let mlp = if a.moe_layers() > 0.0 { self.mixture } else { self.mlp };
        // Where mixers and MLPs are layers of their own, the larger one is a layer.
        if a.mlp_share < 1.0 { mixer.max(mlp) } else { mixer + mlp }
    }
}

/// Bytes of activations that the layers of one micro-batch keep on one accelerator under a plan.
pub fn kept(i: &TrainingInput, plan: Plan) -> f64 {
    let stage = Stage::of(i, true);
    let some = stage.activations(i, plan.mode);
    let mlps = stage.sum(i, &Kept::of(i, plan.mode).without_mlps(i));
    let some = if plan.mlp_share > 0.0 { some + plan.mlp_share * (mlps - some) } else { some };
    some + plan.full_share * (stage.activations(i, Recompute::Full) - some)
}

/// Bytes a pixel-channel keeps in a convolutional network: the convolution's output, which the batch norm needs, and the
/// activation's, which the next convolution does.
fn convolutional_activations(i: &TrainingInput, network: &Residual) -> f64 {
    let wide = if matches!(i.precision, Precision::Fp32 | Precision::Tf32) { 4.0 } else { 2.0 };
    2.0 * wide * network.outputs() * i.micro
}

/// Micro-batches whose activations the first stage holds at once.
pub fn in_flight(i: &TrainingInput) -> f64 {
    if i.pp <= 1.0 {
        return 1.0;
    }
    let most = if i.vpp > 1.0 { i.pp * (1.0 + (i.pp - 1.0) / (i.pp * i.vpp)) } else { i.pp };
    most.min(i.micro_batches())
}

/// Bytes of weights, gradients and optimizer states of `p` weights replicated over `ranks`.
fn states(i: &TrainingInput, p: f64, ranks: f64) -> (f64, f64, f64) {
    let ranks = ranks.max(1.0);
    let shard = if i.shard > 0.0 { i.shard.min(ranks) } else { ranks };
    let weights = if i.sharding == Sharding::Zero3 { shard } else { 1.0 };
    let gradients = if matches!(i.sharding, Sharding::Zero2 | Sharding::Zero3) { shard } else { 1.0 };
    let optimizer = if i.sharding == Sharding::None { 1.0 } else { shard };
    let trained = p * i.trained;
    (p * i.weight_bytes / weights, trained * i.grad_bytes / gradients, trained * i.optimizer_bytes / optimizer)
}

/// The layers of one pipeline stage: leading dense ones sit on the first stages.
struct Stage {
    first: bool,
    attention: f64,
    linear: f64,
    dense: f64,
    moe: f64,
}

impl Stage {
    fn of(i: &TrainingInput, first: bool) -> Self {
        let a = &i.arch;
        let (attention, linear) = (a.attention_layers() / i.pp, a.linear_layers() / i.pp);
        let layers = a.mlp_layers() / i.pp;
        if !a.is_moe() {
            return Stage { first, attention, linear, dense: layers, moe: 0.0 };
        }
        let leading = if first { a.dense_layers } else { a.dense_layers - (a.mlp_layers() - layers) };
        let leading = leading.clamp(0.0, layers);
        let moe = (layers - leading) / a.moe_step.max(1.0);
        Stage { first, attention, linear, dense: layers - moe, moe }
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
            + self.dense * a.mlp_params(a.ffn)
            + self.moe * a.moe_fixed_params()
            + norms;
        LocalParams {
            dense: dense / i.tp,
            experts: self.moe * a.expert_params() / (i.ep * i.etp).max(1.0),
            embedding: embedding(i),
        }
    }

    /// Bytes that the layers of one micro-batch keep.
    fn activations(&self, i: &TrainingInput, recompute: Recompute) -> f64 {
        let a = &i.arch;
        if let Some(network) = &a.convolutions {
            return convolutional_activations(i, network);
        }
        self.sum(i, &Kept::of(i, recompute))
    }

    /// Bytes of one micro-batch's layers that keep `kept` a token.
    fn sum(&self, i: &TrainingInput, kept: &Kept) -> f64 {
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
        let layers = a.encoder_layers / i.pp;
        let inputs = i.micro * i.seq / i.cp;
        tokens * (own + self.attention * kept.attention) + inputs * layers * (kept.attention + kept.mlp)
    }
}

/// Memory of the fullest accelerator under `recompute`: the first stage holds most micro-batches, the last one the
/// logits and, in models with leading dense layers, most experts.
pub fn training_memory(i: &TrainingInput, c: &Constants, recompute: Recompute) -> MemoryBreakdown {
    Ends::of(i, c).under(recompute)
}

/// The stages at both ends of the pipeline with what they hold whatever is recomputed, so that several plans can be tried
/// on it.
pub(crate) struct Ends<'a> {
    i: &'a TrainingInput,
    c: &'a Constants,
    /// What layers keep that recompute nothing.
    whole: Kept,
    first: End,
    /// None of a pipeline of one stage.
    last: Option<End>,
}

struct End {
    stage: Stage,
    /// Micro-batches whose activations it holds.
    held: f64,
    /// What it holds besides activations.
    rest: MemoryBreakdown,
}

impl<'a> Ends<'a> {
    pub(crate) fn of(i: &'a TrainingInput, c: &'a Constants) -> Self {
        let end = |first: bool| {
            let stage = Stage::of(i, first);
            let held = if first { in_flight(i) } else { 1.0 };
            End { rest: rest(i, c, &stage), held, stage }
        };
        let whole = Kept::of(i, Recompute::None);
        Ends { i, c, whole, first: end(true), last: (i.pp > 1.0).then(|| end(false)) }
    }

    /// Memory of the fullest accelerator under `recompute`.
    pub(crate) fn under(&self, recompute: Recompute) -> MemoryBreakdown {
        let i = self.i;
        if let Some(network) = &i.arch.convolutions {
            return self.fullest(0.0, [convolutional_activations(i, network); 2]);
        }
        let kept = if recompute == Recompute::None { self.whole } else { Kept::of(i, recompute) };
        // One layer at a time is recomputed and held whole. The logits are gone by then, but an allocator that caches its
        // blocks by size seldom has them back.
        let recomputed = if recompute == Recompute::Full { i.micro * i.seq / i.cp * self.whole.layer(i) } else { 0.0 };
        self.fullest(recomputed, self.sums(&kept))
    }

    /// Memory where every layer recomputes its cheap operators and its MLP, and keeps its attention.
    pub(crate) fn without_mlps(&self) -> MemoryBreakdown {
        let i = self.i;
        if i.arch.convolutions.is_some() {
            return self.under(Recompute::Selective);
        }
        let kept = Kept::of(i, Recompute::Selective).without_mlps(i);
        // One MLP at a time is recomputed and held whole.
        let mlp = if i.arch.moe_layers() > 0.0 { self.whole.mixture } else { self.whole.mlp };
        self.fullest(i.micro * i.seq / i.cp * mlp, self.sums(&kept))
    }

    /// Bytes of one micro-batch's layers that keep `kept` a token, at both ends.
    fn sums(&self, kept: &Kept) -> [f64; 2] {
        let of = |end: &End| end.stage.sum(self.i, kept);
        [of(&self.first), self.last.as_ref().map_or(0.0, of)]
    }

    /// The fuller end, whose layers keep so many bytes of a micro-batch.
    fn fullest(&self, recomputed: f64, [first, last]: [f64; 2]) -> MemoryBreakdown {
        let of = |end: &End, kept: f64| {
            let activations = end.held * kept * here(self.i.offload.activations);
            let parts = MemoryBreakdown { activations, recomputed, ..end.rest };
            MemoryBreakdown { fragmentation: self.c.fragmentation * parts.transient(), ..parts }
        };
        let first = of(&self.first, first);
        match self.last.as_ref().map(|end| of(end, last)) {
            Some(last) if last.total() > first.total() => last,
            _ => first,
        }
    }
}

/// What of a share on the host stays here.
fn here(share: f64) -> f64 {
    1.0 - share.clamp(0.0, 1.0)
}

/// What a stage holds besides activations.
fn rest(i: &TrainingInput, c: &Constants, stage: &Stage) -> MemoryBreakdown {
    let a: &Architecture = &i.arch;
    let local = stage.params(i);
    let dense = states(i, local.dense + local.embedding, i.dp * i.cp);
    let expert = states(i, local.experts, i.dp * i.cp * i.tp / (i.ep * i.etp).max(1.0));
    // bf16 logits, fp32 softmax and its gradient.
    let with_logits = i.pp <= 1.0 || !stage.first;
    let positions = i.micro * i.target() / i.cp * a.head_share(i.seq);
    let logits = if with_logits { 8.0 * positions * a.head_width() / i.tp } else { 0.0 };
    let gathered = if i.sharding == Sharding::Zero3 {
        2.0 * (a.params() - a.embedding_params()) / (a.depth() * i.tp * i.ep.max(1.0)) * i.weight_bytes
    } else {
        0.0
    };
    let buckets = i.bucket_bytes.min(4.0 * (local.total()));
    MemoryBreakdown {
        weights: (dense.0 + expert.0) * here(i.offload.weights),
        gradients: (dense.1 + expert.1) * here(i.offload.weights),
        optimizer: (dense.2 + expert.2) * here(i.offload.optimizer),
        activations: 0.0,
        recomputed: 0.0,
        logits,
        buffers: gathered + buckets + c.workspace,
        fragmentation: 0.0,
        reserve: c.reserve,
    }
}

/// Memory of the first pipeline stage, on which job logs and tools that look at rank 0 report.
pub fn first_stage(i: &TrainingInput, c: &Constants, recompute: Recompute) -> MemoryBreakdown {
    Ends { last: None, ..Ends::of(i, c) }.under(recompute)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B200, bf16, sequences of 4096, one per micro-batch, distributed optimizer, no recomputation: the setting of
    /// SimuMax 1.2's measurements (docs/b200, release v1.2, `alloc GiB real`).
    fn simumax(arch: Architecture, tp: f64, pp: f64, ep: f64, cp: f64, seq: f64) -> f64 {
        let dp = 8.0 / (tp * pp * cp);
        let i = TrainingInput {
            arch,
            tp,
            pp,
            ep,
            cp,
            dp,
            seq,
            global: 8.0 * dp,
            sequence_parallel: tp > 1.0,
            recompute: Recompute::None,
            ..TrainingInput::default()
        };
        training_memory(&i, &Constants::default(), Recompute::None).allocated() / 1024f64.powi(3)
    }

    fn llama_70b(layers: f64) -> Architecture {
        Architecture {
            layers,
            hidden: 8192.0,
            heads: 64.0,
            kv_heads: 8.0,
            ffn: 28672.0,
            vocab: 128256.0,
            ..Architecture::default()
        }
    }

    #[test]
    fn measured_allocations_are_met_within_five_percent() {
        let deepseek_v3 = Architecture { layers: 4.0, dense_layers: 1.0, ..Architecture::deepseek_v3() };
        let l = llama_70b(12.0);
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
        let i = TrainingInput { arch: llama_70b(80.0), tp: 8.0, pp: 4.0, ..TrainingInput::default() };
        let at = |r| training_memory(&i, &c, r).total();
        assert!(at(Recompute::Full) < at(Recompute::Selective));
        assert!(at(Recompute::Selective) <= at(Recompute::None));
    }

    #[test]
    fn sharding_more_never_needs_more_memory() {
        let c = Constants::default();
        let mut last = f64::INFINITY;
        for sharding in [Sharding::None, Sharding::Zero1, Sharding::Zero2, Sharding::Zero3] {
            let i = TrainingInput { arch: llama_70b(80.0), sharding, ..TrainingInput::default() };
            let total = training_memory(&i, &c, Recompute::Full).total();
            assert!(total <= last * 1.001);
            last = total;
        }
    }

    #[test]
    fn the_bound_is_never_below_the_point() {
        let c = Constants::default();
        let m = training_memory(&TrainingInput::default(), &c, Recompute::None);
        assert!(m.upper(&c) >= m.total());
        assert!(m.values().iter().all(|bytes| *bytes >= 0.0));
    }
}
