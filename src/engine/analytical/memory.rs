//! What one accelerator must hold while training: weights, gradients, optimizer states, activations, buffers.
//!
//! Activations follow Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models"
//! (arXiv 2205.05198), section 4, generalised from its 4h MLP with multi-head attention to any width.

use crate::engine::analytical::arch::Architecture;
use crate::engine::analytical::constants::Constants;
use crate::engine::analytical::training::{Recompute, Sharding, TrainingInput};

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
    /// Logits and their gradient on the last stage.
    pub logits: f64,
    /// Collective buffers, gathered layers, workspaces.
    pub buffers: f64,
    /// Driver context and framework reserve.
    pub reserve: f64,
}

impl MemoryBreakdown {
    /// The point estimate: what the allocator hands out at its peak, plus the reserve.
    pub fn total(&self) -> f64 {
        self.weights + self.gradients + self.optimizer + self.activations + self.logits + self.buffers + self.reserve
    }

    /// What the framework itself counts as allocated (`max_memory_allocated`): no driver context.
    pub fn allocated(&self) -> f64 {
        self.total() - self.reserve
    }

    /// Upper bound: fragmentation of everything that comes and goes.
    pub fn upper(&self, c: &Constants) -> f64 {
        self.total() + c.fragmentation * (self.activations + self.logits + self.buffers)
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
        let dense = a.dense_params() / (i.pp * i.tp);
        let copies = if i.pp > 1.0 || a.tied { 1.0 } else { 2.0 };
        LocalParams { dense, experts, embedding: copies * a.vocab * a.hidden / i.tp }
    }

    /// All of them.
    pub fn total(&self) -> f64 {
        self.dense + self.experts + self.embedding
    }
}

/// Bytes of activations that one layer keeps for its backward pass, for the tokens of one micro-batch.
pub fn layer_activations(i: &TrainingInput, recompute: Recompute, moe: bool) -> f64 {
    let a = &i.arch;
    let tokens = i.micro * i.seq / i.cp;
    let split = if i.sequence_parallel { i.tp } else { 1.0 };
    let input = 2.0 * a.hidden / split;
    if recompute == Recompute::Full {
        return tokens * input;
    }
    // Norm inputs, and the block inputs that the projections keep (in the format they multiply); selective
    // recomputation re-runs norms and activation functions, so their outputs need not be kept.
    let kept = if i.precision.is_narrow() { i.precision.bytes() } else { 2.0 };
    let again = recompute == Recompute::Selective;
    let plain = 2.0 * input + if again { 0.0 } else { 2.0 * kept * a.hidden / split };
    let masks = if i.software.dropout { 2.0 * a.hidden / split } else { 0.0 };
    let kv = a.kv_heads.max(i.tp) * a.head_dim * 2.0;
    let qkv = 2.0 * (a.q_width() + kv) / i.tp;
    let attention_out = (2.0 + if kept < 2.0 { kept } else { 0.0 }) * a.v_width() / i.tp;
    let (ups, routed) = (a.mlp_matrices() - 1.0, a.top_k * i.imbalance);
    let width = 2.0 * ups + if again { 0.0 } else { kept };
    let mlp = if moe {
        // A routed copy keeps its input, the up-projections and the activation's output.
        routed * (kept * a.hidden + width * a.moe_ffn) / split + width * a.shared_ffn / i.tp
    } else {
        width * a.ffn / i.tp
    };
    // Scores, softmax and dropout of unfused attention: 5 bytes per head and pair of positions.
    let scores = if i.software.fused_attention || recompute == Recompute::Selective {
        4.0 * a.heads / i.tp
    } else {
        5.0 * a.heads * i.seq / (i.tp * i.cp)
    };
    tokens * (plain + masks + qkv + attention_out + mlp + scores)
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
    dense: f64,
    moe: f64,
}

