//! Properties that hold for any constants: breakdowns sum, more hardware is never slower, more load never starves.

use super::*;
use crate::engine::analytical::accelerator::{Accelerator, Precision};

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
    estimate(i, &ServingConstants::default())
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
fn every_load_gives_finite_positive_figures() {
    for load in loads() {
        let e = run(&ServingInput { load, ..base() });
        assert!(e.total_tokens_per_sec.is_finite() && e.total_tokens_per_sec > 0.0, "{load:?}");
        assert!(e.time.total() > 0.0 && e.e2e.mean >= e.ttft.mean, "{load:?}");
        assert!(e.fits && e.max_concurrency > 1.0, "{load:?}");
    }
}

#[test]
fn parts_of_the_first_token_sum_to_its_mean() {
    for load in loads() {
        let e = run(&ServingInput { load, ..base() });
        assert!((e.first_token.total() - e.ttft.mean).abs() <= 1e-9 * e.ttft.mean.max(1.0), "{load:?}");
    }
}

#[test]
fn time_per_token_by_cause_sums_to_the_cycle() {
    for n in [1.0, 8.0, 32.0, 64.0] {
        let i = closed(n);
        let m = step::Machine::new(&i, &i.layout, &ServingConstants::default());
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
    let free = run(&ServingInput { max_num_seqs: 64.0, ..closed(64.0) });
    let full = run(&ServingInput { max_num_seqs: 16.0, ..closed(64.0) });
    assert_eq!(free.first_token.slot, 0.0);
    assert!(full.first_token.slot > 0.0 && full.batch <= 16.0);
    assert!(full.ttft.mean > free.ttft.mean);
}

#[test]
fn longer_prompts_and_outputs_cost() {
    let short = run(&closed(16.0));
    let long = run(&ServingInput { isl: 4096.0, ..closed(16.0) });
    assert!(long.ttft.mean > short.ttft.mean && long.output_tokens_per_sec < short.output_tokens_per_sec);
    let cached = run(&ServingInput { isl: 4096.0, prefix_hit: 0.8, ..closed(16.0) });
    assert!(cached.ttft.mean < long.ttft.mean && cached.output_tokens_per_sec > long.output_tokens_per_sec);
}

#[test]
fn narrow_keys_and_values_hold_more_sequences() {
    let wide = run(&closed(16.0));
    let mut i = closed(16.0);
    i.formats.kv_bytes = 1.0;
    assert!((run(&i).max_concurrency / wide.max_concurrency - 2.0).abs() < 1e-6);
}

#[test]
fn what_does_not_fit_says_so() {
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
    let speculation = Speculation { tokens: 3.0, acceptance: 0.7, draft_cost: 0.03 };
    let drafted = run(&ServingInput { speculation, ..closed(1.0) });
    assert!(drafted.tpot.mean < 0.7 * plain.tpot.mean);
}

#[test]
fn separate_pools_keep_prefill_out_of_decoding() {
    let two = Layout { dp: 2.0, ..Layout::default() };
    let mut i = ServingInput { isl: 4096.0, ..closed(32.0) };
    i.layout = Layout { dp: 4.0, ..Layout::default() };
    let together = run(&i);
    i.pools = Some(Pools { prefill: two, decode: two });
    let apart = run(&i);
    // Nobody's prompt chunk lands between two of a user's tokens.
    assert!(apart.itl.p99 < together.itl.p99);
    assert!(apart.output_tokens_per_sec > 0.0 && apart.ttft.mean.is_finite());
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
fn replicas_multiply_throughput() {
    let one = run(&ServingInput { load: Load::Burst { requests: f64::INFINITY }, ..base() });
    let mut i = ServingInput { load: Load::Burst { requests: f64::INFINITY }, ..base() };
    i.layout.dp = 4.0;
    assert!((run(&i).output_tokens_per_sec / one.output_tokens_per_sec - 4.0).abs() < 1e-9);
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
                let mut s = ServingInput { load, isl: y, osl: x, max_num_seqs: y, ..base() };
                s.layout.tp = if i % 2 == 0 { x.clamp(0.0, 64.0) } else { 1.0 };
                s.layout.attention_dp = if j % 2 == 0 { 1.0 } else { y.clamp(0.0, 64.0) };
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
