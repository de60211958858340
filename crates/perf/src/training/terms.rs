//! Terms of a step's time, FLOPs and memory, for callers that show them.
//!
//! The functions that time a layer pass each operator to an [`OperatorSink`] as they sum it. Estimates use `()`, which
//! compiles to nothing; [`Operators`] collects the operators. Both use the same equations.

use super::TrainingInput;
use crate::flops::TokenFlops;
use crate::ops::Op;

/// Part of the step time in which an operator's passes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Matrix multiplications.
    Gemm,
    /// Attention and other sequence mixers.
    Attention,
    /// Memory-bound operators.
    Elementwise,
}

/// The time of one operator in one layer, for one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperatorTime {
    /// The operator.
    pub op: Op,
    /// Part of the step time in which its passes are counted.
    pub class: Class,
    /// Forward pass, s.
    pub forward: f64,
    /// Backward pass, s.
    pub backward: f64,
    /// Gaps between kernels, in all passes, s.
    pub gaps: f64,
    /// Recomputed part of the forward pass, s.
    pub recomputed: f64,
}

impl OperatorTime {
    /// Time of all passes without recomputation, s.
    #[must_use]
    pub fn passes(&self) -> f64 {
        self.forward + self.backward + self.gaps
    }
}

/// Receives the operators of a layer while they are timed.
pub trait OperatorSink {
    /// Sets the share of the layers that contain the operators that follow.
    fn share(&mut self, of_layers: f64);
    /// Receives an operator.
    fn operator(&mut self, time: OperatorTime);
}

impl OperatorSink for () {
    #[inline]
    fn share(&mut self, _: f64) {}
    #[inline]
    fn operator(&mut self, _: OperatorTime) {}
}

/// Collects operators, each with the share of the layers that contain it.
#[derive(Debug, Clone, PartialEq)]
pub struct Operators {
    /// Operators, each with the share of the layers that contain it.
    pub of: Vec<(f64, OperatorTime)>,
    share: f64,
}

impl Default for Operators {
    fn default() -> Self {
        Operators { of: Vec::new(), share: 1.0 }
    }
}

impl OperatorSink for Operators {
    fn share(&mut self, of_layers: f64) {
        self.share = of_layers;
    }

    fn operator(&mut self, time: OperatorTime) {
        self.of.push((self.share, time));
    }
}

/// Terms of one micro-batch on the slowest pipeline stage, from which [`super::TimeBreakdown`] is computed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MicroBatch {
    /// Layers of the stage.
    pub layers: f64,
    /// Those of them that are computed in 16 bit, if the format is narrower.
    pub bf16_layers: f64,
    /// Number of times that the output layer runs on the stage: once on the last stage, plus once per
    /// multi-token-prediction layer.
    pub output: f64,
    /// Accumulating gradients, s.
    pub sums: f64,
    /// Exposed tensor-parallel communication of a layer, s.
    pub tensor: f64,
    /// Exposed context-parallel communication of a layer, s.
    pub context: f64,
    /// Exposed expert dispatch and combine of a mean layer, s.
    pub expert: f64,
    /// Exposed transfers between stages, s.
    pub transfer: f64,
    /// Waiting for the host to launch kernels, s.
    pub host: f64,
    /// Waiting for the host relative to the time of kernels, on stages without and with the output layer.
    pub host_ratios: [f64; 2],
    /// Encoding images, s.
    pub images: f64,
}

/// Model FLOPs per token of a training run. If `halved`, attention counts only what causal masks and windows leave.
#[must_use]
pub fn token_flops(i: &TrainingInput, halved: bool) -> TokenFlops {
    token_flops_with(i, i.arch.matmul_params(), halved)
}

/// Model FLOPs of one token: those of the whole attention, and those of what masks and windows leave of it.
pub(super) fn whole_and_masked_flops(i: &TrainingInput) -> [f64; 2] {
    let multiplied = i.arch.matmul_params();
    [false, true].map(|halved| token_flops_with(i, multiplied, halved).total())
}

fn token_flops_with(i: &TrainingInput, multiplied: f64, halved: bool) -> TokenFlops {
    // Gradients of weights are a third of the GEMM FLOPs. Those are the FLOPs of a sequence so short that attention is
    // negligible.
    let frozen = (1.0 - i.trained).max(0.0) / 3.0;
    let without = if frozen > 0.0 { frozen * i.arch.flops_per_token(1.0, 1.0, true) } else { 0.0 };
    let plain = i.arch.token_flops_with(multiplied, i.seq, i.target(), halved);
    // Each multi-token-prediction layer consists of a mean layer, the output layer, and a projection in front.
    let output = 6.0 * i.arch.hidden * i.arch.head_width() * i.arch.head_share(i.seq);
    let layer = (plain.total() - output).max(0.0) / i.arch.depth().max(1.0);
    let predictors = i.mtp_layers * layer + (i.output_layers() - 1.0) * output;
    let encoder = plain.encoder + i.images.map_or(0.0, |images| images.passes() * images.flops() / i.seq.max(1.0));
    TokenFlops { frozen: -without, predictors, encoder, ..plain }
}
