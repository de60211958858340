//! Waiting times: idle systems have none, and more load never shortens them.
#![allow(clippy::unwrap_used)]

use super::*;

fn pools(prefill: u32, decode: u32) -> Pools {
    let layout = |dp| Layout { tp: Count::new(2), dp: Count::new(dp), ..Layout::default() };
    Pools { prefill: layout(prefill), decode: layout(decode) }
}

#[test]
fn ttft_of_idle_pools_is_that_of_a_single_request() {
    for (prefill, decode) in [(1, 1), (1, 3), (2, 2), (4, 12)] {
        for isl in [200.0, 2000.0, 30_000.0] {
            let i = ServingInput { pools: Some(pools(prefill, decode)), isl, ..base() };
            let idle = run(&ServingInput { load: Load::Open { rate: 1e-4 }, ..i }).ttft.mean;
            let alone = run(&ServingInput { load: closed(1.0).load, ..i }).ttft.mean;
            assert!((idle / alone - 1.0).abs() < 0.01, "{prefill}+{decode}, {isl}: {idle} {alone}");
        }
    }
}

#[test]
fn ttft_of_pools_grows_with_the_arrival_rate_and_falls_with_prefill_replicas() {
    let of = |prefill, rate| {
        let i = ServingInput { pools: Some(pools(prefill, 4)), isl: 4000.0, load: Load::Open { rate }, ..base() };
        run(&i)
    };
    let capacity = of(1, 0.1).capacity_requests_per_sec;
    let mut last = 0.0;
    for share in [0.1, 0.3, 0.5, 0.7, 0.9] {
        let [one, two, four] = [1, 2, 4].map(|prefill| of(prefill, share * capacity).ttft.mean);
        assert!(one > last && two <= one && four <= two, "{share}: {one} {two} {four}");
        last = one;
    }
}

fn pools_of(prefill: (u32, u32), decode: (u32, u32)) -> Option<Pools> {
    let layout = |(dp, tp)| Layout { tp: Count::new(tp), dp: Count::new(dp), ..Layout::default() };
    Some(Pools { prefill: layout(prefill), decode: layout(decode) })
}

#[test]
fn waiting_prompts_of_a_prefill_pool_share_steps() {
    for isl in [64.0, 256.0, 1000.0] {
        let i = ServingInput { pools: pools_of((1, 8), (8, 1)), isl, osl: 20.0, ..closed(2000.0) };
        let e = run(&i);
        let alone = run(&ServingInput { load: Load::Open { rate: 0.01 }, ..i }).ttft.mean;
        assert!(e.requests_per_sec > 1.2 / alone, "{isl}: {} {alone}", e.requests_per_sec);
        let open = run(&ServingInput { load: Load::Open { rate: 0.5 * e.requests_per_sec }, ..i });
        assert!(open.ttft.mean < 4.0 * alone, "{isl}: {:?} {alone}", open.ttft);
    }
}

#[test]
fn links_between_pools_limit_the_rate() {
    let mut i = ServingInput { pools: pools_of((2, 1), (6, 1)), isl: 8000.0, osl: 20.0, ..closed(256.0) };
    let fast = run(&i);
    i.accelerator.nic_bw = 1e9;
    let slow = run(&i);
    let c = Constants::default();
    let (link, delay) = disaggregated::transfer_link(&i, &i.pools.unwrap(), &c);
    let shape = Machine::new(&i, &i.pools.unwrap().prefill, &c).shape;
    let most = 2.0 / (8000.0 * shape.kv_bytes_token / link + delay);
    assert!(fast.requests_per_sec > 2.0 * most);
    assert!((slow.requests_per_sec / most - 1.0).abs() < 1e-9, "{} {most}", slow.requests_per_sec);
    assert!(slow.capacity_requests_per_sec <= most * (1.0 + 1e-9));
}

