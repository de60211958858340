//! Configurations of nanotron.

use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::Node;
use crate::import::{Field, Kind};

/// Reads the configuration.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "nanotron", Place::NONE);
    for (path, key) in [
        ("num_hidden_layers", Field::ArchitectureNumLayers),
        ("hidden_size", Field::ArchitectureHiddenSize),
        ("intermediate_size", Field::ArchitectureFfnHiddenSize),
        ("num_attention_heads", Field::ArchitectureNumAttentionHeads),
        ("num_key_value_heads", Field::ArchitectureNumQueryGroups),
        ("vocab_size", Field::ArchitectureVocabSize),
        ("moe_config.num_experts", Field::ArchitectureNumExperts),
        ("moe_config.top_k", Field::ArchitectureMoeTopk),
        ("max_position_embeddings", Field::ArchitectureMaxPositionEmbeddings),
    ] {
        if let Some(n) = doc.at(&format!("model.model_config.{path}")) {
            out.int(key, n);
        }
    }
    for (path, key) in [
        ("parallelism.tp", Field::Tp),
        ("parallelism.pp", Field::Pp),
        ("parallelism.dp", Field::Dp),
        ("parallelism.context_parallel_size", Field::Cp),
        ("parallelism.expert_parallel_size", Field::Ep),
        ("tokens.micro_batch_size", Field::MicroBatch),
        ("tokens.batch_accumulation_per_replica", Field::GradAccum),
        ("tokens.sequence_length", Field::SeqLen),
    ] {
        out.int_at(key, doc, &[path]);
    }
    if let Some(n) = doc.at("model.dtype") {
        super::precision(out, n);
    }
    if let Some(n) = doc.at("optimizer.zero_stage") {
        super::zero_stage(out, n);
    }
    if let Some(n) = doc.at("parallelism.recompute_layer") {
        out.set(Field::Recompute, if n.switch() == Some(true) { "full" } else { "none" }, n.line);
    }
    if let Some(n) = doc.at("optimizer.optimizer_factory.name")
        && let Some(t) = n.text()
    {
        out.set(Field::Optimizer, names::optimizer(&t), n.line);
    }
    let f = &out.fields;
    let product = |keys: &[Field]| keys.iter().try_fold(1_i64, |acc, k| acc.checked_mul(f.int(*k).filter(|n| *n > 0)?));
    let at = f.at(Field::Dp);
    let cp = f.int(Field::Cp).unwrap_or(1);
    let ep = f.int(Field::Ep).unwrap_or(1);
    let all = product(&[Field::Dp, Field::Tp, Field::Pp])
        .and_then(|n| n.checked_mul(cp))
        .and_then(|n| n.checked_mul(ep))
        .filter(|n| *n > 0);
    let batch = product(&[Field::Dp, Field::MicroBatch, Field::GradAccum]);
    if let Some(n) = all {
        out.fields.set_implied(Field::NumAccelerators, n, at);
    }
    if let Some(n) = batch {
        out.fields.set_implied(Field::GlobalBatch, n, at);
    }
}
