//! Deployments other than a stream of requests through a paging engine: single phases, beams, compiled shapes, scarce
//! memory.

use super::*;
use atlas_core::count::Count;

/// Decoding alone, and prefill alone.
#[test]
fn a_single_phase_matches_the_closed_form() {
    for batch in [1.0, 16.0, 128.0] {
        let case = ServingInput { isl: 1000.0, osl: 400.0, ..system(Load::DecodeOnly { batch }) };
        let theory = estimate(&case, &Constants::default());
        let found = simulated(&Input::of(&case, &Constants::default(), 1));
        near("tokens", found.output_tokens_per_sec, theory.output_tokens_per_sec, 0.02);
        near("TPOT", found.tpot.mean, theory.tpot.mean, 0.02);
        let alone = ServingInput { load: Load::PrefillOnly { batch }, ..case };
        let theory = estimate(&alone, &Constants::default());
        let first = ServingInput { load: Load::Static { batch }, osl: 1.0, ..case };
        let found = simulated(&Input::of(&first, &Constants::default(), 1));
        near("prefill", found.requests_per_sec, theory.requests_per_sec, 0.03);
    }
}

/// Lengths distributed uniformly up to a maximum, or beyond twice the mean: the batch drains as in the closed form.
#[test]
fn a_draining_batch_matches_the_closed_form() {
    for spread in [1.5, 2.0, 3.0] {
        for batch in [16.0, 200.0] {
            let case = ServingInput { isl: 200.0, osl: 400.0, osl_spread: spread, ..system(Load::Static { batch }) };
            let theory = estimate(&case, &Constants::default());
            let mut input = Input::of(&case, &Constants::default(), 1);
            input.lengths.osl = Distribution::Bounded { mean: case.osl, most: spread * case.osl };
            let rates = replicate(1, 40, 0.95, |seed| {
                [simulate(&input, seed, &Progress::new()).unwrap().output_tokens_per_sec]
            });
            near(&format!("{batch} up to {spread}"), rates[0].mean, theory.output_tokens_per_sec, 0.05);
        }
    }
}

/// A single stream has no drain phase; several have one, whether their lengths are equal or not.
#[test]
fn a_finite_run_drains_as_in_the_closed_form() {
    for (concurrency, requests, spread) in [(1.0, 10.0, 1.0), (1.0, 10.0, 2.0), (16.0, 64.0, 2.0), (16.0, 160.0, 2.0)] {
        let load = Load::Closed { concurrency, requests };
        let case = ServingInput { isl: 300.0, osl: 300.0, osl_spread: spread, ..system(load) };
        let theory = estimate(&case, &Constants::default());
        let mut input = Input::of(&case, &Constants::default(), requests as u32);
        if spread > 1.0 {
            input.lengths.osl = Distribution::Bounded { mean: case.osl, most: spread * case.osl };
        }
        let rates =
            replicate(1, 40, 0.95, |seed| [simulate(&input, seed, &Progress::new()).unwrap().output_tokens_per_sec]);
        near(&format!("{concurrency} of {requests}"), rates[0].mean, theory.output_tokens_per_sec, 0.05);
    }
}

/// Equal requests of a short run start together, end together and are replaced together.
#[test]
fn short_closed_runs_of_equal_requests_do_not_drain() {
    for (isl, osl) in [(300.0, 300.0), (1000.0, 1000.0), (4000.0, 200.0)] {
        for (concurrency, requests) in [(16.0, 16.0), (16.0, 48.0), (64.0, 64.0), (64.0, 128.0), (64.0, 150.0)] {
            for (places, chunked_prefill) in [(256, true), (256, false), (32, true)] {
                let load = Load::Closed { concurrency, requests };
                let max_num_seqs = Some(Count::new(places));
                let case = ServingInput { isl, osl, max_num_seqs, chunked_prefill, ..system(load) };
                let theory = estimate(&case, &Constants::default());
                let found = simulated(&Input::of(&case, &Constants::default(), 1));
                let what = format!("{requests} of {isl} + {osl}, {concurrency} at once in {places}, {chunked_prefill}");
                near(&what, found.requests_per_sec, theory.requests_per_sec, 0.02);
                if !chunked_prefill || requests == concurrency {
                    near(&format!("{what}, TTFT"), found.ttft.mean, theory.ttft.mean, 0.35);
                }
            }
        }
    }
}

