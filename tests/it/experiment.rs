//! Experiments of the predecessor comparison tool: loaded, checked, shown, exported, compared.

use std::path::Path;
use std::process::Command;

use crate::common::program::{ROOT, atlas};
use atlas_config::library::Library;
use atlas_core::plan::Methodology;
use atlas_document::Sources;
use atlas_plan::engine;
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use serde_json::Value;

fn example() -> String {
    std::fs::read_to_string(Path::new(ROOT).join("examples/config.yaml")).unwrap()
}

/// Runs the program with a document in place of the example.
fn described(text: &str, args: &[&str], set: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.yaml"), text).unwrap();
    let mut command = atlas(dir.path(), args);
    command.env_remove("PRIMUS_PATH").envs(set.iter().copied());
    let out = command.output().unwrap();
    (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
}

fn library(text: &str) -> Library {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.yaml");
    std::fs::write(&path, text).unwrap();
    Library::load(&Sources { config: Some(path), ..Sources::built_in() }, None)
}

fn knobs(library: &Library, target: &str, workload: &str, wanted: &[Knob]) -> Vec<String> {
    let parts = Parts::find(library, target, workload).unwrap();
    let scenario = Scenario::resolve(&parts, &Overrides::new()).unwrap();
    wanted.iter().map(|knob| scenario.get(*knob).to_string()).collect()
}

const CUT: [Knob; 5] = [Knob::Tp, Knob::Pp, Knob::Dp, Knob::Precision, Knob::Recompute];

#[test]
fn platforms_models_and_parallelism_map_to_targets_workloads_and_knobs() {
    let mut library = library(&example());
    assert_eq!(library.problems().errors(), 0, "{}", library.problems());
    let names: Vec<&str> = library.targets().iter().map(|target| &*target.name).collect();
    assert_eq!(names, ["nvidia", "amd"]);
    let names: Vec<&str> = library.workloads().iter().map(|workload| &*workload.name).collect();
    assert_eq!(names, ["llama", "qwen"]);
    assert_eq!(library.methodology(), Some(Methodology::MaximumPerformance));
    assert_eq!(knobs(&library, "nvidia", "llama", &CUT), ["4", "1", "2", "fp8", "full"]);
    assert_eq!(knobs(&library, "amd", "llama", &CUT), ["1", "1", "8", "bf16", "none"]);
    assert_eq!(knobs(&library, "nvidia", "qwen", &CUT), ["4", "2", "1", "fp8", "full"]);
    // With identical knobs for all, platform-specific settings are omitted.
    library.compare_by(Methodology::IdenticalConfig);
    for target in ["nvidia", "amd"] {
        assert_eq!(knobs(&library, target, "llama", &CUT), ["4", "1", "2", "bf16", "auto"]);
    }
    let wanted = [Knob::Microbatch, Knob::Global, Knob::Prompt, Knob::TrainTokens, Knob::HourlyUsd];
    assert_eq!(knobs(&library, "amd", "llama", &wanted), ["1", "128", "2048", "2621440", "24"]);
    // Built-in entries are still found by name, but not listed.
    assert!(library.target("h100-sxm-8").is_ok());
    let parts = Parts::find(&library, "nvidia", "llama").unwrap();
    let estimate = engine::estimate(&Scenario::from_files(&parts));
    assert!(estimate.detail.unwrap().verdict.fits() && estimate.total.tokens_per_sec > 1e4);
}

#[test]
fn workload_directory_may_contain_an_experiment_config() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.yaml"), example()).unwrap();
    let sources = Sources { workload_dir: Some(dir.path().to_owned()), ..Sources::built_in() };
    let library = Library::load(&sources, None);
    assert_eq!(library.targets().len(), 2);
    assert_eq!(knobs(&library, "amd", "qwen", &CUT), ["1", "1", "8", "bf16", "none"]);
    // A broken file keeps the last valid state.
    std::fs::write(dir.path().join("config.yaml"), example().replace("DP: 8", "DP: 7")).unwrap();
    let again = Library::load(&sources, Some(&library));
    assert!(again.problems().errors() >= 2);
    assert_eq!(knobs(&again, "amd", "qwen", &CUT), ["1", "1", "8", "bf16", "none"]);
}

