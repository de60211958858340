//! Columns of the typed tables and the types of their cells.

use super::TableKind;

/// Type of a non-blank cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Type {
    /// Any text.
    Text,
    /// A finite number above zero.
    Positive,
    /// A whole number of at least one.
    Count,
    /// A number above zero and at most one.
    Share,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A number format of weights, GEMMs or the KV cache.
    Format,
}

/// Names of number formats. [`is_format`] also recognizes those of GGUF and EXL.
const FORMATS: &[&str] = &[
    "fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "int8", "fp6", "mxfp6", "fp4", "nvfp4", "mxfp4", "int4", "awq",
    "gptq", "nf4",
];

/// Whether a word names a number format.
pub(super) fn is_format(word: &str) -> bool {
    let gguf = |w: &str| {
        let mut parts = w.strip_prefix("iq").or_else(|| w.strip_prefix('q')).unwrap_or("").split('_');
        let bits = parts.next().unwrap_or("");
        matches!(bits.as_bytes(), [b'1'..=b'8'])
            && parts.clone().next().is_some()
            && parts.all(|p| matches!(p, "0" | "1" | "k" | "s" | "m" | "l" | "xl" | "xs" | "xxs" | "nl"))
    };
    let exl = |w: &str| {
        let bits = w.strip_prefix("exl2-").or_else(|| w.strip_prefix("exl3-")).and_then(|b| b.strip_suffix("bpw"));
        bits.and_then(|b| b.parse::<f64>().ok()).is_some_and(|b| (1.0..=16.0).contains(&b))
    };
    FORMATS.contains(&word) || gguf(word) || exl(word)
}

impl Type {
    /// Whether the text is valid for a cell of this type.
    pub(super) fn accepts(self, text: &str) -> bool {
        let number = || text.parse::<f64>().ok().filter(|x| x.is_finite());
        match self {
            Type::Text => true,
            Type::Positive => number().is_some_and(|x| x > 0.0),
            Type::Count => number().is_some_and(|x| x >= 1.0 && x.fract() == 0.0),
            Type::Share => number().is_some_and(|x| x > 0.0 && x <= 1.0),
            Type::Flag => matches!(text, "true" | "false"),
            Type::Choice(words) => words.contains(&text),
            Type::Format => is_format(text),
        }
    }

    /// Returns a description of the type for error messages.
    pub(super) fn expected(self) -> String {
        match self {
            Type::Text => "text".into(),
            Type::Positive => "a number above zero".into(),
            Type::Count => "a whole number of at least one".into(),
            Type::Share => "a number above zero and at most one".into(),
            Type::Flag => "true or false".into(),
            Type::Choice(words) => format!("one of {}", words.join(", ")),
            Type::Format => "a number format such as bf16, fp8, int4 or q4_k_m".into(),
        }
    }
}

/// A column of a typed table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// Name of the column.
    pub name: &'static str,
    /// Type of the cells.
    pub kind: Type,
}

const fn column(name: &'static str, kind: Type) -> Column {
    Column { name, kind }
}

const COMMON: &[Column] = &[
    column("id", Type::Text),
    column("source", Type::Text),
    column("source_path", Type::Text),
    column("date", Type::Text),
    column("accelerator", Type::Text),
    column("num_accelerators", Type::Count),
    column("accelerators_per_node", Type::Count),
    column("scale_up_domain", Type::Count),
    column("nic_gbits_per_accel", Type::Positive),
    column("model", Type::Text),
    column("model_name", Type::Text),
];

/// Architecture columns, named like the fields of the model catalog.
pub(super) const ARCHITECTURE: &[Column] = &[
    column("n_layers", Type::Count),
    column("hidden_size", Type::Count),
    column("n_heads", Type::Positive),
    column("n_kv_heads", Type::Positive),
    column("head_dim", Type::Positive),
    column("ffn_hidden_size", Type::Positive),
    column("gated_mlp", Type::Flag),
    column("vocab_size", Type::Count),
    column("tied_embeddings", Type::Flag),
    column("learned_positions", Type::Flag),
    column("n_experts", Type::Count),
    column("experts_per_token", Type::Count),
    column("moe_ffn_hidden_size", Type::Positive),
    column("shared_ffn_hidden_size", Type::Positive),
    column("first_dense_layers", Type::Count),
    column("window_size", Type::Count),
    column("window_share", Type::Share),
    column("q_lora_rank", Type::Count),
    column("kv_lora_rank", Type::Count),
    column("qk_nope_dim", Type::Count),
    column("qk_rope_dim", Type::Count),
    column("v_head_dim", Type::Count),
    column("attention_layers", Type::Count),
    column("mlp_layers", Type::Count),
    column("linear_kind", Type::Choice(&["mamba1", "mamba2", "gated_delta"])),
    column("linear_layers", Type::Count),
    column("linear_heads", Type::Count),
    column("linear_head_dim", Type::Count),
    column("linear_state", Type::Count),
    column("linear_groups", Type::Count),
    column("linear_taps", Type::Count),
];

const PARALLEL: &[Column] = &[
    column("software", Type::Text),
    column("harness", Type::Text),
    column("tp", Type::Count),
    column("pp", Type::Count),
    column("cp", Type::Count),
    column("ep", Type::Count),
    column("dp", Type::Count),
];

