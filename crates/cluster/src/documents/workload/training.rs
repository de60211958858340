//! Training: layout, batch, formats, optimizer, adapters and recomputation.

use atlas_catalog::accelerator::Peaks;
use atlas_catalog::datasheet;
use atlas_catalog::software::{self, AcceleratorClass, SoftwareKind};
use atlas_core::plan::{Format, LoraTargets, Optimizer, Recompute, Sharding};
use atlas_plan::knob::Knob;
use serde_json::Value;

use super::{Context, counts, dispatcher};
use crate::documents::MissingInput;
use crate::documents::facts::{Facts, Line, YamlLines, line_from_field, line_with_comment};
use crate::import::Field;
use crate::import::is_data_parallel;
use crate::launch::yaml_text;

pub(super) fn training(context: &Context<'_>, notes: &mut Vec<String>, lines: &mut YamlLines) -> Vec<MissingInput> {
    let Context { facts, given, devices, .. } = *context;
    let mut gaps = Vec::new();
    let length = facts.count(Field::SeqLen).map(|length| line_from_field(facts, "prompt", Field::SeqLen, length));
    if length.is_none() && !given.has(Knob::Prompt) {
        gaps.push(MissingInput::new("seq_len", "not stated in the files; set it with --set prompt=TOKENS"));
    }
    lines.section(&["sequence"], length.into_iter().chain([line_with_comment("generate", 0, "")]).collect());
    batch(context, notes, lines);
    parallelism(facts, notes, lines);
    sharding(facts, devices, lines);
    let on_request = OnRequest::of(facts);
    if facts.text(Field::Recompute).is_some() {
        recomputation(context, notes, lines);
    } else if on_request.recompute {
        lines.push_string("recompute", "none", Some("no recomputation requested"));
    } else if let Some(default) = facts.text(Field::RecomputeDefault) {
        lines.push_string("recompute", default, Some("the default of the trainer"));
    }
    if let Some(layers) = facts.count(Field::MtpLayers) {
        lines.push_scalar("mtp_layers", layers, facts.place(Field::MtpLayers).as_deref());
    }
    optimizer_and_offload(facts, lines);
    post_training(facts, notes, lines);
    adapter(facts, notes, lines);
    precision(facts, notes, lines);
    tuning(facts, on_request, lines);
    gaps
}

/// Micro-batch and global batch.
fn batch(context: &Context<'_>, notes: &mut Vec<String>, lines: &mut YamlLines) {
    let Context { facts, given, devices, .. } = *context;
    let mut batch = counts(facts, &[("micro", Field::MicroBatch), ("global", Field::GlobalBatch)]);
    // MaxText states the batch per device. If several devices share a replica, this is a fraction of the replica's
    // batch.
    if let Some(micro) = facts.number(Field::MicroBatch).filter(|_| facts.text(Field::Framework) == Some("maxtext")) {
        let shared: u64 = [Field::Tp, Field::Cp, Field::Pp].into_iter().filter_map(|key| facts.count(key)).product();
        batch.retain(|line| line.key != "micro");
        batch.push(line_from_field(facts, "micro", Field::MicroBatch, (micro * shared as f64).max(1.0)));
    }
    // Its global batch is the batch per device times all devices and accumulation steps.
    if let (Some(micro), Some(all), "maxtext", None) = (
        facts.number(Field::MicroBatch),
        facts.count(Field::NumAccelerators),
        facts.text(Field::Framework).unwrap_or_default(),
        facts.count(Field::GlobalBatch),
    ) {
        let global = micro * all as f64 * facts.count(Field::GradAccum).unwrap_or(1) as f64;
        batch.push(line_from_field(facts, "global", Field::MicroBatch, global.max(1.0)));
    }
    if !batch.iter().any(|line| line.key == "global") {
        batch.extend(accumulated(facts, devices));
    }
    if !batch.iter().any(|line| line.key == "global") && !given.has(Knob::Global) {
        notes.push("the files state no global batch: one micro-batch per replica is assumed".to_owned());
    }
    lines.section(&["batch"], batch);
}

/// A line with a word as it is written.
fn word(facts: &Facts, field: Field) -> Option<Line> {
    facts.text(field).map(|word| line_from_field(facts, field.name(), field, yaml_text(word)))
}

