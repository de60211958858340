//! Serving engines, manifests and benchmark clients.

use crate::common::{expect, read};
use serde_json::{Value, json};

#[test]
fn vllm_flags_files_and_environment_spellings_agree() {
    let want = json!({ "framework": "vllm", "tp": 4, "max_model_len": 4096, "max_num_seqs": 32, "prefix_caching": false, "kv_precision": "fp8", "gpu_memory_share": 0.8 });
    expect(
        &read(
            "a.sh",
            "#!/bin/bash\nvllm serve org/base-7B --tensor-parallel-size 4 --max-model-len=4096 --max_num_seqs 32 --no-enable-prefix-caching --kv-cache-dtype fp8_e5m2 --gpu-memory-utilization .8\n",
        ),
        &want,
    );
    expect(
        &read(
            "a.yaml",
            "model: org/base-7B\ntensor-parallel-size: 4\nmax-model-len: 4096\nmax-num-seqs: \"32\"\nno-enable-prefix-caching: true\nkv-cache-dtype: fp8\ngpu-memory-utilization: 0.8\n",
        ),
        &want,
    );
    expect(
        &read(
            "c.yml",
            "services:\n  a:\n    image: vllm/vllm-openai:v1\n    command: --model org/base-7B -tp 4 --max-model-len 4096 --max-num-seqs 32 --no-enable-prefix-caching --kv-cache-dtype fp8 --gpu-memory-utilization 0.8\n  ui:\n    image: nginx\n",
        ),
        &want,
    );
    expect(
        &read(
            "d.sh",
            "#!/bin/bash\ndocker run --gpus all -v /m:/m vllm/vllm-openai:latest --model org/base-7B --tensor-parallel-size 4 --max-model-len 4096 --max-num-seqs 32 --no-enable-prefix-caching --kv-cache-dtype fp8 --gpu-memory-utilization 0.8\n",
        ),
        &want,
    );
}

#[test]
fn expert_parallelism_of_vllm_spans_tensor_and_data() {
    let i = read(
        "a.sh",
        "#!/bin/bash\nvllm serve org/moe-100B -tp 2 -dp 8 --enable-expert-parallel --speculative-config '{\"method\":\"mtp\",\"num_speculative_tokens\":2}' --max-num-batched-token 512\n",
    );
    expect(
        &i,
        &json!({ "ep": 16, "num_accelerators": 16, "speculative.method": "mtp", "speculative.tokens": 2, "max_num_batched_tokens": 512 }),
    );
}

#[test]
fn sglang_attention_dp_does_not_multiply_tensor_parallelism() {
    let run = |extra: &str| {
        read(
            "s.sh",
            &format!(
                "#!/bin/bash\npython3 -m sglang.launch_server --model-path org/moe-100B --tp 8 --dp-size 4 {extra} --mem-fraction-static 0.8 --max-running-requests 128 --disable-radix-cache\n"
            ),
        )
    };
    expect(
        &run("--enable-dp-attention"),
        &json!({ "num_accelerators": 8, "attention_dp": true, "prefix_caching": false, "max_num_seqs": 128 }),
    );
    expect(&run(""), &json!({ "num_accelerators": 32, "attention_dp": null }));
}

#[test]
fn unset_parallel_size_leaves_the_accelerator_count_unknown() {
    let i = read(
        "s.sh",
        "#!/bin/bash\npython3 -m sglang.launch_server --model-path org/m --tp $TP --data-parallel-size 1\n",
    );
    expect(&i, &json!({ "tp": null, "dp": 1, "num_accelerators": null }));
}

#[test]
fn llama_cpp_splits_layers_unless_another_mode_is_stated() {
    for (flags, want) in [
        ("-ts 1,1", json!({ "num_accelerators": 2, "tp": null, "pp": 2 })),
        ("-sm layer --tensor-split 3/1", json!({ "num_accelerators": 2, "tp": null, "pp": 2 })),
        ("-sm row -ts 1,1", json!({ "num_accelerators": 2, "tp": 2, "pp": null })),
        ("-ts 1,1,1,1 --split-mode tensor", json!({ "num_accelerators": 4, "tp": 4, "pp": null })),
    ] {
        let i = read("s.sh", &format!("#!/bin/bash\n./llama-server -m /m/Base-7B-Q4_K_M.gguf {flags}\n"));
        expect(&i, &want);
    }
}

