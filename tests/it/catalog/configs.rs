//! Models from Hugging Face configs.

use atlas_catalog::{Catalog, Model, hugging_face};
use atlas_document::Diagnostics;

fn read(text: &str) -> (Option<Model>, Diagnostics) {
    let mut problems = Diagnostics::new();
    let model = hugging_face::decode(&"config.json".into(), "it", text, &mut problems);
    (model, problems)
}

/// Checks that a config describes the same model as the catalog's entry.
fn agrees(id: &str, text: &str) {
    let (model, problems) = read(text);
    assert!(problems.is_empty(), "{id}: {problems}");
    let (model, known) = (model.unwrap(), Catalog::built_in().model(id).unwrap());
    // A config without `vision_config` describes the language part only.
    let whole = |of: &Model| if model.images.is_some() { of.parameters() } else { of.language_parameters() };
    let off = whole(&model) / whole(&known) - 1.0;
    assert!(off.abs() < 0.001, "{id}: {} against {}", whole(&model), whole(&known));
    let off = model.active_parameters() / known.active_parameters() - 1.0;
    assert!(off.abs() < 0.002, "{id}: active {}", model.active_parameters());
    let (found, expected) = (model.transformer().unwrap(), known.transformer().unwrap());
    assert_eq!(found.kv_width(), expected.kv_width(), "{id}");
    assert_eq!(found.kind, expected.kind, "{id}");
    match (found.window, expected.window) {
        (Some(found), Some(expected)) => {
            assert_eq!(found.size, expected.size, "{id}");
            assert!((found.share - expected.share).abs() < 0.03, "{id}: {}", found.share);
        }
        (found, expected) => assert_eq!(found, expected, "{id}"),
    }
}

#[test]
fn common_families_agree_with_the_catalog() {
    agrees(
        "llama-3.1-8b",
        r#"{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
        "max_position_embeddings": 131072, "tie_word_embeddings": false, "rope_scaling": {"factor": 8.0},
        "rms_norm_eps": 1e-05, "attention_bias": false, "mlp_bias": false, "pretraining_tp": 1}"#,
    );
    agrees(
        "mistral-7b",
        r#"{"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
        "max_position_embeddings": 32768, "sliding_window": 4096}"#,
    );
    agrees(
        "mixtral-8x7b",
        r#"{"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
        "max_position_embeddings": 32768, "sliding_window": null, "num_local_experts": 8,
        "num_experts_per_tok": 2}"#,
    );
    agrees(
        "qwen2.5-7b",
        r#"{"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
        "max_position_embeddings": 131072, "sliding_window": 131072, "use_sliding_window": false}"#,
    );
    agrees(
        "qwen3-30b-a3b",
        r#"{"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144,
        "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1,
        "mlp_only_layers": [], "vocab_size": 151936, "max_position_embeddings": 40960, "sliding_window": null}"#,
    );
    agrees(
        "qwen1.5-moe-a2.7b",
        r#"{"model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24,
        "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 5632,
        "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts": 60,
        "num_experts_per_tok": 4, "vocab_size": 151936, "max_position_embeddings": 8192}"#,
    );
    agrees(
        "gpt-oss-120b",
        r#"{"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 36,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880,
        "num_local_experts": 128, "num_experts_per_tok": 4, "vocab_size": 201088, "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"], "max_position_embeddings": 131072,
        "attention_bias": true, "tie_word_embeddings": false}"#,
    );
}

#[test]
fn configs_with_latent_attention_and_nested_parts_match_the_catalog() {
    let v3 = r#"{"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
        "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
        "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
        "first_k_dense_replace": 3, "moe_layer_freq": 1, "q_lora_rank": 1536, "kv_lora_rank": 512,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
        "max_position_embeddings": 163840, "num_nextn_predict_layers": 1}"#;
    agrees("deepseek-v3", v3);
    agrees(
        "deepseek-v2-lite",
        r#"{"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27,
        "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 10944,
        "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
        "first_k_dense_replace": 1, "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400, "max_position_embeddings": 163840}"#,
    );
    let tabs = v3.replace("            ", "\t");
    agrees("deepseek-v3", &tabs);
    agrees(
        "llama-4-scout",
        r#"{"model_type": "llama4", "text_config": {"model_type": "llama4_text",
        "hidden_size": 5120, "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8,
        "head_dim": 128, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_local_experts": 16,
        "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "attention_chunk_size": 8192,
        "vocab_size": 202048, "max_position_embeddings": 10485760}}"#,
    );
    agrees(
        "gemma-3-4b",
        r#"{"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
        "hidden_size": 2560, "num_hidden_layers": 34, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 256, "intermediate_size": 10240, "vocab_size": 262208, "sliding_window": 1024,
        "sliding_window_pattern": 6, "max_position_embeddings": 131072}}"#,
    );
}

