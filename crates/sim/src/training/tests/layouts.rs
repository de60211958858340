//! Comparison with the closed form: pipelines entered from both ends, multi-token prediction layers, and kinds of
//! context parallelism.

use super::super::schedule::orders;
use super::*;
use atlas_core::count::Count;
use atlas_perf::training::ContextExchange;
use atlas_perf::training::pipeline::in_flight;

/// Largest difference between closed form and simulation over `systems`.
fn worst(systems: &[TrainingInput]) -> (f64, String) {
    let off = |system: &TrainingInput| {
        let off = even_step(system) / run_of(system).step.mean - 1.0;
        (off, format!("{:?} pp {} m {}: {off:+.3}", system.schedule, system.pp, system.micro_batches()))
    };
    systems.iter().map(off).fold((0.0, String::new()), |a, b| if b.0.abs() > a.0.abs() { b } else { a })
}

fn from_both_ends(pp: f64, m: f64, base: TrainingInput) -> TrainingInput {
    let accelerators = base.tp * base.cp * pp;
    TrainingInput {
        schedule: Schedule::DualPipe,
        pp: Count::floor(pp),
        dp: Count::ONE,
        global: m,
        accelerators,
        ..base
    }
}

#[test]
fn bidirectional_pipelines_match_the_closed_form() {
    let experts = TrainingInput { arch: mixture(), tp: Count::new(2), seq: 4096.0, ..pipelined() };
    let mut systems = Vec::new();
    for base in [pipelined(), experts] {
        for (pp, m) in [(2.0, 4.0), (2.0, 32.0), (4.0, 8.0), (4.0, 32.0), (8.0, 16.0), (8.0, 40.0), (16.0, 64.0)] {
            systems.push(from_both_ends(pp, m, base));
        }
    }
    let (off, at) = worst(&systems);
    println!("largest deviation {at}");
    assert!(off.abs() < 0.05, "{at}");
}

#[test]
fn bidirectional_pipelines_run_every_pass_once_and_in_order() {
    for (pp, m) in [(2.0, 4.0), (4.0, 8.0), (8.0, 16.0), (8.0, 30.0), (16.0, 64.0)] {
        let system = from_both_ends(pp, m, pipelined());
        for (stage, order) in orders(&system, m as u32, 0.0).into_iter().enumerate() {
            assert_eq!(order.len() as f64, 3.0 * m, "{pp} {m} {stage}");
            let mut flying = [0_i32; 2];
            for pass in &order {
                flying[pass.chunk as usize] += match pass.kind {
                    PassKind::Forward => 1,
                    PassKind::Weights => -1,
                    PassKind::Backward => 0,
                };
                // Table 2 of arXiv 2412.19437: pp + 1 micro-batches together.
                let limits = [stage as f64, pp - 1.0 - stage as f64].map(|stage| in_flight(&system, stage));
                let within = flying.iter().zip(limits).all(|(flying, limit)| f64::from(*flying) <= limit);
                assert!(within && limits.iter().sum::<f64>() <= pp + 1.0, "{pp} {m} {stage}: {flying:?}");
                let at = |kind| order.iter().position(|p| (p.kind, p.micro, p.chunk) == (kind, pass.micro, pass.chunk));
                assert!(
                    at(PassKind::Forward) < at(PassKind::Backward) && at(PassKind::Backward) < at(PassKind::Weights)
                );
            }
        }
    }
}

#[test]
fn multi_token_prediction_matches_the_closed_form() {
    let systems = [1, 2, 3].map(Count::new).map(|mtp_layers| TrainingInput { mtp_layers, ..pipelined() });
    let (off, at) = worst(&systems);
    assert!(off.abs() < 0.05, "{at}");
    let alone = TrainingInput { mtp_layers: Count::ONE, recompute: Recompute::Selective, ..TrainingInput::default() };
    assert!(worst(&[alone]).0.abs() < 0.05);
}

#[test]
fn layers_in_16_bit_match_the_closed_form() {
    let mut accelerator = Accelerator::default();
    accelerator.flops[Precision::Fp8 as usize] = 2.0 * accelerator.peak(Precision::Bf16);
    let narrow = TrainingInput { accelerator, precision: Precision::Fp8, ..pipelined() };
    let alone = TrainingInput {
        accelerator,
        precision: Precision::Fp8,
        recompute: Recompute::Selective,
        ..TrainingInput::default()
    };
    for base in [narrow, TrainingInput { vpp: Count::new(5), ..narrow }, alone] {
        let systems = [0, 1, 8, 40, 80].map(|layers| TrainingInput { bf16_layers: Count::new(layers), ..base });
        let (off, at) = worst(&systems);
        assert!(off.abs() < 0.05, "{at}");
        let steps = systems.map(|system| run_of(&system).step.mean);
        assert!(steps.is_sorted() && steps[3] > 1.05 * steps[0], "{steps:?}");
        let wide = run_of(&TrainingInput { precision: Precision::Bf16, ..base }).step.mean;
        assert!((steps[4] / wide - 1.0).abs() < 1e-6, "{} {wide}", steps[4]);
    }
}

#[test]
fn context_exchanges_match_the_closed_form() {
    for context_exchange in [ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll] {
        for (cp, seq) in [(2, 16_384.0), (4, 32_768.0), (8, 131_072.0)] {
            let accelerators = f64::from(cp);
            let base = TrainingInput { tp: Count::ONE, recompute: Recompute::Full, ..TrainingInput::default() };
            let system = TrainingInput {
                cp: Count::new(cp),
                seq,
                context_exchange,
                dp: Count::ONE,
                accelerators,
                global: 8.0,
                ..base
            };
            let (off, at) = worst(&[system]);
            assert!(off.abs() < 0.05, "{context_exchange:?} {cp}: {at}");
        }
    }
}

#[test]
fn sum_of_shared_embeddings_matches_the_closed_form() {
    let base = pipelined();
    let arch = Architecture { vocab: Count::new(256_000), tied: true, ..base.arch };
    let system = TrainingInput { arch, ..base };
    let shared = Costs::of(&system, &Constants::default()).shared_embedding;
    let run = run_of(&system);
    assert!(shared > 0.0 && (even_step(&system) / run.step.mean - 1.0).abs() < 0.05);
    let untied = TrainingInput { arch: Architecture { tied: false, ..arch }, ..base };
    let added = run.step.mean - run_of(&untied).step.mean;
    assert!((added / shared - 1.0).abs() < 0.05, "{added} {shared}");
}
