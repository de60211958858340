//! The simulation is close to the analytical engine when both describe the same system.

use super::*;
use crate::fixtures::LATENT_ATTENTION;

/// With one request at a time there is no queueing, so both engines must agree.
#[test]
fn low_load_matches_the_closed_form() {
    let wide = Layout { tp: Count::new(8), ..Layout::default() };
    let fp8 = Formats { dense_bytes: 1.0, dense: Precision::Fp8, ..Formats::default() };
    let drafts =
        Speculation { tokens: Count::new(3), acceptance: 0.7, draft_layers: 1.0 / 32.0, ..Speculation::default() };
    let pools = Pools { prefill: Layout::default(), decode: Layout { tp: Count::new(2), ..Layout::default() } };
    let one = closed(1.0);
    let cases = [
        ("8B", one),
        ("70B on 8", ServingInput { arch: llama_70b(), layout: wide, ..one }),
        (
            "70B in stages",
            ServingInput { arch: llama_70b(), layout: Layout { tp: Count::new(4), pp: Count::new(2), ..wide }, ..one },
        ),
        ("mixture", ServingInput { arch: mixture(), layout: wide, ..one }),
        (
            "attention in groups",
            ServingInput {
                arch: mixture(),
                layout: Layout { ep: Count::new(4), attention_dp: Count::new(4), ..Layout::default() },
                isl: 4000.0,
                ..one
            },
        ),
        ("fp8", ServingInput { formats: fp8, ..one }),
        ("long prompt", ServingInput { isl: 30_000.0, osl: 200.0, ..one }),
        ("long output", ServingInput { isl: 100.0, osl: 4000.0, ..one }),
        (
            "windows",
            ServingInput {
                arch: Architecture {
                    window: Some(Window { size: Count::new(1024), share: 0.5, chunked: false }),
                    ..llama_8b()
                },
                isl: 8000.0,
                ..one
            },
        ),
        ("prefixes", ServingInput { prefix_hit: 0.5, ..one }),
        ("separate prefill", ServingInput { chunked_prefill: false, ..one }),
        ("pools", ServingInput { pools: Some(pools), ..one }),
        ("drafts", ServingInput { speculation: drafts, osl: 2000.0, ..one }),
    ];
    let mut worst: f64 = 0.0;
    for (name, case) in cases {
        let theory = estimate(&case, &Constants::default());
        let found = simulated(&Input::of(&case, &Constants::default(), 12));
        for (what, f, t) in [
            ("TTFT", found.ttft.mean, theory.ttft.mean),
            ("TPOT", found.tpot.mean, theory.tpot.mean),
            ("E2E", found.e2e.mean, theory.e2e.mean),
            ("rate", found.requests_per_sec, theory.requests_per_sec),
        ] {
            println!("{name} {what}: {:+.2} %", 100.0 * (f / t - 1.0));
            near(&format!("{name}, {what}"), f, t, 0.03);
            worst = worst.max((f / t - 1.0).abs());
        }
    }
    println!("largest deviation {:.2} %", 100.0 * worst);
}

/// A batch that starts and ends together.
#[test]
fn one_batch_matches_the_closed_form() {
    for batch in [2.0, 8.0, 32.0] {
        let case = ServingInput { isl: 200.0, osl: 500.0, ..system(Load::Static { batch }) };
        let theory = estimate(&case, &Constants::default());
        let found = simulated(&Input::of(&case, &Constants::default(), 1));
        near("tokens", found.output_tokens_per_sec, theory.output_tokens_per_sec, 0.03);
        near("TTFT", found.ttft.mean, theory.ttft.mean, 0.03);
        near("TPOT", found.tpot.mean, theory.tpot.mean, 0.03);
    }
}

/// With many requests in flight, the closed form uses the mean of the batch, the simulation its composition.
#[test]
fn the_steady_state_is_near_the_closed_form() {
    for concurrency in [8.0, 32.0, 128.0] {
        let case = closed(concurrency);
        let theory = estimate(&case, &Constants::default());
        let mut input = Input::of(&case, &Constants::default(), 20 * concurrency as u32);
        input.warm_up = 4 * concurrency as u32;
        input.lengths.osl = Distribution::Uniform { low: 1.0, high: 2.0 * case.osl - 1.0 };
        let found = simulated(&input);
        println!(
            "{concurrency}: {:+.2} %",
            100.0 * (found.steady_output_tokens_per_sec / theory.output_tokens_per_sec - 1.0)
        );
        near("tokens", found.steady_output_tokens_per_sec, theory.output_tokens_per_sec, 0.10);
    }
}

