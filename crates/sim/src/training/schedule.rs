//! Pipeline schedules: the order of the passes of a stage.

use atlas_perf::training::{Schedule, TrainingInput};

/// One pass of one chunk for one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// Kind of pass.
    pub kind: PassKind,
    /// Micro-batch.
    pub micro: u32,
    /// Chunk of the stage.
    pub chunk: u32,
}

/// Kind of pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassKind {
    /// Forward pass.
    Forward,
    /// Gradients of input and weights, or of the input alone if the schedule splits them.
    Backward,
    /// Gradients of the weights, if split from those of the input (zero bubble).
    Weights,
}

/// Returns the order of passes for every stage. `in_flight` is the number of micro-batches whose activations fit on the
/// fullest stage.
#[must_use]
pub fn orders(system: &TrainingInput, micros: u32, in_flight: f64) -> Vec<Vec<Pass>> {
    let (stages, chunks) = (system.pp.get(), system.vpp.get());
    if system.copies() > 1.0 {
        return (0..stages).map(|stage| is_bidirectional(stage, stages, micros)).collect();
    }
    if system.schedule.splits_backward() && chunks <= 1 {
        return (0..stages).map(|stage| zero_bubble(stage, stages, micros, in_flight)).collect();
    }
    (0..stages).map(|stage| order(system.schedule, stage, stages, micros, chunks)).collect()
}

/// Handcrafted zero-bubble schedules (arXiv 2401.10241, sections 2.2 and 2.3), from ZB-H1, which holds as many
/// micro-batches as there are stages, to ZB-H2, which holds nearly twice as many and has no bubble if all passes take
/// equally long. A stage begins with enough forward passes for its first gradient to return in time. Weight gradients
/// are deferred until their memory is needed, so that all stages use the same amount of memory.
fn zero_bubble(stage: u32, stages: u32, micros: u32, in_flight: f64) -> Vec<Pass> {
    let (least, most) = (f64::from(stages), f64::from(2 * stages) - 1.0);
    let limit = in_flight.floor().clamp(least, most.max(least));
    let each = 1.0 + (limit - least) / (least - 1.0).max(1.0);
    let ahead = (each * f64::from(stages - 1 - stage) + 1e-9).floor() as u32 + 1;
    let behind = (limit as u32).saturating_sub(ahead);
    let pass = |kind| move |micro| Pass { kind, micro, chunk: 0 };
    let mut forward = (0..micros).map(pass(PassKind::Forward));
    let mut weights = (0..micros).map(pass(PassKind::Weights));
    let mut out = Vec::with_capacity(3 * micros as usize);
    out.extend(forward.by_ref().take(ahead as usize));
    for micro in 0..micros {
        out.push(Pass { kind: PassKind::Backward, micro, chunk: 0 });
        if micro >= behind {
            out.extend(weights.next());
        }
        out.extend(forward.next());
    }
    out.extend(weights);
    out
}