#[test]
fn llama_cpp_and_modelfiles_take_precision_from_names() {
    let i = read(
        "l.sh",
        "#!/bin/bash\n./llama-server -m /m/Base-7B-Instruct-Q5_K_M.gguf -c 8192 -ngl 99 -np 2 -fa -ctk q8_0 --model-draft /m/tiny-Q8_0.gguf --draft-max 8\n",
    );
    expect(
        &i,
        &json!({ "model": "Base-7B-Instruct-Q5_K_M.gguf", "weights_precision": "q5_k_m", "max_model_len": 8192, "max_num_seqs": 2, "kv_precision": "q8_0", "flash_attention": true, "speculative.method": "draft", "speculative.tokens": 8 }),
    );
    let m = read(
        "Modelfile",
        "# comment\nFROM base:7b-q4_K_M\nSYSTEM \"\"\"\nPARAMETER num_ctx 1\n\"\"\"\nPARAMETER num_ctx 32768\n",
    );
    expect(
        &m,
        &json!({ "framework": "ollama", "model": "base:7b-q4_K_M", "weights_precision": "q4_k_m", "max_model_len": 32768 }),
    );
}

#[test]
fn deployments_multiply_replicas_and_devices() {
    let i = read(
        "d.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: chat}\nspec:\n  replicas: 3\n  selector: {matchLabels: {a: b}}\n  template:\n    spec:\n      nodeSelector:\n        cloud.google.com/gke-accelerator: nvidia-l4\n      containers:\n      - name: c\n        image: vllm/vllm-openai:v1\n        command: [\"/bin/sh\", \"-c\"]\n        args: [\n          \"exec vllm serve org/base-7B --tensor-parallel-size $(TP)\"\n        ]\n        env:\n        - {name: TP, value: \"2\"}\n        resources:\n          limits:\n            nvidia.com/gpu: 2\n---\napiVersion: v1\nkind: Service\nmetadata: {name: chat}\n",
    );
    expect(
        &i,
        &json!({ "manifest": "Deployment", "model": "org/base-7B", "tp": 2, "replicas": 3, "accelerators_per_replica": 2, "num_accelerators": 6, "accelerator": "L4" }),
    );
}

#[test]
fn leader_worker_set_counts_nodes_of_leader_and_workers() {
    let i = read(
        "l.yaml",
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: x}\nspec:\n  replicas: 2\n  leaderWorkerTemplate:\n    size: 4\n    leaderTemplate:\n      spec:\n        containers:\n        - name: l\n          image: lmsysorg/sglang\n          command: [python3, -m, sglang.launch_server, --model-path, org/big-400B, --tp, \"32\", --nnodes, $(LWS_GROUP_SIZE)]\n          resources: {limits: {nvidia.com/gpu: \"8\"}}\n    workerTemplate:\n      spec:\n        containers:\n        - name: w\n          image: lmsysorg/sglang\n",
    );
    expect(
        &i,
        &json!({ "framework": "sglang", "tp": 32, "nodes_per_replica": 4, "accelerators_per_node": 8, "accelerators_per_replica": 32, "num_accelerators": 64 }),
    );
}

#[test]
fn dynamo_graph_is_imported_with_prefill_and_decode_roles() {
    let service = |name: &str, sub: &str, gpus: u32| {
        format!(
            "    {name}:\n      componentType: worker\n      subComponentType: {sub}\n      replicas: 2\n      resources: {{limits: {{gpu: \"{gpus}\"}}}}\n      extraPodSpec:\n        mainContainer:\n          command: [python3, -m, dynamo.vllm]\n          args: [--model, org/base-70B, --tensor-parallel-size, \"{gpus}\"]\n"
        )
    };
    let head = "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: g}\nspec:\n  backendFramework: vllm\n  services:\n    Frontend: {componentType: frontend, replicas: 1}\n";
    let both = read("g.yaml", &format!("{head}{}{}", service("p", "prefill", 2), service("d", "decode", 4)));
    expect(
        &both,
        &json!({ "orchestrator": "dynamo", "framework": "vllm", "model": "org/base-70B", "num_accelerators": 12, "roles.prefill.tp": 2, "roles.decode.tp": 4, "roles.decode.replicas": 2, "tp": null }),
    );
    assert_eq!(both.roles.len(), 2);
}

