//! Shell scripts: expansion, conditions, here-documents, and unknown values.

use crate::common::{expect, read, read_all, read_with};
use serde_json::json;

#[test]
fn shell_defaults_count_as_stated_values() {
    let i = read(
        "serve.sh",
        "#!/bin/bash\nTP=${TP:-4}\n: ${LEN:=8192}\nSHARE=\"${SHARE:-0.9}\"\nvllm serve org/base-7B -tp $TP --max-model-len ${LEN} \\\n  --gpu-memory-utilization \"$SHARE\"\n",
    );
    expect(
        &i,
        &json!({ "tp": 4, "max_model_len": 8192, "gpu_memory_share": 0.9, "model": "org/base-7B", "num_accelerators": 4 }),
    );
    assert!(i.missing.is_empty());
}

#[test]
fn array_append_changes_the_first_or_the_indexed_element() {
    let script = |body: &str| format!("#!/bin/bash\n{body}\nvllm serve org/base-7B \"${{A[@]}}\"\n");
    let tp = |body: &str| crate::common::at(&read("s.sh", &script(body)), "tp").cloned();
    assert_eq!(tp("A=(-tp 1)\nA[1]+=6"), Some(json!(16)));
    assert_eq!(tp("A=(--tensor-parallel 8)\nA+=-size"), Some(json!(8)));
    assert_eq!(tp("A=(--max-model-len 8)\nA=--tensor-parallel-size"), Some(json!(8)));
    assert_eq!(tp("A=()\nA=--tensor-parallel-size=4"), Some(json!(4)));
}

#[test]
fn file_beyond_the_size_limit_is_truncated_and_reported() {
    let mut text = "#!/bin/bash\nvllm serve org/base-7B -tp 4\n# ".to_owned();
    // Two-byte characters, of which one crosses the limit of 4 MiB.
    let odd = (4 << 20) - text.len() + 1;
    text.push_str(&"é".repeat(odd));
    let i = read("serve.sh", &text);
    expect(&i, &json!({ "tp": 4 }));
    assert!(i.to_json().to_string().contains("longer than 4 MiB"), "{:#}", i.to_json());
}

#[test]
fn the_environment_overrides_defaults() {
    let script = "#!/bin/bash\nvllm serve org/base-7B --tensor-parallel-size ${TP:-4} --max-num-seqs $SEQS\n";
    let i = read_with(&[("s.sh", script)], &[("TP", "2"), ("SEQS", "64")]);
    expect(&i, &json!({ "tp": 2, "max_num_seqs": 64 }));
    let open = read("s.sh", script);
    expect(&open, &json!({ "tp": 4, "max_num_seqs": null }));
    assert_eq!(open.missing.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["SEQS"]);
    assert_eq!(open.missing[0].at.line, Some(2));
}

#[test]
fn arithmetic_of_unset_variables_stays_an_expression() {
    let i = read(
        "bench.sh",
        "#!/bin/bash\nneed_env_vars() { :; }\ncheck_env_vars MODEL CONC ISL OSL UNUSED\nLEN=$((ISL + OSL + 16))\nvllm serve $MODEL --max-model-len $LEN &\nrun_benchmark_serving --model $MODEL --num-prompts $(( $CONC * 8 )) --max-concurrency $CONC --input-len $ISL --output-len $OSL\n",
    );
    expect(
        &i,
        &json!({ "kind": "serving+benchmark", "max_model_len": "ISL+OSL+16", "benchmark.num_prompts": "CONC*8",
                 "required_env": ["MODEL", "CONC", "ISL", "OSL"], "model": null }),
    );
}

#[test]
fn origins_point_at_the_line_of_the_flag_not_of_the_command() {
    let i = read(
        "train.sh",
        "#!/bin/bash\nARGS=(\n  --tensor-model-parallel-size 2\n  # --pipeline-model-parallel-size 8\n  --micro-batch-size 4\n)\nTEXT=\"\n --seq-length 4096 \\\n --bf16\n\"\ntorchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py ${ARGS[@]} $TEXT\n",
    );
    let line = |k: &str| i.origin[k].line;
    assert_eq!(line("tp"), Some(3));
    assert_eq!(line("micro_batch"), Some(5));
    assert_eq!(line("seq_len"), Some(8));
    assert_eq!(line("precision"), Some(9));
    expect(&i, &json!({ "pp": null, "dp": 4, "num_accelerators": 8 }));
}

