//! The predecessor's answers, case by case: `semi_empirical` agrees to 1e-9 relative in every field.

use std::sync::Arc;

use atlas_config::profile::{ProfileKey, choose};
use atlas_config::{Profile, Target, Workload};
use atlas_document::{Diagnostics, Node};
use atlas_plan::engine::semi_empirical;
use atlas_plan::knob::{Knob, KnobValues as _, Overrides, Setting};
use atlas_plan::record::{Body, Knobs};
use atlas_plan::scenario::{Parts, Scenario, first_draw};
use atlas_plan::search::hill_climb::hill_climb;
use serde_json::{Value, json};

use crate::common::goldens::{compare, goldens, input};

fn decode(goldens: &Value, inputs: &Value) -> Result<Parts, Diagnostics> {
    let node = |kind: &str| -> Node { serde_json::from_value(input(goldens, inputs, kind).clone()).unwrap() };
    let file: Arc<str> = "case".into();
    let mut problems = Diagnostics::new();
    let target = Target::decode(&file, &node("target"), &mut problems);
    let workload = Workload::decode(&file, &node("workload"), &mut problems);
    let profile = Profile::decode(&file, "profile", &node("hardware_model"), &mut problems);
    match (target, workload, profile) {
        (Some(target), Some(workload), Some(profile)) if !problems.has_errors() => {
            Ok(Parts::calibrated(&target.into(), &workload.into(), &profile.into()))
        }
        _ => Err(problems),
    }
}

fn overrides(knobs: &Value, seed: &Value) -> Overrides {
    let mut overrides = Overrides::new();
    overrides.insert(Knob::Seed, Setting::Seed(seed.as_i64().unwrap().into()));
    for (name, value) in knobs.as_object().unwrap() {
        let setting = match value {
            Value::Null => continue,
            Value::Bool(on) => Setting::Toggle(*on),
            Value::Number(number) => Setting::Number(number.as_f64().unwrap()),
            other => Setting::Choice(other.as_str().unwrap().into()),
        };
        overrides.insert(Knob::named(name).unwrap(), setting);
    }
    overrides
}

#[test]
fn runs_match_the_predecessor() {
    let goldens = goldens();
    let (mut worst, mut cases, mut errors) = (0.0, 0, 0);
    for case in goldens["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "run") {
        let (id, inputs, expected) = (case["id"].as_str().unwrap(), &case["inputs"], &case["expected"]);
        let answer = decode(&goldens, inputs).map_err(|problems| problems.to_string()).and_then(|case| {
            let overrides = overrides(&inputs["knobs"], &inputs["seed"]);
            let scenario = Scenario::resolve(&case, &overrides);
            scenario.map(|scenario| (case, scenario)).map_err(|error| error.to_string())
        });
        cases += 1;
        if expected.get("error").is_some() {
            assert!(answer.is_err(), "{id}: the original fails here");
            errors += 1;
            continue;
        }
        let (case, scenario) = answer.unwrap_or_else(|error| panic!("{id}: {error}"));
        let estimate = semi_empirical::estimate(&scenario);
        let found = json!({
            "record": Body::of(&estimate, &case.workload),
            "dollar_per_1k_tokens": estimate.cost.usd_per_1k_tokens_parity,
        });
        compare(id, expected, &found, &mut worst);
    }
    println!("{cases} run cases, {errors} of them errors in both; largest relative error {worst:e}");
    assert!(cases >= 597 && errors < 10);
}

#[test]
fn cli_runs_match_the_predecessor() {
    let goldens = goldens();
    let (mut worst, mut cases) = (0.0, 0);
    for case in goldens["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "cli_run") {
        let (id, inputs, expected) = (case["id"].as_str().unwrap(), &case["inputs"], &case["expected"]);
        let decoded = decode(&goldens, inputs).unwrap();
        let mut flags = inputs["flags"].clone();
        let seed = flags["seed"].clone();
        let track = flags["track"].as_str().unwrap().to_owned();
        for other in ["seed", "track"] {
            flags.as_object_mut().unwrap().remove(other);
        }
        let overrides = overrides(&flags, &seed);
        let scenario = Scenario::resolve(&decoded, &overrides).unwrap();
        let estimate = semi_empirical::estimate(&scenario);
        let record = atlas_plan::record::Record::new(
            &decoded.target.name,
            &decoded.workload,
            &track,
            "pre-opt",
            &scenario,
            &overrides,
            &estimate,
        );
        let found = json!({
            "knobs": record.knobs,
            "record": record.record,
            "label": record.label,
            "file_name": record.file_name(),
            "dollar_per_1k_tokens": record.dollar_per_1k_tokens,
        });
        compare(id, expected, &found, &mut worst);
        cases += 1;
    }
    println!("{cases} cli_run cases; largest relative error {worst:e}");
    assert!(cases >= 26);
}

