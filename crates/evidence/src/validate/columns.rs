//! Columns of measurement tables: each is a field of a scenario document, a measured metric, or bookkeeping.
//!
//! A column that corresponds to a knob takes its help and unit from the registry of knobs.

use atlas_plan::knob::{FileLocation, Knob, Spec, ValueType};

/// Destination of the value of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnTarget {
    /// Identification and bookkeeping; never part of the scenario.
    Record,
    /// A measured metric.
    Measured,
    /// Handled by the conversion itself: counts of accelerators, model, load.
    Special,
    /// A number in the target document.
    Target(&'static [&'static str]),
    /// A number in the workload document.
    Number(&'static [&'static str]),
    /// A text or number format in the workload document.
    Word(&'static [&'static str]),
    /// `true` or `false` in the workload document.
    Flag(&'static [&'static str]),
    /// A number in the architecture, if the row defines the model itself.
    Architecture(&'static [&'static str]),
    /// `true` or `false` in the architecture.
    ArchitectureFlag(&'static [&'static str]),
}

impl ColumnTarget {
    /// Whether the value is part of the scenario.
    #[must_use]
    pub const fn is_scenario(self) -> bool {
        !matches!(self, ColumnTarget::Record | ColumnTarget::Measured)
    }
}

/// Values that a column accepts. A cell may be blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellType {
    /// Any text.
    Text,
    /// A whole number of at least one; 0 is treated as blank.
    Count,
    /// A finite number above zero; 0 is treated as blank, except for a measured metric.
    Positive,
    /// A number above zero and up to one.
    Share,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Words(&'static [&'static str]),
}

/// A column of a measurement table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Canonical name.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// Destination of its values.
    pub place: ColumnTarget,
    /// Values that it accepts.
    pub takes: CellType,
    /// Help text, if not that of a knob.
    help: &'static str,
    /// Unit, if not that of a knob.
    unit: &'static str,
    /// Corresponding knob.
    knob: Option<Knob>,
}

const fn column(name: &'static str, aliases: &'static [&'static str], place: ColumnTarget, takes: CellType) -> Column {
    Column { name, aliases, place, takes, help: "", unit: "", knob: None }
}

/// Creates a column for a knob, with the destination, accepted values, unit and help of the knob.
const fn field(name: &'static str, aliases: &'static [&'static str], knob: Knob) -> Column {
    let spec = knob.spec();
    let path = match spec.location {
        FileLocation::Workload(path) | FileLocation::Target(path) => path,
        FileLocation::Nowhere => &[],
    };
    let takes = CellType::of(spec);
    let place = match (spec.location, takes) {
        (FileLocation::Target(path), _) => ColumnTarget::Target(path),
        (_, CellType::Flag) => ColumnTarget::Flag(path),
        (_, CellType::Text) => ColumnTarget::Word(path),
        _ => ColumnTarget::Number(path),
    };
    column(name, aliases, place, takes).same_as(knob)
}

impl Column {
    const fn help(self, help: &'static str) -> Column {
        Column { help, ..self }
    }

    const fn unit(self, unit: &'static str) -> Column {
        Column { unit, ..self }
    }

    const fn takes(self, takes: CellType) -> Column {
        Column { takes, ..self }
    }

    const fn same_as(self, knob: Knob) -> Column {
        Column { knob: Some(knob), ..self }
    }

    /// Its name and aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Specification of the corresponding knob.
    #[must_use]
    pub fn knob(&self) -> Option<&'static Spec> {
        self.knob.map(Knob::spec)
    }

    /// Help text in one line.
    #[must_use]
    pub fn help_text(&self) -> &'static str {
        if self.help.is_empty() { self.knob().map_or("", |spec| spec.help) } else { self.help }
    }

    /// Unit, or an empty string.
    #[must_use]
    pub fn unit_text(&self) -> &'static str {
        if self.unit.is_empty() { self.knob().map_or("", |spec| spec.unit) } else { self.unit }
    }

    /// Returns what the column accepts if `text` is invalid, or `None` if it is valid.
    #[must_use]
    pub fn expected(&self, text: &str) -> Option<String> {
        let number = text.parse::<f64>().ok();
        let figure = self.place == ColumnTarget::Measured;
        // A size of zero, or an infinite request rate, counts as not given.
        let nothing = !figure && self.name != "num_accelerators" && number == Some(0.0);
        let endless = self.name == "request_rate" && number == Some(f64::INFINITY);
        if text.is_empty() || nothing || endless {
            return None;
        }
        let number = number.filter(|value| value.is_finite());
        let within = |holds: fn(f64) -> bool| number.is_some_and(holds);
        let fine = match self.takes {
            CellType::Text => true,
            CellType::Count => within(|value| value >= 1.0 && value.fract() == 0.0),
            CellType::Positive => within(|value| value > 0.0),
            CellType::Share => within(|value| value > 0.0 && value <= 1.0),
            CellType::Flag => {
                ["true", "false", "yes", "no", "1", "0"].iter().any(|word| text.eq_ignore_ascii_case(word))
            }
            CellType::Words(words) => words.iter().any(|word| text.eq_ignore_ascii_case(word)),
        };
        (!fine).then(|| self.takes.describe())
    }
}

