//! Comparison with the analytical engine on uniform hardware and with the arithmetic of the schedules, and expected
//! effects of non-uniform hardware.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod collectives;
mod layouts;
mod pipeline;

use super::costs::Costs;
use super::program::{Lane, Port};
use super::schedule::PassKind;
use super::*;
use crate::fixtures::LATENT_ATTENTION;
use atlas_core::count::Count;
use atlas_perf::accelerator::{Accelerator, Precision};
use atlas_perf::arch::Architecture;
use atlas_perf::constants::Constants;
use atlas_perf::training::{
    ContextExchange, Offload, Recompute, Reshard, Schedule, Sharding, Software, TrainingInput, estimate,
};

fn llama_70b() -> Architecture {
    Architecture {
        layers: Count::new(80),
        hidden: Count::new(8192),
        heads: Count::new(64),
        kv_heads: Count::new(8),
        ffn: Count::new(28672),
        vocab: Count::new(128_256),
        ..Architecture::default()
    }
}

fn pipelined() -> TrainingInput {
    TrainingInput {
        arch: llama_70b(),
        accelerators: 128.0,
        seq: 8192.0,
        global: 128.0,
        tp: Count::new(8),
        pp: Count::new(4),
        dp: Count::new(4),
        sequence_parallel: true,
        recompute: Recompute::Selective,
        ..TrainingInput::default()
    }
}

/// The job on accelerators with scale-out bandwidth `nic_bw`.
fn on_network(nic_bw: f64, system: TrainingInput) -> TrainingInput {
    TrainingInput { accelerator: Accelerator { nic_bw, ..system.accelerator }, ..system }
}

fn run_of(system: &TrainingInput) -> Output {
    simulate(&Input { steps: 3, ..Input::of(system, &Constants::default()) }, 1, &Progress::new()).unwrap()
}

/// The analytical step time.
fn even_step(system: &TrainingInput) -> f64 {
    let e = estimate(system, &Constants::default());
    e.step_seconds
}

#[test]
fn steps_on_uniform_hardware_match_the_closed_form() {
    let base = TrainingInput { recompute: Recompute::Selective, ..TrainingInput::default() };
    let few = Architecture {
        experts: Count::new(8),
        top_k: Count::new(2),
        moe_ffn: Count::new(11008),
        ..Architecture::default()
    };
    let latent = Architecture { attention: LATENT_ATTENTION, ..Architecture::default() };
    let two = TrainingInput { tp: Count::new(2), dp: Count::new(4), sequence_parallel: true, ..base };
    let split = TrainingInput { context_exchange: ContextExchange::AllGather, ..two };
    let cases = [
        ("one node", base),
        ("replicated", TrainingInput { sharding: Sharding::None, ..base }),
        ("fully sharded", TrainingInput { sharding: Sharding::Zero3, accelerators: 64.0, dp: Count::new(64), ..base }),
        ("tensor parallel", TrainingInput { tp: Count::new(8), dp: Count::ONE, global: 16.0, ..base }),
        ("recomputed", TrainingInput { recompute: Recompute::Full, ..base }),
        ("experts", TrainingInput { arch: few, ep: Count::new(8), ..base }),
        ("experts and tensor parallel", TrainingInput { arch: few, ep: Count::new(8), ..split }),
        ("experts in parts", TrainingInput { arch: few, ep: Count::new(2), etp: Count::new(2), ..split }),
        (
            "keys and values of latent attention",
            TrainingInput { arch: latent, cp: Count::new(2), dp: Count::new(2), ..split },
        ),
        ("fully sharded in 32 bit", TrainingInput { precision: Precision::Tf32, ..sharded() }),
        ("1F1B", pipelined()),
        ("1F1B, one replica", TrainingInput { accelerators: 32.0, dp: Count::ONE, global: 32.0, ..pipelined() }),
        ("interleaved", TrainingInput { vpp: Count::new(5), ..pipelined() }),
        (
            "1F1B, nothing hidden",
            TrainingInput {
                software: Software { overlap_pipeline: false, overlap_data: false, ..Software::default() },
                ..pipelined()
            },
        ),
        ("fully sharded stages", sharded_stages(true)),
        ("fully sharded stages, nothing hidden", sharded_stages(false)),
        ("fully sharded stages, interleaved", TrainingInput { vpp: Count::new(5), ..sharded_stages(false) }),
        ("experts and gradients on the same cards", experts_beside_gradients()),
        ("experts and gradients on the same cards, in stages", experts_in_stages()),
        ("all forward", TrainingInput { schedule: Schedule::AllForward, ..pipelined() }),
        ("zero bubble", TrainingInput { schedule: Schedule::ZeroBubble, ..pipelined() }),
    ];
    let mut worst = 0.0f64;
    for (name, system) in cases {
        let found = run_of(&system).step.mean;
        let off = found / even_step(&system) - 1.0;
        println!("{name}: {:+.2} %", 100.0 * off);
        worst = worst.max(off.abs());
        assert!(off.abs() < 0.05, "{name}: {found} against {}", even_step(&system));
    }
    println!("largest deviation {:.2} %", 100.0 * worst);
}

