//! Precision, software options and trained parameters of a training run.

use atlas_catalog::Accelerator;

use super::super::record::Record;
use super::super::table::Row;
use super::super::text::{clause, normalize_word, number_in_notes};

/// Fills `precision`, the number format of the GEMMs.
pub(super) fn precision(record: &mut Record, row: &Row, device: Option<&Accelerator>) {
    let text = row.text("precision");
    let notes = row.text("notes");
    let word = normalize_word(text);
    let meant = match word.as_str() {
        "" => None,
        w if w.contains("mxfp8") => Some("mxfp8"),
        w if w.contains("fp8") || w.contains("float8") || w.contains("e4m3") => Some("fp8"),
        w if w.contains("nvfp4") => Some("nvfp4"),
        w if w.contains("fp4") => Some("fp4"),
        w if w.contains("int8") => Some("int8"),
        w if w.contains("tf32") => Some("tf32"),
        w if w.contains("bf16") || w.contains("bfloat16") => Some("bf16"),
        w if w.contains("fp32") || w.contains("float32") => Some("fp32"),
        w if w.contains("fp16") || w.contains("float16") || w == "half" || w == "amp" => Some("fp16"),
        _ => {
            record.problem("precision", text, "a format such as bf16, fp16, fp8, mxfp8, nvfp4");
            None
        }
    };
    match meant {
        Some(meant) if meant == text => record.copy_text("precision", text),
        Some(meant) => record.convert("precision", meant, format!("\"{text}\"")),
        None => fill_default_precision(record, notes, device),
    }
    // An FP32 run that is compared with the TF32 peak uses the matrix units in TF32.
    if record.text("precision") == "fp32" && notes.contains("tf32") {
        record.convert("precision", "tf32", format!("notes \"{}\"", clause(notes, "tf32")));
    }
}

/// Fills `precision` if its column is blank, from the notes or the capabilities of the device.
fn fill_default_precision(record: &mut Record, notes: &str, device: Option<&Accelerator>) {
    if notes.contains("offers fp8") {
        record.exclude("the source does not state which of the available precisions was used");
    }
    let has_bf16 = device.is_none_or(|device| device.peaks.bf16.is_some());
    let lower = notes.to_ascii_lowercase();
    if lower.contains("precision \"amp\"") {
        record.assume("precision", "fp16", "\"amp\", whose default on CUDA is fp16");
    } else if lower.contains("fp16") && !lower.contains("bf16") {
        record.convert("precision", "fp16", format!("notes \"{}\"", clause(&lower, "fp16")));
    } else if lower.contains("bf16") && !lower.contains("fp16") && !lower.contains("peak") && !lower.contains("offers")
    {
        record.convert("precision", "bf16", format!("notes \"{}\"", clause(&lower, "bf16")));
    } else if lower.contains("fp8") && !lower.contains("bf16") && !lower.contains("peak") {
        record.convert("precision", "fp8", format!("notes \"{}\"", clause(&lower, "fp8")));
    } else if has_bf16 {
        record.assume("precision", "bf16", "not stated, the usual 16-bit format");
    } else {
        record.assume("precision", "fp16", "not stated, the device has no bf16");
    }
}

/// Fills software options, optimizer, pipeline schedule, recomputation, offload and trained parameters.
pub(super) fn fill(record: &mut Record, row: &Row, family: &str) {
    let notes = row.text("notes");
    let lower = notes.to_ascii_lowercase();
    let framework = row.text("framework").to_ascii_lowercase();
    let quote = |phrase: &str| format!("notes \"{}\"", clause(&lower, phrase));
    attention(record, row, &lower);
    graphs(record, &lower, &framework);
    let dispatcher = [("hybridep", "hybridep"), ("deepep", "deepep"), ("alltoall", "alltoall")];
    if let Some((word, meant)) = dispatcher.into_iter().find(|(word, _)| lower.contains(word)) {
        record.convert("moe_dispatcher", meant, quote(word));
    }
    if lower.contains("dropless") {
        record.convert("moe_capacity", "dropless", quote("dropless"));
    } else if let Some(word) = ["tokendrop", "token drop", "capacity factor"].into_iter().find(|w| lower.contains(w)) {
        record.convert("moe_capacity", "dropped", quote(word));
    }
    for word in ["computation fusion", "communication fusion", "tp overlap", "tp_comm_overlap"] {
        if lower.contains(word) {
            record.convert("overlap_tensor", true, quote(word));
        }
    }
    if lower.contains("overlappeddistributedoptimizer") {
        record.convert("overlap_data", true, quote("overlappeddistributedoptimizer"));
    }
    prediction(record, &lower, family);
    bf16_layers(record, family);
    optimizer(record, &lower);
    schedule(record, row, &lower);
    recompute(record, row, &lower);
    offload(record, &lower);
    trained(record, notes, &lower, family);
}