impl CellType {
    /// Values of a knob.
    #[must_use]
    pub const fn of(spec: &Spec) -> CellType {
        match spec.kind {
            ValueType::Toggle => CellType::Flag,
            ValueType::Number { bounds, .. } if bounds.whole => CellType::Count,
            ValueType::Number { bounds, .. } if bounds.max <= 1.0 => CellType::Share,
            ValueType::Number { .. } => CellType::Positive,
            ValueType::Choice(_) | ValueType::Fabric | ValueType::Software | ValueType::Seed => CellType::Text,
        }
    }

    /// Description for diagnostics: `a whole number of at least 1`.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            CellType::Text => "text".to_owned(),
            CellType::Count => "a whole number of at least 1".to_owned(),
            CellType::Positive => "a number above 0".to_owned(),
            CellType::Share => "a number above 0 and at most 1".to_owned(),
            CellType::Flag => "true or false".to_owned(),
            CellType::Words(words) => format!("one of {}", words.join(", ")),
        }
    }
}

use CellType::{Count, Positive, Share, Text, Words};
use ColumnTarget::{Architecture, ArchitectureFlag, Measured, Number, Record, Special, Target, Word};

/// All columns of all kinds of tables.
pub const COLUMNS: &[Column] = &[
    column("id", &[], Record, Text).help("unique name of the row"),
    column("source", &[], Record, Text).help("publisher of the measurements"),
    column("source_path", &[], Record, Text).help("location in the source"),
    column("date", &[], Record, Text).help("date of publication"),
    column("notes", &[], Record, Text).help("other statements of the source; not used by the program"),
    column("harness", &[], Record, Text)
        .help("benchmark client that drove the run; identifies campaigns in cross-validation"),
    column("excluded", &[], Record, Text).help("reason why the row is not usable; such rows are not evaluated"),
    column("inferred", &[], Record, Text)
        .help("cells derived from the row's own result; such rows are reported separately"),
    column("assumed", &[], Record, Text).help("cells that are conventions or defaults, each with the reason"),
    column("converted", &[], Record, Text)
        .help("cells converted from other terms or units of the source, each with its location"),
    column("model_name", &[], Record, Text).help("name of the model in the source"),
    column("accelerator", &["gpu", "gpu_type", "accelerator_type", "system"], Special, Text)
        .help("id in the accelerator catalog"),
    column("num_accelerators", &["gpus", "num_gpus", "n_gpus", "num_devices"], Special, Count)
        .help("accelerators of the run: chips or cards"),
    column("accelerators_per_node", &["gpus_per_node"], Special, Count)
        .help("accelerators per node; blank: 8, or all in a smaller run"),
    column("model", &["model_path"], Special, Text)
        .help("id in the model catalog; the architecture columns then contain only differences"),
    column("software", &["framework", "engine", "backend"], Special, Text).same_as(Knob::Software),
    column("software_version", &["engine_version", "backend_version"], Special, Text)
        .help("software release, if `software` contains only the family"),
    column("scale_up_domain", &[], Target(&["interconnect", "domain_size"]), Count)
        .help("accelerators joined by the scale-up link"),
    field("nic_gbits_per_accel", &[], Knob::NetworkGbps),
    column("hidden_size", &[], Architecture(&["hidden_size"]), Count).help("width of the residual stream"),
    column("n_layers", &["num_layers"], Architecture(&["n_layers"]), Count).help("layers"),
    column("n_heads", &["num_attention_heads"], Architecture(&["heads", "query"]), Count).help("query heads"),
    column("n_kv_heads", &["num_key_value_heads"], Architecture(&["heads", "kv"]), Count).help("key-value heads"),
    column("head_dim", &[], Architecture(&["heads", "dim"]), Count).help("width of a head"),
    column("ffn_hidden_size", &["intermediate_size"], Architecture(&["mlp", "ffn_hidden_size"]), Count)
        .help("width of the dense MLP"),
    column("gated_mlp", &[], ArchitectureFlag(&["mlp", "gated"]), CellType::Flag)
        .help("whether the MLP is gated (three matrices)"),
    column("vocab_size", &[], Architecture(&["vocab_size"]), Count).help("vocabulary size"),
    column("tied_embeddings", &[], ArchitectureFlag(&["tied_embeddings"]), CellType::Flag)
        .help("whether the output layer shares the weights of the embedding"),
    column("learned_positions", &[], ArchitectureFlag(&["learned_positions"]), CellType::Flag)
        .help("whether position embeddings are learned"),
    column("n_experts", &[], Architecture(&["moe", "experts"]), Count).help("routed experts of a layer"),
    column("experts_per_token", &[], Architecture(&["moe", "per_token"]), Count)
        .help("experts that a token is routed to"),
    column("moe_ffn_hidden_size", &[], Architecture(&["moe", "ffn_hidden_size"]), Count).help("width of an expert"),
    column("shared_ffn_hidden_size", &[], Architecture(&["moe", "shared_ffn_hidden_size"]), Count)
        .help("total width of the shared experts"),
    column("first_dense_layers", &[], Architecture(&["moe", "first_dense_layers"]), Count)
        .help("leading layers without experts"),
    column("window_size", &[], Architecture(&["window", "size"]), Count)
        .help("tokens that a windowed layer attends to")
        .unit("tok"),
    column("window_share", &[], Architecture(&["window", "share"]), Share).help("share of the layers with a window"),
    column("q_lora_rank", &[], Architecture(&["mla", "q_lora_rank"]), Count).help("rank of compressed queries"),
    column("kv_lora_rank", &[], Architecture(&["mla", "kv_lora_rank"]), Count)
        .help("rank of compressed keys and values"),
    column("qk_nope_dim", &[], Architecture(&["mla", "qk_nope_dim"]), Count)
        .help("dimensions of a head without rotary embedding"),
    column("qk_rope_dim", &[], Architecture(&["mla", "qk_rope_dim"]), Count)
        .help("dimensions of a head with rotary embedding"),
    column("v_head_dim", &[], Architecture(&["mla", "v_head_dim"]), Count).help("width of a value head"),
    column("attention_layers", &[], Architecture(&["attention_layers"]), Count)
        .help("layers with attention; blank: all without a linear mixer"),
    column("mlp_layers", &[], Architecture(&["mlp_layers"]), Count).help("layers with an MLP; blank: all"),
    column("linear_kind", &[], Special, Words(&["mamba1", "mamba2", "gated_delta", "delta"]))
        .help("recurrence of the linear mixer"),
    column("linear_layers", &[], Architecture(&["linear", "layers"]), Count).help("layers with a linear mixer"),
    column("linear_heads", &[], Architecture(&["linear", "heads"]), Count).help("heads of the linear mixer"),
    column("linear_head_dim", &[], Architecture(&["linear", "head_dim"]), Count)
        .help("width of a head of the linear mixer"),
    column("linear_state", &[], Architecture(&["linear", "state"]), Count).help("width of the state of a head"),
    column("linear_groups", &[], Architecture(&["linear", "groups"]), Count)
        .help("groups of heads that share projections of the state"),
    column("linear_taps", &[], Architecture(&["linear", "taps"]), Count).help("taps of the short convolution"),
    field("tp", &["tensor_parallel", "tensor_parallel_size", "tp_size"], Knob::Tp),
    field("pp", &["pipeline_parallel", "pipeline_parallel_size", "pp_size"], Knob::Pp),
    field("cp", &["context_parallel_size"], Knob::Cp),
    field("ep", &["expert_parallel_size", "moe_ep_size"], Knob::Ep),
    column("dp", &["data_parallel_size"], Special, Count).same_as(Knob::Dp),
    field("vpp", &[], Knob::Vpp),
    field("etp", &[], Knob::Etp),
    field("mtp_layers", &["mtp_num_layers"], Knob::MtpLayers),
    field("attention_dp", &["attention_dp_size"], Knob::AttentionDp),
    field("seq_len", &["seq_length", "sequence_length"], Knob::Prompt),
    column("micro_batch", &["micro_batch_size", "mbs"], Number(&["batch", "micro"]), Count)
        .help("sequences per micro-batch of one data-parallel rank")
        .unit("seq"),
    field("global_batch", &["global_batch_size", "gbs"], Knob::Global),
    field("sharding", &[], Knob::Sharding),
    field("shard_size", &[], Knob::Shard),
    field("sequence_parallel", &[], Knob::Sp),
    column("recompute", &["activation_checkpointing"], Word(&["recompute", "mode"]), Text).same_as(Knob::Recompute),
    field("recompute_layers", &[], Knob::RecomputeLayers),
    field("pp_schedule", &[], Knob::PipelineSchedule),
    field("precision", &["dtype"], Knob::Precision),
    field("optimizer", &[], Knob::Optimizer),
    column("optimizer_state_format", &[], Word(&["precision", "optimizer"]), Text)
        .help("format of the optimizer states"),
    field("gradient_format", &[], Knob::GradientFormat),
    field("bf16_layers", &[], Knob::Bf16Layers),
    field("trained", &[], Knob::Trained),
    field("lora_targets", &[], Knob::LoraTargets),
    field("cpu_offload", &[], Knob::CpuOffload),
    field("attention_kernel", &[], Knob::AttentionKernel),
    field("compiled", &[], Knob::Compiled),
    field("moe_dispatcher", &[], Knob::MoeDispatcher),
    field("moe_capacity", &[], Knob::MoeCapacity),
    field("overlap_tensor", &[], Knob::OverlapTensor),
    field("overlap_pipeline", &[], Knob::OverlapPipeline),
    field("overlap_experts", &[], Knob::OverlapExperts),
    field("overlap_data", &[], Knob::OverlapData),
    column("cuda_graphs", &[], Special, Words(&["true", "false", "none", "layer", "full-iteration"]))
        .same_as(Knob::CudaGraphs),
    field("input_len", &["isl"], Knob::Prompt).takes(Positive),
    field("output_len", &["osl"], Knob::Generate).takes(Positive),
    field("output_len_max", &[], Knob::GenerateMax),
    field("output_spread", &[], Knob::GenerateSpread),
    field("load", &[], Knob::Load),
    field("concurrency", &[], Knob::Concurrency).takes(Positive),
    field("request_rate", &[], Knob::RequestRate),
    field("requests", &[], Knob::RunRequests),
    field("weights", &["precision_weights"], Knob::Precision),
    field("expert_weights", &[], Knob::ExpertPrecision),
    field("compute", &[], Knob::Compute),
    column("activations", &["precision_activations"], Word(&["precision", "activations"]), Text)
        .help("format of the activations"),
    field("kv_cache", &["precision_kv"], Knob::KvPrecision),
    field("max_num_seqs", &["max_batch_size"], Knob::MaxNumSeqs),
    field("max_num_batched_tokens", &[], Knob::MaxNumBatchedTokens),
    field("chunked_prefill", &[], Knob::ChunkedPrefill),
    field("gpu_memory_utilization", &[], Knob::GpuMemoryUtilization),
    field("overlap_scheduling", &[], Knob::OverlapScheduling),
    field("recv_interval", &[], Knob::RecvInterval),
    field("context_ranks", &[], Knob::ContextRanks),
    field("beams", &[], Knob::Beams),
    field("draft_tokens", &[], Knob::DraftTokens),
    field("draft_acceptance", &[], Knob::DraftAcceptance),
    field("reserve_output", &[], Knob::ReserveOutput),
    field("compiled_batch", &[], Knob::CompiledBatch),
    column("executor", &[], Special, Words(&["native", "python"]))
        .help("whether the engine schedules in Python or in a native runtime"),
    field("prefill_workers", &["prefill_num_workers"], Knob::PrefillWorkers),
    field("prefill_tp", &["prefill_tp_size"], Knob::PrefillTp),
    field("prefill_pp", &["prefill_pp_size"], Knob::PrefillPp),
    field("prefill_ep", &["prefill_moe_ep_size"], Knob::PrefillEp),
    field("prefill_attention_dp", &["prefill_attention_dp_size"], Knob::PrefillAttentionDp),
    column("decode_workers", &["decode_num_workers"], Number(&["serving", "pools", "decode", "workers"]), Count)
        .help("replicas of the decode pool"),
    column("decode_tp", &["decode_tp_size"], Number(&["serving", "pools", "decode", "tp"]), Count)
        .help("tensor-parallel ranks of a decode replica"),
    column("decode_pp", &["decode_pp_size"], Number(&["serving", "pools", "decode", "pp"]), Count)
        .help("pipeline stages of a decode replica"),
    column("decode_ep", &["decode_moe_ep_size"], Number(&["serving", "pools", "decode", "ep"]), Count)
        .help("expert-parallel ranks of a decode replica"),
    column(
        "decode_attention_dp",
        &["decode_attention_dp_size"],
        Number(&["serving", "pools", "decode", "attention_dp"]),
        Count,
    )
    .help("data-parallel attention groups of a decode replica"),
    column("tokens_per_sec_per_accel", &["tokens_per_sec_per_gpu", "tokens_per_sec_per_device"], Measured, Positive)
        .help("measured tokens per second per accelerator: all tokens in training, output tokens in serving")
        .unit("tok/s"),
    column("step_time_s", &["step_time", "seconds_per_step"], Measured, Positive)
        .help("measured time per optimizer step")
        .unit("s"),
    column("model_tflops_per_accel", &["tflops_per_gpu", "model_tflops_per_gpu"], Measured, Positive)
        .help("measured model FLOP/s of one accelerator, without recomputation")
        .unit("TFLOP/s"),
    column("mfu", &[], Measured, Positive).help("measured model FLOPs utilization; values above 1 are percentages"),
    column("flop_counting", &[], Measured, Words(&["causal", "full"]))
        .help("whether the TFLOP/s and MFU of the source count causal attention in full or half"),
    column("peak_memory_gb", &["memory_gb"], Measured, Positive)
        .help("measured peak memory of the first device")
        .unit("GiB"),
    column("output_tokens_per_sec", &["output_tokens_per_sec_total"], Measured, Positive)
        .help("measured output tokens per second of all accelerators")
        .unit("tok/s"),
    column("total_tokens_per_sec", &[], Measured, Positive)
        .help("measured prompt and output tokens per second of all accelerators")
        .unit("tok/s"),
    column("requests_per_sec", &[], Measured, Positive).help("measured requests per second").unit("req/s"),
    column("ttft_ms", &["silicon_ttft_ms", "ttft_ms_mean"], Measured, Positive)
        .help("measured mean time to first token")
        .unit("ms"),
    column("tpot_ms", &["silicon_tpot_ms", "tpot_ms_mean"], Measured, Positive)
        .help("measured mean time per output token")
        .unit("ms"),
];

