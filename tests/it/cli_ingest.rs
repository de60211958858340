//! `atlas ingest`, through the real binary.

use crate::common::program::{atlas, stderr, stdout};
use serde_json::Value;

/// A directory with two logs, one of them compressed, and a file that is not a log.
fn logs() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs");
    std::fs::create_dir(dir.path().join("logs")).unwrap();
    for (name, to) in [
        ("megatron/gpt_7b_1node_tflops.log.gz", "logs/train.log.gz"),
        ("vllm_bench/gptoss120b_h200_tp8_c64.json.gz", "logs/bench.json.gz"),
        ("nvidia_smi/gptoss120b_h200_tp8_c64_gpu_metrics.csv.gz", "logs/power.csv.gz"),
    ] {
        std::fs::copy(from.join(name), dir.path().join(to)).unwrap();
    }
    std::fs::write(dir.path().join("logs/notes.txt"), "remember the milk\n").unwrap();
    dir
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn log_reports_list_missing_fields_and_sources() {
    let dir = logs();
    let text = stdout(&atlas(dir.path(), &["ingest", "logs/train.log.gz"]).assert().code(0));
    for expected in ["megatron-current", "step_time_s", "not in the log: seq_len", "17 lines: 10 read", "12/DP"] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn set_values_and_workload_complete_the_measurement() {
    let dir = logs();
    let args = ["ingest", "logs/train.log.gz", "--set", "seq_len=4096", "--format", "benchmark"];
    let run = json(&stdout(&atlas(dir.path(), &args).assert().code(0)));
    let rate = run["performance_metrics"]["tokens_per_second"].as_f64().unwrap();
    assert!((rate - 1024.0 * 4096.0 / 12.084_988_9).abs() < 0.1, "{rate}");
    assert_eq!(run["performance_metrics"]["tokens_per_second_per_gpu"].as_f64().unwrap(), rate / 8.0);
    assert_eq!(run["step_times"].as_array().unwrap().len(), 10);
    // A workload fills in what neither log nor user states, and nothing else.
    let args = ["ingest", "logs/train.log.gz", "--workload", "gpt5_1t_train", "--format", "json"];
    let got = json(&stdout(&atlas(dir.path(), &args).assert().code(0)));
    assert_eq!(got["origins"]["seq_len"], "workload");
    assert_eq!((got["facts"]["num_gpus"].as_u64(), got["facts"]["global_batch_size"].as_u64()), (Some(8), Some(1024)));
    // The other warm-up rules.
    for (rule, dropped) in [("change-point", 1), ("0", 0), ("3", 3)] {
        let args = ["ingest", "logs/train.log.gz", "--format", "json", "--warmup", rule];
        let facts = json(&stdout(&atlas(dir.path(), &args).assert().code(0)))["facts"].clone();
        assert_eq!(facts["step_time_s"]["warmup_dropped"], dropped, "{rule}");
    }
}

#[test]
fn directory_ingest_reads_each_file_and_joins_power_with_the_benchmark() {
    let dir = logs();
    let assert = atlas(dir.path(), &["ingest", "logs", "--format", "json"]).assert().code(0);
    let all = json(&stdout(&assert));
    let formats: Vec<&str> = all.as_array().unwrap().iter().map(|file| file["format"].as_str().unwrap()).collect();
    assert_eq!(formats, ["vllm-bench-json", "nvidia-smi-csv", "megatron-current"]);
    let joint = &all[1]["facts"]["joint_with_vllm_bench"];
    assert!((joint["joule_per_output_token"].as_f64().unwrap() - 0.798_144_073).abs() < 1e-6, "{joint}");
    assert!(stderr(&assert).contains("skipped: logs/notes.txt:1:1: no known format"), "{}", stderr(&assert));
    let yaml = stdout(&atlas(dir.path(), &["ingest", "logs", "--format", "yaml"]).assert().code(0));
    assert!(yaml.starts_with("measurements:\n") && yaml.contains("missing:"), "{yaml}");
}

#[test]
fn a_stream_is_read_from_stdin() {
    let dir = logs();
    let bytes = std::fs::read(dir.path().join("logs/train.log.gz")).unwrap();
    let assert = atlas(dir.path(), &["ingest", "-", "--format", "json"]).write_stdin(bytes).assert().code(0);
    let got = json(&stdout(&assert));
    assert_eq!((got["file"].as_str(), got["facts"]["n_records"].as_u64()), (Some("stdin"), Some(10)));
}

#[test]
fn ingest_errors_state_the_cause_and_the_expected_input() {
    let dir = logs();
    for (args, code, expected) in [
        (&["ingest", "logs/notes.txt"][..], 1, "format in 1 lines; the file begins with \"remember the milk\""),
        (&["ingest", "nowhere.log"], 1, "nowhere.log: cannot be read"),
        (&["ingest"], 2, "PATH is missing"),
        (&["ingest", "logs", "--set", "seq_lenn=1"], 2, "did you mean seq_len?"),
        (&["ingest", "logs", "--set", "seq_len"], 2, "expected NAME=VALUE"),
        (&["ingest", "logs", "--warmup", "some"], 2, "expected first, change-point"),
        (&["ingest", "logs/power.csv.gz", "--format", "benchmark"], 1, "no training run"),
    ] {
        let error = stderr(&atlas(dir.path(), args).assert().code(code));
        assert!(error.contains(expected), "{args:?}: {error}");
    }
    let formats = stdout(&atlas(dir.path(), &["ingest", "--formats"]).assert().code(0));
    assert!(formats.contains("nccl-tests") && formats.contains("Zeus"));
}

#[test]
fn compare_measured_lists_runs_with_cost_metrics_and_a_prediction() {
    let dir = logs();
    let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs");
    std::fs::copy(from.join("tprimat/train_amd_prim_llama.json.gz"), dir.path().join("amd.json.gz")).unwrap();
    let ingest = ["ingest", "logs/train.log.gz", "--set", "seq_len=4096", "--set", "device=NVIDIA H200"];
    let ingest = [&ingest[..], &["--format", "benchmark", "--out", "nvd.json"]].concat();
    atlas(dir.path(), &ingest).assert().code(0);
    let args = ["compare", "--measured", "amd.json.gz", "logs/power.csv.gz", "nvd.json", "--model", "8e9"];
    let args = [&args[..], &["--usd-per-gpu-hour", "3", "--budget", "15e12", "--format", "json"]].concat();
    let all = json(&stdout(&atlas(dir.path(), &args).assert().code(0)));
    let figure = |run: usize, name: &str| {
        let figures = all["measured"][run]["figures"].as_array().unwrap();
        let found = figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{name}"));
        found["value"].as_f64().unwrap_or(f64::NAN)
    };
    // The tool that wrote the file states 6742.94459; 6 x 8e9 FLOP per token, peak 1307.4 TFLOP/s; 8 x 750 W; 8 x 3
    // $/h.
    assert!((figure(0, "tokens/s/accelerator") - 6742.94459).abs() < 0.01);
    assert!((figure(0, "MFU %") - 6742.94459 * 48e9 / 1307.4e12 * 100.0).abs() < 1e-3);
    assert!((figure(0, "tokens/Wh by TDP") - 53943.557 * 3600.0 / 6000.0).abs() < 1.0);
    assert!((figure(0, "tokens/Wh as drawn") - 53943.557 * 3600.0 / 2_403.620_24).abs() < 1.0);
    assert!((figure(0, "tokens/$") - 53943.557 * 3600.0 / 24.0).abs() < 10.0);
    assert!((figure(0, "days for the budget") - 15e12 / 53943.557 / 86400.0).abs() < 1e-2);
    assert!((figure(1, "tokens/s") - 1024.0 * 4096.0 / 12.084_988_9).abs() < 0.1);
    assert!(all["measured"][0]["notes"].to_string().contains("the loss falls below 0.05"));

    let args =
        ["compare", "--measured", "amd.json.gz", "--target", "NVIDIA_H100_8x_NVLink", "--workload", "gpt5_1t_train"];
    let text = stdout(&atlas(dir.path(), &args).assert().code(0));
    assert!(text.contains("prediction / measurement, %") && text.contains("AMD Instinct MI300X"), "{text}");
    for (args, code, expected) in [
        (&["compare", "--measured", "logs/bench.json.gz"][..], 1, "found serving, expected a training run"),
        (&["compare", "--measured", "amd.json.gz", "--model", "nonsense-1b"], 2, "--model"),
        (&["compare", "--model", "8e9"], 2, "--measured"),
        (&["compare", "--measured", "amd.json.gz", "--usd-per-kwh", "0"], 2, "expected a number above 0"),
    ] {
        let error = stderr(&atlas(dir.path(), args).assert().code(code));
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}
