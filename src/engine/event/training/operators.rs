//! Inside a pass: the share that each operator of a layer has of it, for a timeline that is looked at closely.
//!
//! The operators' own times are the analytical engine's rooflines; host and collectives, which the pass holds as well,
//! are spread over them in proportion.

use crate::engine::analytical::accelerator::Precision;
use crate::engine::analytical::constants::Constants;
use crate::engine::analytical::ops::{self, Op, OpName, Slice, Work};
use crate::engine::analytical::roofline;
use crate::engine::analytical::training::TrainingInput;

/// One operator's share of a layer's passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Which.
    pub name: OpName,
    /// Of the forward pass; a layer's sum to 1.
    pub forward: f64,
    /// Of the backward pass; a layer's sum to 1.
    pub backward: f64,
}

/// The operators of a layer in order of execution; `moe` picks the kind of layer.
pub fn shares(i: &TrainingInput, c: &Constants, moe: bool) -> Vec<Share> {
    let slice = Slice {
        tokens: i.micro * i.seq / i.cp.max(1.0),
        context: i.arch.mean_context(i.seq),
        sequences: i.micro,
        tp: i.tp.max(1.0),
        sequence_parallel: i.sequence_parallel,
        ep: i.ep.max(1.0),
        etp: i.etp.max(1.0),
        imbalance: i.imbalance,
        ..Slice::default()
    };
    let list = ops::layer(&i.arch, &slice, moe && i.arch.is_moe());
    let forward = |op: &Op| seconds(op, i, c) + op.kernels * c.kernel_gap;
    // A product's gradients are two products, fused attention's 2.5 forwards, traffic's one and a half.
    let backward = |op: &Op| {
        seconds(op, i, c)
            * match op.work {
                Work::Gemm(_) => 1.0 + i.trained,
                Work::Attention { .. } => 2.5 * c.attention_backward,
                Work::Vector { .. } => 2.0,
                Work::Traffic { .. } => 1.5,
            }
            + 2.0 * op.kernels * c.kernel_gap
    };
    let (ahead, back) = list.iter().fold((0.0, 0.0), |sum, op| (sum.0 + forward(op), sum.1 + backward(op)));
    let share = |x: f64, whole: f64| if whole > 0.0 { x / whole } else { 0.0 };
    list.iter()
        .map(|op| Share { name: op.name, forward: share(forward(op), ahead), backward: share(backward(op), back) })
        .collect()
}

/// Seconds of one operator forward.
fn seconds(op: &Op, i: &TrainingInput, c: &Constants) -> f64 {
    match op.work {
        Work::Gemm(gemm) => roofline::gemm_seconds(&i.accelerator, c, &gemm, i.precision),
        Work::Attention { flops, bytes } => roofline::attention_seconds(&i.accelerator, c, flops, bytes),
        Work::Vector { flops } => flops / (i.accelerator.peak(Precision::Fp32) * c.memory_fraction),
        Work::Traffic { bytes } => {
            let fused = if i.software.fused_elementwise { c.fused_traffic } else { c.eager_traffic };
            roofline::memory_seconds(&i.accelerator, c, bytes * fused)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::analytical::arch::Architecture;
    use crate::engine::analytical::training::{Recompute, estimate};

    #[test]
    fn shares_are_the_analytical_breakdown_s() {
        let dense = TrainingInput { recompute: Recompute::None, ..TrainingInput::default() };
        let experts = Architecture { experts: 8.0, top_k: 2.0, moe_ffn: 11008.0, ..Architecture::default() };
        let c = Constants::default();
        for (input, moe) in [(dense, false), (TrainingInput { arch: experts, ep: 8.0, ..dense }, true)] {
            let shares = shares(&input, &c, moe);
            assert!((shares.iter().map(|s| s.forward).sum::<f64>() - 1.0).abs() < 1e-12);
            assert!((shares.iter().map(|s| s.backward).sum::<f64>() - 1.0).abs() < 1e-12);
            // Attention's part of the layers, against the breakdown without an output layer.
            let mut bare = input;
            bare.arch.vocab = 1.0;
            let t = estimate(&bare, &c).time;
            let expected = t.attention / (t.gemm + t.attention + t.elementwise);
            let of =
                |s: &Share| if s.name == OpName::Attention { s.forward / 3.0 + s.backward * 2.0 / 3.0 } else { 0.0 };
            let found: f64 = shares.iter().map(of).sum();
            assert!((found / expected - 1.0).abs() < 0.25, "{found} {expected}");
        }
    }
}