#[test]
fn vision_language_configs_match_the_catalog_including_image_encoders() {
    let qwen = r#""hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "intermediate_size": 18944, "vocab_size": VOCABULARY, "max_position_embeddings": 128000"#;
    let clip = r#""hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
        "patch_size": 14"#;
    let configs = [
        (
            "qwen2.5-vl-7b",
            format!(
                r#"{{"model_type": "qwen2_5_vl", {}, "vision_config": {{"depth": 32, "hidden_size": 1280,
                "intermediate_size": 3420, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2,
                "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31], "out_hidden_size": 3584}}}}"#,
                qwen.replace("VOCABULARY", "152064")
            ),
        ),
        (
            "qwen3-vl-8b",
            r#"{"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 4096,
                "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
                "intermediate_size": 12288, "vocab_size": 151936, "max_position_embeddings": 262144,
                "tie_word_embeddings": false}, "vision_config": {"depth": 27, "hidden_size": 1152,
                "intermediate_size": 4304, "num_heads": 16, "patch_size": 16, "spatial_merge_size": 2,
                "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24], "out_hidden_size": 4096}}"#
                .to_owned(),
        ),
        (
            "internvl3-8b",
            format!(
                r#"{{"model_type": "internvl_chat", "downsample_ratio": 0.5, "max_dynamic_patch": 12,
                "llm_config": {{"model_type": "qwen2", {}}}, "vision_config": {{{clip}, "image_size": 448}}}}"#,
                qwen.replace("VOCABULARY", "151674")
            ),
        ),
        (
            "llava-1.5-7b",
            format!(
                r#"{{"model_type": "llava", "text_config": {{"model_type": "llama", "hidden_size": 4096,
                "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000,
                "max_position_embeddings": 4096}}, "vision_config": {{"model_type": "clip_vision_model", {clip},
                "image_size": 336}}}}"#
            ),
        ),
        (
            "pixtral-12b",
            r#"{"model_type": "llava", "text_config": {"model_type": "mistral", "hidden_size": 5120,
                "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
                "intermediate_size": 14336, "vocab_size": 131072, "max_position_embeddings": 131072},
                "vision_config": {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096,
                "num_hidden_layers": 24, "num_attention_heads": 16, "patch_size": 16, "image_size": 1024}}"#
                .to_owned(),
        ),
        (
            "gemma-3-4b",
            r#"{"model_type": "gemma3", "mm_tokens_per_image": 256, "text_config": {"model_type": "gemma3_text",
                "hidden_size": 2560, "num_hidden_layers": 34, "num_attention_heads": 8, "num_key_value_heads": 4,
                "head_dim": 256, "intermediate_size": 10240, "vocab_size": 262208, "sliding_window": 1024,
                "sliding_window_pattern": 6, "max_position_embeddings": 131072}, "vision_config":
                {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
                "num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14, "image_size": 896}}"#
                .to_owned(),
        ),
    ];
    for (id, text) in configs {
        agrees(id, &text);
        let (found, known) = (read(&text).0.unwrap(), Catalog::built_in().model(id).unwrap());
        let (found, known) = (found.images.unwrap(), known.images.clone().unwrap());
        for side in [300.0, 896.0, 1500.0] {
            assert_eq!(found.tiling(side), known.tiling(side), "{id} {side}");
        }
        assert_eq!(found.encoder.window, known.encoder.window, "{id}");
    }
    let (model, problems) = read(
        r#"{"model_type": "unheard", "text_config": {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 64},
        "vision_config": {"hidden_size": 32}}"#,
    );
    assert!(
        model.unwrap().images.is_none() && problems.to_string().contains("using only the language model"),
        "{problems}"
    );
}

