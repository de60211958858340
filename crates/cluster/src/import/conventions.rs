//! Values from conventional names of variables and jobs, for what no command states.

use super::fields::ReadFields;
use super::shell::Script;
use super::value::Node;
use super::{names, slurm, unknown};
use crate::import::place::Place;
use crate::import::{Field, Kind};

/// Reads values that are only set in conventional variables.
pub(super) fn variables(script: &Script, plain: &str, index: usize, out: &mut ReadFields) {
    let get = |names: &[&str]| {
        names.iter().find_map(|n| script.vars.get(*n).filter(|t| !t.is_empty() && !unknown::is_in(t.as_str())))
    };
    let training = out.fields.kind() == Some(Kind::Training);
    if training
        && !out.fields.has(Field::GlobalBatch)
        && let Some(t) = get(&["GBS", "GLOBAL_BATCH_SIZE", "GLOBAL_BATCH"])
    {
        out.int(Field::GlobalBatch, &Node::str(t.as_str(), t.line()));
    }
    if training {
        let ids = [
            "HF_MODEL_ID",
            "HF_MODEL_NAME",
            "HF_MODEL",
            "HF_CONFIG",
            "HF_MODEL_PATH",
            "MODEL_NAME_OR_PATH",
            "MODEL_ID",
        ];
        let hub = ids.iter().find_map(|n| {
            get(&[n]).filter(|t| t.as_str().matches('/').count() == 1 && !t.as_str().starts_with(['/', '.']))
        });
        let guessed = out.fields.entry(Field::Model).is_none_or(|e| e.implied);
        if let (Some(t), true) = (hub, guessed) {
            out.fields.set(Field::Model, t.as_str(), t.line());
        } else if (!out.fields.has(Field::Model)
            || (guessed && out.fields.str(Field::Framework) == Some("megatron-bridge")))
            && let Some(t) = get(&["MODEL_NAME", "MODEL"]).filter(|t| names::model_in(t.as_str()).is_some())
        {
            out.fields.set(Field::Model, names::model_id(t.as_str()).0, t.line());
        }
    }
    if training && out.variants.is_empty() {
        script.vars.iter().for_each(|(name, value)| super::variables::processes(name, value, out));
    }
    let neuron = out.fields.str(Field::Framework).is_some_and(|f| f.starts_with("neuronx"));
    if neuron {
        if let (Some(v), Some(size)) = (get(&["LLAMA_VERSION"]), get(&["MODEL_SIZE"])) {
            out.fields.set_implied(Field::Model, format!("Llama {} {}", v.as_str(), size.as_str()), size.line());
        }
        for n in ["XLA_DOWNCAST_BF16", "XLA_USE_BF16"] {
            if let Some(t) = get(&[n]).filter(|t| t.as_str() == "1") {
                out.fields.set_implied(Field::Precision, "bf16", t.line());
            }
        }
    }
    if out.fields.str(Field::Framework) == Some("megatron-bridge") {
        recipe_comment(plain, index, out);
    }
    if out.fields.str(Field::Framework).is_some_and(|f| f.starts_with("megatron")) {
        // Sizes are used even if the script does not pass the variable to a command.
        for (key, names) in [
            (Field::Tp, &["TP_SIZE", "TENSOR_PARALLEL_SIZE"][..]),
            (Field::Pp, &["PP_SIZE", "PIPELINE_PARALLEL_SIZE"]),
            (Field::Cp, &["CP_SIZE"]),
            (Field::ArchitectureVocabSize, &["VOCAB_SIZE"]),
        ] {
            let plain_layers = key != Field::ArchitectureVocabSize || out.fields.has(Field::ArchitectureNumLayers);
            if let Some(t) = get(names).filter(|_| !out.fields.has(key) && plain_layers && out.variants.is_empty()) {
                out.int(key, &Node::str(t.as_str(), t.line()));
            }
        }
    }
    if out.fields.kind().is_some_and(Kind::serves) && out.variants.is_empty() {
        for n in ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"] {
            if let Some(t) = get(&[n]).filter(|_| out.roles.is_empty()) {
                let mut o = ReadFields::default();
                super::variables::count_visible(n, t, &mut o);
                if !out.fields.has(Field::SlurmNodes) {
                    for e in o.fields.iter() {
                        out.fields.put(e.clone());
                    }
                }
            }
        }
    }
}

/// Reads precision and optimizer from the comment after the recipe's name.
fn recipe_comment(plain: &str, index: usize, out: &mut ReadFields) {
    let line = plain.lines().zip(1..).find(|(l, _)| {
        let t = l.trim_start().trim_start_matches("export ");
        t.split_once('=')
            .is_some_and(|(k, _)| k.contains("RECIPE") && k.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    });
    let Some((line, n)) = line else { return };
    let Some((_, comment)) = line.split_once(" #") else { return };
    for w in comment.split(|c: char| !c.is_ascii_alphanumeric()) {
        if let Some(p) = names::precision(w).filter(|_| w.len() > 2) {
            out.fields.set_implied(Field::Precision, p, Place::of(index, n));
        }
        let low = w.to_ascii_lowercase();
        if matches!(low.as_str(), "adam" | "adamw" | "muon" | "sgd" | "lion") {
            out.fields.set_implied(Field::Optimizer, low, Place::of(index, n));
        }
    }
}

/// Derives the model from the job's name.
pub(super) fn job_model(d: &slurm::Directives, file: &str, plain: &str, out: &ReadFields) -> Option<(String, Place)> {
    if out.fields.has(Field::Model) || out.fields.kind() != Some(Kind::Training) {
        return None;
    }
    if matches!(out.fields.str(Field::Framework), Some("accelerate" | "torchtitan")) {
        return None;
    }
    let (name, line) = d.get("job-name")?;
    let sized = name.split(['-', '_']).any(names::is_size);
    if !sized {
        return None;
    }
    // With a model family in the name, the model ends at its size. Otherwise the whole name is used, without words for
    // frameworks and kinds of runs.
    match names::model_in(name) {
        // A comment or the file name is more reliable.
        Some(_) if names::model_in(file).is_some() || super::hints::comment_model(plain).is_some() => None,
        Some(model) => Some((model, line)),
        None => Some((names::without_framework(name).to_owned(), line)),
    }
}
