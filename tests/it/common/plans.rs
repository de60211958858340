//! Targets and workloads of every kind, for tests of whole scenarios.
#![allow(clippy::unwrap_used, clippy::expect_used, dead_code, unreachable_pub)]

use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::knob::{Knob, KnobValues as _, Overrides, Setting, ValueType};
use atlas_plan::scenario::{Parts, Scenario};

const TARGETS: &str = "
- {name: h100x1, vendor: NVIDIA, accelerator: nvidia-h100-sxm-80gb, accelerators_per_node: 1, num_nodes: 1, memory_gb_per_accel: 80, cost: {hourly_usd: 3.0, energy_watts_node: 1300, pue: 1.2}}
- {name: h100x8, vendor: NVIDIA, accelerator: nvidia-h100-sxm-80gb, accelerators_per_node: 8, num_nodes: 1, memory_gb_per_accel: 80, cost: {hourly_usd: 24.0, energy_watts_node: 10200, pue: 1.2, capex_usd_node: 280000}}
- {name: h100x128, vendor: NVIDIA, accelerator: nvidia-h100-sxm-80gb, accelerators_per_node: 8, num_nodes: 16, memory_gb_per_accel: 80, network: {type: IB, Gbps_per_accel: 400}, cost: {hourly_usd: 24.0, energy_watts_node: 10200, pue: 1.2}}
- {name: a100x64, vendor: NVIDIA, accelerator: nvidia-a100-sxm-80gb, accelerators_per_node: 8, num_nodes: 8, memory_gb_per_accel: 80, network: {type: IB, Gbps_per_accel: 200, topology: torus, oversubscription: 2}, cost: {hourly_usd: 14.0, energy_watts_node: 6500, pue: 1.2}}
- {name: b200x8, vendor: NVIDIA, accelerator: nvidia-b200, accelerators_per_node: 8, num_nodes: 1, memory_gb_per_accel: 180, cost: {hourly_usd: 40.0, energy_watts_node: 14300, pue: 1.2}}
- {name: gb200x72, vendor: NVIDIA, accelerator: nvidia-gb200, accelerators_per_node: 72, num_nodes: 1, memory_gb_per_accel: 186, cost: {hourly_usd: 380.0, energy_watts_node: 132000, pue: 1.2}}
- {name: mi300x8, vendor: AMD, accelerator: amd-mi300x, accelerators_per_node: 8, num_nodes: 1, memory_gb_per_accel: 192, cost: {hourly_usd: 16.0, energy_watts_node: 10500, pue: 1.2}}
- {name: v5p64, vendor: Google, accelerator: google-tpu-v5p, accelerators_per_node: 4, num_nodes: 16, memory_gb_per_accel: 95, cost: {hourly_usd: 16.8, energy_watts_node: 2500, pue: 1.1}}
- {name: trn1x16, vendor: AWS, accelerator: aws-trn1, accelerators_per_node: 16, num_nodes: 4, memory_gb_per_accel: 32, cost: {hourly_usd: 21.5, energy_watts_node: 6000, pue: 1.2}}
- {name: rtx4090x2, vendor: NVIDIA, accelerator: nvidia-rtx-4090, accelerators_per_node: 2, num_nodes: 1, memory_gb_per_accel: 24, cost: {hourly_usd: 0.8, energy_watts_node: 1200, pue: 1.2}}
- {name: plain, vendor: NVIDIA, accelerators_per_node: 8, num_nodes: 2, memory_gb_per_accel: 80, cost: {hourly_usd: 24.0, energy_watts_node: 10200, pue: 1.2}}
";

