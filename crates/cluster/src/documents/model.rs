//! Finds a job's model in the catalog: by its name, by its name in a tool, or by its widths and counts.

use std::sync::Arc;

use atlas_catalog::{Catalog, Model, Transformer};
use atlas_core::sort;

use super::facts::Facts;
use super::{MissingInput, UserInput};
use crate::flags::model_of_tool;
use crate::import::Field;

/// Finds the model. The error states what is known about it.
pub(super) fn find(
    facts: &Facts,
    catalog: &Catalog,
    given: &UserInput,
    notes: &mut Vec<String>,
) -> Result<Arc<Model>, MissingInput> {
    if let Some(name) = &given.model {
        return catalog.model(name).map_err(|problems| {
            let all: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
            MissingInput::new("model", all.join("; "))
        });
    }
    let stated: Vec<&str> = [Field::HfModel, Field::Model].into_iter().filter_map(|key| facts.text(key)).collect();
    for name in &stated {
        if let Some(model) = by_name(catalog, name) {
            if !model.id.eq_ignore_ascii_case(name) {
                notes.push(format!("model {name} is resolved to {} of the catalog", model.id));
            }
            return Ok(model);
        }
    }
    let same = by_widths(facts, catalog);
    if let Some(model) = same.first() {
        let others: Vec<&str> = same.iter().skip(1).map(|model| model.id.as_str()).collect();
        let also = match others.as_slice() {
            [] => String::new(),
            others => format!(" (also: {})", others.join(", ")),
        };
        notes.push(format!("the layer counts and sizes in the files match model {}{also}", model.id));
        return Ok(Arc::clone(model));
    }
    Err(MissingInput::new(
        "model",
        match stated.first() {
            Some(name) => format!("{name} is not in the catalog; name a model or a config.json with --model"),
            None => "not stated in the files; name one with --model".to_owned(),
        },
    ))
}

/// Suffixes that do not change the architecture.
const IGNORED_SUFFIXES: [&str; 16] = [
    "-instruct",
    "-chat",
    "-base",
    "-it",
    "-hf",
    "-fp8",
    "-fp4",
    "-nvfp4",
    "-mxfp4",
    "-awq",
    "-gptq",
    "-int4",
    "-int8",
    "-bf16",
    "-dynamic",
    "-pretrain",
];

/// The model of the catalog with this name.
pub(super) fn by_name(catalog: &Catalog, name: &str) -> Option<Arc<Model>> {
    let found = |name: &str| catalog.model(name).ok();
    // Of a local path, only the last component is used as a name.
    let bare = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
    if let Some(model) = found(bare).or_else(|| found(model_of_tool(name)?)) {
        return Some(model);
    }
    let mut low = bare.to_ascii_lowercase().replace(['_', ' '], "-");
    // Single-file weights state their quantization at the end of the name: `-Q4_K_M.gguf`, `.f16.gguf`.
    if let Some(stem) = low.strip_suffix(".gguf") {
        let quantized =
            |tail: &str| tail.starts_with(['q', 'f', 'i', 'b']) && tail.contains(|c: char| c.is_ascii_digit());
        let end = ["-q", ".q", "-f16", ".f16", "-bf16", ".bf16", "-iq", "-f32", "-mxfp4"]
            .iter()
            .filter_map(|mark| stem.rfind(mark))
            .find(|at| stem.get(at + 1..).is_some_and(quantized));
        low = stem.get(..end.unwrap_or(stem.len())).unwrap_or(stem).to_owned();
        if let Some(model) = found(&low) {
            return Some(model);
        }
    }
    for _ in 0..4 {
        let shorter = IGNORED_SUFFIXES.iter().find_map(|ending| low.strip_suffix(ending)).map(str::to_owned);
        let Some(shorter) = shorter else { break };
        if let Some(model) = found(&shorter) {
            return Some(model);
        }
        low = shorter;
    }
    let plain = low.trim_start_matches("meta-");
    found(plain)
        // `-v0.1` and dates distinguish checkpoints, not architectures.
        .or_else(|| found(plain.rsplit_once("-v").map(|(head, _)| head)?))
        .or_else(|| found(plain.rsplit_once('-').filter(|(_, tail)| tail.len() == 4 && tail.parse::<u32>().is_ok())?.0))
        // File names spell the dot of a version in different ways: `llama3-1-70b`, `llama31_70b`.
        .or_else(|| by_alphanumerics(catalog, plain))
}

/// The model whose name has the same letters and digits, ignoring all other characters.
fn by_alphanumerics(catalog: &Catalog, name: &str) -> Option<Arc<Model>> {
    let letters = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let wanted = letters(name);
    let mut same = catalog
        .models()
        .into_iter()
        .filter(|model| std::iter::once(&model.id).chain(&model.aliases).any(|known| letters(known) == wanted));
    let first = same.next()?;
    same.next().is_none().then_some(first)
}

/// Models with all the widths and counts that the files state. Models with a sufficient context length come first.
fn by_widths(facts: &Facts, catalog: &Catalog) -> Vec<Arc<Model>> {
    type Width = fn(&Transformer) -> f64;
    const WIDTHS: [(Field, Width); 8] = [
        (Field::ArchitectureNumLayers, |t| f64::from(t.n_layers)),
        (Field::ArchitectureHiddenSize, |t| f64::from(t.hidden_size)),
        (Field::ArchitectureFfnHiddenSize, |t| f64::from(t.ffn_hidden_size)),
        (Field::ArchitectureNumAttentionHeads, |t| f64::from(t.n_heads)),
        (Field::ArchitectureNumQueryGroups, |t| f64::from(t.n_kv_heads)),
        (Field::ArchitectureVocabSize, |t| t.vocab_size.map_or(0.0, f64::from)),
        (Field::ArchitectureNumExperts, |t| t.experts.map_or(0.0, |experts| f64::from(experts.count))),
        (Field::ArchitectureMoeTopk, |t| t.experts.map_or(0.0, |experts| f64::from(experts.per_token))),
    ];
    let known = |field: Field| facts.number(field);
    if known(Field::ArchitectureNumLayers).is_none() || known(Field::ArchitectureHiddenSize).is_none() {
        return Vec::new();
    }
    let experts = known(Field::ArchitectureNumExperts).is_some();
    let mut same: Vec<Arc<Model>> = catalog
        .models()
        .into_iter()
        .filter(|model| {
            model.transformer().is_some_and(|t| {
                let equal = WIDTHS.iter().all(|(key, width)| known(*key).is_none_or(|value| value == width(t)));
                equal && t.experts.is_some() == experts
            })
        })
        .collect();
    let length = facts.number(Field::SeqLen).unwrap_or(0.0);
    let short = |model: &Model| model.transformer().is_some_and(|t| t.max_context < length);
    sort::by_key(&mut same, |model| short(model));
    same
}
