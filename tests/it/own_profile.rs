//! `atlas config profile`: creates a profile for a target without a built-in one.

use std::path::Path;

use crate::common::program::{ROOT, atlas, stderr, stdout};

const TARGET: &str = "CUSTOM_ACCELERATOR";

/// The predecessor's custom target, and a workload.
fn files(dir: &Path) {
    std::fs::create_dir_all(dir.join("workload")).unwrap();
    std::fs::copy(Path::new(ROOT).join("examples/my_target.yaml"), dir.join("workload/targets.yaml")).unwrap();
    let workloads = Path::new(ROOT).join("tests/data/predecessor/workloads.yaml");
    std::fs::copy(workloads, dir.join("workload/workloads.yaml")).unwrap();
}

fn tokens(dir: &Path) -> f64 {
    let args = ["run", "--target", TARGET, "--workload", "gpt5_1t_train", "--format", "json"];
    let record: serde_json::Value = serde_json::from_str(&stdout(&atlas(dir, &args).assert().success())).unwrap();
    record["metrics"]["tokens_per_sec"].as_f64().unwrap_or_else(|| panic!("{record}"))
}

#[test]
fn config_profile_writes_a_profile_that_affects_estimates() {
    let dir = tempfile::tempdir().unwrap();
    files(dir.path());
    let refused = atlas(dir.path(), &["run", "--target", TARGET, "--workload", "gpt5_1t_train"]).assert().failure();
    assert!(stderr(&refused).contains("profile"), "{}", stderr(&refused));

    let write = |set: &[&str]| {
        let base = ["config", "profile", "--target", TARGET, "--base", "nvidia"];
        atlas(dir.path(), &[&base[..], set].concat()).assert()
    };
    let wrote = stderr(&write(&[]).success());
    assert!(wrote.contains("custom_accelerator.yaml") && wrote.contains("CustomLink"), "{wrote}");
    let before = tokens(dir.path());
    // Existing files are not overwritten without `--force`.
    assert!(stderr(&write(&[]).failure()).contains("--force"));
    let check = atlas(dir.path(), &["check"]).assert().success();
    assert!(!stdout(&check).contains("error"), "{}", stdout(&check));

    let text = std::fs::read_to_string(dir.path().join("workload/profiles/custom_accelerator.yaml")).unwrap();
    let base = text.lines().find_map(|line| line.trim().strip_prefix("base_tokens_per_accel: ")).unwrap();
    let doubled = format!("compute.base_tokens_per_accel={}", 2.0 * base.parse::<f64>().unwrap());
    write(&["--force", "--set", &doubled]).success();
    let after = tokens(dir.path());
    assert!((after / before - 2.0).abs() < 0.05, "{before} and {after} tokens/s");
}

#[test]
fn config_profile_rejects_invalid_coefficients_without_writing() {
    let dir = tempfile::tempdir().unwrap();
    files(dir.path());
    for (set, expected) in [
        ("utilization.bas=0.5", "unknown coefficient utilization.bas"),
        ("utilization.base=fast", "expected a number"),
        ("utilization.base=3", "from 0.005 to 1"),
        ("utilization.base", "expected PATH=VALUE"),
    ] {
        let assert = atlas(dir.path(), &["config", "profile", "--target", TARGET, "--set", set]).assert().failure();
        assert!(stderr(&assert).contains(expected), "{set}: {}", stderr(&assert));
    }
    assert!(!dir.path().join("workload/profiles").exists());
}
