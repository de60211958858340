//! The first format of Dynamo graphs: one section per component, and shared settings in `Common`.

use crate::import::fields::ReadFields;
use crate::import::value::Node;
use crate::import::{Field, Kind};

use super::roles::{role, settle_roles};
use super::serving::Engine;

/// Whether the document has a component with workers.
pub(crate) fn looks_like(doc: &Node) -> bool {
    workers(doc).any(|(_, section)| section.has("ServiceArgs"))
        || (doc.has("Frontend") && workers(doc).next().is_some())
}

/// Components that run a model: their names and sections.
fn workers(doc: &Node) -> impl Iterator<Item = (&str, &Node)> {
    doc.map().iter().map(|(k, s)| (k.as_str(), s)).filter(|(name, s)| name.ends_with("Worker") && s.is_map())
}

/// Reads the graph.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    let engine = workers(doc).find_map(|(name, _)| Engine::named(name)).unwrap_or(Engine::Vllm);
    out.fields.set(Field::Kind, Kind::Serving, doc.line);
    out.fields.set(Field::Framework, engine.framework(), doc.line);
    out.fields.set(Field::Orchestrator, "dynamo", doc.line);
    let mut total = Some(0_i64);
    let mut parts: Vec<(Option<&'static str>, ReadFields)> = Vec::new();
    for (name, section) in workers(doc) {
        let mut o = ReadFields::default();
        let shared: Vec<String> =
            section.get("common-configs").map(Node::list).unwrap_or(&[]).iter().filter_map(Node::text).collect();
        for (k, v) in doc.get("Common").map(Node::map).unwrap_or(&[]) {
            if shared.iter().any(|s| s == k) {
                engine.flag(k, v, &mut o);
            }
        }
        for (k, v) in section.map() {
            // Placement and routing of a worker are not settings of its engine.
            let own = !matches!(
                k.as_str(),
                "ServiceArgs" | "common-configs" | "router" | "remote-prefill" | "conditional-disagg"
            ) && !k.contains("prefill-length")
                && !k.contains("queue");
            if own {
                engine.flag(k, v, &mut o);
            }
        }
        engine.finish(&mut o);
        let count = section.at("ServiceArgs.workers");
        if let Some(n) = count {
            o.int(Field::Workers, n);
        }
        let devices = section.at("ServiceArgs.resources.gpu").and_then(Node::int);
        let all = devices.and_then(|d| d.checked_mul(count.and_then(Node::int).unwrap_or(1)));
        total = total.zip(all).and_then(|(a, b)| a.checked_add(b));
        parts.push((role(name), o));
    }
    // Next to a prefill worker, a worker without a role decodes.
    let disaggregated = parts.iter().any(|(r, _)| *r == Some("prefill")) && parts.len() > 1;
    for (r, mut o) in parts {
        out.unrecognized.append(&mut o.unrecognized);
        o.fields.remove(Field::NumAccelerators);
        if disaggregated {
            out.roles.push((r.unwrap_or("decode").to_owned(), o.fields));
        } else {
            if let Some(n) = o.fields.remove(Field::Workers) {
                o.fields.set(Field::Replicas, n.value, n.at);
            }
            out.fields.copy_missing(&o.fields);
        }
    }
    if disaggregated {
        settle_roles(out);
    }
    if let Some(n) = total.filter(|n| *n > 0) {
        out.fields.set_implied(Field::NumAccelerators, n, doc.line);
    }
}
