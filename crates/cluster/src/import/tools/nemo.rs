//! NeMo 1 and its launcher: YAML configurations, and Hydra overrides on the command line.

use crate::import::argv::Args;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::{Node, Value};
use crate::import::{Field, Kind};

/// Reads a configuration with `trainer`, `model` and possibly `run`.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "nemo", Place::NONE);
    out.int_at(Field::Nodes, doc, &["trainer.num_nodes"]);
    out.int_at(Field::AcceleratorsPerNode, doc, &["trainer.devices"]);
    if let Some(n) = doc.at("trainer.precision") {
        super::precision(out, n);
    }
    if let Some(n) = doc.at("run.time_limit") {
        out.text(Field::SlurmTime, n);
    }
    if doc.has("defaults") || doc.has("hydra") {
        out.fields.set(Field::Launcher, "nemo-launcher", Place::NONE);
    }
    for path in ["model", "trainer.strategy", "data", "optim", "trainer.plugins"] {
        if let Some(m) = doc.at(path) {
            keys(path, m, out);
        }
    }
    if let Some(n) = doc.first(&["model.optim.name", "optim.config.optimizer", "optim.name"])
        && let Some(t) = n.text()
    {
        let low = names::optimizer(&t);
        if low.contains("distributed") {
            out.fields.set_implied(Field::Sharding, "zero1", n.line);
        }
        out.set(Field::Optimizer, low, n.line);
    }
    for path in ["model.data.seq_length", "model.data.train_ds.max_seq_length", "data.seq_length"] {
        if let Some(n) = doc.at(path).filter(|_| !out.fields.has(Field::SeqLen)) {
            out.int(Field::SeqLen, n);
        }
    }
    if let Some(n) = doc.at("model.peft.peft_scheme")
        && let Some(t) = n.text()
    {
        out.set(Field::Adapter, t.to_ascii_lowercase(), n.line);
    }
    let restored = doc.first(&["model.restore_from_path", "model.pretrained_checkpoint.restore_from_path"]);
    if let Some(n) = restored {
        super::model(out, n);
    }
    if let Some(n) = doc.at("run.name").filter(|_| restored.is_none())
        && let Some(t) = n.text()
        && let Some(m) = run_model(&t)
    {
        out.fields.set_implied(Field::Model, m, n.line);
    }
}

fn keys(path: &str, map: &Node, out: &mut ReadFields) {
    for (k, v) in map.map() {
        if v.is_map() {
            continue;
        }
        // For an empty value the tool selects one. Exception: no granularity means no recomputation.
        if v.value == Value::Null && k != "activations_checkpoint_granularity" {
            continue;
        }
        if !super::megatron::flag(&names::snake(k), v, out) && path == "model" && relevant(k) {
            out.unrecognized.push((format!("{path}.{k}"), v.line));
        }
    }
}

/// Whether a key of the model section may affect speed or memory.
fn relevant(key: &str) -> bool {
    ["parallel", "batch", "fp8", "recompute", "checkpoint_num", "offload", "overlap"].iter().any(|w| key.contains(w))
}

/// The model in the name of a run, without a precision at its end.
fn run_model(name: &str) -> Option<String> {
    let mut t = name.trim();
    for tail in ["_fp8", "_bf16", "_fp16", "-fp8", "-bf16", "-fp16"] {
        t = t.strip_suffix(tail).unwrap_or(t);
    }
    let low = t.to_ascii_lowercase();
    let sized = low.split(['_', '-']).any(names::is_size);
    (sized && names::model_in(&t.replace('.', "_")).is_some()).then(|| t.to_owned())
}

/// Reads the arguments of the launcher: `training=llama/…`, `training.model.x=y`.
pub(crate) fn command(args: &Args, out: &mut ReadFields) {
    let mut tree = Node::new(Value::Map(Vec::new()), args.overrides.first().map_or(Place::NONE, |o| o.1.line));
    let mut groups: Vec<String> = Vec::new();
    for (path, node) in &args.overrides {
        let key = path.trim_start_matches('+');
        // Hydra parses the word `null` as an empty value.
        let none = node.raw().is_some_and(|text| text.trim() == "null");
        let node = if none { Node::new(Value::Null, node.line) } else { node.clone() };
        if key.starts_with('~') || key.contains('@') {
            continue;
        }
        if !key.contains('.') {
            let group = matches!(
                key,
                "training" | "peft" | "fine_tuning" | "prompt_learning" | "conversion" | "evaluation" | "ptq" | "rlhf"
            );
            if let Some(t) = node.text().filter(|_| group) {
                groups.push(key.to_owned());
                let shown = if key == "training" { t } else { format!("{key}={t}") };
                out.fields.set(Field::BaseConfig, shown, node.line);
            }
            continue;
        }
        tree.put(key, node);
    }
    let section = groups.iter().find_map(|g| tree.get(g)).or(tree.get("training")).cloned().unwrap_or(tree);
    document(&section, out);
    if !groups.is_empty() {
        out.fields.set(Field::Launcher, "nemo-launcher", Place::NONE);
    }
}