#[test]
fn optimizations_match_the_predecessor() {
    let goldens = goldens();
    let (mut worst, mut cases) = (0.0, 0);
    for case in goldens["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "optimize") {
        let (id, inputs, expected) = (case["id"].as_str().unwrap(), &case["inputs"], &case["expected"]);
        let decoded = decode(&goldens, inputs).unwrap();
        let overrides = overrides(&inputs["knobs"], &inputs["seed"]);
        let start = Scenario::resolve(&decoded, &overrides).unwrap();
        let found = hill_climb(&start, &decoded, inputs["sla_p99_ms"].as_f64().unwrap());
        let found = json!({
            "knobs": Knobs::of(&found.scenario),
            "record": Body::of(&found.estimate, &decoded.workload),
            "dollar_per_1k_tokens": found.estimate.cost.usd_per_1k_tokens_parity,
        });
        compare(id, expected, &found, &mut worst);
        cases += 1;
    }
    println!("{cases} optimize cases; largest relative error {worst:e}");
    assert!(cases >= 120);
}

#[test]
fn profile_choice_matches_the_predecessor() {
    let goldens = goldens();
    let mut cases = 0;
    for case in goldens["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "hardware_resolution") {
        let (id, inputs, expected) = (case["id"].as_str().unwrap(), &case["inputs"], &case["expected"]);
        // Only cases with a directory of files involve a choice.
        let Some(files) = inputs["dir_files"].as_object() else { continue };
        let mut names: Vec<&String> = files.keys().collect();
        names.sort();
        let keys: Vec<ProfileKey> = names
            .iter()
            .map(|name| {
                let node: Node = serde_json::from_value(files[name.as_str()].clone()).unwrap();
                ProfileKey::of(name.trim_end_matches(".yaml"), &node)
            })
            .collect();
        let target = &inputs["match_target"];
        let chosen = choose(&keys, target["name"].as_str().unwrap(), target["vendor"].as_str().unwrap());
        // The predecessor merges the chosen file into its defaults, so the file's values must appear in its answer.
        match chosen {
            Some(index) => {
                let file = &files[names[index].as_str()];
                let mut marks = Vec::new();
                leaves(file, &mut Vec::new(), &mut marks);
                for (path, value) in marks {
                    let found = path.iter().fold(&expected["model"], |node, key| &node[key.as_str()]);
                    assert_eq!(found, &value, "{id}: {path:?}");
                }
            }
            None => assert!(expected["model"].get("tagv").is_none(), "{id}"),
        }
        cases += 1;
    }
    assert!(cases >= 10, "{cases}");
}

fn leaves(value: &Value, path: &mut Vec<String>, out: &mut Vec<(Vec<String>, Value)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                path.push(key.clone());
                leaves(value, path, out);
                path.pop();
            }
        }
        Value::Null => {}
        other => out.push((path.clone(), other.clone())),
    }
}

/// The predecessor fills missing values from hidden defaults, and fails on those that the defaults lack. Ours lists all
/// missing values.
#[test]
fn incomplete_profile_reports_all_missing_fields_in_one_error() {
    let goldens = goldens();
    let case = goldens["cases"].as_array().unwrap().iter().find(|case| case["kind"] == "default_model_run").unwrap();
    assert!(case["expected"].get("error").is_some());
    let node: Node = serde_json::from_value(json!({"compute": {"base_tokens_per_accel": 1000.0}})).unwrap();
    let mut problems = Diagnostics::new();
    assert!(Profile::decode(&"p.yaml".into(), "p", &node, &mut problems).is_none());
    let text = problems.to_string();
    assert_eq!(problems.errors(), 1, "{text}");
    for hole in [
        "compute.comm_penalty_coeff",
        "latency.ttft_ratio",
        "power.idle_fraction",
        "noise.tail_scale",
        "communication.intensity.per_tp",
        "communication.fabric_factors",
        "hbm.seq_norm",
        "compute.factors.training",
    ] {
        assert!(text.contains(hole), "{hole} in {text}");
    }
}

#[test]
fn first_random_draw_equals_python_random() {
    let cases: Value = serde_json::from_str(include_str!("../data/python_random.json")).unwrap();
    let mut count = 0;
    for case in cases["cases"].as_array().unwrap() {
        let Ok(seed) = case["seed"].as_str().unwrap().parse::<i128>() else { continue };
        assert_eq!(first_draw(seed), case["first_random"][0].as_f64().unwrap(), "seed {seed}");
        count += 1;
    }
    assert!(count >= 20, "{count}");
}
