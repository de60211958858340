//! Properties that hold for any constants: breakdowns sum, more hardware is never slower, more load never starves.

use super::*;
use crate::accelerator::{Accelerator, Generation, Precision};
use crate::arch::{Architecture, Attention, Indexer, Linear, LinearKind, Window};
use crate::constants::Constants;
use crate::roofline::FusedAttention;

mod limits;

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
        let m = step::Machine::new(&i, &i.layout, &Constants::default());
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
fn windows_that_are_kept_whole_hold_fewer_sequences() {
    let mut i = base();
    (i.arch.window, i.isl) = (Some(Window { size: Count::new(128), share: 0.5 }), 4096.0);
    let whole = ServingInput { whole_windows: true, ..i };
    let (few, many) = (run(&whole), run(&i));
    assert!(many.max_concurrency > 1.5 * few.max_concurrency, "{} {}", many.max_concurrency, few.max_concurrency);
    i.arch.window = Some(Window { size: Count::new(128), share: 0.0 });
    assert_eq!(run(&ServingInput { whole_windows: true, ..i }).max_concurrency, run(&i).max_concurrency);
}

#[test]
fn sparse_attention_keeps_every_token() {
    let mut i = base();
    i.isl = 32_768.0;
    let dense = run(&i).max_concurrency;
    i.arch.indexer = Some(INDEXER);
    assert!(run(&i).max_concurrency <= dense);
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
    let speculation =
        Speculation { tokens: Count::new(3), acceptance: 0.7, draft_cost: 0.03, ..Speculation::default() };
    let drafted = run(&ServingInput { speculation, ..closed(1.0) });
    assert!(drafted.tpot.mean < 0.7 * plain.tpot.mean);
}