#[test]
fn branches_are_decided_by_known_values_and_skipped_otherwise() {
    let script = |size: &str| {
        format!(
            "#!/bin/bash\nSIZE={size}\nif [[ $SIZE == small ]]; then L=12; H=768\nelif [ \"$SIZE\" = \"large\" ]; then L=48; H=1600\nelse echo unknown; exit 1; fi\ncase $SIZE in sm*) MB=8;; *) MB=2;; esac\nif [ \"$FAST\" == \"1\" ]; then MB=99; fi\ntorchrun --nproc-per-node=8 pretrain_gpt.py --num-layers $L --hidden-size $H --micro-batch-size $MB\n"
        )
    };
    expect(&read("t.sh", &script("small")), &json!({ "architecture.num_layers": 12, "micro_batch": 8 }));
    expect(&read("t.sh", &script("large")), &json!({ "architecture.hidden_size": 1600, "micro_batch": 2 }));
}

#[test]
fn variables_checked_by_exit_guards_are_required() {
    let i = read(
        "g.sh",
        "#!/bin/bash\nif [ -z \"$MODEL_DIR\" ]; then echo 'set MODEL_DIR'; exit 1; fi\nif [ -z \"${TP}\" ]; then TP=2; fi\nSIZE=${SIZE:?must be set}\nvllm serve $MODEL_DIR -tp $TP --max-num-seqs $SIZE\n",
    );
    expect(&i, &json!({ "tp": 2, "required_env": ["MODEL_DIR", "SIZE"] }));
}

#[test]
fn here_documents_resolve_as_files_named_by_flags() {
    let i = read(
        "trt.sh",
        "#!/bin/bash\nCFG=/tmp/extra.yml\ncat > $CFG <<EOF\nenable_attention_dp: true\nkv_cache_config:\n  dtype: fp8\n  free_gpu_memory_fraction: ${FRAC:-0.7}\nEOF\ncat << EOF >> $CFG\nmax_batch_size: 96\nEOF\nmpirun -n 1 trtllm-serve org/moe-100B --tp_size 8 --ep_size=4 --extra_llm_api_options $CFG\n",
    );
    expect(
        &i,
        &json!({ "framework": "tensorrt-llm", "tp": 8, "ep": 4, "attention_dp": true, "kv_precision": "fp8",
                 "gpu_memory_share": 0.7, "max_num_seqs": 96, "launcher": "mpirun trtllm-serve" }),
    );
    assert_eq!(i.origin["gpu_memory_share"].line, Some(7));
}

#[test]
fn quoted_here_documents_are_not_expanded() {
    let i = read(
        "q.sh",
        "#!/bin/bash\nTP=8\ncat > run.sh <<'EOF'\nTP=2\nvllm serve org/base-7B -tp $TP\nEOF\nbash run.sh\n",
    );
    expect(&i, &json!({ "tp": 2 }));
}

#[test]
fn commands_inside_wrappers_and_strings_are_found() {
    for cmd in [
        "srun --mpi=pmix bash -c \"CUDA_DEVICE_MAX_CONNECTIONS=1 $CMD\"",
        "eval $CMD",
        "srun -l sh -c \"${CMD}\" 2>&1 | tee log.txt",
        "numactl --membind=0 nice -n 5 $CMD &",
        "docker exec box bash -lc '$CMD'",
        "ssh node1 $CMD",
        "time $CMD || exit 1",
        "if ! $CMD; then echo failed; fi",
    ] {
        let text = format!(
            "#!/bin/bash\nCMD=\"torchrun --nproc_per_node=4 --nnodes=2 pretrain_gpt.py --tensor-model-parallel-size 2 --bf16\"\n{cmd}\n"
        );
        expect(
            &read("w.sh", &text),
            &json!({ "tp": 2, "nodes": 2, "accelerators_per_node": 4, "dp": 4, "precision": "bf16" }),
        );
    }
}

