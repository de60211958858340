//! Synonyms of words, and names of formats that state a size.

/// Bits per weight of formats defined by their size: those of llama.cpp (ggml-quants, averaged over whole files) and of
/// ExLlama (`exl2-4.0bpw`).
#[must_use]
pub fn stored_bits(name: &str) -> Option<f64> {
    let name = name.trim().to_ascii_lowercase().replace([' ', '_'], "-");
    if let Some(bits) = name.strip_prefix("exl2-").or(name.strip_prefix("exl3-")).and_then(|b| b.strip_suffix("bpw")) {
        return bits.parse().ok().filter(|bits: &f64| (1.0..=16.0).contains(bits));
    }
    Some(match name.as_str() {
        "q8-0" => 8.5,
        "q6-k" => 6.56,
        "q5-0" | "q5-k-s" => 5.54,
        "q5-k-m" | "q5-k" => 5.69,
        "q4-0" => 4.56,
        "q4-1" => 5.0,
        "q4-k-m" | "q4-k" => 4.85,
        "q4-k-s" => 4.58,
        "iq4-nl" => 4.5,
        "iq4-xs" => 4.25,
        "q3-k-m" | "q3-k" => 3.91,
        "q3-k-l" => 4.27,
        "q3-k-s" => 3.5,
        "q2-k" => 2.96,
        _ => return None,
    })
}

/// Synonyms and the words that they stand for.
const SYNONYMS: &[(&str, &str)] = &[
    ("semi_empirical", "semi-empirical"),
    ("calibrated", "semi-empirical"),
    ("first-principles", "analytical"),
    ("events", "event"),
    ("simulation", "event"),
    ("discrete-event", "event"),
    ("dashboard", "benchboard"),
    ("ultrascale-benchboard", "benchboard"),
    ("ddp", "none"),
    ("zero-1", "zero1"),
    ("zero-2", "zero2"),
    ("zero-3", "zero3"),
    ("fsdp", "zero3"),
    ("hsdp", "zero3"),
    ("interleaved", "1f1b"),
    ("zb", "zero-bubble"),
    ("zero_bubble", "zero-bubble"),
    ("zb-2p", "zero-bubble"),
    ("zb-h2", "zero-bubble"),
    ("zb-1p", "zero-bubble-1p"),
    ("zb1p", "zero-bubble-1p"),
    ("zb-h1", "zero-bubble-1p"),
    ("bfloat16", "bf16"),
    ("float16", "fp16"),
    ("float32", "fp32"),
    ("nvfp4", "fp4"),
    ("mxfp4", "fp4"),
    ("mxfp6", "fp6"),
    ("awq", "int4"),
    ("gptq", "int4"),
    ("w8a8", "fp8"),
    ("w4a16", "int4"),
    ("w4a4", "fp4"),
    ("adamw", "adam"),
    ("lamb", "adam"),
    ("fused-adam", "adam"),
    ("fused_adam", "adam"),
    ("distributed-fused-adam", "adam"),
    ("distributed_fused_adam", "adam"),
    ("adamw-8bit", "adam-8bit"),
    ("adamw_8bit", "adam-8bit"),
    ("adam8bit", "adam-8bit"),
    ("adamw8bit", "adam-8bit"),
    ("paged_adamw_8bit", "adam-8bit"),
    ("adam-bf16", "adam-16bit"),
    ("adamw-bf16", "adam-16bit"),
    ("momentum", "sgd-momentum"),
    ("offline", "burst"),
    ("backlog", "burst"),
    ("decode_only", "decode-only"),
    ("prefill_only", "prefill-only"),
    ("full_iteration", "full-iteration"),
];

/// Returns the canonical spelling of a word; unknown words are returned unchanged.
#[must_use]
pub fn canonical(word: &str) -> &str {
    SYNONYMS.iter().find(|(other, _)| other.eq_ignore_ascii_case(word)).map_or(word, |(_, usual)| usual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arrivals, Engine, Format, GraphCapture, LoadKind, Optimizer, PipelineSchedule, Sharding};

    #[test]
    fn every_synonym_maps_to_a_canonical_name() {
        let all = [
            Engine::NAMES,
            Arrivals::NAMES,
            Sharding::NAMES,
            PipelineSchedule::NAMES,
            Format::NAMES,
            Optimizer::NAMES,
            LoadKind::NAMES,
            GraphCapture::NAMES,
        ]
        .concat();
        assert!(SYNONYMS.iter().all(|(other, usual)| all.contains(usual) && !all.contains(other)));
    }
}
