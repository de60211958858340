//! Hugging Face Accelerate: its configuration file and the flags of `accelerate launch`.

use crate::import::argv::{Flag, Launcher};
use crate::import::fields::ReadFields;
use crate::import::names::snake;
use crate::import::place::Place;
use crate::import::value::Node;
use crate::import::{Field, Kind};

/// Whether the document is a configuration of Accelerate.
pub(crate) fn looks_like(doc: &Node) -> bool {
    doc.has("distributed_type")
        || doc.has("compute_environment")
        || (doc.has("mixed_precision") && doc.has("num_machines"))
}

/// Reads the configuration file.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "accelerate", Place::NONE);
    let kind = doc.get("distributed_type").and_then(Node::text).unwrap_or_default().to_ascii_uppercase();
    for (k, v) in doc.map() {
        match k.as_str() {
            "num_machines" => {
                out.int(Field::Nodes, v);
            }
            "num_processes" => {
                out.int(Field::NumAccelerators, v);
            }
            "mixed_precision" => {
                super::precision(out, v);
            }
            "fsdp_config" if kind.is_empty() || kind.contains("FSDP") => fsdp(v, out),
            "deepspeed_config" if kind.is_empty() || kind.contains("DEEPSPEED") => {
                for (k, v) in v.map() {
                    flag(k, v, out);
                }
            }
            "parallelism_config" | "megatron_lm_config" => {
                for (k, v) in v.map() {
                    flag(k, v, out);
                }
            }
            _ => {}
        }
    }
    if out.fields.int(Field::DpReplicate).is_some_and(|n| n > 1) && out.fields.str(Field::Sharding) == Some("zero3") {
        // Several replicas, each of which is sharded.
        out.set(Field::Sharding, "hsdp", out.fields.at(Field::DpReplicate));
    }
    if kind.contains("MULTI_GPU") {
        let at = doc.get("distributed_type").map_or(Place::NONE, |n| n.line);
        out.fields.set_implied(Field::Sharding, "none", at);
    }
}

/// Reads the settings of PyTorch FSDP, with or without the prefix `fsdp_`.
pub(crate) fn fsdp(map: &Node, out: &mut ReadFields) {
    let get = |name: &str| map.get(&format!("fsdp_{name}")).or(map.get(name));
    let second = get("version").and_then(Node::int) == Some(2);
    if let Some(n) = get("sharding_strategy") {
        super::fsdp_strategy(out, n);
    }
    if let Some(n) = get("reshard_after_forward") {
        // In FSDP version 1 this key contained the strategy.
        if n.switch().is_none() {
            super::fsdp_strategy(out, n);
        } else if second || !out.fields.has(Field::Sharding) {
            let word = if n.switch() == Some(true) { "zero3" } else { "zero2" };
            out.fields.set_implied(Field::Sharding, word, n.line);
        }
    }
    if second {
        out.fields.set_implied(Field::Sharding, "zero3", get("version").map_or(Place::NONE, |n| n.line));
    }
    if let Some(n) = get("activation_checkpointing") {
        let word = if n.switch() == Some(true) { "full" } else { "none" };
        out.set(Field::Recompute, word, n.line);
    }
    if let Some(n) = get("offload_params") {
        out.flag(Field::OffloadParams, n);
    }
}

fn flag(raw: &str, node: &Node, out: &mut ReadFields) -> bool {
    let key = snake(raw);
    let key = key.strip_prefix("parallelism_config_").unwrap_or(&key);
    match key {
        "zero_stage" => super::zero_stage(out, node),
        "offload_optimizer_device" => {
            let t = node.shown().unwrap_or_default();
            t.is_empty() || out.set(Field::OffloadOptimizer, t, node.line)
        }
        "offload_param_device" => match node.shown().as_deref() {
            Some("none") => out.set(Field::OffloadParams, false, node.line),
            Some(t) => out.set(Field::OffloadParams, t, node.line),
            None => true,
        },
        "gradient_accumulation_steps" => out.int(Field::GradAccum, node),
        "deepspeed_config_file" => super::reference(out, node),
        "tp_size" | "megatron_lm_tp_degree" => out.int(Field::Tp, node),
        "megatron_lm_pp_degree" => out.int(Field::Pp, node),
        "cp_size" => out.int(Field::Cp, node),
        "sp_size" => out.int(Field::UlyssesSp, node),
        "dp_replicate_size" => out.int(Field::DpReplicate, node),
        "dp_shard_size" => out.int(Field::DpShard, node),
        "megatron_lm_recompute_activations" => out.set_if_on(Field::Recompute, "selective", node),
        "megatron_lm_use_distributed_optimizer" => out.set_if_on(Field::Sharding, "zero1", node),
        "fsdp_sharding_strategy" => super::fsdp_strategy(out, node),
        "multi_gpu" => {
            // Plain data parallelism, unless other flags enable sharding.
            out.fields.set_implied(Field::Sharding, "none", node.line);
            true
        }
        "use_fsdp" | "fsdp_version" => {
            if node.switch() == Some(true) || node.int() == Some(2) {
                out.fields.set_implied(Field::Sharding, "zero3", node.line);
            }
            true
        }
        "fsdp_reshard_after_forward" => match node.switch() {
            Some(on) => out.set(Field::Sharding, if on { "zero3" } else { "zero2" }, node.line),
            None => super::fsdp_strategy(out, node),
        },
        "megatron_lm_num_micro_batches" => out.int(Field::GradAccum, node),
        "megatron_lm_sequence_parallelism" => out.flag(Field::SequenceParallel, node),
        "megatron_lm_expert_model_parallel_size" => out.int(Field::Ep, node),
        "megatron_lm_context_parallel_size" => out.int(Field::Cp, node),
        "megatron_lm_gradient_clipping" => true,
        "fsdp_offload_params" => out.flag(Field::OffloadParams, node),
        "fsdp_activation_checkpointing" => out.set_if_on(Field::Recompute, "full", node),
        _ => false,
    }
}

/// Reads the flags of `accelerate launch`.
pub(crate) fn launch(l: &Launcher, out: &mut ReadFields) {
    if let Some(n) = &l.config
        && let Some(t) = n.shown()
    {
        out.fields.set(Field::ConfigFile, t.clone(), n.line);
        if let Some(z) = super::zero_in_name(&t) {
            out.fields.set_implied(Field::Sharding, z, n.line);
        }
        out.references.push((t, n.line));
    }
    if let Some(n) = &l.precision {
        super::precision(out, n);
    }
    for Flag { name, node } in &l.flags {
        flag(name, node, out);
    }
}