const WORKLOADS: &str = "
- {name: train_8b, mode: training, model: llama-3.1-8b, sequence: {prompt: 8192, generate: 0}, batch: {micro: 1, global: 128}, sharding: fsdp}
- {name: train_70b, mode: training, model: llama-3-70b, sequence: {prompt: 4096, generate: 0}, batch: {micro: 1, global: 256}, parallelism: {tp: 8, pp: 4}, precision: {weights: bf16}}
- {name: train_70b_pinned, mode: training, model: llama-3-70b, sequence: {prompt: 4096, generate: 0}, batch: {micro: 2, global: 256}, parallelism: {tp: 4, pp: 4, dp: 4}, recompute: full, pipeline_schedule: gpipe, overlap: false}
- {name: train_moe, mode: training, model: mixtral-8x7b, sequence: {prompt: 4096, generate: 0}, batch: {micro: 1, global: 256}, parallelism: {tp: 2, ep: 4}}
- {name: train_long, mode: training, model: llama-3.1-8b, sequence: {prompt: 131072, generate: 0}, batch: {micro: 1, global: 64}, parallelism: {tp: 4, cp: 2}, recompute: none}
- {name: train_plain, mode: training, model: llama-3.1-8b, sequence: {prompt: 4000, generate: 0}, batch: {micro: 3}, sharding: none, recompute: none}
- {name: serve_8b, mode: inference, model: llama-3.1-8b, sequence: {prompt: 1024, generate: 256}}
- {name: serve_70b, mode: inference, model: llama-3.1-70b, sequence: {prompt: 1024, generate: 256}, parallelism: {tp: 8}, precision: {weights: fp8}, serving: {engine: vllm, concurrency: 64}}
- {name: serve_70b_one, mode: inference, model: llama-3.1-70b, parallelism: {tp: 1}, sequence: {prompt: 1024, generate: 256}, serving: {concurrency: 8}}
- {name: serve_rate, mode: inference, model: llama-3.1-8b, sequence: {prompt: 4096, generate: 512}, serving: {engine: vllm, request_rate: 400}}
- {name: serve_pools, mode: inference, model: llama-3.1-8b, sequence: {prompt: 8192, generate: 128}, serving: {engine: sglang, concurrency: 256, prefill_accelerators: 2}}
- {name: serve_v3, mode: inference, model: deepseek-v3, sequence: {prompt: 2048, generate: 512}, parallelism: {tp: 8}, serving: {concurrency: 128}}
- {name: serve_draft, mode: inference, model: llama-3.1-8b, sequence: {prompt: 512, generate: 512}, serving: {engine: tensorrt-llm, concurrency: 4, speculative: {tokens: 3, acceptance: 0.7}}}
- {name: serve_static, mode: inference, model: llama-3.1-8b, sequence: {prompt: 512, generate: 128}, serving: {engine: transformers, concurrency: 8}}
- name: serve_day
  mode: inference
  model: llama-3.1-8b
  sequence: {prompt: 1024, generate: 256}
  duration_minutes: 60
  schedule: {phases: [{name: calm, duration_minutes: 45, request_profile: low}, {name: rush, duration_minutes: 15, request_profile: peak}]}
";

/// Library of these files and the built-in ones.
pub fn library() -> Library {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("targets.yaml"), TARGETS).unwrap();
    std::fs::write(dir.path().join("workloads.yaml"), WORKLOADS).unwrap();
    let library = Library::load(&Sources { workload_dir: Some(dir.path().to_path_buf()), ..Sources::default() }, None);
    assert_eq!(library.problems().errors(), 0, "{}", library.problems());
    library
}

/// All targets with all workloads. Those with an accelerator use the analytical engine.
pub fn all(library: &Library) -> Vec<(Parts, Scenario)> {
    let mut all = Vec::new();
    for target in library.targets() {
        for workload in library.workloads() {
            let parts = Parts::of(library, target, workload).unwrap();
            let scenario = Scenario::resolve(&parts, &Overrides::new()).unwrap();
            all.push((parts, scenario));
        }
    }
    all
}

/// One scenario, with knobs in the form of `--set`.
pub fn one(library: &Library, target: &str, workload: &str, set: &[(&str, &str)]) -> (Parts, Scenario) {
    let parts = Parts::find(library, target, workload).unwrap();
    let mut overrides = Overrides::new();
    for (knob, value) in set {
        let knob = Knob::named(knob).unwrap();
        overrides.insert(knob, knob.parse(value, parts.fabrics()).unwrap());
    }
    let scenario = Scenario::resolve(&parts, &overrides).unwrap();
    (parts, scenario)
}

/// Setting of a knob: `at` selects one of its words, or a number within its bounds, with small numbers more likely.
pub fn setting(knob: Knob, at: f64) -> Option<Setting> {
    match knob.spec().kind {
        ValueType::Toggle => Some(Setting::Toggle(at < 0.5)),
        ValueType::Choice(words) => {
            let index = (at * words.len() as f64) as usize;
            words.get(index).map(|word| Setting::Choice((*word).into()))
        }
        ValueType::Number { bounds, .. } => {
            let value = bounds.min.max(1e-3) * (bounds.max / bounds.min.max(1e-3)).powf(at * at);
            let value = if bounds.whole { value.round() } else { value };
            Some(Setting::Number(value.clamp(bounds.min, bounds.max)))
        }
        ValueType::Fabric | ValueType::Software | ValueType::Seed => None,
    }
}
