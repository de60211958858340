//! Numbers of weights.

use super::{Architecture, Attention, Head};
use atlas_core::count::Count;

impl Architecture {
    /// Weights of one layer's attention, including the indexer.
    pub fn attention_params(&self) -> f64 {
        let h = self.hidden;
        let gate = if self.attention_gate { h * self.v_width() } else { 0.0 };
        let projections = match self.attention {
            Attention::Grouped => {
                let bias = if self.attn_bias { self.q_width() + self.kv_width() } else { 0.0 };
                h * (self.q_width() + self.kv_width()) + self.v_width() * h + bias
            }
            Attention::Latent { q_rank, kv_rank, nope, rope, value, direct, output } => {
                let q = q_rank.map_or(h * self.q_width(), |rank| rank * (h + self.q_width() + 1.0));
                let up = if direct { 1.0 } else { 1.0 + self.heads * (nope + value) };
                let out = output.map_or(self.v_width() * h, |x| x.rank * (self.v_width() + x.groups * h));
                q + h * (kv_rank + rope) + kv_rank * up + out
            }
        };
        projections + gate + self.indexer_params()
    }

    /// Weights of one layer's indexer: queries from the compressed query, one key, one weight per head.
    pub fn indexer_params(&self) -> f64 {
        self.indexer
            .map_or(0.0, |x| self.query_source() * x.heads * x.dim + self.hidden * (x.dim + x.heads) + 2.0 * x.dim)
    }

    /// Weights of one layer's linear mixer.
    pub fn linear_params(&self) -> f64 {
        self.linear.map_or(0.0, |linear| linear.params(f64::from(self.hidden)))
    }

    /// Weights of a dense MLP of width `ffn`.
    pub fn mlp_params(&self, ffn: f64) -> f64 {
        let bias = if self.mlp_bias { (self.mlp_matrices() - 1.0) * ffn + self.hidden } else { 0.0 };
        self.mlp_matrices() * self.hidden * ffn + bias
    }

    /// Weights of the routed experts in one MoE layer.
    pub fn expert_params(&self) -> f64 {
        match self.moe_hidden {
            Some(width) => self.experts * self.mlp_matrices() * width * self.moe_ffn,
            None => self.experts * self.mlp_params(f64::from(self.moe_ffn)),
        }
    }

    /// Weights of one MoE layer's router and shared experts, and of the projections to and from the experts' width.
    pub fn moe_fixed_params(&self) -> f64 {
        let shared = if self.shared_ffn > 0.0 { self.mlp_params(f64::from(self.shared_ffn)) } else { 0.0 };
        self.hidden * self.experts + shared + 2.0 * self.hidden * self.moe_hidden.unwrap_or(Count::ZERO)
    }

    /// Weights of the input embedding, and of the output layer unless tied; includes patch embedding and classifier
    /// where present.
    pub fn embedding_params(&self) -> f64 {
        let h = self.hidden;
        let copies = if self.tied { 1.0 } else { 2.0 };
        let frame = match self.head {
            Head::Language => 0.0,
            // The dense layer and bias of the masked head are omitted, as in published counts: the pooler is as large.
            Head::Masked => 2.0 * h + h * (h + 1.0),
            Head::Classes(classes) => (h + 1.0) * classes + self.patch.map_or(0.0, |patch| (patch + 1.0) * h + h),
        };
        copies * self.vocab * h + (self.positions + self.token_types) * h + frame
    }

    /// Weights of one encoder layer: attention without cross attention, and an MLP.
    pub(crate) fn encoder_layer_params(&self) -> f64 {
        self.attention_params() + self.mlp_params(f64::from(self.ffn)) + 2.0 * self.hidden
    }

    /// All weights of the layers that are not routed experts.
    pub fn dense_params(&self) -> f64 {
        let (mixers, mlps) = (self.attention_layers() + self.linear_layers(), self.mlp_layers());
        let moe = self.moe_layers();
        // An encoder adds its own layers, and cross attention with its norm to the decoder's layers.
        let encoder = if self.encoder_layers > 0.0 {
            self.encoder_layers * self.encoder_layer_params()
                + self.attention_layers() * (self.attention_params() + self.hidden)
        } else {
            0.0
        };
        self.attention_layers() * self.attention_params()
            + self.linear_layers() * self.linear_params()
            + (mixers + mlps) * self.hidden
            + (mlps - moe) * self.mlp_params(f64::from(self.ffn))
            + moe * self.moe_fixed_params()
            + encoder
    }

    /// All weights between the embedding and the output layer.
    pub fn layer_params(&self) -> f64 {
        if let Some(network) = &self.convolutions {
            return network.params();
        }
        self.dense_params() + self.moe_layers() * self.expert_params() + self.hidden
    }

    /// Number of weights.
    pub fn params(&self) -> f64 {
        let embedding = if self.convolutions.is_some() { 0.0 } else { self.embedding_params() };
        self.layer_params() + embedding
    }

    /// Weights used per token, including embeddings and output layer.
    pub fn active_params(&self) -> f64 {
        if !self.is_moe() {
            return self.params();
        }
        self.params() - self.moe_layers() * self.expert_params() * (1.0 - self.top_k / self.experts)
    }

    /// Weights that a token multiplies: active weights without the embedding look-up.
    pub fn matmul_params(&self) -> f64 {
        let looked_up =
            (if self.tied { Count::ZERO } else { self.vocab } + self.positions + self.token_types) * self.hidden;
        self.active_params() - looked_up
    }
}
