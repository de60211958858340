//! Files written by users: layers, bounds, diagnostics, and text that is not a document.

use std::path::Path;
use std::sync::Arc;

use atlas_config::library::Library;
use atlas_document::parse::parse;
use atlas_document::{Diagnostics, Node, Sources};
use atlas_plan::engine::estimate;
use atlas_plan::estimate::Estimate;
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use proptest::prelude::*;

const TARGETS: &str = include_str!("../data/predecessor/targets.yaml");
const WORKLOADS: &str = include_str!("../data/predecessor/workloads.yaml");
const PROFILE: &str = include_str!("../../workload/profiles/nvidia.yaml");

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn from(dir: &Path) -> Library {
    Library::load(&Sources { workload_dir: Some(dir.to_owned()), ..Sources::built_in() }, None)
}

#[test]
fn built_in_library_has_no_diagnostics() {
    let library = Library::load(&Sources::built_in(), None);
    assert!(library.problems().is_empty(), "{}", library.problems());
    assert_eq!(library.profiles().count(), 3);
}

#[test]
fn user_entries_override_built_in_entries_by_name() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "workload/targets.yaml", &TARGETS.replace("98.32", "1.5").replace("SAMBANOVA_SNX_NODE", "MINE"));
    let sources = Sources { config_dir: Some(dir.path().to_owned()), ..Sources::built_in() };
    let library = Library::load(&sources, None);
    assert_eq!(library.target("NVIDIA_H100_8x_NVLink").unwrap().cost.hourly_usd, 1.5);
    let names: Vec<&str> = library.targets().iter().map(|target| &*target.name).collect();
    assert_eq!(names[names.len() - 4..], ["NVIDIA_H100_8x_NVLink", "GROQ_LPU_NODE", "SAMBANOVA_SNX_NODE", "MINE"]);
    assert_eq!(
        library.target("MINE").unwrap().origin.file.as_ref(),
        dir.path().join("workload/targets.yaml").to_str().unwrap()
    );
}

#[test]
fn missing_fields_of_an_entry_are_reported_in_one_diagnostic() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "targets.yaml", "- name: A\n  vendor: X\n- name: B\n  nmu_nodes: 2\n  cost: { pue: 1.1 }\n");
    let library = from(dir.path());
    let text = library.problems().to_string();
    assert!(text.contains("targets.yaml:1:3: error: A: 6 missing fields: accelerators_per_node, num_nodes, memory_gb_per_accel, cost.hourly_usd, cost.energy_watts_node, cost.pue"), "{text}");
    assert!(text.contains("targets.yaml:3:3: error: B: 6 missing fields: vendor, accelerators_per_node, num_nodes, memory_gb_per_accel, cost.hourly_usd, cost.energy_watts_node"), "{text}");
    assert!(
        text.contains(
            "targets.yaml:4:3: warning: B.nmu_nodes: unknown key; kept but ignored; did you mean `num_nodes`?"
        ),
        "{text}"
    );
    assert!(library.target("A").is_err());
}

#[test]
fn keys_of_other_sections_are_reported_with_the_place_where_they_belong() {
    let dir = tempfile::tempdir().unwrap();
    let workload = "- name: w\n  mode: training\n  model: llama3.1-8b\n  sequence: { prompt: 4096 }\n  \
                    parallelism: { tp: 2, global_batch: 512 }\n  pp: 2\n  engine_version: 0.11\n  num_nodes: 4\n\
                    - name: v\n  mode: training\n  model: llama3.1-8b\n  seq_length: 4096\n  micro_batch_size: 2\n  \
                    precision: bf16\n";
    write(dir.path(), "workloads.yaml", workload);
    let target = "- name: t\n  vendor: NVIDIA\n  accelerators_per_node: 8\n  num_nodes: 1\n  memory_gb_per_accel: 80\n  \
                  network: { type: 800Gbps/node }\n  cost: { hourly_usd: 1, energy_watts_node: 1000, pue: 1 }\n";
    write(dir.path(), "targets.yaml", target);
    let library = from(dir.path());
    let text = library.problems().to_string();
    for help in [
        "w.parallelism.global_batch: unknown key; kept but ignored; write it as `batch.global` of a workload",
        "w.pp: unknown key; kept but ignored; write it as `parallelism.pp` of a workload",
        "w.engine_version: unknown key; kept but ignored; write the release with the software, such as `software: vllm@0.11`",
        "w.num_nodes: unknown key; kept but ignored; write it as `num_nodes` of a target",
        "v.seq_length: unknown key; kept but ignored; write it as `sequence.prompt` of a workload",
        "v.micro_batch_size: unknown key; kept but ignored; write it as `batch.micro` of a workload",
        "v.precision: found text \"bf16\", expected a mapping; write `precision: { weights: bf16 }`",
        "t.network.type: found 800Gbps/node, a label that sets no bandwidth; state Gbps_per_accel",
    ] {
        assert!(text.contains(help), "{help}: {text}");
    }
    // Training of a model of the catalog generates no tokens, so the output length need not be stated.
    assert_eq!(library.workload("w").unwrap().shape.generate, 0.0);
}

