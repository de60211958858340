//! A scenario that cannot run has no throughput, in any output format.

use serde_json::Value;

use crate::common::program::{atlas, stderr, stdout};

const CASES: [(&str, &str, &[&str]); 6] = [
    ("v100-sxm-8", "llama3.1-70b-serve", &[]),
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
        // JSON contains the values that would hold with enough memory, beside the verdict, but not those for a number
        // format that training does not support. Published runs that the estimate does not let fit need them.
        let format = record["record"]["detail"]["verdict"]["is"] == "format";
        for name in ["tokens_per_sec", "dollar_per_1k_tokens"] {
            assert_eq!(record["metrics"][name].is_null(), format, "{target} {workload} {name}");
        }
        assert_eq!(record["record"]["tokens_per_sec"].is_null(), format);
        assert_ne!(record["record"]["detail"]["verdict"]["is"], "fits");
        assert!(record["metrics"]["peak_mem_gb"].as_f64().unwrap() > 0.0);
        let csv = answer("csv");
        let mut rows = csv::Reader::from_reader(csv.as_bytes());
        let head = rows.headers().unwrap().clone();
        let row = rows.records().next().unwrap().unwrap();
        let cell = |column: &str| row[head.iter().position(|name| name == column).unwrap()].to_owned();
        for column in ["tokens_per_sec", "dollar_per_1m_tokens", "dollar_per_1k_tokens_parity"] {
            assert_eq!(cell(column), "", "{target} {workload} {column}");
        }
        assert!(!["", "fits"].contains(&cell("verdict").as_str()), "{target} {workload}");
    }
}

#[test]
fn every_view_of_an_infeasible_scenario_is_empty_or_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let pair = ["--target", "v100-sxm-8", "--workload", "llama3.1-70b-serve"];
    let run = |command: &[&str], more: &[&str]| atlas(dir.path(), &[command, &pair, more].concat()).assert();
    let refusals: [(&[&str], &[&str]); 4] = [
        (&["explain", "dollar_per_1m_tokens"], &[]),
        (&["sensitivity"], &["--metric", "cost"]),
        (&["frontier"], &[]),
        (&["break-even"], &["--set", "capex_usd_node=100000"]),
    ];
    for (command, more) in refusals {
        let outcome = run(command, more).failure();
        let text = stderr(&outcome);
        assert!(text.contains("no kernels for fp8") && stdout(&outcome).is_empty(), "{command:?}: {text}");
    }
    // The memory that it would need is known.
    run(&["explain", "peak_mem_gb"], &[]).success();
    let sweep = stdout(&run(&["sweep"], &["--over", "tp=4,8", "--metrics", "throughput,cost,memory_fill"]).success());
    for row in sweep.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        assert!(cells[3].is_empty() && cells[4].is_empty() && !cells[5].is_empty(), "{row}");
        assert!(row.ends_with(",format"), "{row}");
    }
    let lines = dir.path().join("batch.jsonl");
    std::fs::write(&lines, r#"{"id": 1, "target": "v100-sxm-8", "workload": "llama3.1-70b-serve"}"#).unwrap();
    let batch = stdout(&atlas(dir.path(), &["run", "--batch", lines.to_str().unwrap()]).assert().success());
    let answer: Value = serde_json::from_str(&batch).unwrap();
    assert_eq!(answer["record"]["detail"]["verdict"]["is"], "software_format");
    let study = dir.path().join("study.md");
    run(&["report"], &["--out", study.to_str().unwrap()]).success();
    let study = std::fs::read_to_string(study).unwrap();
    let rate = study.lines().find(|line| line.starts_with("| tokens/s |"));
    assert!(rate.is_none_or(|line| line.contains('–')), "{rate:?}");
    // A record without metrics does not stop the report of the others.
    run(&["run"], &[]).success();
    run(&["run"], &["--set", "precision=fp16", "--set", "tp=8", "--set", "seed=1"]).success();
    let records = atlas(dir.path(), &["report", "--format", "csv"]).assert().success();
    assert_eq!(stdout(&records).lines().count(), 2);
    assert!(stderr(&records).contains("the scenario cannot run"), "{}", stderr(&records));
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
    assert_eq!(step(&["--prompts", "64", "--responses", "16"])["step"]["sequences"], 64.0 * 16.0);
    assert!(step(&["--scorers", "0"])["step"]["scoring_s"] == 0.0);
    let mut priced = atlas(dir.path(), &["post-train", "--target", "h100-sxm-64", "--train", "llama3.1-8b-rl-train"]);
    let refused = crate::common::program::stderr(&priced.args(["--rollout-set", "hourly_usd=10"]).assert().code(2));
    assert!(refused.contains("set it with --set"), "{refused}");
    let mut unnamed = atlas(dir.path(), &["post-train", "--target", "h100-sxm-64", "--train", "llama3.1-8b-train"]);
    assert!(crate::common::program::stderr(&unnamed.assert().code(2)).contains("--rollout is required"));
}

#[test]
fn missing_price_is_named_and_never_zero() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| atlas(dir.path(), args).assert();
    let target = ["--target", "h20-8", "--workload", "llama3.1-8b-serve"];
    let on = |command: &str, more: &[&str]| run(&[&[command], &target[..], more].concat());
    let frontier: Value = serde_json::from_str(&stdout(&on("frontier", &["--format", "json"]).code(0))).unwrap();
    assert!(frontier["targets"][0]["points"][0]["dollar_per_1m_tokens"].is_null(), "{frontier}");
    assert!(stdout(&on("frontier", &[]).code(0)).contains("n/a"));
    let study = dir.path().join("study.md");
    on("report", &["--out", study.to_str().unwrap()]).code(0);
    assert!(std::fs::read_to_string(&study).unwrap().contains("8 accelerators, no price."));
    let step = ["post-train", "--target", "h20-8", "--train", "llama3.1-8b-rl-train"];
    assert!(stdout(&run(&step).code(0)).contains("no price: set cost.hourly_usd"));
    let json: Value =
        serde_json::from_str(&stdout(&run(&[&step[..], &["--format", "json"]].concat()).code(0))).unwrap();
    assert!(json["step"]["usd_per_step"].is_null(), "{json}");
    for (command, more) in [
        ("optimize", ["--objective", "cost"].as_slice()),
        ("sensitivity", &["--metric", "cost"]),
        ("advise", &["--objective", "cost"]),
        ("explain", &["dollar_per_1m_tokens"]),
    ] {
        let refused = crate::common::program::stderr(&on(command, more).code(2));
        assert!(refused.contains("no price: set cost.hourly_usd"), "{command}: {refused}");
    }
}
