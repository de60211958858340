//! The catalog's models as [`Architecture`]s.

use std::collections::HashMap;

use crate::catalog::Catalog;
use crate::catalog::transformer::{Bias, Kind, Transformer};
use crate::engine::analytical::arch::{Architecture, Attention};

/// Architectures by catalog id and alias.
#[derive(Debug, Clone)]
pub struct Models(HashMap<String, Architecture>);

/// Windows and indexers are left out here: measurements of training do not reach beyond them, and those of serving
/// add them by the model's name.
fn architecture(t: &Transformer) -> Architecture {
    let attention = t.latent.map_or(Attention::Grouped, |latent| Attention::Latent {
        q_rank: latent.q_lora_rank,
        kv_rank: latent.kv_lora_rank,
        nope: latent.qk_nope_dim,
        rope: latent.qk_rope_dim,
        value: latent.v_head_dim,
    });
    let experts = t.experts.as_ref();
    let of = |get: fn(&crate::catalog::transformer::Experts) -> f64| experts.map_or(0.0, get);
    Architecture {
        layers: t.n_layers,
        hidden: t.hidden_size,
        heads: t.n_heads.max(1.0),
        kv_heads: t.n_kv_heads,
        head_dim: t.head_dim,
        ffn: t.ffn_hidden_size,
        gated: t.gated_mlp,
        vocab: t.vocab_size,
        tied: t.tied_embeddings,
        attention,
        causal: t.kind == Kind::Decoder,
        positions: if t.learned_positions { t.max_context } else { 0.0 },
        attn_bias: matches!(t.attention_bias, Bias::Qkv | Bias::All),
        mlp_bias: t.mlp_bias,
        experts: of(|e| e.count),
        top_k: of(|e| e.per_token),
        moe_ffn: of(|e| e.ffn_hidden_size),
        shared_ffn: of(|e| e.shared_ffn_hidden_size),
        dense_layers: of(|e| e.first_dense_layers),
        moe_step: experts.map_or(1.0, |e| e.layer_step.max(1.0)),
        ..Architecture::default()
    }
}

impl Models {
    /// Every transformer of the catalog.
    #[must_use]
    pub fn of(catalog: &Catalog) -> Models {
        let mut all = HashMap::new();
        for model in catalog.models() {
            let Some(transformer) = model.transformer() else { continue };
            let found = architecture(transformer);
            for alias in &model.aliases {
                all.entry(alias.clone()).or_insert(found);
            }
            all.insert(model.id.clone(), found);
        }
        Models(all)
    }

    /// The architecture under a catalog id or an alias.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Architecture> {
        self.0.get(id).copied()
    }
}