/// Parallel sizes and the distribution of layers over stages.
fn parallelism(facts: &Facts, notes: &mut Vec<String>, lines: &mut YamlLines) {
    let mut parallelism = counts(
        facts,
        &[
            ("tp", Field::Tp),
            ("pp", Field::Pp),
            ("vpp", Field::Vpp),
            ("dp", Field::Dp),
            ("cp", Field::Cp),
            ("ep", Field::Ep),
            ("etp", Field::Etp),
            ("first_layers", Field::FirstLayers),
            ("last_layers", Field::LastLayers),
        ],
    );
    parallelism.extend(word(facts, Field::CpCommType));
    if parallelism.is_empty()
        && facts.text(Field::Framework).is_some_and(|tool| tool == "axolotl" || is_data_parallel(tool))
    {
        let why = "only data parallelism stated";
        parallelism.extend([line_with_comment("tp", 1, why), line_with_comment("pp", 1, why)]);
    }
    if let Some(ranks) = facts.count(Field::UlyssesSp).filter(|ranks| *ranks > 1 && facts.count(Field::Cp).is_none()) {
        parallelism.push(line_from_field(facts, "cp", Field::UlyssesSp, ranks));
        notes.push("Ulysses sequence parallelism is planned as context parallelism".to_owned());
    }
    if let Some(on) = facts.flag(Field::SequenceParallel) {
        parallelism.push(line_from_field(facts, "sp", Field::SequenceParallel, on));
    }
    lines.section(&["parallelism"], parallelism);
}

/// Sharding of the model states, and the number of ranks over which they are sharded.
fn sharding(facts: &Facts, devices: Option<u64>, lines: &mut YamlLines) {
    // Without sharding flags, these tools shard nothing. NeMo's plain optimizers are not sharded either.
    let silent = match facts.text(Field::Framework) {
        Some("megatron-lm") => true,
        Some("nemo") => facts.text(Field::Optimizer).is_some(),
        Some("maxtext") => facts.value(Field::IciData).is_some() && facts.value(Field::IciFsdp).is_some(),
        _ => false,
    };
    if facts.text(Field::Sharding).is_none() && silent {
        lines.push_string("sharding", "none", Some("no sharding requested"));
    }
    if let Some(word) = facts.text(Field::Sharding) {
        let known = if word == "hsdp" { Some(Sharding::Zero3) } else { Sharding::named(word) };
        if let Some(sharding) = known {
            lines.push_string("sharding", sharding.name(), facts.place(Field::Sharding).as_deref());
        }
        let group = facts.count(Field::DpShard).or_else(|| facts.count(Field::IciFsdp)).filter(|_| word == "hsdp");
        match group {
            Some(group) => lines.push_scalar("shard", group, facts.place(Field::Sharding).as_deref()),
            None if word == "hsdp" => {
                let node = facts.count(Field::AcceleratorsPerNode);
                if let Some(node) = node {
                    lines.push_scalar("shard", node, Some("accelerators of one node"));
                }
            }
            None => {}
        }
    }
    if let (None, Some(copies), Some(ranks)) =
        (facts.count(Field::DpShard), facts.count(Field::OptimizerInstances), data_parallel(facts, devices))
        && copies > 1
        && ranks.is_multiple_of(copies)
    {
        lines.push_scalar("shard", ranks / copies, facts.place(Field::OptimizerInstances).as_deref());
    }
}

fn optimizer_and_offload(facts: &Facts, lines: &mut YamlLines) {
    if let Some(optimizer) = facts.text(Field::Optimizer).and_then(optimizer) {
        let narrow =
            matches!(facts.text(Field::OptimizerStates), Some("bf16" | "fp16")) && optimizer == Optimizer::Adam;
        let optimizer = if narrow { Optimizer::Adam16bit } else { optimizer };
        lines.push_string("optimizer", optimizer.name(), facts.place(Field::Optimizer).as_deref());
    }
    let offload = |field: Field| {
        facts.flag(field) == Some(true) || facts.text(field).is_some_and(|device| !matches!(device, "none" | "false"))
    };
    if offload(Field::OffloadParams) {
        lines.push_string("cpu_offload", "parameters", facts.place(Field::OffloadParams).as_deref());
    } else if offload(Field::OffloadOptimizer) {
        lines.push_string("cpu_offload", "optimizer", facts.place(Field::OffloadOptimizer).as_deref());
    }
}

/// Low-rank adapters: their rank and the layers that have them.
fn adapter(facts: &Facts, notes: &mut Vec<String>, lines: &mut YamlLines) {
    if facts.text(Field::Adapter).is_none() {
        return;
    }
    lines.push_string("trained", "lora", facts.place(Field::Adapter).as_deref());
    if let Some(rank) = facts.count(Field::LoraRank) {
        lines.push_scalar("lora_rank", rank, facts.place(Field::LoraRank).as_deref());
    }
    if let Some(targets) = lora_targets(facts, notes) {
        lines.push_string("lora_targets", targets.name(), facts.place(Field::LoraTargets).as_deref());
    }
}

