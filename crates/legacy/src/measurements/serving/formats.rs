//! Number formats of weights, GEMMs and the KV cache.

use atlas_catalog::Accelerator;

use super::super::architecture::Shape;
use super::super::record::Record;
use super::super::schema::is_format;
use super::super::text::clause;
use super::flags::Flags;

/// Parses the name of a number format in any spelling, such as `W4A16`, `fp8_e4m3` or `INT4-AWQ`. Returns the format of
/// the weights, and that of the GEMMs if the name states it.
pub(in super::super) fn named(text: &str) -> Option<(String, Option<&'static str>)> {
    let lower = text.trim().to_ascii_lowercase();
    let dashed = lower.replace([' ', '_'], "-");
    let simple = |meant: &str| Some((meant.to_owned(), None));
    match dashed.as_str() {
        "" => return None,
        "float32" | "f32" => return simple("fp32"),
        "bfloat16" => return simple("bf16"),
        "float16" | "f16" | "half" | "16" => return simple("fp16"),
        "fp8-e4m3" | "fp8-e5m2" | "e4m3" | "e5m2" | "float8" | "fp8-block" | "fp8-dynamic" => return simple("fp8"),
        "i8" | "bnb-int8" | "smoothquant" => return simple("int8"),
        "i4" | "hqq" => return simple("int4"),
        "bnb-nf4" => return simple("nf4"),
        _ => {}
    }
    if is_format(&lower) {
        return simple(&lower);
    }
    let underscored = lower.replace(['-', ' '], "_");
    if is_format(&underscored) {
        return simple(&underscored);
    }
    if let Some((weights, products)) = dashed.strip_prefix('w').and_then(|rest| rest.split_once('a')) {
        let weights = match weights {
            "4" => "int4",
            "8" => "int8",
            "16" => "bf16",
            _ => return None,
        };
        let products = match products {
            "4" => "int4",
            "8" => "int8",
            "16" => "bf16",
            _ => return None,
        };
        return Some((weights.to_owned(), Some(products)));
    }
    // In a name with several parts, the first format is that of the weights.
    dashed.split(['/', '+', '-']).find_map(|part| is_format(part).then(|| (part.to_owned(), None)))
}

/// Returns the weight format in which a checkpoint is published, from its catalog id and its name.
pub(in super::super) fn native(id: &str, name: &str) -> &'static str {
    let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let begins = |start: &str| id.starts_with(start) || name.starts_with(start);
    for (ending, format) in [("nvfp4", "nvfp4"), ("fp8", "fp8"), ("awq", "awq"), ("gptq", "gptq"), ("mxfp4", "mxfp4")] {
        if name.split('-').any(|part| part == ending) {
            return format;
        }
    }
    if begins("gpt-oss") {
        "mxfp4"
    } else if name.starts_with("kimi-k2-thinking") || begins("kimi-k2.5") {
        "int4"
    } else if begins("deepseek-v") || begins("deepseek-r1") || begins("kimi-k2") || begins("minimax-m2") {
        if name.contains("distill") { "bf16" } else { "fp8" }
    } else {
        "bf16"
    }
}

/// Returns the approximate number of bytes per weight.
pub(super) fn bytes_of(format: &str) -> f64 {
    match format {
        "fp32" | "tf32" => 4.0,
        "bf16" | "fp16" => 2.0,
        "fp8" | "mxfp8" | "int8" => 1.0,
        "fp6" | "mxfp6" => 0.78,
        _ => 0.55,
    }
}

/// Fills `weights`, `expert_weights`, `compute` and `kv_cache`. `memory_bytes` is the memory of a replica in bytes.
pub(super) fn fill(
    record: &mut Record,
    stated: Stated<'_>,
    shape: Option<&Shape>,
    device: Option<&Accelerator>,
    memory_bytes: f64,
) {
    let id = shape.map_or("", |shape| shape.id.as_str());
    let notes = stated.notes;
    let own = native(id, stated.model);
    weights(record, &stated, own, device);
    if own == "mxfp4" && record.text("weights") != "mxfp4" {
        // OpenAI published these checkpoints in MXFP4 only. Another label refers to the GEMMs or the KV cache.
        let label = stated.weights;
        record.assume("weights", "mxfp4", format!("\"{label}\" of a checkpoint that exists only in MXFP4"));
    }
    if stated.weights.contains("fp4-experts") || notes.contains("FP4 experts, FP8 elsewhere") {
        let said = if notes.contains("FP4 experts") { notes } else { stated.weights };
        record.convert("expert_weights", "fp4", format!("\"{}\"", clause(said, "FP4 experts")));
        record.convert("weights", "fp8", format!("\"{}\"", clause(said, "FP4 experts")));
    }
    if stated.weights.is_empty() && record.text("weights") == "bf16" {
        infer_format_from_memory(record, shape, memory_bytes);
    }
    // A label that contradicts the checkpoint is from the section of a table and does not describe the GEMMs either.
    let label = own == "mxfp4" && stated.weights != "mxfp4" && stated.activations == stated.weights;
    if let Some((format, _)) = named(stated.activations).filter(|_| !label) {
        match format == stated.activations {
            true => record.copy_text("compute", stated.activations),
            false => record.convert("compute", format, format!("\"{}\"", stated.activations)),
        }
    } else if !stated.activations.is_empty() && !label {
        record.problem("compute", stated.activations, "a number format");
    }
    let flagged = Flags::of(notes).value(&["kv-cache-dtype", "kv-cache-quant", "kv-dtype"]).filter(|v| *v != "auto");
    match (named(stated.kv), flagged.and_then(named)) {
        (Some((format, _)), _) if format == stated.kv => record.copy_text("kv_cache", stated.kv),
        (Some((format, _)), _) => record.convert("kv_cache", format, format!("\"{}\"", stated.kv)),
        (None, Some((format, _))) => record.convert("kv_cache", format, "notes, option --kv-cache-dtype"),
        (None, None) if !stated.kv.is_empty() => record.problem("kv_cache", stated.kv, "a number format"),
        (None, None) => {}
    }
}

