//! Primus: one YAML format for Megatron-LM, torchtitan and MaxText.

use crate::import::argv::Args;
use crate::import::fields::ReadFields;
use crate::import::names::snake;
use crate::import::place::Place;
use crate::import::shell::Text;
use crate::import::unknown;
use crate::import::value::Node;
use crate::import::{Field, Kind};

/// The module that trains.
pub(crate) fn module(doc: &Node) -> Option<&Node> {
    let modules = doc.get("modules")?;
    modules.get("pre_trainer").or_else(|| modules.map().iter().map(|(_, v)| v).find(|v| v.has("framework")))
}

/// Reads the configuration.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    let Some(m) = module(doc) else { return };
    let framework = m.get("framework").and_then(Node::text).unwrap_or_default();
    out.fields.set(Field::Kind, Kind::Training, m.line);
    out.fields.set(Field::Framework, format!("primus-{framework}"), m.get("framework").map_or(m.line, |n| n.line));
    if let Some(n) = m.get("model") {
        if let Some(t) = n.text() {
            let base = t.rsplit('/').next().unwrap_or(&t).trim_end_matches(".yaml").trim_end_matches(".yml");
            let mut id = base;
            for (tail, p) in [("-fp8", "fp8"), ("-bf16", "bf16"), ("-FP8", "fp8"), ("-BF16", "bf16")] {
                if let Some(short) = base.strip_suffix(tail) {
                    id = short;
                    out.fields.set(Field::Precision, p, n.line);
                }
            }
            out.set(Field::Model, id, n.line);
        } else {
            out.record_unset_variables(n);
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
                    out.unrecognized.push((k.clone(), v.line));
                }
            }
        }
    }
}

/// Reads `run_pretrain.sh` and `primus-cli`, with flags of the framework in the path of the experiment. Returns false
/// if no experiment is stated.
pub(crate) fn command(args: &Args, experiment: Option<&Text>, out: &mut ReadFields) -> bool {
    let given = args.flag(&["config", "exp"]).and_then(|n| Some((n.shown()?, n.line)));
    let Some((path, line)) = given.or_else(|| experiment.map(|t| (unknown::shown(t.as_str()), t.line()))) else {
        return false;
    };
    let framework = ["megatron", "torchtitan", "maxtext"]
        .into_iter()
        .find(|f| path.split(['/', '_', '-']).any(|part| part == *f))
        .unwrap_or("megatron");
    out.fields.set(Field::Kind, Kind::Training, line);
    out.fields.set(Field::Framework, format!("primus-{framework}"), line);
    out.fields.set(Field::ConfigFile, path.as_str(), line);
    let stem = path.rsplit('/').next().unwrap_or(&path).split(".y").next().unwrap_or(&path);
    let mut model = stem.trim_end_matches("-pretrain");
    for (tail, precision) in [("-FP8", "fp8"), ("-BF16", "bf16"), ("-fp8", "fp8"), ("-bf16", "bf16")] {
        if let Some(short) = model.strip_suffix(tail) {
            model = short;
            out.fields.set_implied(Field::Precision, precision, line);
        }
    }
    if crate::import::names::is_model(model) {
        out.fields.set_implied(Field::Model, model, line);
    }
    if let Some(accelerator) = crate::import::names::accelerator_in(&path) {
        out.fields.set_implied(Field::Accelerator, accelerator, line);
    }
    for f in &args.flags {
        let key = snake(&f.name);
        let known = match (key.as_str(), framework) {
            ("config" | "exp", _) => true,
            ("nnodes" | "num_nodes" | "nodes", _) => out.int(Field::Nodes, &f.node),
            // Options of `primus-cli slurm` have Slurm's short names.
            _ if f.name == "-N" => out.int(Field::Nodes, &f.node),
            (_, "maxtext") => {
                super::maxtext::keys(&[(key.clone(), f.node.clone())], out);
                true
            }
            (_, "torchtitan") => {
                let mut tree = Node::new(crate::import::value::Value::Null, Place::NONE);
                tree.put(f.name.trim_start_matches('-'), f.node.clone());
                super::torchtitan::sections(&tree, out);
                true
            }
            _ => !f.name.starts_with("--") || super::megatron::flag(&key, &f.node, out),
        };
        if !known {
            out.unrecognized.push((f.name.clone(), f.node.line));
        }
    }
    out.references.push((path, line));
    true
}