/// Formats of weights, matrix multiplications and gradients.
fn precision(facts: &Facts, notes: &mut Vec<String>, lines: &mut YamlLines) {
    let adapter = facts.text(Field::Adapter);
    let format = training_format(facts).map(|format| (format, Field::Precision));
    let stored =
        facts.text(Field::WeightsPrecision).and_then(Format::named).map(|format| (format, Field::WeightsPrecision));
    // Only frozen weights are stored in another format. QLoRA stores them in four bits.
    let frozen = stored.or((adapter == Some("qlora")).then_some((Format::Int4, Field::Adapter)));
    let line = |key, (format, from): (Format, Field)| line_from_field(facts, key, from, format.name());
    let section = match frozen.filter(|_| adapter.is_some()) {
        Some(frozen) => [Some(line("weights", frozen)), format.map(|format| line("compute", format))],
        None => [format.map(|format| line("weights", format)), None],
    };
    let gradients =
        facts.text(Field::GradientFormat).map(|word| line_from_field(facts, "gradients", Field::GradientFormat, word));
    let bf16 = bf16_layers(facts, notes);
    lines.section(&["precision"], section.into_iter().flatten().chain(gradients).chain(bf16).collect());
}

/// Overlap of communication, and kernels.
fn tuning(facts: &Facts, on_request: OnRequest, lines: &mut YamlLines) {
    let is_off = |field: Field| match field {
        Field::OverlapData => on_request.overlap_data,
        Field::OverlapTensor => on_request.overlap_tensor,
        _ => false,
    };
    let overlap = [Field::OverlapData, Field::OverlapTensor, Field::OverlapPipeline, Field::OverlapExperts];
    let overlap = overlap.into_iter().filter_map(|field| match facts.flag(field) {
        Some(on) => Some(line_from_field(facts, field.name(), field, on)),
        None => is_off(field).then(|| line_with_comment(field.name(), false, "not requested")),
    });
    let kernels = [Field::AttentionKernel, Field::GraphCapture, Field::MoeCapacity]
        .into_iter()
        .filter_map(|field| word(facts, field));
    lines.section(&["runtime_tuning"], overlap.chain(kernels).chain(dispatcher(facts)).collect());
}

/// The step of reinforcement learning that the optimizer steps are part of.
fn post_training(facts: &Facts, notes: &mut Vec<String>, lines: &mut YamlLines) {
    let Some(prompts) = facts.count(Field::RolloutPrompts) else { return };
    let responses = facts.count(Field::RolloutSamples).unwrap_or(1);
    lines.section(
        &["post_training"],
        vec![
            line_with_comment("method", "rl", ""),
            line_from_field(facts, "prompts", Field::RolloutPrompts, prompts),
            line_from_field(facts, "responses", Field::RolloutSamples, responses),
        ],
    );
    notes.push(format!(
        "an optimizer step is planned, with sequences of the maximum length; a step of reinforcement learning has {} of \
         them, which `atlas post-train` estimates together with the rollout",
        prompts.saturating_mul(responses)
    ));
}

/// What a job does only if its files request it.
#[derive(Debug, Clone, Copy, Default)]
struct OnRequest {
    recompute: bool,
    overlap_data: bool,
    overlap_tensor: bool,
}

impl OnRequest {
    /// Of software whose command line or configuration states everything that differs from the defaults of the code.
    /// Recipes and base configurations of other tools contain settings that files do not repeat.
    fn of(facts: &Facts) -> OnRequest {
        let Some(framework @ ("megatron-lm" | "torchtitan")) = facts.text(Field::Framework) else {
            return OnRequest::default();
        };
        let class = AcceleratorClass { vendor: "", generation: "", memory_gb: 0.0, formats: Peaks::default() };
        let found = software::resolve(framework, SoftwareKind::Training, &class).ok().and_then(|found| found.training);
        found.map_or_else(OnRequest::default, |traits| OnRequest {
            recompute: traits.default.recompute == Recompute::None,
            overlap_data: !traits.default.overlap_gradients.applies(Sharding::Zero3),
            overlap_tensor: !traits.default.overlap_tensor,
        })
    }
}

/// How many layers torchtitan recomputes as a whole: every n-th of a rank, counted from the first. `None` if it selects
/// operators instead, or if the number of layers is unknown.
fn alternate_layers(context: &Context<'_>) -> Option<u64> {
    let facts = context.facts;
    if facts.text(Field::Framework) != Some("torchtitan") {
        return None;
    }
    // The default of the releases whose configuration files have the option.
    let interval: u64 = facts.text(Field::RecomputeOption).unwrap_or("2").parse().ok()?;
    let layers = match facts.count(Field::ArchitectureNumLayers) {
        Some(layers) => layers,
        None => u64::from(datasheet::model(context.model?).layers.get()),
    };
    let stages = facts.count(Field::Pp).unwrap_or(1).max(1);
    Some(layers / stages / interval.max(1) * stages)
}

