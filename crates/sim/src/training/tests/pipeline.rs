//! Comparison with the closed form: uneven stages, few micro-batches.

use super::*;
use atlas_core::count::Count;

/// Llama 3.1 405B in its published layout (arXiv 2407.21783, section 3.3.2): one layer per chunk, none in the end
/// chunks.
fn empty_ends() -> TrainingInput {
    let arch = Architecture {
        layers: Count::new(126),
        hidden: Count::new(16_384),
        heads: Count::new(128),
        ffn: Count::new(53_248),
        ..llama_70b()
    };
    TrainingInput {
        arch,
        accelerators: 1024.0,
        dp: Count::new(8),
        pp: Count::new(16),
        vpp: Count::new(8),
        global: 256.0,
        ..pipelined()
    }
}

#[test]
fn empty_end_chunks_take_no_time_besides_the_output_layer() {
    let system = empty_ends();
    let costs = Costs::of(&system, &Constants::default());
    let (first, second, last) = (&costs.chunks[0], &costs.chunks[1], &costs.chunks[127]);
    assert_eq!((first.forward.seconds, first.backward.seconds), (0.0, 0.0));
    assert!(second.forward.seconds > 0.0 && last.forward.head > 0.999 && last.forward.seconds > 0.0);
    let off = run_of(&system).step.mean / even_step(&system) - 1.0;
    assert!(off.abs() < 0.05, "{off}");
    // The inner stages have one layer more than the first stage, which has the embedding instead.
    let memory = estimate(&system, &Constants::default()).memory;
    assert!(memory.logits == 0.0 && memory.total() > 0.0);
}

#[test]
fn stated_end_stage_layers_set_stage_times() {
    let stated = |first, last| TrainingInput { first_layers: Some(first), last_layers: Some(last), ..pipelined() };
    for (first, last) in [(20, 20), (22, 16), (14, 12)] {
        let (first, last) = (Count::new(first), Count::new(last));
        let system = stated(first, last);
        let costs = Costs::of(&system, &Constants::default());
        let ratio = costs.chunks[0].forward.compute / costs.chunks[1].forward.compute;
        assert!((ratio / (first / ((80.0 - first - last) / 2.0)) - 1.0).abs() < 1e-9);
        let off = run_of(&system).step.mean / even_step(&system) - 1.0;
        assert!(off.abs() < 0.05, "{first} {last}: {off}");
    }
    // A shorter last stage compensates for the output layer.
    assert!(run_of(&stated(Count::new(20), Count::new(18))).step.mean < run_of(&pipelined()).step.mean);
}

/// Last of several steps: if stages continue without waiting for each other, only the first step fills an empty
/// pipeline.
fn settled_step(system: &TrainingInput) -> f64 {
    let input = Input { steps: 4, recorded: None, ..Input::of(system, &Constants::default()) };
    *simulate(&input, 1, &Progress::new()).unwrap().steps.last().unwrap()
}

#[test]
fn few_micro_batches_match_the_closed_form() {
    let gpt = Architecture {
        layers: Count::new(96),
        hidden: Count::new(12_288),
        heads: Count::new(96),
        kv_heads: Count::new(96),
        ffn: Count::new(49_152),
        gated: false,
        tied: true,
        vocab: Count::new(51_200),
        ..Architecture::default()
    };
    let small = Architecture { vocab: Count::new(128_256), ..Architecture::default() };
    let schedules =
        [Schedule::OneForwardOneBackward, Schedule::AllForward, Schedule::ZeroBubble1p, Schedule::ZeroBubble];
    let mut worst = (0.0f64, String::new());
    for (arch, tp, seq) in [(gpt, 8, 2048.0), (llama_70b(), 8, 8192.0), (small, 1, 4096.0), (mixture(), 2, 4096.0)] {
        let tp = Count::new(tp);
        for schedule in schedules {
            for pp in [2, 4, 8, 16].map(Count::new) {
                for m in [1.0, 2.0, 3.0, 4.0, 7.0, 8.0, 12.0, 16.0, 24.0, 40.0] {
                    let system = TrainingInput {
                        arch,
                        seq,
                        tp,
                        pp,
                        dp: Count::ONE,
                        accelerators: tp * pp,
                        global: m,
                        schedule,
                        recompute: Recompute::Selective,
                        ..pipelined()
                    };
                    let off = even_step(&system) / settled_step(&system) - 1.0;
                    if off.abs() > worst.0 {
                        worst = (
                            off.abs(),
                            format!("{schedule:?} pp {pp} m {m} {} layers: {:+.2} %", arch.layers, 100.0 * off),
                        );
                    }
                    assert!(off.abs() < 0.05, "{schedule:?} pp {pp} m {m} {}: {off}", arch.layers);
                }
            }
        }
    }
    println!("largest deviation {}", worst.1);
}

