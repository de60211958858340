//! Compares the recorded logs in `tests/data/logs` with the facts that must be read from them.

use crate::common::{context, read, sample, sample_names};
use atlas_ingest::{Context, Origin, joint};
use serde_json::Value;

/// Collects everything in `expected` that `got` lacks or contradicts.
fn differences(path: &str, expected: &Value, got: &Value, out: &mut Vec<String>) {
    // Text fields that explain the expectations.
    const REMARKS: [&str; 4] = ["note", "runs", "consistency", "method"];
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            for (name, value) in expected {
                if REMARKS.contains(&name.as_str()) && value.is_string() {
                    continue;
                }
                match got.get(name) {
                    Some(got) => differences(&format!("{path}.{name}"), value, got, out),
                    None => out.push(format!("{path}.{name}: expected {value}, found nothing")),
                }
            }
        }
        (Value::Array(expected), Value::Array(got)) if expected.len() == got.len() => {
            for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
                differences(&format!("{path}[{index}]"), expected, got, out);
            }
        }
        (Value::Number(expected), Value::Number(got)) => {
            let (expected, got) = (expected.as_f64().unwrap(), got.as_f64().unwrap());
            if (expected - got).abs() > 1e-6 * expected.abs().max(got.abs()) {
                out.push(format!("{path}: expected {expected}, found {got}"));
            }
        }
        (expected, got) if expected == got => {}
        (expected, got) => out.push(format!("{path}: expected {expected}, found {got}")),
    }
}

#[test]
fn every_sample_gives_the_expected_facts() {
    let expectations: Vec<Value> = serde_json::from_slice(&sample("expectations.json")).unwrap();
    assert_eq!(expectations.len(), sample_names().len());
    let mut problems = Vec::new();
    let mut formats = std::collections::BTreeSet::new();
    for entry in &expectations {
        let name = entry["file"].as_str().unwrap();
        let mut context: Context = context(name);
        if name == "nanogpt/nanogpt_issue110.log" {
            // The number of GPUs is stated in the publication, not in the published lines.
            context.settings.number("num_gpus", Some(8.0), Origin::User);
        }
        let mut files = vec![atlas_ingest::ingest(sample(name).as_slice(), &context).unwrap()];
        if entry["expected"].get("joint_with_vllm_bench").is_some() {
            let benchmark = "vllm_bench/gptoss120b_h200_tp8_c64.json";
            files.push(read(benchmark, &sample(benchmark)));
            joint::join(&mut files);
        }
        let reading = &files[0].readings[0];
        formats.insert(reading.format.to_owned());
        let mut facts = reading.facts.clone();
        facts.set("kind", reading.kind);
        let mut found = Vec::new();
        for (what, got) in [("tool", reading.tool), ("format", reading.format)] {
            if entry[what] != got {
                found.push(format!("{what}: expected {}, found {got}", entry[what]));
            }
        }
        differences("", &entry["expected"], &Value::from(facts), &mut found);
        problems.extend(found.into_iter().map(|problem| format!("{name}: {problem}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(formats.len(), 52, "{formats:?}");
}