/// Micro-batches enter from both ends (DualPipe, arXiv 2412.19437, figure 5). Chunk 0 is the stage on the path from the
/// first device to the last, chunk 1 that on the path back; half of the micro-batches take each path. A device first
/// runs micro-batches from the nearer end. Weight gradients directly follow input gradients, except while the pipeline
/// fills and drains. The eight phases are those of the published implementation.
fn is_bidirectional(stage: u32, stages: u32, micros: u32) -> Vec<Pass> {
    let (half, each) = (stages / 2, micros / 2);
    let from_near = stage.min(stages - 1 - stage);
    let near = u32::from(stage >= half);
    // Next forward and backward micro-batch of each path; path 0 begins at the nearer end.
    let (mut ahead, mut back) = ([0; 2], [0; 2]);
    let mut put_off = std::collections::VecDeque::new();
    let mut out: Vec<Pass> = Vec::with_capacity(3 * micros as usize);
    let pass = |kind, way: usize, at: u32| {
        let chunk = near ^ way as u32;
        Pass { kind, micro: chunk * each + at, chunk }
    };
    enum ScheduledPass {
        Forward(usize),
        Backward(usize),
        /// Input gradient only.
        Input(usize),
        Weights,
    }
    let mut run = |what: ScheduledPass| match what {
        ScheduledPass::Forward(way) => {
            if let Some(at) = ahead.get_mut(way).filter(|at| **at < each) {
                out.push(pass(PassKind::Forward, way, *at));
                *at += 1;
            }
        }
        ScheduledPass::Backward(way) | ScheduledPass::Input(way) => {
            let Some(at) = back.get_mut(way).filter(|at| **at < each) else { return };
            out.push(pass(PassKind::Backward, way, *at));
            let weights = pass(PassKind::Weights, way, *at);
            *at += 1;
            if matches!(what, ScheduledPass::Input(_)) { put_off.push_back(weights) } else { out.push(weights) }
        }
        ScheduledPass::Weights => out.extend(put_off.pop_front()),
    };
    (0..2 * (half - from_near - 1)).for_each(|_| run(ScheduledPass::Forward(0)));
    for _ in 0..=from_near {
        run(ScheduledPass::Forward(0));
        run(ScheduledPass::Forward(1));
    }
    for _ in 0..half - from_near - 1 {
        run(ScheduledPass::Input(1));
        run(ScheduledPass::Weights);
        run(ScheduledPass::Forward(1));
    }
    for _ in 0..(each + from_near + 1).saturating_sub(stages) {
        run(ScheduledPass::Forward(0));
        run(ScheduledPass::Backward(1));
        run(ScheduledPass::Forward(1));
        run(ScheduledPass::Backward(0));
    }
    for _ in 0..half - from_near - 1 {
        run(ScheduledPass::Backward(1));
        run(ScheduledPass::Forward(1));
        run(ScheduledPass::Backward(0));
    }
    for step in 0..=from_near {
        // The second half defers weight gradients.
        let second = 2 * step > from_near;
        for way in [1, 0] {
            run(if second { ScheduledPass::Input(way) } else { ScheduledPass::Backward(way) });
        }
    }
    for _ in 0..half - from_near - 1 {
        run(ScheduledPass::Weights);
        run(ScheduledPass::Input(0));
    }
    while !put_off.is_empty() {
        out.extend(put_off.pop_front());
    }
    out
}

/// Returns the order of passes on `stage` of `stages`, for `micros` micro-batches in `chunks` chunks.
///
/// One forward, one backward (arXiv 2104.04473, section 2.2), interleaved if there are several chunks: micro-batches
/// pass each chunk in groups of as many as there are stages. Zero bubble uses the same order with separate weight
/// gradients: stage `s` runs them `s` micro-batches late, so that the last stages have work while the last backward
/// passes travel to the first stage. No stage then holds more micro-batches than the first (arXiv 2401.10241, ZB-H1).
pub fn order(schedule: Schedule, stage: u32, stages: u32, micros: u32, chunks: u32) -> Vec<Pass> {
    let total = (micros * chunks) as usize;
    let warm_up = match schedule {
        Schedule::AllForward => total,
        // With several chunks, there must be enough forward passes before the first backward pass to keep the pipeline
        // busy. Groups of fewer micro-batches than stages would deadlock.
        _ if chunks > 1 && micros.is_multiple_of(stages) => ((stages - stage - 1) * 2 + (chunks - 1) * stages) as usize,
        _ if chunks > 1 => total,
        _ => (stages - stage - 1) as usize,
    }
    .min(total);
    let forward = passes(PassKind::Forward, stages, micros, chunks);
    let backward = passes(PassKind::Backward, stages, micros, chunks);
    let mut plain = Vec::with_capacity(2 * total);
    plain.extend_from_slice(forward.get(..warm_up).unwrap_or(&forward));
    for (ahead, back) in forward.iter().skip(warm_up).zip(&backward) {
        plain.extend([*ahead, *back]);
    }
    plain.extend(backward.iter().skip(total - warm_up));
    if !schedule.splits_backward() {
        return plain;
    }
    let weights = |of: &Pass| Pass { kind: PassKind::Weights, ..*of };
    let mut out = Vec::with_capacity(3 * total);
    let mut behind = backward.iter();
    let mut done = 0;
    for pass in plain {
        out.push(pass);
        if pass.kind == PassKind::Backward {
            done += 1;
            if done > stage {
                out.extend(behind.next().map(weights));
            }
        }
    }
    out.extend(behind.map(weights));
    out
}

