//! The built-in catalog: complete, plausible, and identical in the binary and in its files.

mod configs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_catalog::transformer::Sharing;
use atlas_catalog::{Accelerator, Catalog, Model, Part, Price, measurements};
use atlas_core::plan::Format;
use atlas_document::parse::parse;
use atlas_document::{Diagnostics, Node, Sources};

fn workload() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workload")
}

/// Decodes all entries of one built-in file; fails on any diagnostic.
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

/// Parses CSV with quoted fields into maps from column to text.
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
fn built_in_catalog_equals_the_workload_files() {
    let catalog = Catalog::built_in();
    let mut accelerators: Vec<Accelerator> =
        accelerator_files().iter().flat_map(|path| decoded(path, Accelerator::decode)).collect();
    let mut models = decoded(&workload().join("models.yaml"), Model::decode);
    let mut prices = decoded(&workload().join("prices.yaml"), Price::decode);
    // No entry of the files is skipped.
    let entries = |path: &Path| std::fs::read_to_string(path).unwrap().lines().filter(|l| l.starts_with("- ")).count();
    assert_eq!(accelerators.len(), accelerator_files().iter().map(|path| entries(path)).sum::<usize>());
    assert_eq!(models.len(), entries(&workload().join("models.yaml")));
    assert_eq!(prices.len(), entries(&workload().join("prices.yaml")));
    // Only the file names differ: those in the binary are marked as built in.
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
    let mut compared = 0;
    for model in Catalog::built_in().models() {
        // Benchmark sizes without published weights, and models whose makers round to whole billions.
        let Some(published) = model.published_total_b.map(|billions| billions * 1e9) else {
            assert!(model.note.is_some(), "{}", model.id);
            continue;
        };
        compared += 1;
        let off = model.parameters() / published - 1.0;
        assert!(off.abs() <= 0.02, "{}: {} against {published}", model.id, model.parameters());
        if off.abs() > worst.0 {
            worst = (off.abs(), model.id.clone());
        }
    }
    assert!(compared >= 140, "{compared}");
    // The collection states 0.8 % as its own largest error; ours must not be larger.
    assert!(worst.0 < 0.0085, "{worst:?}");
}

