//! Searches, through the library and the command line, on built-in hardware.

use atlas_core::count::Count;
use std::path::Path;

use crate::common::program::{atlas, stderr, stdout};
use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::engine::estimate;
use atlas_plan::knob::{Knob, Overrides};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::optimize::{Optimum, Proof, freed};
use atlas_plan::search::{Axis, Condition, Gauge, Problem, Space, metric, optimize};
use serde_json::Value;

const TARGETS: &str = "
- { name: h100x32, vendor: NVIDIA, accelerator: nvidia-h100-sxm-80gb, accelerators_per_node: 8, num_nodes: 4,
    memory_gb_per_accel: 80, network: { Gbps_per_accel: 400 }, cost: { hourly_usd: 24, energy_watts_node: 10200, pue: 1.2 } }
- { name: mi300x8, vendor: AMD, accelerator: amd-mi300x, accelerators_per_node: 8, num_nodes: 1,
    memory_gb_per_accel: 192, cost: { hourly_usd: 16, energy_watts_node: 10500, pue: 1.2 } }
";
const WORKLOADS: &str = "
- { name: train, mode: training, model: llama-3.1-8b, sequence: { prompt: 8192, generate: 0 },
    batch: { micro: 1, global: 256 }, parallelism: { tp: 8, pp: 1, dp: 4 }, sharding: zero1 }
- { name: serve, mode: inference, model: llama-3.1-8b, sequence: { prompt: 1024, generate: 256 },
    parallelism: { tp: 4 }, serving: { engine: vllm, concurrency: 64 } }
";

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("targets.yaml"), TARGETS).unwrap();
    std::fs::write(dir.path().join("workloads.yaml"), WORKLOADS).unwrap();
    dir
}

fn start(target: &str, workload: &str) -> (Parts, Scenario) {
    let dir = folder();
    let sources = Sources { workload_dir: Some(dir.path().to_owned()), ..Sources::built_in() };
    let library = Library::load(&sources, None);
    let parts = Parts::find(&library, target, workload).unwrap();
    let scenario = Scenario::resolve(&parts, &Overrides::new()).unwrap();
    let scenario = freed(&scenario, &|_| false, &parts);
    (parts, scenario)
}

fn throughput(optimum: &Optimum) -> f64 {
    optimum.best.as_ref().unwrap().estimate.total.tokens_per_sec
}

/// Best result over all combinations, one by one, without the search code.
fn brute(problem: &Problem<'_>) -> f64 {
    let mut best = f64::NEG_INFINITY;
    for point in 0..problem.space.size() {
        let mut scenario = problem.start.clone();
        for (knob, value) in problem.space.settings(point) {
            scenario.set(knob, value, problem.parts).unwrap();
        }
        let phase = &scenario.base;
        let used = phase.shape.tp * phase.shape.pp * phase.plan.cp.unwrap_or(Count::ONE) * phase.shape.dp;
        let vpp = phase.plan.vpp.unwrap_or(Count::ONE);
        let micros = scenario.global(phase) / (phase.shape.dp * scenario.microbatch);
        let whole = |number: f64| number.fract() == 0.0;
        let possible = used == scenario.accelerators()
            && whole(32.0 / phase.shape.tp)
            && whole(32.0 / (phase.shape.pp * vpp))
            && whole(micros)
            && (vpp == 1.0 || (phase.shape.pp > 1.0 && whole(micros / phase.shape.pp)));
        let answer = estimate(&scenario);
        if possible && answer.detail.unwrap().verdict.fits() {
            best = best.max(answer.total.tokens_per_sec);
        }
    }
    best
}

