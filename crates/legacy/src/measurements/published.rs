//! Architectures that rows name without columns and the catalog lacks, after their published `config.json`.

/// A published architecture: column and value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Published {
    name: &'static str,
    numbers: &'static [(&'static str, f64)],
    gated: bool,
    tied: bool,
    linear: &'static str,
}

impl Published {
    /// The model's name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// A number by its column.
    pub(super) fn get(&self, column: &str) -> Option<f64> {
        self.numbers.iter().find(|(name, _)| *name == column).map(|(_, value)| *value)
    }

    /// Every cell as text.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&'static str, String)> {
        let flags = [("gated_mlp", self.gated.to_string()), ("tied_embeddings", self.tied.to_string())];
        let linear = (!self.linear.is_empty()).then(|| ("linear_kind", self.linear.to_owned()));
        self.numbers.iter().map(|(name, value)| (*name, value.to_string())).chain(flags).chain(linear)
    }
}

/// The published architecture whose name begins the text.
pub(super) fn find(name: &str) -> Option<&'static Published> {
    let bare = name.trim().rsplit('/').next().unwrap_or("").to_ascii_lowercase();
    let bare = bare.strip_prefix("nvidia-").unwrap_or(&bare);
    KNOWN.iter().find(|known| {
        bare.strip_prefix(known.name)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.'))
    })
}