impl Stage {
    fn of(i: &TrainingInput, first: bool) -> Self {
        let a = &i.arch;
        let layers = a.layers / i.pp;
        if !a.is_moe() {
            return Stage { first, dense: layers, moe: 0.0 };
        }
        let leading = if first { a.dense_layers } else { a.dense_layers - (a.layers - layers) };
        let leading = leading.clamp(0.0, layers);
        let moe = (layers - leading) / a.moe_step.max(1.0);
        Stage { first, dense: layers - moe, moe }
    }

    /// Weights: layers, and the embedding or the output layer that sits on this end.
    fn params(&self, i: &TrainingInput) -> LocalParams {
        let a = &i.arch;
        let per_moe = a.attention_params() + 2.0 * a.hidden + a.moe_fixed_params();
        let per_dense = a.attention_params() + 2.0 * a.hidden + a.mlp_params(a.ffn);
        let ends = if i.pp > 1.0 || a.tied { 1.0 } else { 2.0 };
        LocalParams {
            dense: (self.moe * per_moe + self.dense * per_dense) / i.tp,
            experts: self.moe * a.expert_params() / (i.ep * i.etp).max(1.0),
            embedding: ends * a.vocab * a.hidden / i.tp,
        }
    }
}

/// Memory of the fullest accelerator under `recompute`: the first stage holds most micro-batches, the last one the
/// logits and, in models with leading dense layers, most experts.
pub fn training_memory(i: &TrainingInput, c: &Constants, recompute: Recompute) -> MemoryBreakdown {
    let first = stage_memory(i, c, recompute, &Stage::of(i, true));
    if i.pp <= 1.0 {
        return first;
    }
    let last = stage_memory(i, c, recompute, &Stage::of(i, false));
    if last.total() > first.total() { last } else { first }
}

fn stage_memory(i: &TrainingInput, c: &Constants, recompute: Recompute, stage: &Stage) -> MemoryBreakdown {
    let a: &Architecture = &i.arch;
    let local = stage.params(i);
    let dense = states(i, local.dense + local.embedding, i.dp * i.cp);
    let expert = states(i, local.experts, i.dp * i.cp * i.tp / (i.ep * i.etp).max(1.0));
    let held = if stage.first { in_flight(i) } else { 1.0 };
    let mut activations = 0.0;
    if stage.dense > 0.0 {
        activations += held * stage.dense * layer_activations(i, recompute, false);
    }
    if stage.moe > 0.0 {
        activations += held * stage.moe * layer_activations(i, recompute, true);
    }
    if recompute == Recompute::Full {
        // One layer at a time is recomputed and held whole.
        activations += layer_activations(i, Recompute::None, stage.moe > 0.0);
    }
    // bf16 logits, fp32 softmax and its gradient.
    let with_logits = i.pp <= 1.0 || !stage.first;
    let logits = if with_logits { i.micro * i.seq / i.cp * a.vocab / i.tp * 8.0 } else { 0.0 };
    let gathered = if i.sharding == Sharding::Zero3 {
        2.0 * (a.params() - a.embedding_params()) / (a.layers * i.tp * i.ep.max(1.0)) * i.weight_bytes
    } else {
        0.0
    };
    MemoryBreakdown {
        weights: dense.0 + expert.0,
        gradients: dense.1 + expert.1,
        optimizer: dense.2 + expert.2,
        activations,
        logits,
        buffers: gathered + c.workspace,
        reserve: c.reserve,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::analytical::arch::Attention;

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
        let deepseek_v3 = Architecture {
            layers: 4.0,
            hidden: 7168.0,
            heads: 128.0,
            kv_heads: 128.0,
            ffn: 18432.0,
            vocab: 129280.0,
            attention: Attention::Latent { q_rank: 1536.0, kv_rank: 512.0, nope: 128.0, rope: 64.0, value: 128.0 },
            experts: 256.0,
            top_k: 8.0,
            moe_ffn: 2048.0,
            shared_ffn: 2048.0,
            dense_layers: 1.0,
            ..Architecture::default()
        };
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
        let parts = m.weights + m.gradients + m.optimizer + m.activations + m.logits + m.buffers + m.reserve;
        assert!((parts - m.total()).abs() < 1.0);
    }
}