#[test]
fn exhaustive_search_matches_brute_force_and_counts_every_point() {
    let (parts, start) = start("h100x32", "train");
    let mut problem = Problem::of(&start, &parts, metric::named("throughput").unwrap());
    problem.min_gain = 0.0;
    let axes = [(Knob::Tp, 8.0), (Knob::Pp, 4.0), (Knob::Vpp, 4.0), (Knob::Microbatch, 4.0)];
    let doubling = |most: f64| (0..=most.log2() as i32).map(|power| 2f64.powi(power));
    problem.space = Space::of(axes.map(|(knob, most)| Axis::of(knob, doubling(most))).into()).unwrap();
    let found = optimize(&problem, &Gauge::default());
    assert_eq!(found.extent.proof, Proof::Exhaustive);
    assert_eq!(throughput(&found).to_bits(), brute(&problem).to_bits());
    let cut: u128 = found.bounds.iter().filter(|bound| bound.alone.is_none()).map(|bound| bound.removed).sum();
    assert_eq!(cut + u128::from(found.extent.estimated), problem.space.size());
    assert_eq!(u128::from(found.extent.estimated), found.extent.admissible);
    // Runners-up are in order and distinct.
    let mut last = throughput(&found);
    for candidate in &found.runners_up {
        assert!(candidate.estimate.total.tokens_per_sec <= last);
        last = candidate.estimate.total.tokens_per_sec;
    }
    assert!(found.hill_climb.estimate.total.tokens_per_sec <= throughput(&found));
}

#[test]
fn constraint_lowers_the_optimum_and_states_its_cost() {
    let (parts, start) = start("mi300x8", "serve");
    let mut problem = Problem::of(&start, &parts, metric::named("throughput").unwrap());
    problem.min_gain = 0.0;
    let free = optimize(&problem, &Gauge::default());
    problem.conditions = vec![Condition::parse("tpot<=15").unwrap(), Condition::parse("ttft<=1s").unwrap()];
    let bound = optimize(&problem, &Gauge::default());
    let best = bound.best.as_ref().unwrap();
    assert!(best.meets(&problem));
    assert!(throughput(&bound) < throughput(&free));
    let tpot = bound.bounds.iter().find(|bound| bound.what.starts_with("TPOT")).unwrap();
    let without = tpot.without.as_ref().unwrap();
    assert!(tpot.removed > 0 && without.estimate.total.tokens_per_sec > throughput(&bound));
    // The stated cost of a condition equals the gain from removing it.
    problem.conditions.remove(0);
    assert_eq!(throughput(&optimize(&problem, &Gauge::default())), without.estimate.total.tokens_per_sec);
    problem.conditions = vec![Condition::parse("tpot<=0.001").unwrap()];
    assert!(optimize(&problem, &Gauge::default()).best.is_none());
}

#[test]
fn no_point_of_the_front_dominates_another() {
    let (parts, start) = start("mi300x8", "serve");
    let problem = Problem::of(&start, &parts, metric::named("throughput").unwrap());
    let found = optimize(&problem, &Gauge::default());
    assert!(found.front.len() > 3);
    let scores = |i: usize| problem.front.iter().map(move |metric| (i, *metric));
    for a in 0..found.front.len() {
        for b in 0..found.front.len() {
            let no_worse = |(i, metric): (usize, &'static atlas_plan::estimate::Metric)| {
                let other = &found.front[b];
                let mine = metric::score(metric, &found.front[i].estimate, &found.front[i].scenario);
                mine <= metric::score(metric, &other.estimate, &other.scenario)
            };
            assert!(a == b || !scores(a).all(no_worse), "{a} dominates {b}");
        }
    }
}

#[test]
fn search_beyond_the_candidate_limit_is_local_and_reported_as_such() {
    let (parts, start) = start("h100x32", "train");
    let mut problem = Problem::of(&start, &parts, metric::named("throughput").unwrap());
    problem.min_gain = 0.0;
    let all = optimize(&problem, &Gauge::default());
    problem.max_candidates = 5000;
    let some = optimize(&problem, &Gauge::default());
    assert!(matches!(some.extent.proof, Proof::Local { starts } if starts > 0), "{:?}", some.extent);
    assert!(u128::from(some.extent.estimated) < some.extent.admissible);
    assert!(throughput(&some) <= throughput(&all) && throughput(&some) > 0.9 * throughput(&all));
    let gauge = Gauge::default();
    gauge.cancel();
    assert_eq!(optimize(&problem, &gauge).extent.proof, Proof::Canceled);
}

