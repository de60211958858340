//! Which training software a row was measured with, and what that software does where the row is silent: by its
//! documented defaults of the time.

use super::table::Row;
use crate::engine::analytical::accelerator::Precision;
use crate::engine::analytical::arch::Architecture;
use crate::engine::analytical::training::Software;

/// A family of training software, as far as it implies what a row leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stack {
    /// Megatron-Core and what wraps it: NeMo, Megatron-Bridge, Primus, MindSpeed, FlagScale.
    Megatron,
    /// Megatron-LM of 2021-22 and Megatron-DeepSpeed: unfused attention, communication not overlapped.
    MegatronLegacy,
    /// PyTorch FSDP, DeepSpeed ZeRO and the like, eager.
    Eager,
    /// JAX: MaxText, Paxml, T5X.
    Xla,
    /// Neuron and other whole-graph compilers.
    Graph,
}

/// The family that a row's framework belongs to.
pub(super) fn stack(row: &Row) -> Stack {
    let f = row.text("framework").to_ascii_lowercase();
    // Flash attention and overlapped communication came to NeMo and Megatron-Core in the middle of 2023.
    let early = (1..).contains(&row.text("date").len()) && row.text("date") < "2023-07";
    let has = |s: &str| f.contains(s);
    if has("maxtext") || has("pax") || has("jax") || has("t5x") {
        Stack::Xla
    } else if has("neuron") {
        Stack::Graph
    } else if has("megatron-deepspeed") || has("megatron-lm + deepspeed") {
        Stack::MegatronLegacy
    } else if (has("megatron") || has("nemo")) && !has("automodel") {
        if early { Stack::MegatronLegacy } else { Stack::Megatron }
    } else if has("mindspeed") || has("flagscale") || has("primus") || has("hai-llm") || has("nvidia") || has("ngc") {
        Stack::Megatron
    } else {
        Stack::Eager
    }
}

/// Month of the software: of the release that its name states ("NeMo 24.03.01"), else of the row.
fn month(row: &Row) -> String {
    let release = row.text("framework").split(|ch: char| ch.is_whitespace() || ch == ')').find_map(|w| {
        let (year, rest) = w.split_once('.')?;
        let month = rest.get(..2)?;
        let digits = |t: &str| t.len() == 2 && t.bytes().all(|b| b.is_ascii_digit());
        (digits(year) && digits(month)).then(|| format!("20{year}-{month}"))
    });
    release.unwrap_or_else(|| row.text("date").get(..7).unwrap_or("2024-01").to_string())
}

/// What the software did, by the defaults of its family and month, and by what the row says.
pub(super) fn software(row: &Row, stack: Stack, arch: &Architecture, precision: Precision) -> Software {
    let notes = row.text("notes").to_ascii_lowercase();
    // Plain Megatron-LM computed attention unfused unless told otherwise until Megatron-Core replaced it.
    let early = row.text("date") < if row.text("framework").contains("Megatron-LM") { "2024-07" } else { "2023" };
    let named_flash = row.text("framework").to_ascii_lowercase().contains("flashattention");
    let fused = !notes.contains("no flash attention")
        && (named_flash || notes.contains("flash attention") || (stack != Stack::MegatronLegacy && !early));
    let modern = stack != Stack::MegatronLegacy;
    let framework = row.text("framework").to_ascii_lowercase();
    let date = month(row);
    // NeMo and what follows it switch the overlap on; plain Megatron-LM leaves it off unless asked.
    let tuned = framework.contains("nemo") || framework.contains("bridge") || framework.contains("nvidia");
    // Sync-free experts under a full-iteration CUDA graph came with 26.06 (June 2026), for MXFP8 and layers of attention.
    let released = date.as_str() >= "2026-06" && row.text("precision") == "mxfp8" && arch.linear.is_none();
    let sync_free = notes.contains("full-iteration cuda graph") || released;
    let graph = notes.contains("cuda graph") || row.text("framework").contains("compile");
    Software {
        fused_attention: fused,
        fused_elementwise: stack != Stack::Eager || graph,
        compiled: matches!(stack, Stack::Xla | Stack::Graph) || graph,
        // cuDNN 9 attention came with Transformer Engine in the middle of 2024, FlashAttention-3 to PyTorch later.
        native_attention: match stack {
            Stack::Eager => date.as_str() >= "2025-07",
            Stack::Xla if row.text("accelerator").starts_with("nvidia") => date.as_str() >= "2024-10",
            Stack::Xla | Stack::Graph => true,
            Stack::Megatron | Stack::MegatronLegacy => date.as_str() >= "2024-07",
        },
        // llm-foundry's default was Triton's attention (`attn_impl: triton`) until the middle of 2024.
        first_flash: framework.contains("llm-foundry") || named_flash,
        fused_experts: matches!(stack, Stack::Xla | Stack::Graph) || sync_free,
        // "tokendrop": a fixed capacity of every expert.
        synchronous_routing: !matches!(stack, Stack::Xla | Stack::Graph) && !sync_free && !notes.contains("tokendrop"),
        deduplicated_dispatch: sync_free || notes.contains("deepep") || notes.contains("hybridep"),
        overlap_tensor: tuned
            || notes.contains("computation fusion")
            || notes.contains("communication fusion")
            || stack == Stack::Xla,
        overlap_pipeline: modern,
        overlap_data: modern,
        dropout: stack == Stack::MegatronLegacy,
        // DeepSpeed's bf16 optimizer serves ZeRO up to the first stage; fp16 has another.
        fused_sums: !framework.contains("deepspeed") || precision != Precision::Bf16,
        alternate_recompute: framework.contains("torchtitan"),
    }
}
