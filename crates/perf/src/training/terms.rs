//! The terms that a step's time, its FLOPs and its memory are sums of, for callers that show them.
//!
//! The functions that time a layer hand each operator to an [`OperatorSink`] as they add it up. Estimates pass `()`, which
//! compiles to nothing; [`Operators`] collects. There is one copy of the equations.

use super::TrainingInput;
use crate::flops::TokenFlops;
use crate::ops::Op;

/// The part of a step's time that an operator's passes are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Matrix products.
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
    /// Where its passes are counted.
    pub class: Class,
    /// Forward pass, s.
    pub forward: f64,
    /// Backward pass, s.
    pub backward: f64,
    /// Gaps between its kernels, in all passes, s.
    pub gaps: f64,
    /// What of its forward pass is recomputed, s.
    pub recomputed: f64,
}

impl OperatorTime {
    /// Seconds of the passes, without what is recomputed.
    #[must_use]
    pub fn passes(&self) -> f64 {
        self.forward + self.backward + self.gaps
    }
}

/// Receives the operators of a layer as they are timed.
pub trait OperatorSink {
    /// The operators that follow are in this share of the layers.
    fn share(&mut self, of_layers: f64);
    /// An operator.
    fn operator(&mut self, time: OperatorTime);
}

impl OperatorSink for () {
    #[inline]
    fn share(&mut self, _: f64) {}
    #[inline]
    fn operator(&mut self, _: OperatorTime) {}
}

/// Operators with the share of the layers that have them.
#[derive(Debug, Clone, PartialEq)]
pub struct Operators {
    /// Share of the layers, and the operator.
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

/// One micro-batch on the slowest pipeline stage: what the parts of [`super::TimeBreakdown`] are products of.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MicroBatch {
    /// Layers of the stage.
    pub layers: f64,
    /// How often the output layer runs on the stage: once on the last one, and for each further token that is predicted.
    pub output: f64,
    /// Adding gradients to their sum, s.
    pub sums: f64,
    /// Visible tensor-parallel communication of a layer, s.
    pub tensor: f64,
    /// Visible context-parallel communication of a layer, s.
    pub context: f64,
    /// Visible expert dispatch and combine of a mean layer, s.
    pub expert: f64,
    /// Visible transfers between stages, s.
    pub transfer: f64,
    /// Waiting for the host to launch, s.
    pub host: f64,
    /// Encoding images, s.
    pub images: f64,
}

/// Model FLOPs of a token of a training run. `halved` counts only what causal masks and windows leave of attention.
#[must_use]
pub fn token_flops(i: &TrainingInput, halved: bool) -> TokenFlops {
    // Gradients of weights are a third of the products with them: those of a sequence so short that attention counts
    // nothing.
    let frozen = (1.0 - i.trained).max(0.0) / 3.0;
    let without = if frozen > 0.0 { frozen * i.arch.flops_per_token(1.0, 1.0, true) } else { 0.0 };
    let plain = i.arch.token_flops(i.seq, i.target(), halved);
    // Each further token takes a mean layer, the output layer, and the projection in front.
    let output = 6.0 * i.arch.hidden * i.arch.head_width() * i.arch.head_share(i.seq);
    let layer = (plain.total() - output).max(0.0) / i.arch.depth().max(1.0);
    let predictors = i.mtp_layers * layer + (i.output_layers() - 1.0) * output;
    let encoder = plain.encoder + i.images.map_or(0.0, |images| images.passes() * images.flops() / i.seq.max(1.0));
    TokenFlops { frozen: -without, predictors, encoder, ..plain }
}
