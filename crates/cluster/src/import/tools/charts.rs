//! Values of Helm charts that serve models: vLLM production stack, llm-d, Google's recipes.

use std::collections::BTreeMap;

use crate::import::collect::Lookup;
use crate::import::fields::{Fields, ReadFields};
use crate::import::place::Place;
use crate::import::value::{Node, Value};
use crate::import::{Field, Kind};

use super::pod;
use super::roles::{role, settle_roles};
use super::serving::Engine;

/// Reads the values of a chart: vLLM production stack, llm-d, Google's recipes.
pub(crate) fn chart(d: &Node, env: &BTreeMap<String, String>, files: Lookup<'_>) -> Option<ReadFields> {
    let mut out = ReadFields::default();
    if let Some(list) = d.at("servingEngineSpec.modelSpec") {
        production_stack(list, &mut out);
    } else if d.has("vllm") && d.at("vllm.serverArgs").is_some() || (d.at("model.tp_size").is_some() && d.has("job")) {
        recipe_values(d, &mut out);
    } else if d.has("modelArtifacts")
        || (d.has("decode")
            && d.has("prefill")
            && d.get("decode").is_some_and(|n| n.has("containers") || n.has("replicas")))
    {
        model_service(d, env, files, &mut out);
    } else if d.at("image.repository").and_then(Node::text).is_some_and(|t| t.contains("nvcr.io/nim/")) {
        nim_values(d, &mut out);
    } else if !container_values(d, env, files, &mut out) {
        return None;
    }
    (!out.fields.is_empty()).then(|| {
        out.fields.set_implied(Field::Manifest, "helm values", Place::NONE);
        if let Some((a, at)) = pod::requested_accelerator(d) {
            out.fields.set_implied(Field::Accelerator, a, at);
        }
        out
    })
}

/// Reads the values of a chart with a single container. Image, arguments, devices and replicas are at the top level.
fn container_values(d: &Node, env: &BTreeMap<String, String>, files: Lookup<'_>, out: &mut ReadFields) -> bool {
    let copies = d.first(&["replicaCount", "replicas"]);
    if copies.is_none() && d.at("resources.limits").is_none() {
        return false;
    }
    let Some(image) = d.first(&["image.repository", "image"]).filter(|n| n.raw().is_some()) else { return false };
    let mut container = Node::new(Value::Map(Vec::new()), d.line);
    container.put("image", image.clone());
    for (key, places) in [
        ("command", &["command", "image.command"][..]),
        (
            "args",
            &["args", "extraArgs", "image.args", "server.args", "server.extraArgs", "vllm.args", "vllm.extraArgs"],
        ),
        ("env", &["env", "extraEnv", "extraEnvVars"]),
        ("resources", &["resources"]),
    ] {
        if let Some(n) = d.first(places) {
            container.put(key, n.clone());
        }
    }
    let Some(pod) = pod::read(&container, None, env, files).filter(|pod| pod.engine.is_some()) else { return false };
    *out = pod.out;
    if let Some(n) = d.first(&["model.name", "model.id", "model", "modelName", "modelId"])
        && !out.fields.has(Field::Model)
        && n.raw().is_some()
    {
        super::model(out, n);
    }
    if let Some(n) = copies {
        out.int(Field::Replicas, n);
    }
    if let Some((n, at)) = pod.gpus {
        out.fields.remove(Field::NumAccelerators);
        out.fields.set(Field::AcceleratorsPerReplica, n, at);
    }
    true
}

/// Reads the values of NVIDIA's chart with a single container.
fn nim_values(d: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Serving, d.line);
    out.fields.set(Field::Framework, Engine::Nim.framework(), d.line);
    if let Some(n) = d.at("model.name") {
        super::model(out, n);
    }
    if let Some(n) = d.at("image.repository") {
        super::nim::model(&n.text().unwrap_or_default(), n.line, out);
    }
    for e in d.get("env").map(Node::list).unwrap_or(&[]) {
        if let (Some(k), Some(v)) = (e.get("name").and_then(Node::text), e.get("value")) {
            Engine::Nim.flag(&k, v, out);
        }
    }
    out.int_at(Field::Replicas, d, &["replicaCount"]);
    if let Some((n, at)) = pod::gpus(d) {
        out.fields.set(Field::AcceleratorsPerReplica, n, at);
    }
    Engine::Nim.finish(out);
}

pub(crate) fn recipe_values(d: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Serving, d.line);
    out.fields.set(Field::Framework, "vllm", d.line);
    out.fields.set(Field::Manifest, "helm values", d.line);
    for (path, key) in [
        ("model.tp_size", Field::Tp),
        ("model.pp_size", Field::Pp),
        ("vllm.replicaCount", Field::Replicas),
        ("job.gpus", Field::NumAccelerators),
    ] {
        out.int_at(key, d, &[path]);
    }
    if let Some(n) = d.at("model.name") {
        super::model(out, n);
    }
    if let Some(n) = d.at("vllm.serverArgs") {
        Engine::Vllm.keys(n, out);
    }
    Engine::Vllm.finish(out);
}