#[test]
fn a_transfer_takes_as_long_as_its_slower_side() {
    let of = |prefill, decode| run(&ServingInput { pools: pools_of(prefill, decode), isl: 30_000.0, ..closed(1.0) });
    let few_receivers = of((1, 8), (8, 1)).first_token.prefill - of((1, 8), (1, 8)).first_token.prefill;
    let c = Constants::default();
    let i = base();
    let shape = Machine::new(&i, &Layout { tp: Count::ONE, ..Layout::default() }, &c).shape;
    let split = Machine::new(&i, &Layout { tp: Count::new(8), ..Layout::default() }, &c).shape;
    let more = 30_000.0 * (shape.kv_bytes_token - split.kv_bytes_token);
    let link = disaggregated::transfer_link(&i, &pools_of((1, 8), (8, 1)).unwrap(), &c).0;
    assert!((few_receivers * link / more - 1.0).abs() < 1e-6, "{few_receivers}");
}

#[test]
fn only_requests_that_share_a_replica_wait_for_its_steps() {
    let eight = Layout { dp: Count::new(8), ..Layout::default() };
    let at = |concurrency| run(&ServingInput { layout: eight, ..closed(concurrency) }).ttft.mean;
    let (alone, two, all) = (at(8.0), at(9.0), at(16.0));
    // Two of nine requests have company.
    let expected = alone + 2.0 / 9.0 * (all - alone);
    assert!((two / expected - 1.0).abs() < 0.02 && all > 1.05 * alone, "{alone} {two} {all}");
}

#[test]
fn hundreds_of_places_are_rarely_all_taken_below_their_capacity() {
    let at = |share: f64| {
        let i = ServingInput { max_num_seqs: Some(Count::new(64)), load: Load::Open { rate: 0.1 }, ..base() };
        let rate = share * run(&i).capacity_requests_per_sec;
        run(&ServingInput { load: Load::Open { rate }, ..i }).ttft
    };
    let mut last = at(0.6).mean;
    for share in [0.65, 0.7, 0.75, 0.8, 0.85] {
        let ttft = at(share).mean;
        assert!((1.0..1.15).contains(&(ttft / last)), "{share}: {ttft} {last}");
        last = ttft;
    }
    // Near the capacity, half of the requests still find a place, but the longest waits are several times the mean.
    let ttft = at(0.97);
    assert!(ttft.p50 < ttft.mean && ttft.p99 > 2.0 * ttft.mean, "{ttft:?}");
}

#[test]
fn e2e_percentiles_are_those_of_long_outputs_if_lengths_vary() {
    let at = |osl_spread| run(&ServingInput { osl_spread, ..base() });
    let even = at(1.0);
    let rest = base().osl - 1.0;
    assert_eq!(even.e2e, even.ttft.zip(even.tpot, |first, each| first + rest * each));
    for (spread, p95, p99) in [(1.5, 1.45, 1.49), (2.0, 1.9, 1.98), (4.0, 2.526, 3.138)] {
        let e = at(spread);
        let of = |ratio: f64| e.ttft.mean + (ratio * base().osl - 1.0) * e.tpot.mean;
        assert!((e.e2e.p95 / of(p95) - 1.0).abs() < 1e-3, "{spread}: {:?}", e.e2e);
        assert!((e.e2e.p99 / of(p99) - 1.0).abs() < 1e-3, "{spread}: {:?}", e.e2e);
        assert!(e.e2e.p50 < e.e2e.p95 && e.e2e.p50 <= 1.05 * e.e2e.mean, "{spread}: {:?}", e.e2e);
    }
}

