//! One request at a time: waiting times follow queueing theory.

use super::*;

/// An engine that serves one request at a time, without a front end, is a single-server queue.
fn single_server(rate: f64, osl: Distribution) -> (Input, Machine<'static>) {
    let case = ServingInput {
        max_num_seqs: Some(Count::ONE),
        host: HostOverlap::None,
        isl: 512.0,
        load: Load::Open { rate },
        ..system(Load::Open { rate })
    };
    let constants = Constants { front_end: 0.0, ..Constants::default() };
    let machine = Machine::new(&case, &case.layout, &constants);
    let mut input = Input::of(&case, &constants, 22_000);
    input.front_end = false;
    input.warm_up = 2_000;
    input.lengths.osl = osl;
    (input, machine)
}

#[test]
fn constant_requests_one_at_a_time_match_m_d_1() {
    let (probe, machine) = single_server(1.0, Distribution::Constant(1.0));
    let service = steady_state::prefill(&machine, &probe.system, 1.0).total();
    for rho in [0.4, 0.8] {
        let (input, _) = single_server(rho / service, Distribution::Constant(1.0));
        let [ttft, busy] = replicate(10, 8, 0.999, |seed| {
            let o = simulate(&input, seed, &Progress::new()).unwrap();
            [o.ttft.mean, o.busy]
        });
        let wait = rho * service / (2.0 * (1.0 - rho));
        assert!(ttft.covers(service + wait), "{ttft:?} {}", service + wait);
        assert!(ttft.half_width < 0.1 * wait);
        assert!(busy.covers(rho), "{busy:?}");
    }
}

#[test]
fn varied_requests_one_at_a_time_match_pollaczek_khinchine() {
    let osl = Distribution::Uniform { low: 1.0, high: 41.0 };
    let (probe, machine) = single_server(1.0, osl);
    // Exact moments of the service time, from the step model for each output length.
    let mut at = steady_state::prefill(&machine, &probe.system, 1.0).total();
    let times: Vec<f64> = (0..40u32)
        .map(|token| {
            if token > 0 {
                let mut step = steady_state::decode_tokens(&probe.system, 1.0);
                step.context = 512.0 + f64::from(token);
                at += machine.step(&step).total();
            }
            at
        })
        .collect();
    // Rounding gives the first and the last length half the weight of the others.
    let weight = |k: usize| if k == 0 || k == 40 { 0.5 } else { 1.0 } / 40.0;
    let last = times[39] + (times[39] - times[38]);
    let all: Vec<f64> = times.iter().copied().chain([last]).collect();
    let moment = |p: i32| all.iter().enumerate().map(|(k, t)| weight(k) * t.powi(p)).sum::<f64>();
    let (mean, square) = (moment(1), moment(2));
    let rho = 0.7;
    let rate = rho / mean;
    let (input, _) = single_server(rate, osl);
    let [e2e] = replicate(20, 10, 0.999, |seed| [simulate(&input, seed, &Progress::new()).unwrap().e2e.mean]);
    let theory = mean + rate * square / (2.0 * (1.0 - rho));
    assert!(e2e.covers(theory), "{e2e:?} {theory}");
    assert!(e2e.half_width < 0.1 * theory);
}

