//! llm-foundry and Composer: YAML configurations, possibly nested in a platform's job file.

use crate::import::argv::Args;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::unknown;
use crate::import::value::{Node, Value};

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
    out.fields.set("kind", "training", 0);
    out.fields.set("framework", "llm-foundry", 0);
    if let Some(n) = doc.at("compute.gpus") {
        out.int("num_accelerators", n);
    }
    if let Some(n) = doc.at("compute.gpu_type")
        && let Some(a) = n.text().as_deref().and_then(names::accelerator_label)
    {
        out.set("accelerator", a, n.line);
    }
    if let Some(n) = doc.get("command").filter(|n| n.raw().is_some_and(|c| c.contains("composer"))) {
        out.fields.set("launcher", "composer", n.line);
    }
    settings(s, out);
}

/// Reads a command such as `composer train.py FILE key=value …`.
pub(crate) fn command(args: &Args, out: &mut ReadFields) {
    out.fields.set("kind", "training", 0);
    out.fields.set("framework", "llm-foundry", 0);
    out.fields.set("launcher", "composer", 0);
    let mut tree = Node::new(Value::Map(Vec::new()), 0);
    for (path, node) in &args.overrides {
        tree.put(path.trim_start_matches(['+', '~']), node.clone());
    }
    settings(&tree, out);
    for w in args.positional.iter().filter(|w| w.as_str().ends_with(".yaml") || w.as_str().ends_with(".yml")) {
        let path = unknown::shown(w.as_str());
        let stem = path.rsplit('/').next().unwrap_or(&path).split(".y").next().unwrap_or(&path);
        if names::is_model(stem) {
            out.fields.set_implied("model", stem, w.line());
        }
        out.fields.set_implied("config_file", path.as_str(), w.line());
        out.references.push((path, w.line()));
    }
}

fn settings(s: &Node, out: &mut ReadFields) {
    if let Some(n) = s.first(&["model.pretrained_model_name_or_path", "model.name"]) {
        super::model(out, n);
    }
    let int = |out: &mut ReadFields, key: &str, paths: &[&str]| {
        if let Some(n) = s.first(paths) {
            out.int(key, n);
        }
    };
    int(out, "architecture.num_layers", &["model.n_layers", "model.config_overrides.num_hidden_layers"]);
    int(out, "architecture.hidden_size", &["model.d_model"]);
    int(out, "architecture.num_attention_heads", &["model.n_heads"]);
    int(out, "architecture.num_query_groups", &["model.attn_config.kv_n_heads"]);
    int(out, "architecture.expansion_ratio", &["model.expansion_ratio"]);
    int(out, "architecture.vocab_size", &["model.vocab_size"]);
    int(out, "architecture.max_position_embeddings", &["model.max_seq_len"]);
    int(out, "micro_batch", &["device_train_microbatch_size"]);
    int(out, "global_batch", &["global_train_batch_size"]);
    int(out, "seq_len", &["max_seq_len", "variables.max_seq_len", "train_loader.dataset.max_seq_len"]);
    if let Some(n) = s.get("precision") {
        super::precision(out, n);
    }
    if let Some(n) = s.at("fsdp_config.sharding_strategy") {
        super::fsdp_strategy(out, n);
    }
    if let Some(n) = s.at("fsdp_config.activation_checkpointing") {
        out.set("recompute", if n.switch() == Some(true) { "full" } else { "none" }, n.line);
    }
    if s.at("fsdp_config.activation_cpu_offload").and_then(Node::switch) == Some(true) {
        out.set("offload_activations", true, s.at("fsdp_config.activation_cpu_offload").map_or(0, |n| n.line));
    }
    if let Some(n) = s.at("optimizer.name")
        && let Some(t) = n.text()
    {
        out.set("optimizer", names::optimizer(&t), n.line);
    }
    if s.at("model.peft_config").is_some() {
        out.set("adapter", "lora", s.at("model.peft_config").map_or(0, |n| n.line));
    }
}
