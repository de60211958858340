//! Training: layout, batch, formats, optimizer, adapters and recomputation.

use atlas_core::plan::{Format, LoraTargets, Optimizer, Recompute, Sharding};
use atlas_plan::knob::Knob;
use serde_json::Value;

use super::{Context, counts, dispatcher};
use crate::documents::MissingInput;
use crate::documents::facts::{Facts, Line, YamlLines, line_from_field, line_with_comment};
use crate::import::is_data_parallel;
use crate::launch::yaml_text;

pub(super) fn training(context: &Context<'_>, notes: &mut Vec<String>, lines: &mut YamlLines) -> Vec<MissingInput> {
    let Context { facts, given, devices, .. } = *context;
    let mut gaps = Vec::new();
    let length = facts.count("seq_len").map(|length| line_from_field(facts, "prompt", "seq_len", length));
    if length.is_none() && !given.has(Knob::Prompt) {
        gaps.push(MissingInput::new("seq_len", "not stated in the files; set it with --set prompt=TOKENS"));
    }
    lines.section(&["sequence"], length.into_iter().chain([line_with_comment("generate", 0, "")]).collect());
    let mut batch = counts(facts, &[("micro", "micro_batch"), ("global", "global_batch")]);
    // MaxText states the batch per device. If several devices share a replica, this is a fraction of the replica's
    // batch.
    if let Some(micro) = facts.number("micro_batch").filter(|_| facts.text("framework") == Some("maxtext")) {
        let shared: u64 = ["tp", "cp", "pp"].iter().filter_map(|key| facts.count(key)).product();
        batch.retain(|line| line.key != "micro");
        batch.push(line_from_field(facts, "micro", "micro_batch", (micro * shared as f64).max(1.0)));
    }
    // Its global batch is the batch per device times all devices and accumulation steps.
    if let (Some(micro), Some(all), "maxtext", None) = (
        facts.number("micro_batch"),
        facts.count("num_accelerators"),
        facts.text("framework").unwrap_or_default(),
        facts.count("global_batch"),
    ) {
        let global = micro * all as f64 * facts.count("grad_accum").unwrap_or(1) as f64;
        batch.push(line_from_field(facts, "global", "micro_batch", global.max(1.0)));
    }
    if !batch.iter().any(|line| line.key == "global") {
        batch.extend(accumulated(facts, devices));
    }
    if !batch.iter().any(|line| line.key == "global") && !given.has(Knob::Global) {
        notes.push("the files state no global batch: one micro-batch per replica is assumed".to_owned());
    }
    lines.section(&["batch"], batch);
    let mut parallelism = counts(
        facts,
        &[
            ("tp", "tp"),
            ("pp", "pp"),
            ("vpp", "vpp"),
            ("dp", "dp"),
            ("cp", "cp"),
            ("ep", "ep"),
            ("etp", "etp"),
            ("first_layers", "first_layers"),
            ("last_layers", "last_layers"),
        ],
    );
    let word = |key| facts.text(key).map(|word| line_from_field(facts, key, key, yaml_text(word)));
    parallelism.extend(word("cp_comm_type"));
    if parallelism.is_empty() && facts.text("framework").is_some_and(|tool| tool == "axolotl" || is_data_parallel(tool))
    {
        let why = "only data parallelism stated";
        parallelism.extend([line_with_comment("tp", 1, why), line_with_comment("pp", 1, why)]);
    }
    if let Some(ranks) = facts.count("ulysses_sp").filter(|ranks| *ranks > 1 && facts.count("cp").is_none()) {
        parallelism.push(line_from_field(facts, "cp", "ulysses_sp", ranks));
        notes.push("Ulysses sequence parallelism is planned as context parallelism".to_owned());
    }
    if let Some(on) = facts.flag("sequence_parallel") {
        parallelism.push(line_from_field(facts, "sp", "sequence_parallel", on));
    }
    lines.section(&["parallelism"], parallelism);
    // Without sharding flags, these tools shard nothing. NeMo's plain optimizers are not sharded either.
    let silent = match facts.text("framework") {
        Some("megatron-lm") => true,
        Some("nemo") => facts.text("optimizer").is_some(),
        Some("maxtext") => facts.value("ici.data").is_some() && facts.value("ici.fsdp").is_some(),
        _ => false,
    };
    if facts.text("sharding").is_none() && silent {
        lines.push_string("sharding", "none", Some("no sharding requested"));
    }
    if let Some(word) = facts.text("sharding") {
        let known = if word == "hsdp" { Some(Sharding::Zero3) } else { Sharding::named(word) };
        if let Some(sharding) = known {
            lines.push_string("sharding", sharding.name(), facts.place("sharding").as_deref());
        }
        let group = facts.count("dp_shard").or_else(|| facts.count("ici.fsdp")).filter(|_| word == "hsdp");
        match group {
            Some(group) => lines.push_scalar("shard", group, facts.place("sharding").as_deref()),
            None if word == "hsdp" => {
                let node = facts.count("accelerators_per_node");
                if let Some(node) = node {
                    lines.push_scalar("shard", node, Some("accelerators of one node"));
                }
            }
            None => {}
        }
    }
    if let (None, Some(copies), Some(ranks)) =
        (facts.count("dp_shard"), facts.count("optimizer_instances"), data_parallel(facts, devices))
        && copies > 1
        && ranks.is_multiple_of(copies)
    {
        lines.push_scalar("shard", ranks / copies, facts.place("optimizer_instances").as_deref());
    }
    recomputation(facts, notes, lines);
    if let Some(layers) = facts.count("mtp_layers") {
        lines.push_scalar("mtp_layers", layers, facts.place("mtp_layers").as_deref());
    }
    if let Some(optimizer) = facts.text("optimizer").and_then(optimizer) {
        let narrow = matches!(facts.text("optimizer_states"), Some("bf16" | "fp16")) && optimizer == Optimizer::Adam;
        let optimizer = if narrow { Optimizer::Adam16bit } else { optimizer };
        lines.push_string("optimizer", optimizer.name(), facts.place("optimizer").as_deref());
    }
    let offload = |key: &str| {
        facts.flag(key) == Some(true) || facts.text(key).is_some_and(|device| !matches!(device, "none" | "false"))
    };
    if offload("offload_params") {
        lines.push_string("cpu_offload", "parameters", facts.place("offload_params").as_deref());
    } else if offload("offload_optimizer") {
        lines.push_string("cpu_offload", "optimizer", facts.place("offload_optimizer").as_deref());
    }
    let adapter = facts.text("adapter");
    if adapter.is_some() {
        lines.push_string("trained", "lora", facts.place("adapter").as_deref());
        if let Some(rank) = facts.count("lora_rank") {
            lines.push_scalar("lora_rank", rank, facts.place("lora_rank").as_deref());
        }
        if let Some(targets) = lora_targets(facts, notes) {
            lines.push_string("lora_targets", targets.name(), facts.place("lora_targets").as_deref());
        }
    }
    let format = training_format(facts).map(|format| (format, "precision"));
    let stored = facts.text("weights_precision").and_then(Format::named).map(|format| (format, "weights_precision"));
    // Only frozen weights are stored in another format. QLoRA stores them in four bits.
    let frozen = stored.or((adapter == Some("qlora")).then_some((Format::Int4, "adapter")));
    let line = |key, (format, from): (Format, &str)| line_from_field(facts, key, from, format.name());
    let section = match frozen.filter(|_| adapter.is_some()) {
        Some(frozen) => [Some(line("weights", frozen)), format.map(|format| line("compute", format))],
        None => [format.map(|format| line("weights", format)), None],
    };
    let gradients =
        facts.text("gradient_format").map(|word| line_from_field(facts, "gradients", "gradient_format", word));
    lines.section(&["precision"], section.into_iter().flatten().chain(gradients).collect());
    let overlap = ["overlap_data", "overlap_tensor", "overlap_pipeline", "overlap_experts"];
    let overlap = overlap.iter().filter_map(|key| Some(line_from_field(facts, key, key, facts.flag(key)?)));
    let kernels = ["attention_kernel", "graph_capture", "moe_capacity"].into_iter().filter_map(word);
    lines.section(&["runtime_tuning"], overlap.chain(kernels).chain(dispatcher(facts)).collect());
    gaps
}

