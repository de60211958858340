//! Event throughput: the simulation kernel alone, and each part of the engine on a typical question.
#![allow(clippy::unwrap_used, missing_docs)]

use atlas_core::count::Count;
use atlas_perf::accelerator::{Accelerator, Generation};
use atlas_perf::arch::Architecture;
use atlas_perf::constants::Constants;
use atlas_perf::serving::{Layout, Load, ServingInput, Speculation};
use atlas_perf::training::TrainingInput;
use atlas_sim::kernel::{Distribution, EventQueue, Progress, Stream, Time};
use atlas_sim::network;
use atlas_sim::network::{Algorithm, Fabric, Job, Operation, Routing, Shape, Wire};
use atlas_sim::{queueing, serving, training};
use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher, black_box};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// One server with Markovian arrivals and service: two events per customer. Items are events.
#[divan::bench(sample_count = 20)]
fn m_m_1(bencher: Bencher<'_, '_>) {
    let input = queueing::Input {
        between: Distribution::Exponential { mean: 1.0 },
        service: Distribution::Exponential { mean: 0.8 },
        servers: 1,
        customers: 500_000,
        warm_up: 0,
    };
    bencher
        .counter(ItemsCount::new(1_000_000u32))
        .bench_local(|| queueing::simulate(black_box(&input), 1, &Progress::new()));
}

/// The hold model: every event schedules another, with `pending` events in the queue.
#[divan::bench(args = [16, 1_024, 16_384, 131_072, 1_048_576], sample_count = 10)]
fn hold(bencher: Bencher<'_, '_>, pending: u32) {
    let mut queue = EventQueue::with_capacity(pending as usize);
    let mut stream = Stream::new(1, 0, 0);
    for event in 0..pending {
        queue.at(Time::from_ps(stream.below(1_000_000_000)), event);
    }
    bencher.counter(ItemsCount::new(1_000_000u32)).bench_local(|| {
        for _ in 0..1_000_000 {
            if let Some(event) = queue.pop() {
                queue.after(Time::from_ps(stream.below(1_000_000_000)), event);
            }
        }
        queue.now()
    });
}

/// Every event cancels a timeout and sets a new one. Items are events.
#[divan::bench(sample_count = 10)]
fn timeouts(bencher: Bencher<'_, '_>) {
    let mut queue = EventQueue::with_capacity(4096);
    let mut handles: Vec<_> = (0..1024u32).map(|event| queue.at(Time::from_ps(u64::MAX / 2), event)).collect();
    for event in 0..1024 {
        queue.at(Time::from_ps(u64::from(event)), event);
    }
    bencher.counter(ItemsCount::new(1_000_000u32)).bench_local(|| {
        for _ in 0..1_000_000 {
            if let Some(event) = queue.pop()
                && let Some(handle) = handles.get_mut(event as usize)
            {
                queue.cancel(*handle);
                *handle = queue.after(Time::from_ps(u64::MAX / 4), event);
                queue.after(Time::from_ps(1000), event);
            }
        }
        queue.now()
    });
}

/// A 70B decoder on eight H100s with 4,000 requests of 250 output tokens on average: a million tokens.
fn serving_70b() -> serving::Input {
    let mut accelerator = Accelerator {
        generation: Generation::Hopper,
        mem_bw: 3.35e12,
        link_bw: 450e9,
        cores: 132.0,
        ..Accelerator::default()
    };
    for (slot, rate) in accelerator.flops.iter_mut().zip([67e12, 495e12, 989e12, 989e12, 1979e12, 1979e12]) {
        *slot = rate;
    }
    let arch = Architecture {
        layers: Count::new(80),
        hidden: Count::new(8192),
        heads: Count::new(64),
        kv_heads: Count::new(8),
        ffn: Count::new(28672),
        vocab: Count::new(128_256),
        ..Architecture::default()
    };
    let system = ServingInput {
        accelerator,
        arch,
        layout: Layout { tp: Count::new(8), ..Layout::default() },
        load: Load::Open { rate: 8.0 },
        ..ServingInput::default()
    };
    let mut input = serving::Input::of(&system, &Constants::default(), 4000);
    input.lengths.isl = Distribution::Uniform { low: 512.0, high: 1536.0 };
    input.lengths.osl = Distribution::Uniform { low: 64.0, high: 448.0 };
    input
}

/// Items are output tokens.
#[divan::bench(sample_count = 20)]
fn serving_4000_requests(bencher: Bencher<'_, '_>) {
    let input = serving_70b();
    bencher
        .counter(ItemsCount::new(1_024_000u32))
        .bench_local(|| serving::simulate(black_box(&input), 1, &Progress::new()).map(|o| o.output_tokens_per_sec));
}

/// [`serving_4000_requests`] with speculative decoding, where every sequence accepts a different number of draft
/// tokens.
#[divan::bench(sample_count = 20)]
fn serving_4000_requests_with_drafts(bencher: Bencher<'_, '_>) {
    let mut input = serving_70b();
    input.system.speculation =
        Speculation { tokens: Count::new(3), acceptance: 0.7, draft_layers: 0.0125, ..Speculation::default() };
    bencher
        .counter(ItemsCount::new(1_024_000u32))
        .bench_local(|| serving::simulate(black_box(&input), 1, &Progress::new()).map(|o| o.output_tokens_per_sec));
}

const WIRE: Wire = Wire { bandwidth: 50e9, latency: 1e-6 };

