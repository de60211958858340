//! Primus: one YAML in front of Megatron-LM, torchtitan or MaxText.

use crate::import::fields::Out;
use crate::import::names::snake;
use crate::import::value::Node;

/// The module that trains.
pub(crate) fn module(doc: &Node) -> Option<&Node> {
    let modules = doc.get("modules")?;
    modules.get("pre_trainer").or_else(|| modules.map().iter().map(|(_, v)| v).find(|v| v.has("framework")))
}

/// Reads the file.
pub(crate) fn document(doc: &Node, out: &mut Out) {
    let Some(m) = module(doc) else { return };
    let framework = m.get("framework").and_then(Node::text).unwrap_or_default();
    out.fields.set("kind", "training", m.line);
    out.fields.set("framework", format!("primus-{framework}"), m.get("framework").map_or(m.line, |n| n.line));
    if let Some(n) = m.get("model") {
        if let Some(t) = n.text() {
            let base = t.rsplit('/').next().unwrap_or(&t).trim_end_matches(".yaml").trim_end_matches(".yml");
            let mut id = base;
            for (tail, p) in [("-fp8", "fp8"), ("-bf16", "bf16"), ("-FP8", "fp8"), ("-BF16", "bf16")] {
                if let Some(short) = base.strip_suffix(tail) {
                    id = short;
                    out.fields.set("precision", p, n.line);
                }
            }
            out.set("model", id, n.line);
        } else {
            out.unset(n);
        }
    }
    let Some(overrides) = m.get("overrides") else { return };
    match framework.as_str() {
        "torchtitan" => super::torchtitan::sections(overrides, out),
        "maxtext" => super::maxtext::keys(overrides.map(), out),
        _ => {
            for (k, v) in overrides.map() {
                if k == "max_position_embeddings" {
                    continue;
                }
                if !v.is_map() && !super::megatron::flag(&snake(k), v, out) && k.contains("parallel") {
                    out.strange.push((k.clone(), v.line));
                }
            }
        }
    }
}