#[test]
fn mapping_instead_of_a_list_is_reported_with_the_list_syntax() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "targets.yaml", "MY_BOX:\n  vendor: X\n  num_nodes: 1\n");
    let text = from(dir.path()).problems().to_string();
    let expected = "found a mapping of names to fields, expected a list of targets; write `- name: MY_BOX` instead of";
    assert!(text.contains("targets.yaml:1:1: error: ") && text.contains(expected), "{text}");
}

#[test]
fn file_broken_after_loading_keeps_the_previous_entries() {
    let dir = tempfile::tempdir().unwrap();
    let sources = Sources { config_dir: Some(dir.path().to_owned()), ..Sources::built_in() };
    let before = Library::load(&sources, None);
    let usable = |library: &Library| {
        let (target, workload) =
            (library.target("h100-sxm-8").unwrap(), library.workload("llama3.1-70b-serve").unwrap());
        library.reject_substitutes(target, workload).is_ok()
    };
    assert!(usable(&before));
    let file = dir.path().join("workload/targets.yaml");
    for text in ["- name: h100-sxm-8\n  num_nodes: -1\n", "- name: [h100-sxm-8\n"] {
        write(dir.path(), "workload/targets.yaml", text);
        let after = Library::load(&sources, Some(&before));
        assert!(after.problems().has_errors() && usable(&after), "{text}");
        // If the file is broken from the start, there is no earlier content, and built-in entries must not be
        // substituted.
        assert!(!usable(&Library::load(&sources, None)), "{text}");
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let after = Library::load(&sources, Some(&before));
    assert!(after.problems().has_errors() && usable(&after), "a directory in its place");
}

#[test]
fn out_of_range_values_and_unreadable_files_are_diagnosed() {
    let dir = tempfile::tempdir().unwrap();
    for (good, bad) in [
        ("num_nodes: 1", "num_nodes: -1"),
        ("num_nodes: 1", "num_nodes: 1.5"),
        ("num_nodes: 1", "num_nodes: 1000000000000000000000000000000"),
        ("num_nodes: 1", "num_nodes: .nan"),
        ("num_nodes: 1", "num_nodes: many"),
        ("hourly_usd: 98.32", "hourly_usd: -5"),
        ("hourly_usd: 98.32", "hourly_usd: .inf"),
    ] {
        write(dir.path(), "targets.yaml", &TARGETS.replacen(good, bad, 1));
        let library = from(dir.path());
        assert!(library.problems().has_errors(), "{bad}");
        assert!(library.target("GROQ_LPU_NODE").is_ok(), "the other entries are good");
    }
    let big = "# x\n".repeat(4_300_000);
    write(dir.path(), "targets.yaml", &big);
    assert!(from(dir.path()).problems().to_string().contains("larger than"));
    std::fs::write(dir.path().join("targets.yaml"), [0xff, 0xfe, b'a']).unwrap();
    assert!(from(dir.path()).problems().to_string().contains("not UTF-8"));
}

#[test]
fn unknown_request_profile_is_reported_once_at_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let text = WORKLOADS.replacen("  schedule:\n", "  schedule:\n    default_request_profile: paek\n", 1);
    write(dir.path(), "workloads.yaml", &text);
    let library = from(dir.path());
    let described: Vec<String> = library.problems().iter().map(ToString::to_string).collect();
    assert_eq!(described.len(), 1, "{described:?}");
    assert!(
        described[0].contains("gpt5_1t_train.schedule.default_request_profile: found text \"paek\""),
        "{described:?}"
    );
    // Names with unprintable characters are rejected.
    write(dir.path(), "targets.yaml", &TARGETS.replacen("GROQ_LPU_NODE", "\"a\\nb\"", 1));
    assert!(from(dir.path()).problems().to_string().contains("a printable name"));
}

