//! A scenario that cannot run has no throughput, in any output format.

use serde_json::Value;

use crate::common::program::{atlas, stdout};

const CASES: [(&str, &str, &[&str]); 5] = [
    ("tpu-v5p-128", "llama3.1-8b-train", &["precision=tf32"]),
    ("h100-sxm-8", "llama3.1-70b-train", &[]),
    ("h100-sxm-8", "llama2-7b-dp8", &["prompt=100000"]),
    ("gb10-1", "llama3.1-70b-serve", &[]),
    ("h100-sxm-64", "llama3.1-70b-train", &["pp=4", "vpp=1", "dp=2", "global=6", "pp_schedule=dualpipe"]),
];

#[test]
fn infeasible_scenario_shows_no_throughput_latency_or_token_cost() {
    let dir = tempfile::tempdir().unwrap();
    for (target, workload, set) in CASES {
        let answer = |format: &str| {
            let mut command =
                atlas(dir.path(), &["run", "--target", target, "--workload", workload, "--format", format]);
            for assignment in set {
                command.args(["--set", assignment]);
            }
            stdout(&command.assert().code(0))
        };
        // Measured rows follow below, with their measured values.
        let text = answer("table");
        let (text, _) = text.split_once("evidence: ").unwrap();
        for part in ["verdict: ", "device memory"] {
            assert!(text.contains(part), "{target} {workload}: no {part}\n{text}");
        }
        for part in ["tokens/s  ", "MFU", "step time", "TTFT  ", "tokens/J", "$/1M tokens", "bottleneck", "time of "] {
            assert!(!text.contains(part), "{target} {workload}: {part}\n{text}");
        }
        let record: Value = serde_json::from_str(&answer("json")).unwrap();
        // JSON contains the values that would hold with enough memory, beside the verdict, but not those for an
        // unsupported number format.
        let format = record["record"]["detail"]["verdict"]["is"] == "format";
        for name in ["tokens_per_sec", "dollar_per_1k_tokens"] {
            assert_eq!(record["metrics"][name].is_null(), format, "{target} {workload} {name}");
        }
        assert_eq!(record["record"]["tokens_per_sec"].is_null(), format);
        assert_ne!(record["record"]["detail"]["verdict"]["is"], "fits");
        assert!(record["metrics"]["peak_mem_gb"].as_f64().unwrap() > 0.0);
        let csv = answer("csv");
        let mut rows = csv::Reader::from_reader(csv.as_bytes());
        let at = rows.headers().unwrap().iter().position(|name| name == "tokens_per_sec").unwrap();
        assert_eq!(&rows.records().next().unwrap().unwrap()[at], "");
    }
}

#[test]
fn optimize_omits_metrics_of_infeasible_starts_and_unsupported_formats() {
    let dir = tempfile::tempdir().unwrap();
    let answer = |target: &str, workload: &str, more: &[&str]| {
        let mut command = atlas(dir.path(), &["optimize", "--target", target, "--workload", workload]);
        stdout(&command.args(more).assert().code(0))
    };
    // The workload states two ranks, but there is one accelerator.
    let text = answer("m3-ultra-1", "gpt-oss-120b-serve", &[]);
    let row = |label: &str| text.lines().find(|line| line.starts_with(label)).unwrap().split("  ").collect::<Vec<_>>();
    for label in ["tokens/s ", "TTFT ", "$/1M tokens ", "tokens/J "] {
        assert_eq!(row(label).iter().filter(|cell| cell.trim() == "n/a").count(), 2, "{text}");
    }
    assert!(!row("memory ").iter().any(|cell| cell.trim() == "n/a"), "{text}");
    let text =
        answer("a100-sxm-80gb-8", "llama2-7b-dp8", &["--over", "precision=bf16,fp8,fp4", "--over", "microbatch=1,2"]);
    let without = text.lines().find(|line| line.starts_with("fits in memory and can run")).unwrap();
    assert!(without.contains("no better") && !without.contains("fp4") && !without.contains("fp8"), "{text}");
}

#[test]
fn post_training_defaults_come_from_the_training_workload() {
    let dir = tempfile::tempdir().unwrap();
    let step = |more: &[&str]| -> Value {
        let mut command = atlas(dir.path(), &["post-train", "--target", "h100-sxm-64", "--format", "json"]);
        command.args(["--train", "llama3.1-8b-rl-train"]).args(more);
        serde_json::from_str(&stdout(&command.assert().code(0))).unwrap()
    };
    let stated = step(&[]);
    assert_eq!(stated["rollout"], "llama3.1-8b-rl-rollout");
    assert_eq!(stated["step"]["sequences"], 128.0 * 8.0);
    // The command line takes precedence.
    assert_eq!(step(&["--prompts", "64", "--samples", "16"])["step"]["sequences"], 64.0 * 16.0);
    assert!(step(&["--scorers", "0"])["step"]["scoring_s"] == 0.0);
    let mut unnamed = atlas(dir.path(), &["post-train", "--target", "h100-sxm-64", "--train", "llama3.1-8b-train"]);
    assert!(crate::common::program::stderr(&unnamed.assert().code(2)).contains("--rollout is required"));
}
