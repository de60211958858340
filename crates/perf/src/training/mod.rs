//! The time of one optimizer step, from the operators up.
//!
//! A micro-batch's forward and backward pass on the slowest pipeline stage is summed operator by operator; the
//! schedule adds its bubble, data parallelism what it cannot hide, then the optimizer and the host.
//!
//! Conventions. A token of an encoder-decoder is one of the encoder's input. A sample of a vision network is an image: a
//! convolutional one has `seq` = 1, so that `micro` and `global` count images and "tokens" per second are images per
//! second; a vision transformer has its patches and the class token as `seq`.

mod breakdown;
pub mod comm;
mod convolution;
pub mod images;
pub mod input;
pub mod layer;
pub mod measured;
mod memo;
pub mod optimizer;
pub mod pipeline;
pub mod stages;
pub mod step;
pub mod supported;
pub mod terms;
#[cfg(test)]
mod tests;

pub use breakdown::TimeBreakdown;
pub use input::{Offload, Plan, Reshard, Software, TrainingInput};
pub use layer::slice;
pub use memo::{Memo, memoized};
pub use optimizer::Optimizer;
pub use step::{estimate, under};
pub use supported::{Unsupported, supported};
pub use terms::{MicroBatch, token_flops};

pub use atlas_core::plan::{ContextExchange, PipelineSchedule as Schedule, Recompute, Sharding};

use crate::accelerator::Precision;
use crate::memory::MemoryBreakdown;

impl TrainingInput {
    /// The format whose peak utilization is a share of. Beside narrow formats, attention and the output layer are multiplied
    /// in 16 bit, which some hardware does faster than integers.
    #[must_use]
    pub fn fastest_format(&self) -> Precision {
        let (own, attended) = (self.precision, layer::attended(self));
        let faster = self.accelerator.peak(attended) > self.accelerator.peak(own);
        if own.is_narrow() && faster { attended } else { own }
    }
}

/// The answer for one scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingEstimate {
    /// Seconds of an optimizer step.
    pub step_seconds: f64,
    /// Tokens per second of the job.
    pub tokens_per_second: f64,
    /// Tokens per second and device.
    pub tokens_per_second_per_accelerator: f64,
    /// Model FLOPs utilization as PaLM defines it (arXiv 2204.02311, appendix B): observed tokens/s times 6 N + 12 L H Q T
    /// over the peak in [`TrainingInput::fastest_format`]; the whole square of attention counts, recomputation does not, and
    /// N are the weights that a token multiplies (output layer counted, embedding look-up not).
    pub mfu: f64,
    /// The same with only the half of attention that causal masks and windows leave.
    pub mfu_causal: f64,
    /// Hardware FLOPs utilization (arXiv 2205.05198, section 4.4): what the hardware executes, recomputation included. Fused
    /// attention skips what the mask leaves out, so that this is at least [`TrainingEstimate::mfu_causal`] and at most 1.
    pub hfu: f64,
    /// Model FLOPs of one token, forward and backward, behind `mfu`.
    pub flops_per_token: f64,
    /// The same behind `mfu_causal`.
    pub causal_flops_per_token: f64,
    /// FLOPs that the hardware executes for a token, behind `hfu`.
    pub executed_flops_per_token: f64,
    /// One micro-batch on the slowest stage, behind `time`.
    pub micro_batch: MicroBatch,
    /// Recomputation that was assumed (resolved where the input's is [`Recompute::Auto`]).
    pub recompute: Plan,
    /// Micro-batches whose activations the first pipeline stage holds at once.
    pub in_flight: f64,
    /// Where the time goes.
    pub time: TimeBreakdown,
    /// What the fullest device holds.
    pub memory: MemoryBreakdown,
    /// Upper bound of the memory, which decides whether it fits.
    pub memory_upper: f64,
    /// Whether the upper bound fits.
    pub fits: bool,
}