/// Poisson arrivals from a tenth to nine tenths of the capacity, with and without separate pools.
#[test]
fn open_loads_match_the_closed_form_from_10_to_90_percent_of_capacity() {
    let one = |dp| Layout { dp: Count::new(dp), ..Layout::default() };
    let pools = Pools { prefill: one(1), decode: one(2) };
    for (isl, osl) in [(1000.0, 200.0), (8000.0, 100.0)] {
        for (pools, dp) in [(None, 1), (None, 2), (Some(pools), 1)] {
            let base = ServingInput { isl, osl, pools, layout: one(dp), ..system(Load::Open { rate: 0.1 }) };
            let capacity = estimate(&base, &Constants::default()).capacity_requests_per_sec;
            for share in [0.1, 0.3, 0.5, 0.7, 0.9] {
                let case = ServingInput { load: Load::Open { rate: share * capacity }, ..base };
                let theory = estimate(&case, &Constants::default());
                let mut input = Input::of(&case, &Constants::default(), 3_000);
                input.warm_up = 1_000;
                let found = simulated(&input);
                let name = format!("{isl} + {osl}, pools {}, dp {dp}, load {share}", pools.is_some());
                for (what, f, t, most) in [
                    ("TTFT", found.ttft.mean, theory.ttft.mean, 1.5),
                    ("TPOT", found.tpot.mean, theory.tpot.mean, 1.25),
                    ("TPOT, 95th", found.tpot.p95, theory.tpot.p95, 1.4),
                    ("E2E", found.e2e.mean, theory.e2e.mean, 1.25),
                ] {
                    assert!((1.0 / most..most).contains(&(f / t)), "{name}, {what}: {f} s, {t} s in the closed form");
                }
            }
        }
    }
}

/// Short prompts share steps of a prefill pool, and slow links between the pools limit the rate.
#[test]
fn pools_of_short_prompts_and_slow_links_match_the_closed_form() {
    let layout = |tp, dp| Layout { tp: Count::new(tp), dp: Count::new(dp), ..Layout::default() };
    for (prefill, decode, isl, nic_bw) in [
        (layout(1, 1), layout(1, 8), 64.0, 50e9),
        (layout(1, 1), layout(1, 8), 300.0, 50e9),
        (layout(1, 2), layout(1, 6), 8000.0, 1e9),
        (layout(8, 1), layout(1, 1), 8000.0, 1e9),
    ] {
        let pools = Some(Pools { prefill, decode });
        let mut case = ServingInput { isl, osl: 50.0, pools, ..closed(256.0) };
        case.accelerator.nic_bw = nic_bw;
        let theory = estimate(&case, &Constants::default());
        let mut input = Input::of(&case, &Constants::default(), 3_000);
        input.warm_up = 1_000;
        let found = simulated(&input);
        let ratio = found.requests_per_sec / theory.requests_per_sec;
        assert!(
            (0.85..1.18).contains(&ratio),
            "{isl}, {nic_bw}: {} {}",
            found.requests_per_sec,
            theory.requests_per_sec
        );
        let ratio = found.ttft.mean / theory.ttft.mean;
        assert!((0.7..1.4).contains(&ratio), "{isl}, {nic_bw}: TTFT {} {}", found.ttft.mean, theory.ttft.mean);
    }
}

/// Attention groups of a prefill pool that are filled to their token budgets.
#[test]
fn full_prefill_pools_with_attention_groups_match_the_closed_form() {
    let wide = Layout { attention_dp: Count::new(16), ep: Count::new(16), ..Layout::default() };
    let decode = Layout { dp: Count::new(16), ..Layout::default() };
    let pools = Some(Pools { prefill: wide, decode });
    let arch = Architecture {
        experts: Count::new(64),
        top_k: Count::new(4),
        moe_ffn: Count::new(4096),
        ..Architecture::default()
    };
    let mut case = ServingInput { arch, isl: 4096.0, osl: 8.0, pools, ..closed(256.0) };
    (case.accelerator.mem_bytes, case.max_num_batched_tokens) = (2e12, 8_192.0);
    let theory = estimate(&case, &Constants::default());
    let mut input = Input::of(&case, &Constants::default(), 3_000);
    input.warm_up = 1_000;
    let found = simulated(&input);
    near("requests/s", found.requests_per_sec, theory.requests_per_sec, 0.12);
    near("TTFT", found.ttft.mean, theory.ttft.mean, 0.1);
}

