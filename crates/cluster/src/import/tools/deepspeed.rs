//! DeepSpeed configurations, and GPT-NeoX, which is based on them.

use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::Node;
use crate::import::{Field, Kind};

/// Whether the document is a DeepSpeed configuration.
pub(crate) fn looks_like(doc: &Node) -> bool {
    doc.has("zero_optimization")
        || doc.has("train_micro_batch_size_per_gpu")
        || (doc.has("train_batch_size")
            && (doc.has("fp16") || doc.has("bf16") || doc.has("gradient_accumulation_steps")))
}

/// Whether the document has keys of GPT-NeoX.
pub(crate) fn is_neox(doc: &Node) -> bool {
    let key = |a: &str, b: &str| doc.has(a) || doc.has(b);
    key("pipe_parallel_size", "pipe-parallel-size")
        || (key("model_parallel_size", "model-parallel-size") && key("num_layers", "num-layers"))
}

/// Reads the keys that both formats have.
pub(crate) fn keys(doc: &Node, out: &mut ReadFields) {
    let get = |path: &str| doc.at(path);
    if let Some(n) = get("train_micro_batch_size_per_gpu") {
        out.int(Field::MicroBatch, n);
    }
    if let Some(n) = get("train_batch_size") {
        out.int(Field::GlobalBatch, n);
    }
    out.int_at(Field::GradAccum, doc, &["gradient_accumulation_steps", "gas"]);
    if let Some(n) = get("zero_optimization.stage") {
        super::zero_stage(out, n);
    }
    for (path, key) in [("offload_optimizer", Field::OffloadOptimizer), ("offload_param", Field::OffloadParams)] {
        if let Some(n) = get(&format!("zero_optimization.{path}.device")) {
            match n.shown().as_deref() {
                Some("none") | None => {
                    if key == Field::OffloadParams {
                        out.set(key, false, n.line);
                    } else {
                        out.set(key, "none", n.line);
                    }
                }
                Some(t) => {
                    out.set(key, t, n.line);
                }
            }
        }
    }
    if let Some(n) = get("activation_checkpointing.cpu_checkpointing").filter(|n| n.switch() == Some(true)) {
        out.set(Field::OffloadActivations, true, n.line);
    }
    if get("zero_optimization.cpu_offload").and_then(Node::switch) == Some(true) {
        out.set(Field::OffloadOptimizer, "cpu", get("zero_optimization.cpu_offload").map_or(Place::NONE, |n| n.line));
    }
    for (name, word) in [("bf16", "bf16"), ("bfloat16", "bf16"), ("fp16", "fp16")] {
        let Some(n) = get(name) else { continue };
        let on = n.get("enabled").or(n.get(name)).unwrap_or(n);
        if on.switch() == Some(true) {
            // GPT-NeoX states another half precision inside the section.
            let typed = n.get("type").and_then(Node::text);
            let word = typed.as_deref().and_then(names::precision).unwrap_or(word);
            out.set(Field::Precision, word, on.line);
        }
    }
    if let Some(n) = get("precision") {
        super::precision(out, n);
    }
    if let Some(n) = get("optimizer.type")
        && let Some(t) = n.text()
    {
        out.set(Field::Optimizer, names::optimizer(&t), n.line);
    }
    out.int_at(Field::Tp, doc, &["tensor_parallel.autotp_size", "tensor_parallel.tp_size"]);
    if let Some(n) = get("sequence_parallel_size") {
        out.int(Field::UlyssesSp, n);
    }
}

/// Reads a DeepSpeed configuration.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "deepspeed", Place::NONE);
    keys(doc, out);
}

/// Reads a GPT-NeoX configuration, whose keys have dashes or underscores.
pub(crate) fn neox(raw: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "gpt-neox", Place::NONE);
    let mut doc = raw.clone();
    if let crate::import::value::Value::Map(m) = &mut doc.value {
        for (k, _) in m.iter_mut() {
            *k = k.replace('-', "_");
        }
    }
    keys(&doc, out);
    for (k, v) in doc.map() {
        match k.as_str() {
            "pipe_parallel_size" => {
                // Zero disables pipeline parallelism.
                match v.int() {
                    Some(0) => out.set(Field::Pp, 1, v.line),
                    _ => out.int(Field::Pp, v),
                };
            }
            "model_parallel_size" => {
                out.int(Field::Tp, v);
            }
            "checkpoint_activations" => {
                let word = if v.switch() == Some(true) { "full" } else { "none" };
                out.set(Field::Recompute, word, v.line);
            }
            "num_gpus" | "global_num_gpus" => {
                out.int(Field::NumAccelerators, v);
            }
            "num_layers"
            | "hidden_size"
            | "num_attention_heads"
            | "max_position_embeddings"
            | "seq_length"
            | "num_experts"
            | "intermediate_size"
            | "num_kv_heads" => {
                let key = match k.as_str() {
                    "intermediate_size" => "ffn_hidden_size",
                    "num_kv_heads" => "num_query_groups",
                    k => k,
                };
                super::megatron::flag(key, v, out);
            }
            _ => {}
        }
    }
}
