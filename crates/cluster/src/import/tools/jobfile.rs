//! YAML files that contain a script: SkyPilot tasks, dstack services, and others with `run` or `commands`.

use std::collections::BTreeMap;

use crate::import::Field;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::script;
use crate::import::shell::Text;
use crate::import::value::{Node, Value, parse_int};

use super::pod::lines;

/// Keys that contain the script.
const SCRIPTS: &[&str] = &["run", "commands", "command", "script"];

/// Reads the file. Returns `None` if its script starts no known program.
pub(crate) fn document(doc: &Node, name: &str, environment: &BTreeMap<String, String>) -> Option<ReadFields> {
    let body = SCRIPTS.iter().find_map(|k| doc.get(k))?;
    let mut text = Text::default();
    match &body.value {
        Value::Str(s) => text = lines(s, body.line),
        Value::List(l) => {
            for n in l {
                text.append(&lines(n.raw()?, n.line));
                text.push("\n", n.line);
            }
        }
        _ => return None,
    }
    let mut env = environment.clone();
    for key in ["env", "envs", "environment"] {
        let Some(n) = doc.get(key) else { continue };
        for (k, v) in n.map() {
            if let Some(t) = v.text() {
                env.entry(k.clone()).or_insert(t);
            }
        }
        for v in n.list() {
            if let Some((k, v)) = v.raw().and_then(|t| t.split_once('=')) {
                env.entry(k.to_owned()).or_insert_with(|| v.to_owned());
            }
        }
    }
    let (accelerator, count, at) = devices(doc);
    let nodes = doc.first(&["num_nodes", "nodes"]).and_then(|n| Some((n.int()?, n.line)));
    if let Some(n) = count {
        for k in ["DSTACK_GPUS_NUM", "DSTACK_GPUS_PER_NODE", "SKYPILOT_NUM_GPUS_PER_NODE"] {
            env.entry(k.to_owned()).or_insert_with(|| n.to_string());
        }
    }
    if let Some((n, _)) = nodes {
        for k in ["DSTACK_NODES_NUM", "SKYPILOT_NUM_NODES"] {
            env.entry(k.to_owned()).or_insert_with(|| n.to_string());
        }
    }
    let plain = text.as_str().to_owned();
    let mut out = script::read(&script::Reader {
        name,
        plain: &plain,
        text: &text,
        index: 0,
        scripts: &[],
        env: &env,
        documents: &|_| None,
        submission: None,
        depth: 0,
    });
    if !out.fields.has(Field::Kind) {
        return None;
    }
    if let Some(a) = accelerator {
        out.fields.set_implied(Field::Accelerator, a, at);
    }
    if let Some(n) = count {
        let (nodes, line) = nodes.unwrap_or((1, at));
        out.fields.set(Field::AcceleratorsPerNode, n, at);
        if doc.first(&["num_nodes", "nodes"]).is_some() {
            out.fields.set(Field::Nodes, nodes, line);
        }
        out.fields.set(Field::NumAccelerators, n.saturating_mul(nodes), at);
    }
    Some(out)
}

/// Reads the devices: `gpu: H100:2`, `gpu: {name: H100, count: 2}`, `accelerators: A100-80GB:8`.
fn devices(doc: &Node) -> (Option<String>, Option<i64>, Place) {
    let Some(n) = doc.first(&["resources.gpu", "resources.accelerators"]) else { return (None, None, Place::NONE) };
    let name = n.get("name").and_then(Node::text);
    let count = n.get("count").and_then(Node::int);
    // Of several alternatives the first is used. `{H100:8, A100:8}` is parsed as keys without values.
    let text = n.text().or_else(|| {
        let (k, v) = n.map().first()?;
        Some(if k.contains(':') { k.clone() } else { format!("{k}:{}", v.int().unwrap_or(1)) })
    });
    match (name, text) {
        (Some(name), _) => (names::accelerator_label(&name), count.or(Some(1)), n.line),
        (None, Some(t)) => {
            let parts: Vec<&str> = t.split(':').collect();
            let count = parts.iter().rev().find_map(|p| parse_int(p.split("..").next().unwrap_or(p)));
            (names::accelerator_label(&t.replace(':', " ")), count.or(Some(1)), n.line)
        }
        _ => (None, None, n.line),
    }
}