/// Four stages of the same, with as many micro-batches as stages.
fn experts_in_stages() -> TrainingInput {
    let one = experts_beside_gradients();
    let pp = Count::new(4);
    let (accelerators, global) = (4.0 * one.accelerators, 4.0 * one.micro * f64::from(one.dp));
    TrainingInput { pp, accelerators, global, ..one }
}

/// Replicas on eight nodes that reduce gradients in the only micro-batch.
#[test]
fn gradients_are_not_reduced_during_the_forward_pass() {
    let system = TrainingInput {
        accelerators: 64.0,
        tp: Count::new(8),
        dp: Count::new(8),
        global: 16.0,
        micro: 2.0,
        seq: 4096.0,
        sharding: Sharding::None,
        sequence_parallel: true,
        recompute: Recompute::Selective,
        ..TrainingInput::default()
    };
    let exposed = |overlap_data| {
        let software = Software { overlap_data, ..Software::default() };
        estimate(&TrainingInput { software, ..system }, &Constants::default())
    };
    let (hidden, open) = (exposed(true), exposed(false));
    let micro_batch = open.step_seconds - open.time.data_parallel - open.time.optimizer;
    let saved = open.time.data_parallel - hidden.time.data_parallel;
    assert!(saved > 0.0 && saved < 0.7 * Constants::default().overlap_share * micro_batch, "{saved} {micro_batch}");
    let off = run_of(&system).step.mean / hidden.step_seconds - 1.0;
    assert!(off.abs() < 0.07, "{off}");
}

#[test]
fn program_times_sum_to_the_closed_form() {
    // Some mixtures are recomputed, with their exchanges.
    let mut experts =
        TrainingInput { tp: Count::new(2), dp: Count::new(32), sequence_parallel: true, ..expert_parallel() };
    experts.accelerator.mem_bytes = 16e9;
    let recomputed = estimate(&experts, &Constants::default()).recompute;
    assert!(recomputed.mlp_share > 0.1 && recomputed.full_share < 1.0, "{recomputed:?}");
    let interleaved = TrainingInput { vpp: Count::new(5), ..pipelined() };
    for system in [pipelined(), interleaved, TrainingInput::default(), experts] {
        let costs = Costs::of(&system, &Constants::default());
        let e = estimate(&system, &Constants::default());
        let t = e.time;
        let m = system.micro_batches();
        let last = || costs.chunks.iter().skip(system.pp.get() as usize - 1).step_by(system.pp.get() as usize);
        let kernels: f64 = last().map(|chunk| chunk.forward.compute + chunk.backward.compute).sum();
        let shown = t.gemm + t.attention + t.elementwise + t.recompute + t.host;
        assert!((kernels * m / shown - 1.0).abs() < 1e-6);
        // The waiting time is what the closed form exposes: kernels are long enough to hide the rest.
        let all: f64 = last().map(|chunk| chunk.forward.seconds + chunk.backward.seconds).sum();
        let shown = shown + t.tensor_parallel + t.expert_parallel + t.context_parallel;
        assert!((all * m / shown - 1.0).abs() < 1e-3, "{} {shown}", all * m);
        for chunk in &costs.chunks {
            assert!(chunk.forward.seconds > 0.0 && chunk.input.compute > chunk.weights.compute);
            let split = chunk.input.compute + chunk.weights.compute;
            assert!((split / chunk.backward.compute - 1.0).abs() < 1e-9);
        }
    }
}