/// Equal requests that begin together stay synchronized forever. In the steady state some of them are synchronized and
/// most are not.
#[test]
fn unstaggered_equal_requests_have_higher_ttft_than_staggered() {
    // Ten rounds; the first begins at once.
    let load = Load::Closed { concurrency: 32.0, requests: 320.0 };
    let case = ServingInput { isl: 4000.0, load, ..closed(32.0) };
    let theory = estimate(&case, &Constants::default());
    let run = |staggered| {
        let mut input = Input::of(&case, &Constants::default(), 10 * 32);
        input.staggered = staggered;
        simulated(&input)
    };
    let (found, in_step) = (run(true), run(false));
    near("TTFT", found.ttft.mean, theory.ttft.mean, 0.35);
    near("TPOT", found.tpot.mean, theory.tpot.mean, 0.1);
    assert!(in_step.ttft.mean > 1.5 * found.ttft.mean, "{} {}", in_step.ttft.mean, found.ttft.mean);
}

/// Partial outputs of a staggered load count for TTFT, but not for TPOT or end-to-end time.
#[test]
fn partial_outputs_do_not_count_for_time_per_token() {
    let mut input = Input::of(&closed(16.0), &Constants::default(), 64);
    input.staggered = true;
    let found = simulated(&input);
    assert_eq!((found.ttft.count, found.tpot.count, found.e2e.count), (64, 48, 48));
    assert_eq!(found.records.iter().filter(|r| !r.complete).count(), 16);
}

/// A prompt is computed by a single attention group while the others wait. Experts are shared by all groups.
#[test]
fn four_attention_groups_prefill_in_under_3_5x_the_time_of_one() {
    let layout = Layout { ep: Count::new(4), attention_dp: Count::new(4), ..Layout::default() };
    let seconds = |requests: f64| {
        let load = Load::Burst { requests };
        let case = ServingInput { arch: mixture(), layout, isl: 4000.0, osl: 1.0, ..system(load) };
        let mut input = Input::of(&case, &Constants::default(), 1);
        input.front_end = false;
        let found = simulated(&input);
        assert_eq!(found.steps, 1);
        found.seconds
    };
    let (one, four) = (seconds(1.0), seconds(4.0));
    assert!(one < four && four < 3.5 * one, "{one} {four}");
}

/// TensorRT-LLM holds prompts back until every attention group has one, but not forever.
#[test]
fn batched_admission_raises_ttft_and_lowers_tpot() {
    let layout = Layout { ep: Count::new(4), attention_dp: Count::new(4), ..Layout::default() };
    let run = |admission| {
        let load = Load::Closed { concurrency: 16.0, requests: 160.0 };
        let case = ServingInput { arch: mixture(), layout, isl: 4000.0, osl: 200.0, admission, ..system(load) };
        let mut input = Input::of(&case, &Constants::default(), 160);
        input.lengths.osl = Distribution::Uniform { low: 160.0, high: 240.0 };
        simulated(&input)
    };
    let (balanced, eager) = (run(Admission::Batched), run(Admission::EveryStep));
    assert!(balanced.ttft.mean > eager.ttft.mean, "{} {}", balanced.ttft.mean, eager.ttft.mean);
    assert!(balanced.tpot.mean < 0.95 * eager.tpot.mean, "{} {}", balanced.tpot.mean, eager.tpot.mean);
    assert_eq!(balanced.requests, 160);
}

/// First tokens are returned by the front end that also takes in the rest of the burst.
#[test]
fn burst_ttft_is_at_least_the_front_end_intake_time() {
    let case = ServingInput { isl: 16.0, ..system(Load::Burst { requests: 64.0 }) };
    let found = simulated(&Input::of(&case, &Constants::default(), 1));
    let taken_in = 64.0 * Constants::default().front_end;
    assert!(found.records.iter().all(|r| r.ttft >= taken_in - 1e-9), "{} {taken_in}", found.ttft.p50);
}