#[test]
fn e2e_percentiles_are_at_least_those_of_ttft_for_slow_transfers() {
    for nic_bw in [1e8, 1e9, 50e9] {
        for load in loads() {
            let mut i = ServingInput { pools: Some(pools(2, 2)), isl: 30_000.0, osl: 64.0, load, ..base() };
            i.accelerator.nic_bw = nic_bw;
            let e = run(&i);
            for (e2e, ttft) in [(e.e2e.p50, e.ttft.p50), (e.e2e.p95, e.ttft.p95), (e.e2e.p99, e.ttft.p99)] {
                assert!(e2e >= ttft, "{nic_bw} {load:?}");
            }
            // The prompt, its transfer and the tokens take the same time for every request.
            let alone = run(&ServingInput { load: closed(1.0).load, ..i });
            // Timed batches have no host time per request.
            let least = 0.98 * (alone.ttft.mean - alone.first_token.overhead);
            assert!(e.e2e.p50 >= least || matches!(load, Load::DecodeOnly { .. }), "{nic_bw} {load:?}");
        }
    }
}

#[test]
fn ttft_does_not_fall_if_requests_are_added_to_a_backlog() {
    for (isl, osl) in [(256.0, 256.0), (4000.0, 128.0), (512.0, 2000.0)] {
        for osl_spread in [1.0, 1.5, 3.0] {
            for max_num_seqs in [16, 256] {
                let mut last = (0.0, 0.0);
                let mut requests = 1.0;
                while requests < 20_000.0 {
                    let most = Some(Count::new(max_num_seqs));
                    let load = Load::Burst { requests };
                    let e = run(&ServingInput { isl, osl, osl_spread, max_num_seqs: most, load, ..base() });
                    let case = format!("{isl} + {osl}, spread {osl_spread}, {max_num_seqs}: {requests}");
                    assert!(e.ttft.mean >= 0.999 * last.0, "{case}: {} {}", e.ttft.mean, last.0);
                    assert!(e.ttft.p95 >= 0.99 * last.1, "{case}: {} {}", e.ttft.p95, last.1);
                    last = (e.ttft.mean, e.ttft.p95);
                    requests = (1.03 * requests).ceil();
                }
            }
        }
    }
}

#[test]
fn neither_ttft_nor_tpot_falls_with_load_in_a_closed_loop() {
    for (isl, osl) in [(256.0, 256.0), (8192.0, 128.0), (8192.0, 1024.0), (30_000.0, 100.0)] {
        for max_num_batched_tokens in [1024.0, 2048.0, 8192.0] {
            let mut last = ServingEstimate::default();
            let mut n = 1.0;
            while n < 1000.0 {
                let e = run(&ServingInput { isl, osl, max_num_batched_tokens, ..closed(n) });
                let case = format!("{isl} + {osl}, {max_num_batched_tokens}: {n}");
                assert!(e.tpot.mean >= 0.995 * last.tpot.mean, "{case}: {} {}", e.tpot.mean, last.tpot.mean);
                assert!(e.ttft.mean >= 0.995 * last.ttft.mean, "{case}: {} {}", e.ttft.mean, last.ttft.mean);
                last = e;
                n = (1.1f64 * n).ceil();
            }
        }
    }
}

#[test]
fn a_single_output_token_has_no_tpot_under_any_load() {
    for load in loads() {
        for pools in [None, Some(pools(1, 2))] {
            for osl in [1.0, 100.0] {
                let e = run(&ServingInput { load, osl, pools, ..base() });
                let timed = osl > 1.0 && !matches!(load, Load::PrefillOnly { .. });
                if matches!(load, Load::DecodeOnly { .. }) {
                    continue;
                }
                assert_eq!(e.tpot.mean > 0.0, timed, "{load:?}, {osl}");
                assert_eq!(e.itl.p99 > 0.0, timed, "{load:?}, {osl}");
                assert!(timed || e.e2e == e.ttft, "{load:?}, {osl}");
            }
        }
    }
}

