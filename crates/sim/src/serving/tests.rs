//! Comparison with the analytical engine without queueing, with queueing theory, and invariants.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod admission;
mod analytical;
mod forms;
mod memory;
mod properties;
mod queueing;

use super::*;
use crate::kernel::Distribution;
use crate::kernel::replication::replicate;
use atlas_core::count::Count;
use atlas_perf::accelerator::{Accelerator, Generation, Precision};
use atlas_perf::arch::{Architecture, Linear, LinearKind, Window};
use atlas_perf::constants::Constants;
use atlas_perf::serving::machine::Machine;
use atlas_perf::serving::{
    Admission, Formats, Gathering, HostOverlap, Layout, Load, Pools, ServingInput, Speculation, estimate, steady_state,
};

fn h100() -> Accelerator {
    let mut a = Accelerator {
        generation: Generation::Hopper,
        mem_bw: 3.35e12,
        link_bw: 450e9,
        cores: 132.0,
        ..Accelerator::default()
    };
    a.flops[Precision::Bf16 as usize] = 989e12;
    a.flops[Precision::Fp8 as usize] = 1979e12;
    a
}

fn llama_8b() -> Architecture {
    Architecture {
        kv_heads: Count::new(8),
        ffn: Count::new(14336),
        vocab: Count::new(128_256),
        ..Architecture::default()
    }
}

fn llama_70b() -> Architecture {
    Architecture {
        layers: Count::new(80),
        hidden: Count::new(8192),
        heads: Count::new(64),
        ffn: Count::new(28672),
        ..llama_8b()
    }
}

fn mixture() -> Architecture {
    Architecture { experts: Count::new(8), top_k: Count::new(2), moe_ffn: Count::new(14336), ..llama_8b() }
}

fn system(load: Load) -> ServingInput {
    ServingInput {
        accelerator: h100(),
        arch: llama_8b(),
        layout: Layout { tp: Count::ONE, ..Layout::default() },
        load,
        ..ServingInput::default()
    }
}

fn closed(concurrency: f64) -> ServingInput {
    system(Load::Closed { concurrency, requests: f64::INFINITY })
}

fn simulated(input: &Input) -> Output {
    simulate(input, 1, &Progress::new()).unwrap()
}

fn near(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = found / expected - 1.0;
    assert!(off.abs() <= tolerance, "{what}: {found} against {expected}, {:.2} %", 100.0 * off);
}

/// Host overlap: either full scheduling ahead, or none.
fn host(ahead: bool) -> HostOverlap {
    if ahead { HostOverlap::Scheduling } else { HostOverlap::None }
}

fn busy_input() -> Input {
    let case = ServingInput { max_num_batched_tokens: 2048.0, ..system(Load::Open { rate: 12.0 }) };
    let mut input = Input::of(&case, &Constants::default(), 600);
    input.lengths.isl = Distribution::LogNormal { mean: 700.0, cv: 1.0 };
    input.lengths.osl = Distribution::LogNormal { mean: 150.0, cv: 0.7 };
    input
}

fn consistent(o: &Output, requests: usize) {
    assert_eq!(o.records.len(), requests);
    for r in &o.records {
        assert!(r.ttft > 0.0 && r.e2e >= r.ttft, "{r:?}");
        // The first token may be returned later than it was generated.
        assert!(r.e2e >= r.tpot * f64::from(r.osl - 1), "{r:?}");
    }
    assert!(o.slo_share <= 1.0 && o.goodput <= o.requests_per_sec + 1e-9);
    assert!(o.kv_share <= o.max_kv_share && o.max_kv_share <= 1.0 + 1e-9, "{} {}", o.kv_share, o.max_kv_share);
    assert!(o.busy <= 1.0 + 1e-9 && o.busy > 0.0);
    // Little's law: the number of requests in the system, from the records and from the levels.
    let inside: f64 = o.records.iter().map(|r| r.e2e).sum::<f64>() / o.seconds;
    assert!(o.waiting + o.running <= inside * 1.01 + 0.1, "{} {} {inside}", o.waiting, o.running);
    let tokens: u64 = o.records.iter().map(|r| u64::from(r.osl)).sum();
    assert!((o.output_tokens_per_sec * o.seconds / tokens as f64 - 1.0).abs() < 1e-9);
    assert!(o.timeline.iter().all(|l| l.kv_share <= 1.0 + 1e-9 && l.waiting >= -1e-9 && l.running >= -1e-9));
}

