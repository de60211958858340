//! What launching kernels costs: gaps on the device, launches by the host where no graph is replayed, and the host's time
//! between steps.

use super::input::{GraphCapture, HostOverlap, Load, ServingInput, Stack, StepInputs};
use crate::accelerator::Generation;
use crate::constants::Constants;
use atlas_core::count::Count;

/// Kernels for one of an engine's where nothing is fused: 23 operators a layer.
const UNFUSED: f64 = 3.0;

/// Seconds of launching.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Launch {
    /// A kernel's gap on the device.
    pub kernel: f64,
    /// The host's time for a kernel of a decode step.
    pub issue: f64,
    /// The same for batches beyond the largest captured one.
    pub uncaptured: f64,
    /// Sequences of the largest captured batch, if there is one.
    pub graph_batch: Option<Count>,
    /// The host's time for a kernel of a prompt.
    pub prompt: f64,
    /// The host's time for the pieces of a layer's graph.
    pub piece: f64,
    /// The host's time between two steps.
    pub step: f64,
    /// The same for each running sequence.
    pub sequence: f64,
    /// How often it is spent again on drafts.
    pub drafts: DraftSteps,
}

/// What drafting costs the host in a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum DraftSteps {
    /// Nothing: they are scheduled ahead, as everything is.
    Hidden,
    /// One more step: all drafts are prepared at once, and replayed as one graph or run in a loop beside the accelerator.
    Together,
    /// A step for each drafted token.
    Each,
}

impl DraftSteps {
    /// Steps of the host for so many drafted tokens.
    pub(super) fn of(self, drafted: f64) -> f64 {
        match self {
            DraftSteps::Hidden => 0.0,
            DraftSteps::Together => drafted.min(1.0),
            DraftSteps::Each => drafted,
        }
    }
}

impl Launch {
    /// Of a deployment whose software reaches the share `mature` of what CUDA's does.
    pub(super) fn of(input: &ServingInput, c: &Constants, mature: f64) -> Launch {
        let (acc, f) = (&input.accelerator, &input.formats);
        let python = match input.inputs {
            StepInputs::Rebuilt => c.step_python,
            StepInputs::Incremental => c.step_incremental,
        };
        let native = if acc.generation.runs_reference_kernels() { c.kernel_native } else { c.kernel_prefill };
        // Without a graph, in one and the same software.
        let uncaptured = match input.stack {
            Stack::Compiled => 0.0,
            Stack::Graphed => f.product_kernels * c.kernel_prefill,
            Stack::Eager => c.kernel_eager * f.product_kernels,
            Stack::Local => UNFUSED * native,
        };
        let captured = input.graphs != GraphCapture::None;
        let (gap, issue, step) = match input.stack {
            Stack::Compiled => (c.kernel_graph, 0.0, c.step_compiled),
            Stack::Graphed => (c.kernel_graph, if captured { 0.0 } else { uncaptured }, python),
            Stack::Eager => (UNFUSED * c.kernel_graph, uncaptured, python),
            Stack::Local if captured => (c.kernel_graph, 0.0, 0.0),
            Stack::Local => (UNFUSED * c.kernel_graph, uncaptured, 0.0),
        };
        // XLA's and Neuron's compilers make one program of a whole step.
        let program = match acc.generation {
            Generation::Tpu | Generation::Trainium if input.stack == Stack::Graphed => 0.1,
            _ => 1.0,
        };
        let exposed = if input.host == HostOverlap::Scheduling { c.host_exposed } else { 1.0 };
        Launch {
            kernel: match (input.stack, acc.generation) {
                // Dataflow accelerators run a whole decoder layer as one kernel (Prabhakar et al., arXiv 2405.07518).
                (Stack::Compiled, Generation::Other) => 0.1 * gap,
                (Stack::Compiled | Stack::Graphed, Generation::Tpu | Generation::Trainium) => 0.1 * gap,
                _ => gap / mature,
            },
            issue: program * issue,
            uncaptured: program * uncaptured,
            graph_batch: input.graph_batch,
            prompt: match input.stack {
                Stack::Local => 0.0,
                Stack::Graphed if input.eager_prompts => c.kernel_eager,
                _ => c.kernel_prefill,
            },
            // The host launches every piece of a layer's graph, and attention between two of them.
            piece: if input.stack == Stack::Graphed && input.graphs == GraphCapture::Piecewise {
                2.0 * c.kernel_prefill
            } else {
                0.0
            },
            step: exposed * step,
            sequence: match input.stack {
                // Answers that clients follow as they grow are written out at every step, by the loop that schedules where
                // nothing overlaps.
                Stack::Graphed
                    if input.host == HostOverlap::None
                        && matches!(input.load, Load::Closed { .. } | Load::Open { .. }) =>
                {
                    c.host_per_sequence + c.stream_per_sequence
                }
                Stack::Graphed | Stack::Eager => exposed * c.host_per_sequence,
                Stack::Compiled if input.python_executor => exposed * c.host_per_sequence,
                // Native runtimes do the same work in compiled code.
                Stack::Compiled | Stack::Local => 0.1 * c.host_per_sequence,
            },
            drafts: match input.host {
                HostOverlap::Scheduling => DraftSteps::Hidden,
                HostOverlap::FrontEnd => DraftSteps::Together,
                HostOverlap::None => DraftSteps::Each,
            },
        }
    }
}