/// The formats that a row states.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stated<'a> {
    pub model: &'a str,
    pub weights: &'a str,
    pub activations: &'a str,
    pub kv: &'a str,
    pub notes: &'a str,
    pub date: &'a str,
}

fn weights(record: &mut Record, stated: &Stated<'_>, own: &'static str, device: Option<&Accelerator>) {
    let (text, notes) = (stated.weights, stated.notes);
    if let Some((format, products)) = named(text) {
        match format == text {
            true => record.copy_text("weights", text),
            false => record.convert("weights", format, format!("\"{text}\"")),
        }
        if let Some(products) = products {
            record.convert("compute", products, format!("\"{text}\""));
        }
        return;
    }
    if !text.is_empty() {
        record.problem("weights", text, "a number format such as bf16, fp8, int4 or q4_k_m");
    }
    if let Some(flag) = Flags::of(notes).value(&["quantization"]).and_then(named) {
        return record.convert("weights", flag.0, "notes, option --quantization");
    }
    // The name of a checkpoint in the notes contains the format unless it is BF16.
    let quoted = notes
        .split([' ', ';', ','])
        .filter(|word| word.contains('/') && word.contains('-'))
        .map(|path| native("", path))
        .find(|format| *format != "bf16");
    if let Some(format) = quoted.filter(|_| notes.contains("checkpoint ") || Flags::of(notes).any()) {
        return record.convert("weights", format, "notes, name of the checkpoint");
    }
    if notes.contains("MLPerf") && own == "bf16" {
        // Closed-division submissions use the narrowest format of the device that passes the accuracy check.
        let has = |peak: fn(&Accelerator) -> Option<f64>| device.is_some_and(|d| peak(d).is_some());
        let narrowest = if has(|d| d.peaks.fp4) && stated.date > "2024-07" {
            "fp4"
        } else if has(|d| d.peaks.fp8) {
            "fp8"
        } else if has(|d| d.peaks.int8) {
            "int8"
        } else {
            "fp16"
        };
        let why = "not stated, MLPerf submissions run the narrowest format of the device that passes the accuracy gate";
        return record.assume("weights", narrowest, why);
    }
    record.assume("weights", own, "not stated, the checkpoint's own format");
}

/// Infers the weight format from the fact that the run fit in memory: if 16-bit weights do not fit in `memory_bytes`,
/// FP8 if that fits, otherwise INT4.
fn infer_format_from_memory(record: &mut Record, shape: Option<&Shape>, memory_bytes: f64) {
    let Some(shape) = shape else { return };
    if shape.params * bytes_of("bf16") <= memory_bytes || memory_bytes <= 0.0 {
        return;
    }
    let format = if shape.params * bytes_of("fp8") <= memory_bytes { "fp8" } else { "int4" };
    record.infer("weights", format, "not stated, 16-bit weights exceed the memory");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_format_aliases_are_parsed() {
        let weights = |text| named(text).map(|(format, _)| format);
        assert_eq!(weights("bf16").as_deref(), Some("bf16"));
        assert_eq!(weights("Q4_K_M").as_deref(), Some("q4_k_m"));
        assert_eq!(weights("fp8_e4m3").as_deref(), Some("fp8"));
        assert_eq!(weights("INT4-AWQ").as_deref(), Some("int4"));
        assert_eq!(named("W4A16"), Some(("int4".into(), Some("bf16"))));
        assert_eq!(weights("exl2-4.0bpw").as_deref(), Some("exl2-4.0bpw"));
        assert_eq!(weights("fp8/fp4-experts").as_deref(), Some("fp8"));
        for text in ["", "fast", "w9a1"] {
            assert_eq!(weights(text), None, "{text}");
        }
    }

    #[test]
    fn native_format_is_derived_from_the_checkpoint_name() {
        assert_eq!(native("gpt-oss-120b", "openai/gpt-oss-120b"), "mxfp4");
        assert_eq!(native("deepseek-v3", "nvidia/DeepSeek-R1-NVFP4"), "nvfp4");
        assert_eq!(native("qwen2.5-14b", "deepseek-r1-distill-qwen-14b"), "bf16");
        assert_eq!(native("llama-3.1-8b", "nvidia/Llama-3.1-8B-Instruct-FP8"), "fp8");
        assert_eq!(native("llama-3-8b", "llama-3-8b"), "bf16");
    }
}
