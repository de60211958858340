//! The pipeline schedule: micro-batches in flight, and the bubble.

use super::{Schedule, TrainingInput};
use atlas_core::count::Count;

/// Number of micro-batches whose activations `stage` holds at the same time, of one direction if they enter from both
/// ends. For [`Schedule::ZeroBubble`] this is the
/// minimum; see [`max_in_flight`].
#[must_use]
pub fn in_flight(i: &TrainingInput, stage: f64) -> f64 {
    let (p, v, m) = (i.pp, i.vpp.max(Count::ONE), i.micro_batches());
    if p <= 1.0 {
        return 1.0;
    }
    let of = |stage: f64| {
        // Forward chunks before the first backward chunk, plus one (arXiv 2104.04473, section 2.2).
        if v > 1.0 { (2.0 * (p - 1.0 - stage) + (v - 1.0) * p + 1.0) / v } else { p - stage }
    };
    let most = match i.schedule {
        Schedule::OneForwardOneBackward => of(stage),
        Schedule::AllForward => m,
        // Later stages keep the inputs of weight gradients instead, so all stages use the same memory (arXiv
        // 2401.10241, section 2.2).
        Schedule::ZeroBubble | Schedule::ZeroBubble1p => of(0.0),
        // Each direction is a pipeline of its own, with half of the micro-batches. A device has `stage` of one and
        // `p - 1 - stage` of the other: `p + 1` micro-batches (arXiv 2412.19437, table 2).
        Schedule::DualPipe => return of(stage).min(m / 2.0),
    };
    most.min(m)
}

/// Maximum useful number of micro-batches in flight: 2 p - 1 for zero bubble (arXiv 2401.10241, ZB-H2), else
/// [`in_flight`].
#[must_use]
pub fn max_in_flight(i: &TrainingInput) -> f64 {
    let least = in_flight(i, 0.0);
    if i.schedule == Schedule::ZeroBubble && i.pp > 1.0 && i.vpp <= 1.0 {
        f64::min(2.0 * i.pp - 1.0, i.micro_batches()).max(least)
    } else {
        least
    }
}

/// Whether the number of micro-batches is a multiple of the group size of interleaved chunks, as frameworks require
/// (`forward_backward_pipelining_with_interleaving`). If all forward passes run first, any number is allowed.
#[must_use]
pub fn micro_batches_fill_groups(i: &TrainingInput) -> bool {
    i.pp <= 1.0 || i.vpp <= 1.0 || i.schedule == Schedule::AllForward || i.micro_batches() % i.pp == 0.0
}

/// Time of one micro-batch by pass, s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pass {
    /// Forward.
    pub forward: f64,
    /// Input gradient, including recomputation.
    pub input: f64,
    /// Weight gradient.
    pub weights: f64,
}

impl Pass {
    /// Sum of all passes.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.forward + self.input + self.weights
    }

    /// `self + factor * other`.
    pub(super) fn plus(self, other: &Pass, factor: f64) -> Pass {
        Pass {
            forward: self.forward + factor * other.forward,
            input: self.input + factor * other.input,
            weights: self.weights + factor * other.weights,
        }
    }
}

/// Times from which the bubble is computed, s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PipelineTimes {
    /// One micro-batch on the first stage.
    pub(super) first: Pass,
    /// One micro-batch on the last stage, including the output layer.
    pub(super) last: Pass,
    /// One micro-batch, summed over all stages.
    pub(super) path: Pass,
    /// All passes of one micro-batch on the slowest stage.
    pub(super) slowest: f64,
    /// Delay by the host on the slowest stage.
    pub(super) host: f64,
    /// Delay by the host on the first and on the last stage.
    pub(super) end_stage_host_delay: [f64; 2],
    /// One transfer between two stages.
    pub(super) hop: f64,
    /// Share of a transfer that overlaps with other passes, if there are any.
    pub(super) hidden: f64,
    /// Number of micro-batches in flight on the first stage.
    pub(super) in_flight: f64,
}

/// Passes of a stage including the delay by the host, for consecutive micro-batches.
fn busy(stage: &Pass, host: f64) -> Pass {
    Pass::default().plus(stage, 1.0 + host / stage.total().max(1e-12))
}