/// A single burst is not a trend; overload is one under any arrival process.
#[test]
fn queue_growth_is_detected_only_under_overload() {
    let capacity = estimate(&closed(256.0), &Constants::default()).requests_per_sec;
    for (share, grows) in [(0.5, false), (1.3, true)] {
        for cv in [1.0, 4.0] {
            for seed in 0..4 {
                let mut input = Input::of(&closed(1.0), &Constants::default(), 6_000);
                input.arrivals = Arrivals::Gamma { rate: share * capacity, cv };
                input.warm_up = 1_000;
                let growth = simulate(&input, seed, &Progress::new()).unwrap().steady.growth;
                assert_eq!(growth > 0.05, grows, "load {share}, cv {cv}, seed {seed}: {growth}");
            }
        }
    }
}

#[test]
fn sequences_with_a_shared_prefix_store_it_once() {
    use atlas_perf::serving::Conversations;

    let running = |shared: u32| {
        let talk = Conversations { count: Count::new(1000), turns: 1.0, shared: Count::new(shared) };
        let system = ServingInput { isl: 8000.0, osl: 200.0, conversations: Some(talk), ..closed(200.0) };
        let theory = estimate(&system, &Constants::default());
        let known = ServingInput { prefix_hit: theory.prefix_hit, ..system };
        let mut input = Input::of(&known, &Constants::default(), 1000);
        input.warm_up = 400;
        (simulated(&input).steady.running, theory.batch)
    };
    let (alone, _) = running(0);
    let (together, theory) = running(7000);
    assert!(alone < 60.0 && together > 180.0, "{alone} {together}");
    near("batch", together, theory, 0.05);
}

/// Checks that both engines agree on a case, with outputs of different lengths.
fn agrees(name: &str, case: &ServingInput, requests: u32, tolerance: f64) {
    let case = ServingInput { osl_spread: 2.0, ..*case };
    let theory = estimate(&case, &Constants::default());
    let mut input = Input::of(&case, &Constants::default(), requests);
    input.warm_up = requests / 3;
    input.lengths.osl = Distribution::Bounded { mean: case.osl, most: 2.0 * case.osl };
    let found = simulated(&input);
    near(&format!("{name}, TTFT"), found.ttft.mean, theory.ttft.mean, tolerance);
    near(&format!("{name}, TPOT"), found.tpot.mean, theory.tpot.mean, tolerance);
}

#[test]
fn prompts_in_pipelines_match_the_closed_form() {
    for (tp, pp) in [(4, 2), (2, 4)] {
        let layout = Layout { tp: Count::new(tp), pp: Count::new(pp), ..Layout::default() };
        for isl in [2000.0, 16_384.0, 20_000.0] {
            let base = ServingInput { arch: llama_70b(), layout, isl, osl: 500.0, ..closed(1.0) };
            for concurrency in [1.0, 8.0, 32.0] {
                let load = closed(concurrency).load;
                let case = ServingInput { load, ..base };
                agrees(&format!("pp {pp}, {isl}, {concurrency}"), &case, 60 * concurrency as u32, 0.1);
            }
            let capacity = estimate(&ServingInput { load: Load::Open { rate: 0.01 }, ..base }, &Constants::default())
                .capacity_requests_per_sec;
            let case = ServingInput { load: Load::Open { rate: 0.5 * capacity }, ..base };
            agrees(&format!("pp {pp}, {isl}, open"), &case, 1_000, 0.17);
        }
    }
}

#[test]
fn whole_prompts_wait_only_for_those_of_sequences_that_end_at_the_same_time() {
    for concurrency in [4.0, 16.0, 64.0] {
        for osl in [200.0, 1000.0] {
            let case = ServingInput { chunked_prefill: false, isl: 4000.0, osl, ..closed(concurrency) };
            agrees(&format!("{concurrency}, {osl}"), &case, (30.0 * concurrency) as u32, 0.15);
        }
    }
}

#[test]
fn prompts_of_attention_groups_match_the_closed_form() {
    let layout = Layout { ep: Count::new(8), attention_dp: Count::new(8), ..Layout::default() };
    for chunked_prefill in [true, false] {
        let base = ServingInput { arch: mixture(), layout, chunked_prefill, isl: 2000.0, osl: 500.0, ..closed(1.0) };
        for concurrency in [8.0, 64.0, 256.0] {
            let case = ServingInput { load: closed(concurrency).load, ..base };
            agrees(&format!("{chunked_prefill}, {concurrency}"), &case, 40 * concurrency as u32, 0.15);
        }
        let capacity = estimate(&ServingInput { load: Load::Open { rate: 0.01 }, ..base }, &Constants::default())
            .capacity_requests_per_sec;
        for share in [0.3, 0.5, 0.7] {
            let case = ServingInput { load: Load::Open { rate: share * capacity }, ..base };
            agrees(&format!("{chunked_prefill}, {share} of the capacity"), &case, 4_000, 0.15);
        }
    }
}

