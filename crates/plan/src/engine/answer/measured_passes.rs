//! Comparison with passes of randomly initialized models, timed on one H200 by `benches/accelerator.py` (PyTorch 2.11,
//! CUDA 13.0, FlashAttention-2). No constant was fitted to these times.
#![allow(clippy::unwrap_used)]

use crate::engine::estimate;
use crate::estimate::{Detail, TimePart};
use crate::scenario::{Parts, Scenario};
use crate::testing;
use atlas_config::{Target, Workload};
use atlas_core::plan::Engine;
use atlas_document::{Diagnostics, Node};
use std::sync::Arc;

const TARGET: &str = "
- name: here
  vendor: NVIDIA
  accelerator: nvidia-h200-sxm
  accelerators_per_node: 1
  num_nodes: 1
  memory_gb_per_accel: 141
  cost: { hourly_usd: 2, energy_watts_node: 1000, pue: 1.2 }
";
const TRAINING: &str = "
- name: here
  mode: training
  model: llama3.2-3b
  software: torchtitan@0.2.2
  sequence: { prompt: 8192, generate: 0 }
  batch: { micro: 1, global: 1 }
  sharding: none
  recompute: none
";
const SERVING: &str = "
- name: here
  mode: inference
  model: llama3.1-8b
  software: sglang
  sequence: { prompt: 2048, generate: 1 }
  batch: { micro: 1 }
";

fn entry(text: &str) -> Node {
    let root = atlas_document::parse::parse(&"here.yaml".into(), text, &mut Diagnostics::new()).unwrap();
    root.items().unwrap().first().unwrap().clone()
}

fn detail(workload: &str, set: &[String]) -> Detail {
    let mut problems = Diagnostics::new();
    let target = Target::decode(&"here.yaml".into(), &entry(TARGET), &mut problems).unwrap();
    let workload = Workload::decode(&"here.yaml".into(), &entry(workload), &mut problems).unwrap();
    let parts = Parts::of(&testing::LIBRARY, &Arc::new(target), &Arc::new(workload)).unwrap();
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    let overrides = testing::with_engine(Engine::Analytical, &set);
    estimate(&Scenario::resolve(&parts, &overrides).unwrap()).detail.unwrap()
}

#[test]
fn compiled_training_passes_match_times_measured_on_h200() {
    for (model, batch, length, seconds) in [
        ("llama3.2-1b", 4, 2048, 0.1149),
        ("llama3.2-1b", 2, 4096, 0.1241),
        ("llama3.2-1b", 1, 8192, 0.1416),
        ("llama3.2-3b", 4, 2048, 0.2884),
        ("llama3.2-3b", 2, 4096, 0.3071),
        ("llama3.2-3b", 1, 8192, 0.3489),
    ] {
        let sizes = [format!("microbatch={batch}"), format!("global_batch={batch}"), format!("prompt={length}")];
        let answer = detail(&TRAINING.replace("llama3.2-3b", model), &sizes);
        let passes: f64 = [TimePart::Gemm, TimePart::Attention, TimePart::Elementwise]
            .map(|part| answer.time.part(part))
            .iter()
            .sum();
        let ratio = passes / seconds;
        assert!((0.9..1.12).contains(&ratio), "{model}, {batch} of {length} tokens: {ratio:.3}");
    }
}

#[test]
fn prefill_times_match_those_measured_on_h200() {
    for (length, seconds) in
        [(1024, 0.0291), (2048, 0.0561), (4096, 0.1138), (8192, 0.2411), (16_384, 0.5506), (32_768, 1.3305)]
    {
        let set = [
            format!("prompt={length}"),
            "load=prefill-only".to_owned(),
            "concurrency=1".to_owned(),
            "max_num_batched_tokens=65536".to_owned(),
        ];
        let ratio = detail(SERVING, &set).serving.unwrap().ttft_ms.mean / 1e3 / seconds;
        assert!((0.9..1.12).contains(&ratio), "{length} tokens: {ratio:.3}");
    }
}