/// Recomputation of every layer, of the first layers of each stage, or of modules.
fn recomputation(facts: &Facts, notes: &mut Vec<String>, lines: &mut YamlLines) {
    let Some(recompute) = facts.text("recompute").and_then(Recompute::named) else { return };
    let place = facts.place("recompute");
    // Megatron's method `uniform` recomputes all layers, in groups of the stated number.
    let first = facts.count("recompute_num_layers").filter(|_| facts.text("recompute_method") == Some("block"));
    if let (Recompute::Full, Some(first)) = (recompute, first) {
        let stages = facts.count("pp").unwrap_or(1) * facts.count("vpp").unwrap_or(1);
        let partial = vec![
            line_from_field(facts, "mode", "recompute", Recompute::None.name()),
            line_from_field(facts, "layers", "recompute_num_layers", first.saturating_mul(stages)),
        ];
        lines.section(&["recompute"], partial);
        return;
    }
    let framework = facts.text("framework").unwrap_or_default();
    let megatron = ["megatron-lm", "megatron-bridge", "primus-megatron", "nemo"].contains(&framework);
    let named = facts.value("recompute_modules").and_then(Value::as_array);
    let modules: Vec<&str> = named.into_iter().flatten().filter_map(Value::as_str).collect();
    let mut planned = recompute;
    if recompute == Recompute::Selective && megatron {
        // The default module is the core of attention.
        let core = modules.iter().all(|module| *module == "core_attn");
        if core && facts.text("attention_kernel") != Some("unfused") {
            planned = Recompute::None;
            notes.push("recomputation of core_attn frees nothing with fused attention; none is planned".to_owned());
        } else if modules.iter().any(|module| matches!(*module, "mlp" | "moe")) {
            let note = "mlp and moe are planned to be recomputed only as far as memory requires";
            notes.push(note.to_owned());
        }
    }
    lines.push_string("recompute", planned.name(), place.as_deref());
}

