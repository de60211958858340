//! Tests of models without generation: embeddings and scores of passages.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::engine::estimate;
use crate::estimate::{Estimate, MemoryPart, Verdict};
use crate::scenario::Scenario;
use crate::testing;
use atlas_core::plan::Engine;
use atlas_perf::serving::latency::Spread;

fn answered(engine: Engine, workload: &str, set: &[&str]) -> Estimate {
    let estimate = attempted(engine, workload, set);
    assert_eq!(estimate.detail.unwrap().verdict, Verdict::Fits, "{workload} {set:?}");
    estimate
}

fn attempted(engine: Engine, workload: &str, set: &[&str]) -> Estimate {
    let parts = testing::parts("h100-sxm-8", workload);
    let overrides = testing::with_engine(engine, set);
    estimate(&Scenario::resolve(&parts, &overrides).unwrap())
}

#[test]
fn bert_large_encoder_rate_is_near_the_published_value() {
    // MLPerf Inference 3.1, closed, NVIDIA, 8 H100 SXM, BERT large, offline: about 70,000 samples per second in 8 bit,
    // with a mean of 177 tokens without padding (from memory). Its runtime is specialized for this model.
    let set = ["prompt=177", "concurrency=8192", "max_num_batched_tokens=65536", "precision=fp8"];
    let got = answered(Engine::Analytical, "bge-large-embed", &set).detail.unwrap().serving.unwrap().requests_per_sec;
    assert!((0.4..1.3).contains(&(got / 70_000.0)), "{got} samples/s");
}

#[test]
fn encoder_reaches_a_plausible_mfu_and_has_no_kv_cache() {
    let estimate = answered(Engine::Analytical, "bge-large-embed", &["concurrency=4096"]);
    let serving = estimate.detail.unwrap().serving.unwrap();
    // 2 FLOPs per weight and token, and 4 per layer, hidden unit and pair of tokens without a mask.
    let (tokens, layers, hidden, weights) = (512.0, 24.0, 1024.0, 302e6);
    let flops = tokens * (2.0 * weights + 4.0 * layers * hidden * tokens);
    let share = serving.requests_per_sec * flops / (8.0 * 989e12);
    assert!((0.3..0.8).contains(&share), "{share} of the peak");
    assert_eq!(estimate.total.tokens_per_sec, serving.total_tokens_per_sec);
    let tokens_read = estimate.total.tokens_per_sec / serving.requests_per_sec;
    assert!((tokens_read - 512.0).abs() < 1e-6, "{tokens_read}");
    let keys = estimate.detail.unwrap().memory.parts.part(MemoryPart::KvCache);
    assert!(keys < 1e9, "{keys}");
}

#[test]
fn reranker_rate_falls_8x_to_13x_for_8x_longer_prompts() {
    let short = answered(Engine::Analytical, "bge-reranker-score", &["prompt=128", "concurrency=512"]);
    let long = answered(Engine::Analytical, "bge-reranker-score", &["prompt=1024", "concurrency=512"]);
    let rate = |estimate: &Estimate| estimate.detail.unwrap().serving.unwrap().requests_per_sec;
    // Eight times the tokens, and eight times the attention pairs per token.
    assert!((8.0..13.0).contains(&(rate(&short) / rate(&long))), "{}", rate(&short) / rate(&long));
}

#[test]
fn both_engines_agree_on_encoders() {
    for workload in ["bge-large-embed", "bge-reranker-score"] {
        let of = |engine| answered(engine, workload, &[]).total.tokens_per_sec;
        let (closed, events) = (of(Engine::Analytical), of(Engine::Event));
        assert!((closed / events - 1.0).abs() < 0.2, "{workload}: {closed} {events}");
    }
}

#[test]
fn prefill_only_loads_of_a_decoder_count_prompt_tokens_and_have_no_tpot() {
    for engine in [Engine::Analytical, Engine::Event] {
        let set = ["load=prefill-only", "prompt=700", "generate=100", "concurrency=64"];
        let estimate = answered(engine, "llama3.1-8b-serve", &set);
        let serving = estimate.detail.unwrap().serving.unwrap();
        assert!((estimate.total.tokens_per_sec / serving.requests_per_sec - 700.0).abs() < 1e-6, "{engine:?}");
        assert_eq!(estimate.total.tokens_per_sec, serving.total_tokens_per_sec, "{engine:?}");
        assert_eq!((serving.tpot_ms, serving.itl_ms), (Spread::default(), Spread::default()), "{engine:?}");
    }
}

#[test]
fn encoders_reuse_no_prefix_and_have_no_pools() {
    let sets = ["prefix_hit=0.9", "conversations=100000", "prefill_workers=2", "prefill_accelerators=2"];
    for workload in ["bge-large-embed", "bge-reranker-score"] {
        for engine in [Engine::Analytical, Engine::Event] {
            let plain = answered(engine, workload, &[]);
            for set in sets {
                assert_eq!(answered(engine, workload, &[set]).total, plain.total, "{workload} {set} {engine:?}");
            }
        }
        let plain = answered(Engine::Analytical, workload, &[]);
        assert_eq!(answered(Engine::Analytical, workload, &["prefill_accelerators=8"]).total, plain.total);
    }
}

#[test]
fn requests_to_a_decoder_that_generate_nothing_are_refused_unless_the_load_is_prefill_only() {
    for engine in [Engine::Analytical, Engine::Event] {
        let estimate = attempted(engine, "llama3.1-8b-serve", &["generate=0"]);
        assert_eq!(estimate.detail.unwrap().verdict, Verdict::NoOutput);
    }
    answered(Engine::Analytical, "llama3.1-8b-serve", &["generate=0", "load=prefill-only"]);
    answered(Engine::Analytical, "bge-large-embed", &["generate=0"]);
}

#[test]
fn encoders_refuse_a_load_that_only_decodes() {
    for engine in [Engine::Analytical, Engine::Event] {
        let estimate = attempted(engine, "bge-large-embed", &["load=decode-only"]);
        assert_eq!(estimate.detail.unwrap().verdict, Verdict::NoDecode);
    }
    answered(Engine::Analytical, "llama3.1-8b-serve", &["load=decode-only"]);
}
