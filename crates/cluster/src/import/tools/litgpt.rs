//! LitGPT's YAML and command line.

use crate::import::argv::Args;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::{Node, Value};
use crate::import::{Field, Kind};

/// Whether the document is a configuration of LitGPT.
pub(crate) fn looks_like(doc: &Node) -> bool {
    let batch = doc.at("train.micro_batch_size").is_some() || doc.at("train.global_batch_size").is_some();
    batch && (doc.has("checkpoint_dir") || doc.has("model_name") || doc.has("model_config") || doc.has("devices"))
}

/// Reads the configuration.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "litgpt", Place::NONE);
    if let Some(n) = doc.first(&["checkpoint_dir", "model_name", "model_config.name"]) {
        super::model(out, n);
        out.fields.remove(Field::ModelPath);
    }
    for (path, key) in [
        ("n_layer", Field::ArchitectureNumLayers),
        ("n_embd", Field::ArchitectureHiddenSize),
        ("intermediate_size", Field::ArchitectureFfnHiddenSize),
        ("n_head", Field::ArchitectureNumAttentionHeads),
        ("n_query_groups", Field::ArchitectureNumQueryGroups),
        ("padded_vocab_size", Field::ArchitectureVocabSize),
        ("block_size", Field::ArchitectureMaxPositionEmbeddings),
        ("n_expert", Field::ArchitectureNumExperts),
        ("n_expert_per_token", Field::ArchitectureMoeTopk),
    ] {
        out.int_at(key, doc, &[&format!("model_config.{path}")]);
    }
    out.int_at(Field::Nodes, doc, &["num_nodes"]);
    out.int_at(Field::AcceleratorsPerNode, doc, &["devices"]);
    out.int_at(Field::MicroBatch, doc, &["train.micro_batch_size"]);
    out.int_at(Field::GlobalBatch, doc, &["train.global_batch_size"]);
    out.int_at(Field::SeqLen, doc, &["train.max_seq_length"]);
    if let Some(n) = doc.get("precision") {
        super::precision(out, n);
    }
    if let Some(n) = doc.get("quantize").and_then(|n| n.text().map(|t| (t, n.line))) {
        let word = if n.0.contains("int8") { "int8" } else { "int4" };
        out.set(Field::WeightsPrecision, word, n.1);
    }
    if doc.at("lora_r").is_some() {
        let at = doc.at("lora_r").map_or(Place::NONE, |n| n.line);
        out.set(Field::Adapter, if out.fields.has(Field::WeightsPrecision) { "qlora" } else { "lora" }, at);
        out.int_at(Field::LoraRank, doc, &["lora_r"]);
    }
    let optimizer = doc.first(&["optimizer.class_path"]).or(doc.get("optimizer"));
    if let Some((t, at)) = optimizer.and_then(|n| Some((n.text()?, n.line))) {
        out.set(Field::Optimizer, names::optimizer(&t), at);
    }
}

/// Reads a command such as `litgpt pretrain --train.micro_batch_size 4`.
pub(crate) fn command(args: &Args, out: &mut ReadFields) {
    let mut tree = Node::new(Value::Map(Vec::new()), Place::NONE);
    for f in &args.flags {
        let path = f.name.trim_start_matches('-');
        if path == "config" {
            if let Some(t) = f.node.shown() {
                out.fields.set(Field::ConfigFile, t.clone(), f.node.line);
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
        let quantized = out.fields.has(Field::WeightsPrecision);
        out.fields.set_implied(Field::Adapter, if quantized { "qlora" } else { "lora" }, w.line());
    }
}