/// Time per step in which the slowest stage is idle, s.
pub(super) fn bubble(i: &TrainingInput, pace: &PipelineTimes) -> f64 {
    let (p, v, m) = (i.pp, i.vpp.max(Count::ONE), i.micro_batches());
    if p <= 1.0 {
        return 0.0;
    }
    // Transfers through all stages and back. The first micro-batches also wait for transfers between their chunks.
    let hops = 2.0 * (p - 1.0 + (v - 1.0) * p * pace.hidden) * pace.hop;
    let unit = pace.path.total() / p;
    if i.schedule.is_bidirectional() {
        // Half of the bubble of a one-way pipeline with separate weight gradients (arXiv 2412.19437, table 2, is an
        // upper bound: it counts a forward and a backward pass as one block). Where input gradients take longer than
        // forward passes, the wait for them at the end is added. Overlapped passes are assumed to take as long as
        // consecutive ones; the gain is subtracted from their communication.
        let (forward, weights) = (pace.path.forward / p, pace.path.weights / p);
        let input = unit - forward - weights;
        let half = 0.5 * p;
        let idle =
            (half - 1.0) * (forward + input - weights).max(0.0) + (half - 2.0).max(0.0) * (input - forward).max(0.0);
        return idle + (m * (unit - pace.slowest - pace.host)).max(0.0) + hops;
    }
    if i.schedule.splits_backward() && v <= 1.0 {
        return zero_bubble(f64::from(p), m, pace) + hops;
    }
    let (fill, round) = if i.schedule.splits_backward() {
        // Weight gradients fill part of the bubble (arXiv 2401.10241, table 2), but not of the wait for the next chunk.
        (((p - 1.0) * (unit - 2.0 * pace.path.weights / p)).max(0.0), unit - pace.path.weights / p)
    } else {
        ((pace.path.total() - pace.slowest).max(0.0), unit)
    };
    // Chunks run in groups of as many micro-batches as stages. A smaller last group waits in every round but one.
    let short = if m % p > 0.0 { p - m % p } else { 0.0 };
    fill / v + (v - 1.0) / v * short * round + hops
}