#[test]
fn image_only_attention_layers_are_refused_with_the_text_layer_count() {
    // meta-llama/Llama-3.2-11B-Vision-Instruct.
    let config = |across: &str| {
        format!(
            r#"{{"model_type": "mllama", "text_config": {{"model_type": "mllama_text_model", "hidden_size": 4096,
            "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
            "vocab_size": 128256, "max_position_embeddings": 131072, "cross_attention_layers": [{across}]}},
            "vision_config": {{"model_type": "mllama_vision_model", "hidden_size": 1280, "patch_size": 14}}}}"#
        )
    };
    let (model, problems) = read(&config("3, 8, 13, 18, 23, 28, 33, 38"));
    let text = problems.to_string();
    assert!(model.is_none() && text.contains("8 of 40 layers attend only to images"), "{text}");
    assert!(text.contains("num_hidden_layers: 32"), "{text}");
    assert!(read(&config("")).0.is_none());
}

#[test]
fn configs_of_older_families_match_the_catalog() {
    agrees(
        "gpt2-xl",
        r#"{"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25,
        "n_positions": 1024, "n_ctx": 1024, "vocab_size": 50257, "n_inner": null}"#,
    );
    agrees(
        "bert-large",
        r#"{"model_type": "bert", "hidden_size": 1024, "num_hidden_layers": 24,
        "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 30522, "type_vocab_size": 2,
        "max_position_embeddings": 512}"#,
    );
    agrees(
        "phi-2",
        r#"{"model_type": "phi", "hidden_size": 2560, "num_hidden_layers": 32,
        "num_attention_heads": 32, "intermediate_size": 10240, "vocab_size": 51200,
        "max_position_embeddings": 2048, "partial_rotary_factor": 0.4}"#,
    );
    agrees(
        "phi-4",
        r#"{"model_type": "phi3", "hidden_size": 5120, "num_hidden_layers": 40,
        "num_attention_heads": 40, "num_key_value_heads": 10, "intermediate_size": 17920, "vocab_size": 100352,
        "max_position_embeddings": 16384, "sliding_window": null, "attention_bias": false}"#,
    );
    agrees(
        "gemma-2-9b",
        r#"{"model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "intermediate_size": 14336,
        "vocab_size": 256000, "sliding_window": 4096, "max_position_embeddings": 8192}"#,
    );
    agrees(
        "gemma-2b",
        r#"{"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18,
        "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16384,
        "vocab_size": 256000, "max_position_embeddings": 8192}"#,
    );
}

#[test]
fn all_missing_config_fields_are_reported_at_once() {
    let (model, problems) = read(r#"{"model_type": "mixtral", "hidden_size": 4096}"#);
    assert!(model.is_none());
    let text = problems.to_string();
    assert_eq!(problems.errors(), 1, "{text}");
    for field in [
        "num_hidden_layers",
        "num_attention_heads",
        "vocab_size",
        "intermediate_size",
        "num_local_experts",
        "num_experts_per_tok",
        "max_position_embeddings",
    ] {
        assert!(text.contains(field), "{field} in {text}");
    }
}

#[test]
fn malformed_configs_are_reported_as_errors() {
    assert!(read("{").1.has_errors());
    assert!(read("[1, 2]").1.has_errors());
    assert!(read("").1.has_errors());
    let (model, problems) = read(
        r#"{"model_type": "lama", "hidden_size": -1, "num_hidden_layers": 1e30,
        "num_attention_heads": "many", "vocab_size": 10, "intermediate_size": 10, "max_position_embeddings": 1}"#,
    );
    assert!(model.is_none());
    assert_eq!(problems.errors(), 3, "{problems}");
    assert!(problems.to_string().contains("did you mean `llama`?"), "{problems}");
}