#[test]
fn every_experiment_problem_is_reported_with_line_and_column() {
    let text = example()
        .replace("gpu_model: MI300X", "gpu_model: MI999Z")
        .replace(
            "llama:\n      nvidia: { TP: 4, PP: 1, DP: 2 }\n      amd:    { TP: 1, PP: 1, DP: 8 }",
            "llama:\n      nvidia: { TP: 3, PP: 1, DP: 2 }\n      amdd:    { TP: 1, PP: 1, DP: 8 }",
        )
        .replace("gradient_accumulation_steps: 128", "gradient_accumulation_steps: 64")
        .replace("seq_length: 2048", "seq_length: long")
        .replace("methodology: maximum_performance", "methodology: best")
        .replace("${PRIMUS_PATH:-/workspace/Primus}", "${PRIMUS_PATH}");
    let (code, _, problems) = described(&text, &["compare", "--config", "config.yaml"], &[]);
    assert_eq!(code, Some(1));
    for wanted in [
        "config.yaml:11:16: error: experiment.methodology: found \"best\"",
        "config.yaml:22:18: error: hardware.platforms.amd.gpu_model: the catalog has no accelerator named \"MI999Z\"",
        "config.yaml:49:17: error: training.data.seq_length: found text \"long\"",
        "config.yaml:67:15: error: parallelism.maximum_performance.llama.nvidia: TP 3 x PP 1 x DP 2 = 6, but nvidia has 8 GPUs",
        "config.yaml:67:21: error: parallelism.maximum_performance.llama.nvidia: TP 3 does not divide the 32 attention heads",
        "config.yaml:68:7: error: parallelism.maximum_performance.llama.amdd: no platform `amdd`",
        "did you mean `amd`?",
        "MBS 1 x DP 1 x GA 64 = 64, but the global batch is 128; set GA to 128 to match the global batch",
        "the environment variable PRIMUS_PATH is not set, and there is no default",
    ] {
        assert!(problems.contains(wanted), "{wanted} in:\n{problems}");
    }
    // `check` reports the same, with source lines.
    let (code, answer, again) = described(&text, &["check", "config.yaml"], &[]);
    assert!(code == Some(1) && answer.contains("experiment") && again.contains("TP 3 x PP 1 x DP 2 = 6"), "{again}");
}

#[test]
fn experiment_that_exceeds_memory_gets_a_warning() {
    let text = example()
        .replace("micro_batch_size: 1", "micro_batch_size: 64")
        .replace("activation_checkpointing: true", "activation_checkpointing: false")
        .replace("gradient_accumulation_steps: 128", "gradient_accumulation_steps: 2")
        .replace("global_batch_size: 128", "global_batch_size: 512")
        .replace("gradient_accumulation_steps: 2", "gradient_accumulation_steps: 8")
        .replace("seq_length: 2048", "seq_length: 8192");
    let (code, _, problems) = described(&text, &["config", "show"], &[]);
    assert_eq!(code, Some(0), "{problems}");
    assert!(
        problems.contains("warning: parallelism.maximum_performance.llama.nvidia: does not fit: needs"),
        "{problems}"
    );
}

#[test]
fn config_show_prints_values_with_origins_in_every_format() {
    let (_, table, _) = described(&example(), &["config", "show"], &[]);
    assert!(table.contains("default of PRIMUS_PATH, config.yaml:117:19"), "{table}");
    let (_, json, _) =
        described(&example(), &["config", "show", "config.yaml", "--format", "json"], &[("PRIMUS_PATH", "/opt/p")]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["config"]["paths"]["primus"]["installation"], "/opt/p");
    assert_eq!(json["from"]["paths.primus.installation"], "environment PRIMUS_PATH, config.yaml:117:19");
    assert_eq!(json["config"]["training"]["duration"]["train_iters"], 10);
    assert_eq!(json["config"]["parallelism"]["maximum_performance"]["llama"]["amd"]["gradient_accumulation_steps"], 16);
    assert_eq!(json["from"]["training.duration.train_iters"], "= max_steps");
    // The YAML output is a valid document with the same content.
    let (_, yaml, _) = described(&example(), &["config", "show", "--format", "yaml"], &[]);
    let (code, again, problems) = described(&yaml, &["config", "show", "--format", "json"], &[]);
    assert_eq!(code, Some(0), "{problems}");
    let again: Value = serde_json::from_str(&again).unwrap();
    let (_, first, _) = described(&example(), &["config", "show", "--format", "json"], &[]);
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(again["config"], first["config"]);
}