#[test]
fn every_request_finishes_with_consistent_records() {
    let mut input = busy_input();
    consistent(&simulated(&input), 600);
    input.arrivals = Arrivals::Gamma { rate: 12.0, cv: 3.0 };
    consistent(&simulated(&input), 600);
    input.system.chunked_prefill = false;
    consistent(&simulated(&input), 600);
    input.system.host = HostOverlap::None;
    input.system.layout.dp = Count::new(3);
    for router in
        [Router::RoundRobin, Router::Random, Router::LeastRequests, Router::TwoChoices, Router::PrefixAffinity]
    {
        input.router = router;
        let o = simulated(&input);
        consistent(&o, 600);
        assert!((0..3).all(|replica| o.records.iter().any(|r| r.replica == replica)));
    }
    input.system.speculation =
        Speculation { tokens: Count::new(2), acceptance: 0.8, draft_layers: 0.03, ..Speculation::default() };
    consistent(&simulated(&input), 600);
}

#[test]
fn lack_of_memory_preempts_and_every_request_finishes() {
    let mut input = busy_input();
    input.arrivals = Arrivals::Burst;
    // Weights fill the device except for some thousand tokens.
    input.system.memory_utilization = 0.235;
    let o = simulated(&input);
    consistent(&o, 600);
    assert!(o.preemptions > 0, "{}", o.max_kv_share);
    assert!(o.max_kv_share > 0.95);
    input.system.reserve_output = true;
    let reserved = simulated(&input);
    consistent(&reserved, 600);
    assert_eq!(reserved.preemptions, 0);
}

#[test]
fn requests_that_fit_no_replica_are_rejected_and_counted() {
    let mut input = busy_input();
    input.lengths.isl = Distribution::Uniform { low: 1.0, high: 1_000_000.0 };
    let o = simulated(&input);
    assert!(o.rejected > 0 && o.requests + o.rejected == 600);
    input.arrivals = Arrivals::Closed { concurrency: 4 };
    let o = simulated(&input);
    assert!(o.rejected > 0 && o.requests + o.rejected == 600);
}

#[test]
fn bursts_wait_longer_than_poisson_and_high_load_longer_than_low() {
    let mut input = busy_input();
    let calm = simulated(&input);
    input.arrivals = Arrivals::Gamma { rate: 12.0, cv: 4.0 };
    let bursty = simulated(&input);
    assert!(bursty.ttft.p99 > calm.ttft.p99 && bursty.max_waiting > calm.max_waiting);
    input.arrivals = Arrivals::Poisson { rate: 2.0 };
    let low = simulated(&input);
    assert!(low.ttft.mean < calm.ttft.mean && low.tpot.mean < calm.tpot.mean);
    input.slo = Slo { ttft: Some(calm.ttft.p50), tpot: Some(calm.tpot.p90), e2e: None };
    input.arrivals = Arrivals::Poisson { rate: 12.0 };
    let judged = simulated(&input);
    assert!(judged.slo_share > 0.3 && judged.slo_share < 0.55, "{}", judged.slo_share);
}

#[test]
fn arrival_phases_have_their_stated_rates() {
    let mut input = busy_input();
    input.requests = 100_000;
    input.arrivals = Arrivals::Phases(vec![
        Phase { seconds: 100.0, rate: 4.0, cv: 1.0 },
        Phase { seconds: 50.0, rate: 0.0, cv: 1.0 },
        Phase { seconds: 20.0, rate: 20.0, cv: 0.5 },
    ]);
    let o = simulated(&input);
    let between = |from: f64, to: f64| o.records.iter().filter(|r| r.arrival >= from && r.arrival < to).count();
    assert!(between(0.0, 100.0).abs_diff(400) < 100);
    assert!(between(100.0, 150.0) <= 1);
    assert!(between(150.0, 170.0).abs_diff(400) < 50);
    assert_eq!(between(0.0, 170.0), o.records.len());
}

#[test]
fn a_trace_is_replayed_as_recorded() {
    let mut input = busy_input();
    let trace: Vec<TraceRequest> = (0..50u32)
        .map(|k| TraceRequest {
            seconds: f64::from(k) * 0.5,
            isl: 2048,
            osl: 10 + k,
            prefix: vec![1, 2, 3, u64::from(k) + 10],
        })
        .collect();
    input.prefixes = Prefixes::Trace { piece: 512 };
    input.arrivals = Arrivals::Trace(trace);
    let o = simulated(&input);
    assert_eq!(o.records.len(), 50);
    assert!(o.records.iter().all(|r| r.isl == 2048 && (r.osl - 10) as f64 * 0.5 == r.arrival));
    // All requests but the first find three of four pieces.
    near("found", o.prefix_hit, 49.0 * 0.75 / 50.0, 1e-9);
}

