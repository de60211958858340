//! Model names as catalog ids.

use std::sync::Arc;

use atlas_catalog::{Catalog, Model};

/// Endings of checkpoint names that do not change the architecture.
const ENDINGS: &[&str] = &[
    "-instruct",
    "-chat",
    "-base",
    "-hf",
    "-it",
    "-pt",
    "-preview",
    "-thinking",
    "-fp8",
    "-fp4",
    "-nvfp4",
    "-mxfp4",
    "-bf16",
    "-fp16",
    "-int8",
    "-int4",
    "-awq",
    "-gptq",
    "-gptq-int4",
    "-gptq-int8",
    "-w4a16",
    "-w8a8",
    "-w8a16",
    "-fp8-dynamic",
    "-dynamic",
    "-quantized.w4a16",
    "-quantized.w8a8",
    "-gguf",
    "-4bit",
    "-8bit",
    "-kv",
    "-128k",
    "-v0.1",
    "-v0.2",
    "-v0.3",
    "-v1.0",
    "-modalities",
];

/// Beginnings of names, and how the catalog spells them.
const BEGINNINGS: &[(&str, &str)] = &[
    ("meta-llama-", "llama-"),
    ("nvidia-nemotron-", "nemotron-"),
    ("llama2-", "llama-2-"),
    ("llama3.1-", "llama-3.1-"),
    ("llama3.2-", "llama-3.2-"),
    ("llama3.3-", "llama-3.3-"),
    ("llama3-3b", "llama-3.2-3b"),
    ("llama3-405b", "llama-3.1-405b"),
    ("llama-3-405b", "llama-3.1-405b"),
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
    ("nemotron-nano-30b", "nemotron-3-nano-30b-a3b"),
    ("glm-5.1", "glm-5"),
    ("glm-5.2", "glm-5"),
    ("qwen1.5-72b", "qwen2.5-72b"),
];

/// A model found under a name.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// The catalog's entry.
    pub model: Arc<Model>,
    /// Whether the name is the id itself.
    pub verbatim: bool,
    /// Layers that the name states, if fewer than the model has: `llama3-70b-proxy-12L`.
    pub layers: Option<f64>,
}

/// The catalog's model that a name means.
pub(super) fn find(catalog: &Catalog, name: &str) -> Option<Found> {
    let text = name.trim();
    let bare = text.rsplit('/').next().unwrap_or(text).to_ascii_lowercase().replace([' ', '_'], "-");
    let (whole, layers) = cut(&bare);
    let spelled =
        |name: &str| BEGINNINGS.iter().find_map(|(from, to)| name.strip_prefix(from).map(|rest| format!("{to}{rest}")));
    let mut candidate = whole.to_owned();
    loop {
        for tried in [Some(candidate.clone()), spelled(&candidate)].into_iter().flatten() {
            // A second step: `Meta-Llama-3-405B` begins with two of them.
            for tried in [Some(tried.clone()), spelled(&tried)].into_iter().flatten() {
                if let Some(model) = exact(catalog, &tried) {
                    return Some(Found { verbatim: model.id == text, model, layers });
                }
            }
        }
        candidate = shorter(&candidate)?;
    }
}

/// The model of exactly that id or alias. Paths are not opened.
fn exact(catalog: &Catalog, name: &str) -> Option<Arc<Model>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    (!name.is_empty() && name.chars().all(plain) && !name.ends_with(".json")).then(|| catalog.model(name).ok())?
}

/// The name without an ending that does not change the architecture, or without a date such as `-2507`.
fn shorter(name: &str) -> Option<String> {
    let longest = ENDINGS.iter().filter(|ending| name.ends_with(**ending)).max_by_key(|ending| ending.len());
    if let Some(ending) = longest {
        return name.strip_suffix(ending).map(str::to_owned);
    }
    let (head, tail) = name.rsplit_once('-')?;
    let date = tail.len() == 4 && tail.bytes().all(|b| b.is_ascii_digit());
    date.then(|| head.to_owned())
}

/// The family of a model with fewer layers, and the number of layers in its name.
fn cut(name: &str) -> (&str, Option<f64>) {
    let stated = |tail: &str| tail.strip_suffix('l')?.parse::<f64>().ok().filter(|n| *n >= 1.0 && n.fract() == 0.0);
    match name.rsplit_once('-') {
        Some((head, tail)) if stated(tail).is_some() => (head.strip_suffix("-proxy").unwrap_or(head), stated(tail)),
        _ => (name.strip_suffix("-60b-cut").unwrap_or(name), None),
    }
}

/// Whether a name is that of GPT-like models with learned positions and two matrices in an MLP.
pub(super) fn is_gpt(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let family = ["gpt-", "gpt2", "gpt3", "opt", "bloom", "megatron-", "mt-nlg"];
    family.iter().any(|start| name.starts_with(start)) && !name.starts_with("gpt-oss") && !name.starts_with("gpt-j")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn spellings_find_their_model() {
        let catalog = Catalog::built_in();
        for (name, id) in [
            ("llama3.1-405b-proxy-21L", "llama-3.1-405b"),
            ("deepseek-v3-32L", "deepseek-v3"),
            ("llama2-70b", "llama-2-70b"),
            ("qwen3-30b-a3b", "qwen3-30b-a3b"),
            ("meta-llama/Llama-3.1-70B", "llama-3.1-70b"),
            ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
            ("nvidia/Llama-3.1-8B-Instruct-FP8", "llama-3.1-8b"),
            ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b"),
            ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", "llama-3.1-8b"),
            ("openai/gpt-oss-120b", "gpt-oss-120b"),
            ("deepseek-r1-distill-qwen-14b", "qwen2.5-14b"),
        ] {
            assert_eq!(find(&catalog, name).unwrap().model.id, id, "{name}");
        }
        assert_eq!(find(&catalog, "llama3-70b-proxy-12L").unwrap().layers, Some(12.0));
        for name in ["", "/", "model.json", "../etc", "gpt-9b-unknown", "-", "llama-1b-l"] {
            assert!(find(&catalog, name).is_none(), "{name}");
        }
    }
}
