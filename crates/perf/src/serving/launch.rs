//! Cost of kernel launches: gaps on the device, launches by the host outside graphs, and host time between steps.

use super::input::{GraphCapture, HostOverlap, Load, ServingInput, Stack, StepInputs};
use crate::constants::Constants;
use crate::constants::documented::UNFUSED_KERNELS;
use crate::constants::generation::Compilation;
use atlas_core::count::Count;

/// Launch times, s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Launch {
    /// Gap per kernel on the device.
    pub kernel: f64,
    /// Host time per kernel of a decode step.
    pub issue: f64,
    /// As `issue`, for batches larger than `graph_batch`.
    pub uncaptured: f64,
    /// Largest captured batch, sequences; `None`: no limit.
    pub graph_batch: Option<Count>,
    /// Host time per kernel of a prefill.
    pub prompt: f64,
    /// Host time per mixer to launch the pieces of its layer's graph.
    pub piece: f64,
    /// Host time between two steps.
    pub step: f64,
    /// Host time between two steps per running sequence.
    pub sequence: f64,
    /// Additional host time for drafting.
    pub drafts: HostDraftSteps,
}

/// Host time of drafting, in steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum HostDraftSteps {
    /// None: drafting is scheduled ahead, as all host work.
    Hidden,
    /// One additional step: all drafts are prepared together, and run as one graph or in a loop that overlaps with the
    /// accelerator.
    Together,
    /// One additional step per drafted token.
    Each,
}

impl HostDraftSteps {
    /// Additional steps of host time for `drafted` tokens.
    pub(super) fn of(self, drafted: f64) -> f64 {
        match self {
            HostDraftSteps::Hidden => 0.0,
            HostDraftSteps::Together => drafted.min(1.0),
            HostDraftSteps::Each => drafted,
        }
    }
}

impl Launch {
    /// Launch times of a deployment whose kernels reach the share `kernel_maturity` of CUDA's efficiency.
    pub(super) fn of(input: &ServingInput, c: &Constants, kernel_maturity: f64) -> Launch {
        let (acc, f) = (&input.accelerator, &input.formats);
        let python = match input.inputs {
            StepInputs::Rebuilt => c.step_python,
            StepInputs::Incremental => c.step_incremental,
        };
        let native = if acc.generation.runs_reference_kernels() { c.kernel_native } else { c.kernel_prefill };
        // Host time per kernel outside graphs.
        let uncaptured = match input.stack {
            Stack::Compiled => 0.0,
            Stack::Graphed => f.product_kernels * c.kernel_prefill,
            Stack::Eager => c.kernel_eager * f.product_kernels,
            Stack::Local => UNFUSED_KERNELS * native,
        };
        let captured = input.graphs != GraphCapture::None;
        let (gap, issue, step) = match input.stack {
            Stack::Compiled => (c.kernel_graph, 0.0, c.step_compiled),
            Stack::Graphed => (c.kernel_graph, if captured { 0.0 } else { uncaptured }, python),
            Stack::Eager => (UNFUSED_KERNELS * c.kernel_graph, uncaptured, python),
            Stack::Local if captured => (c.kernel_graph, 0.0, 0.0),
            Stack::Local => (UNFUSED_KERNELS * c.kernel_graph, uncaptured, 0.0),
        };
        let program = match (acc.generation.properties().compilation, input.stack) {
            (Compilation::Steps, Stack::Compiled | Stack::Graphed) | (Compilation::Dataflow, Stack::Compiled) => {
                Some(c.kernel_program)
            }
            _ => None,
        };
        let launched = program.unwrap_or(1.0);
        let exposed = if input.host == HostOverlap::Scheduling { c.host_exposed } else { 1.0 };
        Launch {
            kernel: program.map_or(gap / kernel_maturity, |share| share * gap),
            issue: launched * issue,
            uncaptured: launched * uncaptured,
            graph_batch: input.graph_batch,
            prompt: match input.stack {
                Stack::Local => 0.0,
                Stack::Graphed if input.eager_prompts => c.kernel_eager,
                _ => c.kernel_prefill,
            },
            // The host launches each piece of a layer's graph, and attention between two pieces.
            piece: if input.stack == Stack::Graphed && input.graphs == GraphCapture::Piecewise {
                2.0 * c.kernel_prefill
            } else {
                0.0
            },
            step: exposed * step,
            sequence: match input.stack {
                // Streamed responses are written in every step, by the scheduling loop if nothing overlaps.
                Stack::Graphed
                    if input.host == HostOverlap::None
                        && matches!(input.load, Load::Closed { .. } | Load::Open { .. }) =>
                {
                    c.host_per_sequence + c.stream_per_sequence
                }
                Stack::Graphed | Stack::Eager => exposed * c.host_per_sequence,
                Stack::Compiled if input.python_executor => exposed * c.host_per_sequence,
                // Native runtimes do this work in compiled code.
                Stack::Compiled | Stack::Local => c.native_per_sequence * c.host_per_sequence,
            },
            drafts: match input.host {
                HostOverlap::Scheduling => HostDraftSteps::Hidden,
                HostOverlap::FrontEnd => HostDraftSteps::Together,
                HostOverlap::None => HostDraftSteps::Each,
            },
        }
    }
}