#[test]
fn a_broken_profile_is_reported_where_it_is_used() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "targets.yaml", TARGETS);
    write(dir.path(), "profiles/nvidia.yaml", &PROFILE.replace("ttft_ratio", "ttft_ration"));
    let library = from(dir.path());
    let target = library.target("NVIDIA_H100_8x_NVLink").unwrap();
    assert!(library.profile_for(target).unwrap_err().message.contains("has errors"));
    let text = library.problems().to_string();
    assert!(
        text.contains("1 missing field: latency.ttft_ratio") && text.contains("did you mean `ttft_ratio`?"),
        "{text}"
    );
    assert!(library.profile_for(library.target("GROQ_LPU_NODE").unwrap()).is_ok());
}

/// Config of a small Llama-like model.
const CONFIG: &str = r#"{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
 "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192, "vocab_size": 128256,
 "max_position_embeddings": 8192, "tie_word_embeddings": true}"#;

#[test]
fn model_may_refer_to_a_config_json_by_path() {
    let dir = tempfile::tempdir().unwrap();
    let workload = |model: &str| {
        format!("- name: mine\n  mode: training\n  model: {model}\n  sequence: {{ prompt: 1024, generate: 0 }}\n")
    };
    write(dir.path(), "workloads.yaml", &workload("models/own/config.json"));
    write(dir.path(), "models/own/config.json", CONFIG);
    let sources = Sources { workloads: Some(dir.path().join("workloads.yaml")), ..Sources::built_in() };
    let find = || Parts::find(&Library::load(&sources, None), "h100-sxm-8", "mine");
    let parts = find().unwrap();
    // Llama 3.2 1B, 1.236B parameters.
    assert!((parts.model.as_ref().unwrap().parameters() / 1.236e9 - 1.0).abs() < 0.01);
    assert!(Scenario::resolve(&parts, &Overrides::new()).is_ok());
    let config = dir.path().join("models/own/config.json");
    assert_eq!(Library::load(&sources, None).configs(), [config]);
    // The directory is enough, and absolute paths are supported.
    write(dir.path(), "workloads.yaml", &workload("models/own"));
    assert!(find().is_ok());
    write(dir.path(), "workloads.yaml", &workload(dir.path().join("models/own/config.json").to_str().unwrap()));
    assert!(find().is_ok());
    // A missing file is reported at the reference; errors in the file are reported in the file.
    write(dir.path(), "workloads.yaml", &workload("models/none.json"));
    let described = find().unwrap_err().to_string();
    assert!(
        described.contains("workloads.yaml:3:10: error: mine.model: ")
            && described.contains("none.json: cannot be read"),
        "{described}"
    );
    write(dir.path(), "workloads.yaml", &workload("models/own/config.json"));
    write(
        dir.path(),
        "models/own/config.json",
        &CONFIG.replace("\"num_attention_heads\": 32", "\"num_attention_heads\": -3"),
    );
    let described = find().unwrap_err().to_string();
    assert!(described.contains("config.json:2:"), "{described}");
    write(dir.path(), "workloads.yaml", &workload("lama-3.1-8b"));
    let described = find().unwrap_err().to_string();
    assert!(
        described.contains("workloads.yaml:3:10: error: mine.model: ") && described.contains("did you mean"),
        "{described}"
    );
}

fn answer(overrides: &Overrides) -> Estimate {
    let library = Library::load(&Sources::built_in(), None);
    let parts = Parts::find(&library, "NVIDIA_H100_8x_NVLink", "gpt5_1t_inference").unwrap();
    estimate(&Scenario::resolve(&parts, overrides).unwrap())
}

