//! The shipped catalog: complete, plausible, and the same in the binary as in its files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_fabric::catalog::transformer::Sharing;
use atlas_fabric::catalog::{Accelerator, Catalog, Model, Price, hugging_face, measurements};
use atlas_fabric::spec::parse::parse;
use atlas_fabric::spec::{Diagnostics, Node, Sources};

fn workload() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workload")
}

/// Every entry of one shipped file, decoded from its text; any complaint fails.
fn decoded<T>(path: &Path, decode: impl Fn(&Arc<str>, &Node, &mut Diagnostics) -> Option<T>) -> Vec<T> {
    let file: Arc<str> = path.display().to_string().into();
    let mut problems = Diagnostics::new();
    let root = parse(&file, &std::fs::read_to_string(path).unwrap(), &mut problems).unwrap();
    let all = root.items().unwrap().iter().filter_map(|item| decode(&file, item, &mut problems)).collect();
    assert!(problems.is_empty(), "{problems}");
    all
}

fn accelerator_files() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(workload().join("accelerators")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Rows of a CSV with quoted fields, as maps from column to text.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut records = vec![vec![String::new()]];
    let (mut quoted, mut chars) = (false, text.chars().peekable());
    while let Some(c) = chars.next() {
        let record = records.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                record.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(String::new()),
            '\n' if !quoted => records.push(vec![String::new()]),
            '\r' if !quoted => {}
            c => record.last_mut().unwrap().push(c),
        }
    }
    let header = records.remove(0);
    records
        .into_iter()
        .filter(|record| record.len() == header.len())
        .map(|record| header.iter().cloned().zip(record).collect())
        .collect()
}

#[test]
fn the_binary_holds_what_the_files_say() {
    let catalog = Catalog::built_in();
    let mut accelerators: Vec<Accelerator> =
        accelerator_files().iter().flat_map(|path| decoded(path, Accelerator::decode)).collect();
    let mut models = decoded(&workload().join("models.yaml"), Model::decode);
    let mut prices = decoded(&workload().join("prices.yaml"), Price::decode);
    assert_eq!((accelerators.len(), models.len(), prices.len()), (114, 113, 266));
    // Only the file's name differs: the binary's are marked as built in.
    for (shipped, written) in catalog.accelerators().iter().zip(&mut accelerators) {
        assert!(shipped.origin.is_built_in());
        written.origin.file = Arc::clone(&shipped.origin.file);
        assert_eq!(**shipped, *written);
    }
    for (shipped, written) in catalog.models().iter().zip(&mut models) {
        written.origin.file = Arc::clone(&shipped.origin.file);
        assert_eq!(**shipped, *written);
    }
    for (shipped, written) in catalog.prices().iter().zip(&mut prices) {
        written.origin.file = Arc::clone(&shipped.origin.file);
        assert_eq!(**shipped, *written);
    }
    assert_eq!(catalog.accelerators().len(), accelerators.len());
    assert_eq!(catalog.models().len(), models.len());
    assert_eq!(catalog.prices().len(), prices.len());
}

#[test]
fn names_are_unique_and_every_entry_has_a_source() {
    let catalog = Catalog::built_in();
    let mut seen = BTreeMap::new();
    for accelerator in catalog.accelerators() {
        for name in std::iter::once(&accelerator.id).chain(&accelerator.aliases) {
            assert_eq!(seen.insert(name.clone(), accelerator.id.clone()), None, "{name} stands twice");
            assert_eq!(catalog.accelerator(name).unwrap().id, accelerator.id);
        }
        assert!(accelerator.source.is_some(), "{}", accelerator.id);
    }
    seen.clear();
    for model in catalog.models() {
        for name in std::iter::once(&model.id).chain(&model.aliases) {
            assert_eq!(seen.insert(name.clone(), model.id.clone()), None, "{name} stands twice");
            assert_eq!(catalog.model(name).unwrap().id, model.id);
        }
        assert!(model.source.is_some(), "{}", model.id);
    }
}

#[test]
fn parameters_add_up_to_the_published_count() {
    let mut worst = (0.0, String::new());
    for model in Catalog::built_in().models() {
        let published = model.published_total_b.unwrap() * 1e9;
        let off = model.parameters() / published - 1.0;
        assert!(off.abs() <= 0.02, "{}: {} against {published}", model.id, model.parameters());
        if off.abs() > worst.0 {
            worst = (off.abs(), model.id.clone());
        }
    }
    // The collection states its own worst as 0.8 %: ours is no worse.
    assert!(worst.0 < 0.0085, "{worst:?}");
}

#[test]
fn active_parameters_are_those_published_but_for_embeddings() {
    // Vendors that leave embeddings (and some, the output layer) out of what they call active.
    let without_embeddings = [
        "gpt-oss-20b",
        "gpt-oss-120b",
        "glm-4.5-air",
        "glm-4.5",
        "glm-5",
        "deepseek-v2-lite",
        "minimax-m2.5",
        "deepseek-v3.2",
    ];
    let mut compared = 0;
    for model in Catalog::built_in().models() {
        let Some(published) = model.published_active_b else {
            assert_eq!(model.active_parameters(), model.parameters(), "{}", model.id);
            continue;
        };
        let off = model.active_parameters() / (published * 1e9) - 1.0;
        let allowed = if without_embeddings.contains(&model.id.as_str()) { 0.17 } else { 0.035 };
        assert!(off.abs() <= allowed, "{}: {} against {published}", model.id, model.active_parameters());
        compared += 1;
    }
    assert!(compared >= 20, "{compared}");
}