pub(crate) fn production_stack(list: &Node, out: &mut ReadFields) {
    let mut entries: Vec<(String, Option<&'static str>, ReadFields)> = Vec::new();
    for m in list.list() {
        let name = m.get("name").and_then(Node::text).unwrap_or_default();
        let mut o = ReadFields::default();
        if let Some(n) = m.get("modelURL") {
            super::model(&mut o, n);
        }
        o.int_at(Field::Replicas, m, &["replicaCount"]);
        for (k, v) in m.get("vllmConfig").map(Node::map).unwrap_or(&[]) {
            if k == "extraArgs" {
                let words: Vec<_> = v.list().iter().map(|n| pod::lines(&n.word(), n.line)).collect();
                for f in &crate::import::argv::parse(&words).flags {
                    Engine::Vllm.flag(&f.name, &f.node, &mut o);
                }
            } else {
                Engine::Vllm.flag(k, v, &mut o);
            }
        }
        Engine::Vllm.finish(&mut o);
        if let Some(g) = m.get("requestGPU").and_then(Node::int) {
            let all = g.saturating_mul(o.fields.int(Field::Replicas).unwrap_or(1));
            o.fields.set(Field::NumAccelerators, all, m.get("requestGPU").map_or(Place::NONE, |n| n.line));
        }
        let r = m.at("lmcacheConfig.kvRole").and_then(Node::text).as_deref().and_then(role).or_else(|| role(&name));
        entries.push((name, r, o));
    }
    out.fields.set(Field::Kind, Kind::Serving, list.line);
    out.fields.set(Field::Framework, "vllm", list.line);
    out.fields.set(Field::Manifest, "helm values", list.line);
    let disaggregated = entries.iter().any(|e| e.1 == Some("prefill")) && entries.iter().any(|e| e.1 == Some("decode"));
    let total = entries.iter().try_fold(0_i64, |acc, e| acc.checked_add(e.2.fields.int(Field::NumAccelerators)?));
    if disaggregated {
        for (_, r, o) in &entries {
            if let Some(r) = r {
                out.roles.push(((*r).to_owned(), o.fields.clone()));
            }
        }
        let same = |k: Field| {
            let v: Vec<_> = out.roles.iter().map(|(_, f)| f.entry(k).map(|e| e.value.clone())).collect();
            v.first().cloned().flatten().filter(|x| v.iter().all(|y| y.as_ref() == Some(x)))
        };
        if let Some(v) = same(Field::PrefixCaching) {
            let at = out.roles.first().map_or(Place::NONE, |(_, f)| f.at(Field::PrefixCaching));
            out.fields.set(Field::PrefixCaching, v, at);
            for (_, f) in &mut out.roles {
                f.remove(Field::PrefixCaching);
            }
        }
        settle_roles(out);
    } else if let ([(_, _, o)], 1) = (entries.as_slice(), entries.len()) {
        out.fields.copy_missing(&o.fields);
    } else {
        for (name, _, o) in &entries {
            let mut v = Fields::default();
            v.set(Field::Name, name.as_str(), Place::NONE);
            v.copy_missing(&o.fields);
            out.variants.push(v);
        }
    }
    for (.., mut o) in entries {
        out.unrecognized.append(&mut o.unrecognized);
    }
    if let Some(n) = total.filter(|n| *n > 0) {
        out.fields.set_implied(Field::NumAccelerators, n, list.line);
    }
}

/// Reads llm-d's model service: prefill and decode workers with containers and parallelism.
pub(crate) fn model_service(d: &Node, env: &BTreeMap<String, String>, files: Lookup<'_>, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Serving, d.line);
    out.fields.set(Field::Framework, "vllm", d.line);
    out.fields.set(Field::Manifest, "helm values", d.line);
    if let Some(n) = d.first(&["modelArtifacts.name", "modelArtifacts.uri"]) {
        super::model(out, n);
    }
    let mut total = Some(0_i64);
    for half in ["prefill", "decode"] {
        let Some(n) = d.get(half) else { continue };
        if n.get("create").and_then(Node::switch) == Some(false) || n.get("replicas").and_then(Node::int) == Some(0) {
            continue;
        }
        let p = pod::containers(n).into_iter().find_map(|c| pod::read(c, Some(Engine::Vllm), env, files));
        let (mut o, gpu) = p.map_or((ReadFields::default(), None), |p| (p.out, p.gpus));
        o.int_at(Field::Replicas, n, &["replicas"]);
        for (path, key) in [("parallelism.tensor", Field::Tp), ("parallelism.data", Field::Dp)] {
            o.int_at(key, n, &[path]);
        }
        Engine::Vllm.finish(&mut o);
        let per = gpu.map(|g| g.0).or(o.fields.int(Field::Tp));
        let count = per.and_then(|g| g.checked_mul(o.fields.int(Field::Replicas).unwrap_or(1)));
        total = total.zip(count).and_then(|(a, b)| a.checked_add(b));
        out.unrecognized.append(&mut o.unrecognized);
        o.fields.remove(Field::NumAccelerators);
        out.roles.push((half.to_owned(), o.fields));
    }
    if out.roles.len() == 1 {
        if let Some((_, f)) = out.roles.pop() {
            out.fields.copy_missing(&f);
        }
    } else {
        settle_roles(out);
    }
    if let Some(n) = total.filter(|n| *n > 0) {
        out.fields.set_implied(Field::NumAccelerators, n, d.line);
    }
}
