//! Properties that hold for any constants: parts sum to the total, more hardware is never slower, more load never
//! reduces throughput to zero.

use super::*;
use crate::accelerator::{Accelerator, Generation, Precision};
use crate::arch::{Architecture, Attention, Indexer, Linear, LinearKind, Window};
use crate::constants::Constants;
use crate::roofline::FusedAttention;

mod layouts;
mod limits;
mod mixers;
mod queueing;
mod software;

/// The indexer of arXiv 2512.02556.
const INDEXER: Indexer = Indexer { heads: Count::new(64), dim: Count::new(128), top_k: Count::new(2048) };

fn h100() -> Accelerator {
    let mut a = Accelerator { mem_bw: 3.35e12, link_bw: 450e9, cores: 132.0, ..Accelerator::default() };
    a.flops = a.flops.map(|f| 3.17 * f);
    if let Some(slot) = a.flops.get_mut(Precision::Fp8 as usize) {
        *slot = 1979e12;
    }
    a
}

fn base() -> ServingInput {
    ServingInput { accelerator: h100(), ..ServingInput::default() }
}

fn closed(concurrency: f64) -> ServingInput {
    ServingInput { load: Load::Closed { concurrency, requests: f64::INFINITY }, ..base() }
}

fn run(i: &ServingInput) -> ServingEstimate {
    estimate(i, &Constants::default())
}

fn loads() -> [Load; 6] {
    [
        Load::Static { batch: 16.0 },
        Load::DecodeOnly { batch: 4.0 },
        Load::PrefillOnly { batch: 2.0 },
        Load::Closed { concurrency: 64.0, requests: 640.0 },
        Load::Burst { requests: 1000.0 },
        Load::Open { rate: 2.0 },
    ]
}

#[test]
fn every_load_gives_finite_positive_metrics() {
    for load in loads() {
        let e = run(&ServingInput { load, ..base() });
        assert!(e.total_tokens_per_sec.is_finite() && e.total_tokens_per_sec > 0.0, "{load:?}");
        assert!(e.time.total() > 0.0 && e.e2e.mean >= e.ttft.mean, "{load:?}");
        assert!(e.fits && e.max_concurrency > 1.0, "{load:?}");
    }
}

#[test]
fn ttft_parts_sum_to_mean_ttft() {
    for load in loads() {
        let e = run(&ServingInput { load, ..base() });
        assert!((e.first_token.total() - e.ttft.mean).abs() <= 1e-9 * e.ttft.mean.max(1.0), "{load:?}");
    }
}