/// Fills the number of multi-token prediction layers, in which the recipes of some releases train these models.
fn prediction(record: &mut Record, lower: &str, family: &str) {
    if let Some(phrase) = ["w/ mtp", "mtp layer on"].into_iter().find(|phrase| lower.contains(phrase)) {
        return record.convert("mtp_layers", 1.0, format!("notes \"{}\"", clause(lower, phrase)));
    }
    if lower.contains("w/o mtp") {
        return;
    }
    let recipe = match (family, record.text("model")) {
        ("megatron-bridge" | "nemo", "deepseek-v3") => Some((1.0, "deepseek_v3.py")),
        ("megatron-bridge", "nemotron-3-super-120b-a12b") => Some((2.0, "nemotron_3_super.py")),
        _ => None,
    };
    if let Some((layers, file)) = recipe {
        record.assume("mtp_layers", layers, format!("not stated, the recipe of the software ({file})"));
    }
}

/// Fills the number of layers that recipes keep in 16 bit. Benchmarks of fp8 with current scaling, whose recipe keeps two,
/// keep none (`perf_recipes/_common.py` of Megatron-Bridge 0.6, `scripts/performance/utils.py` of NeMo 2.3.0).
fn bf16_layers(record: &mut Record, family: &str) {
    let is = |column: &str, value: &str| record.text(column) == value;
    if family == "megatron-bridge" && is("model", "nemotron-3-super-120b-a12b") && is("precision", "nvfp4") {
        let how = "not stated, the recipe of the software (nemotron_3_super_bf16_with_nvfp4_mixed)";
        record.assume("bf16_layers", 14.0, how);
    }
}

fn attention(record: &mut Record, row: &Row, lower: &str) {
    let framework = row.text("framework").to_ascii_lowercase();
    let text = format!("{lower}; {framework}");
    let quote = |phrase: &str| format!("\"{}\"", clause(&text, phrase));
    if text.contains("no flash attention") {
        return record.convert("attention_kernel", "unfused", quote("no flash attention"));
    }
    for (word, kernel) in [
        ("fa2", "flash2"),
        ("flash attention 2", "flash2"),
        ("flashattention-2", "flash2"),
        ("flashattention2", "flash2"),
        ("flash attention 3", "native"),
        ("flashattention-3", "native"),
        ("cudnn attention", "native"),
    ] {
        if text.contains(word) {
            return record.convert("attention_kernel", kernel, quote(word));
        }
    }
    if let Some(word) = ["flash attention", "flashattention", "flash-attention"].into_iter().find(|w| text.contains(w))
    {
        // Release date of FlashAttention 2.
        let date = row.text("date");
        let first = !date.is_empty() && date < "2023-07-17";
        let kernel = if first { "flash1" } else { "flash2" };
        record.assume("attention_kernel", kernel, format!("{}, version by the row's date {date}", quote(word)));
    }
}

fn graphs(record: &mut Record, lower: &str, framework: &str) {
    let quote = |phrase: &str| format!("notes \"{}\"", clause(lower, phrase));
    if let Some(word) = ["no cuda graph", "no graph", "without cuda graph"].into_iter().find(|w| lower.contains(w)) {
        record.convert("cuda_graphs", "none", quote(word));
    } else if lower.contains("full-iteration cuda graph") {
        record.convert("cuda_graphs", "full-iteration", quote("full-iteration cuda graph"));
    } else if let Some(word) = ["cuda graph", "graph attn"].into_iter().find(|w| lower.contains(w)) {
        record.convert("cuda_graphs", "layer", quote(word));
    }
    if lower.contains("torch.compile") {
        record.convert("compiled", true, quote("torch.compile"));
    } else if framework.contains("compile") {
        record.convert("compiled", true, format!("\"{framework}\""));
    }
}

fn optimizer(record: &mut Record, lower: &str) {
    let quote = |phrase: &str| format!("notes \"{}\"", clause(lower, phrase));
    let word = |word: &str| lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == word);
    for (name, meant) in [("muon", "muon"), ("adafactor", "adafactor"), ("sgd", "sgd"), ("lion", "lion")] {
        if word(name) {
            record.convert("optimizer", meant, quote(name));
        }
    }
    if let Some(word) =
        ["bf16 master/optimizer states", "bf16 optimizer states", "bf16+sr"].into_iter().find(|w| lower.contains(w))
    {
        // With stochastic rounding, Neuron keeps weights and optimizer states in BF16 only.
        record.convert("optimizer_state_format", "bf16", quote(word));
    } else if lower.contains("bf16+fp32optimizer") {
        record.convert("optimizer_state_format", "fp32", quote("bf16+fp32optimizer"));
    }
    if lower.contains("mp mode pure") {
        record.convert("gradient_format", "bf16", quote("mp mode pure"));
    } else if lower.contains("mp mode default") {
        record.convert("gradient_format", "fp32", quote("mp mode default"));
    } else if lower.contains("fp32 grad") {
        record.convert("gradient_format", "fp32", quote("fp32 grad"));
    }
}