#[test]
fn model_path_resolves_to_its_config_json() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("tiny-gpt2");
    std::fs::create_dir(&folder).unwrap();
    let config = r#"{"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "vocab_size": 50257}"#;
    std::fs::write(folder.join("config.json"), config).unwrap();
    let catalog = Catalog::built_in();
    let model = catalog.model(&folder.display().to_string()).unwrap();
    assert_eq!(model.id, "tiny-gpt2");
    assert_eq!(model.parameters(), catalog.model("gpt2").unwrap().parameters());
    assert_eq!(catalog.model(&folder.join("config.json").display().to_string()).unwrap().id, "tiny-gpt2");
    assert!(catalog.model(&folder.join("none.json").display().to_string()).is_err());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Whatever numbers a config contains, the result is a model of finite size or a diagnostic.
    #[test]
    fn random_config_numbers_give_a_finite_model_or_a_diagnostic(
        counts in proptest::collection::vec(1u32..5000, 20),
        wild in (0usize..60, proptest::num::f64::ANY),
        kind in 0usize..6,
    ) {
        const KEYS: [&str; 20] = ["hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
            "head_dim", "intermediate_size", "moe_intermediate_size", "n_routed_experts", "n_shared_experts",
            "num_experts_per_tok", "first_k_dense_replace", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim",
            "qk_rope_head_dim", "v_head_dim", "vocab_size", "max_position_embeddings", "num_experts",
            "num_local_experts"];
        let types = ["llama", "deepseek_v3", "qwen2_moe", "mixtral", "llama4", "unheard_of"];
        let mut text = format!("{{\"model_type\": \"{}\"", types[kind]);
        for (index, (key, count)) in KEYS.iter().zip(&counts).enumerate() {
            // A third of the cases has one key with an arbitrary number; the rest are counts, so that the sums are
            // reached.
            let value = if index == wild.0 { wild.1 } else { f64::from(*count) };
            text += &format!(", \"{key}\": {value}");
        }
        text.push('}');
        let (model, problems) = read(&text);
        match model {
            Some(model) => assert!(model.parameters().is_finite() && model.active_parameters() <= model.parameters()),
            None => assert!(problems.has_errors()),
        }
    }
}

/// A config of an 8B Llama with these fields in addition, or instead.
fn llama(more: &str) -> (Option<Model>, Diagnostics) {
    let text = format!(
        r#"{{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "intermediate_size": 14336,
        "vocab_size": 128256, "max_position_embeddings": 131072, {more}}}"#
    );
    read(&text)
}

#[test]
fn quantization_config_sets_the_format_of_the_weights() {
    let heads = r#""num_attention_heads": 32, "num_key_value_heads": 8"#;
    let of = |config: &str| llama(&format!(r#"{heads}, "quantization_config": {config}"#));
    for (config, expected) in [
        (r#"{"quant_method": "awq", "bits": 4}"#, "int4"),
        (r#"{"quant_method": "gptq", "bits": 8}"#, "int8"),
        (r#"{"quant_method": "fp8"}"#, "fp8"),
        (r#"{"quant_method": "bitsandbytes", "load_in_4bit": true}"#, "int4"),
        (
            r#"{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}"#,
            "fp8",
        ),
        (r#"{"quant_method": "modelopt", "quant_algo": "NVFP4"}"#, "nvfp4"),
        (
            r#"{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}}}"#,
            "nvfp4",
        ),
        (
            r#"{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 32}}}}"#,
            "fp4",
        ),
        (r#"{"quant_method": "mxfp4"}"#, "fp4"),
    ] {
        let (model, problems) = of(config);
        assert!(problems.is_empty(), "{config}: {problems}");
        let model = model.unwrap();
        let found = if model.nvfp4 { "nvfp4" } else { model.native_format.map_or("", |format| format.name()) };
        assert_eq!(found, expected, "{config}");
    }
    let (model, problems) = of(r#"{"quant_method": "aqlm"}"#);
    assert!(
        model.unwrap().native_format.is_none() && problems.to_string().contains("aqlm is not supported"),
        "{problems}"
    );
}

#[test]
fn heads_that_divide_neither_the_hidden_size_nor_each_other_are_refused() {
    for (heads, expected) in [
        (r#""num_attention_heads": 33, "num_key_value_heads": 33"#, "expected a divisor of hidden_size (4096)"),
        (r#""num_attention_heads": 32, "num_key_value_heads": 64"#, "expected a divisor of num_attention_heads (32)"),
        (r#""num_attention_heads": 32, "num_key_value_heads": 5"#, "expected a divisor of num_attention_heads (32)"),
    ] {
        let (model, problems) = llama(heads);
        assert!(model.is_none() && problems.to_string().contains(expected), "{heads}: {problems}");
    }
    // The width of a head may be stated.
    let (model, problems) = llama(r#""num_attention_heads": 33, "num_key_value_heads": 33, "head_dim": 128"#);
    assert!(model.is_some(), "{problems}");
}
