//! Columns of measurement tables: each is a field of a scenario document, a figure, or bookkeeping.
//!
//! A column that a knob writes too takes help and unit from the registry of knobs.

use atlas_plan::knob::{Home, KNOBS, Spec};

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

/// What a cell of a column must hold, if it holds anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Any text.
    Text,
    /// A whole number of at least one; 0 states nothing, as a blank cell.
    Count,
    /// A finite number above zero; 0 states nothing, except in a measured figure.
    Positive,
    /// A number above zero and at most one.
    Share,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Words(&'static [&'static str]),
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
    /// What its cells hold.
    pub takes: Takes,
    /// One line of help, where no knob has it.
    help: &'static str,
    /// Unit, where no knob has it.
    unit: &'static str,
}

const fn column(name: &'static str, aliases: &'static [&'static str], place: Place, takes: Takes) -> Column {
    Column { name, aliases, place, takes, help: "", unit: "" }
}

impl Column {
    const fn help(self, help: &'static str) -> Column {
        Column { help, ..self }
    }

    const fn unit(self, unit: &'static str) -> Column {
        Column { unit, ..self }
    }

    /// The knob that is written to the same field.
    #[must_use]
    pub fn knob(&self) -> Option<&'static Spec> {
        let home = match self.place {
            Place::Target(path) => Home::Target(path),
            Place::Number(path) | Place::Word(path) | Place::Flag(path) => Home::Workload(path),
            Place::Special if self.name == "dp" => Home::Workload(&["parallelism", "dp"]),
            Place::Special if self.name == "cuda_graphs" => Home::Workload(&["runtime_tuning", "cuda_graphs"]),
            Place::Special if self.name == "software" => Home::Workload(&["software"]),
            _ => return None,
        };
        // `recompute` and its mode, `sharding` and the like stand at one path or one level below it.
        let same = |spec: &&Spec| match (spec.home, home) {
            (Home::Workload(known), Home::Workload([parent, "mode"])) => known == [*parent],
            (known, home) => known == home,
        };
        KNOBS.iter().find(same)
    }

    /// One line of help.
    #[must_use]
    pub fn help_text(&self) -> &'static str {
        if self.help.is_empty() { self.knob().map_or("", |spec| spec.help) } else { self.help }
    }

    /// Its unit, or nothing.
    #[must_use]
    pub fn unit_text(&self) -> &'static str {
        if self.unit.is_empty() { self.knob().map_or("", |spec| spec.unit) } else { self.unit }
    }

    /// What is wrong with a cell: what was expected in its place.
    #[must_use]
    pub fn expected(&self, text: &str) -> Option<String> {
        let number = text.parse::<f64>().ok();
        let figure = self.place == Place::Figure;
        // A size of zero states nothing; so does a request rate without bound.
        let nothing = !figure && self.name != "num_accelerators" && number == Some(0.0);
        let endless = self.name == "request_rate" && number == Some(f64::INFINITY);
        if text.is_empty() || nothing || endless {
            return None;
        }
        let number = number.filter(|value| value.is_finite());
        let within = |holds: fn(f64) -> bool| number.is_some_and(holds);
        let fine = match self.takes {
            Takes::Text => true,
            Takes::Count => within(|value| value >= 1.0 && value.fract() == 0.0),
            Takes::Positive => within(|value| value > 0.0),
            Takes::Share => within(|value| value > 0.0 && value <= 1.0),
            Takes::Flag => ["true", "false", "yes", "no", "1", "0"].iter().any(|word| text.eq_ignore_ascii_case(word)),
            Takes::Words(words) => words.iter().any(|word| text.eq_ignore_ascii_case(word)),
        };
        (!fine).then(|| self.takes.describe())
    }
}

impl Takes {
    /// In words: `a whole number of at least 1`.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Takes::Text => "text".to_owned(),
            Takes::Count => "a whole number of at least 1".to_owned(),
            Takes::Positive => "a number above 0".to_owned(),
            Takes::Share => "a number above 0 and at most 1".to_owned(),
            Takes::Flag => "true or false".to_owned(),
            Takes::Words(words) => format!("one of {}", words.join(", ")),
        }
    }
}

use Place::{Architecture, ArchitectureFlag, Figure, Flag, Number, Record, Special, Target, Word};
use Takes::{Count, Positive, Share, Text, Words};

