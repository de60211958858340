//! Ray: applications of `ray.serve.llm`.

use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::value::Node;
use crate::import::{Field, Kind};

use super::serving::Engine;

/// Whether the document lists language models served with Ray Serve.
pub(crate) fn looks_like(doc: &Node) -> bool {
    !models(doc).is_empty()
}

/// The models in `llm_configs` of all applications.
fn models(doc: &Node) -> Vec<&Node> {
    let mut found = Vec::new();
    doc.for_each_map(&mut |map| found.extend(map.get("llm_configs").map(Node::list).unwrap_or(&[])));
    found
}

/// Reads the models. A single model is the job; several models become variants.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Serving, doc.line);
    out.fields.set(Field::Framework, "vllm", doc.line);
    let mut all: Vec<ReadFields> = models(doc).into_iter().map(model).collect();
    if all.len() == 1 {
        if let Some(one) = all.pop() {
            out.fields.copy_missing(&one.fields);
            out.unrecognized.extend(one.unrecognized);
            out.missing.extend(one.missing);
        }
        return;
    }
    let total = all.iter().try_fold(0_i64, |sum, one| sum.checked_add(one.fields.int(Field::NumAccelerators)?));
    if let Some(total) = total {
        out.fields.set_implied(Field::NumAccelerators, total, doc.line);
    }
    out.variants.extend(all.into_iter().map(|one| one.fields));
}

fn model(node: &Node) -> ReadFields {
    let mut out = ReadFields::default();
    if let Some(source) = node.at("model_loading_config.model_source").filter(|n| !n.is_map()) {
        super::model(&mut out, source);
    } else if let Some(id) = node.at("model_loading_config.model_id") {
        super::model(&mut out, id);
    }
    if let Some(arguments) = node.get("engine_kwargs") {
        Engine::Vllm.keys(arguments, &mut out);
    }
    if let Some(kind) = node.get("accelerator_type")
        && let Some(label) = kind.text().as_deref().and_then(names::accelerator_label)
    {
        out.fields.set(Field::Accelerator, label, kind.line);
    }
    let replicas = ["deployment_config.num_replicas", "deployment_config.autoscaling_config.min_replicas"];
    if let Some(n) = replicas.iter().find_map(|path| node.at(path)).filter(|n| n.int().is_some()) {
        out.int(Field::Replicas, n);
    }
    Engine::Vllm.finish(&mut out);
    Engine::Vllm.count(&mut out);
    if let (Some(each), Some(replicas)) = (out.fields.int(Field::NumAccelerators), out.fields.int(Field::Replicas))
        && replicas > 1
    {
        let at = out.fields.at(Field::Replicas);
        out.fields.set(Field::AcceleratorsPerReplica, each, at);
        out.fields.set(Field::NumAccelerators, each.saturating_mul(replicas), at);
    }
    out
}
