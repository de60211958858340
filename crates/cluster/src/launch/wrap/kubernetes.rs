//! Kubernetes manifests: an indexed Job for training, a Deployment for servers, and a LeaderWorkerSet for servers that
//! span several nodes.

use atlas_core::sort;
use serde_json::{Map, Value, json};

use super::{additional_files, arguments, command, setup};
use crate::launch::job::Job;
use crate::launch::keys::yaml_map;
use crate::launch::tools::{Draft, Launcher};
use crate::launch::words::Word;
use crate::launch::{File, Options, Unsupported, trains};

/// Settings that manifests cannot express.
pub(crate) fn refusals(job: &Job<'_>, draft: &Draft) -> Vec<Unsupported> {
    let mut refused = Vec::new();
    if draft.spread.as_ref().is_some_and(|spread| spread.flags.is_empty()) {
        let reason = "this tool starts servers that span several nodes through MPI, which requires --wrap slurm";
        refused.push(Unsupported::new("wrap", reason));
    }
    if job.options.container.is_some() {
        let reason = "not applicable: Kubernetes always runs containers; choose the image with --image";
        refused.push(Unsupported::new("container", reason));
    }
    refused
}

/// A file with the manifests, and the client.
pub(crate) fn files(job: &Job<'_>, draft: &Draft, header: &str, options: &Options) -> Vec<File> {
    let text = match &draft.manifest {
        Some(manifest) => format!("{header}{manifest}"),
        None => {
            let documents = if trains(job) { training(job, draft) } else { serving(job, draft) };
            let mut text = header.to_owned();
            for (index, mut document) in documents.into_iter().enumerate() {
                if let (Some(namespace), Some(Value::Object(metadata))) =
                    (&options.namespace, document.get_mut("metadata"))
                {
                    metadata.insert("namespace".to_owned(), json!(namespace));
                }
                if index > 0 {
                    text.push_str("---\n");
                }
                yaml_map(&document, 0, &mut text);
            }
            text
        }
    };
    let manifest = File { name: format!("{}.yaml", job.name), text, executable: false };
    // Configurations are part of the manifest.
    let client = additional_files(job, draft, header).into_iter().filter(|file| file.executable);
    std::iter::once(manifest).chain(client).collect()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Directory in which configurations are mounted.
const FOLDER: &str = "/job";

fn config_map(job: &Job<'_>, draft: &Draft) -> Option<Map<String, Value>> {
    let data: Map<String, Value> =
        sort::collect_unsorted(draft.configs.iter().map(|config| (config.name.to_owned(), json!(config.text))));
    (!data.is_empty()).then(|| {
        object(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": job.name }, "data": data }))
    })
}

fn container(job: &Job<'_>, draft: &Draft, devices: u64) -> Map<String, Value> {
    let mut mounts = vec![json!({ "name": "shared-memory", "mountPath": "/dev/shm" })];
    if !draft.configs.is_empty() {
        mounts.push(json!({ "name": "config", "mountPath": FOLDER }));
    }
    let mut limits = Map::new();
    limits.insert(job.kubernetes_resource().to_owned(), json!(devices));
    let mut container = object(json!({
        "name": "main",
        "image": draft.image,
        "resources": { "limits": limits },
        "volumeMounts": mounts,
    }));
    if !draft.configs.is_empty() {
        container.insert("workingDir".to_owned(), json!(FOLDER));
    }
    container
}

fn pod(job: &Job<'_>, draft: &Draft, container: Map<String, Value>) -> Map<String, Value> {
    let mut volumes = vec![json!({ "name": "shared-memory", "emptyDir": { "medium": "Memory" } })];
    if !draft.configs.is_empty() {
        volumes.push(json!({ "name": "config", "configMap": { "name": job.name } }));
    }
    object(json!({ "containers": [container], "volumes": volumes }))
}

/// The command as a shell script, for launchers that need the rank of the node.
fn script(job: &Job<'_>, draft: &Draft, before: &str, behind: &str) -> Value {
    let args = arguments(draft);
    let body = format!("set -euo pipefail\n{before}{}exec {}{args}{behind}\n", setup(draft), command(job, draft));
    json!(body)
}

fn training(job: &Job<'_>, draft: &Draft) -> Vec<Map<String, Value>> {
    let mut container = container(job, draft, job.per_node);
    let head = match job.nodes {
        1 => "HEAD_NODE=localhost\n".to_owned(),
        _ => format!("HEAD_NODE={0}-0.{0}\n", job.name),
    };
    let rank = match draft.start {
        Launcher::Direct if job.nodes > 1 => "export NODE_RANK=\"$JOB_COMPLETION_INDEX\"\n",
        _ => "",
    };
    container.insert("command".to_owned(), json!(["/bin/bash", "-c"]));
    container.insert("args".to_owned(), json!([script(job, draft, &format!("{head}{rank}"), "")]));
    let mut spec = pod(job, draft, container);
    spec.insert("restartPolicy".to_owned(), json!("Never"));
    spec.insert("subdomain".to_owned(), json!(job.name));
    let mut documents: Vec<Map<String, Value>> = config_map(job, draft).into_iter().collect();
    if job.nodes > 1 {
        documents.push(object(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": job.name },
            "spec": { "clusterIP": "None", "publishNotReadyAddresses": true, "selector": { "job-name": job.name } },
        })));
    }
    documents.push(object(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": job.name },
        "spec": {
            "completionMode": "Indexed",
            "completions": job.nodes,
            "parallelism": job.nodes,
            "backoffLimit": 0,
            "template": { "metadata": { "labels": { "app": job.name } }, "spec": spec },
        },
    })));
    documents
}

