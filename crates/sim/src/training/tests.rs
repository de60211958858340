//! Against the analytical engine where hardware is even, against the schedules' own arithmetic, and against what uneven
//! hardware must do.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod pipeline;

use super::costs::Costs;
use super::program::{Lane, Port};
use super::schedule::Kind;
use super::*;
use atlas_perf::arch::Architecture;
use atlas_perf::constants::Constants;
use atlas_perf::training::{Recompute, Reshard, Schedule, Sharding, Software, TrainingInput, estimate};

fn llama_70b() -> Architecture {
    Architecture {
        layers: 80.0,
        hidden: 8192.0,
        heads: 64.0,
        kv_heads: 8.0,
        ffn: 28672.0,
        vocab: 128_256.0,
        ..Architecture::default()
    }
}

fn pipelined() -> TrainingInput {
    TrainingInput {
        arch: llama_70b(),
        accelerators: 128.0,
        seq: 8192.0,
        global: 128.0,
        tp: 8.0,
        pp: 4.0,
        dp: 4.0,
        sequence_parallel: true,
        recompute: Recompute::Selective,
        ..TrainingInput::default()
    }
}

fn run_of(system: &TrainingInput) -> Output {
    simulate(&Input { steps: 3, ..Input::of(system, &Constants::default()) }, 1, &Progress::new()).unwrap()
}

/// The analytical step without its allowance for stragglers, which events have only where they happen.
fn even_step(system: &TrainingInput) -> f64 {
    let e = estimate(system, &Constants::default());
    e.step_seconds
}

