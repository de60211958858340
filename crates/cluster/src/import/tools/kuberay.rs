//! KubeRay's resources: services for language models, and jobs.

use std::collections::BTreeMap;

use crate::import::Field;
use crate::import::collect::Lookup;
use crate::import::fields::ReadFields;
use crate::import::place::Place;
use crate::import::value::{Node, Value};
use crate::import::{json, yaml};

use super::{pod, ray};

/// Reads a RayService. Returns false if it does not serve a language model.
pub(crate) fn service(doc: &Node, out: &mut ReadFields) -> bool {
    let Some(raw) = doc.at("spec.serveConfigV2").and_then(Node::raw) else { return false };
    let line = doc.at("spec.serveConfigV2").map_or(Place::NONE, |n| n.line.above());
    let Some(config) = json::parse(raw).or_else(|| yaml::parse(raw).docs.into_iter().next()) else { return false };
    let config = moved(config, line);
    if !ray::looks_like(&config) {
        return false;
    }
    ray::document(&config, out);
    out.fields.set(Field::Manifest, "RayService", doc.line);
    true
}

/// Reads a RayJob: the submitted command, and the worker pods.
pub(crate) fn job(doc: &Node, env: &BTreeMap<String, String>, files: Lookup<'_>, out: &mut ReadFields) -> bool {
    let Some(entry) = doc.at("spec.entrypoint") else { return false };
    let mut container = Node::new(Value::Map(Vec::new()), entry.line);
    let words = [Node::str("sh", entry.line), Node::str("-c", entry.line), entry.clone()];
    container.put("command", Node::new(Value::List(words.to_vec()), entry.line));
    let Some(pod) = pod::read(&container, None, env, files) else { return false };
    *out = pod.out;
    out.fields.set(Field::Manifest, "RayJob", doc.line);
    let mut nodes = 0_i64;
    for group in doc.at("spec.rayClusterSpec.workerGroupSpecs").map(Node::list).unwrap_or(&[]) {
        let Some((devices, at)) = pod::containers(group).into_iter().find_map(pod::gpus) else { continue };
        let copies = group.get("replicas").and_then(Node::int).unwrap_or(1);
        nodes = nodes.saturating_add(copies);
        out.fields.set(Field::Nodes, nodes, at);
        out.fields.set(Field::AcceleratorsPerNode, devices, at);
    }
    true
}

/// Adds `by` to the line numbers of a text that is embedded in a document.
fn moved(node: Node, by: Place) -> Node {
    let value = match node.value {
        Value::List(list) => Value::List(list.into_iter().map(|n| moved(n, by)).collect()),
        Value::Map(map) => Value::Map(map.into_iter().map(|(k, n)| (k, moved(n, by))).collect()),
        value => value,
    };
    Node::new(value, node.line.below(by))
}
