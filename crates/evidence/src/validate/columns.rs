//! Columns of measurement tables: each is a field of a scenario document, a figure, or bookkeeping.

/// Where the value of a column goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Identification and bookkeeping; never part of the scenario.
    Record,
    /// A measured figure.
    Figure,
    /// Read by the conversion itself: counts of accelerators, model, load.
    Special,
    /// A number in the target document.
    Target(&'static [&'static str]),
    /// A number in the workload document.
    Number(&'static [&'static str]),
    /// A word or number format in the workload document.
    Word(&'static [&'static str]),
    /// `true` or `false` in the workload document.
    Flag(&'static [&'static str]),
    /// A number in the architecture, where the row defines the model itself.
    Architecture(&'static [&'static str]),
    /// `true` or `false` in the architecture.
    ArchitectureFlag(&'static [&'static str]),
}

impl Place {
    /// Whether the value is part of the scenario.
    #[must_use]
    pub const fn is_scenario(self) -> bool {
        !matches!(self, Place::Record | Place::Figure)
    }
}

/// One column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Other names under which it is found.
    pub aliases: &'static [&'static str],
    /// Where its value goes.
    pub place: Place,
}

const fn column(name: &'static str, aliases: &'static [&'static str], place: Place) -> Column {
    Column { name, aliases, place }
}

use Place::{Architecture, ArchitectureFlag, Figure, Flag, Number, Record, Special, Target, Word};

/// All columns of all kinds of tables.
pub const COLUMNS: &[Column] = &[
    column("id", &[], Record),
    column("source", &[], Record),
    column("source_path", &[], Record),
    column("date", &[], Record),
    column("notes", &[], Record),
    column("harness", &[], Record),
    column("excluded", &[], Record),
    column("inferred", &[], Record),
    column("assumed", &[], Record),
    column("converted", &[], Record),
    column("model_name", &[], Record),
    column("accelerator", &["gpu", "gpu_type", "accelerator_type", "system"], Special),
    column("num_accelerators", &["gpus", "num_gpus", "n_gpus", "num_devices"], Special),
    column("accelerators_per_node", &["gpus_per_node"], Special),
    column("model", &["model_path"], Special),
    column("software", &["framework", "engine", "backend"], Special),
    column("software_version", &["engine_version", "backend_version"], Special),
    column("scale_up_domain", &[], Target(&["interconnect", "domain_size"])),
    column("nic_gbits_per_accel", &[], Target(&["network", "Gbps_per_accel"])),
    column("hidden_size", &[], Architecture(&["hidden_size"])),
    column("n_layers", &["num_layers"], Architecture(&["n_layers"])),
    column("n_heads", &["num_attention_heads"], Architecture(&["heads", "query"])),
    column("n_kv_heads", &["num_key_value_heads"], Architecture(&["heads", "kv"])),
    column("head_dim", &[], Architecture(&["heads", "dim"])),
    column("ffn_hidden_size", &["intermediate_size"], Architecture(&["mlp", "ffn_hidden_size"])),
    column("gated_mlp", &[], ArchitectureFlag(&["mlp", "gated"])),
    column("vocab_size", &[], Architecture(&["vocab_size"])),
    column("tied_embeddings", &[], ArchitectureFlag(&["tied_embeddings"])),
    column("learned_positions", &[], ArchitectureFlag(&["learned_positions"])),
    column("n_experts", &[], Architecture(&["moe", "experts"])),
    column("experts_per_token", &[], Architecture(&["moe", "per_token"])),
    column("moe_ffn_hidden_size", &[], Architecture(&["moe", "ffn_hidden_size"])),
    column("shared_ffn_hidden_size", &[], Architecture(&["moe", "shared_ffn_hidden_size"])),
    column("first_dense_layers", &[], Architecture(&["moe", "first_dense_layers"])),
    column("window_size", &[], Architecture(&["window", "size"])),
    column("window_share", &[], Architecture(&["window", "share"])),
    column("q_lora_rank", &[], Architecture(&["mla", "q_lora_rank"])),
    column("kv_lora_rank", &[], Architecture(&["mla", "kv_lora_rank"])),
    column("qk_nope_dim", &[], Architecture(&["mla", "qk_nope_dim"])),
    column("qk_rope_dim", &[], Architecture(&["mla", "qk_rope_dim"])),
    column("v_head_dim", &[], Architecture(&["mla", "v_head_dim"])),
    column("attention_layers", &[], Architecture(&["attention_layers"])),
    column("mlp_layers", &[], Architecture(&["mlp_layers"])),
    column("linear_kind", &[], Special),
    column("linear_layers", &[], Architecture(&["linear", "layers"])),
    column("linear_heads", &[], Architecture(&["linear", "heads"])),
    column("linear_head_dim", &[], Architecture(&["linear", "head_dim"])),
    column("linear_state", &[], Architecture(&["linear", "state"])),
    column("linear_groups", &[], Architecture(&["linear", "groups"])),
    column("linear_taps", &[], Architecture(&["linear", "taps"])),
    column("tp", &["tensor_parallel", "tensor_parallel_size", "tp_size"], Number(&["parallelism", "tp"])),
    column("pp", &["pipeline_parallel", "pipeline_parallel_size", "pp_size"], Number(&["parallelism", "pp"])),
    column("cp", &["context_parallel_size"], Number(&["parallelism", "cp"])),
    column("ep", &["expert_parallel_size", "moe_ep_size"], Number(&["parallelism", "ep"])),
    column("dp", &["data_parallel_size"], Special),
    column("vpp", &[], Number(&["parallelism", "vpp"])),
    column("etp", &[], Number(&["parallelism", "etp"])),
    column("attention_dp", &["attention_dp_size"], Number(&["parallelism", "attention_dp"])),
    column("seq_len", &["seq_length", "sequence_length"], Number(&["sequence", "prompt"])),
    column("micro_batch", &["micro_batch_size", "mbs"], Number(&["batch", "micro"])),
    column("global_batch", &["global_batch_size", "gbs"], Number(&["batch", "global"])),
    column("sharding", &[], Word(&["sharding"])),
    column("shard_size", &[], Number(&["shard"])),
    column("sequence_parallel", &[], Flag(&["parallelism", "sp"])),
    column("recompute", &["activation_checkpointing"], Word(&["recompute", "mode"])),
    column("recompute_layers", &[], Number(&["recompute", "layers"])),
    column("pp_schedule", &[], Word(&["pipeline_schedule"])),
    column("precision", &["dtype"], Word(&["precision", "weights"])),
    column("optimizer", &[], Word(&["optimizer"])),
    column("gradient_format", &[], Word(&["precision", "gradients"])),
    column("trained", &[], Word(&["trained"])),
    column("lora_targets", &[], Word(&["lora_targets"])),
    column("cpu_offload", &[], Word(&["cpu_offload"])),
    column("attention_kernel", &[], Word(&["runtime_tuning", "attention_kernel"])),
    column("compiled", &[], Flag(&["runtime_tuning", "compiled"])),
    column("moe_dispatcher", &[], Word(&["runtime_tuning", "moe_dispatcher"])),
    column("moe_capacity", &[], Word(&["runtime_tuning", "moe_capacity"])),
    column("overlap_tensor", &[], Flag(&["runtime_tuning", "overlap_tensor"])),
    column("overlap_pipeline", &[], Flag(&["runtime_tuning", "overlap_pipeline"])),
    column("overlap_data", &[], Flag(&["runtime_tuning", "overlap_data"])),
    // A word in training tables, `true` or `false` in serving tables.
    column("cuda_graphs", &[], Special),
    column("input_len", &["isl"], Number(&["sequence", "prompt"])),
    column("output_len", &["osl"], Number(&["sequence", "generate"])),
    column("output_len_max", &[], Number(&["sequence", "generate_max"])),
    column("output_spread", &[], Number(&["sequence", "generate_spread"])),
    column("load", &[], Word(&["serving", "load"])),
    column("concurrency", &[], Number(&["serving", "concurrency"])),
    column("request_rate", &[], Number(&["serving", "request_rate"])),
    column("requests", &[], Number(&["serving", "run_requests"])),
    column("weights", &["precision_weights"], Word(&["precision", "weights"])),
    column("compute", &[], Word(&["precision", "compute"])),
    column("activations", &["precision_activations"], Word(&["precision", "activations"])),
    column("kv_cache", &["precision_kv"], Word(&["precision", "kv"])),
    column("max_num_seqs", &["max_batch_size"], Number(&["serving", "max_num_seqs"])),
    column("max_num_batched_tokens", &[], Number(&["serving", "max_num_batched_tokens"])),
    column("chunked_prefill", &[], Flag(&["serving", "chunked_prefill"])),
    column("gpu_memory_utilization", &[], Number(&["serving", "gpu_memory_utilization"])),
    column("overlap_scheduling", &[], Flag(&["serving", "overlap_scheduling"])),
    column("recv_interval", &[], Number(&["serving", "recv_interval"])),
    column("context_ranks", &[], Number(&["serving", "context_ranks"])),
    column("beams", &[], Number(&["serving", "beams"])),
    column("draft_tokens", &[], Number(&["serving", "speculative", "tokens"])),
    column("draft_acceptance", &[], Number(&["serving", "speculative", "acceptance"])),
    column("reserve_output", &[], Flag(&["serving", "reserve_output"])),
    column("compiled_batch", &[], Number(&["serving", "compiled_batch"])),
    column("executor", &[], Special),
    column("prefill_workers", &["prefill_num_workers"], Number(&["serving", "pools", "prefill", "workers"])),
    column("prefill_tp", &["prefill_tp_size"], Number(&["serving", "pools", "prefill", "tp"])),
    column("prefill_pp", &["prefill_pp_size"], Number(&["serving", "pools", "prefill", "pp"])),
    column("prefill_ep", &["prefill_moe_ep_size"], Number(&["serving", "pools", "prefill", "ep"])),
    column(
        "prefill_attention_dp",
        &["prefill_attention_dp_size"],
        Number(&["serving", "pools", "prefill", "attention_dp"]),
    ),
    column("decode_workers", &["decode_num_workers"], Number(&["serving", "pools", "decode", "workers"])),
    column("decode_tp", &["decode_tp_size"], Number(&["serving", "pools", "decode", "tp"])),
    column("decode_pp", &["decode_pp_size"], Number(&["serving", "pools", "decode", "pp"])),
    column("decode_ep", &["decode_moe_ep_size"], Number(&["serving", "pools", "decode", "ep"])),
    column(
        "decode_attention_dp",
        &["decode_attention_dp_size"],
        Number(&["serving", "pools", "decode", "attention_dp"]),
    ),
    column("tokens_per_sec_per_accel", &["tokens_per_sec_per_gpu", "tokens_per_sec_per_device"], Figure),
    column("step_time_s", &["step_time", "seconds_per_step"], Figure),
    column("model_tflops_per_accel", &["tflops_per_gpu", "model_tflops_per_gpu"], Figure),
    column("mfu", &[], Figure),
    column("flop_counting", &[], Figure),
    column("peak_memory_gb", &["memory_gb"], Figure),
    column("output_tokens_per_sec", &["output_tokens_per_sec_total"], Figure),
    column("total_tokens_per_sec", &[], Figure),
    column("requests_per_sec", &[], Figure),
    column("ttft_ms", &["silicon_ttft_ms", "ttft_ms_mean"], Figure),
    column("tpot_ms", &["silicon_tpot_ms", "tpot_ms_mean"], Figure),
];

/// The name under which this program reads a column.
#[must_use]
pub fn canonical(name: &str) -> &str {
    let name = name.trim();
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    COLUMNS.iter().find(|column| is(&column.name) || column.aliases.iter().any(is)).map_or(name, |column| column.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_columns_share_a_name_or_an_alias() {
        let mut seen = BTreeSet::new();
        for name in COLUMNS.iter().flat_map(|column| std::iter::once(&column.name).chain(column.aliases)) {
            assert!(seen.insert(*name), "{name}");
        }
    }
}
