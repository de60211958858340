//! Kubernetes: workloads of all kinds, custom resources of serving stacks, and the values of their Helm charts.

use std::collections::BTreeMap;

use crate::import::collect::Lookup;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::{Node, Value};
use crate::import::{Field, Kind};
use crate::import::{json, yaml};

use super::charts::chart;
use super::kuberay;
use super::pod;
use super::resources::{dynamo, inference_service, kaito, kubeai, llm_service};
use super::roles::{role, settle_roles};

/// Reads the documents of a file, if they are manifests or values of a chart.
pub(crate) fn documents(docs: &[Node], env: &BTreeMap<String, String>) -> Option<ReadFields> {
    let mut flat: Vec<Node> = Vec::new();
    for d in docs {
        if d.get("kind").and_then(Node::text).as_deref() == Some("List") {
            flat.extend(d.get("items").map(Node::list).unwrap_or(&[]).iter().cloned());
        } else {
            flat.push(d.clone());
        }
    }
    let values = config_values(&flat);
    flat.iter_mut().for_each(|d| with_values(d, &values, 0));
    let docs = flat.as_slice();
    let configs = config_maps(docs);
    let files = |path: &str| {
        let base = path.rsplit('/').next().unwrap_or(path);
        configs.iter().find(|(k, _)| k.as_str() == base || k == path).map(|(_, n)| n.clone())
    };
    let mut workloads: Vec<ReadFields> = Vec::new();
    for d in docs {
        let Some(kind) = d.get("kind").and_then(Node::text).filter(|_| d.has("apiVersion")) else {
            if let Some(o) = chart(d, env, &files) {
                workloads.push(o);
            }
            continue;
        };
        let mut out = ReadFields::default();
        let read = match kind.as_str() {
            "ConfigMap"
            | "Service"
            | "Secret"
            | "PersistentVolumeClaim"
            | "Ingress"
            | "ServiceAccount"
            | "Namespace"
            | "HorizontalPodAutoscaler"
            | "PodMonitor"
            | "ServiceMonitor"
            | "Kustomization"
            | "HTTPRoute"
            | "Gateway" => false,
            "DynamoGraphDeployment" => dynamo(d, env, &files, &mut out),
            "LLMInferenceService" => llm_service(d, env, &files, &mut out),
            "InferenceService" | "ServingRuntime" | "ClusterServingRuntime" => {
                inference_service(d, env, &files, &mut out)
            }
            "Model" if d.at("spec.engine").is_some() || d.at("spec.resourceProfile").is_some() => kubeai(d, &mut out),
            "Workspace" => kaito(d, &configs, &mut out),
            "RayService" => kuberay::service(d, &mut out),
            "RayJob" => kuberay::job(d, env, &files, &mut out),
            _ => workload(&kind, d, env, &files, &mut out),
        };
        if read {
            workloads.push(out);
        }
    }
    combine(workloads)
}

/// Single-line values in ConfigMaps: name of the map, key, value.
fn config_values(docs: &[Node]) -> Vec<(String, String, Node)> {
    let maps = docs.iter().filter(|d| d.get("kind").and_then(Node::text).as_deref() == Some("ConfigMap"));
    let named = maps.filter_map(|d| Some((d.at("metadata.name").and_then(Node::text)?, d.get("data")?)));
    named
        .flat_map(|(name, data)| data.map().iter().map(move |(k, v)| (name.clone(), k.clone(), v.clone())))
        .filter(|(_, _, v)| v.text().is_some_and(|t| !t.contains('\n')))
        .collect()
}