/// All passes of a kind, ordered by groups of micro-batches.
fn passes(kind: PassKind, stages: u32, micros: u32, chunks: u32) -> Vec<Pass> {
    let mut out = Vec::with_capacity((micros * chunks) as usize);
    let group = if chunks > 1 { stages.max(1) } else { micros.max(1) };
    for first in (0..micros).step_by(group as usize) {
        for turn in 0..chunks {
            let chunk = if kind == PassKind::Forward { turn } else { chunks - 1 - turn };
            out.extend((first..micros.min(first + group)).map(|micro| Pass { kind, micro, chunk }));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_runs_once_and_forward_comes_first() {
        for schedule in [Schedule::OneForwardOneBackward, Schedule::AllForward, Schedule::ZeroBubble] {
            for (stages, micros, chunks) in [(1, 1, 1), (4, 8, 1), (4, 3, 1), (4, 8, 3), (3, 7, 2), (4, 2, 2)] {
                for stage in 0..stages {
                    let order = order(schedule, stage, stages, micros, chunks);
                    let splits = schedule == Schedule::ZeroBubble;
                    assert_eq!(order.len() as u32, if splits { 3 } else { 2 } * micros * chunks);
                    for micro in 0..micros {
                        for chunk in 0..chunks {
                            let at = |kind| order.iter().position(|&p| p == Pass { kind, micro, chunk });
                            assert!(at(PassKind::Forward) < at(PassKind::Backward) && at(PassKind::Forward).is_some());
                            assert!(!splits || at(PassKind::Backward) < at(PassKind::Weights));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn micro_batches_in_flight_are_bounded_by_the_remaining_stages() {
        for stage in 0..4 {
            let mut flying = 0i32;
            for pass in order(Schedule::OneForwardOneBackward, stage, 4, 16, 1) {
                flying += if pass.kind == PassKind::Forward { 1 } else { -1 };
                assert!(flying <= 4 - stage as i32);
            }
        }
    }

    #[test]
    fn zero_bubble_stays_within_its_memory() {
        for (stages, micros) in [(1, 3), (2, 8), (4, 3), (4, 16), (7, 30)] {
            for room in [0.0, 1.0, 1.5, 9.0] {
                let in_flight = room * f64::from(stages);
                for stage in 0..stages {
                    let order = zero_bubble(stage, stages, micros, in_flight);
                    assert_eq!(order.len() as u32, 3 * micros, "{stages} {micros}");
                    let mut flying = 0;
                    let limit = (in_flight.floor() as i32).clamp(stages as i32, 2 * stages as i32 - 1);
                    for pass in &order {
                        flying += match pass.kind {
                            PassKind::Forward => 1,
                            PassKind::Weights => -1,
                            PassKind::Backward => 0,
                        };
                        assert!(flying <= limit, "{stage} of {stages}: {flying} over {limit}");
                    }
                    for micro in 0..micros {
                        let at = |kind| order.iter().position(|&p| p == Pass { kind, micro, chunk: 0 });
                        assert!(
                            at(PassKind::Forward) < at(PassKind::Backward)
                                && at(PassKind::Backward) < at(PassKind::Weights)
                        );
                    }
                }
            }
        }
    }
}
