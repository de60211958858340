//! Properties that every estimate must have.

use super::*;
use crate::analytical::constants::Constants;

fn llama_70b() -> Architecture {
    Architecture {
        layers: 80.0,
        hidden: 8192.0,
        heads: 64.0,
        kv_heads: 8.0,
        ffn: 28672.0,
        vocab: 128256.0,
        ..Architecture::default()
    }
}

fn mixtral() -> Architecture {
    Architecture {
        hidden: 4096.0,
        kv_heads: 8.0,
        ffn: 14336.0,
        moe_ffn: 14336.0,
        experts: 8.0,
        top_k: 2.0,
        ..Architecture::default()
    }
}

/// A spread of scenarios: dense and experts, one node and many, every kind of parallelism and sharding.
fn scenarios() -> Vec<TrainingInput> {
    let base = TrainingInput::default();
    let many = TrainingInput { accelerators: 128.0, arch: llama_70b(), seq: 8192.0, global: 256.0, ..base };
    vec![
        base,
        TrainingInput { sharding: Sharding::Zero3, accelerators: 128.0, dp: 128.0, global: 512.0, ..base },
        TrainingInput { tp: 8.0, pp: 4.0, vpp: 5.0, dp: 4.0, sequence_parallel: true, ..many },
        TrainingInput { tp: 4.0, pp: 4.0, cp: 2.0, dp: 4.0, recompute: Recompute::Full, ..many },
        TrainingInput { tp: 2.0, pp: 8.0, dp: 8.0, schedule: Schedule::ZeroBubble, ..many },
        TrainingInput { arch: mixtral(), ep: 8.0, ..base },
        TrainingInput { arch: mixtral(), accelerators: 64.0, ep: 8.0, pp: 4.0, dp: 16.0, ..base },
        TrainingInput {
            software: Software { fused_attention: false, overlap_data: false, ..Software::default() },
            sharding: Sharding::None,
            ..base
        },
    ]
}

#[test]
fn the_breakdown_sums_to_the_step() {
    let c = Constants::default();
    for i in scenarios() {
        let e = estimate(&i, &c);
        assert!(e.step_seconds.is_finite() && e.step_seconds > 0.0);
        assert!((e.time.total() / e.step_seconds - 1.0).abs() < 1e-12);
        assert!(e.time.values().iter().all(|v| *v >= 0.0), "{:?}", e.time);
    }
}

#[test]
fn better_hardware_is_never_slower() {
    let c = Constants::default();
    let better: [fn(&mut TrainingInput); 5] = [
        |i| i.accelerator.mem_bw *= 2.0,
        |i| i.accelerator.flops = i.accelerator.flops.map(|f| 2.0 * f),
        |i| i.accelerator.link_bw *= 2.0,
        |i| i.accelerator.nic_bw *= 2.0,
        |i| i.accelerator.mem_bytes *= 2.0,
    ];
    for i in scenarios() {
        let before = estimate(&i, &c).step_seconds;
        for change in better {
            let mut j = i;
            change(&mut j);
            let after = estimate(&j, &c).step_seconds;
            assert!(after <= before * (1.0 + 1e-9), "{before} -> {after}: {i:?}");
        }
    }
}

#[test]
fn recomputing_costs_time_and_hardware_flops_but_no_model_flops() {
    let c = Constants::default();
    let none = TrainingInput { recompute: Recompute::None, ..TrainingInput::default() };
    let full = TrainingInput { recompute: Recompute::Full, ..none };
    let (n, f) = (estimate(&none, &c), estimate(&full, &c));
    assert!(f.step_seconds > n.step_seconds);
    assert!(f.memory.total() < n.memory.total());
    assert!((n.hfu / n.mfu - 1.0).abs() < 1e-12 && f.hfu > 1.2 * f.mfu);
    assert!(f.mfu < n.mfu && n.mfu < 1.0);
}

#[test]
fn a_longer_pipeline_has_a_longer_bubble_and_interleaving_shortens_it() {
    let c = Constants::default();
    let base = TrainingInput { arch: llama_70b(), accelerators: 64.0, tp: 8.0, ..TrainingInput::default() };
    let share = |i: &TrainingInput| {
        let e = estimate(i, &c);
        e.time.pipeline_bubble / e.step_seconds
    };
    let four = TrainingInput { pp: 4.0, dp: 2.0, ..base };
    let eight = TrainingInput { pp: 8.0, dp: 1.0, ..base };
    let interleaved = TrainingInput { vpp: 5.0, ..eight };
    let zero = TrainingInput { schedule: Schedule::ZeroBubble, ..eight };
    assert!(share(&eight) > share(&four));
    assert!(share(&interleaved) < share(&eight));
    assert!(share(&zero) < share(&eight));
}