#[test]
fn shell_export_quotes_arbitrary_values() {
    let evil = "it's $(touch hacked) `id` \"x\" \\ ; # *\n two  spaces";
    let text = example().replace("${PRIMUS_PATH:-/workspace/Primus}", "${EVIL:-none}");
    let dir = tempfile::tempdir().unwrap();
    let (code, exported, problems) = described(
        &text,
        &["config", "export", "--shell", "config.yaml", "--model", "llama", "--platform", "amd"],
        &[("EVIL", evil)],
    );
    assert_eq!(code, Some(0), "{problems}");
    assert!(exported.contains("export CONFIG_TRAIN_ITERS=10\n"), "{exported}");
    let script = format!(
        "{exported}printf '%s|' \"$CONFIG_PRIMUS_PATH\" \"$CONFIG_TRAIN_ITERS\" \"$CONFIG_GLOBAL_BATCH_SIZE\" \
         \"$CONFIG_SEQ_LENGTH\" \"$CONFIG_LEARNING_RATE\" \"$CONFIG_MIN_LEARNING_RATE\" \"$CONFIG_WARMUP_STEPS\" \
         \"$CONFIG_TP\" \"$CONFIG_DP\" \"$CONFIG_LLAMA_NVIDIA_TP\" \"$CONFIG_NUM_GPUS\" \
         \"$CONFIG_TRAINING_DATA_MICRO_BATCH_SIZE\" \"$CONFIG_GRADIENT_ACCUMULATION_STEPS\""
    );
    let out = Command::new("sh").arg("-c").arg(script).current_dir(dir.path()).output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(said, format!("{evil}|10|128|2048|0.0003|0.00003|10|1|8|4|8|1|16|"));
    assert!(!dir.path().join("hacked").exists());
    let (code, _, problems) = described(&text, &["config", "export", "--shell", "--model", "lama"], &[]);
    assert!(code == Some(2) && problems.contains("did you mean `llama`?"), "{problems}");
}

#[test]
fn compare_uses_the_methodology_of_the_experiment_by_default() {
    let json = |method: &[&str]| -> Value {
        let args = ["compare", "--config", "config.yaml", "--workload", "llama", "--format", "json"];
        let (code, answer, problems) = described(&example(), &[&args[..], method].concat(), &[]);
        assert_eq!(code, Some(0), "{problems}");
        serde_json::from_str(&answer).unwrap()
    };
    let (own, identical) = (json(&[]), json(&["--methodology", "identical-config"]));
    assert_eq!(own["methodology"], "maximum-performance");
    assert_eq!(identical["methodology"], "identical-config");
    assert_eq!(own, json(&["--methodology", "maximum-performance"]));
    assert_ne!(own, identical);
    // Without `--target`, the experiment's two targets are compared, and a run uses their knobs.
    let args = ["run", "--config", "config.yaml", "--workload", "llama", "--target", "amd", "--format", "json"];
    let (code, answer, problems) = described(&example(), &args, &[]);
    assert_eq!(code, Some(0), "{problems}");
    let run: Value = serde_json::from_str(&answer).unwrap();
    assert!(run.to_string().contains("tokens_per_sec"));
    let library = library(&example());
    let parts = Parts::find(&library, "amd", "llama").unwrap();
    let mut turned = Overrides::new();
    turned.insert(Knob::Tp, Setting::Number(4.0));
    turned.insert(Knob::Dp, Setting::Number(2.0));
    let slower = engine::estimate(&Scenario::resolve(&parts, &turned).unwrap());
    let own = engine::estimate(&Scenario::from_files(&parts));
    assert!(slower.total.tokens_per_sec < own.total.tokens_per_sec);
}

/// A run in the comparison tool's format, with a given step time and throughput.
fn measured(device: &str, seconds: f64, rate: f64) -> Value {
    let steps = 40;
    serde_json::json!({
        "platform": "nvd",
        "gpu_info": {"device_count": 8, "device_name": device},
        "parallelism_config": {
            "tensor_model_parallel_size": 4, "pipeline_model_parallel_size": 1, "data_parallel_size": 2
        },
        "training_config": {"global_batch_size": 128, "micro_batch_size": 1, "sequence_length": 2048, "num_gpus": 8},
        "performance_metrics": {
            "avg_step_time_seconds": seconds, "tokens_per_second": 128.0 * 2048.0 / seconds,
            "tokens_per_second_per_gpu": 128.0 * 256.0 / seconds
        },
        "memory_metrics": {"avg_memory_allocated_gb": 22.3, "peak_memory_allocated_gb": 24.0},
        "step_times": vec![seconds; steps],
        "loss_values": (0..steps).map(|step| 11.0 - 0.1 * step as f64).collect::<Vec<_>>(),
        "learning_rates": vec![rate; steps],
    })
}

