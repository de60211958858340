//! A transformer's architecture as plain numbers, and the parameter counts that follow from it.

/// How attention projects keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Attention {
    /// Multi-head, grouped-query or multi-query: decided by the number of key-value heads.
    #[default]
    Grouped,
    /// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).
    Latent {
        /// Rank of the query compression; 0 where queries are projected directly.
        q_rank: f64,
        /// Rank of the joint key-value compression.
        kv_rank: f64,
        /// Per-head width without positional encoding.
        nope: f64,
        /// Width of the decoupled rotary key, shared by all heads.
        rope: f64,
        /// Per-head value width.
        value: f64,
    },
}

/// Architecture of a decoder or encoder. Counts are `f64`: they only ever enter arithmetic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Architecture {
    /// Transformer layers.
    pub layers: f64,
    /// Width of the residual stream.
    pub hidden: f64,
    /// Query heads.
    pub heads: f64,
    /// Key-value heads.
    pub kv_heads: f64,
    /// Width of a head.
    pub head_dim: f64,
    /// Width of the dense MLP.
    pub ffn: f64,
    /// Gated MLP (SwiGLU, GeGLU): three matrices instead of two.
    pub gated: bool,
    /// Rows of the embedding.
    pub vocab: f64,
    /// Output layer shares the embedding's matrix.
    pub tied: bool,
    /// How keys and values are projected.
    pub attention: Attention,
    /// Keys a query may look back on; 0 = all.
    pub window: f64,
    /// Share of the layers that use the window (1 where all do).
    pub window_share: f64,
    /// Bytes that each of those layers keeps per sequence in place of keys and values and rewrites at every token: the
    /// state of linear attention or of a state-space model; 0 where they keep the window's keys.
    pub state_bytes: f64,
    /// Keys that an indexer selects for each query (sparse attention of DeepSeek-V3.2, arXiv 2512.02556); 0 = all.
    pub selected: f64,
    /// Residual streams (hyper-connections, arXiv 2512.24880); 1 = a plain residual.
    pub streams: f64,
    /// Each query sees only earlier keys.
    pub causal: bool,
    /// Learned absolute positions (rows of the table); 0 = none.
    pub positions: f64,
    /// Bias on the attention's projections.
    pub attn_bias: bool,
    /// Bias on the MLP's projections.
    pub mlp_bias: bool,
    /// Routed experts per MoE layer; 0 = dense.
    pub experts: f64,
    /// Routed experts per token.
    pub top_k: f64,
    /// Width of one routed expert.
    pub moe_ffn: f64,
    /// Width of all shared experts together; 0 = none.
    pub shared_ffn: f64,
    /// Leading layers with a dense MLP.
    pub dense_layers: f64,
    /// Every n-th layer is a MoE layer (1 = all after the dense ones).
    pub moe_step: f64,
}

impl Default for Architecture {
    /// Llama 2 7B (arXiv 2307.09288).
    fn default() -> Self {
        Architecture {
            layers: 32.0,
            hidden: 4096.0,
            heads: 32.0,
            kv_heads: 32.0,
            head_dim: 128.0,
            ffn: 11008.0,
            gated: true,
            vocab: 32000.0,
            tied: false,
            attention: Attention::Grouped,
            window: 0.0,
            window_share: 1.0,
            state_bytes: 0.0,
            selected: 0.0,
            streams: 1.0,
            causal: true,
            positions: 0.0,
            attn_bias: false,
            mlp_bias: false,
            experts: 0.0,
            top_k: 0.0,
            moe_ffn: 0.0,
            shared_ffn: 0.0,
            dense_layers: 0.0,
            moe_step: 1.0,
        }
    }
}

impl Architecture {
    /// Whether some layers are mixtures of experts.
    pub fn is_moe(&self) -> bool {
        self.experts > 0.0 && self.top_k > 0.0
    }

    /// Layers whose MLP is a mixture of experts.
    pub fn moe_layers(&self) -> f64 {
        if !self.is_moe() {
            return 0.0;
        }
        ((self.layers - self.dense_layers) / self.moe_step.max(1.0)).floor().max(0.0)
    }

    /// Matrices of one MLP.
    pub fn mlp_matrices(&self) -> f64 {
        if self.gated { 3.0 } else { 2.0 }
    }

    /// Width of all query heads together.
    pub fn q_width(&self) -> f64 {
        match self.attention {
            Attention::Grouped => self.heads * self.head_dim,
            Attention::Latent { nope, rope, .. } => self.heads * (nope + rope),
        }
    }

    /// Width of the attention's output before its projection.
    pub fn v_width(&self) -> f64 {
        match self.attention {
            Attention::Grouped => self.heads * self.head_dim,
            Attention::Latent { value, .. } => self.heads * value,
        }
    }

