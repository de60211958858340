//! `atlas simulate` and `atlas scale`, through the real binary.

use crate::common::trace;

use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use crate::common::program::{atlas, stderr, stdout};
use serde_json::Value;

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn run(dir: &Path, args: &[&str]) -> String {
    stdout(&atlas(dir, args).assert().code(0))
}

fn json(dir: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&run(dir, &[args, &["--format", "json"]].concat())).unwrap()
}

fn file(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

const SERVE: [&str; 5] = ["simulate", "--target", "h100-sxm-8", "--workload", "llama3.1-8b-serve"];
const TRAIN: [&str; 5] = ["simulate", "--target", "h100-sxm-64", "--workload", "llama3.1-8b-train"];

/// Checks the signature of the PNG, and that the SVG is a single element.
fn is_picture(dir: &Path, name: &str) {
    let png = std::fs::read(dir.join(format!("{name}.png"))).unwrap();
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n", "{name}");
    let svg = std::fs::read_to_string(dir.join(format!("{name}.svg"))).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>") && svg.contains("<style>"), "{name}");
    assert_eq!(svg.matches("<svg").count(), 1, "{name}");
}

#[test]
fn presets_write_all_outputs_and_the_written_config_reproduces_them() {
    let dir = temp();
    for preset in ["small", "medium", "large"] {
        let out = dir.path().join(preset);
        let out_text = out.to_str().unwrap();
        let first = json(dir.path(), &["simulate", "--preset", preset, "--steps", "4", "--out", out_text]);
        assert_eq!(first, file(&out.join(format!("{preset}_scale_experiment_results.json"))));
        assert_eq!(first["bottlenecks"], file(&out.join(format!("{preset}_scale_experiment_bottlenecks.json"))));
        for name in ["iteration_breakdown", "resource_utilization", "iteration_times", "memory_over_step"] {
            is_picture(&out, &format!("{preset}_scale_experiment_{name}"));
        }
        let config = out.join(format!("{preset}_scale_experiment_config.yaml"));
        let again = json(dir.path(), &["simulate", "--config", config.to_str().unwrap()]);
        assert_eq!(first, again, "{preset}");
        // The parts sum to the whole, and the predecessor's names are present.
        let parts: f64 = first["breakdown"].as_object().unwrap().values().map(number).sum();
        let summary = &first["summary"];
        assert!((parts / number(&summary["avg_iteration_time"]) - 1.0).abs() < 1e-9);
        assert_eq!(first["iterations"].as_array().unwrap().len(), 4);
        for name in ["min_iteration_time", "max_iteration_time", "communication_overhead_ratio", "compute_efficiency"] {
            assert!(number(&summary[name]) >= 0.0, "{name}");
        }
        let kinds: Vec<&str> =
            first["bottlenecks"].as_array().unwrap().iter().map(|b| b["type"].as_str().unwrap()).collect();
        assert!(["compute", "memory", "network"].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    }
}

#[test]
fn scenarios_that_cannot_run_are_refused_by_simulate() {
    let dir = temp();
    for (target, workload, reason) in [
        ("h100-sxm-8", "llama3.1-405b-train", "tp × pp × cp × dp needs 128 accelerators; the target has 8"),
        ("v100-sxm-8", "llama3.1-70b-serve", "no kernels for fp8"),
        ("h100-sxm-1024", "llama3-70b-qlora", "128"),
        ("gb10-1", "llama3.1-70b-serve", "needs 4 accelerators; the target has 1"),
    ] {
        let outcome = atlas(dir.path(), &["simulate", "--target", target, "--workload", workload]).assert().failure();
        let text = stderr(&outcome);
        assert!(text.contains(&format!("{target} × {workload}: ")) && text.contains(reason), "{text}");
        assert!(stdout(&outcome).is_empty());
    }
}

/// All configurations of the predecessor simulator in our test data load unchanged and run. Results are compared with
/// the predecessor's where those are correct, with each deviation described:
///
/// * samples per run: equal;
/// * parameters of a transformer: ours include the embedding, positions, norms and biases, theirs the layers and one
///   projection;
/// * communication: ours is the part that the backward pass does not hide, theirs is all of it; the reduction alone is
///   compared with theirs in `event_goldens.rs`;
/// * compute time: ours grows with the batch, theirs is that of one sequence, at full peak;
/// * ResNet-50 has 25.6 million parameters, theirs half of that.
#[test]
fn predecessor_configurations_load_unchanged() {
    let mut text = String::new();
    let goldens = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/workload_sim.json.gz")).unwrap();
    flate2::read::GzDecoder::new(goldens).read_to_string(&mut text).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let dir = temp();
    let cases: Vec<&Value> = all["cases"].as_array().unwrap().iter().filter(|c| c["kind"] == "simulation").collect();
    assert!(cases.len() > 50);
    for case in cases.iter().step_by(3) {
        let (input, expected) = (&case["inputs"], &case["expected"]);
        let mut config = input.clone();
        config["output_directory"] = Value::Null;
        let path = dir.path().join("predecessor.yaml");
        std::fs::write(&path, serde_json::to_string_pretty(&config).unwrap()).unwrap();
        let found = json(dir.path(), &["simulate", "--config", path.to_str().unwrap()]);
        let id = &case["id"];
        assert_eq!(
            number(&found["summary"]["total_samples_processed"]),
            number(&expected["summary"]["total_samples_processed"]),
            "{id}"
        );
        let parameters = number(&found["model_info"]["total_parameters"]);
        if input["model"]["model_type"] == "transformer" {
            let (layers, hidden) = (number(&input["model"]["num_layers"]), number(&input["model"]["hidden_size"]));
            let embedding =
                (number(&input["model"]["vocab_size"]) + number(&input["model"]["sequence_length"])) * hidden;
            // 12 h² per layer plus 13 h for norms and biases, as in GPT-2.
            let counted = layers * (12.0 * hidden * hidden + 13.0 * hidden) + embedding + 2.0 * hidden;
            assert!((parameters / counted - 1.0).abs() < 0.01, "{id}: {parameters} {counted}");
        } else {
            assert!((parameters / 25_557_032.0 - 1.0).abs() < 0.01, "{id}: {parameters}");
        }
        let time = number(&found["summary"]["avg_iteration_time"]);
        let exposed = number(&found["summary"]["avg_communication_time"]);
        assert!(exposed <= time && time > number(&expected["summary"]["avg_compute_time"]), "{id}: {time} {exposed}");
    }
}

#[test]
fn results_are_written_to_the_output_directory_of_the_config() {
    let dir = temp();
    std::fs::write(dir.path().join("c.yaml"), "name: x\noutput_directory: res\ntraining: {num_iterations: 2}\n")
        .unwrap();
    let written = stderr(&atlas(dir.path(), &["simulate", "--config", "c.yaml"]).assert().code(0));
    assert!(written.contains("res"), "{written}");
    assert!(
        dir.path().join("res/x_results.json").exists() && dir.path().join("res/x_iteration_breakdown.png").exists()
    );
}

#[test]
fn every_config_error_has_a_line_and_column() {
    let dir = temp();
    let text = "hardware:\n  compute_tflops: fast\ntraining: {num_nodes: -1}\nsimulate: {jitter: much, sped: 1}\n";
    std::fs::write(dir.path().join("c.yaml"), text).unwrap();
    let described = stderr(&atlas(dir.path(), &["simulate", "--config", "c.yaml"]).assert().code(1));
    for place in ["c.yaml:2:19: error", "c.yaml:3:23: error", "c.yaml:4:20: error", "c.yaml:4:26: error"] {
        assert!(described.contains(place), "{place}: {described}");
    }
}

#[test]
fn invalid_arguments_are_rejected_with_a_specific_message() {
    let dir = temp();
    for (args, says) in [
        (&["simulate"][..], "nothing to simulate"),
        (&["simulate", "--preset", "huge"], "small, medium, large"),
        (
            &["simulate", "--preset", "small", "--arrivals", "poisson"],
            "--arrivals is supported only for serving workloads",
        ),
        (&["simulate", "--preset", "small", "--window", "0..1s"], "--trace"),
        (&["simulate", "--preset", "small", "--slow-factor", "0.5"], "1 to 1000"),
        (&["simulate", "--preset", "small", "--mtbf", "often"], "50"),
        (&["simulate", "--preset", "small", "--mtbf", "50000"], "with its unit"),
        (&[SERVE.as_slice(), &["--arrivals", "trace:nowhere.csv", "--isl", "100"]].concat(), "--isl does not apply"),
        (
            &[TRAIN.as_slice(), &["--steps", "1", "--study", "goodput", "--checkpoint-seconds", "0s"]].concat(),
            "raise --checkpoint-interval",
        ),
        (&["simulate", "--target", "h100-sxm-8"], "--workload"),
        (
            &[SERVE.as_slice(), &["--steps", "3", "--mtbf", "1h"]].concat(),
            "--accelerator-mtbf is supported only for training workloads",
        ),
        (&[SERVE.as_slice(), &["--arrivals", "gamma"]].concat(), "gamma:CV"),
        (&[SERVE.as_slice(), &["--arrivals", "trace:nowhere.csv"]].concat(), "nowhere.csv"),
        (&[SERVE.as_slice(), &["--arrivals", "closed", "--rate", "3"]].concat(), "--rate requires open arrivals"),
        (&[SERVE.as_slice(), &["--set", "engine=analytical"]].concat(), "event engine"),
        (&["simulate", "--preset", "small", "--slow-factor", "2"], "--slow-factor requires --slow-nodes"),
        (
            &["simulate", "--preset", "small", "--slow-hosts", "9"],
            "--slow-nodes: found 9, but the job has only 1 nodes",
        ),
        (&["scale", "--nodes", "2", "--study", "goodput"], "atlas simulate"),
        (&["scale", "--nodes", "2", "--hosts", "a100-sxm-80gb:1"], "atlas simulate --hosts"),
        (&["simulate", "--preset", "small", "--hosts", "a100-sxm-80gb:9"], "the job has only 1 hosts"),
        (&["simulate", "--preset", "small", "--hosts", "abacus:1"], "abacus"),
        (&["simulate", "--preset", "small", "--hosts", "a100-sxm-80gb"], "ACCELERATOR:HOSTS"),
        (
            &[SERVE.as_slice(), &["--hosts", "a100-sxm-80gb:1"]].concat(),
            "--hosts is supported only for training workloads",
        ),
        (&["scale", "--nodes", "0"], "whole numbers of nodes"),
        (&["scale", "--nodes", "1", "--threshold", "2"], "share"),
    ] {
        let described = stderr(&atlas(dir.path(), args).assert().code(2));
        assert!(described.contains("error:") && described.contains(says), "{args:?}: {described}");
    }
    let described = stderr(&atlas(dir.path(), &["simulate", "--config", "none.yaml"]).assert().code(1));
    assert!(described.contains("none.yaml"), "{described}");
}

#[test]
fn slow_host_increases_step_time_and_is_reported_as_a_straggler() {
    let dir = temp();
    let even = json(dir.path(), &[TRAIN.as_slice(), &["--steps", "2"]].concat());
    let slow =
        json(dir.path(), &[TRAIN.as_slice(), &["--steps", "2", "--slow-hosts", "1", "--slow-factor", "1.4"]].concat());
    let step = |v: &Value| number(&v["summary"]["avg_iteration_time"]);
    assert!(step(&slow) > 1.2 * step(&even), "{} {}", step(&slow), step(&even));
    assert_eq!(number(&even["breakdown"]["stragglers"]), 0.0);
    assert!(number(&slow["breakdown"]["stragglers"]) > 0.1 * step(&slow));
    for found in [&even, &slow] {
        let parts: f64 = found["breakdown"].as_object().unwrap().values().map(number).sum();
        assert!((parts / step(found) - 1.0).abs() < 1e-6, "the parts are the whole: {parts} {}", step(found));
    }
    // The knobs of the event engine give the same result.
    let knobs = ["--steps", "2", "--set", "slow_nodes=1", "--set", "slow_factor=1.4"];
    assert_eq!(json(dir.path(), &[TRAIN.as_slice(), &knobs].concat())["iterations"], slow["iterations"]);
    let found = slow["bottlenecks"].as_array().unwrap().iter().find(|b| b["type"] == "stragglers").unwrap();
    assert_eq!(found["limiting"], true);
}

#[test]
fn varying_sequence_lengths_increase_step_time_and_reserved_memory() {
    let dir = temp();
    let of =
        |spread: &str| json(dir.path(), &[TRAIN.as_slice(), &["--steps", "3", "--dynamic-batch", spread]].concat());
    let (alike, varied) = (of("0"), of("0.3"));
    let figure = |v: &Value, name: &str| number(&v["allocator"][name]);
    assert!(number(&varied["summary"]["avg_iteration_time"]) > number(&alike["summary"]["avg_iteration_time"]));
    assert!(figure(&varied, "peak_reserved_gb") > figure(&alike, "peak_reserved_gb"));
    assert!(figure(&alike, "peak_reserved_gb") >= figure(&alike, "peak_allocated_gb"));
}

#[test]
fn check_validates_simulator_configs() {
    let dir = temp();
    std::fs::write(dir.path().join("good.yaml"), "hardware: {gpu_model: H100}\ntraining: {num_nodes: 2}\n").unwrap();
    std::fs::write(dir.path().join("bad.yaml"), "hardware: {gpu_model: H100}\ntraining: {num_nodes: two}\n").unwrap();
    atlas(dir.path(), &["check", "good.yaml"]).assert().code(0);
    let described = atlas(dir.path(), &["check", "bad.yaml"]).assert().code(1);
    let described = stdout(&described) + &stderr(&described);
    assert!(described.contains("bad.yaml:2:23") && described.contains("num_nodes"), "{described}");
}

#[test]
fn replications_are_reproducible_and_yield_a_confidence_interval() {
    let dir = temp();
    let args =
        [SERVE.as_slice(), &["--rate", "20", "--requests", "300", "--replications", "4", "--seed", "7"]].concat();
    let first = json(dir.path(), &args);
    assert_eq!(first, json(dir.path(), &args), "the same seed, the same answer");
    let ttft = &first["figures"]["ttft_p50_ms"];
    assert_eq!(ttft["runs"].as_array().unwrap().len(), 4);
    assert!(number(&ttft["half_width"]) > 0.0 && number(&ttft["half_width"]) < number(&ttft["mean"]));
    let one = json(dir.path(), &[SERVE.as_slice(), &["--rate", "20", "--requests", "300", "--seed", "7"]].concat());
    assert_eq!(one["figures"]["ttft_p50_ms"]["runs"][0], ttft["runs"][0]);
    assert!(one["figures"]["ttft_p50_ms"]["half_width"].is_null());
    let both = ["simulate", "--target", "h100-sxm-8,h200-sxm-8", "--workload", "llama3.1-8b-serve", "--rate", "20"];
    let table =
        run(dir.path(), &[both.as_slice(), &["--requests", "300", "--replications", "4", "--seed", "7"]].concat());
    assert!(table.contains("difference from h100-sxm-8") && table.contains("h200-sxm-8"), "{table}");
}

#[test]
fn slo_limits_determine_goodput_and_serving_charts_are_written() {
    let dir = temp();
    let out = dir.path().join("out");
    let limits = ["--slo-ttft", "200ms", "--slo-tpot", "50", "--requests", "400", "--out", out.to_str().unwrap()];
    let found = json(dir.path(), &[SERVE.as_slice(), &["--arrivals", "gamma:2:30"], limits.as_slice()].concat());
    let share = number(&found["summary"]["good_share"]);
    assert!((0.0..=1.0).contains(&share));
    assert!(
        (number(&found["slo"]["ttft"]) - 0.2).abs() < 1e-12 && (number(&found["slo"]["tpot"]) - 0.05).abs() < 1e-12
    );
    for name in ["latency_cdf", "queue_over_time", "resource_utilization"] {
        is_picture(&out, &format!("h100-sxm-8_llama3.1-8b-serve_{name}"));
    }
    // The totals of the engine agree with the list of requests.
    let mut reader = csv::Reader::from_path(out.join("h100-sxm-8_llama3.1-8b-serve_requests.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let good =
        rows.iter().filter(|r| r[1].parse::<f64>().unwrap() <= 0.2 && r[2].parse::<f64>().unwrap() <= 0.05).count();
    assert!((good as f64 / rows.len() as f64 - share).abs() < 1e-9);
    assert!(
        std::fs::read_to_string(out.join("h100-sxm-8_llama3.1-8b-serve_latency_cdf.svg"))
            .unwrap()
            .contains("TTFT limit")
    );
    let again = json(
        dir.path(),
        &["simulate", "--config", out.join("h100-sxm-8_llama3.1-8b-serve_config.yaml").to_str().unwrap()],
    );
    assert_eq!(found, again);
}

#[test]
fn phase_schedules_are_shortened_and_bursts_send_concurrency_requests() {
    let dir = temp();
    let day = ["simulate", "--target", "h100-sxm-8", "--workload", "llama3.1-70b-day", "--requests", "600"];
    let found = json(dir.path(), &day);
    let requests = number(&found["summary"]["requests"]);
    assert!((450.0..800.0).contains(&requests), "{requests}");
    assert!(found["notes"][0].as_str().unwrap().contains("every phase is shortened"), "{}", found["notes"]);
    let burst = json(dir.path(), &[SERVE.as_slice(), &["--arrivals", "burst", "--set", "concurrency=24"]].concat());
    assert_eq!(number(&burst["summary"]["requests"]), 24.0);
    let batch = ["--set", "server=transformers", "--set", "concurrency=8"];
    assert_eq!(number(&json(dir.path(), &[SERVE.as_slice(), &batch].concat())["summary"]["requests"]), 8.0);
}

#[test]
fn azure_mooncake_and_vllm_traces_are_replayed() {
    let dir = temp();
    let azure =
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.680,374,44\n2023-11-16 18:15:47.1,396,20\n";
    let mooncake = "{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 5, \"hash_ids\": [0, 7]}\n\
                    {\"timestamp\": 900, \"input_length\": 1024, \"output_length\": 6, \"hash_ids\": [0, 7]}\n";
    let vllm = "{\"input_lens\": [30, 40], \"output_lens\": [5, 6], \"start_times\": [12.5, 12.0]}";
    for (name, text) in [("azure.csv", azure), ("mooncake.jsonl", mooncake), ("vllm.json", vllm)] {
        std::fs::write(dir.path().join(name), text).unwrap();
        let found = json(dir.path(), &[SERVE.as_slice(), &["--arrivals", &format!("trace:{name}")]].concat());
        assert_eq!(number(&found["summary"]["requests"]), 2.0, "{name}");
        // The second of Mooncake's requests finds its prompt in the cache, except for the token that must be computed.
        let hit = number(&found["summary"]["prefix_hit"]);
        assert_eq!(hit > 0.2, name == "mooncake.jsonl", "{name}: {hit}");
    }
}

#[test]
fn failures_reduce_goodput_and_the_best_interval_is_near_young_s() {
    let dir = temp();
    let study =
        ["--steps", "1", "--mtbf", "5000h", "--study", "goodput", "--checkpoint-seconds", "2m", "--spares", "8"];
    let found = json(dir.path(), &[TRAIN.as_slice(), &study].concat());
    let study = &found["goodput_study"];
    let goodput = number(&study["shares"]["goodput"]["mean"]);
    assert!((0.5..1.0).contains(&goodput), "{goodput}");
    let sum: f64 = study["shares"].as_object().unwrap().values().map(|share| number(&share["mean"])).sum();
    assert!((sum - 1.0).abs() < 0.01, "{sum}");
    let ratio = number(&study["best_interval"]) / number(&study["young_interval"]);
    assert!((0.5..=2.0).contains(&ratio), "{ratio}");
    // 64 accelerators, each failing every 5000 hours.
    assert!((number(&study["job_mtbf"]) / (5000.0 * 3600.0 / 64.0) - 1.0).abs() < 1e-9);
    let rare = ["--steps", "1", "--mtbf", "5000000h", "--study", "goodput", "--checkpoint-seconds", "2m"];
    let rare = json(dir.path(), &[TRAIN.as_slice(), &rare].concat());
    assert!(number(&rare["goodput_study"]["shares"]["goodput"]["mean"]) > goodput);
}

#[test]
fn scale_reports_both_curves_with_breakdown_point_and_reason() {
    let dir = temp();
    let out = dir.path().join("out");
    let found = json(dir.path(), &["scale", "--nodes", "1,2,4,8,16,32", "--out", out.to_str().unwrap()]);
    assert_eq!(found, file(&out.join("medium_scale_experiment_scaling.json")));
    is_picture(&out, "medium_scale_experiment_scaling_efficiency");
    let curves = found["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 2);
    for curve in curves {
        let points: Vec<&Value> = curve["points"].as_array().unwrap().iter().filter(|p| p["error"].is_null()).collect();
        let base = points[0];
        assert_eq!(number(&base["efficiency"]), 1.0);
        for point in &points {
            // Efficiency is the speed-up relative to the ideal one, in both modes.
            let each = |p: &Value| number(&p["tokens_per_sec"]) / number(&p["accelerators"]);
            assert!((each(point) / each(base) - number(&point["efficiency"])).abs() < 1e-9);
        }
        // The breakdown is at the first point below the threshold; the last point above it is recommended.
        let below = points.iter().find(|p| number(&p["efficiency"]) < 0.7).map(|p| &p["nodes"]);
        assert_eq!(below.unwrap_or(&Value::Null), &curve["breakdown_point"]);
        assert_eq!(curve["reason"].is_string(), below.is_some());
        let above = points.iter().rev().find(|p| number(&p["efficiency"]) >= 0.7).map(|p| &p["nodes"]);
        assert_eq!(above.unwrap(), &curve["recommended_scale"]);
    }
    assert!(curves[0]["breakdown_point"].is_number(), "the medium preset does not scale to 256: {}", curves[0]);
    // Numbers may be separated by spaces, as in the predecessor's command.
    let spaced = run(dir.path(), &["scale", "--nodes", "1", "2", "4", "--mode", "weak", "--format", "csv"]);
    assert_eq!(spaced.lines().count(), 4);
    assert!(spaced.lines().skip(1).all(|line| line.starts_with("weak,")));
    let table = run(dir.path(), &["scale", "--preset", "small", "--nodes", "1", "3", "--mode", "strong"]);
    assert!(table.contains("do not divide") && table.contains("recommended scale"), "{table}");
    let serving =
        ["scale", "--target", "h100-sxm-8", "--workload", "llama3.1-8b-serve", "--nodes", "1,2", "--mode", "weak"];
    let serving = json(dir.path(), &serving);
    let second = &serving["curves"][0]["points"][1];
    assert!((number(&second["efficiency"]) - 1.0).abs() < 0.1, "replicas do not disturb each other: {second}");
}

#[test]
fn schedulers_queue_jobs_by_fifo_backfill_and_gang_policy() {
    let dir = temp();
    let text = "scheduler: backfill\ncluster: {accelerators: 8}\njobs:\n- {name: half, accelerators: 4, seconds: 100}\n\
                - {name: all, accelerators: 8, seconds: 50, submitted: 1}\n- {name: small, accelerators: 2, seconds: 40, submitted: 2}\n";
    std::fs::write(dir.path().join("jobs.yaml"), text).unwrap();
    let begin = |v: &Value| v["jobs"].as_array().unwrap().iter().map(|j| number(&j["begin"])).collect::<Vec<_>>();
    let filled = json(dir.path(), &["simulate", "--config", "jobs.yaml"]);
    assert_eq!(begin(&filled), [0.0, 100.0, 2.0]);
    std::fs::write(dir.path().join("fifo.yaml"), text.replace("backfill", "fifo")).unwrap();
    assert_eq!(begin(&json(dir.path(), &["simulate", "--config", "fifo.yaml"])), [0.0, 100.0, 150.0]);
    let turns = text.replace("backfill", "gang\nslice: 10s");
    std::fs::write(dir.path().join("gang.yaml"), turns).unwrap();
    let gang = json(dir.path(), &["simulate", "--config", "gang.yaml"]);
    // The job that needs the whole machine begins at its first turn, long before the others have finished.
    assert!(begin(&gang)[1] < 30.0 && number(&gang["utilization"]) > number(&filled["utilization"]) - 0.2, "{gang}");
    std::fs::write(dir.path().join("bad.yaml"), text.replace("accelerators: 4,", "")).unwrap();
    let described = stderr(&atlas(dir.path(), &["simulate", "--config", "bad.yaml"]).assert().code(1));
    assert!(described.contains("bad.yaml:4:3") && described.contains("nodes or accelerators"), "{described}");
    let workload =
        "cluster: {target: h100-sxm-64}\njobs: [{name: a, workload: llama3.1-8b-train, nodes: 2, steps: 100}]\n";
    std::fs::write(dir.path().join("w.yaml"), workload).unwrap();
    let found = json(dir.path(), &["simulate", "--config", "w.yaml"]);
    let two = json(dir.path(), &[TRAIN.as_slice(), &["--set", "num_nodes=2", "--steps", "3"]].concat());
    let (end, step) = (number(&found["jobs"][0]["end"]), number(&two["summary"]["avg_iteration_time"]));
    assert!((end / (100.0 * step) - 1.0).abs() < 1e-6, "{end} {step}");
}

#[test]
fn jobs_spread_over_a_shared_uplink_slow_each_other_down() {
    let dir = temp();
    // Two jobs of four nodes each on two leaves of four nodes, with an uplink as wide as one node.
    let text = "scheduler: fifo\ncluster: {accelerators: 64, accelerators_per_node: 8, nodes_per_leaf: 4, oversubscription: 4, \
                placement: packed}\njobs:\n- {name: a, accelerators: 32, seconds: 100, communication: 1}\n\
                - {name: b, accelerators: 32, seconds: 100, communication: 1}\n- {name: quiet, accelerators: 8, seconds: 10, \
                submitted: 300}\n";
    let of = |text: &str| {
        std::fs::write(dir.path().join("jobs.yaml"), text).unwrap();
        let found = json(dir.path(), &["simulate", "--config", "jobs.yaml"]);
        let figures = |key: &str| found["jobs"].as_array().unwrap().iter().map(|j| number(&j[key])).collect::<Vec<_>>();
        (figures("contention"), figures("end"))
    };
    // Packed jobs stay below their own leaf and use no uplink.
    assert_eq!(of(text), (vec![1.0, 1.0, 1.0], vec![100.0, 100.0, 310.0]));
    // Spread over both leaves, each job gets half of the bandwidth that it would use.
    let (contention, end) = of(&text.replace("packed", "spread"));
    for job in 0..2 {
        assert!((contention[job] - 2.0).abs() < 1e-3 && (end[job] - 200.0).abs() < 0.1, "{contention:?} {end:?}");
    }
    assert_eq!(contention[2], 1.0);
    // With half the communication, half of it is hidden in the other job's computation at best; at worst the cost
    // doubles.
    let (some, _) = of(&text.replace("packed", "spread").replace("communication: 1}", "communication: 0.5}"));
    assert!(some[..2].iter().all(|contention| (1.0..=1.5).contains(contention)), "{some:?}");
    let table = run(dir.path(), &["simulate", "--config", "jobs.yaml"]);
    assert!(table.contains("contention"), "{table}");
    let bad = text.replace("accelerators_per_node: 8, ", "");
    std::fs::write(dir.path().join("bad.yaml"), bad).unwrap();
    let described = stderr(&atlas(dir.path(), &["simulate", "--config", "bad.yaml"]).assert().code(1));
    assert!(described.contains("accelerators_per_node"), "{described}");
    // Simulated steps determine the traffic.
    let trained = "cluster: {target: h100-sxm-64, nodes_per_leaf: 2, oversubscription: 2, placement: spread}\njobs:\n\
                   - {name: a, workload: llama3.1-8b-train, nodes: 4, steps: 100}\n\
                   - {name: b, workload: llama3.1-8b-train, nodes: 4, steps: 100}\n";
    let (spread, later) = of(trained);
    let (packed, sooner) = of(&trained.replace("spread", "packed").replace("nodes_per_leaf: 2", "nodes_per_leaf: 4"));
    assert!(packed.iter().all(|contention| (contention - 1.0).abs() < 1e-9), "{packed:?}");
    assert!(spread.iter().all(|contention| (1.0..2.0).contains(contention)), "{spread:?}");
    assert!(later.iter().zip(&sooner).all(|(later, sooner)| later >= sooner), "{later:?} {sooner:?}");
}

#[test]
fn exported_traces_are_well_formed_and_limited_to_the_window() {
    let dir = temp();
    let pipelined = ["--set", "pp=4", "--set", "tp=2", "--steps", "3"];
    run(dir.path(), &[TRAIN.as_slice(), &pipelined, &["--trace", "step.json"]].concat());
    let whole = file(&dir.path().join("step.json"));
    trace::is_sound(&whole);
    let tasks = |trace: &Value| -> Vec<(f64, f64)> {
        let events = trace["traceEvents"].as_array().unwrap();
        events.iter().filter(|e| e["ph"] == "X").map(|e| (number(&e["ts"]), number(&e["dur"]))).collect()
    };
    let step = json(dir.path(), &[TRAIN.as_slice(), &pipelined].concat());
    let step = 1e6 * number(&step["iterations"][0]);
    let end = tasks(&whole).iter().map(|(at, dur)| at + dur).fold(0.0, f64::max);
    assert!((end / step - 1.0).abs() < 1e-3, "the first step, to its end: {end} {step}");
    // From the middle of the second step into the third.
    let window = format!("{}ms..{}ms", 1.5e-3 * step, 2.2e-3 * step);
    run(dir.path(), &[TRAIN.as_slice(), &pipelined, &["--trace", "later.json", "--window", &window]].concat());
    let later = file(&dir.path().join("later.json"));
    trace::is_sound(&later);
    let seen = tasks(&later);
    assert!(seen.iter().all(|(at, dur)| at + dur >= 1.5 * step - 1.0 && *at <= 2.2 * step + 1.0));
    assert!(seen.iter().any(|(at, _)| *at < 1.9 * step) && seen.iter().any(|(at, _)| *at > 2.0 * step));
    let serve = ["--rate", "30", "--requests", "60", "--trace", "serve.json", "--window", "0..2s"];
    run(dir.path(), &[SERVE.as_slice(), &serve].concat());
    trace::is_sound(&file(&dir.path().join("serve.json")));
}

/// Perfetto's own trace processor opens the trace and finds all its tasks.
#[test]
#[ignore = "needs the Python package perfetto and its trace processor; ATLAS_TEST_PYTHON names the interpreter"]
fn perfetto_opens_the_trace() {
    let dir = temp();
    run(dir.path(), &[TRAIN.as_slice(), &["--set", "pp=4", "--steps", "1", "--trace", "step.json"]].concat());
    let path = dir.path().join("step.json");
    let slices = file(&path)["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").count();
    let script = "import sys\nfrom perfetto.trace_processor import TraceProcessor\n\
                  tp = TraceProcessor(trace=sys.argv[1])\n\
                  print(list(tp.query(\"select count(*) as n from slice where dur >= 0\"))[0].n)\n";
    let python = std::env::var("ATLAS_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(python).args(["-c", script]).arg(&path).output().unwrap();
    let (count, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(count.trim(), slices.to_string(), "{errors}");
}

/// Simulating one of several identical replicas gives the same result as simulating all: 512 accelerators.
#[test]
fn simulating_one_replica_equals_simulating_all_on_512_accelerators() {
    let dir = temp();
    let args = ["simulate", "--target", "h100-sxm-1024", "--workload", "llama3.1-70b-train", "--set", "num_nodes=64"];
    let one = json(dir.path(), &[args.as_slice(), &["--steps", "2"]].concat());
    let all = json(dir.path(), &[args.as_slice(), &["--steps", "2", "--every-replica"]].concat());
    assert_eq!((number(&one["layout"]["accelerators"]), &one["layout"]["dp"]), (512.0, &all["layout"]["dp"]));
    assert_eq!(number(&one["layout"]["replicas_simulated"]), 1.0);
    assert_eq!(number(&all["layout"]["replicas_simulated"]), number(&all["layout"]["dp"]));
    assert_eq!(one["iterations"], all["iterations"]);
    assert!(number(&all["total_events"]) > 10.0 * number(&one["total_events"]));
}

/// Ctrl-C ends a long run gracefully: results up to that point are printed, and the exit code marks them as incomplete.
#[cfg(unix)]
#[test]
fn interrupted_run_prints_partial_results_and_fails() {
    let dir = temp();
    let args =
        [SERVE.as_slice(), &["--requests", "20000000", "--rate", "60", "--format", "json", "--out", "d"]].concat();
    let child = Command::new(env!("CARGO_BIN_EXE_atlas"))
        .args(&args)
        .current_dir(dir.path())
        .env("ATLAS_CONFIG_DIR", dir.path().join("no-config"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let written = |suffix: &str| {
        let mut files = std::fs::read_dir(dir.path().join("d")).unwrap().map(|entry| entry.unwrap().path());
        let file = files.find(|path| path.to_string_lossy().ends_with(suffix)).unwrap_or_else(|| panic!("{suffix}"));
        std::fs::read_to_string(file).unwrap()
    };
    assert!(written("results.json").contains("\"partial\""));
    assert!(written("config.yaml").starts_with("# Interrupted"), "{}", written("config.yaml"));
    assert_eq!(found["cancelled"], true);
    assert_eq!(found["partial"]["runs"], 1);
}

#[test]
fn one_host_with_a_slower_accelerator_slows_all_replicas() {
    let dir = temp();
    let step = |more: &[&str]| {
        let found = json(dir.path(), &[TRAIN.as_slice(), &["--steps", "2"], more].concat());
        number(&found["summary"]["avg_iteration_time"])
    };
    let (even, one) = (step(&[]), step(&["--hosts", "a100-sxm-80gb:1"]));
    let all = step(&["--hosts", "a100-sxm-80gb:8"]);
    // Replicas wait for one another: one slower host costs almost as much as eight, and more than faster hosts could
    // gain.
    assert!(one > 1.5 * even && one < 1.02 * all, "{even} {one} {all}");
    // A configuration file supports the same setting.
    let text = "target: h100-sxm-64\nworkload: llama3.1-8b-train\nsimulate: {steps: 2, hosts: 'a100-sxm-80gb:1'}\n";
    std::fs::write(dir.path().join("mixed.yaml"), text).unwrap();
    let found = json(dir.path(), &["simulate", "--config", "mixed.yaml"]);
    assert!((number(&found["summary"]["avg_iteration_time"]) / one - 1.0).abs() < 1e-12);
    assert!(found["notes"].to_string().contains("a100-sxm-80gb"), "{}", found["notes"]);
}

#[test]
fn five_numbered_examples_run_and_a_sixth_is_rejected() {
    let dir = temp();
    let steps = ["--steps", "2"];
    let example =
        |number: &str, more: &[&str]| run(dir.path(), &[&["simulate", "--example", number], &steps[..], more].concat());
    assert_eq!(example("1", &[]), run(dir.path(), &["simulate", "--preset", "small", "--steps", "2"]));
    assert!(example("2", &[]).contains("custom_experiment"));
    let scaling = run(dir.path(), &["scale", "--nodes", "1,2,4,8,16", "--steps", "2"]);
    assert_eq!(example("3", &[]), scaling);
    let patterns = example("4", &[]);
    for name in ["ring_allreduce", "tree_allreduce", "reduce_scatter", "allgather", "alltoall"] {
        assert!(patterns.contains(name), "{name}: {patterns}");
    }
    assert!(example("5", &[]).contains("my_experiment"));
    let refused = stderr(&atlas(dir.path(), &["simulate", "--example", "6"]).assert().failure());
    assert!(refused.contains("1..=5"), "{refused}");
}

#[test]
fn autoscaling_states_and_prices_the_replicas_that_run() {
    let dir = temp();
    let of = |more: &[&str]| json(dir.path(), &[&SERVE[..], &["--osl", "20", "--requests", "2000"], more].concat());
    let fixed = of(&["--arrivals", "poisson:2"]);
    let scaled = of(&["--arrivals", "poisson:2", "--autoscale", "1..8:32"]);
    let replicas = number(&scaled["figures"]["replicas"]["mean"]);
    assert!(replicas > 1.0 && replicas < 7.0, "{replicas}");
    let [all, running] = [&fixed, &scaled].map(|run| number(&run["cost"]["usd_per_hour"]));
    assert!((running / (all * replicas / 8.0) - 1.0).abs() < 1e-9, "{running} {all}");
    let command = |more: &[&str]| atlas(dir.path(), &[&SERVE[..], &["--osl", "20"], more].concat()).assert();
    let short = ["--requests", "200", "--arrivals", "poisson:20", "--autoscale", "1..8:32"];
    assert!(stdout(&command(&short).code(0)).contains("a replica starts in"));
    let refused = stderr(&command(&["--autoscale", "1..100:4"]).code(2));
    assert!(refused.contains("at most the 8 that the target holds"), "{refused}");
}

#[test]
fn a_loss_from_smaller_batches_is_explained_by_the_requests_of_a_replica() {
    let dir = temp();
    let args = ["scale", "--target", "h100-sxm-8", "--workload", "llama3.1-8b-serve", "--osl", "50", "--nodes", "1,2"];
    let text = run(dir.path(), &[&args[..], &["--threshold", "0.95"]].concat());
    assert!(text.contains("requests run on a replica at a time"), "{text}");
    assert!(text.contains("recommended scale: 1 node\n"), "{text}");
}

#[test]
fn the_history_of_a_simulation_has_the_simulated_throughput() {
    let dir = temp();
    let kept = |args: &[&str]| {
        let state = dir.path().join("state");
        let assert = atlas(dir.path(), args).env("ATLAS_STATE_DIR", state).env_remove("ATLAS_HISTORY").assert().code(0);
        stdout(&assert)
    };
    let args = [&SERVE[..], &["--requests", "200", "--osl", "20", "--format", "json"]].concat();
    let simulated: Value = serde_json::from_str(&kept(&args)).unwrap();
    let rate = number(&simulated["summary"]["steady_tokens_per_sec"]);
    let entries: Value = serde_json::from_str(&kept(&["history", "--format", "json"])).unwrap();
    assert_eq!(number(&entries[0]["figures"]["tokens_per_sec"]), rate);
    let list = kept(&["history"]);
    assert!(list.contains(" tokens_per_sec") && !list.contains("analytical.tokens_per_sec"), "{list}");
    assert!(kept(&["history", "trend", "tokens_per_sec"]).contains("simulation"));
}

fn serving(dir: &Path, workload: &str, settings: &[&str]) -> (f64, f64, Value) {
    let knobs: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let args = [&["simulate", "--target", "h100-sxm-8", "--workload", workload][..], &knobs].concat();
    let all = json(dir, &args);
    (number(&all["summary"]["steady_tokens_per_sec"]), number(&all["analytical"]["tokens_per_sec"]), all)
}

#[test]
fn power_caps_and_clock_limits_slow_simulated_serving_as_the_closed_form() {
    let dir = temp();
    let of = |settings: &[&str]| serving(dir.path(), "llama3.1-70b-serve", settings);
    let (free, ..) = of(&[]);
    for setting in ["power_cap=250", "clock_share=0.5"] {
        let (slow, closed, _) = of(&[setting]);
        assert!(slow < 0.95 * free, "{setting}: {slow} of {free}");
        assert!((slow / closed - 1.0).abs() < 0.05, "{setting}: {slow}, closed form {closed}");
    }
}

#[test]
fn simulated_rates_without_generation_are_those_of_prompts() {
    let dir = temp();
    for (workload, settings) in [("bge-large-embed", &[][..]), ("llama3.1-70b-serve", &["load=prefill-only"])] {
        let (simulated, closed, all) = serving(dir.path(), workload, settings);
        assert!((simulated / closed - 1.0).abs() < 0.1, "{workload}: {simulated}, closed form {closed}");
        let usd = number(&all["cost"]["usd_per_hour"]) / 3600.0 / simulated * 1e6;
        assert!(
            (number(&all["cost"]["usd_per_million_tokens"]) / usd - 1.0).abs() < 1e-3,
            "{workload}: {}",
            all["cost"]
        );
    }
}

#[test]
fn closed_form_beside_a_simulated_static_batch_is_that_of_the_batch() {
    let dir = temp();
    let (simulated, closed, _) = serving(dir.path(), "llama3.1-70b-serve", &["load=static"]);
    assert!((simulated / closed - 1.0).abs() < 0.05, "{simulated}, closed form {closed}");
}