#[test]
fn measured_runs_are_compared_with_predictions_error_and_interval() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, value: &Value| std::fs::write(dir.path().join(name), value.to_string()).unwrap();
    write("benchmark_cuda_llama.json", &measured("NVIDIA H100 80GB HBM3", 6.4, 3e-4));
    write("benchmark_rocm_llama.json", &measured("AMD Instinct MI300X", 3.0, 1e-5));
    std::fs::write(dir.path().join("config.yaml"), example()).unwrap();
    let files = ["compare", "--measured", "benchmark_cuda_llama.json", "benchmark_rocm_llama.json"];
    let run = |more: &[&str]| {
        let out = atlas(dir.path(), &[&files[..], more].concat()).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let json =
        |more: &[&str]| -> Value { serde_json::from_str(&run(&[more, &["--format", "json"]].concat())).unwrap() };

    // With the settings of the files and the flag.
    let all = json(&["--model", "llama-3.1-8b"]);
    for (index, seconds) in [(0, 6.4), (1, 3.0)] {
        let predicted = &all["measured"][index]["predicted"];
        let (rate, step) = (&predicted["tokens_per_second"], &predicted["step_time_s"]);
        let number = |value: &Value, name: &str| value[name].as_f64().unwrap();
        assert_eq!(predicted["engine"], "analytical");
        assert!((number(rate, "measured") - 128.0 * 2048.0 / seconds).abs() < 1e-6);
        let error = (number(rate, "value") / number(rate, "measured") - 1.0) * 100.0;
        assert!((number(rate, "error_percent") - error).abs() < 1e-9);
        assert!(number(rate, "low") < number(rate, "value") && number(rate, "value") < number(rate, "high"));
        let inside = (number(rate, "low")..=number(rate, "high")).contains(&number(rate, "measured"));
        assert_eq!(rate["within"], inside);
        // Step time is the batch divided by the throughput, also at the ends of the interval.
        assert!((number(step, "value") * number(rate, "value") / (128.0 * 2048.0) - 1.0).abs() < 1e-9);
        assert!((number(step, "low") * number(rate, "high") / (128.0 * 2048.0) - 1.0).abs() < 1e-9);
        assert!(number(&predicted["memory_gb"], "error_percent").is_finite());
    }
    // Runs whose learning rates differ by a factor of thirty are no fair comparison.
    let notes = all["measured"][1]["notes"].to_string();
    assert!(notes.contains("peak learning rate") && notes.contains("x0.0333"), "{notes}");
    assert!(!all["measured"][0]["notes"].to_string().contains("peak learning rate"));

    // The experiment provides model and price. The prediction is for the run as it was made, even where it deviates
    // from the experiment.
    let own = json(&["--config", "config.yaml"]);
    assert_eq!(
        own["measured"][1]["predicted"]["tokens_per_second"],
        all["measured"][1]["predicted"]["tokens_per_second"]
    );
    let notes = own["measured"][1]["notes"].to_string();
    assert!(notes.contains("the run used tensor_model_parallel_size 4, but config.yaml states 1"), "{notes}");
    assert!(notes.contains("3.00 $/h per accelerator: config.yaml"), "{notes}");
    assert!(!own["measured"][0]["notes"].to_string().contains("the run used tensor_model_parallel_size"));

    // Without a model there is no prediction, which a note states.
    let none = json(&[]);
    assert!(none["measured"][0]["notes"].to_string().contains("no prediction: the file does not name the model"));

    run(&["--model", "llama-3.1-8b", "--out", "report.html"]);
    let html = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(html.matches("<svg").count() >= 6, "throughput, memory, step time, loss, learning rate");
    run(&["--model", "llama-3.1-8b", "--out", "report.md"]);
    let markdown = std::fs::read_to_string(dir.path().join("report.md")).unwrap();
    for title in ["tokens-s-of-all-accelerators", "peak-memory-of-an-accelerator-gb", "step-time", "loss"] {
        assert!(markdown.contains(&format!("](report-{title}.svg)")), "{title} in {markdown}");
        assert!(dir.path().join(format!("report-{title}.svg")).exists());
    }
    assert!(run(&["--model", "llama-3.1-8b"]).contains("90 % interval"));
}
