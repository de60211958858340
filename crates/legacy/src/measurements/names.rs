//! Resolution of model names to catalog ids.

use std::sync::Arc;

use atlas_catalog::{Catalog, Model};

/// Prefixes of model names, with the prefix of a catalog model that has the same or nearly the same layers.
const PREFIXES: &[(&str, &str)] = &[
    ("llama3-3b", "llama-3.2-3b"),
    ("llama3-405b", "llama-3.1-405b"),
    ("llama-3-405b", "llama-3.1-405b"),
    ("meta-llama-3-405b", "llama-3.1-405b"),
    ("nemotron-nano-30b", "nemotron-3-nano-30b-a3b"),
    ("glm-5.1", "glm-5"),
    ("glm-5.2", "glm-5"),
    ("qwen1.5-72b", "qwen2.5-72b"),
];

/// Suffixes in the old tables that do not change the architecture.
const SUFFIXES: &[&str] = &["-modalities", "-gguf", "-w8a16", "-8bit"];

/// A model found under a name.
#[derive(Debug, Clone)]
pub(super) struct ModelMatch {
    /// The catalog's entry.
    pub model: Arc<Model>,
    /// Whether the name is exactly the catalog id.
    pub verbatim: bool,
    /// Number of layers in the name of a truncated model, such as `llama3-70b-proxy-12L`.
    pub layers: Option<f64>,
}

/// Finds the catalog's model for a name.
pub(super) fn find(catalog: &Catalog, name: &str) -> Option<ModelMatch> {
    let text = name.trim();
    let bare = text.rsplit('/').next().unwrap_or(text).to_ascii_lowercase().replace([' ', '_'], "-");
    let (whole, layers) = split_layer_count(&bare);
    let ending = SUFFIXES.iter().find_map(|ending| whole.strip_suffix(ending)).unwrap_or(whole);
    let spelled = PREFIXES.iter().find_map(|(from, to)| ending.strip_prefix(from).map(|rest| format!("{to}{rest}")));
    let model =
        spelled.as_deref().or(Some(ending)).filter(|name| is_plain(name)).and_then(|name| catalog.checkpoint(name))?;
    Some(ModelMatch { verbatim: model.id == text, model, layers })
}

/// Whether a name has no characters of a path and is not a JSON file.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    !name.is_empty() && name.chars().all(plain) && !name.ends_with(".json")
}

/// Splits the name of a truncated model into the name of the full model and the number of layers, if stated.
fn split_layer_count(name: &str) -> (&str, Option<f64>) {
    let stated = |tail: &str| tail.strip_suffix('l')?.parse::<f64>().ok().filter(|n| *n >= 1.0 && n.fract() == 0.0);
    match name.rsplit_once('-') {
        Some((head, tail)) if stated(tail).is_some() => (head.strip_suffix("-proxy").unwrap_or(head), stated(tail)),
        _ => (name.strip_suffix("-60b-cut").unwrap_or(name), None),
    }
}

/// Whether a name belongs to a GPT-like model, with learned position embeddings and an MLP of two matrices.
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
    fn model_aliases_resolve_to_catalog_models() {
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