const TRAINING: &[Column] = &[
    column("vpp", Type::Count),
    column("etp", Type::Count),
    column("mtp_layers", Type::Count),
    column("seq_len", Type::Count),
    column("micro_batch", Type::Positive),
    column("global_batch", Type::Positive),
    column("sharding", Type::Choice(&["none", "zero1", "zero2", "zero3"])),
    column("shard_size", Type::Count),
    column("sequence_parallel", Type::Flag),
    column("recompute", Type::Choice(&["none", "selective", "full"])),
    column("recompute_layers", Type::Count),
    column("pp_schedule", Type::Choice(&["1f1b", "gpipe", "zero-bubble", "zero-bubble-1p"])),
    column("precision", Type::Choice(&["bf16", "fp16", "fp32", "tf32", "fp8", "mxfp8", "fp4", "nvfp4", "int8"])),
    column("optimizer", Type::Choice(&["adam", "sgd", "adafactor", "muon", "lion"])),
    column("optimizer_state_format", Type::Format),
    column("gradient_format", Type::Format),
    column("bf16_layers", Type::Count),
    column("trained", Type::Choice(&["all", "lora"])),
    column("lora_targets", Type::Choice(&["all", "attention"])),
    column("cpu_offload", Type::Choice(&["none", "optimizer", "parameters"])),
    column("attention_kernel", Type::Choice(&["unfused", "flash1", "flash2", "native"])),
    column("cuda_graphs", Type::Choice(&["none", "layer", "full-iteration"])),
    column("compiled", Type::Flag),
    column("moe_dispatcher", Type::Choice(&["alltoall", "deepep", "hybridep"])),
    column("moe_capacity", Type::Choice(&["dropless", "dropped"])),
    column("overlap_tensor", Type::Flag),
    column("overlap_pipeline", Type::Flag),
    column("overlap_data", Type::Flag),
    column("tokens_per_sec_per_accel", Type::Positive),
    column("step_time_s", Type::Positive),
    column("model_tflops_per_accel", Type::Positive),
    column("mfu", Type::Share),
    column("flop_counting", Type::Choice(&["full", "causal"])),
    column("peak_memory_gb", Type::Positive),
];

const SERVING: &[Column] = &[
    column("input_len", Type::Positive),
    column("output_len", Type::Positive),
    column("output_len_max", Type::Positive),
    column("output_spread", Type::Positive),
    column("load", Type::Choice(&["static", "closed", "open", "burst", "decode-only", "prefill-only"])),
    column("concurrency", Type::Positive),
    column("request_rate", Type::Positive),
    column("requests", Type::Count),
    column("attention_dp", Type::Count),
    column("prefill_workers", Type::Count),
    column("prefill_tp", Type::Count),
    column("prefill_pp", Type::Count),
    column("prefill_ep", Type::Count),
    column("prefill_attention_dp", Type::Count),
    column("decode_workers", Type::Count),
    column("decode_tp", Type::Count),
    column("decode_pp", Type::Count),
    column("decode_ep", Type::Count),
    column("decode_attention_dp", Type::Count),
    column("weights", Type::Format),
    column("expert_weights", Type::Format),
    column("compute", Type::Format),
    column("kv_cache", Type::Format),
    column("max_num_seqs", Type::Count),
    column("max_num_batched_tokens", Type::Count),
    column("chunked_prefill", Type::Flag),
    column("gpu_memory_utilization", Type::Share),
    column("cuda_graphs", Type::Flag),
    column("overlap_scheduling", Type::Flag),
    column("recv_interval", Type::Count),
    column("context_ranks", Type::Count),
    column("beams", Type::Count),
    column("draft_tokens", Type::Count),
    column("draft_acceptance", Type::Share),
    column("reserve_output", Type::Flag),
    column("compiled_batch", Type::Count),
    column("executor", Type::Choice(&["python", "native"])),
    column("output_tokens_per_sec", Type::Positive),
    column("total_tokens_per_sec", Type::Positive),
    column("requests_per_sec", Type::Positive),
    column("tokens_per_sec_per_accel", Type::Positive),
    column("ttft_ms", Type::Positive),
    column("tpot_ms", Type::Positive),
];

/// Columns that record the origin of the values. `notes` is for readers and is not parsed.
const BOOKKEEPING: &[Column] = &[
    column("excluded", Type::Text),
    column("inferred", Type::Text),
    column("assumed", Type::Text),
    column("converted", Type::Text),
    column("notes", Type::Text),
];

/// Returns the columns of a table of this kind, in order.
pub(super) fn columns(kind: TableKind) -> impl Iterator<Item = &'static Column> {
    let own = match kind {
        TableKind::Training => TRAINING,
        TableKind::Inference | TableKind::Latency => SERVING,
    };
    [COMMON, ARCHITECTURE, PARALLEL, own, BOOKKEEPING].into_iter().flatten()
}

/// Returns the type of a column.
pub(super) fn type_of(kind: TableKind, name: &str) -> Option<Type> {
    columns(kind).find(|column| column.name == name).map(|column| column.kind)
}

/// Whether a header belongs to a typed table.
pub(super) fn is_typed(headers: &[String]) -> bool {
    ["software", "assumed", "inferred", "converted"].iter().all(|name| headers.iter().any(|head| head == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_names_are_unique() {
        for kind in TableKind::ALL {
            let names: Vec<_> = columns(kind).map(|column| column.name).collect();
            let mut unique = names.clone();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), names.len(), "{kind:?}");
        }
    }

    #[test]
    fn formats_are_recognized() {
        for word in ["bf16", "q4_k_m", "q8_0", "iq4_xs", "exl2-4.0bpw", "mxfp4"] {
            assert!(is_format(word), "{word}");
        }
        for word in ["", "q", "q9_0", "q4", "exl2-bpw", "exl2-99bpw", "fast", "fp8/fp4"] {
            assert!(!is_format(word), "{word}");
        }
    }
}