    /// Elements that the KV cache keeps per token and layer.
    pub fn kv_width(&self) -> f64 {
        match self.attention {
            Attention::Grouped => 2.0 * self.kv_heads * self.head_dim,
            Attention::Latent { kv_rank, rope, .. } => kv_rank + rope,
        }
    }

    /// Weights of one layer's attention.
    pub fn attention_params(&self) -> f64 {
        let h = self.hidden;
        match self.attention {
            Attention::Grouped => {
                let bias = if self.attn_bias { self.q_width() + self.kv_width() } else { 0.0 };
                h * (self.q_width() + self.kv_width()) + self.v_width() * h + bias
            }
            Attention::Latent { q_rank, kv_rank, nope, rope, value } => {
                let q = if q_rank > 0.0 { q_rank * (h + self.q_width() + 1.0) } else { h * self.q_width() };
                q + h * (kv_rank + rope) + kv_rank * (1.0 + self.heads * (nope + value)) + self.heads * value * h
            }
        }
    }

    /// Weights of a dense MLP of width `ffn`.
    pub fn mlp_params(&self, ffn: f64) -> f64 {
        let bias = if self.mlp_bias { (self.mlp_matrices() - 1.0) * ffn + self.hidden } else { 0.0 };
        self.mlp_matrices() * self.hidden * ffn + bias
    }

    /// Routed experts of one MoE layer.
    pub fn expert_params(&self) -> f64 {
        self.experts * self.mlp_params(self.moe_ffn)
    }

    /// Router and shared experts of one MoE layer.
    pub fn moe_fixed_params(&self) -> f64 {
        let shared = if self.shared_ffn > 0.0 { self.mlp_params(self.shared_ffn) } else { 0.0 };
        self.hidden * self.experts + shared
    }

    /// Input embedding, and output layer where it is its own matrix.
    pub fn embedding_params(&self) -> f64 {
        let copies = if self.tied { 1.0 } else { 2.0 };
        copies * self.vocab * self.hidden + self.positions * self.hidden
    }

    /// All weights of the layers that are not routed experts.
    pub fn dense_params(&self) -> f64 {
        let norms = 2.0 * self.hidden;
        let moe = self.moe_layers();
        self.layers * (self.attention_params() + norms)
            + (self.layers - moe) * self.mlp_params(self.ffn)
            + moe * self.moe_fixed_params()
    }

    /// All weights.
    pub fn params(&self) -> f64 {
        self.dense_params() + self.moe_layers() * self.expert_params() + self.embedding_params() + self.hidden
    }

    /// Weights that one token passes, embeddings and output layer included.
    pub fn active_params(&self) -> f64 {
        if !self.is_moe() {
            return self.params();
        }
        self.params() - self.moe_layers() * self.expert_params() * (1.0 - self.top_k / self.experts)
    }

    /// Weights that one token multiplies: active weights without the input embedding's look-up.
    pub fn matmul_params(&self) -> f64 {
        let looked_up = (if self.tied { 0.0 } else { self.vocab } + self.positions) * self.hidden;
        self.active_params() - looked_up
    }

    /// Mean number of keys that a query attends to in a sequence of `seq` tokens, over all layers.
    pub fn mean_context(&self, seq: f64) -> f64 {
        let all = if self.causal { 0.5 * seq } else { seq };
        if self.window <= 0.0 || self.window >= seq {
            return all;
        }
        let w = self.window;
        let windowed = if self.causal { w - 0.5 * w * w / seq } else { (2.0 * w).min(seq) };
        self.window_share * windowed + (1.0 - self.window_share) * all
    }

    /// Model FLOPs of one token, forward and backward, in the PaLM convention (arXiv 2204.02311, appendix B):
    /// 6 N + 12 L H Q T, N without the look-up of embeddings; `halved` counts causal attention once.
    pub fn palm_flops_per_token(&self, seq: f64, halved: bool) -> f64 {
        let context = if halved { self.mean_context(seq) } else { seq };
        6.0 * self.matmul_params() + 6.0 * self.layers * context * (self.q_width() + self.v_width())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama_2_7b_has_its_published_parameters() {
        let a = Architecture::default();
        assert!((a.params() / 6.7384e9 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn deepseek_v3_has_its_published_parameters() {
        let a = Architecture {
            layers: 61.0,
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
            dense_layers: 3.0,
            ..Architecture::default()
        };
        assert!((a.params() / 671.0e9 - 1.0).abs() < 0.01, "{}", a.params());
        assert!((a.active_params() / 37.5e9 - 1.0).abs() < 0.02, "{}", a.active_params());
    }

    #[test]
    fn a_window_never_lengthens_the_context() {
        let full = Architecture::default();
        let mut windowed = full;
        windowed.window = 1024.0;
        assert!(windowed.mean_context(8192.0) < full.mean_context(8192.0));
        assert_eq!(windowed.mean_context(512.0), full.mean_context(512.0));
    }
}
