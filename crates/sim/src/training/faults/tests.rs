//! Comparison with Daly's exact expectation, and invariants of any run.
#![allow(clippy::unwrap_used)]

use super::*;

const HOUR: f64 = 3600.0;

/// 16,384 accelerators in 2,048 nodes, with a failure about every three hours (Llama 3: 419 in 54 days, arXiv
/// 2407.21783).
fn llama() -> Input {
    Input {
        work: 20.0 * 24.0 * HOUR,
        nodes: 2048,
        node_mtbf: 2048.0 * 3.1 * HOUR,
        interval: 0.5 * HOUR,
        checkpoint: 60.0,
        flush: 0.0,
        detection: 120.0,
        restart: 480.0,
        spares: u32::MAX,
        repair: Distribution::Exponential { mean: 24.0 * HOUR },
    }
}

fn course(input: &Input, seed: u64) -> Output {
    simulate(input, seed, &Progress::new()).unwrap()
}

#[test]
fn wall_time_matches_daly() {
    for interval in [0.1, 0.5, 2.0] {
        for (checkpoint, restart) in [(60.0, 480.0), (600.0, 3000.0)] {
            let input = Input { interval: interval * HOUR, checkpoint, restart, ..llama() };
            let [wall] = replicate(1, 30, 0.999, |seed| [course(&input, seed).wall]);
            // The run ends without a last checkpoint and begins without a restart: a difference of less than one
            // interval.
            let slack = checkpoint + restart + input.detection;
            let off = (wall.mean - input.daly_wall()).abs();
            assert!(off <= wall.half_width + slack, "{interval} {checkpoint}: {wall:?} {}", input.daly_wall());
            assert!(wall.half_width < 0.1 * wall.mean);
        }
    }
}

#[test]
fn best_checkpoint_interval_is_within_2x_of_daly() {
    let (choices, best) = best_interval(&llama(), 5, 12, &Progress::new()).unwrap();
    let best = best.unwrap();
    println!(
        "best {:.0} s, Young {:.0} s, Daly {:.0} s, goodput {:.4}",
        best.interval,
        llama().young_interval(),
        llama().daly_interval(),
        best.goodput.mean
    );
    assert_eq!(choices.len(), 17);
    assert!((0.5..2.0).contains(&(best.interval / llama().daly_interval())), "{best:?} {}", llama().daly_interval());
    assert!(choices.first().unwrap().goodput.mean < best.goodput.mean - 0.01);
    assert!(choices.last().unwrap().goodput.mean < best.goodput.mean - 0.01);
}

#[test]
fn wall_time_is_the_sum_of_its_parts() {
    for input in [
        llama(),
        Input { spares: 2, repair: Distribution::Constant(8.0 * HOUR), ..llama() },
        Input { flush: 300.0, checkpoint: 5.0, ..llama() },
        Input { node_mtbf: f64::INFINITY, ..llama() },
    ] {
        let o = course(&input, 3);
        assert!(!o.unfinished);
        let sum = o.work + o.lost + o.checkpoints + o.restarts + o.waiting_for_repair;
        assert!((sum / o.wall - 1.0).abs() < 1e-9, "{o:?}");
        assert!((o.goodput - o.work / o.wall).abs() < 1e-12);
    }
}

#[test]
fn few_spares_cause_waiting_and_faster_checkpoints_raise_goodput() {
    let plenty = course(&llama(), 7);
    let few = course(&Input { spares: 1, ..llama() }, 7);
    assert!(plenty.waiting_for_repair == 0.0 && few.waiting_for_repair > 0.0 && few.goodput < plenty.goodput);
    let background = course(&Input { checkpoint: 5.0, flush: 60.0, ..llama() }, 7);
    assert!(background.goodput > plenty.goodput);
    let none = course(&Input { node_mtbf: f64::INFINITY, ..llama() }, 7);
    assert!(none.failures == 0 && none.lost == 0.0);
}

#[test]
fn canceled_fault_run_is_unfinished_and_invalid_input_is_reported() {
    let hopeless = Input { node_mtbf: 2048.0 * 60.0, work: 1e6, ..llama() };
    let progress = Progress::new();
    progress.cancel();
    assert!(simulate(&hopeless, 1, &progress).unwrap().unfinished);
    let nonsense = Input { nodes: 0, work: f64::NAN, interval: -1.0, ..llama() };
    assert_eq!(nonsense.problems().len(), 3);
}

#[test]
fn the_expected_number_of_events_is_near_the_simulated_one() {
    for node_mtbf in [1e5, 1e6, 1e7] {
        let input = Input {
            work: 1e6,
            nodes: 10,
            node_mtbf,
            interval: 1000.0,
            checkpoint: 20.0,
            flush: 0.0,
            detection: 10.0,
            restart: 60.0,
            spares: u32::MAX,
            repair: Distribution::Constant(0.0),
        };
        let out = simulate(&input, 7, &Progress::new()).unwrap();
        let counted = 3.0 * out.failures as f64 + 3.0 * 1000.0;
        let expected = input.expected_events();
        assert!((0.5..2.0).contains(&(expected / counted)), "{node_mtbf}: {expected} against {counted}");
        let never = Input { node_mtbf: f64::INFINITY, work: 0.0, ..input };
        assert!(never.expected_events().is_finite() && Input { node_mtbf: 1e-3, ..input }.expected_events() > 1e9);
    }
}