#[test]
fn active_parameters_match_the_published_counts_up_to_embeddings() {
    // Vendors that exclude embeddings (and some also the output layer) from active parameters.
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
            let whole = model.active_parameters() == model.language_parameters();
            assert!(whole || model.published_total_b.is_none(), "{}", model.id);
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
fn attention_kind_is_derived_from_the_head_counts() {
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
        // NVIDIA reduced INT8 in Blackwell Ultra and later; elsewhere it is at least as fast as 16-bit formats.
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
fn measured_accelerators_and_models_resolve() {
    let catalog = Catalog::built_in();
    let mut known = BTreeMap::new();
    let mut knows = |name: &str| *known.entry(name.to_owned()).or_insert_with(|| catalog.model(name).is_ok());
    for (text, least) in [
        (measurements::training().unwrap(), 0.95),
        (measurements::inference().unwrap(), 0.95),
        (measurements::serving_latency().unwrap(), 0.95),
    ] {
        let rows = rows(&text);
        assert!(rows.len() > 1900);
        let devices = rows.iter().filter(|row| catalog.accelerator(&row["accelerator"]).is_ok()).count();
        assert!(devices as f64 / rows.len() as f64 > 0.99, "{devices} of {}", rows.len());
        let mut described = 0;
        for row in &rows {
            let stated = !(row["hidden_size"].is_empty() || row["n_layers"].is_empty());
            assert!(row["model"].is_empty() || knows(&row["model"]), "{}: {}", row["id"], row["model"]);
            described += usize::from(stated || !row["model"].is_empty());
        }
        assert!(described as f64 / rows.len() as f64 > least, "{described} of {}", rows.len());
    }
}

#[test]
fn unknown_catalog_names_get_the_nearest_suggestion() {
    let catalog = Catalog::built_in();
    let problem = catalog.accelerator("nvidia-h100-smx-80gb").unwrap_err();
    assert_eq!(problem.help.as_deref(), Some("did you mean `nvidia-h100-sxm-80gb`?"));
    let problems = catalog.model("lama-3-70b").unwrap_err();
    assert!(problems.to_string().contains("did you mean `llama-3-70b`?"), "{problems}");
    assert_eq!(catalog.accelerator("H100_SXM").unwrap().id, "nvidia-h100-sxm-80gb");
    assert_eq!(catalog.model("meta-llama/Llama-3.1-70B").unwrap().id, "llama-3.1-70b");
}

#[test]
fn user_files_override_built_in_entries_and_broken_ones_keep_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let sources = Sources { config_dir: Some(dir.path().to_owned()), ..Sources::default() };
    let layer = dir.path().join("workload");
    std::fs::create_dir_all(layer.join("accelerators")).unwrap();
    let mine = layer.join("accelerators/mine.yaml");
    let entry = "- id: nvidia-h100-sxm-80gb\n  vendor: NVIDIA\n  memory: { gb: 96 }\n  tpd_w: 600\n";
    std::fs::write(&mine, entry).unwrap();
    // A profile in the predecessor's directory is not mistaken for an accelerator.
    std::fs::write(layer.join("accelerators/old.yaml"), "utilization: {}\ncompute: {}\n").unwrap();
    let price = "provider: us\naccelerator: h100-sxm\naccelerators: 8\nhourly_usd: 8\ndate: 2026-11\n";
    std::fs::write(layer.join("prices.yaml"), price).unwrap();
    let first = Catalog::load(&sources, None);
    assert_eq!(first.accelerator("nvidia-h100-sxm-80gb").unwrap().memory.gb, 96.0);
    assert_eq!(first.accelerator("h100-sxm").unwrap().memory.gb, 96.0, "a shipped alias finds what lies over it");
    assert_eq!(first.accelerators().len(), Catalog::built_in().accelerators().len());
    assert_eq!(first.prices().len(), Catalog::built_in().prices().len() + 1);
    assert!(first.problems().to_string().contains("did you mean `tdp_w`?"), "{}", first.problems());
    assert!(!first.problems().has_errors());

    std::fs::write(&mine, entry.repeat(2)).unwrap();
    let twice = Catalog::load(&sources, Some(&first));
    assert!(twice.problems().to_string().contains("mine.yaml:5:3: error: nvidia-h100-sxm-80gb: duplicate id"));

    std::fs::write(&mine, "- id: nvidia-h100-sxm-80gb\n").unwrap();
    let second = Catalog::load(&sources, Some(&first));
    assert!(second.problems().to_string().contains("missing fields: vendor, memory.gb, memory.bw_GBps"));
    assert_eq!(second.accelerator("nvidia-h100-sxm-80gb").unwrap().memory.gb, 96.0);
    let described = Catalog::load(&sources, None).accelerator("h100-sxm").unwrap_err().to_string();
    assert!(described.contains("mine.yaml:1:3"), "what ships does not stand in for it: {described}");
}

#[test]
fn catalog_file_type_is_detected_from_its_entries() {
    let part = |path: &Path| {
        let file: Arc<str> = path.display().to_string().into();
        let mut problems = Diagnostics::new();
        let root = parse(&file, &std::fs::read_to_string(path).unwrap(), &mut problems).unwrap();
        let part = Part::of(&root)?;
        Some((part, part.check(&file, &root, &mut problems), problems.len()))
    };
    for path in accelerator_files() {
        assert!(matches!(part(&path), Some((Part::Accelerators, 1.., 0))), "{}", path.display());
    }
    assert_eq!(part(&workload().join("models.yaml")), Some((Part::Models, Catalog::built_in().models().len(), 0)));
    assert_eq!(part(&workload().join("prices.yaml")), Some((Part::Prices, Catalog::built_in().prices().len(), 0)));
    for other in ["targets.yaml", "workloads.yaml", "profiles/nvidia.yaml", "../themes/dark.yaml"] {
        assert_eq!(part(&workload().join(other)), None, "{other}");
    }
}

#[test]
fn checkpoint_names_resolve_to_their_model_and_weight_format() {
    let catalog = Catalog::built_in();
    for (name, id, format) in [
        ("Qwen/Qwen3-32B-FP8", "qwen3-32b", Some(Format::Fp8)),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b", Some(Format::Fp8)),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama-3.3-70b", Some(Format::Fp8)),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", "llama-3.1-8b", Some(Format::Int8)),
        ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "llama-3.1-70b", Some(Format::Int4)),
        ("nvidia/DeepSeek-R1-0528-FP4", "deepseek-r1", Some(Format::Fp4)),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-r1", Some(Format::Fp8)),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.2", Some(Format::Fp8)),
        ("moonshotai/Kimi-K2-Instruct", "kimi-k2", Some(Format::Fp8)),
        ("moonshotai/Kimi-K2-Thinking", "kimi-k2", Some(Format::Int4)),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-3.1-70b", None),
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", "mixtral-8x22b", None),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3", None),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama-4-scout", None),
        ("Llama-2-70b-chat-hf", "llama-2-70b", None),
        ("llama3.1:70b", "llama-3.1-70b", None),
    ] {
        let found = catalog.model(name).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!((&*found.id, found.native_format), (id, format), "{name}");
    }
    // A number format without an entry, or a different model, is not matched.
    for name in
        ["Llama-3.1-8B-Instruct-Q4_K_M", "Llama-3_3-Nemotron-Super-49B-v1", "granite-3.3-8b-instruct", "-fp8", ""]
    {
        assert!(catalog.model(name).is_err(), "{name}");
    }
}