const fn dense(name: &'static str, numbers: &'static [(&'static str, f64)], tied: bool) -> Published {
    Published { name, numbers, gated: true, tied, linear: "" }
}

const KNOWN: &[Published] = &[
    dense(
        "glm-4.7-flash",
        &[
            ("n_layers", 47.0),
            ("hidden_size", 2048.0),
            ("n_heads", 20.0),
            ("n_kv_heads", 20.0),
            ("head_dim", 256.0),
            ("ffn_hidden_size", 10240.0),
            ("vocab_size", 154_880.0),
            ("q_lora_rank", 768.0),
            ("kv_lora_rank", 512.0),
            ("qk_nope_dim", 192.0),
            ("qk_rope_dim", 64.0),
            ("v_head_dim", 256.0),
            ("n_experts", 64.0),
            ("experts_per_token", 4.0),
            ("moe_ffn_hidden_size", 1536.0),
            ("shared_ffn_hidden_size", 1536.0),
            ("first_dense_layers", 1.0),
        ],
        false,
    ),
    dense(
        "ministral-3-8b",
        &[
            ("n_layers", 34.0),
            ("hidden_size", 4096.0),
            ("n_heads", 32.0),
            ("n_kv_heads", 8.0),
            ("head_dim", 128.0),
            ("ffn_hidden_size", 14336.0),
            ("vocab_size", 131_072.0),
        ],
        false,
    ),
    dense(
        "ministral-3-14b",
        &[
            ("n_layers", 40.0),
            ("hidden_size", 5120.0),
            ("n_heads", 32.0),
            ("n_kv_heads", 8.0),
            ("head_dim", 128.0),
            ("ffn_hidden_size", 16384.0),
            ("vocab_size", 131_072.0),
        ],
        false,
    ),
    dense(
        "minicpm-2b",
        &[
            ("n_layers", 40.0),
            ("hidden_size", 2304.0),
            ("n_heads", 36.0),
            ("n_kv_heads", 36.0),
            ("head_dim", 64.0),
            ("ffn_hidden_size", 5760.0),
            ("vocab_size", 122_753.0),
        ],
        true,
    ),
    dense(
        "aquila-7b",
        &[
            ("n_layers", 32.0),
            ("hidden_size", 4096.0),
            ("n_heads", 32.0),
            ("n_kv_heads", 32.0),
            ("head_dim", 128.0),
            ("ffn_hidden_size", 11008.0),
            ("vocab_size", 100_008.0),
        ],
        false,
    ),
    dense(
        "ernie-4.5-21b-a3b",
        &[
            ("n_layers", 28.0),
            ("hidden_size", 2560.0),
            ("n_heads", 20.0),
            ("n_kv_heads", 4.0),
            ("head_dim", 128.0),
            ("ffn_hidden_size", 12288.0),
            ("vocab_size", 103_424.0),
            ("n_experts", 64.0),
            ("experts_per_token", 6.0),
            ("moe_ffn_hidden_size", 1536.0),
            ("shared_ffn_hidden_size", 3072.0),
            ("first_dense_layers", 1.0),
        ],
        true,
    ),
    dense(
        "step-3.5-flash",
        &[
            ("n_layers", 45.0),
            ("hidden_size", 4096.0),
            ("n_heads", 64.0),
            ("n_kv_heads", 8.0),
            ("head_dim", 128.0),
            ("ffn_hidden_size", 11264.0),
            ("vocab_size", 128_896.0),
            ("n_experts", 288.0),
            ("experts_per_token", 8.0),
            ("moe_ffn_hidden_size", 1280.0),
            ("shared_ffn_hidden_size", 1280.0),
            ("first_dense_layers", 3.0),
            ("window_size", 512.0),
            ("window_share", 0.75),
        ],
        false,
    ),
    dense("hy3", HUNYUAN_3, false),
    dense("hunyuan3-295b-a21b", HUNYUAN_3, false),
    dense(
        "deepseek-v4-flash",
        &[
            ("n_layers", 43.0),
            ("hidden_size", 4096.0),
            ("n_heads", 64.0),
            ("n_kv_heads", 1.0),
            ("head_dim", 512.0),
            ("vocab_size", 129_280.0),
            ("q_lora_rank", 1024.0),
            ("kv_lora_rank", 512.0),
            ("qk_nope_dim", 128.0),
            ("qk_rope_dim", 64.0),
            ("v_head_dim", 128.0),
            ("n_experts", 256.0),
            ("experts_per_token", 6.0),
            ("moe_ffn_hidden_size", 2048.0),
            ("shared_ffn_hidden_size", 2048.0),
        ],
        false,
    ),
    dense(
        "deepseek-v4-pro",
        &[
            ("n_layers", 61.0),
            ("hidden_size", 7168.0),
            ("n_heads", 128.0),
            ("n_kv_heads", 1.0),
            ("head_dim", 512.0),
            ("vocab_size", 129_280.0),
            ("q_lora_rank", 1536.0),
            ("kv_lora_rank", 512.0),
            ("qk_nope_dim", 128.0),
            ("qk_rope_dim", 64.0),
            ("v_head_dim", 128.0),
            ("n_experts", 384.0),
            ("experts_per_token", 6.0),
            ("moe_ffn_hidden_size", 3072.0),
            ("shared_ffn_hidden_size", 3072.0),
        ],
        false,
    ),
    dense(
        "gemma-4-31b",
        &[
            ("n_layers", 60.0),
            ("hidden_size", 5376.0),
            ("n_heads", 32.0),
            ("n_kv_heads", 16.0),
            ("head_dim", 256.0),
            ("ffn_hidden_size", 21504.0),
            ("vocab_size", 262_144.0),
            ("window_size", 1024.0),
            ("window_share", 0.8333),
        ],
        true,
    ),
    dense("gemma-4-26b-a4b", GEMMA_4_26B, true),
    dense("gemma4-26b", GEMMA_4_26B, true),
    Published { name: "gpt3-23b", numbers: GPT_23B, gated: false, tied: true, linear: "" },
    Published { name: "gpt3-46b", numbers: GPT_46B, gated: false, tied: true, linear: "" },
    Published {
        name: "nemotron-nano-9b-v2",
        numbers: &[
            ("n_layers", 56.0),
            ("hidden_size", 4480.0),
            ("n_heads", 40.0),
            ("n_kv_heads", 8.0),
            ("head_dim", 128.0),
            ("ffn_hidden_size", 15680.0),
            ("vocab_size", 131_072.0),
            ("attention_layers", 4.0),
            ("mlp_layers", 25.0),
            ("linear_layers", 27.0),
            ("linear_heads", 128.0),
            ("linear_head_dim", 80.0),
            ("linear_state", 128.0),
            ("linear_groups", 8.0),
            ("linear_taps", 4.0),
        ],
        gated: false,
        tied: false,
        linear: "mamba2",
    },
    Published {
        name: "nemotron-nano-12b-v2",
        numbers: &[
            ("n_layers", 62.0),
            ("hidden_size", 5120.0),
            ("n_heads", 40.0),
            ("n_kv_heads", 8.0),
            ("head_dim", 128.0),
            ("ffn_hidden_size", 20480.0),
            ("vocab_size", 131_072.0),
            ("attention_layers", 6.0),
            ("mlp_layers", 28.0),
            ("linear_layers", 28.0),
            ("linear_heads", 128.0),
            ("linear_head_dim", 80.0),
            ("linear_state", 128.0),
            ("linear_groups", 8.0),
            ("linear_taps", 4.0),
        ],
        gated: false,
        tied: false,
        linear: "mamba2",
    },
    Published {
        name: "qwen3.5-397b-a17b",
        numbers: &[
            ("n_layers", 60.0),
            ("hidden_size", 4096.0),
            ("n_heads", 32.0),
            ("n_kv_heads", 2.0),
            ("head_dim", 256.0),
            ("vocab_size", 248_320.0),
            ("n_experts", 512.0),
            ("experts_per_token", 10.0),
            ("moe_ffn_hidden_size", 1024.0),
            ("shared_ffn_hidden_size", 1024.0),
            ("attention_layers", 15.0),
            ("linear_layers", 45.0),
            ("linear_heads", 64.0),
            ("linear_head_dim", 128.0),
            ("linear_state", 128.0),
            ("linear_groups", 16.0),
            ("linear_taps", 4.0),
        ],
        gated: true,
        tied: false,
        linear: "gated_delta",
    },
    Published {
        name: "kimi-linear-48b-a3b",
        numbers: &[
            ("n_layers", 27.0),
            ("hidden_size", 2304.0),
            ("n_heads", 32.0),
            ("n_kv_heads", 32.0),
            ("head_dim", 192.0),
            ("ffn_hidden_size", 9216.0),
            ("vocab_size", 163_840.0),
            ("kv_lora_rank", 512.0),
            ("qk_nope_dim", 128.0),
            ("qk_rope_dim", 64.0),
            ("v_head_dim", 128.0),
            ("n_experts", 256.0),
            ("experts_per_token", 8.0),
            ("moe_ffn_hidden_size", 1024.0),
            ("shared_ffn_hidden_size", 1024.0),
            ("first_dense_layers", 1.0),
            ("attention_layers", 7.0),
            ("linear_layers", 20.0),
            ("linear_heads", 32.0),
            ("linear_head_dim", 128.0),
            ("linear_state", 128.0),
            ("linear_groups", 32.0),
            ("linear_taps", 4.0),
        ],
        gated: true,
        tied: false,
        linear: "gated_delta",
    },
];

const HUNYUAN_3: &[(&str, f64)] = &[
    ("n_layers", 80.0),
    ("hidden_size", 4096.0),
    ("n_heads", 64.0),
    ("n_kv_heads", 8.0),
    ("head_dim", 128.0),
    ("ffn_hidden_size", 13312.0),
    ("vocab_size", 120_832.0),
    ("n_experts", 192.0),
    ("experts_per_token", 8.0),
    ("moe_ffn_hidden_size", 1536.0),
    ("shared_ffn_hidden_size", 1536.0),
    ("first_dense_layers", 1.0),
];

const GEMMA_4_26B: &[(&str, f64)] = &[
    ("n_layers", 30.0),
    ("hidden_size", 2816.0),
    ("n_heads", 16.0),
    ("n_kv_heads", 8.0),
    ("head_dim", 256.0),
    ("vocab_size", 262_144.0),
    ("n_experts", 128.0),
    ("experts_per_token", 8.0),
    ("moe_ffn_hidden_size", 704.0),
    ("shared_ffn_hidden_size", 2112.0),
    ("window_size", 1024.0),
    ("window_share", 0.8333),
];

const GPT_23B: &[(&str, f64)] = &[
    ("n_layers", 28.0),
    ("hidden_size", 8192.0),
    ("n_heads", 64.0),
    ("n_kv_heads", 64.0),
    ("ffn_hidden_size", 32768.0),
    ("vocab_size", 51_200.0),
];

const GPT_46B: &[(&str, f64)] = &[
    ("n_layers", 56.0),
    ("hidden_size", 8192.0),
    ("n_heads", 64.0),
    ("n_kv_heads", 64.0),
    ("ffn_hidden_size", 32768.0),
    ("vocab_size", 51_200.0),
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_begins_with_the_model_and_ends_at_a_separator() {
        assert_eq!(find("nvidia/NVIDIA-Nemotron-Nano-9B-v2").unwrap().name(), "nemotron-nano-9b-v2");
        assert_eq!(find("mistralai/Ministral-3-8B-Instruct-2512").unwrap().name(), "ministral-3-8b");
        for name in ["hy30", "hy3.5", "ministral-3-80b", ""] {
            assert!(find(name).is_none(), "{name}");
        }
    }
}
