//! YAML configurations of fine-tuning tools: axolotl, TRL recipes, LLaMA-Factory, ArcticTraining.

use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::Node;
use crate::import::{Field, Kind};

/// Reads a configuration of axolotl.
pub(crate) fn axolotl(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "axolotl", Place::NONE);
    for (k, v) in doc.map() {
        match k.as_str() {
            "dp_shard_size" => out.int(Field::DpShard, v),
            "dp_replicate_size" => out.int(Field::DpReplicate, v),
            "context_parallel_size" | "sequence_parallel_degree" => out.int(Field::Cp, v),
            "expert_parallel_size" => out.int(Field::Ep, v),
            "fsdp_config" => {
                super::accelerate::fsdp(v, out);
                if out.fields.bool(Field::OffloadParams) == Some(false) {
                    out.fields.remove(Field::OffloadParams);
                }
                true
            }
            "adapter" => out.text(Field::Adapter, v),
            // LoRA settings without an adapter have no effect.
            _ if k.starts_with("lora_") && !doc.has("adapter") => true,
            _ => super::hf::flag(k, v, out),
        };
    }
    // `fsdp_version: 2` may be outside the mapping.
    if doc.get("fsdp_version").and_then(Node::int) == Some(2) && doc.has("fsdp_config") {
        out.fields.set_implied(Field::Sharding, "zero3", doc.get("fsdp_version").map_or(Place::NONE, |n| n.line));
    }
    let f = &out.fields;
    let (tp, cp, ep) = (f.int(Field::Tp), f.int(Field::Cp), f.int(Field::Ep));
    let (shard, replicate) = (f.int(Field::DpShard), f.int(Field::DpReplicate));
    if shard.is_some() || replicate.is_some() {
        let at = f.at(if shard.is_some() { Field::DpShard } else { Field::DpReplicate });
        let dp = shard.unwrap_or(1).checked_mul(replicate.unwrap_or(1)).filter(|n| *n > 0);
        let all = dp.and_then(|d| [tp, cp, ep].into_iter().flatten().try_fold(d, i64::checked_mul)).filter(|n| *n > 0);
        if let Some(n) = all {
            out.fields.set_implied(Field::NumAccelerators, n, at);
        }
        if let (Some(d), None) = (dp, ep) {
            out.fields.set_implied(Field::Dp, d, at);
        }
    }
}

/// Reads a recipe for TRL or the Trainer, or a configuration of LLaMA-Factory.
pub(crate) fn trainer(doc: &Node, out: &mut ReadFields) {
    let factory = doc.has("finetuning_type") || (doc.has("stage") && doc.has("template"));
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, if factory { "llama-factory" } else { "trl" }, Place::NONE);
    let kind = doc.get("finetuning_type").and_then(Node::text);
    if let Some(t) = kind.as_deref().filter(|t| *t != "full" && *t != "freeze") {
        let quantized = doc.get("quantization_bit").and_then(Node::int);
        let at = doc.get("finetuning_type").map_or(Place::NONE, |n| n.line);
        out.set(Field::Adapter, if quantized.is_some() { "qlora".to_owned() } else { t.to_owned() }, at);
        if let Some(bits) = quantized {
            out.set(Field::WeightsPrecision, format!("int{bits}"), at);
        }
    }
    let peft = doc.get("use_peft").and_then(Node::switch);
    for (k, v) in doc.map() {
        let lora = k.starts_with("lora_");
        let whole = matches!(kind.as_deref(), Some("full" | "freeze"));
        if (lora && (whole || peft == Some(false))) || k == "stage" {
            continue;
        }
        super::hf::flag(k, v, out);
    }
    let four_bit = out.fields.str(Field::WeightsPrecision) == Some("int4");
    if four_bit && out.fields.str(Field::Adapter) == Some("lora") {
        let at = out.fields.at(Field::Adapter);
        out.fields.set(Field::Adapter, "qlora", at);
    }
}

/// Reads a configuration of ArcticTraining.
pub(crate) fn arctic(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "arctic-training", Place::NONE);
    if let Some(n) = doc.at("model.name_or_path") {
        super::model(out, n);
    }
    out.int_at(Field::MicroBatch, doc, &["micro_batch_size"]);
    out.int_at(Field::GradAccum, doc, &["gradient_accumulation_steps"]);
    out.int_at(Field::UlyssesSp, doc, &["sequence_parallel_size"]);
    out.int_at(Field::SeqLen, doc, &["data.max_length"]);
    if let Some(d) = doc.get("deepspeed") {
        super::deepspeed::keys(d, out);
    }
    if let Some(n) = doc.get("activation_checkpoint_cpu_offload") {
        out.flag(Field::OffloadActivations, n);
        if n.switch() == Some(true) {
            out.fields.set_implied(Field::Recompute, "full", n.line);
        }
    }
    if let Some(n) = doc.first(&["model.disable_activation_checkpoint", "model.activation_checkpointing"]) {
        let on = n.switch() == Some(true);
        let disabled = doc.at("model.disable_activation_checkpoint").is_some() && on;
        if !disabled {
            out.fields.set_implied(Field::Recompute, "full", n.line);
        }
    }
    if let Some(n) = doc.first(&["optimizer.type", "optimizer.name"])
        && let Some(t) = n.text()
    {
        out.set(Field::Optimizer, names::optimizer(&t), n.line);
    }
}