/// Returns the column with this name or alias, ignoring case.
#[must_use]
pub fn find(name: &str) -> Option<&'static Column> {
    let name = name.trim();
    COLUMNS.iter().find(|column| column.names().any(|known| known.eq_ignore_ascii_case(name)))
}

/// Returns the canonical name of a column.
#[must_use]
pub fn canonical(name: &str) -> &str {
    find(name).map_or_else(|| name.trim(), |column| column.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_column_has_help() {
        let without: Vec<&str> = COLUMNS.iter().filter(|c| c.help_text().is_empty()).map(|c| c.name).collect();
        assert!(without.is_empty(), "{without:?}");
    }

    #[test]
    fn cells_out_of_range_are_refused_and_blank_ones_are_not() {
        let expected = |name: &str, text: &str| {
            COLUMNS.iter().find(|column| column.name == name).and_then(|column| column.expected(text))
        };
        for (name, bad) in [
            ("tokens_per_sec_per_accel", "-5 abc NaN inf 1,007 0"),
            ("tp", "-1 0.5 two"),
            ("num_accelerators", "-8 0 inf NaN"),
            ("n_layers", "0.5"),
            ("global_batch", "3.7"),
            ("gpu_memory_utilization", "90"),
            ("flop_counting", "half"),
        ] {
            for text in bad.split(' ') {
                assert!(expected(name, text).is_some(), "{name} {text}");
            }
        }
        let good = [("tp", ""), ("tp", "0"), ("request_rate", "inf"), ("input_len", "921.6"), ("notes", "-1")];
        assert!(good.iter().all(|(name, text)| expected(name, text).is_none()));
    }

    #[test]
    fn no_two_columns_share_a_name_or_an_alias() {
        let mut seen = BTreeSet::new();
        for name in COLUMNS.iter().flat_map(Column::names) {
            assert!(seen.insert(name), "{name}");
        }
    }
}
