//! torchtune: `tune run RECIPE --config NAME key=value …`, and its configurations.

use crate::import::argv::Args;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::Node;
use crate::import::{Field, Kind};

/// Reads the words after `tune run`. Options of `torchrun` precede the recipe.
pub(crate) fn command(args: &Args, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "torchtune", Place::NONE);
    for f in &args.flags {
        match names::snake(&f.name).as_str() {
            "nnodes" | "nproc_per_node" => {
                let key = if f.name.contains("nnodes") { Field::Nodes } else { Field::AcceleratorsPerNode };
                out.int(key, &f.node);
            }
            "config" => {
                if let Some(t) = f.node.shown() {
                    out.fields.set(Field::ConfigFile, t.as_str(), f.node.line);
                    if t.ends_with(".yaml") {
                        out.references.push((t, f.node.line));
                    }
                }
            }
            _ => {}
        }
    }
    for (path, node) in &args.overrides {
        if !setting(path, node, out) {
            out.unrecognized.push((path.clone(), node.line));
        }
    }
}

/// Whether the document is the configuration of a recipe: its components state the Python class or function that
/// creates them.
pub(crate) fn looks_like(doc: &Node) -> bool {
    ["model", "tokenizer"].iter().any(|part| doc.at(&format!("{part}._component_")).is_some())
}

/// Reads a configuration.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "torchtune", Place::NONE);
    doc.for_each_leaf(&mut |path, node| {
        if !setting(path, node, out) && !path.contains('.') {
            out.unrecognized.push((path.to_owned(), node.line));
        }
    });
}

fn setting(path: &str, node: &Node, out: &mut ReadFields) -> bool {
    let component = || node.text().map(|t| t.rsplit('.').next().unwrap_or(&t).to_owned());
    match path {
        "model._component_" => {
            if let Some(t) = component() {
                if t.contains("lora") {
                    out.set(Field::Adapter, if t.contains("qlora") { "qlora" } else { "lora" }, node.line);
                }
                let name = t.trim_start_matches("qlora_").trim_start_matches("lora_").to_owned();
                out.set(Field::Model, name, node.line);
            }
            true
        }
        "optimizer._component_" => {
            if let Some(t) = component() {
                out.set(Field::Optimizer, names::optimizer(&t), node.line);
            }
            true
        }
        "model.lora_rank" => out.int(Field::LoraRank, node),
        "batch_size" => out.int(Field::MicroBatch, node),
        "gradient_accumulation_steps" => out.int(Field::GradAccum, node),
        "tokenizer.max_seq_len" => out.int(Field::SeqLen, node),
        "tensor_parallel_dim" => out.int(Field::Tp, node),
        "context_parallel_dim" => out.int(Field::Cp, node),
        "data_parallel_replicate_dim" => out.int(Field::DpReplicate, node),
        "data_parallel_shard_dim" => out.int(Field::DpShard, node),
        "dtype" => super::precision(out, node),
        "enable_activation_checkpointing" => super::hf::flag("gradient_checkpointing", node, out),
        "enable_activation_offloading" => out.flag(Field::OffloadActivations, node),
        "fsdp_cpu_offload" => out.set_if_on(Field::OffloadParams, "cpu", node),
        "epochs"
        | "device"
        | "compile"
        | "custom_sharded_layers"
        | "optimizer_in_bwd"
        | "resume_from_checkpoint"
        | "clip_grad_norm"
        | "max_steps_per_epoch"
        | "shuffle"
        | "resume" => true,
        _ => super::is_irrelevant(&names::snake(path)),
    }
}
