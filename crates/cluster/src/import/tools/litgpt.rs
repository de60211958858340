//! LitGPT's YAML and command line.

use crate::import::argv::Args;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::value::{Node, Value};

/// Whether the document is a configuration of LitGPT.
pub(crate) fn looks_like(doc: &Node) -> bool {
    let batch = doc.at("train.micro_batch_size").is_some() || doc.at("train.global_batch_size").is_some();
    batch && (doc.has("checkpoint_dir") || doc.has("model_name") || doc.has("model_config") || doc.has("devices"))
}

/// Reads the configuration.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set("kind", "training", 0);
    out.fields.set("framework", "litgpt", 0);
    if let Some(n) = doc.first(&["checkpoint_dir", "model_name", "model_config.name"]) {
        super::model(out, n);
        out.fields.remove("model_path");
    }
    let int = |out: &mut ReadFields, key: &str, path: &str| {
        if let Some(n) = doc.at(path) {
            out.int(key, n);
        }
    };
    for (path, key) in [
        ("n_layer", "num_layers"),
        ("n_embd", "hidden_size"),
        ("intermediate_size", "ffn_hidden_size"),
        ("n_head", "num_attention_heads"),
        ("n_query_groups", "num_query_groups"),
        ("padded_vocab_size", "vocab_size"),
        ("block_size", "max_position_embeddings"),
        ("n_expert", "num_experts"),
        ("n_expert_per_token", "moe_topk"),
    ] {
        int(out, &format!("architecture.{key}"), &format!("model_config.{path}"));
    }
    int(out, "nodes", "num_nodes");
    int(out, "accelerators_per_node", "devices");
    int(out, "micro_batch", "train.micro_batch_size");
    int(out, "global_batch", "train.global_batch_size");
    int(out, "seq_len", "train.max_seq_length");
    if let Some(n) = doc.get("precision") {
        super::precision(out, n);
    }
    if let Some(n) = doc.get("quantize").and_then(|n| n.text().map(|t| (t, n.line))) {
        let word = if n.0.contains("int8") { "int8" } else { "int4" };
        out.set("weights_precision", word, n.1);
    }
    if doc.at("lora_r").is_some() {
        let at = doc.at("lora_r").map_or(0, |n| n.line);
        out.set("adapter", if out.fields.has("weights_precision") { "qlora" } else { "lora" }, at);
        int(out, "lora_rank", "lora_r");
    }
    let optimizer = doc.first(&["optimizer.class_path"]).or(doc.get("optimizer"));
    if let Some((t, at)) = optimizer.and_then(|n| Some((n.text()?, n.line))) {
        out.set("optimizer", names::optimizer(&t), at);
    }
}

/// Reads a command such as `litgpt pretrain --train.micro_batch_size 4`.
pub(crate) fn command(args: &Args, out: &mut ReadFields) {
    let mut tree = Node::new(Value::Map(Vec::new()), 0);
    for f in &args.flags {
        let path = f.name.trim_start_matches('-');
        if path == "config" {
            if let Some(t) = f.node.shown() {
                out.fields.set("config_file", t.clone(), f.node.line);
                out.references.push((t, f.node.line));
            }
            continue;
        }
        tree.put(path, f.node.clone());
    }
    if let Some(w) =
        args.positional.last().filter(|w| w.as_str().contains('/') || names::model_in(w.as_str()).is_some())
    {
        let key = if w.as_str().contains('/') { "checkpoint_dir" } else { "model_name" };
        tree.put(key, Node::str(w.as_str(), w.line()));
    }
    document(&tree, out);
    if let Some(w) = args.positional.iter().find(|w| w.as_str() == "finetune_lora") {
        let quantized = out.fields.has("weights_precision");
        out.fields.set_implied("adapter", if quantized { "qlora" } else { "lora" }, w.line());
    }
}