#[test]
fn functions_loops_and_reads_are_followed() {
    let i = read(
        "f.sh",
        "#!/bin/bash\nlaunch() {\n  local tp=$1 pp=${2:-1}\n  torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --tensor-model-parallel-size $tp --pipeline-model-parallel-size $pp --global-batch-size 64 --micro-batch-size 1\n}\nfor c in \"2,4\" \"4,2\"; do\n  IFS=',' read -r A B <<< \"$c\"\n  launch $A $B\ndone\n",
    );
    expect(
        &i,
        &json!({ "global_batch": 64, "num_accelerators": 16, "tp": null,
                 "variants.0.tp": 2, "variants.0.pp": 4, "variants.0.dp": 2, "variants.1.tp": 4, "variants.1.pp": 2 }),
    );
    assert_eq!(i.variants.len(), 2);
}

#[test]
fn sbatch_directives_give_nodes_devices_and_slurm_variables() {
    let i = read(
        "job.sbatch",
        "#!/bin/bash\n#SBATCH -N 4   # four nodes\n\n# a comment\n#SBATCH --gres=gpu:h100:8\n#SBATCH -t 02:00:00\n#SBATCH --exclusive\nmodule load x\n#SBATCH --nodes=99\nsrun torchrun --nnodes=$SLURM_NNODES --nproc_per_node=$SLURM_GPUS_ON_NODE pretrain_gpt.py --tensor-model-parallel-size $SLURM_GPUS_ON_NODE\n",
    );
    expect(
        &i,
        &json!({ "nodes": 4, "accelerators_per_node": 8, "num_accelerators": 32, "tp": 8, "dp": 4, "accelerator": "H100",
                 "launcher": "sbatch", "slurm.time": "02:00:00", "slurm.exclusive": true, "slurm.gres": "gpu:h100:8", "slurm.nodes": 4 }),
    );
    assert_eq!(i.origin["nodes"].line, Some(2));
}

#[test]
fn sourced_and_referenced_files_are_merged_into_one_job() {
    let i = read_all(&[
        (
            "exp/run.sbatch",
            "#!/bin/bash\n#SBATCH --nodes=2\nsource $(dirname $0)/env.sh\nsrun torchrun --nnodes 2 --nproc_per_node $GPUS -m torchtitan.train --job.config_file ./cfg/m.toml --training.seq_len 4096\n",
        ),
        ("exp/env.sh", "export GPUS=8\n"),
        (
            "exp/cfg/m.toml",
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n[parallelism]\ntensor_parallel_degree = 4\n[activation_checkpoint]\nmode = \"full\"\n",
        ),
    ]);
    expect(
        &i,
        &json!({ "framework": "torchtitan", "model": "llama3 8B", "nodes": 2, "num_accelerators": 16, "tp": 4, "dp": 4,
                 "seq_len": 4096, "micro_batch": 2, "recompute": "full" }),
    );
    assert_eq!(i.origin["tp"].file, "exp/cfg/m.toml");
    assert_eq!(i.origin["tp"].line, Some(8));
    assert_eq!(i.origin["seq_len"].file, "exp/run.sbatch");
}

#[test]
fn unknown_flags_are_reported_with_their_line() {
    let i =
        read("s.sh", "#!/bin/bash\nvllm serve org/base-7B \\\n  -tp 2 \\\n  --turbo-cache-depth 7 \\\n  --port 80\n");
    let found: Vec<_> = i.not_recognized.iter().map(|n| (n.text.as_str(), n.at.line)).collect();
    assert_eq!(found, [("--turbo-cache-depth", Some(4))]);
}

#[test]
fn secrets_never_reach_the_result() {
    let i = read(
        "s.sh",
        "#!/bin/bash\nexport HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345\nvllm serve /srv/hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345 --api-key sk-live-0123456789abcdef0123 --hf-token=$HF_TOKEN --served-model-name x -tp 2 --weird-secret=hunter22\n",
    );
    let text = i.to_json().to_string();
    for s in ["hf_AbCd", "sk-live", "hunter22"] {
        assert!(!text.contains(s), "{s} in {text}");
    }
}

#[test]
fn unrelated_files_yield_an_empty_import() {
    for (name, text) in [
        ("a.sh", "#!/bin/bash\necho hello\nls -l\n"),
        ("b.yaml", "a: 1\nb: [2, 3]\n"),
        ("c.json", "{\"x\": 1}"),
        ("d.toml", "x = 1\n"),
        ("e", ""),
    ] {
        assert!(read(name, text).is_empty(), "{name}");
    }
}
