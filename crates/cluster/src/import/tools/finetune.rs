//! YAML configurations of fine-tuning tools: axolotl, TRL recipes, LLaMA-Factory, ArcticTraining.

use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::value::Node;

/// Reads a configuration of axolotl.
pub(crate) fn axolotl(doc: &Node, out: &mut ReadFields) {
    out.fields.set("kind", "training", 0);
    out.fields.set("framework", "axolotl", 0);
    for (k, v) in doc.map() {
        match k.as_str() {
            "dp_shard_size" => out.int("dp_shard", v),
            "dp_replicate_size" => out.int("dp_replicate", v),
            "context_parallel_size" | "sequence_parallel_degree" => out.int("cp", v),
            "expert_parallel_size" => out.int("ep", v),
            "fsdp_config" => {
                super::accelerate::fsdp(v, out);
                if out.fields.bool("offload_params") == Some(false) {
                    out.fields.remove("offload_params");
                }
                true
            }
            "adapter" => out.text("adapter", v),
            // LoRA settings without an adapter have no effect.
            _ if k.starts_with("lora_") && !doc.has("adapter") => true,
            _ => super::hf::flag(k, v, out),
        };
    }
    // `fsdp_version: 2` may be outside the mapping.
    if doc.get("fsdp_version").and_then(Node::int) == Some(2) && doc.has("fsdp_config") {
        out.fields.set_implied("sharding", "zero3", doc.get("fsdp_version").map_or(0, |n| n.line));
    }
    let f = &out.fields;
    let (tp, cp, ep) = (f.int("tp"), f.int("cp"), f.int("ep"));
    let (shard, replicate) = (f.int("dp_shard"), f.int("dp_replicate"));
    if shard.is_some() || replicate.is_some() {
        let at = f.at(if shard.is_some() { "dp_shard" } else { "dp_replicate" });
        let dp = shard.unwrap_or(1).checked_mul(replicate.unwrap_or(1)).filter(|n| *n > 0);
        let all = dp.and_then(|d| [tp, cp, ep].into_iter().flatten().try_fold(d, i64::checked_mul)).filter(|n| *n > 0);
        if let Some(n) = all {
            out.fields.set_implied("num_accelerators", n, at);
        }
        if let (Some(d), None) = (dp, ep) {
            out.fields.set_implied("dp", d, at);
        }
    }
}

/// Reads a recipe for TRL or the Trainer, or a configuration of LLaMA-Factory.
pub(crate) fn trainer(doc: &Node, out: &mut ReadFields) {
    let factory = doc.has("finetuning_type") || (doc.has("stage") && doc.has("template"));
    out.fields.set("kind", "training", 0);
    out.fields.set("framework", if factory { "llama-factory" } else { "trl" }, 0);
    let kind = doc.get("finetuning_type").and_then(Node::text);
    if let Some(t) = kind.as_deref().filter(|t| *t != "full" && *t != "freeze") {
        let quantized = doc.get("quantization_bit").and_then(Node::int);
        let at = doc.get("finetuning_type").map_or(0, |n| n.line);
        out.set("adapter", if quantized.is_some() { "qlora".to_owned() } else { t.to_owned() }, at);
        if let Some(bits) = quantized {
            out.set("weights_precision", format!("int{bits}"), at);
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
    let four_bit = out.fields.str("weights_precision") == Some("int4");
    if four_bit && out.fields.str("adapter") == Some("lora") {
        let at = out.fields.at("adapter");
        out.fields.set("adapter", "qlora", at);
    }
}

/// Reads a configuration of ArcticTraining.
pub(crate) fn arctic(doc: &Node, out: &mut ReadFields) {
    out.fields.set("kind", "training", 0);
    out.fields.set("framework", "arctic-training", 0);
    if let Some(n) = doc.at("model.name_or_path") {
        super::model(out, n);
    }
    let int = |out: &mut ReadFields, key: &str, path: &str| {
        if let Some(n) = doc.at(path) {
            out.int(key, n);
        }
    };
    int(out, "micro_batch", "micro_batch_size");
    int(out, "grad_accum", "gradient_accumulation_steps");
    int(out, "ulysses_sp", "sequence_parallel_size");
    int(out, "seq_len", "data.max_length");
    if let Some(d) = doc.get("deepspeed") {
        super::deepspeed::keys(d, out);
    }
    if let Some(n) = doc.get("activation_checkpoint_cpu_offload") {
        out.flag("offload_activations", n);
        if n.switch() == Some(true) {
            out.fields.set_implied("recompute", "full", n.line);
        }
    }
    if let Some(n) = doc.first(&["model.disable_activation_checkpoint", "model.activation_checkpointing"]) {
        let on = n.switch() == Some(true);
        let disabled = doc.at("model.disable_activation_checkpoint").is_some() && on;
        if !disabled {
            out.fields.set_implied("recompute", "full", n.line);
        }
    }
    if let Some(n) = doc.first(&["optimizer.type", "optimizer.name"])
        && let Some(t) = n.text()
    {
        out.set("optimizer", names::optimizer(&t), n.line);
    }
}
