//! Transfers and collectives: overlap with computation, and contention on ports.

use super::*;
use atlas_core::count::Count;
use atlas_perf::traits::ShardCopies;

#[test]
fn concurrent_transfers_share_a_port() {
    let system = on_network(1e9, pipelined());
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
            // As without contention, except for another stage's transfer into the same port.
            assert!(long < 2.0 + 1e-6, "{long}");
            alone += 1;
        }
    }
    assert!(alone > 50 && shared >= 3, "{alone} {shared} of {}, {} reduced", o.tasks.len(), data.len());
    // Sharing has a cost: the gradients of experts share the network card with their all-to-all.
    let own = Costs::of(&expert_parallel(), &Constants::default());
    assert_eq!(own.detail_level(), super::costs::DetailLevel::Transfers);
}

#[test]
fn layer_wise_collectives_overlap_up_to_the_kernels_time() {
    let step = |system: &TrainingInput| (run_of(system).step.mean, even_step(system));
    // From little traffic to traffic only: both limits of the closed form, and the range between them.
    for nic_bw in [400e9, 100e9, 25e9, 12e9, 6e9, 2e9] {
        let (found, closed) = step(&on_network(nic_bw, sharded()));
        let off = found / closed - 1.0;
        println!("{:>4} GB/s a card: {:+.2} %", nic_bw / 1e9, 100.0 * off);
        assert!(off.abs() < 0.08, "{nic_bw}: {found} against {closed}");
    }
    let open = Software { overlap_data: false, ..Software::default() };
    let (found, closed) = step(&TrainingInput { software: open, ..sharded() });
    assert!((found / closed - 1.0).abs() < 0.02, "{found} {closed}");
    // Weights are gathered a layer ahead, while the previous layer computes.
    let o = run_of(&on_network(100e9, sharded()));
    use super::program::Action;
    let gathers = o.tasks.iter().filter(|t| t.kind == TaskKind::PassTask(Action::Gather));
    let beside = |task: &&Task| o.operators.iter().any(|op| op.begin < task.end && op.end > task.begin);
    let (all, hidden) = (gathers.clone().count(), gathers.filter(beside).count());
    assert!(all >= 2 * 31 && hidden + 4 > all, "{all} {hidden}");
}

#[test]
fn expert_exchanges_match_the_closed_form() {
    for nic_bw in [400e9, 50e9] {
        let system = on_network(nic_bw, expert_parallel());
        let off = run_of(&system).step.mean / even_step(&system) - 1.0;
        println!("experts, {} GB/s a card: {:+.2} %", nic_bw / 1e9, 100.0 * off);
        assert!(off.abs() < 0.05, "{nic_bw}: {off}");
    }
}

#[test]
fn hybrid_sharded_gradient_reduction_matches_the_closed_form() {
    let node = TrainingInput { shard: Some(Count::new(8)), ..sharded() };
    let costs = Costs::of(&node, &Constants::default());

    assert_eq!((costs.layer_port, costs.data_port), (Port::Link, Port::Nic));
    assert!(costs.reduce > 0.0);
    // A reduction that is hidden behind backward passes slows them as in the closed form.
    for nic_bw in [400e9, 100e9, 50e9] {
        let system = on_network(nic_bw, node);
        let off = run_of(&system).step.mean / even_step(&system) - 1.0;
        println!("replicated over nodes, {} GB/s a card: {:+.2} %", nic_bw / 1e9, 100.0 * off);
        assert!(off.abs() < 0.02, "{nic_bw}: {off}");
    }
    // Reduced layer by layer, as soon as gradients are complete.
    let o = run_of(&node);
    assert_eq!(o.tasks.iter().filter(|t| t.kind == TaskKind::Reduce).count(), 32);
}

#[test]
fn zero3_stages_gather_once_per_step_unless_compiled_or_set() {
    let stages = TrainingInput { pp: Count::new(4), dp: Count::new(16), ..sharded() };
    let eager = Costs::of(&stages, &Constants::default());
    assert!(eager.gather > 0.0 && eager.reduce > 0.0);
    assert!(eager.chunks.iter().all(|chunk| chunk.forward.program.count(Lane::Data) == 0));
    // A compiled loop over micro-batches gathers in each of them, and so does software that is declared to.
    let compiled = TrainingInput { software: Software { compiled: true, ..stages.software }, ..stages };
    let every = TrainingInput { reshard: Some(Reshard::EveryMicroBatch), ..stages };
    for system in [compiled, every, TrainingInput { pp: Count::ONE, dp: Count::new(64), ..stages }] {
        let costs = Costs::of(&system, &Constants::default());
        assert!(costs.reduce <= 0.0 && costs.chunks.iter().all(|chunk| chunk.forward.program.count(Lane::Data) > 0));
    }
    assert!(run_of(&stages).step.mean < run_of(&every).step.mean);
    let single = TrainingInput { reshard: Some(Reshard::OncePerStep), ..sharded() };
    // If every micro-batch has its own collectives, stages also wait for those of each other.
    for (system, most) in [(stages, 0.05), (every, 0.08), (single, 0.05)] {
        let off = run_of(&system).step.mean / even_step(&system) - 1.0;
        assert!(off.abs() < most, "{:?}: {off}", system.reshard);
    }
}

