//! Configurations of nanotron.

use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::value::Node;

/// Reads the configuration.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set("kind", "training", 0);
    out.fields.set("framework", "nanotron", 0);
    for (path, key) in [
        ("num_hidden_layers", "num_layers"),
        ("hidden_size", "hidden_size"),
        ("intermediate_size", "ffn_hidden_size"),
        ("num_attention_heads", "num_attention_heads"),
        ("num_key_value_heads", "num_query_groups"),
        ("vocab_size", "vocab_size"),
        ("moe_config.num_experts", "num_experts"),
        ("moe_config.top_k", "moe_topk"),
        ("max_position_embeddings", "max_position_embeddings"),
    ] {
        if let Some(n) = doc.at(&format!("model.model_config.{path}")) {
            out.int(&format!("architecture.{key}"), n);
        }
    }
    for (path, key) in [
        ("parallelism.tp", "tp"),
        ("parallelism.pp", "pp"),
        ("parallelism.dp", "dp"),
        ("parallelism.context_parallel_size", "cp"),
        ("parallelism.expert_parallel_size", "ep"),
        ("tokens.micro_batch_size", "micro_batch"),
        ("tokens.batch_accumulation_per_replica", "grad_accum"),
        ("tokens.sequence_length", "seq_len"),
    ] {
        if let Some(n) = doc.at(path) {
            out.int(key, n);
        }
    }
    if let Some(n) = doc.at("model.dtype") {
        super::precision(out, n);
    }
    if let Some(n) = doc.at("optimizer.zero_stage") {
        super::zero_stage(out, n);
    }
    if let Some(n) = doc.at("parallelism.recompute_layer") {
        out.set("recompute", if n.switch() == Some(true) { "full" } else { "none" }, n.line);
    }
    if let Some(n) = doc.at("optimizer.optimizer_factory.name")
        && let Some(t) = n.text()
    {
        out.set("optimizer", names::optimizer(&t), n.line);
    }
    let f = &out.fields;
    let product = |keys: &[&str]| keys.iter().try_fold(1_i64, |acc, k| acc.checked_mul(f.int(k).filter(|n| *n > 0)?));
    let at = f.at("dp");
    let cp = f.int("cp").unwrap_or(1);
    let ep = f.int("ep").unwrap_or(1);
    let all =
        product(&["dp", "tp", "pp"]).and_then(|n| n.checked_mul(cp)).and_then(|n| n.checked_mul(ep)).filter(|n| *n > 0);
    let batch = product(&["dp", "micro_batch", "grad_accum"]);
    if let Some(n) = all {
        out.fields.set_implied("num_accelerators", n, at);
    }
    if let Some(n) = batch {
        out.fields.set_implied("global_batch", n, at);
    }
}