fn json(dir: &Path, args: &[&str]) -> Value {
    let run = atlas(dir, args).args(["--workload-dir", ".", "--format", "json"]).assert().code(0);
    serde_json::from_str(&stdout(&run)).unwrap()
}

#[test]
fn optimize_record_reproduces_the_same_result() {
    let dir = folder();
    let args = ["optimize", "--target", "h100x32", "--workload", "train", "--top", "3", "--headroom", "5%"];
    let found = json(dir.path(), &args);
    assert_eq!(found["looked"]["proof"], "exhaustive");
    assert_eq!(found["runners_up"].as_array().unwrap().len(), 3);
    let best = found["best"]["metrics"]["tokens_per_sec"].as_f64().unwrap();
    assert!(found["best"]["metrics"]["headroom"].as_f64().unwrap() >= 0.05);
    let record = "out/optimized_h100x32_train_1337.json";
    let again = json(dir.path(), &["optimize", "--record", record, "--method", "hill-climb"]);
    assert_eq!(again["label"], "post-opt");
    // The knobs of the record, set by hand, give the same result.
    let first = json(dir.path(), &args);
    let mut run = vec!["run", "--target", "h100x32", "--workload", "train"];
    let text = std::fs::read_to_string(dir.path().join(record)).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    let mut set: Vec<String> =
        written["set"].as_array().unwrap().iter().map(|set| format!("--set={}", set.as_str().unwrap())).collect();
    // Records of version 0.1 have a field for the micro-batch.
    set.push(format!("--set=microbatch={}", written["knobs"]["microbatch"]));
    run.extend(set.iter().map(String::as_str));
    let ran = json(dir.path(), &run);
    assert_eq!(ran["record"]["tokens_per_sec"].as_f64().unwrap(), best);
    assert_eq!(first["best"]["metrics"]["tokens_per_sec"].as_f64().unwrap(), best);
}

#[test]
fn optimize_starts_at_the_result_of_a_serving_record() {
    let dir = folder();
    let ran = json(dir.path(), &["run", "--target", "h100x32", "--workload", "serve", "--set", "tp=8"]);
    assert_eq!(ran["knobs"]["cuda_graphs"], true);
    let found =
        json(dir.path(), &["optimize", "--record", "out/last_run.json", "--over", "tp=8", "--headroom", "none"]);
    assert_eq!(found["start"]["metrics"]["tokens_per_sec"], ran["metrics"]["tokens_per_sec"]);
}

#[test]
fn impossible_search_options_are_refused() {
    let dir = folder();
    for (option, expected) in [
        (["--headroom", "20"], "such as 20%"),
        (["--front", "throughput,throughput"], "named twice"),
        (["--max-candidates", "0"], "--max-candidates"),
    ] {
        let mut run =
            atlas(dir.path(), &["optimize", "--workload-dir", ".", "--target", "h100x32", "--workload", "serve"]);
        let described = stderr(&run.args(option).assert().code(2));
        assert!(described.contains(expected), "{described}");
    }
}

