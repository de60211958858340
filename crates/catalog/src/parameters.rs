//! Computes the number of parameters of a transformer, matrix by matrix.

use super::transformer::{Bias, Experts, Latent, Linear, LinearKind, QkNorm, Transformer, TransformerKind};
use atlas_core::count::Count;

impl Transformer {
    /// Number of parameters.
    #[must_use]
    pub fn parameters(&self) -> f64 {
        self.embedding_parameters() + self.layer_parameters()
    }

    /// Number of active parameters per token: excludes inactive experts.
    #[must_use]
    pub fn active_parameters(&self) -> f64 {
        let Some(experts) = &self.experts else { return self.parameters() };
        let idle = (experts.count - experts.per_token) * self.expert(experts);
        self.parameters() - self.moe_layers() * idle
    }

    /// Number of layers whose MLP is a mixture of experts.
    #[must_use]
    pub fn moe_layers(&self) -> f64 {
        self.experts.as_ref().map_or(0.0, |experts| {
            ((self.mlp_layers - experts.first_dense_layers) / experts.layer_step.max(Count::ONE)).floor().max(0.0)
        })
    }

    /// Total width of all query heads.
    #[must_use]
    pub fn query_width(&self) -> f64 {
        match &self.latent {
            Some(latent) => self.n_heads * (latent.qk_nope_dim + latent.qk_rope_dim),
            None => self.n_heads * self.head_dim,
        }
    }

    /// Number of elements in the KV cache per token and layer.
    #[must_use]
    pub fn kv_width(&self) -> f64 {
        match &self.latent {
            Some(latent) => latent.kv_lora_rank + latent.qk_rope_dim,
            None => 2.0 * self.n_kv_heads * self.head_dim,
        }
    }

    /// Parameters of the embeddings, the output layer unless it is tied, positions, and norms outside the layers.
    #[must_use]
    pub fn embedding_parameters(&self) -> f64 {
        let hidden = self.hidden_size;
        let positions = if self.learned_positions { self.max_context * hidden } else { 0.0 };
        let tokens = self.vocab_size.map_or(0.0, |size| size * hidden);
        match self.kind {
            TransformerKind::Decoder | TransformerKind::EncoderDecoder => {
                tokens * if self.tied_embeddings { 1.0 } else { 2.0 } + positions
            }
            // Two token types, the norm of the embeddings, and the pooler, a square matrix with bias.
            TransformerKind::Encoder => {
                tokens + positions + 2.0 * hidden + self.norm(f64::from(hidden)) + hidden * (hidden + 1.0)
            }
            TransformerKind::Vision => {
                let frame = self.patches.map_or(0.0, |patches| {
                    let pixels = 3.0 * patches.patch_size * patches.patch_size;
                    (pixels + 1.0) * hidden + (hidden + 1.0) * patches.classes
                });
                // `hidden` for the vector of the class token.
                frame + hidden + positions
            }
        }
    }

    /// Parameters of all layers, including the final norms.
    #[must_use]
    pub fn layer_parameters(&self) -> f64 {
        let moe = self.moe_layers();
        let mixture = self.experts.as_ref().map_or(0.0, |experts| self.mixture(experts));
        let mlps = (self.mlp_layers - moe) * self.mlp(f64::from(self.ffn_hidden_size)) + moe * mixture;
        let norms = self.norms_per_layer * self.norm(f64::from(self.hidden_size));
        let linear = self.linear.as_ref().map_or(0.0, |linear| linear.layers * self.linear(linear));
        let stack = self.n_layers * norms + self.attention_layers * self.attention_parameters() + linear + mlps;
        let last = self.norm(f64::from(self.hidden_size));
        match self.kind {
            TransformerKind::Decoder | TransformerKind::Vision => stack + last,
            TransformerKind::Encoder => stack,
            TransformerKind::EncoderDecoder => {
                let cross = self.n_layers * (self.attention_parameters() + self.norm(f64::from(self.hidden_size)));
                // Relative positions of T5: 32 buckets per head, once per stack (arXiv 1910.10683, section 2.1).
                2.0 * (stack + last + 32.0 * self.n_heads) + cross
            }
        }
    }

