//! The time of one optimizer step, built up from its operators.
//!
//! The forward and backward pass of a micro-batch on the slowest pipeline stage is summed operator by operator. The
//! pipeline bubble, exposed data-parallel communication, the optimizer and host time are added. [`memory`] computes
//! what must be resident on one accelerator.
//!
//! Conventions: in an encoder-decoder, tokens are those of the encoder's input. In a vision network, a sample is an
//! image. A convolutional network has `seq` = 1, so that `micro` and `global` count images and "tokens" per second are
//! images per second. In a vision transformer, `seq` is the number of patches plus the class token.

pub mod accumulation;
pub mod adapters;
mod blocks;
mod breakdown;
pub mod comm;
mod convolution;
pub mod images;
pub mod input;
pub mod layer;
pub mod measured;
mod memo;
pub mod memory;
pub mod optimizer;
pub mod pipeline;
pub mod stages;
pub mod step;
pub mod supported;
pub mod terms;
#[cfg(test)]
mod tests;

pub use adapters::Adapters;
pub use blocks::slice;
pub use blocks::{Block, BlockKind, for_each_block};
pub use breakdown::TimeBreakdown;
pub use input::{Offload, Plan, Reshard, Software, TrainingInput};
pub use memo::{Memo, memoized};
pub use optimizer::Optimizer;
pub use step::{estimate, estimate_with_plan};
pub use supported::{Unsupported, supported};
pub use terms::{MicroBatch, token_flops};

pub use atlas_core::plan::{ContextExchange, PipelineSchedule as Schedule, Recompute, Sharding};

use crate::accelerator::Precision;
use memory::MemoryBreakdown;

impl TrainingInput {
    /// Format whose peak FLOP/s is the reference for MFU and HFU. With narrow formats, attention and the output layer
    /// still run in 16 bit, which is faster than integers on some hardware.
    #[must_use]
    pub fn fastest_format(&self) -> Precision {
        let (own, attention_precision) = (self.precision, layer::attention_precision(self));
        let faster = self.accelerator.peak(attention_precision) > self.accelerator.peak(own);
        if own.is_narrow() && faster { attention_precision } else { own }
    }
}

/// Estimate of one training scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingEstimate {
    /// Time of an optimizer step, s.
    pub step_seconds: f64,
    /// Tokens per second of the job.
    pub tokens_per_second: f64,
    /// Tokens per second per accelerator.
    pub tokens_per_second_per_accelerator: f64,
    /// Model FLOPs utilization as defined by PaLM (arXiv 2204.02311, appendix B): observed tokens/s times
    /// 6 N + 12 L H Q T over the peak in [`TrainingInput::fastest_format`]. Attention counts in full, without regard to
    /// masks; recomputation does not count. N is the number of weights that a token multiplies, including the output
    /// layer but not the embedding look-up.
    pub mfu: f64,
    /// As `mfu`, but attention counts only what causal masks and windows leave.
    pub mfu_causal: f64,
    /// Hardware FLOPs utilization (arXiv 2205.05198, section 4.4): FLOPs that the hardware executes, including
    /// recomputation. Fused attention skips masked blocks, so this is at least [`TrainingEstimate::mfu_causal`] and at
    /// most 1.
    pub hfu: f64,
    /// Model FLOPs per token, forward and backward, as counted in `mfu`.
    pub flops_per_token: f64,
    /// Model FLOPs per token, forward and backward, as counted in `mfu_causal`.
    pub causal_flops_per_token: f64,
    /// FLOPs per token that the hardware executes, as counted in `hfu`.
    pub executed_flops_per_token: f64,
    /// Terms of `time` for one micro-batch on the slowest stage.
    pub micro_batch: MicroBatch,
    /// Recomputation of the estimate; resolved if the input is [`Recompute::Auto`].
    pub recompute: Plan,
    /// Number of micro-batches whose activations the first pipeline stage holds at the same time.
    pub in_flight: f64,
    /// Parts of the step time.
    pub time: TimeBreakdown,
    /// Memory of the accelerator that holds most.
    pub memory: MemoryBreakdown,
    /// Upper bound on that memory, bytes; it determines `fits`.
    pub memory_upper: f64,
    /// Whether the upper bound fits in memory.
    pub fits: bool,
}