/// Number of data-parallel ranks: as stated, or all devices that the other sizes leave.
fn data_parallel(facts: &Facts, devices: Option<u64>) -> Option<u64> {
    facts.count("dp").or_else(|| {
        let sharding: u64 = ["tp", "pp", "cp", "ulysses_sp"].iter().filter_map(|key| facts.count(key)).product();
        devices.filter(|all| all.is_multiple_of(sharding)).map(|all| all / sharding)
    })
}

/// The global batch of tools that state the number of micro-batches per rank.
fn accumulated(facts: &Facts, devices: Option<u64>) -> Option<Line> {
    let (micro, steps) = (facts.count("micro_batch")?, facts.count("grad_accum")?);
    let ranks = data_parallel(facts, devices)?;
    Some(line_from_field(facts, "global", "grad_accum", micro.checked_mul(steps)?.checked_mul(ranks)?))
}

/// The layers with adapters, by their names in common models.
fn lora_targets(facts: &Facts, notes: &mut Vec<String>) -> Option<LoraTargets> {
    let names: Vec<&str> = facts.value("lora_targets")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let attention =
        ["q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj", "query_key_value", "c_attn", "Wqkv", "linear_qkv"];
    let own = |name: &str| attention.iter().any(|known| name.ends_with(known));
    if !names.iter().all(|name| own(name)) {
        return Some(LoraTargets::All);
    }
    let separate = ["q_proj", "k_proj", "v_proj", "o_proj"];
    let some = separate.iter().filter(|known| names.iter().any(|name| name.ends_with(*known))).count();
    if (1..separate.len()).contains(&some) {
        notes.push(format!("adapters of {} are planned as those of all attention projections", names.join(", ")));
    }
    Some(LoraTargets::Attention)
}

/// Format of the matrix multiplications. In some tools, microscaling is a recipe of FP8.
fn training_format(facts: &Facts) -> Option<Format> {
    match (facts.text("precision")?, facts.text("fp8_recipe")) {
        ("fp8", Some("mxfp8")) => Some(Format::Mxfp8),
        ("mixed", _) => Some(Format::Bf16),
        (word, _) => Format::named(word),
    }
}

/// Maps a tool's name of an optimizer to the planner's.
fn optimizer(name: &str) -> Option<Optimizer> {
    let low = name.to_ascii_lowercase();
    Optimizer::named(&low).or_else(|| {
        let has = |word: &str| low.contains(word);
        match () {
            () if has("8bit") => Some(Optimizer::Adam8bit),
            () if has("adam") => Some(Optimizer::Adam),
            () if has("muon") => Some(Optimizer::Muon),
            () if has("lion") => Some(Optimizer::Lion),
            () if has("adafactor") => Some(Optimizer::Adafactor),
            () if has("sgd") => Some(Optimizer::Sgd),
            () => None,
        }
    })
}
