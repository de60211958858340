//! Recomputation in Megatron-Core: whole layers, or modules of every layer.

use atlas_core::plan::{AttentionKernel, Format, Recompute};

use super::Draft;
use crate::launch::job::{Job, Training};

/// What is recomputed.
pub(super) enum Recomputation {
    Nothing,
    /// These modules of every layer (`--recompute-modules`, since Megatron-Core 0.12).
    Modules(Vec<&'static str>),
    /// All layers, or this many of each stage.
    Layers(Option<u64>),
}

/// Selects the modules that free the planned memory. Without them, Megatron-Core recomputes only the core of attention,
/// of which fused kernels keep nothing that matters.
pub(super) fn recomputation(job: &Job<'_>, t: &Training, draft: &mut Draft) -> Recomputation {
    match t.recompute {
        Recompute::Full => {
            return Recomputation::Layers(t.recompute_layers.map(|layers| layers.div_ceil(t.pp * t.vpp)));
        }
        Recompute::None | Recompute::Auto => return Recomputation::Nothing,
        Recompute::Selective => {}
    }
    let moe = job.transformer.experts.is_some();
    let mut modules = Vec::new();
    if job.scenario.attention_kernel(&job.scenario.base) == AttentionKernel::Unfused {
        modules.push("core_attn");
    }
    // The default recipe of FP8, delayed scaling, does not support these modules.
    let narrow = t.format == Format::Fp8;
    if !narrow {
        modules.push("layernorm");
    }
    // There is no module for the activation functions of dense MLPs.
    let exact = moe && !narrow;
    let mlps = t.recompute_mlps || (!exact && !t.fits_without_recomputation);
    match (mlps, moe) {
        (true, true) => modules.extend(["mlp", "moe"]),
        (true, false) => modules.push("mlp"),
        (false, true) if !narrow => modules.push("moe_act"),
        (false, _) => {}
    }
    if mlps {
        draft.note(
            "Megatron-Core recomputes the listed modules in every layer; the plan recomputes MLPs only as far as memory \
             requires, so steps may take longer than predicted",
        );
    } else if !exact {
        draft.note(
            "Megatron-Core has no module that recomputes only the activation functions of MLPs; they are kept, and memory \
             is higher than predicted, but sufficient",
        );
    }
    if modules.is_empty() { Recomputation::Nothing } else { Recomputation::Modules(modules) }
}