/// If passes take equally long on every stage and nothing is sent or reduced, the length of each schedule is known.
#[test]
fn schedule_bubbles_match_their_papers() {
    let mut system = pipelined();
    // No output layer and no replicas, so that nothing else is waited for.
    system.arch.vocab = Count::ONE;
    system.dp = Count::ONE;
    system.accelerators = 32.0;
    system.global = 16.0;
    let step = |schedule, vpp| {
        let system = TrainingInput { schedule, vpp, ..system };
        let input = Input { steps: 1, ..Input::of(&system, &Constants::default()) };
        let costs = Costs::of(&system, &Constants::default());
        let o = simulate(&input, 1, &Progress::new()).unwrap();
        let unit: f64 = costs.chunks.iter().map(|p| p.forward.seconds + p.backward.seconds).sum::<f64>() / 4.0;
        // Step time beyond the sixteen micro-batches, in units of a stage's time.
        ((o.step.mean - costs.optimizer) / unit - 16.0, costs, unit)
    };
    let (plain, costs, unit) = step(Schedule::OneForwardOneBackward, Count::ONE);
    // Every micro-batch waits for a transfer when a stage has no other work in the meantime, and the first and last one
    // wait for the transfers of the whole path there and back.
    let sent = (16.0 + 2.0 * 3.0) * costs.transfer / unit;
    assert!(plain >= 3.0 - 1e-6 && plain <= 3.0 + 2.0 * sent, "{plain} {sent}");
    let (all, ..) = step(Schedule::AllForward, Count::ONE);
    assert!(all >= 3.0 - 1e-6 && all <= 3.0 + 2.0 * sent, "{all}");
    let (interleaved, ..) = step(Schedule::OneForwardOneBackward, Count::new(4));
    assert!(interleaved >= 0.75 - 1e-6 && interleaved <= 0.75 + 8.0 * sent, "{interleaved} {sent}");
    let (zero, costs, unit) = step(Schedule::ZeroBubble, Count::ONE);
    // From (stages - 1) forward passes, which remain with twice the memory because all stages wait for one optimizer,
    // to (stages - 1) (forward + input gradient - weight gradient), with the memory of one forward, one backward.
    let one = &costs.chunks[0];
    let least = 3.0 * one.forward.seconds / unit;
    let most = 3.0 * (one.forward.seconds + one.input.seconds - one.weights.seconds) / unit;
    assert!(zero < plain && zero > least - 1e-6 && zero < most + 2.0 * sent, "{least} {zero} {most}");
}

/// A pipeline whose stages gather and reduce in every micro-batch.
fn sharded_stages(overlap_data: bool) -> TrainingInput {
    TrainingInput {
        sharding: Sharding::Zero3,
        reshard: Some(Reshard::EveryMicroBatch),
        software: Software { overlap_data, ..Software::default() },
        global: 32.0,
        ..pipelined()
    }
}

/// Experts on two nodes each, whose exchange and gradients share the network cards.
fn experts_beside_gradients() -> TrainingInput {
    let arch = Architecture { moe_ffn: Count::new(512), ..mixture() };
    TrainingInput { arch, pp: Count::ONE, accelerators: 64.0, global: 64.0, ..expert_parallel() }
}

fn mixture() -> Architecture {
    Architecture { experts: Count::new(64), top_k: Count::new(8), moe_ffn: Count::new(2048), ..Architecture::default() }
}

/// Weights sharded over 64 accelerators on eight nodes.
fn sharded() -> TrainingInput {
    TrainingInput {
        sharding: Sharding::Zero3,
        accelerators: 64.0,
        dp: Count::new(64),
        recompute: Recompute::Selective,
        ..TrainingInput::default()
    }
}

/// Experts over two nodes each, four stages.
fn expert_parallel() -> TrainingInput {
    TrainingInput {
        arch: mixture(),
        accelerators: 256.0,
        pp: Count::new(4),
        dp: Count::new(64),
        ep: Count::new(16),
        global: 512.0,
        recompute: Recompute::Selective,
        ..TrainingInput::default()
    }
}

#[test]
fn simulating_one_of_identical_replicas_gives_the_same_result() {
    let cases = [
        TrainingInput { sharding: Sharding::Zero1, ..pipelined() },
        TrainingInput { sharding: Sharding::None, vpp: Count::new(2), ..pipelined() },
        // 512 accelerators.
        TrainingInput { accelerators: 512.0, dp: Count::new(16), global: 256.0, ..pipelined() },
        // Passes run task by task and share ports with concurrent traffic.
        sharded(),
        expert_parallel(),
        on_network(3e9, expert_parallel()),
    ];
    for system in cases {
        let mut input = Input { steps: 2, ..Input::of(&system, &Constants::default()) };
        let one = simulate(&input, 1, &Progress::new()).unwrap();
        input.every_replica = true;
        let all = simulate(&input, 1, &Progress::new()).unwrap();
        assert_eq!((one.replicas, all.replicas), (1, system.dp.get()));
        assert_eq!(one.steps, all.steps);
        assert!((one.busy / all.busy - 1.0).abs() < 1e-12);
        // Passes and transfers happen on every replica; a bucket of gradients is complete only once, when it is
        // complete on all.
        assert!(4 * all.events > u64::from(system.dp.get()) * one.events);
    }
}