fn schedule(record: &mut Record, row: &Row, lower: &str) {
    let framework = row.text("framework").to_ascii_lowercase();
    let text = format!("{lower}; {framework}");
    let quote = |phrase: &str| format!("\"{}\"", clause(&text, phrase));
    if ["vocab-1", "vocab-2", "interlaced"].iter().any(|word| framework.contains(word)) {
        return record.exclude("the output layer is distributed over the stages, for which there is no column");
    }
    for word in ["zb-1p", "zb-h1", "zb1p"] {
        if text.contains(word) {
            return record.convert("pp_schedule", "zero-bubble-1p", quote(word));
        }
    }
    for word in ["v-half", "v-min"] {
        if text.contains(word) {
            return record.assume("pp_schedule", "zero-bubble-1p", format!("{}, nearest known schedule", quote(word)));
        }
    }
    for word in ["zb-2p", "zb-h2", "zb-v", "zbb", "zbv", "zero-bubble", "zero bubble"] {
        // `framework` may contain the name of a fork rather than a schedule.
        let found = if word.starts_with("zero") { lower.contains(word) } else { text.contains(word) };
        if found {
            return record.convert("pp_schedule", "zero-bubble", quote(word));
        }
    }
    if text.contains("gpipe") {
        record.convert("pp_schedule", "gpipe", quote("gpipe"));
    } else if text.contains("1f1b") {
        record.convert("pp_schedule", "1f1b", quote("1f1b"));
    }
}

fn recompute(record: &mut Record, row: &Row, lower: &str) {
    let text = row.text("recompute");
    let meant = match normalize_word(text).as_str() {
        "" => None,
        "full" | "true" | "yes" | "uniform" | "block" => Some("full"),
        "selective" | "partial" | "selectiveop" | "attention" => Some("selective"),
        "none" | "no" | "false" | "off" => Some("none"),
        _ => {
            record.problem("recompute", text, "none, selective or full");
            None
        }
    };
    match meant {
        Some(meant) if meant == text => record.copy_text("recompute", text),
        Some(meant) => record.convert("recompute", meant, format!("\"{text}\"")),
        None => {
            let said = [
                ("no recompute per", "none"),
                ("no activation checkpointing", "none"),
                ("full recompute", "full"),
                ("recompute on", "full"),
                ("gradient checkpointing", "full"),
                ("per-layer recompute", "full"),
                ("remat full", "full"),
                ("remat on", "full"),
                ("selective ckpt", "selective"),
                ("selective recompute", "selective"),
                ("recompute norm", "selective"),
                ("recompute moe", "selective"),
                ("remat minimal", "selective"),
            ];
            if let Some((word, meant)) = said.into_iter().find(|(word, _)| lower.contains(word)) {
                record.convert("recompute", meant, format!("notes \"{}\"", clause(lower, word)));
            }
        }
    }
    if let Some(layers) =
        number_in_notes(lower, "recompute_num_layers").or_else(|| number_in_notes(lower, "recompute-num-layers"))
    {
        record.convert("recompute_layers", layers, "notes");
    }
}

fn offload(record: &mut Record, lower: &str) {
    let quote = |phrase: &str| format!("notes \"{}\"", clause(lower, phrase));
    for word in ["parameter cpu offload", "cpu offload", "weights offloaded"] {
        if lower.contains(word) {
            return record.convert("cpu_offload", "parameters", quote(word));
        }
    }
    for word in ["optimizer offload", "offload-opt", "optimizer states offloaded"] {
        if lower.contains(word) {
            return record.convert("cpu_offload", "optimizer", quote(word));
        }
    }
    if lower.contains("zero-3 with offload") {
        record.assume("cpu_offload", "optimizer", "notes mention offload without stating what is offloaded");
    }
}

fn trained(record: &mut Record, notes: &str, lower: &str, family: &str) {
    // If the notes also contain "SFT;", "LoRA" refers to another column of the source's table.
    if !notes.contains("LoRA") || notes.contains("SFT;") {
        return;
    }
    record.convert("trained", "lora", format!("notes \"{}\"", clause(notes, "LoRA")));
    if lower.contains("attention lora") {
        record.convert("lora_targets", "attention", "notes \"attention LoRA\"");
    } else if matches!(family, "nemo" | "megatron-bridge") {
        record.assume("lora_targets", "attention", "NeMo's performance recipes adapt the attention projections");
    }
}