/// Equal requests that arrive together run in waves, the last of which may be partially filled. If prefill takes most
/// of a request's time, or the token budget limits the number of running requests below the number of slots, phases
/// mix.
#[test]
fn waves_of_equal_requests_match_the_closed_form() {
    let base = ServingInput { reserve_output: true, ..system(Load::Burst { requests: 1.0 }) };
    for (isl, osl, places, requests) in [
        (128.0, 512.0, 64, 64.0),
        (128.0, 512.0, 64, 65.0),
        (128.0, 512.0, 64, 190.0),
        (128.0, 512.0, 64, 256.0),
        (1000.0, 200.0, 100, 30.0),
        (2000.0, 500.0, 200, 450.0),
        (4000.0, 40.0, 50, 170.0),
        (128.0, 128.0, 2000, 5000.0),
        (2000.0, 1.0, 64, 200.0),
    ] {
        for chunked_prefill in [true, false] {
            let load = Load::Burst { requests };
            let case = ServingInput { isl, osl, max_num_seqs: Some(Count::new(places)), load, chunked_prefill, ..base };
            let theory = estimate(&case, &Constants::default());
            let found = simulated(&Input::of(&case, &Constants::default(), 1));
            let what = format!("{requests} of {isl} + {osl} in {places} places, {chunked_prefill}");
            near(&what, found.requests_per_sec, theory.requests_per_sec, 0.03);
        }
    }
}

/// Every request that a loop takes in between its steps delays all running requests, except for the part that is
/// overlapped.
#[test]
fn admission_costs_match_the_closed_form() {
    let answers = |overlapped, front_end| {
        let c = Constants { front_end, ..Constants::default() };
        let case = ServingInput { isl: 100.0, osl: 128.0, host: host(overlapped), ..closed(32.0) };
        let mut input = Input::of(&case, &c, 640);
        input.staggered = true;
        input.warm_up = 64;
        let (found, theory) = (simulated(&input), estimate(&case, &c));
        [found.tpot.mean, found.output_tokens_per_sec, theory.tpot.mean, theory.output_tokens_per_sec]
    };
    for overlapped in [true, false] {
        let (free, costs) = (answers(overlapped, 0.0), answers(overlapped, 7e-3));
        let [found_tpot, found_tokens, tpot, tokens] = std::array::from_fn(|i| costs[i] / free[i]);
        assert!(tpot > 1.05 && tokens < 0.97, "{tpot} {tokens}");
        near("TPOT", found_tpot, tpot, 0.05);
        near("tokens", found_tokens, tokens, 0.05);
    }
}

/// Four beams cost as much as four sequences with one prompt.
#[test]
fn beam_search_matches_the_closed_form() {
    for batch in [1.0, 8.0] {
        let case = ServingInput { isl: 800.0, osl: 128.0, beams: Count::new(4), ..system(Load::Static { batch }) };
        let theory = estimate(&case, &Constants::default());
        let found = simulated(&Input::of(&case, &Constants::default(), 1));
        near("tokens", found.output_tokens_per_sec, theory.output_tokens_per_sec, 0.03);
        let plain = simulated(&Input::of(&ServingInput { beams: Count::ONE, ..case }, &Constants::default(), 1));
        assert!(found.tpot.mean > plain.tpot.mean && found.max_kv_share > plain.max_kv_share);
    }
}

/// A graph compiled for 32 sequences always computes 32.
#[test]
fn compiled_batch_runs_at_full_size_as_in_the_closed_form() {
    let one = |compiled: Option<f64>, concurrency: f64| {
        let case =
            ServingInput { isl: 1500.0, osl: 250.0, compiled_batch: compiled.map(Count::floor), ..closed(concurrency) };
        let theory = estimate(&case, &Constants::default());
        (simulated(&Input::of(&case, &Constants::default(), 12)), theory)
    };
    let (found, theory) = one(Some(32.0), 1.0);
    near("tokens", found.output_tokens_per_sec, theory.output_tokens_per_sec, 0.03);
    near("TTFT", found.ttft.mean, theory.ttft.mean, 0.03);
    let (plain, _) = one(None, 1.0);
    assert!(found.tpot.mean > 1.2 * plain.tpot.mean, "{} {}", found.tpot.mean, plain.tpot.mean);
}

/// If memory holds five of eight long prompts, five run: no request is admitted only to be evicted halfway.
#[test]
fn long_prompts_beyond_kv_capacity_have_under_0_5_preemptions_each() {
    let small = Accelerator { mem_bytes: 40e9, mem_bw: 1.555e12, ..h100() };
    let case = ServingInput { accelerator: small, isl: 28_600.0, osl: 230.0, ..closed(8.0) };
    let theory = estimate(&case, &Constants::default());
    assert!(theory.max_concurrency < 8.0, "{}", theory.max_concurrency);
    let mut input = Input::of(&case, &Constants::default(), 80);
    input.warm_up = 16;
    let found = simulated(&input);
    near("tokens", found.output_tokens_per_sec, theory.output_tokens_per_sec, 0.25);
    assert!((found.preemptions as f64) < 0.5 * found.requests as f64, "{}", found.preemptions);
}
