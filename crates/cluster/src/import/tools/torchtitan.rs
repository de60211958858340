//! torchtitan: its TOML format in several versions, and overrides on the command line.

use crate::import::argv::Args;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::{Node, Value};
use crate::import::{Field, Kind};

/// Whether the document has sections of torchtitan.
pub(crate) fn looks_like(doc: &Node) -> bool {
    let flavor = doc.at("model.flavor").is_some() || doc.at("model.hf_assets_path").is_some();
    flavor || (doc.has("training") && (doc.has("activation_checkpoint") || doc.has("parallelism") || doc.has("job")))
}

/// Reads the configuration.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "torchtitan", Place::NONE);
    if let (Some(name), Some(flavor)) = (doc.at("model.name"), doc.at("model.flavor"))
        && let (Some(n), Some(f)) = (name.text(), flavor.text())
    {
        out.set(Field::Model, format!("{n} {f}"), flavor.line);
    }
    if let Some(n) = doc.first(&["model.hf_assets_path", "model.tokenizer_path", "model.checkpoint_path"])
        && let Some(t) = n.text()
    {
        let base = t.trim_end_matches('/').rsplit('/').next().unwrap_or(&t).to_owned();
        let file = [".model", ".json", ".bin"].iter().any(|e| base.ends_with(e));
        if !base.contains("tokenizer") && !file {
            out.set(Field::HfModel, base, n.line);
        }
    }
    sections(doc, out);
}

/// Reads the sections that Primus can also override.
pub(crate) fn sections(doc: &Node, out: &mut ReadFields) {
    out.int_at(Field::MicroBatch, doc, &["training.local_batch_size", "training.batch_size"]);
    if let Some(n) = doc.at("training.global_batch_size").filter(|n| n.int().is_some_and(|n| n > 0)) {
        out.int(Field::GlobalBatch, n);
    }
    out.int_at(Field::SeqLen, doc, &["training.seq_len"]);
    out.int_at(Field::Tp, doc, &["parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"]);
    out.int_at(
        Field::Pp,
        doc,
        &[
            "parallelism.pipeline_parallel_degree",
            "experimental.pipeline_parallel_degree",
            "training.pipeline_parallel_degree",
        ],
    );
    out.int_at(Field::Cp, doc, &["parallelism.context_parallel_degree", "experimental.context_parallel_degree"]);
    out.int_at(Field::Etp, doc, &["parallelism.expert_tensor_parallel_degree"]);
    out.int_at(Field::Ep, doc, &["parallelism.expert_parallel_degree", "experimental.expert_parallel_degree"]);
    out.int_at(
        Field::DpReplicate,
        doc,
        &["parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"],
    );
    out.int_at(Field::DpShard, doc, &["parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree"]);
    let old = doc.at("training.data_parallel_degree");
    let shard = out.fields.int(Field::DpShard);
    let at = old.map_or(out.fields.at(Field::DpShard), |n| n.line);
    if old.is_some() || shard.is_some_and(|s| s != 1) {
        let replicated = out.fields.int(Field::DpReplicate).is_some_and(|r| r > 1);
        out.set(Field::Sharding, if replicated { "hsdp" } else { "zero3" }, at);
    } else if shard == Some(1) {
        out.set(Field::Sharding, "none", at);
    }
    if let Some(n) = doc.at("activation_checkpoint.mode") {
        match n.text().as_deref() {
            Some("full") => out.set(Field::Recompute, "full", n.line),
            Some("selective") => out.set(Field::Recompute, "selective", n.line),
            Some("memory_budget") => {
                out.set(Field::RecomputeOption, "memory_budget", n.line);
                out.set(Field::Recompute, "selective", n.line)
            }
            _ if n.shown().as_deref() == Some("none") => out.set(Field::Recompute, "none", n.line),
            _ => true,
        };
    }
    if let Some(n) = doc.at("activation_checkpoint.selective_ac_option")
        && let Some(option) = n.shown()
        && !out.fields.has(Field::RecomputeOption)
    {
        out.set(Field::RecomputeOption, option, n.line);
    }
    if let Some(n) = doc.at("training.mixed_precision_param") {
        super::precision(out, n);
    }
    precision(doc, out);
    if let Some(n) = doc.at("optimizer.name")
        && let Some(t) = n.text()
    {
        out.set(Field::Optimizer, names::optimizer(&t), n.line);
    }
    if doc.at("training.enable_cpu_offload").and_then(Node::switch) == Some(true) {
        let at = doc.at("training.enable_cpu_offload").map_or(Place::NONE, |n| n.line);
        out.set(Field::OffloadParams, "cpu", at);
    }
}

/// Reads the use of Float8 from the list of converters, or from the switch of older releases.
fn precision(doc: &Node, out: &mut ReadFields) {
    if let Some(n) = doc.at("model.converters") {
        let list: Vec<String> = match &n.value {
            Value::List(l) => l.iter().filter_map(Node::text).collect(),
            _ => n.text().map(|t| t.split(',').map(str::to_owned).collect()).unwrap_or_default(),
        };
        if list.iter().any(|c| c.contains("float8")) {
            out.set(Field::Precision, "fp8", n.line);
        } else if list.iter().any(|c| c.contains("mx")) {
            out.set(Field::Precision, "mxfp8", n.line);
        }
    }
    for path in
        ["float8.enable_float8_linear", "float8.enable_fp8_linear", "training.enable_fp8_linear", "training.fp8_linear"]
    {
        if let Some(n) = doc.at(path).filter(|n| {
            n.switch() == Some(true) || n.text().is_some_and(|t| !t.is_empty() && n.switch() != Some(false))
        }) {
            out.set(Field::Precision, "fp8", n.line);
        }
    }
}

/// Reads arguments such as `--training.local_batch_size 2`, and the path in `--job.config_file`.
pub(crate) fn command(args: &Args, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "torchtitan", Place::NONE);
    let mut tree = Node::new(Value::Map(Vec::new()), Place::NONE);
    for f in &args.flags {
        let path = f.name.trim_start_matches('-').replace('-', "_");
        match path.as_str() {
            "job.config_file" | "config_file" => {
                if let Some(t) = f.node.shown() {
                    out.fields.set(Field::ConfigFile, t.clone(), f.node.line);
                    out.references.push((t, f.node.line));
                }
            }
            p if p.contains('.') => tree.put(p, f.node.clone()),
            _ => {}
        }
    }
    if !tree.map().is_empty() {
        document(&tree, out);
    }
}
