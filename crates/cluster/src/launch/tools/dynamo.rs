//! Dynamo: a graph of prefill and decode workers that run the scenario's engine.

use atlas_plan::knob::Knob;
use serde_json::{Map, Value, json};

use super::{Draft, other_mode, serving, sglang, trtllm, vllm};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Serving, count};
use crate::launch::keys::yaml_map;
use crate::launch::words::Arguments;

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let s = job.serving().ok_or_else(other_mode)?;
    let family = job.scenario.active_software.name.split('@').next().unwrap_or_default();
    let (table, backend, module, known) = match family {
        "vllm" => ("vllm", "vllm", "dynamo.vllm", vllm::expressed()),
        "sglang" => ("sglang", "sglang", "dynamo.sglang", sglang::expressed()),
        "tensorrt-llm" => ("trtllm-serve", "trtllm", "dynamo.trtllm", trtllm::expressed()),
        other => {
            let reason = format!("Dynamo runs vLLM, SGLang and TensorRT-LLM, not {other}");
            return Err(Unsupported::new("software", reason));
        }
    };
    let image = match backend {
        "trtllm" => "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:latest".to_owned(),
        backend => format!("nvcr.io/nvidia/ai-dynamo/{backend}-runtime:latest"),
    };
    let mut draft = Draft::new(table, job, image);
    draft.expressed = known;
    draft.expressed.extend([Knob::PrefillAccelerators, Knob::PrefillWorkers]);
    serving::add_stored(job, s, &mut draft);
    let Some(pools) = job.scenario.base.pools() else {
        let reason = "Dynamo requires prefill and decode workers: set serving.pools or prefill_accelerators";
        return Err(Unsupported::new("pools", reason));
    };
    let mut services = Map::new();
    let image = draft.image.clone();
    services.insert(
        "Frontend".to_owned(),
        json!({
            "componentType": "frontend",
            "replicas": 1,
            "extraPodSpec": { "mainContainer": { "image": image } },
        }),
    );
    for (role, pool) in [("prefill", pools.prefill), ("decode", pools.decode)] {
        let worker = Serving {
            tp: count(pool.tp),
            pp: count(pool.pp),
            ep: count(pool.ep),
            attention_dp: count(pool.attention_dp),
            replicas: count(pool.dp),
            only_prefills: role == "prefill",
            ..*s
        };
        let devices = worker.devices();
        let a = worker_arguments(job, backend, role, &worker, &mut draft)?;
        let nodes = devices.div_ceil(job.per_node);
        let limit = devices.min(job.per_node).to_string();
        let words: Vec<String> =
            ["-m".to_owned(), module.to_owned()].into_iter().chain(a.plain().unwrap_or_default()).collect();
        let mut service = json!({
            "componentType": "worker",
            "subComponentType": role,
            "replicas": worker.replicas,
            "resources": { "limits": { "gpu": limit } },
            "sharedMemory": { "size": "80Gi" },
            "extraPodSpec": { "mainContainer": { "image": image, "command": ["python3"], "args": words } },
        });
        if nodes > 1
            && let Value::Object(map) = &mut service
        {
            map.insert("multinode".to_owned(), json!({ "nodeCount": nodes }));
        }
        services.insert(role.to_owned(), service);
        draft.arguments.lines.extend(a.lines);
    }
    if job.kubernetes_resource() != "nvidia.com/gpu" {
        draft.reject("target", "Dynamo requires NVIDIA accelerators");
    }
    let mut metadata = json!({ "name": job.name });
    if let (Some(namespace), Value::Object(map)) = (&job.options.namespace, &mut metadata) {
        map.insert("namespace".to_owned(), json!(namespace));
    }
    let manifest = json!({
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": metadata,
        "spec": { "backendFramework": backend, "services": services },
    });
    let mut text = String::new();
    if let Value::Object(map) = &manifest {
        yaml_map(map, 0, &mut text);
    }
    draft.manifest = Some(text);
    serving::set_servers(job, s, serving::servers(job, s, false), &mut draft);
    Ok(draft)
}

/// The arguments of a worker with the role `prefill` or `decode`.
fn worker_arguments(
    job: &Job<'_>,
    backend: &str,
    role: &str,
    worker: &Serving,
    draft: &mut Draft,
) -> Result<Arguments, Unsupported> {
    let repository = job.repository()?;
    let mut a = Arguments::default();
    match backend {
        "vllm" => {
            a.put("--model", repository);
            a.put("--tensor-parallel-size", worker.tp).put("--pipeline-parallel-size", worker.pp);
            if worker.attention_dp > 1 {
                a.put("--data-parallel-size", worker.attention_dp);
            }
            vllm::engine(job, worker, &mut a, draft);
            a.push_unchecked([format!("--is-{role}-worker").into()]);
        }
        "sglang" => {
            a.put("--model-path", repository);
            sglang::engine(job, worker, &mut a, draft);
            a.put("--disaggregation-mode", role);
        }
        _ => {
            a.push_unchecked(["--model-path".into(), repository.into()]);
            a.put("--tensor_parallel_size", worker.tp * worker.attention_dp);
            a.put("--pipeline_parallel_size", worker.pp);
            if worker.ep > 1 {
                a.put("--moe_expert_parallel_size", worker.ep);
            }
            a.put("--max_seq_len", worker.length());
            a.put_optional("--max_batch_size", worker.max_num_seqs)
                .put_optional("--max_num_tokens", worker.max_num_batched_tokens);
            if !trtllm::extra_options(job, worker, draft).is_empty() {
                draft.reject(
                    "software",
                    "launch files for Dynamo do not support settings of TensorRT-LLM's configuration file",
                );
            }
            a.push_unchecked(["--disaggregation-mode".into(), role.into()]);
        }
    }
    Ok(a)
}