    /// Attention parameters of one layer.
    #[must_use]
    pub fn attention_parameters(&self) -> f64 {
        let hidden = self.hidden_size;
        let projections = match &self.latent {
            Some(latent) => self.latent_projections(latent),
            None => {
                let (query, keys_values) = (self.query_width(), self.kv_width());
                let bias = match self.attention_bias {
                    Bias::None => 0.0,
                    Bias::Qkv => query + keys_values,
                    Bias::All => query + keys_values + hidden,
                };
                hidden * (2.0 * query + keys_values) + bias
            }
        };
        let norm = match self.qk_norm {
            QkNorm::None => 0.0,
            QkNorm::Head => 2.0 * self.head_dim,
            QkNorm::Full => (self.n_heads + self.n_kv_heads) * self.head_dim,
        };
        let gate = if self.attention_gate { hidden * self.query_width() } else { 0.0 };
        projections + norm + gate + self.indexer_parameters()
    }

    /// Parameters of one linear mixer: input and output projections, short convolution, decay, step sizes and norm.
    fn linear(&self, linear: &Linear) -> f64 {
        let (hidden, inner) = (self.hidden_size, linear.heads * linear.head_dim);
        let state = 2.0 * linear.groups * linear.state;
        let (columns, convolved, small) = match linear.kind {
            LinearKind::Mamba1 => {
                let rank = (hidden / 16.0).ceil();
                (2.0 * inner, inner, inner * (2.0 * rank + 3.0 * linear.state + 2.0))
            }
            LinearKind::Mamba2 => (2.0 * inner + state + linear.heads, inner + state, 3.0 * linear.heads + inner),
            LinearKind::GatedDelta => {
                (2.0 * inner + state + 2.0 * linear.heads, inner + state, 2.0 * linear.heads + linear.head_dim)
            }
        };
        hidden * (columns + inner) + convolved * (linear.taps + 1.0) + small
    }

    fn latent_projections(&self, latent: &Latent) -> f64 {
        let hidden = self.hidden_size;
        let query = match latent.q_lora_rank {
            // Down-projection, norm, up-projection.
            Some(rank) => rank * (hidden + 1.0 + self.query_width()),
            None => hidden * self.query_width(),
        };
        let down = hidden * (latent.kv_lora_rank + latent.qk_rope_dim);
        let expanded = self.n_heads * (latent.qk_nope_dim + latent.v_head_dim);
        let up = latent.kv_lora_rank * if latent.direct { 1.0 } else { 1.0 + expanded };
        let values = self.n_heads * latent.v_head_dim;
        let output = latent.output.map_or(values * hidden, |x| x.rank * (values + x.groups * hidden));
        query + down + up + output
    }

    /// Parameters of the indexer: projections of queries (from the compressed query), of one key, and of one weight per
    /// head, and the layer norm of the key.
    fn indexer_parameters(&self) -> f64 {
        self.indexer.map_or(0.0, |indexer| {
            let queries_from = self.latent.and_then(|latent| latent.q_lora_rank).unwrap_or(self.hidden_size);
            queries_from * indexer.heads * indexer.dim
                + self.hidden_size * (indexer.dim + indexer.heads)
                + 2.0 * indexer.dim
        })
    }

    /// Parameters of an MLP of width `ffn`.
    #[must_use]
    pub fn mlp(&self, ffn: f64) -> f64 {
        let inner = if self.gated_mlp { 2.0 } else { 1.0 };
        let bias = if self.mlp_bias { inner * ffn + self.hidden_size } else { 0.0 };
        (inner + 1.0) * self.hidden_size * ffn + bias
    }

    /// Parameters of router, routed and shared experts of one layer.
    fn mixture(&self, experts: &Experts) -> f64 {
        let shared = if experts.shared_ffn_hidden_size > 0.0 {
            self.mlp(f64::from(experts.shared_ffn_hidden_size))
        } else {
            0.0
        };
        let gate = if experts.shared_gate { self.hidden_size } else { Count::ZERO };
        let projections = 2.0 * self.hidden_size * experts.hidden_size.unwrap_or(Count::ZERO);
        self.hidden_size * experts.count + experts.count * self.expert(experts) + shared + gate + projections
    }

    /// Parameters of one routed expert.
    fn expert(&self, experts: &Experts) -> f64 {
        let matrices = if self.gated_mlp { 3.0 } else { 2.0 };
        match experts.hidden_size {
            Some(width) => matrices * width * experts.ffn_hidden_size,
            None => self.mlp(f64::from(experts.ffn_hidden_size)),
        }
    }

    fn norm(&self, width: f64) -> f64 {
        self.norm.weights() * width
    }
}
