//! Recomputation is planned with the same bound on memory that determines whether a run fits.

use super::*;
use crate::training::memory::PeakStages;

fn arch(layers: Count, hidden: Count, experts: Option<(Count, Count)>) -> Architecture {
    let dense = Architecture {
        layers,
        hidden,
        heads: Count::floor(hidden / 128.0),
        kv_heads: Count::new(8),
        ffn: Count::floor(3.5 * hidden),
        vocab: Count::new(128_256),
        ..Architecture::default()
    };
    match experts {
        None => dense,
        Some((experts, top_k)) => {
            let moe_ffn = Count::floor(3.5 * hidden / top_k);
            Architecture { experts, top_k, moe_ffn, dense_layers: Count::ONE, ..dense }
        }
    }
}

/// Sets device memory between the minimum and maximum that the run needs, so that some layers are recomputed.
fn on_the_edge(i: TrainingInput, between: f64) -> TrainingInput {
    let c = Constants::default();
    let ends = PeakStages::of(&i, &c);
    let [least, most] = [Plan::FULL, Plan::NONE].map(|plan| ends.under(&plan).upper(&c));
    let bytes = least + between * (most - least);
    let mut accelerator = i.accelerator;
    accelerator.mem_bytes *= bytes / accelerator.capacity();
    TrainingInput { accelerator, ..i }
}

pub(super) fn scenario() -> impl Strategy<Value = TrainingInput> {
    let shape = (
        prop::sample::select([40, 32, 61, 80, 126].map(Count::new).to_vec()),
        prop::sample::select([4096, 8192].map(Count::new).to_vec()),
        prop::option::of(prop::sample::select(
            [(8, 2), (64, 6), (128, 8)].map(|(experts, top_k)| (Count::new(experts), Count::new(top_k))).to_vec(),
        )),
    );
    let layout = (
        prop::sample::select([1, 2, 8].map(Count::new).to_vec()),
        prop::sample::select(
            [(1, 1), (2, 1), (4, 2), (8, 1), (4, 3)].map(|(pp, vpp)| (Count::new(pp), Count::new(vpp))).to_vec(),
        ),
        prop::sample::select([1, 2].map(Count::new).to_vec()),
        prop::sample::select(vec![Sharding::None, Sharding::Zero1, Sharding::Zero3]),
        prop::sample::select(vec![Recompute::Auto, Recompute::Selective]),
    );
    let batch = (1024.0..16_384.0f64, prop::sample::select(vec![1.0, 2.0, 4.0]), 2u32..8);
    let software = (any::<bool>(), any::<bool>());
    (shape, layout, batch, software, 0.01..1.0f64).prop_map(
        |(shape, (tp, (pp, vpp), cp, sharding, recompute), (seq, micro, groups), (fused, alternate), between)| {
            let dp = Count::new(8);
            on_the_edge(
                TrainingInput {
                    arch: arch(shape.0, shape.1, shape.2),
                    accelerators: tp * pp * cp * dp,
                    seq: seq.round(),
                    micro,
                    global: dp * micro * pp * f64::from(groups),
                    tp,
                    pp,
                    vpp,
                    cp,
                    dp,
                    ep: if shape.2.is_some() { Count::new(8) } else { Count::ONE },
                    sequence_parallel: tp > 1.0,
                    sharding,
                    recompute,
                    software: Software {
                        fused_attention: fused,
                        selective_recompute: if alternate {
                            SelectiveRecompute::AlternateProducts
                        } else {
                            SelectiveRecompute::AttentionCore
                        },
                        ..Software::default()
                    },
                    ..TrainingInput::default()
                },
                between,
            )
        },
    )
}

/// Time per token, and time per token without a memory limit, s.
fn per_token(i: &TrainingInput) -> (f64, f64) {
    let c = Constants::default();
    let seconds = |e: TrainingEstimate| e.step_seconds / (i.global * i.seq);
    (seconds(estimate(i, &c)), seconds(estimate_with_plan(i, &c, Plan::of(i.recompute))))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, max_global_rejects: 1_000_000, ..ProptestConfig::default() })]

    /// A few percent more activations cost a few percent more time, regardless of the memory size.
    ///
    /// If activations are a fifth of memory, `x` more of them require recomputing `5x` more layers.
    #[test]
    fn step_time_has_no_jump_over_ten_percent_at_the_memory_limit(i in scenario(), ratio in 1.01..1.05f64) {
        let ends = [Plan::FULL, Plan::NONE].map(|plan| estimate_with_plan(&i, &Constants::default(), plan).memory_upper);
        prop_assume!(ends[1] > 1.25 * ends[0]);
        let (here, plain) = per_token(&i);
        let longer = TrainingInput { seq: (i.seq * ratio).round(), ..i };
        let wider = TrainingInput { micro: i.micro * ratio, global: i.global * ratio, ..i };
        let more = TrainingInput { global: i.global + i.dp * i.micro * i.pp, ..i };
        for next in [longer, wider, more] {
            if !estimate(&next, &Constants::default()).fits {
                continue;
            }
            let (there, plain_there) = per_token(&next);
            // Without the direct effect of longer attention or a shorter bubble.
            let by_memory = (there / here) / (plain_there / plain);
            prop_assert!((by_memory - 1.0).abs() < 0.1, "{by_memory} {:?}", estimate(&next, &Constants::default()).recompute);
        }
    }

    /// A planned run fits by the bound, if any plan does, and uses the memory that the bound allows.
    #[test]
    fn plans_fill_memory_up_to_the_bound(i in scenario()) {
        let c = Constants::default();
        let e = estimate(&i, &c);
        prop_assert!(e.fits, "{} of {}", e.memory_upper, i.accelerator.capacity());
        prop_assert!((e.memory.upper(&c) - e.memory_upper).abs() < 1.0);
        let recomputes = e.recompute != Plan::of(i.recompute);
        prop_assert!(!recomputes || e.memory_upper > 0.999 * i.accelerator.capacity(), "{e:?}");
    }
}