#[test]
fn stages_on_slower_accelerators_delay_the_others() {
    let mut input = Input { steps: 3, ..Input::of(&pipelined(), &Constants::default()) };
    let mut slower = input.system.accelerator;
    slower.flops = slower.flops.map(|rate| 0.5 * rate);
    let step = |input: &Input| simulate(input, 1, &Progress::new()).unwrap();
    let even = step(&input).step.mean;
    let everywhere: Vec<Place> = (0..4).flat_map(|replica| (0..4).map(move |stage| Place { replica, stage })).collect();
    let kind = |places: &[Place]| vec![OtherKind { accelerator: slower, places: places.to_vec() }];
    // All stages: the same as a job on those accelerators only.
    input.kinds = kind(&everywhere);
    let all = step(&input);
    let own = run_of(&input.kinds[0].system(&input.system)).step.mean;
    assert!((all.step.mean / own - 1.0).abs() < 1e-9, "{} {own}", all.step.mean);
    // One stage of one replica limits its pipeline and therefore the job: nearly as slow as all.
    input.kinds = kind(&everywhere[..1]);
    let one = step(&input);
    assert_eq!(one.replicas, 2);
    assert!(one.step.mean > 1.4 * even && one.step.mean < all.step.mean, "{even} {} {own}", one.step.mean);
    // Faster ranks do not help, since all wait for the slowest.
    let mut faster = input.system.accelerator;
    faster.flops = faster.flops.map(|rate| 2.0 * rate);
    input.kinds = vec![OtherKind { accelerator: faster, places: everywhere[..4].to_vec() }];
    let some = step(&input).step.mean;
    assert!((some / even - 1.0).abs() < 0.02, "{some} {even}");
}

#[test]
fn one_slow_stage_slows_all_replicas_and_jitter_grows_with_ranks() {
    let even = run_of(&pipelined()).step.mean;
    let mut input = Input { steps: 3, ..Input::of(&pipelined(), &Constants::default()) };
    input.slow = vec![Slow { replica: 2, stage: 1, factor: 1.3 }];
    let slow = simulate(&input, 1, &Progress::new()).unwrap().step.mean;
    // Its passes limit its pipeline, and its pipeline limits the job.
    assert!(slow > 1.15 * even && slow < 1.35 * even, "{slow} {even}");
    input.slow.clear();
    input.jitter = 0.05;
    let few = simulate(&input, 1, &Progress::new()).unwrap().step.mean;
    input.system.dp = Count::new(32);
    input.system.accelerators = 1024.0;
    input.system.global = 1024.0;
    let many = simulate(&input, 1, &Progress::new()).unwrap().step.mean;
    assert!(few > 1.02 * even && many > few, "{even} {few} {many}");
}

#[test]
fn overlap_and_more_buckets_shorten_the_step() {
    let slow_card = TrainingInput { sharding: Sharding::None, ..on_network(3e9, pipelined()) };
    let open = TrainingInput { software: Software { overlap_data: false, ..Software::default() }, ..slow_card };
    let step = |system: &TrainingInput, buckets| {
        let input = Input { steps: 3, buckets, ..Input::of(system, &Constants::default()) };
        simulate(&input, 1, &Progress::new()).unwrap().step.mean
    };
    let (none, coarse, fine) = (step(&open, 8), step(&slow_card, 2), step(&slow_card, 16));
    assert!(none > coarse && coarse > fine, "{none} {coarse} {fine}");
}