#[test]
fn all_errors_of_a_search_goal_are_reported_together() {
    let dir = folder();
    let args = ["optimize", "--workload-dir", ".", "--target", "h100x32", "--workload", "train", "--objective", "sped"];
    let more = ["--over", "tpp=1", "--where", "tpot<=50", "--front", "throughput", "--keep", "nothing"];
    let run = atlas(dir.path(), &args).args(more).assert().code(2);
    let described = stderr(&run);
    for part in
        ["--objective: unknown metric `sped`", "no knob `tpp`", "does not apply to training", "two or three", "--keep"]
    {
        assert!(described.contains(part), "{part} in {described}");
    }
    let args = ["optimize", "--target", "GROQ_LPU_NODE", "--workload", "gpt5_1t_inference", "--objective", "cost"];
    let described = stderr(&atlas(dir.path(), &args).assert().code(2));
    assert!(described.contains("does not support --objective"), "{described}");
    let none = ["optimize", "--workload-dir", ".", "--target", "mi300x8", "--workload", "serve", "--tpot", "0.01"];
    let run = atlas(dir.path(), &none).assert().code(1);
    assert!(stdout(&run).contains("no candidate meets all constraints"), "{}", stdout(&run));
    assert!(!dir.path().join("out").exists());
}

#[test]
fn sweep_resumes_after_a_kill_with_identical_output() {
    let dir = folder();
    let sweep = |out: &str| {
        let args = ["sweep", "--workload-dir", ".", "--workload", "serve", "--over", "tp=1,2,4,8"];
        let mut command = atlas(dir.path(), &args);
        command.args(["--over", "concurrency=1..400:1", "--over", "max_num_seqs=16..256", "--out", out]);
        command
    };
    sweep("whole.csv").assert().code(0);
    let whole = std::fs::read(dir.path().join("whole.csv")).unwrap();
    let lines = whole.split(|byte| *byte == b'\n').count() - 2;
    assert_eq!(lines, 2 * 4 * 400 * 5);
    assert!(!dir.path().join("whole.csv.unfinished").exists());
    // A complete file is not overwritten by accident.
    let described = stderr(&sweep("whole.csv").assert().code(1));
    assert!(described.contains("--restart"), "{described}");
    // The state after a kill: a note of the last flush, and an incomplete line after the size in the note.
    let note = |out: &str| dir.path().join(format!("{out}.unfinished"));
    sweep("torn.csv").assert().code(0);
    let full = std::fs::read_to_string(dir.path().join("torn.csv")).unwrap();
    let upto: usize = full.split_inclusive('\n').take(1 + 4096).map(str::len).sum();
    std::fs::write(dir.path().join("torn.csv"), &full[..upto + 17]).unwrap();
    // The fingerprint is computed by the program: it is read from the note of a sweep that is stopped at its start.
    let fingerprint = fingerprint(dir.path());
    let text = format!("{{\"sweep\":{fingerprint},\"points\":16000,\"next\":4096,\"bytes\":{upto}}}");
    std::fs::write(note("torn.csv"), text).unwrap();
    let described = stderr(&sweep("torn.csv").assert().code(0));
    assert!(described.contains("resuming at point 4096 of 16000"), "{described}");
    assert!(std::fs::read(dir.path().join("torn.csv")).unwrap() == whole);
    // A different sweep does not continue the file.
    std::fs::write(note("torn.csv"), format!("{{\"sweep\":1,\"points\":16000,\"next\":4096,\"bytes\":{upto}}}"))
        .unwrap();
    let described = stderr(&sweep("torn.csv").assert().code(1));
    assert!(described.contains("with other settings, files or program version"), "{described}");
    sweep("torn.csv").arg("--restart").assert().code(0);
    assert!(std::fs::read(dir.path().join("torn.csv")).unwrap() == whole);
}

/// Fingerprint in the note of a sweep that fails because its file cannot grow.
fn fingerprint(dir: &Path) -> u64 {
    let child = std::process::Command::new("bash")
        .current_dir(dir)
        .args(["-c", "ulimit -f 4; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_atlas")])
        .args(["sweep", "--workload-dir", ".", "--workload", "serve", "--over", "tp=1,2,4,8"])
        .args(["--over", "concurrency=1..400:1", "--over", "max_num_seqs=16..256", "--out", "full.csv"])
        .output()
        .unwrap();
    assert!(!child.status.success());
    let note = std::fs::read_to_string(dir.join("full.csv.unfinished")).unwrap();
    let note: Value = serde_json::from_str(&note).unwrap();
    assert_eq!(note["points"], 16000);
    note["sweep"].as_u64().unwrap()
}

