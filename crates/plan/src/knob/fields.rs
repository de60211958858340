//! Tests that no workload field without a knob is accepted and ignored: each changes the estimate or its notes, or
//! causes a warning.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use crate::engine::{estimate, notes};
use crate::scenario::{Parts, Scenario};
use crate::testing;
use atlas_config::Workload;
use atlas_core::plan::Engine;
use atlas_document::Diagnostics;

/// Workload that describes its model in `params`.
const TRAINED: &str = "
- name: here
  mode: training
  params: { hidden_size: 4096, n_layers: 32, vocab_size: 128256, n_heads: 32, n_kv_heads: 8, ffn_hidden_size: 14336 }
  sequence: { prompt: 4096, generate: 0 }
  batch: { micro: 1, global: 512 }
  parallelism: { tp: 2, pp: 1, dp: 4 }
  precision: { weights: bf16, activations: bf16 }
";
/// Workload that serves a catalog model in two pools.
const POOLS: &str = "
- name: here
  mode: inference
  model: llama-3.1-8b
  sequence: { prompt: 2048, generate: 256 }
  parallelism: { tp: 1 }
  precision: { weights: bf16, activations: bf16 }
  serving: { engine: vllm, concurrency: 64, pools: { prefill: { workers: 2, tp: 2 }, decode: { workers: 4, tp: 1 } } }
";
/// Workload with a schedule.
const SCHEDULED: &str = "
- name: here
  mode: inference
  model: llama-3.1-8b
  sequence: { prompt: 1024, generate: 256 }
  parallelism: { tp: 1 }
  precision: { weights: bf16, activations: bf16 }
  serving: { engine: vllm, concurrency: 64 }
  duration_minutes: 60
  schedule:
    request_profile: steady_state
    phases:
      - { name: calm, duration_minutes: 30, tokens_scale: 1, autoscale_factor: 1, request_profile: low }
      - { name: busy, duration_minutes: 30, arrival: { requests_per_sec: 20, dp_override: 8 }, overrides: { sequence: { prompt: 2048 } } }
";

const TRAINED_FIELDS: [(&str, &str); 9] = [
    ("mode: training", "mode: inference"),
    ("hidden_size: 4096", "hidden_size: 5120"),
    ("n_layers: 32", "n_layers: 40"),
    ("vocab_size: 128256", "vocab_size: 32000"),
    ("n_heads: 32", "n_heads: 16"),
    ("n_kv_heads: 8", "n_kv_heads: 16"),
    ("ffn_hidden_size: 14336", "ffn_hidden_size: 11008"),
    ("weights: bf16", "weights: fp7"),
    ("params: {", "parms: {"),
];
const POOLS_FIELDS: [(&str, &str); 7] = [
    ("model: llama-3.1-8b", "model: qwen2.5-7b"),
    ("engine: vllm", "engine: sglang"),
    ("prefill: { workers: 2, tp: 2 }", "prefill: { workers: 1, tp: 2 }"),
    ("prefill: { workers: 2, tp: 2 }", "prefill: { workers: 2, tp: 1 }"),
    ("decode: { workers: 4, tp: 1 }", "decode: { workers: 2, tp: 1 }"),
    ("decode: { workers: 4, tp: 1 }", "decode: { workers: 4, tp: 1, pp: 2 }"),
    ("decode: { workers: 4, tp: 1 }", "decode: { workers: 4, tp: 1, attention_dp: 2 }"),
];
const SCHEDULED_FIELDS: [(&str, &str); 8] = [
    ("duration_minutes: 30, tokens_scale", "duration_minutes: 60, tokens_scale"),
    ("tokens_scale: 1", "tokens_scale: 0.5"),
    ("autoscale_factor: 1", "autoscale_factor: 0.5"),
    ("request_profile: low", "request_profile: peak"),
    ("request_profile: low", "request_profile: nights"),
    ("requests_per_sec: 20", "requests_per_sec: 40"),
    ("dp_override: 8", "dp_override: 4"),
    ("prompt: 2048", "prompt: 4096"),
];

/// Everything that is reported for a workload, with every closed-form engine.
fn description(text: &str) -> String {
    let mut diagnostics = Diagnostics::new();
    let node = atlas_document::parse::parse(&"here.yaml".into(), text, &mut diagnostics).unwrap();
    let entry = node.items().and_then(|items| items.first()).unwrap();
    let workload = Workload::decode(&"here.yaml".into(), entry, &mut diagnostics);
    let Some(workload) = workload.map(Arc::new) else { return diagnostics.to_string() };
    let target = testing::LIBRARY.target("h100-sxm-8").unwrap();
    let answer = match Parts::of(&testing::LIBRARY, target, &workload) {
        Err(problems) => problems.to_string(),
        Ok(parts) => match Scenario::resolve(&parts, &testing::with_engine(Engine::Analytical, &[])) {
            Err(refused) => refused.to_string(),
            Ok(scenario) => {
                let answer = estimate(&scenario);
                format!("{answer:?} {:?}", notes::notes(&scenario, &answer))
            }
        },
    };
    format!("{diagnostics} {answer}")
}

#[test]
fn workload_fields_without_a_knob_change_the_answer_or_warn() {
    let mut ignored = Vec::new();
    let all = [(TRAINED, &TRAINED_FIELDS[..]), (POOLS, &POOLS_FIELDS[..]), (SCHEDULED, &SCHEDULED_FIELDS[..])];
    for (text, fields) in all {
        let before = description(text);
        for (from, to) in fields {
            assert!(text.contains(from), "{from}");
            if description(&text.replacen(from, to, 1)) == before {
                ignored.push(*to);
            }
        }
    }
    assert!(ignored.is_empty(), "accepted and ignored: {}", ignored.join(", "));
}