#[test]
fn a_published_run_is_met_within_its_interval() {
    // GPT-3 175B on 64 A100: 13.75 s with sequence parallelism and selective recomputation (arXiv 2205.05198, table 5).
    let i = TrainingInput {
        arch: Architecture {
            layers: 96.0,
            hidden: 12288.0,
            heads: 96.0,
            kv_heads: 96.0,
            ffn: 49152.0,
            gated: false,
            tied: true,
            vocab: 51200.0,
            ..Architecture::default()
        },
        accelerators: 64.0,
        seq: 2048.0,
        global: 64.0,
        tp: 8.0,
        pp: 8.0,
        vpp: 3.0,
        dp: 1.0,
        sequence_parallel: true,
        sharding: Sharding::None,
        recompute: Recompute::Selective,
        software: Software {
            fused_attention: false,
            overlap_tensor: false,
            overlap_data: false,
            dropout: true,
            ..Software::default()
        },
        ..TrainingInput::default()
    };
    let e = estimate(&i, &Constants::default());
    let (low, high) = interval::bounds(&i);
    let ratio = 13.75 / e.step_seconds;
    assert!(ratio > low && ratio < high, "{}", e.step_seconds);
    assert!(ratio > 0.9 && ratio < 1.1, "{}", e.step_seconds);
}

#[test]
fn tensor_parallelism_across_nodes_is_slower_than_inside() {
    let c = Constants::default();
    let inside = TrainingInput { tp: 8.0, dp: 2.0, accelerators: 16.0, ..TrainingInput::default() };
    let across = TrainingInput { tp: 16.0, dp: 1.0, ..inside };
    assert!(estimate(&across, &c).step_seconds > estimate(&inside, &c).step_seconds);
}

#[test]
fn every_combination_of_knobs_has_a_finite_answer() {
    let c = Constants::default();
    let mut n = 0;
    for arch in [llama_70b(), mixtral()] {
        for (tp, pp, cp, ep) in
            [(1.0, 1.0, 1.0, 1.0), (8.0, 1.0, 2.0, 8.0), (2.0, 8.0, 1.0, 4.0), (16.0, 4.0, 4.0, 1.0)]
        {
            for sharding in [Sharding::None, Sharding::Zero1, Sharding::Zero2, Sharding::Zero3] {
                for recompute in [Recompute::None, Recompute::Selective, Recompute::Full, Recompute::Auto] {
                    for (seq, micro, global, dp) in [(512.0, 1.0, 1.0, 64.0), (131_072.0, 2.0, 4096.0, 8.0)] {
                        let accelerators = tp * pp * cp * dp;
                        let base = TrainingInput {
                            arch,
                            tp,
                            pp,
                            cp,
                            ep,
                            dp,
                            accelerators,
                            sharding,
                            ..TrainingInput::default()
                        };
                        let e = estimate(&TrainingInput { recompute, seq, micro, global, ..base }, &c);
                        assert!(e.step_seconds.is_finite() && e.step_seconds > 0.0);
                        assert!(e.memory.total() > 0.0 && e.memory_upper >= e.memory.total());
                        assert!(e.mfu > 0.0 && e.mfu < 1.0);
                        n += 1;
                    }
                }
            }
        }
    }
    assert_eq!(n, 256);
}

#[test]
fn gradients_summed_weight_by_weight_cost_every_micro_batch_the_same() {
    let c = Constants::default();
    let seconds = |fused_sums, global| {
        let software = Software { fused_sums, ..Software::default() };
        estimate(&TrainingInput { software, global, ..TrainingInput::default() }, &c).step_seconds
    };
    // Eight ranks: 16 and 32 micro-batches; with one there is nothing to add to.
    let extra = |global| seconds(false, global) - seconds(true, global);
    assert!(extra(128.0) > 0.0 && (extra(256.0) / extra(128.0) - 2.0).abs() < 0.01);
    assert_eq!(extra(8.0), 0.0);
    // 20 bytes a weight beyond the fused sum's six, at the rate that memory streams.
    let i = TrainingInput::default();
    let bytes = 20.0 * i.arch.params() * 16.0;
    let expected = bytes / (i.accelerator.mem_bw * c.memory_fraction);
    assert!((extra(128.0) / expected - 1.0).abs() < 0.02, "{} {expected}", extra(128.0));
}

#[test]
fn narrow_experts_are_slower_by_the_flop() {
    let c = Constants::default();
    let seconds = |experts: f64, top_k: f64, moe_ffn: f64| {
        let arch = Architecture { experts, top_k, moe_ffn, ..Architecture::default() };
        let i = TrainingInput { arch, ep: 8.0, recompute: Recompute::None, ..TrainingInput::default() };
        estimate(&i, &c).time.gemm
    };
    // The same weights and FLOPs, cut into four times as many experts.
    let (wide, narrow) = (seconds(16.0, 2.0, 4096.0), seconds(64.0, 8.0, 1024.0));
    assert!(narrow > 1.3 * wide, "{narrow} {wide}");
}