/// No step computes more prompts than its token budget holds, which limits the interruptions of a short output.
#[test]
fn interruptions_of_short_outputs_match_the_closed_form() {
    for share in [0.3, 0.6, 0.85] {
        let base = ServingInput { isl: 20_000.0, osl: 32.0, ..closed(1.0) };
        let of = |rate| ServingInput { load: Load::Open { rate }, ..base };
        let case = of(share * estimate(&of(0.01), &Constants::default()).capacity_requests_per_sec);
        let theory = estimate(&case, &Constants::default());
        let mut input = Input::of(&case, &Constants::default(), 6_000);
        input.warm_up = 1_000;
        let found = simulated(&input);
        println!("{share}: {:?} {:?}; {:?} {:?}", theory.tpot, found.tpot, theory.itl, found.itl);
        near("TPOT", found.tpot.mean, theory.tpot.mean, 0.2);
        near("TPOT p99", found.tpot.p99, theory.tpot.p99, 0.3);
    }
}

/// The number of sequences of a decode pool varies with random arrivals, and with it the time of a step.
#[test]
fn percentiles_of_a_decode_pool_match_the_closed_form() {
    for (dp, share) in [(1, 0.3), (1, 0.7), (4, 0.5)] {
        let layout = |dp| Layout { dp: Count::new(dp), ..Layout::default() };
        let pools = Some(Pools { prefill: layout(2 * dp), decode: layout(dp) });
        let base = ServingInput { pools, max_num_seqs: Some(Count::new(64)), ..closed(1.0) };
        let of = |rate| ServingInput { load: Load::Open { rate }, ..base };
        let case = of(share * estimate(&of(0.1), &Constants::default()).capacity_requests_per_sec);
        let theory = estimate(&case, &Constants::default());
        let mut input = Input::of(&case, &Constants::default(), 3_000);
        input.warm_up = 1_000;
        let found = simulated(&input);
        for (what, found, theory) in [("TPOT", found.tpot, theory.tpot), ("ITL", found.itl, theory.itl)] {
            let ratios = |mean: f64, p95: f64, p99: f64| [p95 / mean, p99 / mean];
            println!("{dp}, {share}, {what}: {theory:?} {found:?}");
            let expected = ratios(theory.mean, theory.p95, theory.p99);
            for (found, expected) in ratios(found.mean, found.p95, found.p99).into_iter().zip(expected) {
                near(what, found, expected, 0.04);
            }
        }
    }
}

/// Requests in flight = rate x time in the system, also if the front end is the bottleneck.
#[test]
fn littles_law_holds_in_a_closed_loop() {
    for (isl, osl) in [(16.0, 1.0), (16.0, 16.0), (16.0, 200.0), (4000.0, 64.0)] {
        for concurrency in [1.0, 16.0, 128.0, 512.0] {
            for pools in [None, Some(Pools { prefill: Layout::default(), decode: Layout::default() })] {
                let case = ServingInput { isl, osl, pools, ..closed(concurrency) };
                let mut input = Input::of(&case, &Constants::default(), 16 * concurrency as u32 + 100);
                input.warm_up = 4 * concurrency as u32;
                input.lengths.osl = if osl > 1.0 {
                    Distribution::Uniform { low: 1.0, high: 2.0 * osl - 1.0 }
                } else {
                    Distribution::Constant(1.0)
                };
                let found = simulated(&input);
                let rate = found.steady.finished as f64 / found.steady.seconds;
                let name = format!("{isl} + {osl}, {concurrency}, pools {}", pools.is_some());
                near(&name, rate * found.e2e.mean, concurrency, 0.1);
            }
        }
    }
}

#[test]
fn tpot_is_at_least_the_time_to_read_the_weights_if_the_front_end_is_saturated() {
    let case = ServingInput { isl: 16.0, osl: 16.0, ..closed(512.0) };
    let mut input = Input::of(&case, &Constants::default(), 4096);
    input.warm_up = 1024;
    let found = simulated(&input);
    let machine = Machine::new(&case, &case.layout, &Constants::default());
    let least = machine.step(&steady_state::decode_tokens(&case, 1.0)).weights;
    assert!(found.tpot.mean > least && found.tpot.p50 > least, "{:?} {least}", found.tpot);
}