#[test]
fn sweep_writes_requested_metrics_of_points_that_meet_the_condition() {
    let dir = folder();
    let args = ["sweep", "--workload-dir", ".", "--workload", "train", "--target", "h100x32", "--over", "tp=1..16"];
    let more =
        ["--over", "sharding=all", "--where", "fits", "--metrics", "throughput,headroom,tpot", "--out", "s.jsonl"];
    let described = stderr(&atlas(dir.path(), &args).args(more).assert().code(2));
    assert!(described.contains("tpot_ms does not apply here"), "{described}");
    let more = ["--over", "sharding=all", "--where", "fits", "--metrics", "throughput,headroom", "--out", "s.jsonl"];
    atlas(dir.path(), &args).args(more).assert().code(0);
    let text = std::fs::read_to_string(dir.path().join("s.jsonl")).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!rows.is_empty() && rows.len() < 20);
    for row in &rows {
        assert_eq!(row["verdict"], "fits");
        assert!(row["headroom"].as_f64().unwrap() >= 0.0 && row["sharding"].is_string());
    }
    let csv = stdout(&atlas(dir.path(), &args).assert().code(0));
    assert_eq!(csv.lines().count(), 6, "{csv}");
    // A value of `--targets` that is not a file is a list of names.
    let plural = args.map(|word| if word == "--target" { "--targets" } else { word });
    assert_eq!(stdout(&atlas(dir.path(), &plural).assert().code(0)), csv);
    let described = stderr(&atlas(dir.path(), &args).args(["--out", "x.xlsx"]).assert().code(2));
    assert!(described.contains(".csv, .jsonl or .parquet"), "{described}");
    // Parquet: magic bytes at both ends, all names, and the words of non-numeric columns.
    atlas(dir.path(), &args).args(["--out", "s.parquet"]).assert().code(0);
    let bytes = std::fs::read(dir.path().join("s.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let text = String::from_utf8_lossy(&bytes);
    assert!(["target", "verdict", "tokens_per_sec", "indivisible"].iter().all(|word| text.contains(word)));
    assert!(!dir.path().join("s.parquet.unfinished").exists());
}

#[test]
fn maximum_performance_gives_every_target_its_own_best_knobs() {
    let dir = folder();
    let best = |method: &str| {
        let args = ["compare", "--workload", "serve", "--methodology", method];
        let found = json(dir.path(), &args);
        assert_eq!(found["methodology"], method);
        let tokens = |i: usize| found["targets"][i]["metrics"]["tokens_per_sec"].as_f64().unwrap();
        ((tokens(0), tokens(1)), found["differences"].clone())
    };
    let (same, differences) = best("identical-config");
    assert!(differences.get("concurrency").is_none() && differences.get("hourly_usd").is_some());
    let (own, differences) = best("maximum-performance");
    assert!(own.0 > same.0 && own.1 > same.1);
    assert!(differences.get("hourly_usd").is_some() && differences.get("dp").is_some(), "{differences}");
    let args = ["compare", "--workload-dir", ".", "--workload", "serve", "--tpot", "50"];
    let described = stderr(&atlas(dir.path(), &args).assert().code(2));
    assert!(described.contains("requires --methodology maximum-performance"), "{described}");
}

#[test]
fn the_best_of_each_target_can_be_reproduced_from_the_json() {
    let dir = folder();
    let serve = ["--workload-dir", ".", "--workload", "serve"];
    for targets in [&["h100x32"][..], &["h100x32", "mi300x8"]] {
        let named = targets.iter().flat_map(|target| ["--target", target]);
        let args: Vec<&str> = ["compare", "--workload", "serve", "--methodology", "maximum-performance"]
            .into_iter()
            .chain(named)
            .collect();
        let found = json(dir.path(), &args);
        for column in found["targets"].as_array().unwrap() {
            let target = column["target"].as_str().unwrap();
            let changes = column["changes"].as_object().unwrap();
            assert!(changes.contains_key("concurrency"), "{changes:?}");
            assert!(changes.iter().all(|(knob, value)| found["differences"][knob][target] == *value), "{found}");
            let set = changes.iter().flat_map(|(knob, value)| {
                let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                ["--set".to_owned(), format!("{knob}={word}")]
            });
            let run = ["run", "--target", target, "--format", "json"];
            let again = atlas(dir.path(), &run).args(serve).args(set).assert().code(0);
            let again: Value = serde_json::from_str(&stdout(&again)).unwrap();
            assert_eq!(again["metrics"]["tokens_per_sec"], column["metrics"]["tokens_per_sec"], "{changes:?}");
        }
    }
}

#[test]
fn sensitivity_ranks_levers_by_their_reach() {
    let dir = folder();
    let args = ["sensitivity", "--target", "h100x32", "--workload", "serve", "--metric", "tpot"];
    let found = json(dir.path(), &args);
    let swings = found["swings"].as_array().unwrap();
    let reach: Vec<f64> = swings.iter().map(|swing| swing["reach"].as_f64().unwrap()).collect();
    // Features to enable and more nodes are last.
    let levers = reach.iter().zip(swings).filter(|(_, swing)| swing["kind"] == "hardware").map(|(reach, _)| *reach);
    assert!(levers.is_sorted_by(|a, b| a >= b) && reach[0] > 0.0);
    assert!(swings.iter().any(|swing| swing["lever"] == "memory bandwidth" && swing["kind"] == "hardware"));
    assert!(found["no_effect"].as_array().unwrap().iter().any(|lever| lever == "price"));
}

#[test]
fn shell_completion_includes_names_from_user_files() {
    let dir = folder();
    let complete = |words: &[&str]| {
        let mut command = atlas(dir.path(), &["--", "atlas"]);
        command.args(words).env("ATLAS_COMPLETE", "fish");
        stdout(&command.assert().code(0))
    };
    let names = complete(&["run", "--workload-dir", ".", "--target", ""]);
    assert!(names.contains("h100x32") && names.contains("mi300x8"), "{names}");
    assert!(complete(&["sweep", "--workload-dir", ".", "--workload", "tr"]).contains("train"));
    let knobs = complete(&["run", "--set", "shar"]);
    assert!(knobs.contains("sharding=") && knobs.contains("shard="), "{knobs}");
    assert!(complete(&["run", "--set", "sharding=zero"]).contains("sharding=zero3"));
    assert!(complete(&["optimize", "--objective", "time"]).contains("time_to_train"));
    assert!(complete(&["opti"]).contains("optimize"));
}

#[test]
fn man_pages_and_schemas_are_written_to_directories() {
    let dir = folder();
    atlas(dir.path(), &["man", "man1"]).assert().code(0);
    let page = std::fs::read_to_string(dir.path().join("man1/atlas-sweep.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("\\-\\-over"), "{page}");
    for page in ["atlas.1", "atlas-optimize.1", "atlas-config-show.1", "atlas-scenario-import.1"] {
        assert!(dir.path().join("man1").join(page).exists(), "{page}");
    }
    atlas(dir.path(), &["schema", "--out", "schemas"]).assert().code(0);
    assert_eq!(std::fs::read_dir(dir.path().join("schemas")).unwrap().count(), 11);
    let printed = stdout(&atlas(dir.path(), &["schema", "workloads"]).assert().code(0));
    let written = std::fs::read_to_string(dir.path().join("schemas/workloads.schema.json")).unwrap();
    assert_eq!(printed, written);
}