#[test]
fn a_longer_sequence_recomputes_a_few_more_layers_not_all() {
    // 8B on one node of 80 GB devices, fully sharded: full recomputation at 14,336 tokens would use only half of the
    // memory.
    let c = Constants::default();
    let arch = arch(Count::new(32), Count::new(4096), None);
    let at = |seq| {
        let i = TrainingInput { arch, sharding: Sharding::Zero3, seq, global: 64.0, ..TrainingInput::default() };
        estimate(&i, &c)
    };
    let (shorter, longer) = (at(12_288.0), at(14_336.0));
    assert!(longer.tokens_per_second > 0.93 * shorter.tokens_per_second);
    assert!(longer.fits && longer.recompute.full_share < 0.2 && longer.memory_upper > 80e9);
}

#[test]
fn stated_layers_are_recomputed_in_full_and_no_others() {
    let c = Constants::default();
    let base = TrainingInput { recompute: Recompute::None, ..TrainingInput::default() };
    let at = |recompute, layers| estimate(&TrainingInput { recompute, recompute_layers: Some(layers), ..base }, &c);
    let (layers, depth) = (base.arch.layers, base.arch.depth());
    let (none, full) = (estimate(&base, &c), estimate(&TrainingInput { recompute: Recompute::Full, ..base }, &c));
    let seconds = |layers| at(Recompute::Full, layers).step_seconds;
    assert_eq!(seconds(Count::ZERO), none.step_seconds);
    assert!((seconds(layers) / full.step_seconds - 1.0).abs() < 1e-12);
    // Each layer costs the same time and frees the same memory.
    let half = at(Recompute::None, Count::floor(depth / 2.0));
    assert!(
        (2.0 * (half.step_seconds - none.step_seconds) / (full.step_seconds - none.step_seconds) - 1.0).abs() < 0.01
    );
    assert!((2.0 * half.memory.activations / (none.memory.activations + full.memory.activations) - 1.0).abs() < 1e-9);
    assert_eq!(half.recompute.full_share * depth, depth / 2.0);
    assert_eq!(half.recompute.mode, Recompute::None);
    // The other layers recompute cheap operators if selective recomputation is requested.
    let selective = at(Recompute::Selective, Count::floor(depth / 2.0));
    assert!(selective.memory.activations < half.memory.activations && selective.step_seconds > half.step_seconds);
    // A stated number is used regardless of whether it fits.
    let mut small = TrainingInput { recompute_layers: Some(Count::new(3)), seq: 65_536.0, ..base };
    small.accelerator.mem_bytes = 40e9;
    let e = estimate(&small, &c);
    assert!(!e.fits && (e.recompute.full_share * depth - 3.0).abs() < 1e-12);
}

#[test]
fn layers_that_are_not_stated_follow_the_requested_recomputation() {
    let c = Constants::default();
    let arch = arch(Count::new(32), Count::new(4096), None);
    let base =
        TrainingInput { arch, sharding: Sharding::Zero3, seq: 16_384.0, global: 64.0, ..TrainingInput::default() };
    let base = on_the_edge(base, 0.1);
    for recompute in [Recompute::Auto, Recompute::Selective] {
        let at = |layers: Option<u32>| {
            estimate(&TrainingInput { recompute, recompute_layers: layers.map(Count::new), ..base }, &c)
        };
        let planned = at(None);
        assert!(
            planned.fits && planned.recompute.full_share > 0.0 && planned.recompute.full_share < 0.9,
            "{planned:?}"
        );
        assert_eq!(at(Some(0)), planned);
        for layers in [1, 2, 31, 32] {
            let stated = at(Some(layers));
            assert!(stated.fits && stated.recompute.full_share * 32.0 > f64::from(layers) - 1e-9, "{layers}");
        }
        // Few layers of those that memory requires anyway.
        assert!((at(Some(1)).step_seconds / planned.step_seconds - 1.0).abs() < 0.01);
    }
}
