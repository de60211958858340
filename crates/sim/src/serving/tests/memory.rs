//! A replica whose memory runs out, step by step: preemption, reuse of cached blocks, and admission.

use super::super::engine::Engine;
use super::super::replica::{Outcome, Phase, Replica};
use super::super::request::Request;
use super::super::workload::{Demand, Workload};
use super::*;
use crate::kernel::{Histogram, Time};

/// Tokens per block.
const BLOCK: u32 = 16;

/// One replica and its requests, which are all present at the beginning.
struct Scene<'a> {
    engine: Engine,
    replica: Replica,
    workload: Workload<'a>,
    requests: Vec<Request>,
    now: Time,
    gaps: Histogram,
}

impl<'a> Scene<'a> {
    /// Creates a scene with `demands`: prompt and output tokens of each request.
    fn new(input: &'a Input, engine: Engine, demands: &[(u32, u32)]) -> Self {
        let mut replica = Replica::new(&engine, Phase::Ready);
        replica.waiting.extend(0..demands.len() as u32);
        let demand = |&(isl, osl)| Demand { isl, osl, prefix: (0, 0), whole: true };
        let requests = demands.iter().map(|lengths| Request::new(demand(lengths), Time::ZERO)).collect();
        let gaps = Histogram::default();
        Scene { engine, replica, workload: Workload::new(input, 1), requests, now: Time::ZERO, gaps }
    }

    /// Runs one step; `false` if there is nothing to do.
    fn step(&mut self) -> bool {
        let Scene { engine, replica, workload, requests, now, gaps } = self;
        let Some(length) = replica.begin_step(requests, workload, engine, *now) else { return false };
        *now = now.plus(length);
        replica.end_step(requests, workload, engine, *now, gaps, &mut Outcome::default());
        true
    }
}

fn input(overlapped: bool) -> Input {
    let many = ServingInput { host: host(overlapped), max_num_batched_tokens: 1e6, ..closed(8.0) };
    // Weights fill the device except for some thousand tokens.
    let case = ServingInput { memory_utilization: 0.235, ..many };
    Input { block_size: BLOCK, ..Input::of(&case, &Constants::default(), 8) }
}

fn engine(input: &Input) -> Engine {
    Engine::new(input, &input.system.layout, false, BLOCK, 1)
}

/// Two prompts of ten blocks on a replica of 21 blocks: the second request is preempted with its first token, and
/// resumes when the first one leaves after `output` tokens. Returns the tokens it then computes, and the tokens it
/// needs.
fn computed_again(overlapped: bool, output: u32) -> (u32, u32) {
    let input = input(overlapped);
    let mut engine = engine(&input);
    (engine.total_blocks, engine.watermark) = (21, 0);
    let mut scene = Scene::new(&input, engine, &[(10 * BLOCK, output), (10 * BLOCK, 50)]);
    while scene.requests[1].preemptions == 0 {
        assert!(scene.step());
    }
    assert_eq!((scene.requests[1].emitted, scene.requests[1].computed), (1, 0));
    while scene.replica.waiting.front() == Some(&1) {
        assert!(scene.step());
    }
    assert_eq!(scene.requests[0].emitted, output, "it waits until the first one has left");
    let back = &scene.requests[1];
    let found = (back.scheduled, back.target);
    assert_eq!(back.left, (0, 0), "what is its own again it has not left behind");
    while scene.step() {}
    assert_eq!(scene.requests[1].emitted, 50);
    assert_eq!(scene.replica.kv.used(), 0);
    found
}

/// Blocks are found again only if the engine caches prefixes by default, and until they are overwritten: the first
/// request has space for sixteen output tokens by then, and takes one of the blocks of the second request for every
/// sixteen more. Its last output token needs no space.
#[test]
fn preempted_sequences_find_their_earlier_blocks_again() {
    let all = 10 * BLOCK + 1;
    for (output, overwritten) in [(2, 0), (17, 0), (18, 1), (17 + 4 * BLOCK, 4), (18 + 8 * BLOCK, 9), (177, 10)] {
        assert_eq!(computed_again(true, output), (all - (10 - overwritten) * BLOCK, all), "{output} tokens");
        assert_eq!(computed_again(false, output), (all, all), "{output} tokens");
    }
}

/// vLLM before V1 keeps exactly one percent of the blocks free when it admits a request alongside others.
#[test]
fn one_percent_of_memory_stays_free_for_growing_sequences() {
    let let_in = |overlapped: bool, reserved: bool, short_by: u32| {
        let mut input = input(overlapped);
        input.system.reserve_output = reserved;
        let engine = engine(&input);
        let free = engine.total_blocks as u32 / 100;
        assert!(free >= 2, "{free} blocks are too few to tell");
        // The first request leaves ten blocks plus one percent free; outputs fit into the last block.
        let first = engine.total_blocks as u32 - 10 - free + short_by;
        let demands = [first, 10].map(|blocks| (blocks * BLOCK - 4, 4));
        let mut scene = Scene::new(&input, engine, &demands);
        assert!(scene.step());
        scene.replica.running.len()
    };
    assert_eq!(let_in(false, false, 0), 2);
    assert_eq!(let_in(false, false, 1), 1);
    // V1 keeps no blocks free, and a request with reserved output does not grow.
    assert_eq!(let_in(true, false, 1), 2);
    assert_eq!(let_in(false, true, 1), 2);
    // A single sequence has no others that could grow.
    let input = input(false);
    let engine = engine(&input);
    let mut scene = Scene::new(&input, engine, &[(engine.total_blocks as u32 * BLOCK - 4, 4)]);
    assert!(scene.step());
    assert_eq!(scene.requests[0].emitted, 1);
}

/// Recurrent states take memory, also in models without keys.
#[test]
fn recurrent_states_limit_the_sequences_as_in_the_closed_form() {
    for attention_share in [0.0, 0.1] {
        let linear = Linear {
            kind: LinearKind::Mamba2,
            share: 1.0 - attention_share,
            heads: Count::new(128),
            head_dim: Count::new(64),
            state: Count::new(128),
            groups: Count::new(8),
            taps: Count::new(4),
        };
        let mut case = ServingInput { isl: 100.0, osl: 50.0, max_num_seqs: Some(Count::new(4096)), ..closed(2000.0) };
        (case.arch.attention_share, case.arch.linear) = (attention_share, Some(linear));
        let theory = estimate(&case, &Constants::default());
        assert!(theory.batch < 1500.0, "{}", theory.batch);
        let mut input = Input::of(&case, &Constants::default(), 6_000);
        input.warm_up = 2_000;
        let running = simulated(&input).steady.running;
        assert!((0.85..1.05).contains(&(running / theory.batch)), "{attention_share}: {running} {}", theory.batch);
    }
}