fn serving(job: &Job<'_>, draft: &Draft) -> Vec<Map<String, Value>> {
    let port = draft.port.unwrap_or(8000);
    let mut documents: Vec<Map<String, Value>> = config_map(job, draft).into_iter().collect();
    let selector = json!({ "app": job.name });
    documents.push(object(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": job.name },
        "spec": { "selector": selector, "ports": [{ "port": port, "targetPort": port }] },
    })));
    let mut container = container(job, draft, draft.devices);
    container.insert("ports".to_owned(), json!([{ "containerPort": port }]));
    match &draft.spread {
        None => {
            let words = |list: &[Word]| -> Vec<String> {
                list.iter()
                    .map(|word| match word {
                        Word::Plain(text) => text.clone(),
                        Word::Shell(expression) => (*expression).to_owned(),
                    })
                    .collect()
            };
            let mut args = draft.arguments.plain().unwrap_or_default();
            args.extend(["--port".to_owned(), port.to_string()]);
            container.insert("command".to_owned(), json!(words(&draft.program)));
            container.insert("args".to_owned(), json!(args));
            documents.push(object(json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": { "name": job.name },
                "spec": {
                    "replicas": draft.servers,
                    "selector": { "matchLabels": selector },
                    "template": { "metadata": { "labels": selector }, "spec": pod(job, draft, container) },
                },
            })));
        }
        Some(spread) => {
            let before =
                "HEAD_NODE=\"$LWS_LEADER_ADDRESS\"\nNODE_RANK=\"$LWS_WORKER_INDEX\"\nNODES=\"$LWS_GROUP_SIZE\"\n";
            let behind = format!(" --port {port} {}", spread.flags);
            container.insert("command".to_owned(), json!(["/bin/bash", "-c"]));
            container.insert("args".to_owned(), json!([script(job, draft, before, &behind)]));
            let template = json!({ "metadata": { "labels": selector }, "spec": pod(job, draft, container) });
            documents.push(object(json!({
                "apiVersion": "leaderworkerset.x-k8s.io/v1",
                "kind": "LeaderWorkerSet",
                "metadata": { "name": job.name },
                "spec": {
                    "replicas": draft.servers,
                    "leaderWorkerTemplate": {
                        "size": spread.nodes,
                        "leaderTemplate": template.clone(),
                        "workerTemplate": template,
                    },
                },
            })));
        }
    }
    documents
}
