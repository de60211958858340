//! llm-foundry and Composer: YAML configurations, possibly nested in a platform's job file.

use crate::import::argv::Args;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::unknown;
use crate::import::value::{Node, Value};
use crate::import::{Field, Kind};

/// The part of the document with the training configuration.
pub(crate) fn section(doc: &Node) -> Option<&Node> {
    let own = |n: &Node| {
        n.has("global_train_batch_size")
            || n.has("device_train_microbatch_size")
            || (n.has("max_duration") && n.has("train_loader"))
    };
    if own(doc) {
        return Some(doc);
    }
    doc.get("parameters").filter(|p| own(p))
}

/// Reads the configuration.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    let Some(s) = section(doc) else { return };
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "llm-foundry", Place::NONE);
    out.int_at(Field::NumAccelerators, doc, &["compute.gpus"]);
    if let Some(n) = doc.at("compute.gpu_type")
        && let Some(a) = n.text().as_deref().and_then(names::accelerator_label)
    {
        out.set(Field::Accelerator, a, n.line);
    }
    if let Some(n) = doc.get("command").filter(|n| n.raw().is_some_and(|c| c.contains("composer"))) {
        out.fields.set(Field::Launcher, "composer", n.line);
    }
    settings(s, out);
}

/// Reads a command such as `composer train.py FILE key=value …`.
pub(crate) fn command(args: &Args, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "llm-foundry", Place::NONE);
    out.fields.set(Field::Launcher, "composer", Place::NONE);
    let mut tree = Node::new(Value::Map(Vec::new()), Place::NONE);
    for (path, node) in &args.overrides {
        tree.put(path.trim_start_matches(['+', '~']), node.clone());
    }
    settings(&tree, out);
    for w in args.positional.iter().filter(|w| w.as_str().ends_with(".yaml") || w.as_str().ends_with(".yml")) {
        let path = unknown::shown(w.as_str());
        let stem = path.rsplit('/').next().unwrap_or(&path).split(".y").next().unwrap_or(&path);
        if names::is_model(stem) {
            out.fields.set_implied(Field::Model, stem, w.line());
        }
        out.fields.set_implied(Field::ConfigFile, path.as_str(), w.line());
        out.references.push((path, w.line()));
    }
}

fn settings(s: &Node, out: &mut ReadFields) {
    if let Some(n) = s.first(&["model.pretrained_model_name_or_path", "model.name"]) {
        super::model(out, n);
    }
    out.int_at(Field::ArchitectureNumLayers, s, &["model.n_layers", "model.config_overrides.num_hidden_layers"]);
    out.int_at(Field::ArchitectureHiddenSize, s, &["model.d_model"]);
    out.int_at(Field::ArchitectureNumAttentionHeads, s, &["model.n_heads"]);
    out.int_at(Field::ArchitectureNumQueryGroups, s, &["model.attn_config.kv_n_heads"]);
    out.int_at(Field::ArchitectureExpansionRatio, s, &["model.expansion_ratio"]);
    out.int_at(Field::ArchitectureVocabSize, s, &["model.vocab_size"]);
    out.int_at(Field::ArchitectureMaxPositionEmbeddings, s, &["model.max_seq_len"]);
    out.int_at(Field::MicroBatch, s, &["device_train_microbatch_size"]);
    out.int_at(Field::GlobalBatch, s, &["global_train_batch_size"]);
    out.int_at(Field::SeqLen, s, &["max_seq_len", "variables.max_seq_len", "train_loader.dataset.max_seq_len"]);
    if let Some(n) = s.get("precision") {
        super::precision(out, n);
    }
    if let Some(n) = s.at("fsdp_config.sharding_strategy") {
        super::fsdp_strategy(out, n);
    }
    if let Some(n) = s.at("fsdp_config.activation_checkpointing") {
        out.set(Field::Recompute, if n.switch() == Some(true) { "full" } else { "none" }, n.line);
    }
    if s.at("fsdp_config.activation_cpu_offload").and_then(Node::switch) == Some(true) {
        out.set(
            Field::OffloadActivations,
            true,
            s.at("fsdp_config.activation_cpu_offload").map_or(Place::NONE, |n| n.line),
        );
    }
    if let Some(n) = s.at("optimizer.name")
        && let Some(t) = n.text()
    {
        out.set(Field::Optimizer, names::optimizer(&t), n.line);
    }
    if s.at("model.peft_config").is_some() {
        out.set(Field::Adapter, "lora", s.at("model.peft_config").map_or(Place::NONE, |n| n.line));
    }
}