#[test]
fn compression_shortens_the_step_and_slow_loading_bounds_it() {
    let mut input = Input::of(&on_network(3e9, pipelined()), &Constants::default());
    input.steps = 4;
    let step = |input: &Input| simulate(input, 1, &Progress::new()).unwrap().step;
    let plain = step(&input).mean;
    input.compression = Some(Compression { ratio: 8.0, seconds: 0.01 });
    assert!(step(&input).mean < plain);
    input.compression = None;
    input.loading = 0.5 * plain;
    assert_eq!(step(&input).mean, plain);
    input.loading = 1.5 * plain;
    let slow = step(&input);
    // The data of the first step are there; every other step waits.
    assert!((slow.most / input.loading - 1.0).abs() < 1e-6 && (slow.least / plain - 1.0).abs() < 1e-6, "{slow:?}");
}

#[test]
fn timeline_has_all_tasks_and_the_critical_path_covers_the_step() {
    for schedule in [Schedule::OneForwardOneBackward, Schedule::ZeroBubble, Schedule::AllForward] {
        let system = TrainingInput { schedule, ..pipelined() };
        let input = Input { buckets: 8, ..Input::of(&system, &Constants::default()) };
        let o = simulate(&input, 1, &Progress::new()).unwrap();
        let passes = o.tasks.iter().filter(|t| matches!(t.kind, TaskKind::Pass(_))).count();
        let kinds = if schedule == Schedule::ZeroBubble { 3 } else { 2 };
        assert_eq!(passes, 4 * 32 * kinds);
        assert_eq!(o.tasks.iter().filter(|t| t.kind == TaskKind::Reduce).count(), 4 * 8);
        assert_eq!(o.tasks.iter().filter(|t| t.kind == TaskKind::Gather).count(), 2 * 4);
        assert_eq!(o.tasks.iter().filter(|t| t.kind == TaskKind::Transfer).count(), 2 * 3 * 32);
        // Every stream of a stage runs one task at a time.
        for stage in 0..4 {
            for stream in [StreamKind::Compute, StreamKind::Data, StreamKind::Pipeline] {
                let mut own: Vec<&Task> = o.tasks.iter().filter(|t| t.stage == stage && t.stream == stream).collect();
                own.sort_by(|a, b| a.begin.total_cmp(&b.begin));
                assert!(own.windows(2).all(|pair| pair[1].begin >= pair[0].end - 1e-9), "{stage} {stream:?}");
            }
        }
        // Backward passes follow forward passes on every stage.
        let end = |kind, stage, micro| {
            o.tasks.iter().find(|t| t.kind == TaskKind::Pass(kind) && t.stage == stage && t.micro == micro).unwrap().end
        };
        for micro in 0..32 {
            assert!(
                (1..4).all(|stage| end(PassKind::Forward, stage, micro) > end(PassKind::Forward, stage - 1, micro))
            );
            assert!(
                (1..4).all(|stage| end(PassKind::Backward, stage, micro) < end(PassKind::Backward, stage - 1, micro))
            );
        }
        let path: Vec<&Task> = o.critical_path.iter().map(|&t| &o.tasks[t as usize]).collect();
        assert_eq!(path.last().unwrap().kind, TaskKind::Optimizer);
        assert!((path.last().unwrap().end - o.steps[0]).abs() < 1e-9);
        assert!(path.windows(2).all(|pair| pair[0].end <= pair[1].end + 1e-9 && pair[1].begin > pair[0].begin - 1e-9));
        // The path has no gaps: it covers the step from its beginning.
        let mut reached = 0.0;
        for task in &path {
            assert!(task.begin <= reached + 1e-9, "a hole before {task:?}");
            reached = task.end;
        }
        assert!((reached - o.steps[0]).abs() < 1e-9);
    }
}

#[test]
fn every_shape_of_pipeline_finishes() {
    for schedule in [Schedule::OneForwardOneBackward, Schedule::ZeroBubble, Schedule::AllForward] {
        for pp in [1, 2, 3, 8].map(Count::new) {
            for vpp in [1, 2, 3].map(Count::new) {
                for micros in [1.0, 2.0, 5.0, 8.0, 16.0] {
                    let system =
                        TrainingInput { schedule, pp, vpp, dp: Count::new(2), global: 2.0 * micros, ..pipelined() };
                    let input = Input { steps: 2, buckets: 3, ..Input::of(&system, &Constants::default()) };
                    let o = simulate(&input, 1, &Progress::new()).unwrap();
                    assert_eq!(o.steps.len(), 2, "{schedule:?} pp {pp} vpp {vpp} m {micros}: stuck");
                    assert!(o.busy > 0.0 && o.busy <= 1.0 + 1e-9);
                }
            }
        }
    }
}

