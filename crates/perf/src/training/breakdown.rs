//! Parts of the time of a step.

use crate::parts::TimePart;

/// Seconds of a step by cause; [`TimeBreakdown::total`] is the step time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TimeBreakdown {
    /// Matrix multiplications.
    pub gemm: f64,
    /// Attention.
    pub attention: f64,
    /// Memory-bound operators.
    pub elementwise: f64,
    /// Recomputation.
    pub recompute: f64,
    /// Waiting for the host to launch kernels.
    pub host: f64,
    /// Exposed tensor-parallel communication.
    pub tensor_parallel: f64,
    /// Exposed context-parallel communication.
    pub context_parallel: f64,
    /// Exposed expert dispatch and combine.
    pub expert_parallel: f64,
    /// Exposed transfers between stages.
    pub pipeline_transfer: f64,
    /// Pipeline bubble.
    pub pipeline_bubble: f64,
    /// Exposed gradient reduction and weight gathering.
    pub data_parallel: f64,
    /// Optimizer and per-step overhead.
    pub optimizer: f64,
    /// Exposed transfers to and from the host, and computation on the host.
    pub offload: f64,
    /// Encoding images, forward and backward.
    pub images: f64,
}

impl TimeBreakdown {
    /// The parts in order of declaration.
    pub const PARTS: [TimePart; 14] = [
        TimePart::Gemm,
        TimePart::Attention,
        TimePart::Elementwise,
        TimePart::Recompute,
        TimePart::Host,
        TimePart::TensorParallel,
        TimePart::ContextParallel,
        TimePart::ExpertParallel,
        TimePart::PipelineTransfer,
        TimePart::PipelineBubble,
        TimePart::DataParallel,
        TimePart::Optimizer,
        TimePart::Offload,
        TimePart::Images,
    ];

    /// Values in order of declaration.
    pub fn values(&self) -> [f64; 14] {
        [
            self.gemm,
            self.attention,
            self.elementwise,
            self.recompute,
            self.host,
            self.tensor_parallel,
            self.context_parallel,
            self.expert_parallel,
            self.pipeline_transfer,
            self.pipeline_bubble,
            self.data_parallel,
            self.optimizer,
            self.offload,
            self.images,
        ]
    }

    /// The step time.
    pub fn total(&self) -> f64 {
        self.values().iter().sum()
    }
}