#[test]
fn attention_is_told_from_the_heads() {
    let catalog = Catalog::built_in();
    let sharing = |id: &str| catalog.model(id).unwrap().transformer().unwrap().sharing();
    assert_eq!(sharing("llama-2-7b"), Sharing::MultiHead);
    assert_eq!(sharing("llama-3-8b"), Sharing::GroupedQuery);
    assert_eq!(sharing("falcon-7b"), Sharing::MultiQuery);
    assert_eq!(sharing("deepseek-v3"), Sharing::Latent);
    let v3 = catalog.model("deepseek-ai/DeepSeek-V3").unwrap();
    assert_eq!(v3.transformer().unwrap().kv_width(), 576.0);
}

#[test]
fn peaks_are_plausible() {
    for accelerator in Catalog::built_in().accelerators() {
        let (id, peaks) = (&accelerator.id, &accelerator.peaks);
        let not_less = |narrow: Option<f64>, wide: Option<f64>| match (narrow, wide) {
            (Some(narrow), Some(wide)) => narrow >= wide,
            _ => true,
        };
        assert!(not_less(peaks.fp8, peaks.bf16) && not_less(peaks.fp8, peaks.fp16), "{id}");
        assert!(not_less(peaks.fp4, peaks.fp8), "{id}");
        assert!(not_less(peaks.bf16, peaks.fp32) && not_less(peaks.fp16, peaks.fp32), "{id}");
        assert!(not_less(peaks.tf32, peaks.fp32), "{id}");
        assert!(not_less(peaks.fp32, peaks.fp64), "{id}");
        // NVIDIA cut INT8 in Blackwell Ultra and after; elsewhere it is as fast as 16 bits at least.
        let cut = ["nvidia-b300", "nvidia-gb300", "nvidia-rubin-vr200"].contains(&id.as_str());
        assert!(cut || not_less(peaks.int8, peaks.bf16.or(peaks.fp16)), "{id}");
        if let (Some(measured), Some(peak)) = (&accelerator.measured, peaks.bf16) {
            assert!(measured.tflops_bf16 < peak && measured.tflops_bf16 > 0.4 * peak, "{id}");
        }
        assert!(accelerator.memory.gb > 0.0 && accelerator.year.is_some(), "{id}");
        assert!(accelerator.memory.bw_gbytes_per_sec.is_none_or(|bw| bw > 50.0), "{id}");
        assert!(accelerator.tdp_w.is_none_or(|tdp| (20.0..30_000.0).contains(&tdp)), "{id}");
    }
}

#[test]
fn prices_are_dated_and_of_known_accelerators() {
    let catalog = Catalog::built_in();
    for price in catalog.prices() {
        let found = catalog.accelerator(&price.accelerator).unwrap();
        assert_eq!(found.id, price.accelerator, "prices name ids, not aliases");
        let hourly = price.usd_per_accelerator_hour();
        assert!((0.05..30.0).contains(&hourly), "{price:?}");
        assert!(price.source.is_some() && price.date.starts_with("202"), "{price:?}");
    }
    let h100 = catalog.prices_of("h100-sxm");
    assert!(h100.len() > 5);
    assert_eq!(h100.len(), catalog.prices_of("nvidia-h100-sxm-80gb").len());
}

#[test]
fn every_measured_accelerator_is_in_the_catalog() {
    let catalog = Catalog::built_in();
    let files = [
        (measurements::training().unwrap(), "accelerator", 1666),
        (measurements::inference().unwrap(), "accelerator", 4357),
        (measurements::serving_latency().unwrap(), "system", 3769),
    ];
    for (text, column, count) in files {
        let rows = rows(&text);
        assert_eq!(rows.len(), count);
        for row in rows {
            let name = &row[column];
            let found = catalog.accelerator(name).unwrap_or_else(|problem| panic!("{}: {problem}", row["id"]));
            // Ids are spelled as measurements spell them; only shorthands go by alias.
            let shorthand = column == "system"
                || ["nvidia-a100", "nvidia-a100-80gb", "nvidia-v100-32gb", "nvidia-h20", "huawei-ascend-910b"]
                    .contains(&name.as_str());
            assert!(shorthand || found.id == *name, "{name} is only an alias of {}", found.id);
        }
    }
}

