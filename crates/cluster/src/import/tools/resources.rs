//! Custom resources that serve models: Dynamo, KServe, KubeAI, KAITO.

use std::collections::BTreeMap;

use crate::import::collect::Lookup;
use crate::import::fields::{Fields, ReadFields};
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::Node;
use crate::import::{Field, Kind};

use super::pod;
use super::roles::{role, settle_roles};
use super::serving::Engine;

/// Reads Dynamo's graph of frontends, workers and planners.
pub(crate) fn dynamo(d: &Node, env: &BTreeMap<String, String>, files: Lookup<'_>, out: &mut ReadFields) -> bool {
    let backend = d.at("spec.backendFramework").and_then(Node::text);
    let hint = backend.as_deref().and_then(Engine::named);
    out.fields.set(Field::Kind, Kind::Serving, d.line);
    out.fields.set(Field::Orchestrator, "dynamo", d.line);
    out.fields.set(Field::Manifest, "DynamoGraphDeployment", d.line);
    if let Some(e) = hint {
        out.fields.set(Field::Framework, e.framework(), d.at("spec.backendFramework").map_or(Place::NONE, |n| n.line));
    }
    if let Some((a, at)) = pod::requested_accelerator(d) {
        out.fields.set_implied(Field::Accelerator, a, at);
    }
    let mut devices = Some(0_i64);
    let mut nodes = Some(0_i64);
    let mut per_node: Option<i64> = None;
    let mut workers: Vec<(Option<&'static str>, ReadFields, i64, Place)> = Vec::new();
    for (name, s) in d.at("spec.services").map(Node::map).unwrap_or(&[]) {
        let component = s.get("componentType").and_then(Node::text).unwrap_or_default();
        if matches!(component.as_str(), "frontend" | "planner" | "router" | "epp") {
            continue;
        }
        let gpu = pod::gpus(s).or_else(|| pod::containers(s).into_iter().find_map(pod::gpus));
        let Some(p) = pod::containers(s).into_iter().find_map(|c| pod::read(c, hint, env, files)) else { continue };
        let sub = s.get("subComponentType").and_then(Node::text);
        let own = p.out.fields.str(Field::Role).and_then(role);
        let r = sub.as_deref().and_then(role).or(own).or_else(|| role(name));
        let replicas = s.get("replicas").and_then(Node::int).unwrap_or(1);
        let count = s.at("multinode.nodeCount").and_then(Node::int);
        let mut o = p.out;
        if let Some(n) = s.get("replicas").filter(|n| n.int().is_some()) {
            o.int(Field::Replicas, n);
        }
        if let Some(c) = count {
            o.fields.set(Field::Nodes, c, s.at("multinode.nodeCount").map_or(s.line, |n| n.line));
        }
        let (g, at) = match gpu {
            Some((g, at)) => (Some(g), at),
            None => (None, s.line),
        };
        let all = g.and_then(|g| g.checked_mul(count.unwrap_or(1))?.checked_mul(replicas));
        devices = devices.zip(all).and_then(|(a, b)| a.checked_add(b));
        nodes = nodes.and_then(|n| n.checked_add(replicas.checked_mul(count.unwrap_or(1))?));
        per_node = per_node.max(g);
        workers.push((r, o, g.unwrap_or(0), at));
    }
    if workers.is_empty() {
        return false;
    }
    let disaggregated = ["prefill", "decode"].iter().all(|r| workers.iter().any(|(w, ..)| *w == Some(*r)));
    let whole_nodes = workers.iter().all(|(_, _, g, _)| Some(*g) == per_node);
    for (_, o, ..) in &mut workers {
        out.unrecognized.append(&mut o.unrecognized);
        out.missing.append(&mut o.missing);
        o.fields.remove(Field::NumAccelerators);
    }
    if disaggregated {
        for (r, mut o, ..) in workers {
            if let Some(r) = r {
                o.fields.remove(Field::ModelPath);
                out.roles.push((r.to_owned(), o.fields));
            }
        }
        settle_roles(out);
        if let (Some(g), true) = (per_node, whole_nodes) {
            out.fields.set_implied(Field::AcceleratorsPerNode, g, d.line);
            if let Some(n) = nodes.filter(|_| g >= 4) {
                out.fields.set_implied(Field::Nodes, n, d.line);
            }
        }
    } else if let Some((_, mut o, g, at)) = workers.into_iter().next() {
        let count = o.fields.remove(Field::Nodes);
        if let Some(c) = &count {
            out.fields.set(Field::NodesPerReplica, c.value.clone(), c.at);
            out.fields.set(Field::AcceleratorsPerNode, g, at);
        }
        if g > 0 {
            let n = count.and_then(|c| c.value.as_i64()).unwrap_or(1);
            out.fields.set(Field::AcceleratorsPerReplica, g.saturating_mul(n), at);
        }
        o.fields.remove(Field::Role);
        out.fields.copy_missing(&o.fields);
    }
    out.fields.remove(Field::ModelPath);
    if let Some(n) = devices.filter(|n| *n > 0) {
        out.fields.set_implied(Field::NumAccelerators, n, d.line);
    }
    true
}

/// Reads KServe's service for language models, with optional prefill workers.
pub(crate) fn llm_service(d: &Node, env: &BTreeMap<String, String>, files: Lookup<'_>, out: &mut ReadFields) -> bool {
    let Some(spec) = d.get("spec") else { return false };
    out.fields.set(Field::Kind, Kind::Serving, d.line);
    out.fields.set(Field::Framework, "vllm", d.line);
    out.fields.set(Field::Manifest, "LLMInferenceService", d.line);
    if let Some(n) = spec.first(&["model.name", "model.uri"]) {
        super::model(out, n);
        out.fields.remove(Field::ModelPath);
    }
    if let Some((a, at)) = pod::requested_accelerator(d) {
        out.fields.set_implied(Field::Accelerator, a, at);
    }
    let half = |n: &Node| {
        let mut o = ReadFields::default();
        let template = n.get("template").or(n.get("worker"));
        let mut gpu = None;
        if let Some(p) = template
            .and_then(|t| pod::containers(t).into_iter().find_map(|c| pod::read(c, Some(Engine::Vllm), env, files)))
        {
            gpu = p.gpus;
            o = p.out;
        }
        for (path, key) in [("tensor", Field::Tp), ("data", Field::Dp), ("pipeline", Field::Pp)] {
            if let Some(v) = n.at(&format!("parallelism.{path}")) {
                o.int(key, v);
            }
        }
        if let Some(v) = n.at("parallelism.expert") {
            o.flag(Field::ExpertParallel, v);
        }
        // With a worker template, a replica consists of several pods: data-parallel ranks divided by the ranks per pod,
        // or the pipeline stages.
        let count = |path: &str| n.at(&format!("parallelism.{path}")).and_then(Node::int).filter(|n| *n > 0);
        let pods = match (count("data"), count("dataLocal")) {
            (Some(ranks), Some(local)) => ranks / local,
            _ => count("pipeline").unwrap_or(1),
        };
        if let (Some((g, at)), true) = (gpu, n.has("worker") && pods > 1) {
            o.fields.set(Field::AcceleratorsPerNode, g, at);
            o.fields.set(Field::NodesPerReplica, pods, n.get("parallelism").map_or(at, |p| p.line));
            gpu = Some((g.saturating_mul(pods), at));
        }
        o.int_at(Field::Replicas, n, &["replicas"]);
        Engine::Vllm.finish(&mut o);
        o.fields.remove(Field::NumAccelerators);
        (o, gpu)
    };
    let (mut main, gpu) = half(spec);
    if let Some(p) = spec.get("prefill") {
        let (mut pre, pre_gpu) = half(p);
        let mut all = Some(0_i64);
        for (o, g) in [(&mut pre, pre_gpu), (&mut main, gpu)] {
            if let Some((g, at)) = g {
                o.fields.set(Field::Accelerators, g, at);
            }
            let n = g.and_then(|(g, _)| g.checked_mul(o.fields.int(Field::Replicas).unwrap_or(1)));
            all = all.zip(n).and_then(|(a, b)| a.checked_add(b));
            out.unrecognized.append(&mut o.unrecognized);
        }
        out.roles.push(("prefill".to_owned(), pre.fields));
        out.roles.push(("decode".to_owned(), main.fields));
        let both: Vec<&Fields> = out.roles.iter().map(|(_, f)| f).collect();
        let shared = both.first().and_then(|f| f.entry(Field::PrefixCaching)).cloned();
        let same_everywhere = shared
            .as_ref()
            .is_some_and(|e| both.iter().all(|f| f.entry(Field::PrefixCaching).is_some_and(|x| x.value == e.value)));
        if let (Some(e), true) = (shared, same_everywhere) {
            for (_, f) in &mut out.roles {
                f.remove(Field::PrefixCaching);
            }
            out.fields.put(e);
        }
        settle_roles(out);
        if let Some(n) = all.filter(|n| *n > 0) {
            out.fields.set_implied(Field::NumAccelerators, n, d.line);
        }
    } else {
        out.unrecognized.append(&mut main.unrecognized);
        out.fields.copy_missing(&main.fields);
        if let Some((g, at)) = gpu {
            out.fields.set(Field::AcceleratorsPerReplica, g, at);
            let all = g.saturating_mul(out.fields.int(Field::Replicas).unwrap_or(1));
            out.fields.set_implied(Field::NumAccelerators, all, at);
        }
    }
    if let Some(m) = out.fields.str(Field::Model).map(str::to_owned)
        && let Some(w) = names::weights(&m)
    {
        let at = out.fields.at(Field::Model);
        out.fields.set_implied(Field::WeightsPrecision, w, at);
    }
    true
}

/// Reads KServe's general inference service and its runtimes.
pub(crate) fn inference_service(
    d: &Node,
    env: &BTreeMap<String, String>,
    files: Lookup<'_>,
    out: &mut ReadFields,
) -> bool {
    let kind = d.get("kind").and_then(Node::text).unwrap_or_default();
    let Some(spec) = d.at("spec.predictor").or(d.get("spec")) else { return false };
    let hint = spec
        .first(&["model.runtime", "model.modelFormat.name"])
        .and_then(Node::text)
        .and_then(|t| Engine::named(&t).or((t == "huggingface").then_some(Engine::Vllm)));
    let p = match spec.get("model") {
        Some(m) => pod::read(m, hint, env, files),
        None => pod::main_container(spec, hint, env, files),
    };
    let Some(p) = p else { return false };
    *out = p.out;
    out.fields.set(Field::Manifest, kind, d.line);
    if let Some(n) = spec.at("model.storageUri").filter(|_| !out.fields.has(Field::Model)) {
        super::model(out, n);
    }
    if let Some((a, at)) = pod::requested_accelerator(d) {
        out.fields.set_implied(Field::Accelerator, a, at);
    }
    out.int_at(Field::Replicas, spec, &["minReplicas"]);
    let workers = spec.at("workerSpec.pipelineParallelSize").and_then(Node::int);
    if let Some(n) = workers {
        out.fields.set(Field::Pp, n, spec.line);
    }
    if let Some((g, at)) = p.gpus {
        out.fields.remove(Field::NumAccelerators);
        let all = g.saturating_mul(workers.unwrap_or(1));
        out.fields.set(Field::AcceleratorsPerReplica, all, at);
        let r = out.fields.int(Field::Replicas).unwrap_or(1).max(1);
        out.fields.set_implied(Field::NumAccelerators, all.saturating_mul(r), at);
    }
    true
}

/// Reads KubeAI's model.
pub(crate) fn kubeai(d: &Node, out: &mut ReadFields) -> bool {
    let Some(spec) = d.get("spec") else { return false };
    let word = spec.get("engine").and_then(Node::text).unwrap_or_default();
    out.fields.set(Field::Kind, Kind::Serving, d.line);
    let engine = Engine::named(&word);
    let framework = engine.map_or_else(
        || if word == "OLlama" { "ollama".to_owned() } else { word.to_ascii_lowercase() },
        |e| e.framework().to_owned(),
    );
    out.fields.set(Field::Framework, framework, spec.get("engine").map_or(spec.line, |n| n.line));
    out.fields.set(Field::Manifest, "kubeai Model", d.line);
    if let Some(n) = spec.get("url") {
        let t = n.text().unwrap_or_default();
        let bare = t.split_once("://").map_or(t.as_str(), |p| p.1).split('?').next().unwrap_or("");
        out.fields.set(Field::Model, bare, n.line);
        if let Some(w) = names::weights(bare) {
            out.fields.set_implied(Field::WeightsPrecision, w, n.line);
        }
    }
    if let Some(e) = engine {
        let words: Vec<_> =
            spec.get("args").map(Node::list).unwrap_or(&[]).iter().map(|n| pod::lines(&n.word(), n.line)).collect();
        for f in &crate::import::argv::parse(&words).flags {
            e.flag(&f.name, &f.node, out);
        }
        e.finish(out);
    }
    if let Some(n) = spec.get("resourceProfile") {
        let (name, count) = pod::profile(&n.text().unwrap_or_default());
        if let Some(a) = name {
            out.fields.set_implied(Field::Accelerator, a, n.line);
        }
        let cpu = n.text().is_some_and(|t| t.starts_with("cpu"));
        if let Some(c) = count.filter(|_| !cpu) {
            // At least one server; the autoscaler determines the actual number.
            let r = spec.get("minReplicas").and_then(Node::int).unwrap_or(1).max(1);
            out.fields.set_implied(Field::NumAccelerators, c.saturating_mul(r), n.line);
        }
    }
    true
}

/// Azure instance types by a part of their name, with accelerator and number.
const INSTANCES: &[(&str, &str, i64)] = &[
    ("NC24ads_A100_v4", "A100 80GB", 1),
    ("NC48ads_A100_v4", "A100 80GB", 2),
    ("NC96ads_A100_v4", "A100 80GB", 4),
    ("ND96asr_v4", "A100 40GB", 8),
    ("ND96amsr_A100_v4", "A100 80GB", 8),
    ("ND96isr_H100_v5", "H100", 8),
    ("ND96isr_H200_v5", "H200", 8),
    ("NC40ads_H100_v5", "H100", 1),
    ("NC80adis_H100_v5", "H100", 2),
    ("NC6s_v3", "V100", 1),
    ("NC12s_v3", "V100", 2),
    ("NC24s_v3", "V100", 4),
    ("NC4as_T4_v3", "T4", 1),
    ("NC64as_T4_v3", "T4", 4),
    ("NV36ads_A10_v5", "A10", 1),
    ("NV72ads_A10_v5", "A10", 2),
];

/// Reads KAITO's workspace.
pub(crate) fn kaito(d: &Node, configs: &[(String, Node)], out: &mut ReadFields) -> bool {
    let Some(inference) = d.get("inference") else { return false };
    out.fields.set(Field::Kind, Kind::Serving, d.line);
    out.fields.set(Field::Framework, "vllm", d.line);
    out.fields.set(Field::Manifest, "kaito Workspace", d.line);
    if let Some(n) = inference.at("preset.name") {
        out.text(Field::Model, n);
    }
    if let Some(name) = inference.get("config").and_then(Node::text)
        && let Some((_, c)) = configs.iter().find(|(k, _)| *k == name)
        && let Some(v) = c.get("vllm")
    {
        Engine::Vllm.keys(v, out);
    }
    Engine::Vllm.finish(out);
    let count = d.at("resource.count").and_then(Node::int);
    if let Some(n) = d.at("resource.instanceType") {
        let t = n.text().unwrap_or_default();
        out.fields.set(Field::InstanceType, t.as_str(), n.line);
        let known = INSTANCES.iter().find(|(k, ..)| t.eq_ignore_ascii_case(&format!("Standard_{k}")));
        if let Some((_, a, per)) = known {
            out.fields.set_implied(Field::Accelerator, *a, n.line);
            let all = per.saturating_mul(count.unwrap_or(1));
            let tp = out.fields.int(Field::Tp).unwrap_or(1);
            let need = tp.saturating_mul(out.fields.int(Field::Pp).unwrap_or(1));
            if need > all {
                let at = out.fields.at(Field::Tp);
                out.conflict(format!("tensor parallel size {tp} needs {need} accelerators, but {t} gives {all}"), at);
            } else {
                out.fields.set_implied(Field::NumAccelerators, all, n.line);
                if let Some(count) = count {
                    out.fields.set_implied(Field::Nodes, count, n.line);
                    out.fields.set_implied(Field::AcceleratorsPerNode, *per, n.line);
                }
            }
        } else if let Some(a) = names::accelerator_in(&t) {
            out.fields.set_implied(Field::Accelerator, a, n.line);
        }
    }
    true
}
