//! Properties of all training estimates.
#![allow(clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::accelerator::{Accelerator, Generation, Precision};
use crate::arch::Architecture;
use crate::constants::Constants;
use crate::traits::{SelectiveRecompute, ShardCopies, TokenSplit};
use atlas_core::count::Count;

mod bf16_layers;
mod communication;
mod layouts;
mod published;
mod recompute;

pub(super) fn llama_70b() -> Architecture {
    Architecture {
        layers: Count::new(80),
        hidden: Count::new(8192),
        heads: Count::new(64),
        kv_heads: Count::new(8),
        ffn: Count::new(28672),
        vocab: Count::new(128256),
        ..Architecture::default()
    }
}

fn mixtral() -> Architecture {
    Architecture {
        hidden: Count::new(4096),
        kv_heads: Count::new(8),
        ffn: Count::new(14336),
        moe_ffn: Count::new(14336),
        experts: Count::new(8),
        top_k: Count::new(2),
        ..Architecture::default()
    }
}

/// Scenarios of all kinds: dense models and mixtures, one node and many, every kind of parallelism and sharding.
fn scenarios() -> Vec<TrainingInput> {
    let base = TrainingInput::default();
    let many = TrainingInput { accelerators: 128.0, arch: llama_70b(), seq: 8192.0, global: 256.0, ..base };
    vec![
        base,
        TrainingInput { sharding: Sharding::Zero3, accelerators: 128.0, dp: Count::new(128), global: 512.0, ..base },
        TrainingInput {
            tp: Count::new(8),
            pp: Count::new(4),
            vpp: Count::new(5),
            dp: Count::new(4),
            sequence_parallel: true,
            ..many
        },
        TrainingInput {
            tp: Count::new(4),
            pp: Count::new(4),
            cp: Count::new(2),
            dp: Count::new(4),
            recompute: Recompute::Full,
            ..many
        },
        TrainingInput {
            tp: Count::new(2),
            pp: Count::new(8),
            dp: Count::new(8),
            schedule: Schedule::ZeroBubble,
            ..many
        },
        TrainingInput { arch: mixtral(), ep: Count::new(8), ..base },
        TrainingInput {
            arch: mixtral(),
            accelerators: 64.0,
            ep: Count::new(8),
            pp: Count::new(4),
            dp: Count::new(16),
            ..base
        },
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
    assert!((n.hfu / n.mfu_causal - 1.0).abs() < 1e-12 && f.hfu > 1.2 * f.mfu_causal);
    assert!(f.mfu < n.mfu && n.mfu < 1.0);
}

#[test]
fn a_longer_pipeline_has_a_longer_bubble_and_interleaving_shortens_it() {
    let c = Constants::default();
    let base = TrainingInput { arch: llama_70b(), accelerators: 64.0, tp: Count::new(8), ..TrainingInput::default() };
    let share = |i: &TrainingInput| {
        let e = estimate(i, &c);
        e.time.pipeline_bubble / e.step_seconds
    };
    let four = TrainingInput { pp: Count::new(4), dp: Count::new(2), ..base };
    let eight = TrainingInput { pp: Count::new(8), dp: Count::ONE, ..base };
    let interleaved = TrainingInput { vpp: Count::new(5), ..eight };
    let zero = TrainingInput { schedule: Schedule::ZeroBubble, ..eight };
    assert!(share(&eight) > share(&four));
    assert!(share(&interleaved) < share(&eight));
    assert!(share(&zero) < share(&eight));
}

#[test]
fn activations_in_32_bit_take_twice_the_bytes_of_those_in_16_bit() {
    let activations = |precision| {
        let i = TrainingInput { precision, recompute: Recompute::None, ..TrainingInput::default() };
        crate::training::memory::training_memory(&i, &Constants::default(), Recompute::None).activations
    };
    let (wide, narrow) = (activations(Precision::Tf32), activations(Precision::Bf16));
    assert_eq!(wide, activations(Precision::Fp32));
    assert!((1.9..=2.0).contains(&(wide / narrow)), "{}", wide / narrow);
}

#[test]
fn traffic_and_collectives_in_32_bit_take_twice_the_time_of_those_in_16_bit() {
    let c = Constants::default();
    let run = |precision| {
        let i = TrainingInput {
            arch: llama_70b(),
            accelerators: 64.0,
            tp: Count::new(8),
            dp: Count::new(4),
            pp: Count::new(2),
            // One micro-batch, so that no gradients are accumulated.
            global: 4.0,
            sequence_parallel: true,
            recompute: Recompute::None,
            precision,
            ..TrainingInput::default()
        };
        estimate(&i, &c)
    };
    let (wide, single, narrow) = (run(Precision::Tf32), run(Precision::Fp32), run(Precision::Bf16));
    let twice = |wide: f64, narrow: f64| assert!((1.8..=2.0).contains(&(wide / narrow)), "{}", wide / narrow);
    twice(wide.time.elementwise, narrow.time.elementwise);
    twice(wide.time.tensor_parallel, narrow.time.tensor_parallel);
    twice(wide.time.pipeline_transfer, narrow.time.pipeline_transfer);
    assert_eq!(single.time.elementwise, wide.time.elementwise);
    assert_eq!(single.time.tensor_parallel, wide.time.tensor_parallel);
    // 8-bit layers have 16-bit activations.
    assert_eq!(run(Precision::Fp8).time.tensor_parallel, narrow.time.tensor_parallel);
    assert!(single.step_seconds > wide.step_seconds && wide.step_seconds > narrow.step_seconds);
}

#[test]
fn stages_gather_fully_sharded_weights_once_a_step() {
    let c = Constants::default();
    let stages = TrainingInput {
        arch: llama_70b(),
        accelerators: 256.0,
        tp: Count::new(8),
        pp: Count::new(8),
        dp: Count::new(4),
        global: 128.0,
        sequence_parallel: true,
        sharding: Sharding::Zero3,
        ..TrainingInput::default()
    };
    assert_eq!(stages.resharding(), Reshard::OncePerStep);
    assert_eq!(TrainingInput::default().resharding(), Reshard::EveryMicroBatch);
    let at = |reshard| estimate(&TrainingInput { reshard, ..stages }, &c);
    let (once, every) = (at(None), at(Some(Reshard::EveryMicroBatch)));
    // Weights and gradients are kept unsharded, and communicated once per step instead of once per micro-batch.
    let zero1 = estimate(&TrainingInput { sharding: Sharding::Zero1, ..stages }, &c);
    // Beside them, each of the four replicas keeps its shard.
    assert!((once.memory.weights / zero1.memory.weights - 1.25).abs() < 1e-9);
    assert_eq!(once.memory.gradients, zero1.memory.gradients);
    assert_eq!(once.memory.optimizer, every.memory.optimizer);
    assert!((once.memory.weights / every.memory.weights - 5.0).abs() < 1e-9);
    // Shards in 32 bit are gathered in 16 bit.
    let masters = estimate(&TrainingInput { weight_bytes: 4.0, ..stages }, &c);
    assert!((masters.memory.weights / zero1.memory.weights - 1.5).abs() < 1e-9);
    assert!(once.step_seconds < every.step_seconds && (once.step_seconds / zero1.step_seconds - 1.0).abs() < 0.02);
    // With one micro-batch, both communicate about the same volume.
    let few = TrainingInput { global: 4.0, ..stages };
    let sent = |reshard| {
        let open = Software { overlap_data: false, ..Software::default() };
        estimate(&TrainingInput { reshard: Some(reshard), software: open, ..few }, &c).time.data_parallel
    };
    let (once, every) = (sent(Reshard::OncePerStep), sent(Reshard::EveryMicroBatch));
    assert!(once < every && once > 0.6 * every, "{once} {every}");
}

#[test]
fn step_time_is_finite_with_one_or_two_tokens_per_expert() {
    let arch = Architecture {
        experts: Count::new(512),
        top_k: Count::new(10),
        moe_ffn: Count::new(1024),
        ..TrainingInput::default().arch
    };
    for seq in [16.0, 64.0, 76.0, 128.0] {
        let step = estimate(&TrainingInput { arch, seq, ..TrainingInput::default() }, &Constants::default());
        assert!(step.step_seconds.is_finite() && step.step_seconds > 0.0, "{seq}: {}", step.step_seconds);
    }
}

#[test]
fn tensor_parallelism_across_nodes_is_slower_than_inside() {
    let c = Constants::default();
    let inside = TrainingInput { tp: Count::new(8), dp: Count::new(2), accelerators: 16.0, ..TrainingInput::default() };
    let across = TrainingInput { tp: Count::new(16), dp: Count::ONE, ..inside };
    assert!(estimate(&across, &c).step_seconds > estimate(&inside, &c).step_seconds);
}

#[test]
fn every_knob_combination_gives_a_finite_estimate() {
    let c = Constants::default();
    let mut n = 0;
    for arch in [llama_70b(), mixtral()] {
        for (tp, pp, cp, ep) in [(1, 1, 1, 1), (8, 1, 2, 8), (2, 8, 1, 4), (16, 4, 4, 1)] {
            let [tp, pp, cp, ep] = [tp, pp, cp, ep].map(Count::new);
            for sharding in [Sharding::None, Sharding::Zero1, Sharding::Zero2, Sharding::Zero3] {
                for recompute in [Recompute::None, Recompute::Selective, Recompute::Full, Recompute::Auto] {
                    for (seq, micro, global, dp) in [(512.0, 1.0, 1.0, 64), (131_072.0, 2.0, 4096.0, 8)] {
                        let dp = Count::new(dp);
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
fn zero2_reduces_gradients_in_every_micro_batch_or_holds_them_whole() {
    let of = |sharding, reshard, global| {
        // Nothing overlaps, so that data-parallel time is that of the traffic.
        let software = Software { overlap_data: false, overlap_parameters: false, ..Software::default() };
        let input = TrainingInput {
            sharding,
            reshard: Some(reshard),
            global,
            dp: Count::new(8),
            software,
            ..TrainingInput::default()
        };
        estimate(&input, &Constants::default())
    };
    let data = |sharding, reshard, global| of(sharding, reshard, global).time.data_parallel;
    let (every, once) = (Reshard::EveryMicroBatch, Reshard::OncePerStep);
    let growth = |sharding, reshard| data(sharding, reshard, 128.0) / data(sharding, reshard, 8.0);
    assert!(growth(Sharding::Zero2, every) > 8.0, "{}", growth(Sharding::Zero2, every));
    assert!(growth(Sharding::Zero1, every) < 1.01 && growth(Sharding::Zero2, once) < 1.01);
    let gradients = |reshard| of(Sharding::Zero2, reshard, 128.0).memory.gradients;
    let ratio = gradients(once) / gradients(every);
    assert!((ratio - 8.0).abs() < 1e-9, "{ratio}");
}

#[test]
fn unfused_gradient_accumulation_adds_constant_time_per_micro_batch() {
    let c = Constants::default();
    let seconds = |fused_sums, global| {
        let software = Software { fused_sums, ..Software::default() };
        estimate(&TrainingInput { software, global, ..TrainingInput::default() }, &c).step_seconds
    };
    // Eight ranks: 16 and 32 micro-batches. With one micro-batch there is no accumulation.
    let extra = |global| seconds(false, global) - seconds(true, global);
    assert!(extra(128.0) > 0.0 && (extra(256.0) / extra(128.0) - 2.0).abs() < 0.01);
    assert_eq!(extra(8.0), 0.0);
    // 20 bytes per weight more than the 6 of the fused sum, at the memory bandwidth.
    let i = TrainingInput::default();
    let bytes = 20.0 * i.arch.params() * 16.0;
    let expected = bytes / (i.accelerator.mem_bw * c.memory_fraction);
    assert!((extra(128.0) / expected - 1.0).abs() < 0.02, "{} {expected}", extra(128.0));
}

#[test]
fn copies_of_sharded_weights_and_gradients_take_their_memory_traffic_in_every_micro_batch() {
    let c = Constants::default();
    let of = |shard_copies, sharding, global| {
        let software = Software { shard_copies, ..Software::default() };
        let i = TrainingInput { software, global, sharding, reduce_bytes: Some(4.0), ..TrainingInput::default() };
        estimate(&i, &c)
    };
    let extra = |copies, global| {
        of(copies, Sharding::Zero3, global).time.total() - of(ShardCopies::None, Sharding::Zero3, global).time.total()
    };
    let i = TrainingInput::default();
    // Eight ranks: one micro-batch, and four.
    for (copies, bytes) in [(ShardCopies::Gradients, 4.0), (ShardCopies::WeightsAndGradients, 14.0)] {
        let expected = bytes * i.arch.params() / (i.accelerator.mem_bw * c.memory_fraction);
        assert!((extra(copies, 8.0) / expected - 1.0).abs() < 0.05, "{copies:?} {} {expected}", extra(copies, 8.0));
        assert!((extra(copies, 32.0) / extra(copies, 8.0) - 4.0).abs() < 0.05, "{copies:?}");
        let replicated = [copies, ShardCopies::None].map(|copies| of(copies, Sharding::Zero1, 8.0).step_seconds);
        assert_eq!(replicated.first(), replicated.last(), "only ZeRO-3 copies");
    }
}

#[test]
fn copies_on_the_streams_of_collectives_extend_them_and_hide_like_them() {
    let c = Constants::default();
    let of = |shard_copies, overlap_data, reduced, global| {
        let software = Software { shard_copies, overlap_data, ..Software::default() };
        let i = TrainingInput {
            software,
            global,
            sharding: Sharding::Zero3,
            reduce_bytes: Some(reduced),
            ..TrainingInput::default()
        };
        estimate(&i, &c).time
    };
    let extra = |overlap, reduced, global| {
        let [with, without] =
            [ShardCopies::Buckets, ShardCopies::None].map(|copies| of(copies, overlap, reduced, global));
        assert_eq!(with.elementwise, without.elementwise);
        with.data_parallel - without.data_parallel
    };
    let i = TrainingInput::default();
    // Two gathers of 4 bytes each; gradients: 4 into the bucket, and two copies in the format of the reduction, to
    // which 16-bit gradients are converted.
    for (reduced, bytes) in [(2.0, 8.0 + 12.0), (4.0, 8.0 + 4.0 + 6.0 + 16.0)] {
        let expected = bytes * i.arch.params() / (i.accelerator.mem_bw * c.memory_fraction);
        assert!(
            (extra(false, reduced, 8.0) / expected - 1.0).abs() < 0.05,
            "{} {expected}",
            extra(false, reduced, 8.0)
        );
        assert!((extra(false, reduced, 32.0) / expected - 4.0).abs() < 0.2);
        assert!(extra(true, reduced, 8.0) < 0.5 * expected, "{} {expected}", extra(true, reduced, 8.0));
    }
}

#[test]
fn deferred_reduction_sends_gradients_once_per_step_and_holds_their_sums_on_every_rank() {
    let c = Constants::default();
    let of = |deferred_reduction, sharding, global| {
        let software = Software {
            deferred_reduction,
            overlap_data: false,
            shard_copies: ShardCopies::WeightsAndGradients,
            ..Software::default()
        };
        let i = TrainingInput { software, global, sharding, reduce_bytes: Some(4.0), ..TrainingInput::default() };
        estimate(&i, &c)
    };
    let i = TrainingInput::default();
    let params = i.arch.params();
    // Eight ranks, so two to four micro-batches.
    let traffic = |deferred, global| of(deferred, Sharding::Zero3, global).time.data_parallel;
    let each = traffic(false, 8.0);
    let reduction = traffic(false, 16.0) - traffic(true, 16.0);
    assert!(reduction > 0.0 && reduction < each);
    assert!((traffic(true, 32.0) - (4.0 * each - 3.0 * reduction)).abs() < 1e-9 * each);
    // In four micro-batches, sums take three times 10 bytes, and one copy of 8 instead of four of 6.
    let kernels = |deferred| of(deferred, Sharding::Zero3, 32.0).time.elementwise;
    let expected = (3.0 * 10.0 + 8.0 - 4.0 * 6.0) * params / (i.accelerator.mem_bw * c.memory_fraction);
    assert!(((kernels(true) - kernels(false)) / expected - 1.0).abs() < 0.05);
    for sharding in [Sharding::Zero2, Sharding::Zero3] {
        let [whole, sharded] = [true, false].map(|deferred| of(deferred, sharding, 32.0).memory);
        assert!((whole.gradients / (4.0 * params) - 1.0).abs() < 0.05, "{}", whole.gradients);
        assert!((sharded.gradients / whole.gradients - 1.0 / 8.0).abs() < 1e-9);
        assert_eq!(whole.weights, sharded.weights);
    }
}

#[test]
fn alternate_recomputation_repeats_every_second_product_of_a_layer() {
    let c = Constants::default();
    let of = |how, precision| {
        let i = TrainingInput {
            software: Software { selective_recompute: how, ..Software::default() },
            accelerator: Accelerator { mem_bytes: 1e15, ..TrainingInput::default().accelerator },
            recompute: Recompute::Selective,
            precision,
            ..TrainingInput::default()
        };
        (estimate(&i, &c).executed_flops_per_token, i.arch)
    };
    let again = |how, precision| of(how, precision).0 - of(SelectiveRecompute::AttentionCore, precision).0;
    let a = of(SelectiveRecompute::AttentionCore, Precision::Bf16).1;
    // Keys, attention's output and the up projection: the second, fourth and sixth of seven products.
    let even = a.hidden * (a.kv_heads * a.head_dim + a.q_width() + a.ffn) * a.layers;
    let found = again(SelectiveRecompute::Alternate16Bit, Precision::Bf16);
    assert!((found / (2.0 * even) - 1.0).abs() < 1e-6, "{found} {even}");
    // 8-bit products of older releases are all recomputed; later ones keep them.
    let all = a.hidden * (2.0 * a.q_width() + 2.0 * a.kv_heads * a.head_dim + 3.0 * a.ffn) * a.layers;
    let narrow = again(SelectiveRecompute::Alternate16Bit, Precision::Fp8);
    assert!((narrow / (2.0 * all) - 1.0).abs() < 1e-6, "{narrow} {all}");
    assert_eq!(again(SelectiveRecompute::AlternateDense, Precision::Fp8), 0.0);
}

#[test]
fn narrow_experts_have_slower_gemms_at_equal_flops() {
    let c = Constants::default();
    let seconds = |experts, top_k, moe_ffn| {
        let [experts, top_k, moe_ffn] = [experts, top_k, moe_ffn].map(Count::new);
        let arch = Architecture { experts, top_k, moe_ffn, ..Architecture::default() };
        let i = TrainingInput { arch, ep: Count::new(8), recompute: Recompute::None, ..TrainingInput::default() };
        estimate(&i, &c).time.gemm
    };
    // The same weights and FLOPs, in four times as many experts.
    let (wide, narrow) = (seconds(16, 2, 4096), seconds(64, 8, 1024));
    assert!(narrow > 1.1 * wide, "{narrow} {wide}");
}

/// Sets one input of an estimate to one of a few values.
fn change(i: &mut TrainingInput, c: &mut Constants, what: usize, by: f64) {
    let few = 1.0 + by;
    let many = (3.0 * by).exp2();
    let ranks: [&mut Count; 10] = [
        &mut i.dp,
        &mut i.tp,
        &mut i.pp,
        &mut i.vpp,
        &mut i.cp,
        &mut i.ep,
        &mut i.etp,
        &mut i.arch.layers,
        &mut i.arch.hidden,
        &mut i.arch.ffn,
    ];
    let slots: [&mut f64; 14] = [
        &mut i.global,
        &mut i.micro,
        &mut i.seq,
        &mut i.accelerators,
        &mut i.domain,
        &mut i.imbalance,
        &mut i.oversubscription,
        &mut i.trained,
        &mut i.grad_bytes,
        &mut i.optimizer_bytes,
        &mut i.offload.optimizer,
        &mut i.offload.activations,
        &mut c.kernel_gap,
        &mut c.nic_fraction,
    ];
    match what {
        0..3 => *slots[what] = many,
        3..7 => *slots[what] = few,
        7..12 => *slots[what] = by / 4.0,
        12..14 => *slots[what] *= (by - 1.5).exp2(),
        14 => *ranks[0] = Count::floor(many),
        15..21 => *ranks[what - 14] = Count::floor(few),
        21..24 => *ranks[what - 14] = Count::floor(*ranks[what - 14] * (by - 1.5).exp2()),
        24 => i.accelerator.mem_bytes = 16e9 * many,
        25 => i.accelerator.mem_bw *= (by - 1.5).exp2(),
        26 => i.accelerator.nic_bw *= (by - 1.5).exp2(),
        27 => i.sharding = [Sharding::None, Sharding::Zero1, Sharding::Zero2, Sharding::Zero3][by as usize],
        28 => i.recompute = [Recompute::None, Recompute::Selective, Recompute::Full, Recompute::Auto][by as usize],
        29 => i.schedule = if by > 1.0 { Schedule::ZeroBubble } else { Schedule::OneForwardOneBackward },
        30 => i.precision = if by > 1.0 { Precision::Fp8 } else { Precision::Bf16 },
        31 => i.sequence_parallel = by > 1.0,
        32 => i.software.fused_attention = by > 1.0,
        33 => (i.software.overlap_data, i.software.overlap_parameters) = (by > 1.0, by > 1.5),
        34 => i.accelerator.generation = if by > 1.0 { Generation::Ampere } else { Generation::Hopper },
        35 => i.shard = (by > 0.0).then_some(Count::floor(few)),
        _ => {
            i.software.selective_recompute =
                if by > 1.0 { SelectiveRecompute::AlternateProducts } else { SelectiveRecompute::AttentionCore };
        }
    }
}

proptest! {
    /// Every supported run has a positive throughput and uses at most all of the hardware.
    #[test]
    fn supported_inputs_have_hfu_of_at_most_one(
        i in recompute::scenario(),
        precision in 0usize..9,
        lacks in prop::collection::vec(any::<bool>(), 9),
        long in any::<bool>(),
        // int8 GEMMs are slower than 16-bit GEMMs on some hardware.
        integers in prop::sample::select(vec![624e12, 30e12]),
        grad_bytes in prop::sample::select(vec![0.5, 0.75, 1.0, 2.0, 4.0]),
    ) {
        let all = [
            Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16, Precision::Fp8, Precision::Int8,
            Precision::Fp6, Precision::Fp4, Precision::Int4,
        ];
        let mut i = TrainingInput { precision: all[precision], grad_bytes, ..i };
        i.accelerator.flops = [60e12, 150e12, 312e12, 312e12, 624e12, integers, 624e12, 1248e12, 1248e12];
        for (rate, lacks) in i.accelerator.flops.iter_mut().zip(lacks) {
            *rate = if lacks { 0.0 } else { *rate };
        }
        if long {
            (i.seq, i.recompute) = (131_072.0, Recompute::Full);
        }
        if supported(&i).is_ok() {
            let e = estimate(&i, &Constants::default());
            prop_assert!(e.tokens_per_second > 1.0 && e.mfu_causal > 1e-6, "{e:?}");
            prop_assert!(e.mfu_causal <= e.hfu + 1e-12 && e.hfu <= 1.0, "{e:?}");
            prop_assert!(e.time.values().iter().all(|seconds| *seconds >= 0.0), "{e:?}");
        }
    }

    /// A memo does not change any estimate, bit for bit, whatever is changed between two estimates.
    #[test]
    fn memoized_estimate_equals_the_direct_estimate(start in 0usize..8, changes in prop::collection::vec((0usize..37, 0u8..4), 1..40)) {
        let mut i = scenarios()[start];
        let (mut c, mut memo) = (Constants::default(), Memo::default());
        for (what, by) in changes {
            change(&mut i, &mut c, what, f64::from(by));
            // Also a similar input with a fuller last micro-batch, and one with a different number of micro-batches.
            for global in [i.global, i.global + 1.0, 2.0 * i.global] {
                let input = TrainingInput { global, ..i };
                // The debug format has enough digits to identify a float.
                let one = format!("{:?}", estimate(&input, &c));
                prop_assert_eq!(one, format!("{:?}", memoized(&input, &c, Some(&mut memo))));
            }
        }
    }
}

#[test]
fn step_time_is_equal_for_batches_with_equal_micro_batch_count() {
    let (c, mut memo) = (Constants::default(), Memo::default());
    let base = TrainingInput { dp: Count::new(8), micro: 2.0, ..TrainingInput::default() };
    let mut rate = |global| memoized(&TrainingInput { global, ..base }, &c, Some(&mut memo)).tokens_per_second;
    // A micro-batch of each rank holds sixteen sequences; filling it up takes no longer.
    let (some, full, more) = (rate(17.0), rate(32.0), rate(33.0));
    assert!((full / some / (32.0 / 17.0) - 1.0).abs() < 1e-12, "{full} {some}");
    assert!(more < full);
}