/// Equal requests meet when their prompts are computed in parallel. In runs with an end, those of a burst stay together.
#[test]
fn equal_requests_of_attention_groups_match_the_closed_form() {
    for (groups, chunked_prefill) in [(4, true), (4, false), (8, true), (8, false)] {
        let layout = Layout { ep: Count::new(groups), attention_dp: Count::new(groups), ..Layout::default() };
        for (isl, concurrency) in [(1000.0, 64.0), (4000.0, 64.0), (1000.0, 256.0), (4000.0, 256.0)] {
            let base =
                ServingInput { arch: mixture(), layout, chunked_prefill, isl, osl: 200.0, ..closed(concurrency) };
            for turns in [10.0, f64::INFINITY] {
                let load = Load::Closed { concurrency, requests: turns * concurrency };
                let case = ServingInput { load, ..base };
                let theory = estimate(&case, &Constants::default());
                let mut input = Input::of(&case, &Constants::default(), (turns.min(8.0) * concurrency) as u32 + 1);
                input.staggered = true;
                if turns.is_infinite() {
                    input.warm_up = 2 * concurrency as u32;
                } else {
                    input.requests = (turns * concurrency) as u32;
                }
                let found = simulated(&input);
                let name = format!("{groups} groups, {chunked_prefill}, {isl}, {concurrency}, {turns} turns");
                near(&format!("{name}, TPOT"), found.tpot.mean, theory.tpot.mean, 0.14);
                near(&format!("{name}, TTFT"), found.ttft.mean, theory.ttft.mean, 0.3);
                if turns.is_infinite() {
                    near(&format!("{name}, TTFT"), found.ttft.mean, theory.ttft.mean, 0.13);
                } else {
                    near(&format!("{name}, rate"), found.requests_per_sec, theory.requests_per_sec, 0.13);
                }
            }
        }
    }
}

/// A step of a prefill pool takes in all prompts that have arrived, and all of them end with it.
#[test]
fn prompts_of_prefill_pools_with_attention_groups_match_the_closed_form() {
    let groups = |n, dp| Layout { ep: n, attention_dp: n, dp: Count::new(dp), ..Layout::default() };
    for (prefill, dp, isl) in [(4, 1, 1000.0), (4, 2, 4000.0), (8, 1, 16_000.0), (8, 2, 1000.0)] {
        let pools = Some(Pools { prefill: groups(Count::new(prefill), dp), decode: groups(Count::new(8), 3) });
        let base = ServingInput { arch: mixture(), pools, isl, ..system(Load::Open { rate: 0.01 }) };
        let capacity = estimate(&base, &Constants::default()).capacity_requests_per_sec;
        for share in [0.1, 0.3, 0.6] {
            let case = ServingInput { load: Load::Open { rate: share * capacity }, ..base };
            let theory = estimate(&case, &Constants::default());
            let mut input = Input::of(&case, &Constants::default(), 4_000);
            input.warm_up = 1_000;
            let found = simulated(&input);
            near(&format!("{prefill}, {dp}, {isl}, {share}"), found.ttft.mean, theory.ttft.mean, 0.15);
        }
    }
}

