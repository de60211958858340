//! Resolves names of published checkpoints: `Qwen/Qwen3-32B-FP8` is the model `qwen3-32b` with fp8 weights.

use atlas_core::plan::Format;

/// Suffixes that do not change the architecture, and the weight format that they imply.
const SUFFIXES: &[(&str, Option<Format>)] = &[
    ("-instruct", None),
    ("-chat", None),
    ("-base", None),
    ("-hf", None),
    ("-it", None),
    ("-pt", None),
    ("-exp", None),
    ("-preview", None),
    ("-thinking", None),
    ("-dynamic", None),
    ("-kv", None),
    ("-128k", None),
    ("-v0.1", None),
    ("-v0.2", None),
    ("-v0.3", None),
    ("-v1.0", None),
    ("-bf16", Some(Format::Bf16)),
    ("-fp16", Some(Format::Fp16)),
    ("-fp8", Some(Format::Fp8)),
    ("-fp8-dynamic", Some(Format::Fp8)),
    ("-fp8-kv", Some(Format::Fp8)),
    ("-fp4", Some(Format::Fp4)),
    ("-nvfp4", Some(Format::Fp4)),
    ("-mxfp4", Some(Format::Fp4)),
    ("-int8", Some(Format::Int8)),
    ("-gptq-int8", Some(Format::Int8)),
    ("-w8a8", Some(Format::Int8)),
    ("-quantized.w8a8", Some(Format::Int8)),
    ("-int4", Some(Format::Int4)),
    ("-awq", Some(Format::Int4)),
    ("-awq-int4", Some(Format::Int4)),
    ("-gptq", Some(Format::Int4)),
    ("-gptq-int4", Some(Format::Int4)),
    ("-w4a16", Some(Format::Int4)),
    ("-quantized.w4a16", Some(Format::Int4)),
    ("-4bit", Some(Format::Int4)),
];

/// Prefixes of names, and their spelling in the catalog.
const PREFIXES: &[(&str, &str)] = &[
    ("meta-llama-", "llama-"),
    ("nvidia-nemotron-", "nemotron-"),
    ("llama2-", "llama-2-"),
    ("llama3.1-", "llama-3.1-"),
    ("llama3.2-", "llama-3.2-"),
    ("llama3.3-", "llama-3.3-"),
    ("llama3-", "llama-3-"),
    ("llama4-", "llama-4-"),
    ("llama-7b", "llama-2-7b"),
    ("llama-13b", "llama-2-13b"),
    ("vicuna-7b", "llama-2-7b"),
    ("vicuna-13b", "llama-2-13b"),
    ("gemma2-", "gemma-2-"),
    ("gemma3-", "gemma-3-"),
    ("deepseekv2", "deepseek-v2"),
    ("deepseekv3", "deepseek-v3"),
    ("deepseek-r1-distill-llama-", "llama-3.1-"),
    ("deepseek-r1-distill-qwen-", "qwen2.5-"),
    ("nemotron4-", "nemotron-4-"),
    ("gpt-3-", "gpt3-"),
    ("qwen3-coder-next", "qwen3-next-80b-a3b"),
];

/// Checkpoints whose weight format is not implied by a suffix: name, model id, format.
const FORMATS: &[(&str, &str, Format)] = &[("kimi-k2-thinking", "kimi-k2", Format::Int4)];

/// Removes suffixes from a checkpoint's name until `exact` finds it. Returns the result, and the weight format implied
/// by the name.
pub(crate) fn find<T>(name: &str, exact: impl Fn(&str) -> Option<T>) -> Option<(T, Option<Format>)> {
    let mut candidate = name.to_ascii_lowercase().replace([' ', '_', ':'], "-");
    let mut format = None;
    loop {
        if let Some((_, id, own)) = FORMATS.iter().find(|(name, ..)| *name == candidate) {
            return exact(id).map(|found| (found, format.or(Some(*own))));
        }
        // `Meta-Llama-3-8B` needs two replacements of the prefix.
        let once = replace_prefix(&candidate);
        let twice = once.as_deref().and_then(replace_prefix);
        for tried in [Some(&candidate), once.as_ref(), twice.as_ref()].into_iter().flatten() {
            if let Some(found) = exact(tried) {
                return Some((found, format));
            }
        }
        let (shorter, stated) = strip_suffix_or_date(&candidate)?;
        (candidate, format) = (shorter.to_owned(), format.or(stated));
    }
}

/// Replaces a known prefix with its spelling in the catalog.
fn replace_prefix(name: &str) -> Option<String> {
    PREFIXES.iter().find_map(|(from, to)| name.strip_prefix(from).map(|rest| format!("{to}{rest}")))
}

/// Removes the longest known suffix, and returns the format that it implies. If there is none, removes a date such as
/// `-2507`.
fn strip_suffix_or_date(name: &str) -> Option<(&str, Option<Format>)> {
    let endings = SUFFIXES.iter().filter_map(|(ending, format)| Some((name.strip_suffix(ending)?, *format)));
    if let Some(found) = endings.min_by_key(|(rest, _)| rest.len()) {
        return Some(found);
    }
    let (head, tail) = name.rsplit_once('-')?;
    let date = tail.len() == 4 && tail.bytes().all(|byte| byte.is_ascii_digit());
    date.then_some((head, None))
}