#[test]
fn separate_pools_keep_prefill_out_of_decoding() {
    let two = Layout { dp: Count::new(2), ..Layout::default() };
    let mut i = ServingInput { isl: 4096.0, ..closed(32.0) };
    i.layout = Layout { dp: Count::new(4), ..Layout::default() };
    let together = run(&i);
    i.pools = Some(Pools { prefill: two, decode: two });
    let apart = run(&i);
    // No prompt chunk falls between two tokens of a request.
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
    i.layout.dp = Count::new(4);
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

/// Tokens per second of one stream, generation alone.
fn stream(i: &ServingInput) -> f64 {
    run(&ServingInput { load: Load::DecodeOnly { batch: 1.0 }, ..*i }).output_tokens_per_sec
}

#[test]
fn a_tile_s_arithmetic_bounds_one_stream_where_matrix_units_are_slow() {
    use crate::accelerator::Generation;
    // An H20: the bandwidth of a H100, a seventh of its arithmetic.
    let hopper = Accelerator { generation: Generation::Hopper, ..h100() };
    let slow = Accelerator { flops: hopper.flops.map(|f| f / 6.7), ..hopper };
    let on = |accelerator| ServingInput { accelerator, ..base() };
    assert!(stream(&on(slow)) < 0.75 * stream(&on(hopper)));
    // Padding is free until the tile is full.
    let of = |batch| {
        let load = Load::DecodeOnly { batch };
        run(&ServingInput { load, isl: 16.0, osl: 16.0, ..on(slow) }).time.compute
    };
    assert!((of(1.0) - of(16.0)).abs() < 0.1 * of(1.0), "{} {}", of(1.0), of(16.0));
    assert!(of(256.0) > 2.0 * of(1.0));
}

#[test]
fn a_recurrent_state_costs_the_same_at_every_length() {
    let linear = Linear {
        kind: LinearKind::Mamba2,
        share: 1.0,
        heads: Count::new(128),
        head_dim: Count::new(64),
        state: Count::new(128),
        groups: Count::new(8),
        taps: Count::new(4),
    };
    let of_state = |state: u32| {
        let linear = Some(Linear { state: Count::new(state), ..linear });
        Architecture { attention_share: 0.0, linear, ..Architecture::default() }
    };
    let arch = of_state(128);
    let of = |isl: f64| ServingInput { arch, isl, load: Load::DecodeOnly { batch: 32.0 }, ..base() };
    let kv = |isl: f64| run(&of(isl)).time.kv;
    assert!(kv(1e2) > 0.0 && (kv(1e2) - kv(1e5)).abs() < 1e-9 * kv(1e2));
    let larger = of_state(256);
    assert!(run(&ServingInput { arch: larger, ..of(1e3) }).time.kv > 1.9 * kv(1e3));
    assert!(run(&ServingInput { arch: larger, ..of(1e3) }).max_concurrency < run(&of(1e3)).max_concurrency);
}

#[test]
fn reading_per_query_head_costs_only_grouped_attention() {
    let grouped = Architecture { kv_heads: Count::new(8), ..Architecture::default() };
    for (arch, slower) in [(grouped, true), (Architecture::default(), false)] {
        let of = |grouped_decode| {
            let load = Load::DecodeOnly { batch: 64.0 };
            run(&ServingInput { arch, grouped_decode, load, isl: 4096.0, ..base() }).output_tokens_per_sec
        };
        assert_eq!(of(false) < 0.9 * of(true), slower, "{} {}", of(false), of(true));
    }
}

#[test]
fn a_graph_of_fixed_shape_computes_its_empty_places() {
    let of = |batch, compiled_batch| {
        run(&ServingInput { load: Load::DecodeOnly { batch }, compiled_batch, ..base() }).output_tokens_per_sec
    };
    assert!(of(1.0, Some(Count::new(32))) < of(1.0, None));
    assert!(of(32.0, Some(Count::new(32))) < of(32.0, None));
    // It attends to its whole bucket, a power of two, however much of it is filled.
    let long = |isl: f64| {
        let load = Load::DecodeOnly { batch: 8.0 };
        run(&ServingInput { load, compiled_batch: Some(Count::new(8)), isl, osl: 24.0, ..base() }).time.kv
    };
    assert_eq!(long(1025.0), long(2024.0));
    assert!(long(2025.0) > 1.9 * long(2024.0));
}

#[test]
fn untuned_products_cost_one_weight_pass_per_row() {
    let of = |tuned_products, load| run(&ServingInput { tuned_products, load, ..base() });
    let slowdown = |batch| {
        let load = Load::DecodeOnly { batch };
        of(true, load).output_tokens_per_sec / of(false, load).output_tokens_per_sec
    };
    assert!(slowdown(1.0) < 1.01 && slowdown(64.0) > 1.5 && slowdown(64.0) > slowdown(32.0), "{}", slowdown(64.0));
    let prompt = Load::PrefillOnly { batch: 4.0 };
    assert_eq!(of(true, prompt).ttft.mean, of(false, prompt).ttft.mean);
}

#[test]
fn experts_in_turn_cost_a_launch_each() {
    let mixture = Architecture {
        experts: Count::new(64),
        top_k: Count::new(4),
        moe_ffn: Count::new(1024),
        ..Architecture::default()
    };
    let launch = |arch, experts_in_turn, batch| {
        run(&ServingInput { arch, experts_in_turn, load: Load::DecodeOnly { batch }, ..base() }).time.launch
    };
    let more = |batch| launch(mixture, true, batch) - launch(mixture, false, batch);
    assert!(more(1.0) > 0.0 && more(16.0) > 5.0 * more(1.0), "{} {}", more(1.0), more(16.0));
    let dense = Architecture::default();
    assert_eq!(launch(dense, true, 16.0), launch(dense, false, 16.0));
}

#[test]
fn drafts_verified_as_sequences_read_their_keys_each() {
    let speculation =
        Speculation { tokens: Count::new(4), acceptance: 0.7, draft_cost: 0.03, ..Speculation::default() };
    let kv = |expanded_drafts| {
        run(&ServingInput { speculation, expanded_drafts, load: Load::DecodeOnly { batch: 32.0 }, ..base() }).time.kv
    };
    assert!((kv(true) / kv(false) - 5.0).abs() < 0.2, "{}", kv(true) / kv(false));
}

#[test]
fn a_dataflow_graph_hides_collectives_behind_what_it_reads() {
    use crate::accelerator::Generation;
    let of = |generation| {
        let accelerator = Accelerator { generation, link_bw: 16e9, ..h100() };
        let layout = Layout { tp: Count::new(8), ..Layout::default() };
        run(&ServingInput { accelerator, layout, stack: Stack::Compiled, load: Load::Static { batch: 1.0 }, ..base() })
    };
    let (dataflow, other) = (of(Generation::Other), of(Generation::Hopper));
    assert!(dataflow.time.communication > 0.0 && dataflow.time.communication < other.time.communication);
}

#[test]
fn equal_requests_that_do_not_fit_together_run_in_whole_turns() {
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
fn the_busiest_of_more_ranks_is_busier_unless_a_batch_is_dealt_out_evenly() {
    let mixture = Architecture {
        experts: Count::new(64),
        top_k: Count::new(4),
        moe_ffn: Count::new(1024),
        ..Architecture::default()
    };
    let time = |groups: u32, timed: bool| {
        let groups = Count::new(groups);
        let layout = Layout { ep: groups, attention_dp: groups, ..Layout::default() };
        let many = 32.0 * groups;
        let load = if timed { Load::DecodeOnly { batch: many } } else { closed(many).load };
        run(&ServingInput { arch: mixture, layout, load, ..base() }).time
    };
    assert!(time(8, false).kv > 1.05 * time(2, false).kv);
    let (two, eight) = (time(2, true).kv, time(8, true).kv);
    assert!((eight / two - 1.0).abs() < 1e-9, "{two} {eight}");
}

#[test]
fn a_prompt_alone_on_a_pool_of_groups_is_sooner_through_than_one_of_many() {
    let wide = Layout { attention_dp: Count::new(16), ep: Count::new(16), ..Layout::default() };
    let mixture = Architecture {
        experts: Count::new(64),
        top_k: Count::new(4),
        moe_ffn: Count::new(4096),
        ..Architecture::default()
    };
    let of = |concurrency: f64| {
        let i = ServingInput { arch: mixture, isl: 4096.0, osl: 16.0, ..closed(concurrency) };
        run(&ServingInput { layout: wide, pools: Some(Pools { prefill: wide, decode: wide }), ..i }).first_token.prefill
    };
    assert!(of(1.0) < 0.9 * of(512.0), "{} {}", of(1.0), of(512.0));
}

#[test]
fn an_indexer_and_streams_cost_kernels_and_selection_saves_keys() {
    let plain = Architecture::default();
    let launch = |arch| run(&ServingInput { arch, ..base() }).time.launch;
    let indexed = Architecture { indexer: Some(INDEXER), ..plain };
    assert!(launch(indexed) > launch(plain));
    assert!(launch(Architecture { streams: Count::new(4), ..plain }) > launch(plain));
    let kv = |arch| run(&ServingInput { arch, isl: 60_000.0, load: Load::DecodeOnly { batch: 1.0 }, ..base() }).time.kv;
    assert!(kv(indexed) < 0.3 * kv(plain));
}

#[test]
fn work_in_python_costs_host_time() {
    let compiled = ServingInput { stack: Stack::Compiled, load: Load::DecodeOnly { batch: 512.0 }, ..base() };
    assert!(run(&ServingInput { python_executor: true, ..compiled }).time.host > 1.3 * run(&compiled).time.host);
    let speculation =
        Speculation { tokens: Count::new(4), acceptance: 0.7, draft_cost: 0.03, ..Speculation::default() };
    let draft = |host| run(&ServingInput { speculation, host, ..closed(32.0) }).output_tokens_per_sec;
    assert!(draft(HostOverlap::None) < draft(HostOverlap::Scheduling));
}

#[test]
fn a_run_of_few_arrivals_waits_for_its_last_answer() {
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

#[test]
fn replicas_without_a_request_serve_nothing() {
    let layout = |dp| Layout { dp, ..Layout::default() };
    let requests = |n: f64| {
        [
            Load::Closed { concurrency: n, requests: f64::INFINITY },
            Load::Static { batch: n },
            Load::DecodeOnly { batch: n },
            Load::PrefillOnly { batch: n },
        ]
    };
    for load in requests(1.0) {
        let of = |dp| run(&ServingInput { load, layout: layout(dp), ..base() }).requests_per_sec;
        assert!((of(Count::new(4)) / of(Count::ONE) - 1.0).abs() < 1e-6, "{load:?}");
    }
    for (one, four) in requests(1.0).into_iter().zip(requests(4.0)) {
        let of = |load, dp| run(&ServingInput { load, layout: layout(dp), ..base() }).requests_per_sec;
        assert!((of(four, Count::new(4)) / of(one, Count::ONE) - 4.0).abs() < 1e-6, "{one:?}");
    }
}

#[test]
fn uncompiled_prompts_delay_first_tokens_and_what_decodes_beside_them() {
    let of = |eager_prompts| {
        run(&ServingInput { eager_prompts, chunked_prefill: false, isl: 64.0, osl: 64.0, ..closed(32.0) })
    };
    let (compiled, eager) = (of(false), of(true));
    assert!(eager.ttft.mean > compiled.ttft.mean && eager.tpot.mean > compiled.tpot.mean);
    // Long prompts keep the accelerator longer than the host needs to launch them.
    let long = |eager_prompts| run(&ServingInput { eager_prompts, isl: 60_000.0, ..closed(1.0) }).ttft.mean;
    assert!((long(true) / long(false) - 1.0).abs() < 0.01);
}

#[test]
fn weights_unpacked_to_a_buffer_pass_the_memory_again() {
    let of =
        |unpack_passes| stream(&ServingInput { formats: Formats { unpack_passes, ..Formats::default() }, ..base() });
    assert!(of(5.0) < 0.45 * of(1.0));
    assert_eq!(of(1.0), of(0.0));
}

#[test]
fn keys_are_spread_only_over_ranks_that_keep_the_same() {
    let of = |attention, context_ranks| {
        let arch = Architecture { attention, ..base().arch };
        let layout = Layout { tp: Count::new(8), ..Layout::default() };
        run(&ServingInput { arch, layout, context_ranks, ..closed(8.0) }).max_concurrency
    };
    let latent = Attention::Latent {
        q_rank: Some(Count::new(1536)),
        kv_rank: Count::new(512),
        nope: Count::new(128),
        rope: Count::new(64),
        value: Count::new(128),
    };
    assert!((of(latent, Count::new(8)) / of(latent, Count::ONE) - 8.0).abs() < 1e-6);
    assert_eq!(of(latent, Count::new(64)), of(latent, Count::new(8)));
    assert_eq!(of(Attention::Grouped, Count::new(8)), of(Attention::Grouped, Count::ONE));
}

#[test]
fn graphs_of_fixed_shape_compute_every_expert_once_the_batch_touches_them() {
    let arch = Architecture { experts: Count::new(64), top_k: Count::new(4), moe_ffn: Count::new(1024), ..base().arch };
    let of = |compiled_batch, isl| {
        run(&ServingInput { arch, compiled_batch, isl, load: Load::PrefillOnly { batch: 1.0 }, ..base() }).time.compute
    };
    assert!(of(Some(Count::ONE), 2048.0) > 3.0 * of(None, 2048.0));
    // Fewer choices than experts are loaded one by one.
    assert!(of(Some(Count::ONE), 8.0) < 1.5 * of(None, 8.0));
}

#[test]
fn every_stage_of_a_pipeline_has_the_whole_token_budget() {
    let of = |max_num_batched_tokens| {
        let layout = Layout { pp: Count::new(4), ..Layout::default() };
        let load = Load::PrefillOnly { batch: 64.0 };
        run(&ServingInput { layout, load, isl: 1024.0, max_num_batched_tokens, ..base() }).total_tokens_per_sec
    };
    // Four times the budget in one step saves no more than the weights' share of it.
    assert!(of(65_536.0) < 1.3 * of(8192.0));
}

#[test]
fn streaming_costs_a_server_that_overlaps_nothing() {
    let of = |load, host| run(&ServingInput { load, host, ..base() }).time.host;
    let online = Load::Closed { concurrency: 64.0, requests: f64::INFINITY };
    let gain = of(online, HostOverlap::None) - of(Load::Burst { requests: 64.0 }, HostOverlap::None);
    assert!(gain > 50e-6, "{gain}");
    let [none, front_end, scheduling] =
        [HostOverlap::None, HostOverlap::FrontEnd, HostOverlap::Scheduling].map(|host| of(online, host));
    assert!(scheduling < front_end && front_end < none, "{scheduling} {front_end} {none}");
}

#[test]
fn a_host_that_launches_pieces_of_graphs_slows_small_steps_only() {
    // Launches take longer than the step of one sequence, and less than that of a full batch.
    let constants = Constants { kernel_prefill: 200e-6, ..Constants::default() };
    let of = |batch, graphs| {
        let load = Load::Static { batch };
        let input = ServingInput { stack: Stack::Graphed, load, graphs, isl: 4096.0, ..base() };
        estimate(&input, &constants).output_tokens_per_sec
    };
    let loss = |batch| of(batch, GraphCapture::Piecewise) / of(batch, GraphCapture::Full);
    assert!(loss(1.0) < 1.0 && loss(1.0) < loss(256.0), "{} {}", loss(1.0), loss(256.0));
    assert!(of(1.0, GraphCapture::None) < of(1.0, GraphCapture::Piecewise));
}

#[test]
fn older_attention_kernels_take_longer_over_prompts() {
    let of = |attention| {
        let load = Load::PrefillOnly { batch: 4.0 };
        let mut input = ServingInput { load, attention, isl: 16_384.0, ..base() };
        input.accelerator.generation = Generation::Hopper;
        run(&input).total_tokens_per_sec
    };
    let [first, second, native] = [FusedAttention::First, FusedAttention::Second, FusedAttention::Native].map(of);
    assert!(first < second && second < native, "{first} {second} {native}");
}