fn network_of(
    shape: Shape,
    routing: Routing,
    operation: Operation,
    algorithm: Algorithm,
    bytes: f64,
) -> network::Input {
    let job = Job { operation, algorithm, ranks: vec![], bytes, begin: 0.0 };
    network::Input { shape, degraded: vec![], routing, jobs: vec![job] }
}

fn domains(domains: u32, fabric: Fabric) -> Shape {
    let link = Wire { bandwidth: 450e9, latency: 1e-6 };
    Shape::Domains { domains, per_domain: 8, link, nic: WIRE, fabric }
}

/// A ring over 512 accelerators with 1,022 steps. Items are events: each message departs and arrives.
#[divan::bench(sample_count = 10)]
fn network_ring(bencher: Bencher<'_, '_>) {
    let ring = Algorithm::Ring { channels: 1, local: 8, chunks: 1 };
    let input = network_of(domains(64, Fabric::OneSwitch), Routing::First, Operation::AllReduce, ring, 1e9);
    bencher
        .counter(ItemsCount::new(2 * 1022 * 512u32))
        .bench_local(|| network::simulate(black_box(&input), 1, &Progress::new()).map(|o| o.events));
}

/// A hierarchical all-reduce over 4,096 accelerators.
#[divan::bench(sample_count = 5)]
fn network_hierarchical(bencher: Bencher<'_, '_>) {
    let sides = Algorithm::Dimensions { sides: [8, 512, 1] };
    let input = network_of(domains(512, Fabric::OneSwitch), Routing::First, Operation::AllReduce, sides, 1e9);
    bencher
        .counter(ItemsCount::new(2 * 2 * (7 + 511) * 4096u32))
        .bench_local(|| network::simulate(black_box(&input), 1, &Progress::new()).map(|o| o.events));
}

/// Which events of a run are counted: the requested ones, or all that the kernel handles.
const REQUESTED: &str = "asked for";
const HANDLED: &str = "handled";

/// All-to-all over colliding hashed routes of a fat tree with 128 accelerators, where rates change at every event. The
/// requested events are departures and arrivals of flows; the kernel also handles rate changes and postponed
/// departures.
#[divan::bench(args = [REQUESTED, HANDLED], sample_count = 50)]
fn network_collisions(bencher: Bencher<'_, '_>, counted: &str) {
    let fabric = Fabric::FatTree { domains_per_leaf: 2, spines: 8, oversubscription: 2.0, latency: 1e-6 };
    let input = network_of(domains(16, fabric), Routing::Hashed, Operation::AllToAll, Algorithm::Pairwise, 1e9);
    let simulate = || network::simulate(&input, 1, &Progress::new()).map_or(0, |o| o.events);
    let items = if counted == HANDLED { simulate() } else { 2 * 127 * 128 };
    bencher
        .counter(ItemsCount::new(items))
        .bench_local(|| network::simulate(black_box(&input), 1, &Progress::new()).map(|o| o.events));
}

/// One step of a 405B decoder on 16,384 accelerators: 8 tensor-parallel, 16 stages, 128 replicas.
fn training_405b() -> training::Input {
    let arch = Architecture {
        layers: Count::new(126),
        hidden: Count::new(16384),
        heads: Count::new(128),
        kv_heads: Count::new(8),
        ffn: Count::new(53248),
        vocab: Count::new(128_256),
        ..Architecture::default()
    };
    let system = TrainingInput {
        arch,
        accelerator: Accelerator { nic_bw: 50e9, ..serving_70b().system.accelerator },
        accelerators: 16384.0,
        seq: 8192.0,
        global: 2048.0,
        tp: Count::new(8),
        pp: Count::new(16),
        dp: Count::new(128),
        sequence_parallel: true,
        ..TrainingInput::default()
    };
    training::Input { steps: 1, recorded: None, ..training::Input::of(&system, &Constants::default()) }
}

/// All replicas are identical, so one is simulated for all.
#[divan::bench(sample_count = 20)]
fn training_405b_even(bencher: Bencher<'_, '_>) {
    let input = training_405b();
    bencher.bench_local(|| training::simulate(black_box(&input), 1, &Progress::new()).map(|o| o.events));
}

/// Every stage of every replica, with a different time for each pass. The requested events are passes; the kernel also
/// handles transfers between stages, gradient buckets and their collectives.
#[divan::bench(args = [REQUESTED, HANDLED], sample_count = 50)]
fn training_405b_with_jitter(bencher: Bencher<'_, '_>, counted: &str) {
    let input = training::Input { jitter: 0.03, ..training_405b() };
    let simulate = || training::simulate(&input, 1, &Progress::new()).map_or(0, |o| o.events);
    let items = if counted == HANDLED { simulate() } else { 2 * 16 * 16 * 128 };
    bencher
        .counter(ItemsCount::new(items))
        .bench_local(|| training::simulate(black_box(&input), 1, &Progress::new()).map(|o| o.events));
}

/// Fifty days of training with a failure every three hours, at seventeen checkpoint intervals, ten runs each.
#[divan::bench(sample_count = 5)]
fn best_checkpoint_interval(bencher: Bencher<'_, '_>) {
    let hour = 3600.0;
    let input = training::faults::Input {
        work: 50.0 * 24.0 * hour,
        nodes: 2048,
        node_mtbf: 2048.0 * 3.0 * hour,
        interval: hour,
        checkpoint: 60.0,
        flush: 0.0,
        detection: 120.0,
        restart: 480.0,
        spares: 16,
        repair: Distribution::Exponential { mean: 24.0 * hour },
    };
    bencher.bench_local(|| training::faults::best_interval(black_box(&input), 1, 10, &Progress::new()));
}
