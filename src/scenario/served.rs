//! What the serving software does where neither file nor knob says otherwise.

use super::Machine;
use crate::engine::analytical::arch::Architecture;
use crate::engine::analytical::serving::{Admission, Formats, Stack, software};
use crate::plan::{Format, Server};
use crate::spec::workload::PlanSpec;

/// Runtime, formats and scheduler of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Served {
    /// Which server.
    pub server: Server,
    /// What kind of software it is.
    pub stack: Stack,
    /// How it admits requests.
    pub admission: Admission,
    /// Whether decode steps replay captured graphs, where the accelerator's port of it can.
    pub captured_graphs: bool,
    /// Whether prompts run uncompiled, kernel by kernel.
    pub eager_prompts: bool,
    /// Whether a mixture's experts are multiplied one after another for want of a grouped kernel for their format.
    pub experts_in_turn: bool,
    /// Whether the next step is scheduled while the accelerator computes.
    pub overlapped: bool,
    /// Whether a compiled engine is driven from Python (TensorRT-LLM since 1.0).
    pub python_executor: bool,
    /// Whether a sequence is admitted only when its whole output fits.
    pub reserve_output: bool,
    /// Format of weights in force.
    pub format: Format,
    /// Bytes and arithmetic of weights and KV cache.
    pub formats: Formats,
    /// Its `max_num_seqs`.
    pub max_num_seqs: f64,
    /// Its `max_num_batched_tokens`.
    pub max_num_batched_tokens: f64,
    /// Whether it chunks prompts.
    pub chunked_prefill: bool,
    /// Its `gpu_memory_utilization`.
    pub gpu_memory_utilization: f64,
}

impl Default for Served {
    fn default() -> Served {
        Served {
            server: Server::Vllm,
            stack: Stack::Graphed,
            admission: Admission::EveryStep,
            captured_graphs: true,
            eager_prompts: false,
            experts_in_turn: false,
            overlapped: true,
            python_executor: false,
            reserve_output: false,
            format: Format::Bf16,
            formats: Formats::default(),
            max_num_seqs: 256.0,
            max_num_batched_tokens: 8192.0,
            chunked_prefill: true,
            gpu_memory_utilization: 0.9,
        }
    }
}

impl Served {
    /// The defaults of the plan's server on this machine for this model, which the catalog calls `name`.
    pub(super) fn of(
        plan: &PlanSpec,
        machine: &Machine,
        model: &Architecture,
        name: &str,
        activations: &str,
    ) -> Served {
        let server = plan.serving.server.unwrap_or(Server::Vllm);
        let engine = server.name();
        let device = &machine.device;
        let mut stack = software::stack(engine);
        if stack == Stack::Graphed && software::lacks_graphs(device, engine) {
            stack = Stack::Eager;
        }
        let native = Format::named(software::native(name)).unwrap_or(Format::Bf16);
        let format = plan.format.unwrap_or(native);
        let kv = plan.kv.map_or("", Format::name);
        // A checkpoint's activations are wide where nothing else is said of formats that hardware multiplies itself.
        let activations = if plan.format.is_some() { activations } else { "" };
        let weights = if format == Format::Mxfp8 { "mxfp8" } else { format.name() };
        let formats = software::formats(device, model, name, engine, stack, weights, activations, kv);
        let (seqs, tokens, chunked_prefill, share) = software::scheduler(engine, "", device);
        Served {
            server,
            stack,
            admission: software::admission(engine),
            captured_graphs: software::captured_graphs(device, engine, "", "", 0.0),
            eager_prompts: software::eager_prompts(engine),
            experts_in_turn: software::experts_in_turn(model, &formats, engine),
            overlapped: software::overlapped(engine, ""),
            python_executor: software::python_executor(engine, "1.0", "", ""),
            reserve_output: server == Server::TensorRtLlm,
            format,
            formats,
            max_num_seqs: seqs,
            max_num_batched_tokens: tokens,
            chunked_prefill,
            gpu_memory_utilization: share,
        }
    }
}