/// Recomputation of every layer, of some layers, or of modules.
fn recomputation(context: &Context<'_>, notes: &mut Vec<String>, lines: &mut YamlLines) {
    let facts = context.facts;
    let Some(recompute) = facts.text(Field::Recompute).and_then(Recompute::named) else { return };
    let place = facts.place(Field::Recompute);
    // Megatron's method `uniform` recomputes all layers, in groups of the stated number.
    let first = facts.count(Field::RecomputeNumLayers).filter(|_| facts.text(Field::RecomputeMethod) == Some("block"));
    if let (Recompute::Full, Some(first)) = (recompute, first) {
        let stages = facts.count(Field::Pp).unwrap_or(1) * facts.count(Field::Vpp).unwrap_or(1);
        let partial = vec![
            line_from_field(facts, "mode", Field::Recompute, Recompute::None.name()),
            line_from_field(facts, "layers", Field::RecomputeNumLayers, first.saturating_mul(stages)),
        ];
        lines.section(&["recompute"], partial);
        return;
    }
    if let (Recompute::Selective, Some(layers)) = (recompute, alternate_layers(context)) {
        let from = if facts.text(Field::RecomputeOption).is_some() { Field::RecomputeOption } else { Field::Recompute };
        let partial = vec![
            line_from_field(facts, "mode", Field::Recompute, Recompute::None.name()),
            line_from_field(facts, "layers", from, layers),
        ];
        lines.section(&["recompute"], partial);
        return;
    }
    let framework = facts.text(Field::Framework).unwrap_or_default();
    let megatron = ["megatron-lm", "megatron-bridge", "primus-megatron", "nemo"].contains(&framework);
    let named = facts.value(Field::RecomputeModules).and_then(Value::as_array);
    let modules: Vec<&str> = named.into_iter().flatten().filter_map(Value::as_str).collect();
    let mut planned = recompute;
    if recompute == Recompute::Selective && megatron {
        // The default module is the core of attention.
        let core = modules.iter().all(|module| *module == "core_attn");
        if core && facts.text(Field::AttentionKernel) != Some("unfused") {
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
    facts.count(Field::Dp).or_else(|| {
        let sharding: u64 = [Field::Tp, Field::Pp, Field::Cp, Field::UlyssesSp]
            .into_iter()
            .filter_map(|key| facts.count(key))
            .product();
        devices.filter(|all| all.is_multiple_of(sharding)).map(|all| all / sharding)
    })
}

/// The global batch of tools that state the number of micro-batches per rank.
fn accumulated(facts: &Facts, devices: Option<u64>) -> Option<Line> {
    let (micro, steps) = (facts.count(Field::MicroBatch)?, facts.count(Field::GradAccum)?);
    let ranks = data_parallel(facts, devices)?;
    Some(line_from_field(facts, "global", Field::GradAccum, micro.checked_mul(steps)?.checked_mul(ranks)?))
}

/// The layers with adapters, by their names in common models.
fn lora_targets(facts: &Facts, notes: &mut Vec<String>) -> Option<LoraTargets> {
    let names: Vec<&str> = facts.value(Field::LoraTargets)?.as_array()?.iter().filter_map(Value::as_str).collect();
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
    match (facts.text(Field::Precision)?, facts.text(Field::Fp8Recipe)) {
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

/// The number of layers that are computed in 16 bit at the ends of the model.
fn bf16_layers(facts: &Facts, notes: &mut Vec<String>) -> Option<Line> {
    let ends = [Field::Bf16LayersAtStart, Field::Bf16LayersAtEnd].map(|field| facts.count(field));
    if facts.flag(Field::Bf16Ends) != Some(true) {
        return None;
    }
    // Defaults of Megatron-Core, and of the configurations of other tools, which replace them.
    let replaced = facts.text(Field::Framework).is_some_and(|tool| matches!(tool, "megatron-bridge" | "nemo"));
    let [start, end] = ends.map(|layers| layers.unwrap_or(if replaced { 0 } else { 1 }));
    if start.abs_diff(end) > 1 || start > end {
        notes.push(format!(
            "{start} layers in 16 bit at the start and {end} at the end are planned as half of them at each end"
        ));
    }
    let from = if ends == [None; 2] { Field::Bf16Ends } else { Field::Bf16LayersAtEnd };
    (start + end > 0).then(|| line_from_field(facts, "bf16_layers", from, start + end))
}