#[test]
fn cost_scales_with_price_and_throughput_with_nodes() {
    let set = |pairs: &[(Knob, f64)]| {
        pairs.iter().map(|(knob, value)| (*knob, Setting::Number(*value))).collect::<Overrides>()
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-12 * a.abs(), "{a} {b}");
    let base = answer(&set(&[(Knob::HourlyUsd, 10.0), (Knob::UsdPerKwh, 0.1)]));
    let double = answer(&set(&[(Knob::HourlyUsd, 20.0), (Knob::UsdPerKwh, 0.2)]));
    close(2.0 * base.cost.usd_per_1k_tokens, double.cost.usd_per_1k_tokens);
    close(2.0 * base.cost.usd_per_hour, double.cost.usd_per_hour);
    let nodes = answer(&set(&[(Knob::HourlyUsd, 10.0), (Knob::UsdPerKwh, 0.1), (Knob::NumNodes, 4.0)]));
    close(4.0 * base.total.tokens_per_sec, nodes.total.tokens_per_sec);
    close(base.cost.usd_per_1k_tokens, nodes.cost.usd_per_1k_tokens);
    close(base.cost.usd_per_1k_tokens, 4.0 * nodes.cost.usd_per_1k_tokens_parity);
    let mut before = f64::INFINITY;
    for tp in [1.0, 2.0, 4.0, 8.0, 16.0] {
        let rate = answer(&set(&[(Knob::Tp, tp)])).total.tokens_per_sec;
        assert!(rate < before, "more ranks, more communication, never faster");
        before = rate;
    }
    let quiet = answer(&Overrides::from([(Knob::Noise, Setting::Toggle(false))]));
    let seeded = answer(&Overrides::from([(Knob::Noise, Setting::Toggle(false)), (Knob::Seed, Setting::Seed(5))]));
    assert_eq!(quiet, seeded, "without noise the seed says nothing");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// A built-in file with some characters changed, deleted or duplicated causes diagnostics with positions, never a
    /// panic.
    #[test]
    fn damaged_files_never_panic(which in 0usize..3, edits in prop::collection::vec((any::<prop::sample::Index>(), any::<char>(), 0u8..4), 1..6)) {
        let (name, text) = [("targets.yaml", TARGETS), ("workloads.yaml", WORKLOADS), ("profiles/nvidia.yaml", PROFILE)][which];
        let mut chars: Vec<char> = text.chars().collect();
        for (at, c, how) in edits {
            // Nothing is left to damage.
            if chars.is_empty() { break; }
            let at = at.index(chars.len());
            match how {
                0 => chars[at] = c,
                1 => { chars.remove(at); }
                2 => chars.insert(at, c),
                _ => { chars.truncate(at.max(1)); }
            }
        }
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), name, &chars.into_iter().collect::<String>());
        let library = from(dir.path());
        for target in library.targets() {
            for workload in library.workloads() {
                if let Ok(parts) = Parts::of(&library, target, workload)
                    && let Ok(scenario) = Scenario::resolve(&parts, &Overrides::new()) {
                    let _ = estimate(&scenario);
                }
            }
        }
        prop_assert!(library.problems().iter().all(|problem| !problem.message.is_empty()));
    }

    /// Printed YAML is parsed to the same document.
    #[test]
    fn printed_yaml_round_trips_through_the_parser(node in any_node()) {
        let text = serde_yaml::to_string(&node).unwrap();
        let mut problems = Diagnostics::new();
        let back = parse(&Arc::from("t.yaml"), &text, &mut problems).unwrap();
        prop_assert!(problems.is_empty(), "{}\n{}", problems, text);
        prop_assert_eq!(serde_json::to_value(&node).unwrap(), serde_json::to_value(&back).unwrap(), "{}", text);
    }
}

fn any_node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-1e12..1e12f64).prop_map(Into::into),
        "[a-zA-Z0-9 :#'\"\\[\\]{},.~-]{0,12}".prop_map(Into::into),
    ];
    let tree = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    });
    tree.prop_map(|value| serde_json::from_value(value).unwrap())
}

#[test]
fn phases_without_a_positive_duration_are_named_and_not_estimated() {
    let dir = tempfile::tempdir().unwrap();
    for minutes in ["-5", "0"] {
        let path = dir.path().join("workloads.yaml");
        let phase = format!("{{ name: a, duration_minutes: {minutes}, request_profile: peak }}");
        let entry = "- { name: x, mode: inference, model: llama-3.1-8b, sequence: { prompt: 100, generate: 100 }, schedule: { phases: [";
        std::fs::write(&path, format!("{entry}{phase}] }} }}\n")).unwrap();
        let library = Library::load(&Sources { workloads: Some(path), ..Sources::built_in() }, None);
        let problems = library.problems().to_string();
        assert!(problems.contains(&format!("found {minutes}, expected a number above 0")), "{problems}");
        let parts = Parts::find(&library, "h100-sxm-8", "x").unwrap();
        let refused = Scenario::resolve(&parts, &Overrides::new()).unwrap_err().to_string();
        assert!(refused.contains("duration_minutes above 0"), "{refused}");
    }
}