/// Short outputs of many concurrent requests: most steps have prompts. Whole prompts are computed in a few long gaps.
#[test]
fn gaps_between_tokens_match_the_closed_form() {
    for (concurrency, isl, osl) in [
        (64.0, 2000.0, 50.0),
        (64.0, 4000.0, 100.0),
        (64.0, 1000.0, 20.0),
        (32.0, 1000.0, 10.0),
        (16.0, 1000.0, 300.0),
        (4.0, 1000.0, 10.0),
        (64.0, 4000.0, 20.0),
        (128.0, 4000.0, 20.0),
        (32.0, 1000.0, 40.0),
    ] {
        for chunked_prefill in [true, false] {
            let case = ServingInput { chunked_prefill, isl, osl, osl_spread: 2.0, ..closed(concurrency) };
            let theory = estimate(&case, &Constants::default());
            let requests = (3000.0f64).max(20.0 * concurrency) as u32;
            let mut input = Input::of(&case, &Constants::default(), requests);
            input.warm_up = requests / 3;
            input.lengths.osl = Distribution::Bounded { mean: case.osl, most: 2.0 * case.osl };
            let found = simulated(&input);
            let name = format!("{concurrency}, {isl} + {osl}, {chunked_prefill}");
            near(&format!("{name}, rate"), found.requests_per_sec, theory.requests_per_sec, 0.08);
            near(&format!("{name}, TTFT"), found.ttft.mean, theory.ttft.mean, 0.24);
            near(&format!("{name}, TTFT p99"), found.ttft.p99, theory.ttft.p99, 0.65);
            near(&format!("{name}, TPOT"), found.tpot.mean, theory.tpot.mean, 0.15);
            near(&format!("{name}, p95"), found.itl.p95, theory.itl.p95, 0.42);
            near(&format!("{name}, p99"), found.itl.p99, theory.itl.p99, 0.42);
            near(&format!("{name}, mean"), theory.itl.mean, theory.tpot.mean, 1e-9);
        }
    }
}

/// Between the ends of two sequences, the others grow by an output, for which prompts are evicted and computed again.
#[test]
fn a_backlog_that_fills_the_memory_matches_the_closed_form() {
    for (isl, osl) in [(256.0, 1024.0), (1024.0, 1024.0), (4096.0, 512.0)] {
        for (osl_spread, dp) in [(2.0, 1), (2.0, 4), (1.5, 1)] {
            let layout = Layout { dp: Count::new(dp), ..Layout::default() };
            let requests = f64::from(1500 * dp);
            let load = Load::Burst { requests };
            let max_num_seqs = Some(Count::new(2000));
            let case =
                ServingInput { isl, osl, osl_spread, layout, max_num_seqs, memory_utilization: 0.45, ..system(load) };
            let theory = estimate(&case, &Constants::default());
            let mut input = Input::of(&case, &Constants::default(), 1);
            input.lengths.osl = Distribution::Bounded { mean: osl, most: osl_spread * osl };
            let found = simulated(&input);
            let name = format!("{isl} + {osl}, spread {osl_spread}, dp {dp}");
            let preempted = found.preemptions as f64 / requests;
            println!(
                "{name}: {:+.3}, {preempted} preemptions",
                theory.output_tokens_per_sec / found.output_tokens_per_sec - 1.0
            );
            assert!(preempted > 0.05, "{name}: {preempted}");
            near(&name, found.output_tokens_per_sec, theory.output_tokens_per_sec, 0.1);
        }
    }
}

/// Chunks of latent attention expand the keys of earlier chunks and of the cached prefix again.
#[test]
fn chunks_of_latent_attention_match_the_closed_form() {
    let arch = Architecture { attention: LATENT_ATTENTION, heads: Count::new(128), ..llama_8b() };
    for expanded_prefix in [Count::ZERO, Count::new(8192)] {
        for (isl, prefix_hit) in [(2000.0, 0.9), (16_000.0, 0.0), (64_000.0, 0.0), (64_000.0, 0.5)] {
            let case = ServingInput { arch, isl, prefix_hit, expanded_prefix, osl: 50.0, ..closed(1.0) };
            let theory = estimate(&case, &Constants::default());
            let found = simulated(&Input::of(&case, &Constants::default(), 20));
            near(&format!("{isl}, {prefix_hit}, {expanded_prefix:?}"), found.ttft.mean, theory.ttft.mean, 0.03);
        }
    }
}

/// Prompts that are longer than the window, in one chunk and in several.
#[test]
fn prompts_beyond_a_window_match_the_closed_form() {
    let arch =
        Architecture { window: Some(Window { size: Count::new(4096), share: 1.0, chunked: false }), ..llama_8b() };
    for isl in [2000.0, 6000.0, 30_000.0] {
        let case = ServingInput { arch, isl, osl: 50.0, ..closed(1.0) };
        let theory = estimate(&case, &Constants::default());
        let found = simulated(&Input::of(&case, &Constants::default(), 20));
        near(&format!("{isl}"), found.ttft.mean, theory.ttft.mean, 0.02);
    }
}
