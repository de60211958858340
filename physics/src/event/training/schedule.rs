//! In which order a stage takes its passes.

mod zero_bubble;

use super::costs::Costs;
use crate::analytical::training::{Schedule, TrainingInput};

/// One pass of one chunk for one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// What is computed.
    pub kind: Kind,
    /// Micro-batch.
    pub micro: u32,
    /// Chunk of the stage.
    pub chunk: u32,
}

/// What a pass computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The output.
    Forward,
    /// Gradients of input and weights, or of the input alone where weights come apart.
    Backward,
    /// Gradients of the weights, apart (zero bubble).
    Weights,
}

/// What the passes of each stage take, as a schedule that is planned needs to know.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Times {
    /// Forward, gradients of inputs, gradients of weights, of each stage, seconds.
    pub stages: Vec<[f64; 3]>,
    /// One transfer between stages.
    pub transfer: f64,
    /// Micro-batches whose activations the fullest stage can hold.
    pub in_flight: f64,
}

impl Times {
    /// Of the job's own accelerators, the first of `costs`.
    #[must_use]
    pub fn of(costs: &[Costs], stages: u32) -> Times {
        let Some(costs) = costs.first() else { return Times::default() };
        let sum = |stage: usize| {
            let chunks = costs.chunks.iter().skip(stage).step_by(stages.max(1) as usize);
            chunks.fold([0.0; 3], |[f, b, w], chunk| {
                [f + chunk.forward.seconds, b + chunk.input.seconds, w + chunk.weights.seconds]
            })
        };
        Times { stages: (0..stages as usize).map(sum).collect(), transfer: costs.transfer, in_flight: costs.in_flight }
    }
}

/// The orders of all stages. That of zero bubble is planned from what the passes take; the others are fixed.
#[must_use]
pub fn orders(system: &TrainingInput, micros: u32, times: &Times) -> Vec<Vec<Pass>> {
    let (stages, chunks) = (system.pp as u32, system.vpp as u32);
    if system.schedule == Schedule::ZeroBubble && chunks <= 1 {
        return zero_bubble::orders(micros, times);
    }
    (0..stages).map(|stage| order(system.schedule, stage, stages, micros, chunks)).collect()
}

/// The order of passes on `stage` of `stages`, `micros` micro-batches in `chunks` chunks.
///
/// One forward, one backward (arXiv 2104.04473, section 2.2), interleaved where there are several chunks: micro-batches
/// go through each chunk in groups as large as there are stages. Zero bubble takes the same order, with the weights'
/// gradients apart: stage `s` stays `s` of them behind, so that the last stages have work while the last backward passes
/// travel to the first one, and no stage holds more than the first one does (arXiv 2401.10241, ZB-H1).
pub fn order(schedule: Schedule, stage: u32, stages: u32, micros: u32, chunks: u32) -> Vec<Pass> {
    let total = (micros * chunks) as usize;
    let warm_up = match schedule {
        Schedule::AllForward => total,
        // Chunks more than one: enough of them before the first backward pass that the pipeline never starves.
        _ if chunks > 1 && micros >= stages => ((stages - stage - 1) * 2 + (chunks - 1) * stages) as usize,
        _ if chunks > 1 => total,
        _ => (stages - stage - 1) as usize,
    }
    .min(total);
    let forward = passes(Kind::Forward, stages, micros, chunks);
    let backward = passes(Kind::Backward, stages, micros, chunks);
    let mut plain = Vec::with_capacity(2 * total);
    plain.extend_from_slice(forward.get(..warm_up).unwrap_or(&forward));
    for (ahead, back) in forward.iter().skip(warm_up).zip(&backward) {
        plain.extend([*ahead, *back]);
    }
    plain.extend(backward.iter().skip(total - warm_up));
    if schedule != Schedule::ZeroBubble {
        return plain;
    }
    let weights = |of: &Pass| Pass { kind: Kind::Weights, ..*of };
    let mut out = Vec::with_capacity(3 * total);
    let mut behind = backward.iter();
    let mut done = 0;
    for pass in plain {
        out.push(pass);
        if pass.kind == Kind::Backward {
            done += 1;
            if done > stage {
                out.extend(behind.next().map(weights));
            }
        }
    }
    out.extend(behind.map(weights));
    out
}

/// All passes of a kind, in groups of micro-batches.
fn passes(kind: Kind, stages: u32, micros: u32, chunks: u32) -> Vec<Pass> {
    let mut out = Vec::with_capacity((micros * chunks) as usize);
    let group = if chunks > 1 { stages.max(1) } else { micros.max(1) };
    for first in (0..micros).step_by(group as usize) {
        for turn in 0..chunks {
            let chunk = if kind == Kind::Forward { turn } else { chunks - 1 - turn };
            out.extend((first..micros.min(first + group)).map(|micro| Pass { kind, micro, chunk }));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_is_taken_once_and_forward_comes_first() {
        for schedule in [Schedule::OneForwardOneBackward, Schedule::AllForward, Schedule::ZeroBubble] {
            for (stages, micros, chunks) in [(1, 1, 1), (4, 8, 1), (4, 3, 1), (4, 8, 3), (3, 7, 2), (4, 2, 2)] {
                for stage in 0..stages {
                    let order = order(schedule, stage, stages, micros, chunks);
                    let splits = schedule == Schedule::ZeroBubble;
                    assert_eq!(order.len() as u32, if splits { 3 } else { 2 } * micros * chunks);
                    for micro in 0..micros {
                        for chunk in 0..chunks {
                            let at = |kind| order.iter().position(|&p| p == Pass { kind, micro, chunk });
                            assert!(at(Kind::Forward) < at(Kind::Backward) && at(Kind::Forward).is_some());
                            assert!(!splits || at(Kind::Backward) < at(Kind::Weights));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn no_more_micro_batches_are_in_flight_than_stages_to_the_end() {
        for stage in 0..4 {
            let mut flying = 0i32;
            for pass in order(Schedule::OneForwardOneBackward, stage, 4, 16, 1) {
                flying += if pass.kind == Kind::Forward { 1 } else { -1 };
                assert!(flying <= 4 - stage as i32);
            }
        }
    }
}