#[test]
fn embedding_gradient_extends_the_last_reduction_bucket() {
    let mut system = TrainingInput { pp: Count::ONE, dp: Count::new(16), ..pipelined() };
    system.arch.vocab = Count::new(8);
    let costs = Costs::of(&system, &Constants::default());
    assert!(costs.embedding < 1e-3);
    let (plain, plain_reduce) = (run_of(&system), costs.reduce);
    system.arch.vocab = Count::new(256_000);
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
fn overlapped_context_exchange_step_matches_the_closed_form() {
    let long = TrainingInput {
        seq: 65_536.0,
        cp: Count::new(8),
        dp: Count::new(2),
        accelerators: 16.0,
        global: 64.0,
        recompute: Recompute::None,
        ..TrainingInput::default()
    };
    for (seq, nic_bw) in [(65_536.0, 50e9), (16_384.0, 50e9), (16_384.0, 5e9)] {
        let system = TrainingInput { seq, domain: 4.0, ..on_network(nic_bw, long) };
        let closed = estimate(&system, &Constants::default());
        let o = run_of(&system);
        let off = o.step.mean / closed.step_seconds - 1.0;
        let shown = closed.time.context_parallel / closed.step_seconds;
        println!("{seq} tokens, {} GB/s a card: {:+.2} %, {:.3} shown", nic_bw / 1e9, 100.0 * off, shown);
        assert!(off.abs() < 0.05, "{seq} {nic_bw}: {off}");
    }
    let quick = estimate(&TrainingInput { domain: 4.0, ..on_network(50e9, long) }, &Constants::default());
    assert_eq!(quick.time.context_parallel, 0.0);
}

#[test]
fn exposed_weight_gathers_match_the_closed_form() {
    let cards = on_network(50e9, pipelined());
    let base = TrainingInput { sharding: Sharding::Zero1, ..cards };
    let step = |overlap_parameters| {
        let system = TrainingInput { software: Software { overlap_parameters, ..Software::default() }, ..base };
        (run_of(&system).step.mean, even_step(&system))
    };
    let (beside, waited) = (step(true), step(false));
    assert!(waited.0 > 1.002 * beside.0 && waited.1 > 1.002 * beside.1, "{beside:?} {waited:?}");
    for (found, closed) in [beside, waited] {
        assert!((found / closed - 1.0).abs() < 0.08, "{found} {closed}");
    }
}

#[test]
fn copies_on_the_streams_of_collectives_match_the_closed_form() {
    let step = |shard_copies, nic_bw| {
        let software = Software { shard_copies, ..Software::default() };
        let system = on_network(nic_bw, TrainingInput { software, ..sharded() });
        (run_of(&system).step.mean, even_step(&system))
    };
    for nic_bw in [400e9, 50e9] {
        let (without, with) = (step(ShardCopies::None, nic_bw), step(ShardCopies::Buckets, nic_bw));
        assert!(with.0 > without.0 && with.1 > without.1, "{nic_bw}: {without:?} {with:?}");
        assert!((with.0 / with.1 - 1.0).abs() < 0.03, "{nic_bw}: {with:?}");
    }
}

#[test]
fn deferred_reduction_matches_the_closed_form() {
    let step = |deferred_reduction, nic_bw| {
        let software = Software { deferred_reduction, ..Software::default() };
        let base = sharded();
        let system = on_network(nic_bw, TrainingInput { software, global: 8.0 * base.global, ..base });
        assert!(system.micro_batches() >= 8.0);
        (run_of(&system).step.mean, even_step(&system))
    };
    for nic_bw in [100e9, 25e9] {
        let (each, once) = (step(false, nic_bw), step(true, nic_bw));
        assert!(once.0 < each.0 && once.1 < each.1, "{nic_bw}: {each:?} {once:?}");
        assert!((once.0 / once.1 - 1.0).abs() < 0.02, "{nic_bw}: {once:?}");
    }
}