#[test]
fn interleaved_schedules_agree_with_the_closed_form() {
    for schedule in [Schedule::OneForwardOneBackward, Schedule::AllForward, Schedule::ZeroBubble] {
        for (pp, vpp) in [(2, 2), (4, 5), (8, 2)] {
            let (pp, vpp) = (Count::new(pp), Count::new(vpp));
            for m in [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 40.0] {
                // Software does not support these, see `Unsupported`.
                if schedule.splits_backward() && m % pp > 0.0 {
                    continue;
                }
                let base = TrainingInput { dp: Count::ONE, accelerators: 8.0 * pp, ..pipelined() };
                let system = TrainingInput { pp, vpp, schedule, global: m, ..base };
                let off = even_step(&system) / settled_step(&system) - 1.0;
                assert!(off.abs() < 0.05, "{schedule:?} pp {pp} vpp {vpp} m {m}: {off}");
            }
        }
    }
}

/// Stages whose weights are copied from the host beside the layers before, at `link_bw` bytes/s.
fn offloaded_stages(vpp: u32, link_bw: f64) -> TrainingInput {
    let offload = Offload { weights: 1.0, optimizer: 1.0, link_bw: Some(link_bw), ..Offload::default() };
    TrainingInput { offload, vpp: Count::new(vpp), recompute: Recompute::None, ..pipelined() }
}

#[test]
fn copies_from_the_host_hide_behind_the_layer_before_them_whatever_the_chunks() {
    for link_bw in [4e9, 16e9, 32e9, 64e9] {
        let mut last = f64::INFINITY;
        for vpp in [1, 5, 20] {
            let system = offloaded_stages(vpp, link_bw);
            let (found, closed) = (run_of(&system).step.mean, even_step(&system));
            assert!((found / closed - 1.0).abs() < 0.03, "{vpp} {link_bw:e}: {found} against {closed}");
            assert!(found <= last, "{vpp} {link_bw:e}: {found} after {last}");
            last = found;
        }
    }
}

#[test]
fn hosts_that_delay_layers_do_not_delay_the_output_layer() {
    for (last, seq, vocab) in [(8, 256.0, 128_256), (2, 256.0, 128_256), (2, 512.0, 128_256), (2, 256.0, 256_000)] {
        let base = TrainingInput { micro: 1.0, seq, global: 64.0, ..pipelined() };
        let arch = Architecture {
            layers: Count::new(32),
            vocab: Count::new(vocab),
            hidden: Count::new(2048),
            ffn: Count::new(4096),
            heads: Count::new(16),
            ..base.arch
        };
        let one = TrainingInput { tp: Count::ONE, dp: Count::ONE, accelerators: 4.0, sequence_parallel: false, ..base };
        let system = TrainingInput { arch, last_layers: Some(Count::new(last)), ..one };
        let e = estimate(&system, &Constants::default());
        let (found, closed) = (run_of(&system).step.mean, e.step_seconds);
        let [other, end] = e.micro_batch.host_ratios;
        assert!(other > 1.3 * end && (found / closed - 1.0).abs() < 0.01, "{last} {seq}: {found} against {closed}");
    }
}