#[test]
fn measured_models_are_in_the_catalog_or_described_by_their_rows() {
    let catalog = Catalog::built_in();
    let mut known = BTreeMap::new();
    let mut knows = |name: &str| *known.entry(name.to_owned()).or_insert_with(|| catalog.model(name).is_ok());
    for row in rows(&measurements::serving_latency().unwrap()) {
        // A hybrid of linear and full attention, which no architecture here describes.
        let hybrid = row["model_path"] == "Qwen/Qwen3.5-397B-A17B";
        assert_eq!(knows(&row["model_path"]), !hybrid, "{}", row["model_path"]);
    }
    for (text, least) in [(measurements::training().unwrap(), 0.85), (measurements::inference().unwrap(), 0.9)] {
        let rows = rows(&text);
        let described = |row: &&BTreeMap<String, String>| {
            knows(&row["model"]) || !(row["hidden_size"].is_empty() || row["n_layers"].is_empty())
        };
        let share = rows.iter().filter(described).count() as f64 / rows.len() as f64;
        assert!(share > least, "{share}");
    }
}

#[test]
fn unknown_names_are_told_the_nearest() {
    let catalog = Catalog::built_in();
    let problem = catalog.accelerator("nvidia-h100-smx-80gb").unwrap_err();
    assert_eq!(problem.help.as_deref(), Some("did you mean `nvidia-h100-sxm-80gb`?"));
    let problems = catalog.model("lama-3-70b").unwrap_err();
    assert!(problems.to_string().contains("did you mean `llama-3-70b`?"), "{problems}");
    assert_eq!(catalog.accelerator("H100_SXM").unwrap().id, "nvidia-h100-sxm-80gb");
    assert_eq!(catalog.model("meta-llama/Llama-3.1-70B").unwrap().id, "llama-3.1-70b");
}

#[test]
fn user_files_lie_over_what_ships_and_a_broken_one_keeps_its_last_entries() {
    let dir = tempfile::tempdir().unwrap();
    let sources = Sources { config_dir: Some(dir.path().to_owned()), ..Sources::default() };
    let layer = dir.path().join("workload");
    std::fs::create_dir_all(layer.join("accelerators")).unwrap();
    let mine = layer.join("accelerators/mine.yaml");
    let entry = "- id: nvidia-h100-sxm-80gb\n  vendor: NVIDIA\n  memory: { gb: 96 }\n  tpd_w: 600\n";
    std::fs::write(&mine, entry).unwrap();
    let price = "provider: us\naccelerator: h100-sxm\naccelerators: 8\nhourly_usd: 8\ndate: 2026-11\n";
    std::fs::write(layer.join("prices.yaml"), price).unwrap();
    let first = Catalog::load(&sources, None);
    assert_eq!(first.accelerator("nvidia-h100-sxm-80gb").unwrap().memory.gb, 96.0);
    assert_eq!(first.accelerator("h100-sxm").unwrap().memory.gb, 96.0, "a shipped alias finds what lies over it");
    assert_eq!(first.accelerators().len(), Catalog::built_in().accelerators().len());
    assert_eq!(first.prices().len(), Catalog::built_in().prices().len() + 1);
    assert!(first.problems().to_string().contains("did you mean `tdp_w`?"), "{}", first.problems());
    assert!(!first.problems().has_errors());

    std::fs::write(&mine, "- id: nvidia-h100-sxm-80gb\n").unwrap();
    let second = Catalog::load(&sources, Some(&first));
    assert!(second.problems().to_string().contains("missing fields: vendor, memory.gb, memory.bw_GBps"));
    assert_eq!(second.accelerator("nvidia-h100-sxm-80gb").unwrap().memory.gb, 96.0);
    assert_eq!(Catalog::load(&sources, None).accelerator("nvidia-h100-sxm-80gb").unwrap().memory.gb, 80.0);
}

mod configs {
    use super::*;

    fn read(text: &str) -> (Option<Model>, Diagnostics) {
        let mut problems = Diagnostics::new();
        let model = hugging_face::decode(&"config.json".into(), "it", text, &mut problems);
        (model, problems)
    }

    /// A config must describe what the catalog's entry of the same model describes.
    fn agrees(id: &str, text: &str) {
        let (model, problems) = read(text);
        assert!(problems.is_empty(), "{id}: {problems}");
        let (model, known) = (model.unwrap(), Catalog::built_in().model(id).unwrap());
        let off = model.parameters() / known.parameters() - 1.0;
        assert!(off.abs() < 0.001, "{id}: {} against {}", model.parameters(), known.parameters());
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
    fn latent_attention_and_models_with_several_parts() {
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
    fn older_families() {
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
    fn all_that_is_missing_is_said_at_once() {
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
    fn nonsense_is_a_complaint() {
        assert!(read("{").1.has_errors());
        assert!(read("[1, 2]").1.has_errors());
        assert!(read("").1.has_errors());
        let (model, problems) = read(
            r#"{"model_type": "lama", "hidden_size": -1, "num_hidden_layers": 1e30,
            "num_attention_heads": "many", "vocab_size": 10, "intermediate_size": 10, "max_position_embeddings": 1}"#,
        );
        assert!(model.is_none());
        assert_eq!(problems.errors(), 3, "{problems}");
        assert!(problems.to_string().contains("is it like `llama`?"), "{problems}");
    }

    #[test]
    fn a_path_is_a_model() {
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
}