/// Replaces references of containers to values in ConfigMaps with plain variables.
fn with_values(n: &mut Node, values: &[(String, String, Node)], depth: u32) {
    if values.is_empty() || depth > 64 {
        return;
    }
    let reference = |n: &Node, path: &str| n.at(path).and_then(Node::text);
    let whole: Vec<String> = n
        .get("envFrom")
        .map(Node::list)
        .unwrap_or(&[])
        .iter()
        .filter_map(|e| reference(e, "configMapRef.name"))
        .collect();
    let added: Vec<Node> = values
        .iter()
        .filter(|(map, ..)| whole.contains(map))
        .map(|(_, key, value)| {
            let mut variable = Node::new(Value::Map(Vec::new()), value.line);
            variable.put("name", Node::str(key.as_str(), value.line));
            variable.put("value", value.clone());
            variable
        })
        .collect();
    if !added.is_empty() {
        let own = n.get("env").map(Node::list).unwrap_or(&[]).to_vec();
        let line = n.line;
        n.put("env", Node::new(Value::List(added.into_iter().chain(own).collect()), line));
    }
    if let (Some(map), Some(key)) =
        (reference(n, "valueFrom.configMapKeyRef.name"), reference(n, "valueFrom.configMapKeyRef.key"))
        && let Some((.., value)) = values.iter().find(|(m, k, _)| *m == map && *k == key)
    {
        n.put("value", value.clone());
    }
    match &mut n.value {
        Value::List(l) => l.iter_mut().for_each(|v| with_values(v, values, depth + 1)),
        Value::Map(m) => m.iter_mut().for_each(|(_, v)| with_values(v, values, depth + 1)),
        _ => {}
    }
}

/// Files in ConfigMaps: mappings are parsed and also found under the name of their ConfigMap; scripts are kept as text.
fn config_maps(docs: &[Node]) -> Vec<(String, Node)> {
    let mut out = Vec::new();
    for d in docs.iter().filter(|d| d.get("kind").and_then(Node::text).as_deref() == Some("ConfigMap")) {
        let name = d.at("metadata.name").and_then(Node::text).unwrap_or_default();
        for (k, v) in d.get("data").map(Node::map).unwrap_or(&[]) {
            let Some(raw) = v.raw() else { continue };
            let parsed = json::parse(raw).or_else(|| yaml::parse(raw).docs.into_iter().next()).filter(Node::is_map);
            if let Some(mut n) = parsed {
                shift(&mut n, v.line.above());
                out.push((k.clone(), n.clone()));
                out.push((name.clone(), n));
            } else if raw.starts_with("#!") || k.ends_with(".sh") {
                out.push((k.clone(), v.clone()));
            }
        }
    }
    out
}

/// Adds `by` to the line numbers of a text that is embedded in another file.
fn shift(n: &mut Node, by: Place) {
    n.line = n.line.below(by);
    match &mut n.value {
        Value::List(l) => l.iter_mut().for_each(|v| shift(v, by)),
        Value::Map(m) => m.iter_mut().for_each(|(_, v)| shift(v, by)),
        _ => {}
    }
}

