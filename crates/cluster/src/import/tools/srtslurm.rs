//! srt-slurm: InferenceX's YAML format for aggregated and disaggregated servers on Slurm.

use serde_json::json;

use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::{Node, parse_int};
use crate::import::{Field, Kind};

use super::roles::settle_roles;
use super::serving::Engine;

/// Whether the document is a configuration of srt-slurm.
pub(crate) fn looks_like(doc: &Node) -> bool {
    doc.has("backend") && doc.at("resources.gpus_per_node").is_some()
}

/// Reads the configuration.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    let kind = doc.at("backend.type").and_then(Node::text).unwrap_or_default();
    let engine = Engine::named(&kind).unwrap_or_else(|| {
        let keys = doc.get("backend").map(Node::map).unwrap_or(&[]);
        keys.iter().find_map(|(k, _)| Engine::named(k)).unwrap_or(Engine::Sglang)
    });
    out.fields.set(Field::Kind, if doc.has("benchmark") { Kind::ServingBenchmark } else { Kind::Serving }, Place::NONE);
    out.fields.set(Field::Framework, engine.framework(), doc.at("backend.type").map_or(Place::NONE, |n| n.line));
    let res = doc.get("resources").cloned().unwrap_or(Node::new(crate::import::value::Value::Null, Place::NONE));
    let int = |path: &str| res.get(path).and_then(Node::int);
    if doc.at("frontend.type").and_then(Node::text).as_deref() == Some("dynamo") || doc.has("dynamo") {
        out.fields.set(Field::Orchestrator, "dynamo", doc.at("frontend.type").map_or(Place::NONE, |n| n.line));
    }
    if let Some(n) = doc.first(&["identity.model.repo", "model.path"]) {
        super::model(out, n);
        out.fields.remove(Field::ModelPath);
    }
    if let Some(n) = doc.at("model.precision")
        && let Some(w) = n.text().as_deref().and_then(names::weights)
    {
        out.set(Field::WeightsPrecision, w, n.line);
    }
    if let Some(n) = res.get("gpu_type") {
        out.text(Field::Accelerator, n);
    }
    out.int_at(Field::AcceleratorsPerNode, &res, &["gpus_per_node"]);
    let per_node = int("gpus_per_node").filter(|n| *n > 0);
    let mut devices = 0_i64;
    let mut nodes = 0_i64;
    let configs = doc.at(&format!("backend.{kind}_config")).cloned();
    let section = |name: &str| configs.as_ref().and_then(|c| c.get(name)).or(doc.at(&format!("backend.{name}")));
    for role in ["prefill", "decode"] {
        let workers = int(&format!("{role}_workers"));
        if workers.is_none() && section(role).is_none() {
            continue;
        }
        let mut r = ReadFields::default();
        let at = res.get(&format!("{role}_workers")).map_or(res.line, |n| n.line);
        if let Some(w) = workers {
            r.fields.set(Field::Workers, w, at);
        }
        if let Some(s) = section(role) {
            engine.keys(s, &mut r);
        }
        engine.finish(&mut r);
        let own =
            [Field::Tp, Field::Pp].into_iter().try_fold(1_i64, |acc, k| acc.checked_mul(r.fields.int(k).unwrap_or(1)));
        let dp = if engine == Engine::Vllm { r.fields.int(Field::Dp).unwrap_or(1) } else { 1 };
        let gpus = int(&format!("gpus_per_{role}")).or_else(|| own?.checked_mul(dp));
        let all = workers.unwrap_or(1).saturating_mul(gpus.unwrap_or(0));
        devices = devices.saturating_add(all);
        let stated = int(&format!("{role}_nodes"));
        nodes = nodes.saturating_add(stated.or(per_node.map(|p| all.div_euclid(p))).unwrap_or(0));
        take_served(&mut r, out);
        out.unrecognized.append(&mut r.unrecognized);
        out.missing.append(&mut r.missing);
        out.roles.push((role.to_owned(), r.fields));
    }
    settle_roles(out);
    if out.roles.is_empty() {
        if let Some(s) = section("aggregated").or(configs.as_ref().and_then(|c| c.get("agg"))) {
            let model = out.fields.entry(Field::Model).cloned();
            let mut r = ReadFields::default();
            engine.keys(s, &mut r);
            engine.finish(&mut r);
            take_served(&mut r, out);
            r.fields.remove(Field::Model);
            r.fields.remove(Field::ModelPath);
            if let Some(m) = model {
                r.fields.put(m);
            }
            for e in r.fields.iter() {
                if !(e.key == Field::WeightsPrecision && out.fields.has(Field::WeightsPrecision))
                    && e.key != Field::Model
                {
                    out.fields.put(e.clone());
                }
            }
            out.unrecognized.append(&mut r.unrecognized);
        }
        let workers = int("agg_workers").unwrap_or(1);
        let gpus = int("gpus_per_agg").or_else(|| {
            let f = |k: Field| out.fields.int(k).unwrap_or(1);
            f(Field::Tp).checked_mul(f(Field::Pp))
        });
        devices = workers.saturating_mul(gpus.unwrap_or(0));
        nodes = int("agg_nodes").unwrap_or(0);
    }
    if devices > 0 {
        out.fields.set_implied(Field::NumAccelerators, devices, res.line);
    }
    if nodes > 0 {
        out.fields.set_implied(Field::Nodes, nodes, res.line);
    }
    job(doc, out);
    benchmark(doc, out);
}

