//! The estimator, scenarios and hardware profiles of the predecessor dashboard: ours give the same results, imported
//! and exported.

use std::io::Read as _;
use std::sync::Arc;

use crate::common::program::atlas;
use atlas_catalog::Catalog;
use atlas_config::library::Library;
use atlas_config::{Target, Workload};
use atlas_document::parse::parse;
use atlas_document::{Diagnostics, Sources};
use atlas_legacy::exchange;
use atlas_plan::engine;
use atlas_plan::engine::benchboard::contrast::contrast;
use atlas_plan::engine::benchboard::{estimator, input};
use atlas_plan::estimate::METRICS;
use atlas_plan::explain;
use atlas_plan::knob::{Knob, KnobValues as _, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_report::dashboard::{estimate, scenario as exported};
use serde_json::{Value, json};

fn cases() -> Vec<Value> {
    let packed = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/benchboard.json.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    all["cases"].as_array().unwrap().clone()
}

/// A case in the form in which the dashboard exports it.
fn document(case: &Value) -> Value {
    let inputs = &case["inputs"];
    json!({
        "id": inputs["scenarioId"],
        "model": inputs["model"],
        "parallelism": inputs["parallelism"],
        "workload": inputs["workload"],
        "hardware": inputs["hardware"],
    })
}

/// Reads a dashboard document in the same way as a user's file.
fn import(library: &Library, text: &str) -> (Vec<Parts>, Diagnostics) {
    let file: Arc<str> = "scenario.json".into();
    let mut problems = Diagnostics::new();
    let root = parse(&file, text, &mut problems).unwrap();
    let foreign = exchange::read(&file, &root, library.catalog(), &|_| None, &mut problems).unwrap();
    let mut parts = Vec::new();
    for target in &foreign.targets {
        for workload in &foreign.workloads {
            let target = Target::decode(&file, target, &mut problems).unwrap();
            let workload = Workload::decode(&file, workload, &mut problems).unwrap();
            parts.push(Parts::of(library, &Arc::new(target), &Arc::new(workload)).unwrap());
        }
    }
    (parts, problems)
}

fn dashboard() -> Overrides {
    Overrides::from([(Knob::Engine, Setting::Choice("benchboard".into()))])
}

fn close(id: &str, what: &str, got: f64, expected: f64) -> f64 {
    let error = if expected == 0.0 { got.abs() } else { (got - expected).abs() / expected.abs() };
    assert!(error <= 1e-12, "{id} {what}: {got} for {expected}");
    error
}

#[test]
fn predecessor_cases_match_after_import_and_round_trip_on_export() {
    let library = Library::load(&Sources::built_in(), None);
    let all = cases();
    assert!(all.len() >= 400);
    for case in &all {
        let id = case["id"].as_str().unwrap();
        let (parts, problems) = import(&library, &document(case).to_string());
        assert!(!problems.has_errors(), "{id}: {problems}");
        let [parts] = parts.as_slice() else { panic!("{id}: one pair") };
        let scenario = Scenario::resolve(parts, &dashboard()).unwrap();
        let expected = &case["expected"]["result"];
        let got = estimate(&scenario, parts);
        for (name, value) in expected.as_object().unwrap() {
            match value.as_f64() {
                Some(number) => drop(close(id, name, got[name].as_f64().unwrap(), number)),
                None => assert_eq!(&got[name], value, "{id} {name}"),
            }
        }
        let warned: Vec<&str> = got["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let about = case["expected"]["warnings"].as_array().unwrap();
        assert_eq!(warned.len(), about.len(), "{id}: {warned:?}");
        for (described, about) in warned.iter().zip(about) {
            // The predecessor uses British spelling.
            let about = about.as_str().unwrap().replace("utilisation", "utilization");
            assert!(described.starts_with(&about), "{id}: {described} for {about}");
        }
        // Metrics that all engines share have the same values.
        let estimate = engine::estimate(&scenario);
        close(id, "tokens/s", estimate.total.tokens_per_sec, expected["tokensPerSecond"].as_f64().unwrap());
        close(id, "$/M", estimate.cost.usd_per_1k_tokens * 1e3, expected["costPerMillionTokens"].as_f64().unwrap());
        close(id, "memory", estimate.total.peak_mem_gb, expected["totalMemoryGB"].as_f64().unwrap());
        let detail = estimate.detail.unwrap();
        close(id, "time", detail.time.total() * 1e3, expected["estimatedStepTimeMs"].as_f64().unwrap());
        assert_eq!(detail.verdict.fits(), expected["memoryUtilization"].as_f64().unwrap() <= 100.0, "{id}");
        // An export can be imported again without loss.
        let (again, _) = import(&library, &exported(&scenario, parts).to_string());
        let back = Scenario::resolve(&again[0], &dashboard()).unwrap();
        assert_eq!(input(&back, &back.base), input(&scenario, &scenario.base), "{id}");
    }
}

#[test]
fn built_in_dashboard_entries_match_the_predecessor_and_are_unlisted() {
    let library = Library::load(&Sources::built_in(), None);
    let (targets, workloads) = library.dashboard_entries();
    assert_eq!((targets.len(), workloads.len()), (8, 3));
    assert!(targets.iter().all(|target| library.targets().iter().all(|listed| listed.name != target.name)));
    let mut seen = 0;
    for case in cases().iter().filter(|case| case["config"].as_str().unwrap().starts_with("base-")) {
        let (target, workload) = (case["inputs"]["hardware"]["id"].as_str(), case["inputs"]["scenarioId"].as_str());
        let parts = Parts::find(&library, target.unwrap(), workload.unwrap()).unwrap();
        let scenario = Scenario::resolve(&parts, &dashboard()).unwrap();
        let rate = engine::estimate(&scenario).total.tokens_per_sec;
        close("shipped", "tokens/s", rate, case["expected"]["result"]["tokensPerSecond"].as_f64().unwrap());
        seen += 1;
    }
    assert!(seen > 10);
}

#[test]
fn only_the_knobs_that_the_dashboard_uses_change_its_estimate() {
    let library = Library::load(&Sources::built_in(), None);
    let parts = Parts::find(&library, "nvidia-h100-80gb", "llama-7b-training").unwrap();
    let base = Scenario::resolve(&parts, &dashboard()).unwrap();
    let asked = |knob: Knob, text: &str| {
        let mut overrides = dashboard();
        overrides.insert(knob, knob.parse(text, &[]).unwrap());
        let scenario = Scenario::resolve(&parts, &overrides).unwrap();
        (input(&scenario, &scenario.base), engine::estimate(&scenario))
    };
    let before = engine::estimate(&base);
    for (knob, text) in
        [(Knob::Tp, "4"), (Knob::Dp, "16"), (Knob::Microbatch, "4"), (Knob::Recompute, "full"), (Knob::HourlyUsd, "8")]
    {
        assert!(base.uses(knob), "{}", knob.name());
        let (after, estimate) = asked(knob, text);
        assert_ne!(after, input(&base, &base.base), "{}", knob.name());
        assert_ne!(estimate, before, "{}", knob.name());
    }
    for knob in Knob::all().filter(|knob| !base.uses(*knob) && *knob != Knob::NumNodes) {
        let step = knob.step(&base.get(knob), 1, parts.fabrics());
        let mut overrides = dashboard();
        overrides.insert(knob, step);
        if let Ok(turned) = Scenario::resolve(&parts, &overrides) {
            assert_eq!(engine::estimate(&turned).total, before.total, "{} is not heeded", knob.name());
        }
    }
    // A number format whose width the dashboard does not know is rejected.
    let mut overrides = dashboard();
    overrides.insert(Knob::Precision, Setting::Choice("fp8".into()));
    let described = Scenario::resolve(&parts, &overrides).unwrap_err().to_string();
    assert!(described.contains("precision fp32, fp16, bf16 or int8"), "{described}");
}

#[test]
fn every_metric_equation_evaluates_to_its_value() {
    let library = Library::load(&Sources::built_in(), None);
    for (target, workload) in [("google-tpu-v5p", "llama-70b-training"), ("nvidia-v100-32gb", "mixtral-8x7b-training")]
    {
        let parts = Parts::find(&library, target, workload).unwrap();
        let scenario = Scenario::resolve(&parts, &dashboard()).unwrap();
        let estimate = engine::estimate(&scenario);
        for metric in METRICS.iter().filter(|metric| metric.applies_to(&scenario)) {
            let tree = explain::explain(&scenario, &parts, &estimate, metric).unwrap();
            let derived = ["tokens_per_sec", "step_time_ms", "flop_utilization", "peak_mem_gb", "dollar_per_1k_tokens"];
            assert!(tree.equation.is_some() || !derived.contains(&metric.name), "{} has no equation", metric.name);
            for term in tree.walk() {
                let Some(equation) = &term.equation else { continue };
                let computed = equation.value(&term.terms);
                assert!((computed - term.value).abs() <= 1e-9 * term.value.abs(), "{} {}", metric.name, term.symbol);
            }
        }
    }
}

#[test]
fn contrast_factors_multiply_to_the_ratio_of_the_engines() {
    let library = Library::load(&Sources::built_in(), None);
    let (targets, workloads) = library.dashboard_entries();
    let mut seen = 0;
    for target in targets {
        for workload in workloads {
            let parts = Parts::find(&library, &target.name, &workload.name).unwrap();
            let both = contrast(&Scenario::from_files(&parts), &parts).unwrap();
            let (_, estimate) = both.analytical.as_ref().unwrap();
            let product: f64 = both.factors.iter().map(|factor| factor.factor).product();
            let ratio = estimate.total.tokens_per_sec / both.dashboard.tokens_per_sec;
            assert!((product / ratio - 1.0).abs() < 1e-6, "{} {}: {product} {ratio}", target.name, workload.name);
            seen += 1;
        }
    }
    assert_eq!(seen, 24);
}

#[test]
fn bad_values_are_named_all_at_once() {
    let text = r#"{"id": "x", "model": {"parameters": -7, "contextLength": 0, "precision": "fp12"},
  "parallelism": {"dataParallel": 0, "tensorParallel": 1.5},
  "workload": {"type": "trainig"}, "hardware": {"id": "h", "vendor": "V", "fp16Tflops": 0, "vramSizeGB": "many",
  "interconnectBandwidthGBps": 1, "costPerHour": -1}}"#;
    let file: Arc<str> = "bad.json".into();
    let mut problems = Diagnostics::new();
    let root = parse(&file, text, &mut problems).unwrap();
    let foreign = exchange::read(&file, &root, &Catalog::built_in(), &|_| None, &mut problems).unwrap();
    assert!(foreign.targets.is_empty() && foreign.workloads.is_empty());
    let described = problems.to_string();
    for wanted in [
        "bad.json:1:37: error: x.model.parameters: found -7",
        "x.model.contextLength: found 0, expected a whole number",
        "x.model.precision: found text \"fp12\"",
        "x.parallelism.dataParallel: found 0",
        "x.parallelism.tensorParallel: found 1.5",
        "x.workload.type: found text \"trainig\", expected one of training, inference; did you mean `training`?",
        "parallelism.pipelineParallel",
        "workload.batchSize",
        "h.fp16Tflops: found 0",
        "h.vramSizeGB: found text \"many\"",
        "h.costPerHour: found -1",
    ] {
        assert!(described.contains(wanted), "{wanted} in:\n{described}");
    }
}

#[test]
fn extreme_inputs_give_a_finite_positive_throughput() {
    for context in [1.0, 4096.0, 1e9] {
        for (dp, tp, pp) in [(1.0, 1.0, 1.0), (1e6, 1e6, 1e6)] {
            let i = estimator::Input {
                parameters: 7e9,
                hidden: 0.0,
                layers: 0.0,
                context,
                bytes_per_value: 2.0,
                batch: 1.0,
                micro_batch: 0.0,
                dp,
                tp,
                pp,
                checkpointing: true,
                tflops: 1.0,
                memory_gb: 80.0,
                link_gb_per_sec: 1.0,
                usd_per_hour: 0.0,
                tpu: false,
                gpu: true,
            };
            let answer = estimator::estimate(&i);
            assert!(answer.tokens_per_sec > 0.0 && answer.tokens_per_sec.is_finite());
            assert_eq!(answer.usd_per_hour, 0.0);
        }
    }
}

#[test]
fn scenario_import_export_and_compare_agree_on_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let described = |args: &[&str]| {
        let out = atlas(dir.path(), args).output().unwrap();
        let (stdout, stderr) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
        (out.status.code(), stdout, stderr)
    };
    let pair = ["--workload", "llama-7b-training", "--target", "nvidia-a100-80gb"];
    let export = ["scenario", "export", "--results", "--out", "scenario.json"];
    let (code, _, problems) = described(&[&export[..], &pair].concat());
    assert_eq!(code, Some(0), "{problems}");
    let text = std::fs::read_to_string(dir.path().join("scenario.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    close("export", "tokens/s", value["result"]["tokensPerSecond"].as_f64().unwrap(), 12600.56331467925);
    assert_eq!(value["hardware"]["costPerHour"], 4.1);

    let import = ["scenario", "import", "scenario.json", "--out", "mine"];
    assert_eq!(described(&import).0, Some(0));
    let (code, _, problems) = described(&import);
    assert!(code == Some(1) && problems.contains("--force"), "{problems}");

    let run = ["run", "--format", "json", "--engine", "benchboard"];
    for from in [&["--workload-dir", "mine"][..], &["--config", "scenario.json"], &[]] {
        let (code, answer, problems) = described(&[&run[..], &pair, from].concat());
        assert!(code == Some(0) && answer.contains("12600.5633146"), "{from:?} {answer} {problems}");
    }

    let (code, answer, _) = described(&["scenario", "compare", "llama-7b-training", "--target", "nvidia-a100-80gb"]);
    assert!(code == Some(0) && answer.contains("12601") && answer.contains("FLOPs of a token"), "{answer}");
    let (code, answer, _) = described(&["scenario", "compare", "--format", "csv"]);
    assert!(code == Some(0) && answer.lines().count() == 25, "{answer}");
}