/// Combines the servers in a file.
fn combine(mut all: Vec<ReadFields>) -> Option<ReadFields> {
    if all.len() <= 1 {
        return all.pop();
    }
    let mut out = ReadFields::default();
    let roles: Vec<Option<&'static str>> = all.iter().map(|o| o.fields.str(Field::Role).and_then(role)).collect();
    if roles.contains(&Some("prefill")) && roles.contains(&Some("decode")) {
        let mut devices = Some(0_i64);
        for (mut o, r) in all.into_iter().zip(roles) {
            let Some(r) = r else { continue };
            devices = devices.and_then(|d| d.checked_add(o.fields.int(Field::NumAccelerators)?));
            out.unrecognized.append(&mut o.unrecognized);
            out.missing.append(&mut o.missing);
            let mut f = o.fields.clone();
            if let Some(n) = f.remove(Field::AcceleratorsPerReplica) {
                f.set(Field::Accelerators, n.value, n.at);
            }
            out.roles.push((r.to_owned(), f));
        }
        settle_roles(&mut out);
        if let Some(n) = devices.filter(|n| *n > 0) {
            out.fields.set_implied(Field::NumAccelerators, n, Place::NONE);
        }
        return Some(out);
    }
    // Independent servers become variants, and their devices are summed.
    let key = |o: &ReadFields| o.fields.iter().map(|e| (e.key, e.value.clone())).collect::<Vec<_>>();
    let same = all.iter().all(|o| all.first().is_some_and(|f| key(f) == key(o)));
    if same || all.iter().filter(|o| o.fields.has(Field::Model)).count() < 2 {
        let best = all.iter().position(|o| o.fields.has(Field::Model)).unwrap_or(0);
        return Some(all.swap_remove(best));
    }
    let total = all.iter().try_fold(0_i64, |acc, o| acc.checked_add(o.fields.int(Field::NumAccelerators)?));
    for mut o in all {
        for k in [Field::Kind, Field::Framework, Field::Manifest, Field::Orchestrator, Field::Accelerator] {
            if let Some(e) = o.fields.remove(k) {
                out.fields.set_implied(k, e.value, e.at);
            }
        }
        out.variants.push(o.fields);
        out.unrecognized.append(&mut o.unrecognized);
        out.missing.append(&mut o.missing);
    }
    if let Some(n) = total.filter(|n| *n > 0) {
        out.fields.set_implied(Field::NumAccelerators, n, Place::NONE);
    }
    Some(out)
}

/// Reads Deployments, sets, jobs, and leader-worker groups.
fn workload(kind: &str, d: &Node, env: &BTreeMap<String, String>, files: Lookup<'_>, out: &mut ReadFields) -> bool {
    let group = d.at("spec.leaderWorkerTemplate");
    let size = group.and_then(|g| g.get("size")).and_then(Node::int);
    let mut env = env.clone();
    if let Some(s) = size {
        env.insert("LWS_GROUP_SIZE".to_owned(), s.to_string());
    }
    let leader = group.and_then(|g| g.get("leaderTemplate"));
    let worker = group.and_then(|g| g.get("workerTemplate"));
    let name = d.at("metadata.name").and_then(Node::text).unwrap_or_default();
    let hint = None;
    let pod = leader
        .and_then(|l| pod::main_container(l, hint, &env, files))
        .or_else(|| worker.and_then(|w| pod::main_container(w, hint, &env, files)))
        .or_else(|| pod::main_container(d, hint, &env, files));
    let Some(pod) = pod else { return false };
    let patch =
        d.at("spec.selector").is_none() && kind == "Deployment" && pod::containers(d).iter().all(|c| !c.has("image"));
    let manifest = if patch { "Deployment (kustomize patch)".to_owned() } else { kind.to_owned() };
    *out = pod.out;
    out.fields.set(Field::Manifest, manifest, d.line);
    if let Some((a, at)) = pod::requested_accelerator(d) {
        out.fields.set_implied(Field::Accelerator, a, at);
    }
    if pod.engine.is_none() {
        if out.fields.kind() == Some(Kind::Training) {
            training_pods(d, pod.gpus, out);
        }
        return true;
    }
    out.int_at(Field::Replicas, d, &["spec.replicas"]);
    let replicas = out.fields.int(Field::Replicas);
    let per_node = pod.gpus.or_else(|| worker.and_then(|w| pod::containers(w).into_iter().find_map(pod::gpus)));
    // The resource request is more reliable than a device count that is derived from flags.
    if per_node.is_some() {
        out.fields.remove(Field::NumAccelerators);
    }
    if let (Some(s), Some(n)) = (size, group.and_then(|g| g.get("size"))) {
        out.fields.set(Field::NodesPerReplica, s, n.line);
        out.fields.remove(Field::Nodes);
        if let Some((g, at)) = per_node {
            out.fields.set(Field::AcceleratorsPerNode, g, at);
            out.fields.set(Field::AcceleratorsPerReplica, g.saturating_mul(s), at);
        }
    } else if let Some((g, at)) = per_node {
        out.fields.set(Field::AcceleratorsPerReplica, g, at);
    }
    if let (Some(n), Some(r)) =
        (out.fields.int(Field::AcceleratorsPerReplica), replicas.or((!out.fields.has(Field::Replicas)).then_some(1)))
    {
        let at = out.fields.at(Field::AcceleratorsPerReplica);
        out.fields.set_implied(Field::NumAccelerators, n.saturating_mul(r), at);
    }
    if !out.fields.has(Field::Model) {
        let at = d.at("metadata.name").map_or(d.line, |n| n.line);
        if let Some(m) = named_model(&name) {
            out.fields.set_implied(Field::Model, m, at);
        }
    }
    if let Some(w) = names::gguf(&name) {
        out.fields.set_implied(Field::WeightsPrecision, w, d.at("metadata.name").map_or(Place::NONE, |n| n.line));
    }
    if let Some(r) = role(&name).or_else(|| labeled_role(d)) {
        let at = d.at("metadata.name").map_or(d.line, |n| n.line);
        out.fields.set_implied(Field::Role, r, at);
    }
    true
}

