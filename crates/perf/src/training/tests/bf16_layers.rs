//! Layers computed in 16 bit while the others use a narrower format.

use super::*;

/// Jobs in 8 bit, with an accelerator whose 8-bit and 4-bit units are two and four times as fast as its 16-bit units.
fn narrow_jobs() -> Vec<TrainingInput> {
    let mut accelerator = Accelerator::default();
    let bf16 = accelerator.peak(Precision::Bf16);
    accelerator.flops[Precision::Fp8 as usize] = 2.0 * bf16;
    accelerator.flops[Precision::Fp4 as usize] = 4.0 * bf16;
    let one = TrainingInput { accelerator, precision: Precision::Fp8, ..TrainingInput::default() };
    let stages = TrainingInput {
        arch: llama_70b(),
        accelerators: 128.0,
        tp: Count::new(8),
        pp: Count::new(4),
        dp: Count::new(4),
        sequence_parallel: true,
        ..one
    };
    let experts = TrainingInput { arch: mixtral(), ep: Count::new(8), ..one };
    let mut jobs = Vec::new();
    for recompute in [Recompute::None, Recompute::Selective, Recompute::Full] {
        for job in [
            one,
            stages,
            experts,
            TrainingInput { vpp: Count::new(5), ..stages },
            TrainingInput { precision: Precision::Fp4, ..stages },
            TrainingInput { mtp_layers: Count::ONE, ..stages },
            TrainingInput { schedule: Schedule::DualPipe, ..stages },
            TrainingInput { schedule: Schedule::ZeroBubble, ..stages },
        ] {
            jobs.push(TrainingInput { recompute, ..job });
        }
    }
    jobs
}

#[test]
fn more_layers_in_16_bit_never_make_a_step_faster() {
    let c = Constants::default();
    for job in narrow_jobs() {
        let mut before = estimate(&job, &c);
        let depth = job.arch.layers.get();
        for layers in [1, 2, 8, depth / 2, depth - 1, depth, depth + 9] {
            let now = estimate(&TrainingInput { bf16_layers: Count::new(layers), ..job }, &c);
            assert!(now.step_seconds >= before.step_seconds * (1.0 - 1e-12), "{layers} {job:?}");
            before = now;
        }
    }
}

#[test]
fn all_layers_in_16_bit_take_as_long_as_a_16_bit_run() {
    let c = Constants::default();
    for job in narrow_jobs().into_iter().filter(|job| job.mtp_layers == Count::ZERO) {
        let all = estimate(&TrainingInput { bf16_layers: job.arch.layers, ..job }, &c);
        let wide = estimate(&TrainingInput { precision: Precision::Bf16, ..job }, &c);
        for (all, wide) in [
            (all.step_seconds, wide.step_seconds),
            (all.memory.total(), wide.memory.total()),
            (all.time.recompute, wide.time.recompute),
            (all.time.pipeline_bubble, wide.time.pipeline_bubble),
            (all.tokens_per_second, wide.tokens_per_second),
        ] {
            assert!((all - wide).abs() <= 1e-9 * wide.abs(), "{all} {wide} {job:?}");
        }
        assert!(wide.step_seconds > estimate(&job, &c).step_seconds, "{job:?}");
    }
}

#[test]
fn layers_in_16_bit_slow_the_outer_stages_so_that_others_wait() {
    let c = Constants::default();
    let stages = narrow_jobs()[1];
    let of = |bf16_layers| estimate(&TrainingInput { bf16_layers: Count::new(bf16_layers), ..stages }, &c);
    let (none, some, all) = (of(0), of(40), of(80));
    // Half of the layers, but all those of the first and the last stage, of which the last one is the slowest.
    assert!((some.time.gemm / all.time.gemm - 1.0).abs() < 1e-9, "{} {}", some.time.gemm, all.time.gemm);
    assert!(some.time.pipeline_bubble < all.time.pipeline_bubble);
    assert!(none.time.gemm < some.time.gemm);
    // In a pipeline of one stage, half of the layers take half of the additional time.
    let one = narrow_jobs()[0];
    let of = |layers| estimate(&TrainingInput { bf16_layers: Count::new(layers), ..one }, &c).time.gemm;
    let depth = one.arch.layers.get();
    let half = (of(depth / 2) - of(0)) / (of(depth) - of(0));
    assert!((half - 0.5).abs() < 1e-9, "{half}");
}

#[test]
fn layers_in_16_bit_change_nothing_with_16_bit_formats() {
    let c = Constants::default();
    for precision in [Precision::Bf16, Precision::Fp16, Precision::Tf32] {
        let job = TrainingInput { precision, ..TrainingInput::default() };
        assert_eq!(estimate(&TrainingInput { bf16_layers: Count::new(8), ..job }, &c), estimate(&job, &c));
    }
}