#[test]
fn disaggregated_trtllm_files_have_roles() {
    let i = read(
        "d.yaml",
        "model: org/base-70B\nbackend: pytorch\ncontext_servers:\n  num_instances: 2\n  tensor_parallel_size: 2\n  max_batch_size: 4\ngeneration_servers:\n  num_instances: 1\n  tensor_parallel_size: 8\n  kv_cache_config:\n    free_gpu_memory_fraction: 0.8\n",
    );
    expect(
        &i,
        &json!({ "framework": "tensorrt-llm", "num_accelerators": 12, "roles.prefill.max_num_seqs": 4, "roles.decode.gpu_memory_share": 0.8 }),
    );
}

#[test]
fn too_much_tensor_parallelism_for_a_machine_is_a_conflict() {
    let i = read(
        "k.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\ndata:\n  c.yaml: |\n    vllm:\n      tensor-parallel-size: 4\n---\napiVersion: kaito.sh/v1beta1\nkind: Workspace\nmetadata: {name: w}\nresource:\n  instanceType: Standard_NC48ads_A100_v4\ninference:\n  preset: {name: base-7b}\n  config: p\n",
    );
    expect(&i, &json!({ "tp": 4, "accelerator": "A100 80GB" }));
    assert_eq!(i.conflicts.len(), 1);
    assert_eq!(i.conflicts[0].at.line, Some(7));
}

#[test]
fn several_models_of_a_chart_are_variants() {
    let i = read(
        "v.yaml",
        "servingEngineSpec:\n  modelSpec:\n  - name: a\n    modelURL: org/a-7B\n    replicaCount: 2\n    requestGPU: 1\n    vllmConfig: {maxModelLen: 1024, tensorParallelSize: 1}\n  - name: b\n    modelURL: org/b-7B\n    replicaCount: 1\n    requestGPU: 4\n    vllmConfig: {gpuMemoryUtilization: 0.7, extraArgs: [\"--kv-cache-dtype\", \"fp8\"]}\n",
    );
    expect(
        &i,
        &json!({ "num_accelerators": 6, "variants.0.max_model_len": 1024, "variants.1.gpu_memory_share": 0.7, "variants.1.kv_precision": "fp8" }),
    );
}

#[test]
fn clients_that_differ_are_variants_and_a_swept_concurrency_is_a_list() {
    let loop_ = read(
        "b.sh",
        "#!/bin/bash\nfor c in 1 8 64; do\n vllm bench serve --model org/base-7B --random-input-len 512 --random-output-len 128 --num-prompts 100 --max-concurrency $c\ndone\n",
    );
    expect(
        &loop_,
        &json!({ "kind": "benchmark", "tool_name": "vllm bench serve", "model": "org/base-7B", "benchmark.isl": 512, "benchmark.osl": 128, "benchmark.concurrency": [1, 8, 64] }),
    );
    let two = read(
        "b.sh",
        "#!/bin/bash\npython -m sglang.bench_serving --dataset-name sharegpt --num-prompts 10 --request-rate 1\npython -m sglang.bench_serving --dataset-name random --random-input 64 --random-output 8 --num-prompts 20 --request-rate inf\n",
    );
    expect(&two, &json!({ "variants.0.dataset": "sharegpt", "variants.1.isl": 64, "variants.1.request_rate": "inf" }));
}

#[test]
fn positional_arguments_counted_by_a_script_are_required() {
    let i = read(
        "b.sh",
        "#!/bin/bash\n# ./b.sh <input_len> <output_len>\nif [ $# -lt 2 ]; then echo usage; exit 1; fi\nvllm bench serve --model org/base-7B --random-input-len $1 --random-output-len $2 --num-prompts 50\n",
    );
    expect(&i, &json!({ "required_args": ["input_len", "output_len"], "benchmark.num_prompts": 50 }));
}

#[test]
fn scripts_inside_job_files_are_read() {
    let i = read(
        "s.yaml",
        "resources:\n  accelerators: A100-80GB:4\nnum_nodes: 2\nenvs:\n  M: org/base-70B\nrun: |\n  vllm serve $M \\\n    --tensor-parallel-size $SKYPILOT_NUM_GPUS_PER_NODE\n",
    );
    expect(
        &i,
        &json!({ "model": "org/base-70B", "tp": 4, "nodes": 2, "num_accelerators": 8, "accelerator": "A100 80GB" }),
    );
    assert_eq!(i.origin["tp"].line, Some(8));
}

