//! Ray: applications of `ray.serve.llm`, in files of their own or in a RayService, and jobs.

use std::collections::BTreeMap;

use crate::import::fields::Out;
use crate::import::names;
use crate::import::value::{Node, Value};
use crate::import::{json, yaml};

use super::k8s::Files;
use super::pod;
use super::serving::Engine;

/// Whether a document lists language models that Ray Serve serves.
pub(crate) fn looks_like(doc: &Node) -> bool {
    !models(doc).is_empty()
}

/// The models of a document: `llm_configs` of any application.
fn models(doc: &Node) -> Vec<&Node> {
    let mut found = Vec::new();
    doc.maps(&mut |map| found.extend(map.get("llm_configs").map(Node::list).unwrap_or(&[])));
    found
}

/// Reads a RayService; false where it serves no language model.
pub(crate) fn service(doc: &Node, out: &mut Out) -> bool {
    let Some(raw) = doc.at("spec.serveConfigV2").and_then(Node::raw) else { return false };
    let line = doc.at("spec.serveConfigV2").map_or(0, |n| n.line.saturating_sub(1));
    let Some(config) = json::parse(raw).or_else(|| yaml::parse(raw).docs.into_iter().next()) else { return false };
    let config = moved(config, line);
    if !looks_like(&config) {
        return false;
    }
    document(&config, out);
    out.fields.set("manifest", "RayService", doc.line);
    true
}

/// Reads a RayJob: the command that it submits, and the pods of the workers.
pub(crate) fn job(doc: &Node, env: &BTreeMap<String, String>, files: Files<'_>, out: &mut Out) -> bool {
    let Some(entry) = doc.at("spec.entrypoint") else { return false };
    let mut container = Node::new(Value::Map(Vec::new()), entry.line);
    let words = [Node::str("sh", entry.line), Node::str("-c", entry.line), entry.clone()];
    container.put("command", Node::new(Value::List(words.to_vec()), entry.line));
    let Some(pod) = pod::read(&container, None, env, files) else { return false };
    *out = pod.out;
    out.fields.set("manifest", "RayJob", doc.line);
    let mut nodes = 0_i64;
    for group in doc.at("spec.rayClusterSpec.workerGroupSpecs").map(Node::list).unwrap_or(&[]) {
        let Some((devices, at)) = pod::containers(group).into_iter().find_map(pod::gpus) else { continue };
        let copies = group.get("replicas").and_then(Node::int).unwrap_or(1);
        nodes = nodes.saturating_add(copies);
        out.fields.set("nodes", nodes, at);
        out.fields.set("accelerators_per_node", devices, at);
    }
    true
}

/// Gives a text inside a document the lines of the document.
fn moved(node: Node, by: u32) -> Node {
    let value = match node.value {
        Value::List(list) => Value::List(list.into_iter().map(|n| moved(n, by)).collect()),
        Value::Map(map) => Value::Map(map.into_iter().map(|(k, n)| (k, moved(n, by))).collect()),
        value => value,
    };
    Node::new(value, node.line.saturating_add(by))
}

/// Reads the models: one is the job, several are variants.
pub(crate) fn document(doc: &Node, out: &mut Out) {
    out.fields.set("kind", "serving", doc.line);
    out.fields.set("framework", "vllm", doc.line);
    let mut all: Vec<Out> = models(doc).into_iter().map(model).collect();
    if all.len() == 1 {
        if let Some(one) = all.pop() {
            out.fields.fill(&one.fields);
            out.strange.extend(one.strange);
            out.missing.extend(one.missing);
        }
        return;
    }
    let total = all.iter().try_fold(0_i64, |sum, one| sum.checked_add(one.fields.int("num_accelerators")?));
    if let Some(total) = total {
        out.fields.imply("num_accelerators", total, doc.line);
    }
    out.variants.extend(all.into_iter().map(|one| one.fields));
}

fn model(node: &Node) -> Out {
    let mut out = Out::default();
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
        out.fields.set("accelerator", label, kind.line);
    }
    let replicas = ["deployment_config.num_replicas", "deployment_config.autoscaling_config.min_replicas"];
    if let Some(n) = replicas.iter().find_map(|path| node.at(path)).filter(|n| n.int().is_some()) {
        out.int("replicas", n);
    }
    Engine::Vllm.finish(&mut out);
    Engine::Vllm.count(&mut out);
    if let (Some(each), Some(replicas)) = (out.fields.int("num_accelerators"), out.fields.int("replicas"))
        && replicas > 1
    {
        let at = out.fields.at("replicas");
        out.fields.set("accelerators_per_replica", each, at);
        out.fields.set("num_accelerators", each.saturating_mul(replicas), at);
    }
    out
}