#[test]
fn shared_prefixes_lower_ttft_and_affinity_routing_raises_hits() {
    let mut input = busy_input();
    input.system.layout.dp = Count::new(4);
    input.lengths.isl = Distribution::Constant(2000.0);
    input.router = Router::RoundRobin;
    let without = simulated(&input);
    input.prefixes = Prefixes::Groups { groups: 40, tokens: Distribution::Constant(1600.0), skew: 0.0 };
    let anywhere = simulated(&input);
    input.router = Router::PrefixAffinity;
    let together = simulated(&input);
    assert_eq!(without.prefix_hit, 0.0);
    assert!(anywhere.prefix_hit > 0.3 && anywhere.ttft.mean < without.ttft.mean);
    assert!(together.prefix_hit > anywhere.prefix_hit + 0.1, "{} {}", together.prefix_hit, anywhere.prefix_hit);
    consistent(&together, 600);
    // A cache without free memory finds little, but no block is lost.
    input.system.memory_utilization = 0.24;
    let tight = simulated(&input);
    consistent(&tight, 600);
    assert!(tight.prefix_hit < together.prefix_hit);
}

#[test]
fn disaggregated_pools_lower_simulated_p99_itl() {
    let mut input = busy_input();
    input.lengths.isl = Distribution::LogNormal { mean: 3000.0, cv: 0.5 };
    input.system.layout.dp = Count::new(4);
    let mixed = simulated(&input);
    let two = Layout { dp: Count::new(2), ..Layout::default() };
    input.system.pools = Some(Pools { prefill: two, decode: two });
    let apart = simulated(&input);
    consistent(&apart, 600);
    assert!(apart.itl.p99 < mixed.itl.p99, "{:?} {:?}", apart.itl, mixed.itl);
    input.system.memory_utilization = 0.24;
    consistent(&simulated(&input), 600);
}

#[test]
fn replicas_follow_the_load() {
    let mut input = busy_input();
    input.requests = 3000;
    input.arrivals = Arrivals::Phases(vec![
        Phase { seconds: 60.0, rate: 2.0, cv: 1.0 },
        Phase { seconds: 60.0, rate: 30.0, cv: 1.0 },
        Phase { seconds: 120.0, rate: 2.0, cv: 1.0 },
    ]);
    input.autoscaling = Some(Autoscaling {
        min_replicas: 1,
        max_replicas: 6,
        target: 16.0,
        interval: 1.0,
        start: 5.0,
        scale_down_delay: 10.0,
    });
    let o = simulated(&input);
    let most = o.timeline.iter().map(|l| l.replicas).fold(0.0, f64::max);
    let last = o.timeline.last().unwrap().replicas;
    assert!(most > 2.5 && last < 1.5, "{most} {last}");
    assert!(o.replica_hours * 3600.0 < 6.0 * o.seconds);
    assert!(o.replicas < o.max_replicas && o.max_replicas <= 6.0, "{} {}", o.replicas, o.max_replicas);
    assert!(o.records.iter().any(|r| r.replica > 0));
    input.system.pools = Some(Pools { prefill: Layout::default(), decode: Layout::default() });
    assert!(matches!(simulate(&input, 1, &Progress::new()), Err(p) if p.len() == 1));
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let input = busy_input();
    assert_eq!(simulated(&input), simulated(&input));
    assert_ne!(simulated(&input), simulate(&input, 2, &Progress::new()).unwrap());
}

#[test]
fn a_canceled_run_is_marked_as_canceled() {
    let progress = Progress::new();
    progress.cancel();
    let o = simulate(&busy_input(), 1, &progress).unwrap();
    assert!(o.canceled && o.requests < 600);
}

#[test]
fn all_invalid_settings_are_reported_at_once() {
    let mut input = busy_input();
    input.arrivals = Arrivals::Poisson { rate: f64::NAN };
    input.requests = 0;
    input.block_size = 0;
    input.system.memory_utilization = f64::INFINITY;
    assert_eq!(simulate(&input, 1, &Progress::new()).unwrap_err().len(), 4);
    input = busy_input();
    input.system.memory_utilization = 0.1;
    assert!(matches!(simulate(&input, 1, &Progress::new()).unwrap_err()[..], [Problem::NoKvMemory { .. }]));
    let back = |seconds| TraceRequest { seconds, isl: 1, osl: 1, prefix: vec![] };
    input = Input { arrivals: Arrivals::Trace(vec![back(2.0), back(1.0)]), ..busy_input() };
    assert_eq!(input.problems(), [Problem::TraceOrder { index: 1 }]);
}

#[test]
fn run_exceeding_the_event_limit_is_an_error() {
    let mut input = busy_input();
    input.max_events = 1000;
    let problems = simulate(&input, 1, &Progress::new()).unwrap_err();
    let [Problem::Endless { events, left, requests, seconds }] = problems[..] else { panic!("{problems:?}") };
    assert!(events >= 1000 && left < requests && requests == 600 && seconds > 0.0);
    assert!(problems[0].to_string().contains("of 600 requests finished in"), "{}", problems[0]);
}
