//! The measured rows behind estimates, as shown to users.

use std::process::Command;

use atlas_catalog::evidence::Index;
use serde_json::Value;

fn atlas(arguments: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_atlas"));
    let out = command.current_dir(&dir).env("LC_ALL", "C.UTF-8").args(arguments).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn evidence(target: &str, workload: &str, set: &[&str]) -> Value {
    let mut arguments = vec!["run", "--target", target, "--workload", workload, "--format", "json"];
    set.iter().for_each(|set| arguments.extend(["--set", set]));
    serde_json::from_str::<Value>(&atlas(&arguments)).unwrap()["evidence"].clone()
}

#[test]
fn evidence_counts_match_the_index() {
    let all = evidence("h100-sxm-8", "llama3.1-70b-serve", &["software=vllm@0.11.0", "precision=fp8"]);
    let index = Index::shipped().unwrap();
    let column = |name: &str| index.column(name).unwrap();
    for (support, figure) in all.as_array().unwrap().iter().zip(["serving", "tpot", "ttft"]) {
        assert_eq!(support["figure"], figure);
        let rows = |name: &str, value: &str| {
            let alike = |row: &usize| column("figure").text(*row) == figure && column(name).text(*row) == value;
            (0..index.rows).filter(alike).count() as u64
        };
        assert_eq!(support["accelerator"]["rows"], rows("accelerator", "nvidia-h100-sxm-80gb"));
        assert_eq!(support["software"]["rows"], rows("software", "vllm"));
        assert_eq!(support["format"]["rows"], rows("format", "fp8"));
        let least = ["accelerator", "software", "format", "regime"].map(|part| support[part]["rows"].as_u64().unwrap());
        assert!(support["all"]["rows"].as_u64() <= least.into_iter().min(), "{support}");
    }
}

#[test]
fn distance_to_the_nearest_row_sums_differing_fields() {
    let all = evidence("h100-sxm-64", "llama3.1-70b-train", &[]);
    let near = &all[0]["nearest"];
    let points: f64 = near["differs"].as_array().unwrap().iter().map(|field| field["points"].as_f64().unwrap()).sum();
    assert!((points - near["distance"].as_f64().unwrap()).abs() < 1e-9, "{near}");
    let story = atlas(&["validate", "--row", near["id"].as_str().unwrap()]);
    assert!(story.contains("tokens_per_sec_per_accel"), "{story}");
    let (measured, predicted) = (near["measured"].as_f64().unwrap(), near["predicted"].as_f64().unwrap());
    assert!((predicted / measured - 1.0 - near["error"].as_f64().unwrap()).abs() < 1e-9);
}

#[test]
fn a_scenario_that_was_measured_has_distance_zero() {
    let line = atlas(&["validate", "--scenarios", "--kind", "training"]);
    let line = line.lines().find(|line| line.contains("\"nemo-0004\"")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let document: Value = serde_json::from_str(line).unwrap();
    for (file, key) in [("targets.yaml", "target"), ("workloads.yaml", "workload")] {
        std::fs::create_dir_all(dir.path().join("workload")).unwrap();
        let text = serde_json::to_string(&Value::Array(vec![document[key].clone()])).unwrap();
        std::fs::write(dir.path().join("workload").join(file), text).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_atlas"));
    command.current_dir(&dir).args(["run", "--target", "measured", "--workload", "measured", "--format", "json"]);
    let out = command.output().unwrap();
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer["evidence"][0]["nearest"]["distance"], 0.0, "{}", answer["evidence"]);
}

#[test]
fn accelerator_without_measured_rows_is_reported() {
    let text = atlas(&["run", "--target", "m3-ultra-1", "--workload", "gpt2-small-train"]);
    assert!(text.contains("no measured row for this accelerator: training throughput"), "{text}");
    assert!(text.contains("no comparable measured row"), "{text}");
    assert_eq!(evidence("m3-ultra-1", "gpt2-small-train", &[])[0]["accelerator"]["rows"], 0);
}

#[test]
fn explanation_shows_the_evidence_for_its_metric() {
    let serve = ["--target", "h100-sxm-8", "--workload", "llama3.1-70b-serve"];
    let described = atlas(&[&["explain", "ttft_ms"], &serve[..]].concat());
    assert!(
        described.contains("evidence: measured rows") && described.contains("TTFT") && !described.contains("TPOT:"),
        "{described}"
    );
    let json: Value =
        serde_json::from_str(&atlas(&[&["explain", "tpot_ms", "--format", "json"], &serve[..]].concat())).unwrap();
    assert_eq!(json["evidence"][0]["figure"], "tpot");
    assert!(json["terms"].is_array());
}