/// Uses the served name as the model if it has an organization and the model is only a local directory.
fn take_served(r: &mut ReadFields, out: &mut ReadFields) {
    if let Some((s, at)) = r.served.take() {
        let local = !out.fields.str(Field::Model).is_some_and(|m| m.contains('/'));
        if s.matches('/').count() == 1 && local {
            out.fields.set(Field::Model, s, at);
        }
    }
}

fn job(doc: &Node, out: &mut ReadFields) {
    if let Some(n) = doc.at("slurm.time_limit") {
        out.text(Field::SlurmTime, n);
    }
    for (k, v) in doc.get("sbatch_directives").map(Node::map).unwrap_or(&[]) {
        let key = k.replace('-', "_");
        match key.as_str() {
            "mem" => out.text(Field::SlurmMem, v),
            "partition" => out.text(Field::SlurmPartition, v),
            "account" => out.text(Field::SlurmAccount, v),
            "constraint" => out.text(Field::SlurmConstraint, v),
            "qos" => out.text(Field::SlurmQos, v),
            "time" => out.text(Field::SlurmTime, v),
            "cpus_per_task" => out.int(Field::SlurmCpusPerTask, v),
            "ntasks_per_node" => out.int(Field::SlurmNtasksPerNode, v),
            "nodes" => out.int(Field::SlurmNodes, v),
            "exclusive" => out.set(Field::SlurmExclusive, true, v.line),
            _ => true,
        };
    }
}

fn benchmark(doc: &Node, out: &mut ReadFields) {
    let Some(b) = doc.get("benchmark") else { return };
    for (key, field) in [("isl", Field::BenchmarkIsl), ("osl", Field::BenchmarkOsl)] {
        out.int_at(field, b, &[key]);
    }
    if let Some(n) = b.first(&["concurrencies", "concurrency"]) {
        let list: Vec<i64> = match n.text() {
            Some(t) => t.split(['x', ',', ' ', '[', ']']).filter_map(parse_int).collect(),
            None => Vec::new(),
        };
        let list = if n.list().is_empty() { list } else { n.list().iter().filter_map(Node::int).collect() };
        if !list.is_empty() {
            out.set(Field::BenchmarkConcurrency, json!(list), n.line);
        }
    }
    if let Some(n) = b.get("req_rate") {
        match n.text().as_deref() {
            Some("inf") => out.set(Field::BenchmarkRequestRate, "inf", n.line),
            _ => out.float(Field::BenchmarkRequestRate, n),
        };
    }
    if let Some(n) = b.get("num_prompts_mult").and_then(Node::int) {
        out.set(
            Field::BenchmarkNumPrompts,
            format!("{n}*concurrency"),
            b.get("num_prompts_mult").map_or(Place::NONE, |n| n.line),
        );
    }
}