/// Idle time of the slowest stage with separate weight gradients and an optimizer per stage, so that the end of a step
/// overlaps with the beginning of the next (arXiv 2401.10241, sections 2.2 and 4), s.
fn zero_bubble(p: f64, m: f64, pace: &PipelineTimes) -> f64 {
    let PipelineTimes { first, last, path, end_stage_host_delay: [host_first, host_last], .. } = pace;
    let (busy_first, busy_last) = (busy(first, *host_first), busy(last, *host_last));
    // The first stage runs as many forward passes as may be in flight, waits for the first gradient, then runs the
    // rest.
    let ahead = pace.in_flight.min(m);
    let comes_back = (path.forward + path.input - first.input).max(ahead * busy_first.forward);
    let first_done = comes_back + m * (busy_first.input + busy_first.weights) + (m - ahead) * busy_first.forward;
    // The last gradient leaves the last stage, which can defer weight gradients, and returns to the first stage.
    let done = (m - pace.in_flight.max(p)).max(0.0);
    let last_leaves =
        path.forward - last.forward + m * (busy_last.forward + busy_last.input) + done * busy_last.weights;
    let back_done = last_leaves + path.input - last.input + first.weights;
    (first_done.max(back_done) - m * (pace.slowest + pace.host)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerator::Accelerator;
    use crate::arch::Architecture;
    use crate::constants::Constants;
    use crate::training::{Offload, Recompute, Sharding, estimate};

    fn job(schedule: Schedule, pp: u32, vpp: u32, m: f64) -> TrainingInput {
        let base = TrainingInput {
            recompute: Recompute::None,
            dp: Count::ONE,
            accelerators: f64::from(pp),
            ..TrainingInput::default()
        };
        TrainingInput { schedule, pp: Count::new(pp), vpp: Count::new(vpp), global: m, ..base }
    }

    #[test]
    fn micro_batches_in_flight_match_the_papers_per_schedule() {
        let first = |schedule, vpp, m| in_flight(&job(schedule, 8, vpp, m), 0.0);
        assert_eq!(first(Schedule::OneForwardOneBackward, 1, 64.0), 8.0);
        assert_eq!(first(Schedule::OneForwardOneBackward, 1, 3.0), 3.0);
        // arXiv 2205.05198, section 4.2.3: interleaving needs 1 + (p - 1) / (p m) times as much.
        assert_eq!(first(Schedule::OneForwardOneBackward, 4, 64.0), 8.0 * (1.0 + 7.0 / 32.0));
        assert_eq!(first(Schedule::AllForward, 1, 64.0), 64.0);
        assert_eq!(first(Schedule::ZeroBubble1p, 1, 64.0), 8.0);
        assert_eq!(first(Schedule::DualPipe, 1, 64.0), 8.0);
        let last = |schedule, vpp| in_flight(&job(schedule, 8, vpp, 64.0), 7.0);
        assert_eq!(last(Schedule::OneForwardOneBackward, 1), 1.0);
        assert_eq!(last(Schedule::OneForwardOneBackward, 4), 25.0 / 4.0);
        assert_eq!(last(Schedule::ZeroBubble, 1), 8.0);
        assert_eq!(last(Schedule::DualPipe, 1), 1.0);
        assert_eq!(max_in_flight(&job(Schedule::ZeroBubble, 8, 1, 64.0)), 15.0);
        assert_eq!(max_in_flight(&job(Schedule::ZeroBubble, 8, 1, 10.0)), 10.0);
    }

    #[test]
    fn all_forward_passes_first_need_memory_for_all_micro_batches() {
        let c = Constants::default();
        let bytes = |schedule, m| estimate(&job(schedule, 8, 1, m), &c).memory.activations;
        assert!((bytes(Schedule::AllForward, 256.0) / bytes(Schedule::AllForward, 32.0) - 8.0).abs() < 1e-9);
        assert!(
            (bytes(Schedule::AllForward, 256.0) / bytes(Schedule::OneForwardOneBackward, 256.0) - 32.0).abs() < 1e-9
        );
        assert!(!estimate(&job(Schedule::AllForward, 8, 1, 256.0), &c).fits);
    }

    #[test]
    fn zero_bubble_trades_memory_for_its_bubble() {
        let c = Constants::default();
        let at = |gb: f64, m| {
            let mut i = job(Schedule::ZeroBubble, 8, 1, m);
            i.accelerator.mem_bytes = gb;
            estimate(&i, &c)
        };
        let (mut bubble, mut held) = (f64::INFINITY, 0.0);
        for gb in [45e9, 50e9, 55e9, 60e9, 80e9] {
            let e = at(gb, 64.0);
            assert!(e.fits && e.time.pipeline_bubble <= bubble && e.in_flight >= held, "{gb} {e:?}");
            (bubble, held) = (e.time.pipeline_bubble, e.in_flight);
        }
        assert_eq!(held, 15.0);
        assert!(bubble < 0.1 * at(45e9, 64.0).time.pipeline_bubble);
        // A number of micro-batches equal to the number of stages cannot fill the pipeline, whatever the memory.
        assert!(at(80e9, 8.0).time.pipeline_bubble > 5.0 * bubble);
    }

    #[test]
    fn faster_hardware_does_not_slow_a_job_that_copies_weights_from_the_host() {
        let c = Constants::default();
        let mut bad = Vec::new();
        for (pp, vpp, link_bw) in [(1, 1, 8e9), (1, 1, 32e9), (8, 1, 4e9), (8, 1, 8e9), (8, 1, 32e9), (8, 2, 16e9)] {
            for (dp, sharding, nic_bw) in [
                (1, Sharding::None, 25e9),
                (8, Sharding::None, 25e9),
                (8, Sharding::Zero2, 5e9),
                (8, Sharding::Zero3, 5e9),
                (8, Sharding::Zero3, 25e9),
            ] {
                // The output layer is most of the last stage.
                let offload = Offload { weights: 1.0, optimizer: 1.0, link_bw: Some(link_bw), ..Offload::default() };
                let base = job(Schedule::OneForwardOneBackward, pp, vpp, 8.0 * f64::from(dp));
                let arch = Architecture { layers: Count::new(16), vocab: Count::new(256_000), ..base.arch };
                let base = TrainingInput { dp: Count::new(dp), accelerators: f64::from(pp * dp), ..base };
                let base = TrainingInput { arch, offload, sharding, micro: 1.0, seq: 1024.0, domain: 1.0, ..base };
                let mut last = f64::INFINITY;
                for step in 0..36 {
                    let mut i = base;
                    let by = 1.1f64.powi(step);
                    i.accelerator.flops = i.accelerator.flops.map(|rate| rate * by);
                    i.accelerator.mem_bw *= by;
                    i.accelerator.nic_bw = nic_bw;
                    let seconds = estimate(&i, &c).step_seconds;
                    if seconds > last * (1.0 + 1e-9) {
                        bad.push(format!("{pp} {vpp} {link_bw:e} {dp} {sharding:?} {step}: {seconds} after {last}"));
                    }
                    last = seconds;
                }
            }
        }
        assert!(bad.is_empty(), "{bad:#?}");
    }

    #[test]
    fn faster_hardware_does_not_slow_a_host_bound_pipeline() {
        use Schedule::{DualPipe, OneForwardOneBackward, ZeroBubble, ZeroBubble1p};
        let c = Constants::default();
        let mut bad = Vec::new();
        for schedule in [ZeroBubble, ZeroBubble1p, DualPipe, OneForwardOneBackward] {
            // Uneven stages with few rows: the slowest stage depends on the device.
            for (layers, seq, m) in [
                (30, 512.0, 8.0),
                (30, 1024.0, 16.0),
                (36, 1024.0, 64.0),
                (53, 256.0, 8.0),
                (53, 512.0, 16.0),
                (53, 1024.0, 8.0),
            ] {
                let base = TrainingInput { micro: 1.0, seq, ..job(schedule, 8, 1, m) };
                let base = TrainingInput { arch: Architecture { layers: Count::new(layers), ..base.arch }, ..base };
                for better in [
                    |a: &mut Accelerator, by: f64| a.flops = a.flops.map(|rate| rate * by),
                    |a: &mut Accelerator, by: f64| a.mem_bw *= by,
                    |a: &mut Accelerator, by: f64| a.link_bw *= by,
                ] {
                    let mut last = f64::INFINITY;
                    for step in -12..24 {
                        let mut i = base;
                        i.accelerator.mem_bytes *= 8.0;
                        better(&mut i.accelerator, 1.1f64.powi(step));
                        let seconds = estimate(&i, &c).step_seconds;
                        if seconds > 1.005 * last {
                            bad.push(format!("{schedule:?} {layers} {seq} {m} {step}: {last} {seconds}"));
                        }
                        last = seconds;
                    }
                }
            }
        }
        assert!(bad.is_empty(), "{bad:#?}");
    }
}