#[test]
fn ollama_is_configured_by_environment_variables() {
    let want = json!({ "framework": "ollama", "max_num_seqs": 4, "max_model_len": 16384, "kv_precision": "q8_0" });
    expect(
        &read(
            "o.sh",
            "#!/bin/bash\nexport OLLAMA_NUM_PARALLEL=4\nexport OLLAMA_KV_CACHE_TYPE=q8_0\nOLLAMA_CONTEXT_LENGTH=16384 ollama serve\n",
        ),
        &want,
    );
    expect(
        &read(
            "c.yml",
            "services:\n  o:\n    image: ollama/ollama\n    environment: {OLLAMA_NUM_PARALLEL: 4, OLLAMA_CONTEXT_LENGTH: 16384, OLLAMA_KV_CACHE_TYPE: q8_0}\n",
        ),
        &want,
    );
}

#[test]
fn pod_arguments_resolve_environment_and_group_size() {
    let i = read(
        "w.yaml",
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: ep-decode}\nspec:\n  replicas: 1\n  leaderWorkerTemplate:\n    size: 3\n    workerTemplate:\n      spec:\n        containers:\n        - name: c\n          image: x/llm-d\n          command: [/bin/bash, -c]\n          args:\n          - |-\n            exec vllm serve org/moe-100B --enable-expert-parallel \\\n              --tensor-parallel-size $TP --data-parallel-size $((LWS_GROUP_SIZE * LOCAL))\n          env:\n          - {name: LOCAL, value: \"8\"}\n          - {name: TP, value: \"1\"}\n          resources: {limits: {nvidia.com/gpu: \"8\"}}\n",
    );
    expect(
        &i,
        &json!({ "tp": 1, "dp": 24, "ep": 24, "nodes_per_replica": 3, "num_accelerators": 24, "role": "decode" }),
    );
    assert_eq!(i.origin["dp"].line, Some(17));
}

#[test]
fn helm_directives_in_yaml_are_skipped_and_reported() {
    let i = read(
        "m.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: m}\nspec:\n  replicas: 1\n  template:\n    spec:\n      containers:\n      -   name: c\n        image: vllm/vllm-openai\n        args:\n        {{- if .Values.long }}\n        - --max-model-len=4096\n        {{- end }}\n        - --model=org/base-7B\n",
    );
    expect(&i, &json!({ "model": "org/base-7B", "max_model_len": 4096, "replicas": 1 }));
    let lines: Vec<_> = i.not_recognized.iter().filter_map(|n| n.at.line).collect();
    assert_eq!(lines, [12, 14]);
}

#[test]
fn model_path_under_an_unset_variable_yields_its_last_part() {
    for (command, model) in [
        ("vllm serve $MODELS/Llama-3.1-70B-Instruct", json!("Llama-3.1-70B-Instruct")),
        ("python -m sglang.launch_server --model-path ${ROOT}/hub/DeepSeek-R1/", json!("DeepSeek-R1")),
        ("llama-server -m \"$HOME/m/gpt-oss-120b-Q4_K_M.gguf\"", json!("gpt-oss-120b-Q4_K_M.gguf")),
        ("vllm serve $MODELS/latest", Value::Null),
        ("vllm serve $MODELS/$NAME-8B", Value::Null),
    ] {
        expect(&read("serve.sh", &format!("{command}\n")), &json!({"model": model}));
    }
}

#[test]
fn older_releases_of_sglang_distribute_experts_over_all_tensor_ranks_by_a_switch() {
    let run = |flags: &str| {
        read("s.sh", &format!("python3 -m sglang.launch_server --model-path org/moe-100B --tp 16 {flags}\n"))
    };
    let found = run("--enable-ep-moe");
    expect(&found, &json!({ "tp": 16, "ep": 16 }));
    assert!(found.not_recognized.is_empty(), "{:?}", found.not_recognized);
    assert!(run("--ep-size 8").conflicts.is_empty());
    let conflicts = run("--ep-size 32").conflicts;
    assert!(conflicts.iter().any(|note| note.text.contains("does not divide tp_size = 16")), "{conflicts:?}");
}
