//! Properties of models that are not in their config, but follow from the code that Hugging Face has for their type.

use crate::transformer::{Bias, NormKind, QkNorm, TransformerKind};
use atlas_core::count::Count;

/// Defaults of a `model_type`, as in the classes of the `transformers` library.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    /// Name of the model family.
    pub(super) name: &'static str,
    pub(super) kind: TransformerKind,
    pub(super) gated_mlp: bool,
    pub(super) attention_bias: Bias,
    /// Projections that have a bias if the config states `attention_bias: true`.
    pub(super) bias_if_stated: Bias,
    pub(super) mlp_bias: bool,
    pub(super) norm: NormKind,
    pub(super) norms_per_layer: Count,
    pub(super) qk_norm: QkNorm,
    pub(super) learned_positions: bool,
    /// Default of `tie_word_embeddings`.
    pub(super) tied_embeddings: bool,
    /// Default of `head_dim`. `None`: hidden size divided by the number of heads.
    pub(super) head_dim: Option<Count>,
    /// Fraction of the layers that use the window stated by the config, if it does not list the types of layers.
    pub(super) window_share: f64,
    pub(super) experts: ExpertKeys,
}

/// Config keys that describe the experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpertKeys {
    /// There are no experts.
    None,
    /// `num_local_experts`, each as wide as `intermediate_size`.
    Local,
    /// Like [`ExpertKeys::Local`], with `intermediate_size_mlp` for dense layers, and one shared expert.
    Llama4,
    /// `num_experts`, `moe_intermediate_size`, `shared_expert_intermediate_size`.
    Qwen,
    /// `n_routed_experts`, `n_shared_experts`, `first_k_dense_replace`.
    DeepSeek,
}

/// Defaults of Llama, on which all other families are based.
const LLAMA: Family = Family {
    name: "Llama",
    kind: TransformerKind::Decoder,
    gated_mlp: true,
    attention_bias: Bias::None,
    bias_if_stated: Bias::All,
    mlp_bias: false,
    norm: NormKind::RmsNorm,
    norms_per_layer: Count::new(2),
    qk_norm: QkNorm::None,
    learned_positions: false,
    tied_embeddings: false,
    head_dim: None,
    window_share: 1.0,
    experts: ExpertKeys::None,
};

const GPT2: Family = Family {
    name: "GPT-2",
    gated_mlp: false,
    attention_bias: Bias::All,
    mlp_bias: true,
    norm: NormKind::LayerNorm,
    learned_positions: true,
    tied_embeddings: true,
    ..LLAMA
};

const GEMMA: Family = Family { name: "Gemma", tied_embeddings: true, head_dim: Some(Count::new(256)), ..LLAMA };

/// Returns the family of a `model_type`, or `None` if it is unknown.
pub(super) fn family(model_type: &str) -> Option<Family> {
    Some(match model_type {
        "llama" | "llava" => LLAMA,
        "llama4" | "llama4_text" => Family {
            name: "Llama 4",
            window_share: 0.75,
            head_dim: Some(Count::new(128)),
            experts: ExpertKeys::Llama4,
            ..LLAMA
        },
        "mistral" | "ministral" | "mistral3" => Family { name: "Mistral", ..LLAMA },
        "mixtral" => Family { name: "Mixtral", experts: ExpertKeys::Local, ..LLAMA },
        "qwen2" | "qwen2_vl" | "qwen2_vl_text" | "qwen2_5_vl" | "qwen2_5_vl_text" => {
            Family { name: "Qwen2", attention_bias: Bias::Qkv, bias_if_stated: Bias::Qkv, ..LLAMA }
        }
        "qwen2_moe" => Family {
            name: "Qwen2 MoE",
            attention_bias: Bias::Qkv,
            bias_if_stated: Bias::Qkv,
            experts: ExpertKeys::Qwen,
            ..LLAMA
        },
        "qwen3" | "qwen3_vl_text" => {
            Family { name: "Qwen3", qk_norm: QkNorm::Head, head_dim: Some(Count::new(128)), ..LLAMA }
        }
        "qwen3_moe" | "qwen3_vl_moe_text" => {
            Family { name: "Qwen3 MoE", qk_norm: QkNorm::Head, experts: ExpertKeys::Qwen, ..LLAMA }
        }
        "deepseek" | "deepseek_v2" | "deepseek_v3" | "deepseek_v32" | "kimi_k2" | "kimi_k25" | "glm_moe_dsa" => {
            Family { name: "DeepSeek", experts: ExpertKeys::DeepSeek, ..LLAMA }
        }
        "glm4_moe" => Family { name: "GLM", bias_if_stated: Bias::Qkv, experts: ExpertKeys::DeepSeek, ..LLAMA },
        "gpt2" => GPT2,
        "gpt_oss" => Family {
            name: "gpt-oss",
            attention_bias: Bias::All,
            mlp_bias: true,
            window_share: 0.5,
            head_dim: Some(Count::new(64)),
            experts: ExpertKeys::Local,
            ..LLAMA
        },
        "gemma" => GEMMA,
        "gemma2" => Family { name: "Gemma 2", norms_per_layer: Count::new(4), window_share: 0.5, ..GEMMA },
        "gemma3" | "gemma3_text" => Family {
            name: "Gemma 3",
            norms_per_layer: Count::new(4),
            qk_norm: QkNorm::Head,
            window_share: 5.0 / 6.0,
            ..GEMMA
        },
        "phi" => Family {
            name: "Phi",
            gated_mlp: false,
            attention_bias: Bias::All,
            mlp_bias: true,
            norm: NormKind::LayerNorm,
            norms_per_layer: Count::ONE,
            ..LLAMA
        },
        "phi3" => Family { name: "Phi-3", ..LLAMA },
        "bert" => Family { name: "BERT", kind: TransformerKind::Encoder, ..GPT2 },
        _ => return None,
    })
}

/// Known values of `model_type`, for error messages.
pub(super) const KNOWN: &[&str] = &[
    "llama",
    "llama4",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "kimi_k2",
    "glm4_moe",
    "glm_moe_dsa",
    "gpt2",
    "gpt_oss",
    "gemma",
    "gemma2",
    "gemma3",
    "phi",
    "phi3",
    "bert",
];

/// The family used for unknown types.
pub(super) const FALLBACK: Family = LLAMA;