#[test]
fn all_invalid_numbers_are_reported_at_once() {
    let mut input = Input::of(&pipelined(), &Constants::default());
    input.steps = 0;
    input.buckets = 0;
    input.jitter = f64::NAN;
    input.slow = vec![Slow { replica: 9, stage: 9, factor: 0.0 }];
    assert_eq!(input.problems().len(), 6);
    assert!(simulate(&input, 1, &Progress::new()).is_err());
}

#[test]
fn stages_in_one_domain_transfer_inside_it() {
    let hops = |tp: u32, pp: u32, dp: u32, domain: f64| {
        let [tp, pp, dp] = [tp, pp, dp].map(Count::new);
        let system = TrainingInput { tp, pp, dp, domain, accelerators: tp * pp * dp, ..pipelined() };
        let costs = Costs::of(&system, &Constants::default());
        assert!(costs.intra_domain_transfer < costs.transfer || costs.transfer_port == Port::Link);
        (0..pp.get()).map(|stage| costs.hop(stage).1 == Port::Link).collect::<Vec<bool>>()
    };
    // Two stages per node: every other transfer leaves the node, and so does the one back to the first stage.
    assert_eq!(hops(4, 4, 1, 8.0), [true, false, true, false]);
    assert_eq!(hops(8, 4, 1, 8.0), [false; 4]);
    assert_eq!(hops(2, 4, 1, 8.0), [true; 4]);
    // With replicas in between, some of which are in another domain than their next stage, the slowest transfer counts.
    assert_eq!(hops(4, 4, 8, 72.0), [true, false, false, false]);
}

#[test]
fn zero_bubble_does_not_wait_for_optimizers_of_other_stages() {
    let mut system = pipelined();
    // Passes of equal length on every stage, one replica, and as much memory as the schedule can use.
    system.arch.vocab = Count::ONE;
    system.accelerator.mem_bytes *= 4.0;
    let system = TrainingInput { dp: Count::ONE, accelerators: 32.0, global: 32.0, ..system };
    let run = |schedule| {
        let system = TrainingInput { schedule, ..system };
        let input = Input { steps: 4, ..Input::of(&system, &Constants::default()) };
        let costs = Costs::of(&system, &Constants::default());
        (simulate(&input, 1, &Progress::new()).unwrap(), costs)
    };
    let ((plain, _), (within, _), (zero, costs)) =
        (run(Schedule::OneForwardOneBackward), run(Schedule::ZeroBubble1p), run(Schedule::ZeroBubble));
    // The first step fills an empty pipeline; later ones run at the pace of the stages.
    assert!(zero.steps[1] < zero.steps[0] && (zero.steps[3] / zero.steps[2] - 1.0).abs() < 1e-6, "{:?}", zero.steps);
    assert!(zero.steps[3] < within.steps[3] && within.steps[3] < plain.steps[3]);
    let chunk = &costs.chunks[0];
    let work = 32.0 * (chunk.forward.seconds + chunk.input.seconds + chunk.weights.seconds) + costs.optimizer;
    let bubble = zero.steps[3] / work - 1.0;
    // Only the bubble of unequal passes remains: (stages - 1) (forward + input gradient - 2 weight gradients).
    let left = 3.0 * (chunk.forward.seconds + chunk.input.seconds - 2.0 * chunk.weights.seconds) / work;
    assert!(bubble > -1e-9 && bubble < left.max(0.0) + 0.02, "{bubble} {left}");
    // The time of a stage adds up to the steps, even though stages are not synchronized.
    let all: f64 = zero.steps.iter().sum();
    for stage in &zero.stages {
        assert!((stage.total() * 4.0 / all - 1.0).abs() < 1e-9, "{stage:?} {all}");
    }
}

#[test]
fn uneven_layers_put_fewer_layers_in_the_end_stages() {
    let mut system =
        TrainingInput { pp: Count::new(32), dp: Count::ONE, accelerators: 256.0, global: 64.0, ..pipelined() };
    system.arch = Architecture { layers: Count::new(62), vocab: Count::new(1000), ..llama_70b() };
    let costs = Costs::of(&system, &Constants::default());
    let layers = |stage: usize| costs.chunks[stage].forward.compute / costs.chunks[1].forward.compute;
    assert!((layers(0) - 0.5).abs() < 1e-9 && (layers(30) - 1.0).abs() < 1e-9 && layers(31) < 0.6);
    let found = run_of(&system).step.mean;
    let off = found / even_step(&system) - 1.0;
    assert!(off.abs() < 0.05, "{off}");
}