#[test]
fn time_breakdown_per_token_sums_to_the_steady_state_cycle() {
    for n in [1.0, 8.0, 32.0, 64.0] {
        let i = closed(n);
        let m = Machine::new(&i, &i.layout, &Constants::default());
        let cycle = steady_state::cycle(&m, &i, n);
        let e = run(&i);
        assert!((e.time.total() * i.osl / cycle.time.total() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn more_bandwidth_or_flops_is_never_slower() {
    for load in loads() {
        let i = ServingInput { load, ..base() };
        let slow = run(&i).output_tokens_per_sec;
        let mut faster = i;
        faster.accelerator.mem_bw *= 2.0;
        assert!(run(&faster).output_tokens_per_sec >= slow * 0.999, "bandwidth, {load:?}");
        let mut faster = i;
        faster.accelerator.flops = faster.accelerator.flops.map(|f| 2.0 * f);
        assert!(run(&faster).output_tokens_per_sec >= slow * 0.999, "flops, {load:?}");
    }
}

#[test]
fn throughput_and_latency_grow_with_concurrency() {
    let mut last = ServingEstimate::default();
    for n in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0] {
        let e = run(&closed(n));
        assert!(e.output_tokens_per_sec >= last.output_tokens_per_sec, "{n}");
        assert!(e.ttft.mean >= last.ttft.mean && e.tpot.mean >= 0.999 * last.tpot.mean, "{n}");
        last = e;
    }
}

#[test]
fn waiting_for_a_slot_shows_once_the_batch_is_full() {
    let free = run(&ServingInput { max_num_seqs: Some(Count::new(64)), ..closed(64.0) });
    let full = run(&ServingInput { max_num_seqs: Some(Count::new(16)), ..closed(64.0) });
    assert_eq!(free.first_token.slot, 0.0);
    assert!(full.first_token.slot > 0.0 && full.batch <= 16.0);
    assert!(full.ttft.mean > free.ttft.mean);
}

#[test]
fn longer_prompts_raise_ttft_and_prefix_hits_lower_it() {
    let short = run(&closed(16.0));
    let long = run(&ServingInput { isl: 4096.0, ..closed(16.0) });
    assert!(long.ttft.mean > short.ttft.mean && long.output_tokens_per_sec < short.output_tokens_per_sec);
    let cached = run(&ServingInput { isl: 4096.0, prefix_hit: 0.8, ..closed(16.0) });
    assert!(cached.ttft.mean < long.ttft.mean && cached.output_tokens_per_sec > long.output_tokens_per_sec);
}

#[test]
fn one_byte_kv_cache_doubles_max_concurrency() {
    let wide = run(&closed(16.0));
    let mut i = closed(16.0);
    i.formats.kv_bytes = 1.0;
    assert!((run(&i).max_concurrency / wide.max_concurrency - 2.0).abs() < 1e-6);
}

#[test]
fn keeping_kv_outside_windows_lowers_max_concurrency() {
    let mut i = base();
    (i.arch.window, i.isl) = (Some(Window { size: Count::new(128), share: 0.5, chunked: false }), 4096.0);
    let whole = ServingInput { full_window_cache: true, ..i };
    let (few, many) = (run(&whole), run(&i));
    assert!(many.max_concurrency > 1.5 * few.max_concurrency, "{} {}", many.max_concurrency, few.max_concurrency);
    i.arch.window = Some(Window { size: Count::new(128), share: 0.0, chunked: false });
    assert_eq!(run(&ServingInput { full_window_cache: true, ..i }).max_concurrency, run(&i).max_concurrency);
}

#[test]
fn sparse_attention_does_not_raise_max_concurrency() {
    let mut i = base();
    i.isl = 32_768.0;
    let dense = run(&i).max_concurrency;
    i.arch.indexer = Some(INDEXER);
    assert!(run(&i).max_concurrency <= dense);
}

#[test]
fn model_larger_than_memory_does_not_fit() {
    let mut i = closed(16.0);
    i.accelerator.mem_bytes = 8e9;
    assert!(!run(&i).fits);
}

#[test]
fn open_arrivals_are_served_up_to_capacity() {
    let low = run(&ServingInput { load: Load::Open { rate: 1.0 }, ..base() });
    assert!((low.requests_per_sec - 1.0).abs() < 1e-9 && low.bottleneck == Bottleneck::Load);
    let high = run(&ServingInput { load: Load::Open { rate: 1e4 }, ..base() });
    assert!(high.requests_per_sec < 1e4 && high.ttft.mean.is_infinite());
    let half = run(&ServingInput { load: Load::Open { rate: 0.5 * low.capacity_requests_per_sec }, ..base() });
    assert!(half.ttft.mean > low.ttft.mean);
}

#[test]
fn speculation_helps_at_low_load() {
    let plain = run(&closed(1.0));
    let speculation =
        Speculation { tokens: Count::new(3), acceptance: 0.7, draft_layers: 0.03, ..Speculation::default() };
    let drafted = run(&ServingInput { speculation, ..closed(1.0) });
    assert!(drafted.tpot.mean < 0.7 * plain.tpot.mean);
}

#[test]
fn quantiles_are_ordered() {
    for load in loads() {
        let e = run(&ServingInput { load, ..base() });
        for s in [e.ttft, e.tpot, e.itl, e.e2e] {
            assert!(s.p50 <= s.p95 && s.p95 <= s.p99, "{load:?} {s:?}");
        }
    }
}

#[test]
fn degenerate_inputs_never_give_nan() {
    let odd = [0.0, 1e-9, 0.5, 1.0, 7.0, 1e9];
    for (i, &x) in odd.iter().enumerate() {
        for (j, &y) in odd.iter().enumerate() {
            let loads = [
                Load::Static { batch: x },
                Load::DecodeOnly { batch: x },
                Load::PrefillOnly { batch: x },
                Load::Closed { concurrency: x, requests: y },
                Load::Burst { requests: x },
                Load::Open { rate: x },
            ];
            for load in loads {
                let mut s = ServingInput { load, isl: y, osl: x, max_num_seqs: Some(Count::floor(y)), ..base() };
                s.layout.tp = if i % 2 == 0 { Count::floor(x.min(64.0)) } else { Count::ONE };
                s.layout.attention_dp = if j % 2 == 0 { Count::ONE } else { Count::floor(y.min(64.0)) };
                s.max_num_batched_tokens = x;
                s.pools = if (i + j) % 3 == 0 { Some(Pools { prefill: s.layout, decode: s.layout }) } else { None };
                let e = run(&s);
                let figures =
                    [e.output_tokens_per_sec, e.requests_per_sec, e.ttft.mean, e.tpot.mean, e.time.total(), e.batch];
                assert!(figures.iter().all(|f| !f.is_nan() && *f >= 0.0), "{s:?} {figures:?}");
            }
        }
    }
}

/// Tokens per second of one stream, decode only.
fn stream(i: &ServingInput) -> f64 {
    run(&ServingInput { load: Load::DecodeOnly { batch: 1.0 }, ..*i }).output_tokens_per_sec
}

#[test]
fn equal_requests_beyond_kv_capacity_run_in_extra_waves() {
    let of = |batch| {
        let i = ServingInput { load: Load::Static { batch }, isl: 4096.0, osl: 4096.0, ..base() };
        (run(&i).max_concurrency.floor(), batch / run(&i).requests_per_sec)
    };
    let (fits, whole) = of(1.0);
    let seconds = |batch| of(batch).1;
    assert!(fits > 1.0 && whole > 0.0);
    assert!(seconds(fits + 1.0) > 1.15 * seconds(fits), "{} {}", seconds(fits), seconds(fits + 1.0));
}

#[test]
fn short_open_run_has_lower_rate_because_of_its_drain() {
    let of = |rate, arrivals| run(&ServingInput { load: Load::Open { rate }, arrivals, ..base() }).requests_per_sec;
    for rate in [0.1, 0.5] {
        assert!(of(rate, 4.0) < of(rate, 40.0) && of(rate, 40.0) < of(rate, 4000.0), "{rate}");
    }
    for rate in [0.1, 0.5, 1e4] {
        let endless = of(rate, f64::INFINITY);
        assert!(of(rate, 4.0) < endless, "{rate}");
        assert!((of(rate, 1e6) - endless).abs() < 0.1 * endless, "{rate}");
    }
}