/// Role in the labels of the pods.
fn labeled_role(d: &Node) -> Option<&'static str> {
    let labels =
        d.at("spec.template.metadata.labels").or(d.at("spec.leaderWorkerTemplate.workerTemplate.metadata.labels"))?;
    labels.map().iter().filter(|(k, _)| k.contains("role")).find_map(|(_, v)| role(&v.text()?))
}

/// The model in an object's name, after the name of the engine.
fn named_model(name: &str) -> Option<String> {
    let rest = ["llamacpp-", "llama-cpp-", "vllm-", "sglang-", "tgi-", "trtllm-", "ollama-"]
        .iter()
        .find_map(|p| name.strip_prefix(p))?;
    rest.split('-').any(names::is_size).then(|| rest.to_owned())
}

/// Counts the pods of a training job: replicas of masters and workers.
fn training_pods(d: &Node, gpus: Option<(i64, Place)>, out: &mut ReadFields) {
    let specs = ["pytorchReplicaSpecs", "mpiReplicaSpecs", "replicaSpecs", "tfReplicaSpecs"];
    let mut nodes = 0_i64;
    for s in specs.iter().filter_map(|s| d.at(&format!("spec.{s}"))) {
        for (role, r) in s.map() {
            let n = r.get("replicas").and_then(Node::int).unwrap_or(1);
            if role != "Launcher" {
                nodes = nodes.saturating_add(n);
            }
        }
    }
    // Tasks of Volcano.
    for task in d
        .at("spec.tasks")
        .map(Node::list)
        .unwrap_or(&[])
        .iter()
        .filter(|t| pod::containers(t).into_iter().any(|c| pod::gpus(c).is_some()))
    {
        nodes = nodes.saturating_add(task.get("replicas").and_then(Node::int).unwrap_or(1));
    }
    if nodes == 0 {
        let places = ["spec.parallelism", "spec.completions", "spec.replicas", "spec.trainer.numNodes"];
        nodes = d.first(&places).and_then(Node::int).unwrap_or(0);
    }
    if let Some(n) = d.at("spec.trainer.numProcPerNode").filter(|n| n.int().is_some()) {
        out.int(Field::AcceleratorsPerNode, n);
    }
    if let Some(n) = d.at("spec.replicatedJobs").map(Node::list).and_then(|l| l.first()) {
        let jobs = n.get("replicas").and_then(Node::int).unwrap_or(1);
        let pods =
            n.first(&["template.spec.parallelism", "template.spec.completions"]).and_then(Node::int).unwrap_or(1);
        nodes = jobs.saturating_mul(pods);
    }
    if nodes > 0 && !out.fields.has(Field::Nodes) {
        out.fields.set_implied(Field::Nodes, nodes, d.line);
    }
    if let Some((g, at)) = gpus {
        out.fields.set_implied(Field::AcceleratorsPerNode, g, at);
    }
}
