//! Comparison with published results of multi-node deployments with wide expert parallelism.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::engine::estimate;
use crate::scenario::Scenario;
use crate::testing;
use atlas_core::plan::Engine;

/// Tokens per second according to `engine`: output tokens, or including prompts.
fn answered(engine: Engine, target: &str, set: &[&str], prompts: bool) -> f64 {
    let parts = testing::parts(target, "deepseek-v3-wide-ep");
    let overrides = testing::with_engine(engine, set);
    let scenario = Scenario::resolve(&parts, &overrides).unwrap();
    let detail = estimate(&scenario).detail.unwrap();
    assert!(detail.verdict.fits(), "{target} {set:?}: {}", detail.verdict.describe());
    if prompts { detail.serving.unwrap().total_tokens_per_sec } else { estimate(&scenario).total.tokens_per_sec }
}

/// Settings, accelerators per unit, published tokens per second per unit, and whether prompt tokens count.
type Case = (&'static str, &'static str, &'static [&'static str], f64, f64, bool);

/// Limits of the ratio of estimated to published value. Nothing was fitted to these results.
const NEAR: std::ops::RangeInclusive<f64> = 0.7..=1.3;

/// Published layouts, one pool at a time.
const CASES: [Case; 5] = [
    // lmsys.org, 2025-05-05: prefill over 4 nodes with 16,384 tokens per accelerator: 52.3k tokens/s per node.
    (
        "prefill of 2,000 tokens over 32 H100",
        "h100-sxm-64",
        &[
            "prefill_workers=0",
            "generate=100",
            "load=prefill-only",
            "concurrency=256",
            "ep=32",
            "attention_dp=32",
            "dp=1",
        ],
        32.0 / 8.0,
        52_300.0,
        true,
    ),
    // lmsys.org, 2025-05-05: decode over 9 nodes, 256 sequences per accelerator: 22.3k tokens/s per node.
    (
        "decode at 2,000 tokens over 72 H100",
        "h100-sxm-128",
        &[
            "prefill_workers=0",
            "generate=100",
            "load=decode-only",
            "concurrency=18432",
            "gpu_memory_utilization=0.9",
            "max_num_seqs=256",
        ],
        72.0 / 8.0,
        22_300.0,
        false,
    ),
    // DeepSeek, "Inference System Overview", 2025-03-01: decode over 18 H800 nodes, mean context of 4,989 tokens, 20 to
    // 22 tokens/s per user, 14.8k tokens/s per node: about 88 sequences per accelerator.
    (
        "decode at 5,000 tokens over 144 H800",
        "h800-sxm-2048",
        &[
            "prefill_workers=0",
            "load=decode-only",
            "prompt=4440",
            "generate=1100",
            "concurrency=12672",
            "ep=144",
            "attention_dp=144",
            "redundant_experts=32",
            "dp=1",
            "gpu_memory_utilization=0.9",
        ],
        144.0 / 8.0,
        14_800.0,
        false,
    ),
    // lmsys.org, 2025-09-25: decode over 48 accelerators of a rack, 768 sequences per accelerator, fp8 attention.
    (
        "decode in fp8 at 2,000 tokens over 48 GB200",
        "gb200-nvl72",
        &[
            "prefill_workers=0",
            "generate=100",
            "load=decode-only",
            "concurrency=36864",
            "ep=48",
            "attention_dp=48",
            "dp=1",
            "gpu_memory_utilization=0.9",
            "kv_precision=fp8",
        ],
        48.0,
        9_087.0,
        false,
    ),
    // Same source, with experts in NVFP4.
    (
        "decode in fp4 at 2,000 tokens over 48 GB200",
        "gb200-nvl72",
        &[
            "prefill_workers=0",
            "generate=100",
            "load=decode-only",
            "concurrency=36864",
            "ep=48",
            "attention_dp=48",
            "dp=1",
            "gpu_memory_utilization=0.9",
            "expert_precision=fp4",
            "kv_precision=fp8",
        ],
        48.0,
        13_386.0,
        false,
    ),
];

#[test]
fn published_multi_node_deployments_are_estimated_within_bounds() {
    let mut far = Vec::new();
    for (what, target, set, units, published, prompts) in CASES {
        let got = answered(Engine::Analytical, target, set, prompts) / units;
        eprintln!("{what}: {got:.0} for {published:.0}, {:+.0} %", 100.0 * (got / published - 1.0));
        if !NEAR.contains(&(got / published)) {
            far.push(what);
        }
    }
    assert!(far.is_empty(), "far from the published figure: {}", far.join(", "));
}