#[test]
fn steps_of_even_hardware_are_the_analytical_ones() {
    let base = TrainingInput { recompute: Recompute::Selective, ..TrainingInput::default() };
    let few = Architecture { experts: 8.0, top_k: 2.0, moe_ffn: 11008.0, ..Architecture::default() };
    let cases = [
        ("one node", base),
        ("replicated", TrainingInput { sharding: Sharding::None, ..base }),
        ("fully sharded", TrainingInput { sharding: Sharding::Zero3, accelerators: 64.0, dp: 64.0, ..base }),
        ("tensor parallel", TrainingInput { tp: 8.0, dp: 1.0, global: 16.0, ..base }),
        ("recomputed", TrainingInput { recompute: Recompute::Full, ..base }),
        ("experts", TrainingInput { arch: few, ep: 8.0, ..base }),
        ("1F1B", pipelined()),
        ("1F1B, one replica", TrainingInput { accelerators: 32.0, dp: 1.0, global: 32.0, ..pipelined() }),
        ("interleaved", TrainingInput { vpp: 5.0, ..pipelined() }),
        (
            "1F1B, nothing hidden",
            TrainingInput {
                software: Software { overlap_pipeline: false, overlap_data: false, ..Software::default() },
                ..pipelined()
            },
        ),
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

#[test]
fn the_programs_lose_nothing() {
    for system in [pipelined(), TrainingInput { vpp: 5.0, ..pipelined() }, TrainingInput::default()] {
        let costs = Costs::of(&system, &Constants::default());
        let e = estimate(&system, &Constants::default());
        let t = e.time;
        let m = system.micro_batches();
        let last = || costs.chunks.iter().skip(system.pp as usize - 1).step_by(system.pp as usize);
        let kernels: f64 = last().map(|chunk| chunk.forward.compute + chunk.backward.compute).sum();
        let shown = t.gemm + t.attention + t.elementwise + t.recompute + t.host;
        assert!((kernels * m / shown - 1.0).abs() < 1e-6);
        // What is waited for is what the closed form exposes: kernels are long enough to hide the rest.
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

/// With passes of equal length on every stage, nothing sent and nothing reduced, each schedule's length is known.
#[test]
fn schedules_are_as_long_as_their_papers_say() {
    let mut system = pipelined();
    // No output layer, no replicas, nothing to wait for.
    system.arch.vocab = 1.0;
    system.dp = 1.0;
    system.accelerators = 32.0;
    system.global = 16.0;
    let step = |schedule, vpp| {
        let system = TrainingInput { schedule, vpp, ..system };
        let input = Input { steps: 1, ..Input::of(&system, &Constants::default()) };
        let costs = Costs::of(&system, &Constants::default());
        let o = simulate(&input, 1, &Progress::new()).unwrap();
        let unit: f64 = costs.chunks.iter().map(|p| p.forward.seconds + p.backward.seconds).sum::<f64>() / 4.0;
        // Stages of time beyond the sixteen micro-batches.
        ((o.step.mean - costs.optimizer) / unit - 16.0, costs, unit)
    };
    let (plain, costs, unit) = step(Schedule::OneForwardOneBackward, 1.0);
    // Every micro-batch meets a transfer where a stage has no other to work on meanwhile, and the first and the last
    // one meet those of the whole way there and back.
    let sent = (16.0 + 2.0 * 3.0) * costs.transfer / unit;
    assert!(plain >= 3.0 - 1e-6 && plain <= 3.0 + 2.0 * sent, "{plain} {sent}");
    let (all, ..) = step(Schedule::AllForward, 1.0);
    assert!(all >= 3.0 - 1e-6 && all <= 3.0 + 2.0 * sent, "{all}");
    let (interleaved, ..) = step(Schedule::OneForwardOneBackward, 4.0);
    assert!(interleaved >= 0.75 - 1e-6 && interleaved <= 0.75 + 8.0 * sent, "{interleaved} {sent}");
    let (zero, costs, unit) = step(Schedule::ZeroBubble, 1.0);
    // From (stages - 1) forward, which all stages' waiting for one optimizer leaves of it with twice the memory, to (stages
    // - 1) (forward + input gradient - weight gradient), that of one forward, one backward's memory.
    let one = &costs.chunks[0];
    let least = 3.0 * one.forward.seconds / unit;
    let most = 3.0 * (one.forward.seconds + one.input.seconds - one.weights.seconds) / unit;
    assert!(zero < plain && zero > least - 1e-6 && zero < most + 2.0 * sent, "{least} {zero} {most}");
}

fn mixture() -> Architecture {
    Architecture { experts: 64.0, top_k: 8.0, moe_ffn: 2048.0, ..Architecture::default() }
}

/// Weights sharded over 64 accelerators on eight nodes.
fn sharded() -> TrainingInput {
    TrainingInput {
        sharding: Sharding::Zero3,
        accelerators: 64.0,
        dp: 64.0,
        recompute: Recompute::Selective,
        ..TrainingInput::default()
    }
}

/// Experts over two nodes each, four stages.
fn expert_parallel() -> TrainingInput {
    TrainingInput {
        arch: mixture(),
        accelerators: 256.0,
        pp: 4.0,
        dp: 64.0,
        ep: 16.0,
        global: 512.0,
        recompute: Recompute::Selective,
        ..TrainingInput::default()
    }
}

#[test]
fn one_replica_stands_for_all_where_all_are_alike() {
    let cases = [
        TrainingInput { sharding: Sharding::Zero1, ..pipelined() },
        TrainingInput { sharding: Sharding::None, vpp: 2.0, ..pipelined() },
        // 512 accelerators.
        TrainingInput { accelerators: 512.0, dp: 16.0, global: 256.0, ..pipelined() },
        // Passes task by task, sharing their ports with what is sent beside them.
        sharded(),
        expert_parallel(),
        TrainingInput { nic_bw: 3e9, ..expert_parallel() },
    ];
    for system in cases {
        let mut input = Input { steps: 2, ..Input::of(&system, &Constants::default()) };
        let one = simulate(&input, 1, &Progress::new()).unwrap();
        input.every_replica = true;
        let all = simulate(&input, 1, &Progress::new()).unwrap();
        assert_eq!((one.replicas, all.replicas), (1, system.dp as u32));
        assert_eq!(one.steps, all.steps);
        assert!((one.busy / all.busy - 1.0).abs() < 1e-12);
        // Passes and transfers happen everywhere; a bucket of gradients is complete once, where it is so everywhere.
        assert!(4 * all.events > system.dp as u64 * one.events);
    }
}

#[test]
fn what_is_sent_at_once_through_one_port_shares_it() {
    let system = TrainingInput { nic_bw: 1e9, ..pipelined() };
    let o = run_of(&system);
    let costs = Costs::of(&system, &Constants::default());
    let data: Vec<&Task> = o.tasks.iter().filter(|t| t.stream == StreamKind::Data).collect();
    let beside = |task: &Task, whole: bool| {
        let both = [task.stage, (task.stage + 1) % 4, (task.stage + 3) % 4];
        let meets = |d: &&&Task| both.contains(&d.stage) && d.begin < task.end && d.end > task.begin;
        let holds = |d: &&&Task| d.stage == task.stage && d.begin <= task.begin && d.end >= task.end;
        if whole { data.iter().any(|d| holds(&d)) } else { data.iter().any(|d| meets(&d)) }
    };
    let (mut alone, mut shared) = (0, 0);
    for transfer in o.tasks.iter().filter(|t| t.kind == TaskKind::Transfer) {
        let long = (transfer.end - transfer.begin) / costs.transfer;
        assert!(long > 1.0 - 1e-6);
        if beside(transfer, true) {
            assert!(long > 2.0 - 1e-6, "{long}");
            shared += 1;
        } else if !beside(transfer, false) {
            // Alone but for another stage's transfer into the same port.
            assert!(long < 2.0 + 1e-6, "{long}");
            alone += 1;
        }
    }
    assert!(alone > 50 && shared >= 3, "{alone} {shared} of {}, {} reduced", o.tasks.len(), data.len());
    // What is shared costs: the gradients of experts whose own exchanges use the same card.
    let own = Costs::of(&expert_parallel(), &Constants::default());
    assert_eq!(own.meets(), super::costs::Meets::Transfers);
}

#[test]
fn layer_wise_collectives_hide_as_far_as_they_can() {
    let step = |system: &TrainingInput| (run_of(system).step.mean, even_step(system));
    // From thin traffic to traffic that is all there is: the closed form's two limits, and what lies between them.
    for nic_bw in [400e9, 100e9, 25e9, 12e9, 6e9, 2e9] {
        let (found, closed) = step(&TrainingInput { nic_bw, ..sharded() });
        let off = found / closed - 1.0;
        println!("{:>4} GB/s a card: {:+.2} %", nic_bw / 1e9, 100.0 * off);
        assert!(off.abs() < 0.08, "{nic_bw}: {found} against {closed}");
    }
    let open = Software { overlap_data: false, ..Software::default() };
    let (found, closed) = step(&TrainingInput { software: open, ..sharded() });
    assert!((found / closed - 1.0).abs() < 0.02, "{found} {closed}");
    // Weights are gathered a layer ahead: while the one before computes.
    let o = run_of(&TrainingInput { nic_bw: 100e9, ..sharded() });
    use super::program::Action;
    let gathers = o.tasks.iter().filter(|t| t.kind == TaskKind::Inside(Action::Gather));
    let beside = |task: &&Task| o.operators.iter().any(|op| op.begin < task.end && op.end > task.begin);
    let (all, hidden) = (gathers.clone().count(), gathers.filter(beside).count());
    assert!(all >= 2 * 31 && hidden + 4 > all, "{all} {hidden}");
}

#[test]
fn experts_exchanges_take_the_closed_form_s_share() {
    for nic_bw in [400e9, 50e9] {
        let system = TrainingInput { nic_bw, ..expert_parallel() };
        let off = run_of(&system).step.mean / even_step(&system) - 1.0;
        println!("experts, {} GB/s a card: {:+.2} %", nic_bw / 1e9, 100.0 * off);
        assert!(off.abs() < 0.05, "{nic_bw}: {off}");
    }
}

#[test]
fn stages_on_slower_accelerators_hold_the_others_up() {
    let mut input = Input { steps: 3, ..Input::of(&pipelined(), &Constants::default()) };
    let mut slower = input.system.accelerator;
    slower.flops = slower.flops.map(|rate| 0.5 * rate);
    let step = |input: &Input| simulate(input, 1, &Progress::new()).unwrap();
    let even = step(&input).step.mean;
    let everywhere: Vec<Place> = (0..4).flat_map(|replica| (0..4).map(move |stage| Place { replica, stage })).collect();
    let kind = |places: &[Place]| vec![OtherKind { accelerator: slower, nic_bw: 0.0, places: places.to_vec() }];
    // All of them: the job of those accelerators.
    input.kinds = kind(&everywhere);
    let all = step(&input);
    let own = run_of(&input.kinds[0].system(&input.system)).step.mean;
    assert!((all.step.mean / own - 1.0).abs() < 1e-9, "{} {own}", all.step.mean);
    // One stage of one replica: its pipeline's pace, and the job's; nearly as slow as all.
    input.kinds = kind(&everywhere[..1]);
    let one = step(&input);
    assert_eq!(one.replicas, 2);
    assert!(one.step.mean > 1.4 * even && one.step.mean < all.step.mean, "{even} {} {own}", one.step.mean);
    // Faster ones help nobody who waits for the others.
    let mut faster = input.system.accelerator;
    faster.flops = faster.flops.map(|rate| 2.0 * rate);
    input.kinds = vec![OtherKind { accelerator: faster, nic_bw: 0.0, places: everywhere[..4].to_vec() }];
    let some = step(&input).step.mean;
    assert!((some / even - 1.0).abs() < 0.02, "{some} {even}");
}

#[test]
fn one_slow_stage_slows_all_replicas_and_jitter_costs_more_the_more_wait() {
    let even = run_of(&pipelined()).step.mean;
    let mut input = Input { steps: 3, ..Input::of(&pipelined(), &Constants::default()) };
    input.slow = vec![Slow { replica: 2, stage: 1, factor: 1.3 }];
    let slow = simulate(&input, 1, &Progress::new()).unwrap().step.mean;
    // Its passes are the pace of its pipeline, and its pipeline that of the job.
    assert!(slow > 1.15 * even && slow < 1.35 * even, "{slow} {even}");
    input.slow.clear();
    input.jitter = 0.05;
    let few = simulate(&input, 1, &Progress::new()).unwrap().step.mean;
    input.system.dp = 32.0;
    input.system.accelerators = 1024.0;
    input.system.global = 1024.0;
    let many = simulate(&input, 1, &Progress::new()).unwrap().step.mean;
    assert!(few > 1.02 * even && many > few, "{even} {few} {many}");
}

#[test]
fn overlap_hides_the_reduction_and_buckets_help() {
    let slow_card = TrainingInput { nic_bw: 3e9, sharding: Sharding::None, ..pipelined() };
    let open = TrainingInput { software: Software { overlap_data: false, ..Software::default() }, ..slow_card };
    let step = |system: &TrainingInput, buckets| {
        let input = Input { steps: 3, buckets, ..Input::of(system, &Constants::default()) };
        simulate(&input, 1, &Progress::new()).unwrap().step.mean
    };
    let (none, coarse, fine) = (step(&open, 8), step(&slow_card, 2), step(&slow_card, 16));
    assert!(none > coarse && coarse > fine, "{none} {coarse} {fine}");
}

#[test]
fn compression_shortens_a_slow_reduction_and_a_slow_loader_sets_the_pace() {
    let mut input = Input::of(&TrainingInput { nic_bw: 3e9, ..pipelined() }, &Constants::default());
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
    // The first step's data are there; every other step waits.
    assert!((slow.most / input.loading - 1.0).abs() < 1e-6 && (slow.least / plain - 1.0).abs() < 1e-6, "{slow:?}");
}

#[test]
fn tasks_fill_the_timeline_and_the_critical_path_leads_to_its_end() {
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
        // One thing at a time on every stage's streams.
        for stage in 0..4 {
            for stream in [StreamKind::Compute, StreamKind::Data, StreamKind::Pipeline] {
                let mut own: Vec<&Task> = o.tasks.iter().filter(|t| t.stage == stage && t.stream == stream).collect();
                own.sort_by(|a, b| a.begin.total_cmp(&b.begin));
                assert!(own.windows(2).all(|pair| pair[1].begin >= pair[0].end - 1e-9), "{stage} {stream:?}");
            }
        }
        // Backward follows forward everywhere.
        let end = |kind, stage, micro| {
            o.tasks.iter().find(|t| t.kind == TaskKind::Pass(kind) && t.stage == stage && t.micro == micro).unwrap().end
        };
        for micro in 0..32 {
            assert!((1..4).all(|stage| end(Kind::Forward, stage, micro) > end(Kind::Forward, stage - 1, micro)));
            assert!((1..4).all(|stage| end(Kind::Backward, stage, micro) < end(Kind::Backward, stage - 1, micro)));
        }
        let path: Vec<&Task> = o.critical_path.iter().map(|&t| &o.tasks[t as usize]).collect();
        assert_eq!(path.last().unwrap().kind, TaskKind::Optimizer);
        assert!((path.last().unwrap().end - o.steps[0]).abs() < 1e-9);
        assert!(path.windows(2).all(|pair| pair[0].end <= pair[1].end + 1e-9 && pair[1].begin > pair[0].begin - 1e-9));
        // The path has no holes: it explains the step from its beginning.
        let mut reached = 0.0;
        for task in &path {
            assert!(task.begin <= reached + 1e-9, "a hole before {task:?}");
            reached = task.end;
        }
        assert!((reached - o.steps[0]).abs() < 1e-9);
    }
}

#[test]
fn every_shape_of_pipeline_comes_to_its_end() {
    for schedule in [Schedule::OneForwardOneBackward, Schedule::ZeroBubble, Schedule::AllForward] {
        for pp in [1.0, 2.0, 3.0, 8.0] {
            for vpp in [1.0, 2.0, 3.0] {
                for micros in [1.0, 2.0, 5.0, 8.0, 16.0] {
                    let system = TrainingInput { schedule, pp, vpp, dp: 2.0, global: 2.0 * micros, ..pipelined() };
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
fn nonsense_is_told_at_once() {
    let mut input = Input::of(&pipelined(), &Constants::default());
    input.steps = 0;
    input.buckets = 0;
    input.jitter = f64::NAN;
    input.slow = vec![Slow { replica: 9, stage: 9, factor: 0.0 }];
    assert_eq!(input.problems().len(), 6);
    assert!(simulate(&input, 1, &Progress::new()).is_err());
}

#[test]
fn weights_replicated_over_nodes_are_reduced_beside_kernels_that_they_slow() {
    let node = TrainingInput { shard: 8.0, ..sharded() };
    let costs = Costs::of(&node, &Constants::default());

    assert_eq!((costs.layer_port, costs.data_port), (Port::Link, Port::Nic));
    assert!(costs.reduce > 0.0);
    // While the reduction hides behind backward passes it costs them what the closed form says.
    for nic_bw in [400e9, 100e9, 50e9] {
        let system = TrainingInput { nic_bw, ..node };
        let off = run_of(&system).step.mean / even_step(&system) - 1.0;
        println!("replicated over nodes, {} GB/s a card: {:+.2} %", nic_bw / 1e9, 100.0 * off);
        assert!(off.abs() < 0.02, "{nic_bw}: {off}");
    }
    // Reduced layer by layer, each as soon as its gradients are there.
    let o = run_of(&node);
    assert_eq!(o.tasks.iter().filter(|t| t.kind == TaskKind::Reduce).count(), 32);
}

#[test]
fn stages_keep_their_weights_from_the_first_pass_to_the_last() {
    let stages = TrainingInput { pp: 4.0, dp: 16.0, ..sharded() };
    let eager = Costs::of(&stages, &Constants::default());
    assert!(eager.gather > 0.0 && eager.reduce > 0.0);
    assert!(eager.chunks.iter().all(|chunk| chunk.forward.program.count(Lane::Data) == 0));
    // A compiled loop over micro-batches gathers in each, and so does software that is said to.
    let compiled = TrainingInput { software: Software { compiled: true, ..stages.software }, ..stages };
    let every = TrainingInput { reshard: Some(Reshard::EveryMicroBatch), ..stages };
    for system in [compiled, every, TrainingInput { pp: 1.0, dp: 64.0, ..stages }] {
        let costs = Costs::of(&system, &Constants::default());
        assert!(costs.reduce <= 0.0 && costs.chunks.iter().all(|chunk| chunk.forward.program.count(Lane::Data) > 0));
    }
    assert!(run_of(&stages).step.mean < run_of(&every).step.mean);
    let single = TrainingInput { reshard: Some(Reshard::OncePerStep), ..sharded() };
    // Stages wait for each other's collectives besides, where every micro-batch has its own.
    for (system, most) in [(stages, 0.05), (every, 0.08), (single, 0.05)] {
        let off = run_of(&system).step.mean / even_step(&system) - 1.0;
        assert!(off.abs() < most, "{:?}: {off}", system.reshard);
    }
}

#[test]
fn stages_in_one_domain_reach_each_other_through_it() {
    let hops = |tp: f64, pp: f64, dp: f64, domain: f64| {
        let system = TrainingInput { tp, pp, dp, domain, accelerators: tp * pp * dp, ..pipelined() };
        let costs = Costs::of(&system, &Constants::default());
        assert!(costs.near < costs.transfer || costs.transfer_port == Port::Link);
        (0..pp as u32).map(|stage| costs.hop(stage).1 == Port::Link).collect::<Vec<bool>>()
    };
    // Two stages a node: every other step leaves it, and so does the way back to the first stage.
    assert_eq!(hops(4.0, 4.0, 1.0, 8.0), [true, false, true, false]);
    assert_eq!(hops(8.0, 4.0, 1.0, 8.0), [false; 4]);
    assert_eq!(hops(2.0, 4.0, 1.0, 8.0), [true; 4]);
    // Where replicas lie between, and some of them in another domain than their next stage, the slowest counts.
    assert_eq!(hops(4.0, 4.0, 8.0, 72.0), [true, false, false, false]);
}

#[test]
fn the_embedding_is_gathered_first_and_reduced_last() {
    let mut system = TrainingInput { pp: 1.0, dp: 16.0, ..pipelined() };
    system.arch.vocab = 8.0;
    let costs = Costs::of(&system, &Constants::default());
    assert!(costs.embedding < 1e-3);
    let (plain, plain_reduce) = (run_of(&system), costs.reduce);
    system.arch.vocab = 256_000.0;
    let costs = Costs::of(&system, &Constants::default());
    assert!(costs.embedding > 0.02 && costs.embedding < 0.1);
    let o = run_of(&system);
    for (o, reduce, share) in [(plain, plain_reduce, 0.0), (o, costs.reduce, costs.embedding)] {
        let own = o.tasks.iter().filter(|task| task.kind == TaskKind::Reduce);
        let seconds: Vec<f64> = own.map(|task| task.end - task.begin).collect();
        assert!((seconds.iter().sum::<f64>() / reduce - 1.0).abs() < 1e-6);
        assert!((seconds[seconds.len() - 1] - seconds[0] - share * reduce).abs() < 1e-3 * reduce);
    }
}

#[test]
fn zero_bubble_goes_on_without_waiting_for_other_stages_optimizers() {
    let mut system = pipelined();
    // Passes of equal length on every stage, one replica, and memory for as much as the schedule can use.
    system.arch.vocab = 1.0;
    system.accelerator.mem_bytes *= 4.0;
    let system = TrainingInput { dp: 1.0, accelerators: 32.0, global: 32.0, ..system };
    let run = |schedule| {
        let system = TrainingInput { schedule, ..system };
        let input = Input { steps: 4, ..Input::of(&system, &Constants::default()) };
        let costs = Costs::of(&system, &Constants::default());
        (simulate(&input, 1, &Progress::new()).unwrap(), costs)
    };
    let ((plain, _), (within, _), (zero, costs)) =
        (run(Schedule::OneForwardOneBackward), run(Schedule::ZeroBubble1p), run(Schedule::ZeroBubble));
    // The first step fills an empty pipeline; later ones follow at the stages' own pace.
    assert!(zero.steps[1] < zero.steps[0] && (zero.steps[3] / zero.steps[2] - 1.0).abs() < 1e-6, "{:?}", zero.steps);
    assert!(zero.steps[3] < within.steps[3] && within.steps[3] < plain.steps[3]);
    let chunk = &costs.chunks[0];
    let work = 32.0 * (chunk.forward.seconds + chunk.input.seconds + chunk.weights.seconds) + costs.optimizer;
    let bubble = zero.steps[3] / work - 1.0;
    // All that is left is what unequal passes leave: (stages - 1) (forward + input gradient - 2 weights' gradient).
    let left = 3.0 * (chunk.forward.seconds + chunk.input.seconds - 2.0 * chunk.weights.seconds) / work;
    assert!(bubble > -1e-9 && bubble < left.max(0.0) + 0.02, "{bubble} {left}");
    // What a stage does and waits for adds up to the steps, though stages are not in step.
    let all: f64 = zero.steps.iter().sum();
    for stage in &zero.stages {
        assert!((stage.total() * 4.0 / all - 1.0).abs() < 1e-9, "{stage:?} {all}");
    }
}

#[test]
fn keys_and_values_hide_behind_all_but_the_last_step_of_attention() {
    let long = TrainingInput {
        seq: 65_536.0,
        cp: 8.0,
        dp: 2.0,
        accelerators: 16.0,
        global: 64.0,
        recompute: Recompute::None,
        ..TrainingInput::default()
    };
    for (seq, nic_bw) in [(65_536.0, 50e9), (16_384.0, 50e9), (16_384.0, 5e9)] {
        let system = TrainingInput { seq, nic_bw, domain: 4.0, ..long };
        let closed = estimate(&system, &Constants::default());
        let o = run_of(&system);
        let off = o.step.mean / closed.step_seconds - 1.0;
        let shown = closed.time.context_parallel / closed.step_seconds;
        println!("{seq} tokens, {} GB/s a card: {:+.2} %, {:.3} shown", nic_bw / 1e9, 100.0 * off, shown);
        assert!(off.abs() < 0.05, "{seq} {nic_bw}: {off}");
    }
    let quick = estimate(&TrainingInput { nic_bw: 50e9, domain: 4.0, ..long }, &Constants::default());
    assert_eq!(quick.time.context_parallel, 0.0);
}

#[test]
fn layers_that_do_not_go_in_leave_the_slowest_stage_in_the_middle() {
    let mut system = TrainingInput { pp: 32.0, dp: 1.0, accelerators: 256.0, global: 64.0, ..pipelined() };
    system.arch = Architecture { layers: 62.0, vocab: 1000.0, ..llama_70b() };
    let costs = Costs::of(&system, &Constants::default());
    let layers = |stage: usize| costs.chunks[stage].forward.compute / costs.chunks[1].forward.compute;
    assert!((layers(0) - 0.5).abs() < 1e-9 && (layers(30) - 1.0).abs() < 1e-9 && layers(31) < 0.6);
    let found = run_of(&system).step.mean;
    let off = found / even_step(&system) - 1.0;
    assert!(off.abs() < 0.05, "{off}");
}