#[test]
fn littles_law_holds_in_closed_and_open_loops() {
    let encoder = Architecture { causal: false, ..Architecture::default() };
    for (isl, osl, arch) in [
        (512.0, 256.0, base().arch),
        (16.0, 64.0, base().arch),
        (8192.0, 128.0, base().arch),
        (512.0, 1.0, base().arch),
        (512.0, 1.0, encoder),
    ] {
        for chunked_prefill in [true, false] {
            for pools in [None, Some(pools(1, 3))] {
                let i = ServingInput { isl, osl, arch, chunked_prefill, pools, ..base() };
                for n in [1.0, 2.0, 8.0, 32.0, 128.0, 512.0, 2048.0] {
                    let e = run(&ServingInput { load: closed(n).load, ..i });
                    let found = e.requests_per_sec * e.e2e.mean;
                    let case = format!("{isl} + {osl}, {chunked_prefill}, {}", pools.is_some());
                    assert!((found / n - 1.0).abs() < 0.1, "{case}: {found} of {n}, {:?}", e.first_token);
                }
            }
        }
    }
}

#[test]
fn run_of_few_requests_has_no_more_of_them_at_once() {
    let of = |concurrency, requests| run(&ServingInput { load: Load::Closed { concurrency, requests }, ..base() });
    let (all, few) = (of(128.0, 8.0), of(8.0, 8.0));
    assert_eq!((all.batch, all.output_tokens_per_sec, all.ttft), (8.0, few.output_tokens_per_sec, few.ttft));
    assert!(of(128.0, 32.0).output_tokens_per_sec > 2.0 * all.output_tokens_per_sec);
}

/// Equal requests that start together stay together for some turns. A load without an end has no start.
#[test]
fn endless_closed_loops_have_no_bursts() {
    for chunked_prefill in [true, false] {
        let of = |requests| {
            let load = Load::Closed { concurrency: 32.0, requests };
            run(&ServingInput { chunked_prefill, isl: 4000.0, load, ..base() }).first_token.burst
        };
        assert_eq!(of(f64::INFINITY), 0.0);
        let (ten, hundred) = (of(320.0), of(3200.0));
        assert!((0.08..0.12).contains(&(hundred / ten)), "{ten} {hundred}");
    }
}

/// No prompt interrupts a pool that only decodes.
#[test]
fn only_the_number_of_sequences_varies_the_steps_of_a_decode_pool() {
    let split = ServingInput { pools: pools_of((1, 2), (1, 2)), ..base() };
    let closed = run(&ServingInput { load: Load::Closed { concurrency: 64.0, requests: f64::INFINITY }, ..split });
    assert_eq!((closed.tpot.p99, closed.itl.p99), (closed.tpot.mean, closed.itl.mean));
    let open = run(&ServingInput { load: Load::Open { rate: 5.0 }, ..split });
    let (tpot, itl) = (open.tpot.p99 / open.tpot.mean, open.itl.p99 / open.itl.mean);
    assert!(1.0 < tpot && tpot < itl && itl < 1.2, "{tpot} {itl}");
}

/// A static batch above the limit runs in turns, each of which waits for those before.
#[test]
fn later_turns_of_a_static_batch_wait_for_earlier_ones() {
    let of = |batch| run(&ServingInput { max_num_seqs: Some(Count::new(100)), load: Load::Static { batch }, ..base() });
    let (one, three) = (of(100.0), of(300.0));
    let turn = 100.0 / one.requests_per_sec;
    assert!((three.requests_per_sec / one.requests_per_sec - 1.0).abs() < 1e-9);
    assert!((three.ttft.mean - one.ttft.mean - turn).abs() < 1e-9 * turn, "{} {turn}", three.ttft.mean);
    assert!(three.ttft.p99 > three.ttft.mean + 0.9 * turn);
    assert!((three.tpot.mean / one.tpot.mean - 1.0).abs() < 1e-9);
    // The last turn may be nearly empty.
    let more = of(102.0);
    let last = 102.0 / more.requests_per_sec - turn;
    assert!(last > 0.1 * turn && last < 0.7 * turn, "{last} {turn}");
    assert!((more.tpot.mean / one.tpot.mean - 1.0).abs() < 0.02);
}