/// All columns of all kinds of tables.
pub const COLUMNS: &[Column] = &[
    column("id", &[], Record, Text).help("unique name of the row"),
    column("source", &[], Record, Text).help("who published the figures"),
    column("source_path", &[], Record, Text).help("where in the source they stand"),
    column("date", &[], Record, Text).help("when they were published"),
    column("notes", &[], Record, Text).help("what else the source says; never read by the program"),
    column("harness", &[], Record, Text).help("benchmark client that drove the run; never read by the program"),
    column("excluded", &[], Record, Text).help("why the row is not usable; a row with this cell is not judged"),
    column("inferred", &[], Record, Text).help("cells derived from the row's own result; such rows are reported apart"),
    column("assumed", &[], Record, Text).help("cells that are conventions or defaults, each with the reason"),
    column("converted", &[], Record, Text).help("cells that the source states in other words, each with the place"),
    column("model_name", &[], Record, Text).help("model as the source names it"),
    column("accelerator", &["gpu", "gpu_type", "accelerator_type", "system"], Special, Text)
        .help("id of the accelerator catalog"),
    column("num_accelerators", &["gpus", "num_gpus", "n_gpus", "num_devices"], Special, Count)
        .help("accelerators of the run: chips or cards"),
    column("accelerators_per_node", &["gpus_per_node"], Special, Count)
        .help("accelerators of one node; blank: 8, or all of a smaller run"),
    column("model", &["model_path"], Special, Text)
        .help("id of the model catalog; the architecture columns then hold only what differs"),
    column("software", &["framework", "engine", "backend"], Special, Text),
    column("software_version", &["engine_version", "backend_version"], Special, Text)
        .help("release, where `software` names only the family"),
    column("scale_up_domain", &[], Target(&["interconnect", "domain_size"]), Count)
        .help("accelerators joined by the scale-up link"),
    column("nic_gbits_per_accel", &[], Target(&["network", "Gbps_per_accel"]), Positive),
    column("hidden_size", &[], Architecture(&["hidden_size"]), Count).help("width of the residual stream"),
    column("n_layers", &["num_layers"], Architecture(&["n_layers"]), Count).help("layers"),
    column("n_heads", &["num_attention_heads"], Architecture(&["heads", "query"]), Count).help("query heads"),
    column("n_kv_heads", &["num_key_value_heads"], Architecture(&["heads", "kv"]), Count).help("key-value heads"),
    column("head_dim", &[], Architecture(&["heads", "dim"]), Count).help("width of a head"),
    column("ffn_hidden_size", &["intermediate_size"], Architecture(&["mlp", "ffn_hidden_size"]), Count)
        .help("width of the dense MLP"),
    column("gated_mlp", &[], ArchitectureFlag(&["mlp", "gated"]), Takes::Flag)
        .help("whether the MLP is gated (three matrices)"),
    column("vocab_size", &[], Architecture(&["vocab_size"]), Count).help("tokens of the vocabulary"),
    column("tied_embeddings", &[], ArchitectureFlag(&["tied_embeddings"]), Takes::Flag)
        .help("whether the output layer is the embedding"),
    column("learned_positions", &[], ArchitectureFlag(&["learned_positions"]), Takes::Flag)
        .help("whether positions are learned"),
    column("n_experts", &[], Architecture(&["moe", "experts"]), Count).help("routed experts of a layer"),
    column("experts_per_token", &[], Architecture(&["moe", "per_token"]), Count)
        .help("experts that a token is routed to"),
    column("moe_ffn_hidden_size", &[], Architecture(&["moe", "ffn_hidden_size"]), Count).help("width of an expert"),
    column("shared_ffn_hidden_size", &[], Architecture(&["moe", "shared_ffn_hidden_size"]), Count)
        .help("width of the shared experts together"),
    column("first_dense_layers", &[], Architecture(&["moe", "first_dense_layers"]), Count)
        .help("leading layers without experts"),
    column("window_size", &[], Architecture(&["window", "size"]), Count)
        .help("tokens that a windowed layer attends to")
        .unit("tok"),
    column("window_share", &[], Architecture(&["window", "share"]), Share).help("share of the layers with a window"),
    column("q_lora_rank", &[], Architecture(&["mla", "q_lora_rank"]), Count).help("rank of compressed queries"),
    column("kv_lora_rank", &[], Architecture(&["mla", "kv_lora_rank"]), Count)
        .help("rank of compressed keys and values"),
    column("qk_nope_dim", &[], Architecture(&["mla", "qk_nope_dim"]), Count).help("width of a head without positions"),
    column("qk_rope_dim", &[], Architecture(&["mla", "qk_rope_dim"]), Count).help("width of a head with positions"),
    column("v_head_dim", &[], Architecture(&["mla", "v_head_dim"]), Count).help("width of a value head"),
    column("attention_layers", &[], Architecture(&["attention_layers"]), Count)
        .help("layers that have attention; blank: all without a linear mixer"),
    column("mlp_layers", &[], Architecture(&["mlp_layers"]), Count).help("layers that have an MLP; blank: all"),
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
    column("tp", &["tensor_parallel", "tensor_parallel_size", "tp_size"], Number(&["parallelism", "tp"]), Count),
    column("pp", &["pipeline_parallel", "pipeline_parallel_size", "pp_size"], Number(&["parallelism", "pp"]), Count),
    column("cp", &["context_parallel_size"], Number(&["parallelism", "cp"]), Count),
    column("ep", &["expert_parallel_size", "moe_ep_size"], Number(&["parallelism", "ep"]), Count),
    column("dp", &["data_parallel_size"], Special, Count),
    column("vpp", &[], Number(&["parallelism", "vpp"]), Count),
    column("etp", &[], Number(&["parallelism", "etp"]), Count),
    column("attention_dp", &["attention_dp_size"], Number(&["parallelism", "attention_dp"]), Count),
    column("seq_len", &["seq_length", "sequence_length"], Number(&["sequence", "prompt"]), Count),
    column("micro_batch", &["micro_batch_size", "mbs"], Number(&["batch", "micro"]), Count)
        .help("sequences of a micro-batch of one data-parallel rank")
        .unit("seq"),
    column("global_batch", &["global_batch_size", "gbs"], Number(&["batch", "global"]), Count),
    column("sharding", &[], Word(&["sharding"]), Text),
    column("shard_size", &[], Number(&["shard"]), Count),
    column("sequence_parallel", &[], Flag(&["parallelism", "sp"]), Takes::Flag),
    column("recompute", &["activation_checkpointing"], Word(&["recompute", "mode"]), Text),
    column("recompute_layers", &[], Number(&["recompute", "layers"]), Count),
    column("pp_schedule", &[], Word(&["pipeline_schedule"]), Text),
    column("precision", &["dtype"], Word(&["precision", "weights"]), Text),
    column("optimizer", &[], Word(&["optimizer"]), Text),
    column("optimizer_state_format", &[], Word(&["precision", "optimizer"]), Text)
        .help("format of the optimizer states"),
    column("gradient_format", &[], Word(&["precision", "gradients"]), Text),
    column("trained", &[], Word(&["trained"]), Text),
    column("lora_targets", &[], Word(&["lora_targets"]), Text),
    column("cpu_offload", &[], Word(&["cpu_offload"]), Text),
    column("attention_kernel", &[], Word(&["runtime_tuning", "attention_kernel"]), Text),
    column("compiled", &[], Flag(&["runtime_tuning", "compiled"]), Takes::Flag),
    column("moe_dispatcher", &[], Word(&["runtime_tuning", "moe_dispatcher"]), Text),
    column("moe_capacity", &[], Word(&["runtime_tuning", "moe_capacity"]), Text),
    column("overlap_tensor", &[], Flag(&["runtime_tuning", "overlap_tensor"]), Takes::Flag),
    column("overlap_pipeline", &[], Flag(&["runtime_tuning", "overlap_pipeline"]), Takes::Flag),
    column("overlap_data", &[], Flag(&["runtime_tuning", "overlap_data"]), Takes::Flag),
    column("cuda_graphs", &[], Special, Words(&["true", "false", "none", "layer", "full-iteration"])),
    column("input_len", &["isl"], Number(&["sequence", "prompt"]), Positive),
    column("output_len", &["osl"], Number(&["sequence", "generate"]), Positive),
    column("output_len_max", &[], Number(&["sequence", "generate_max"]), Count),
    column("output_spread", &[], Number(&["sequence", "generate_spread"]), Positive),
    column("load", &[], Word(&["serving", "load"]), Text),
    column("concurrency", &[], Number(&["serving", "concurrency"]), Positive),
    column("request_rate", &[], Number(&["serving", "request_rate"]), Positive),
    column("requests", &[], Number(&["serving", "run_requests"]), Count),
    column("weights", &["precision_weights"], Word(&["precision", "weights"]), Text),
    column("expert_weights", &[], Word(&["precision", "experts"]), Text),
    column("compute", &[], Word(&["precision", "compute"]), Text),
    column("activations", &["precision_activations"], Word(&["precision", "activations"]), Text)
        .help("format of the activations"),
    column("kv_cache", &["precision_kv"], Word(&["precision", "kv"]), Text),
    column("max_num_seqs", &["max_batch_size"], Number(&["serving", "max_num_seqs"]), Count),
    column("max_num_batched_tokens", &[], Number(&["serving", "max_num_batched_tokens"]), Count),
    column("chunked_prefill", &[], Flag(&["serving", "chunked_prefill"]), Takes::Flag),
    column("gpu_memory_utilization", &[], Number(&["serving", "gpu_memory_utilization"]), Share),
    column("overlap_scheduling", &[], Flag(&["serving", "overlap_scheduling"]), Takes::Flag),
    column("recv_interval", &[], Number(&["serving", "recv_interval"]), Count),
    column("context_ranks", &[], Number(&["serving", "context_ranks"]), Count),
    column("beams", &[], Number(&["serving", "beams"]), Count),
    column("draft_tokens", &[], Number(&["serving", "speculative", "tokens"]), Count),
    column("draft_acceptance", &[], Number(&["serving", "speculative", "acceptance"]), Share),
    column("reserve_output", &[], Flag(&["serving", "reserve_output"]), Takes::Flag),
    column("compiled_batch", &[], Number(&["serving", "compiled_batch"]), Count),
    column("executor", &[], Special, Words(&["native", "python"]))
        .help("whether the engine schedules in Python or in a native runtime"),
    column("prefill_workers", &["prefill_num_workers"], Number(&["serving", "pools", "prefill", "workers"]), Count)
        .help("replicas of the prefill pool"),
    column("prefill_tp", &["prefill_tp_size"], Number(&["serving", "pools", "prefill", "tp"]), Count)
        .help("tensor-parallel ranks of a prefill replica"),
    column("prefill_pp", &["prefill_pp_size"], Number(&["serving", "pools", "prefill", "pp"]), Count)
        .help("pipeline stages of a prefill replica"),
    column("prefill_ep", &["prefill_moe_ep_size"], Number(&["serving", "pools", "prefill", "ep"]), Count)
        .help("expert-parallel ranks of a prefill replica"),
    column(
        "prefill_attention_dp",
        &["prefill_attention_dp_size"],
        Number(&["serving", "pools", "prefill", "attention_dp"]),
        Count,
    )
    .help("data-parallel attention groups of a prefill replica"),
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
    column("tokens_per_sec_per_accel", &["tokens_per_sec_per_gpu", "tokens_per_sec_per_device"], Figure, Positive)
        .help("measured tokens per second and accelerator: all tokens in training, output tokens in serving")
        .unit("tok/s"),
    column("step_time_s", &["step_time", "seconds_per_step"], Figure, Positive)
        .help("measured time of an optimizer step")
        .unit("s"),
    column("model_tflops_per_accel", &["tflops_per_gpu", "model_tflops_per_gpu"], Figure, Positive)
        .help("measured model FLOP/s of one accelerator, without recomputation")
        .unit("TFLOP/s"),
    column("mfu", &[], Figure, Positive).help("measured model FLOPs utilization; above 1 it is read as percent"),
    column("flop_counting", &[], Figure, Words(&["causal", "full"]))
        .help("whether the TFLOP/s and MFU of the source count causal attention in full or half"),
    column("peak_memory_gb", &["memory_gb"], Figure, Positive)
        .help("measured peak memory of the first device")
        .unit("GiB"),
    column("output_tokens_per_sec", &["output_tokens_per_sec_total"], Figure, Positive)
        .help("measured output tokens per second of all accelerators")
        .unit("tok/s"),
    column("total_tokens_per_sec", &[], Figure, Positive)
        .help("measured prompt and output tokens per second of all accelerators")
        .unit("tok/s"),
    column("requests_per_sec", &[], Figure, Positive).help("measured requests per second").unit("req/s"),
    column("ttft_ms", &["silicon_ttft_ms", "ttft_ms_mean"], Figure, Positive)
        .help("measured mean time to first token")
        .unit("ms"),
    column("tpot_ms", &["silicon_tpot_ms", "tpot_ms_mean"], Figure, Positive)
        .help("measured mean time per output token")
        .unit("ms"),
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
        for name in COLUMNS.iter().flat_map(|column| std::iter::once(&column.name).chain(column.aliases)) {
            assert!(seen.insert(*name), "{name}");
        }
    }
}
