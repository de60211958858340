//! Training tools.

use crate::common;

use crate::common::{expect, read};
use serde_json::json;

#[test]
fn megatron_arguments_give_sizes_and_conflicts() {
    let script = |nodes: u32| {
        format!(
            "#!/bin/bash\n# Trains the \"30B\" parameter model\nN={nodes}\ntorchrun --nproc_per_node 8 --nnodes $N pretrain_gpt.py --num-layers 48 --hidden-size 7168 --num-attention-heads 56 --seq-length 4096 --max-position-embeddings 4096 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3 --micro-batch-size 1 --global-batch-size 512 --bf16 --fp8-format hybrid --use-distributed-optimizer --recompute-granularity selective --adam-beta1 0.9\n"
        )
    };
    let i = read("train.sh", &script(8));
    expect(
        &i,
        &json!({ "kind": "training", "model": "30B", "num_accelerators": 64, "tp": 8, "pp": 4, "vpp": 4, "dp": 2, "precision": "fp8", "sharding": "zero1",
                 "recompute": "selective", "optimizer": "adam", "architecture.num_layers": 48, "conflict": null }),
    );
    let small = read("train.sh", &script(2));
    expect(&small, &json!({ "dp": null }));
    assert_eq!(small.conflicts.len(), 1);
    assert!(small.conflicts[0].text.contains("at least 4 nodes"), "{}", small.conflicts[0].text);
}

#[test]
fn expert_parallelism_that_does_not_fit_the_world_is_a_conflict() {
    let i = read(
        "moe.sh",
        "#!/bin/bash\ntorchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --tensor-model-parallel-size 1 --pipeline-model-parallel-size 2 --expert-model-parallel-size 8 --num-experts 8\n",
    );
    assert_eq!(i.conflicts.len(), 1);
    expect(&i, &json!({ "ep": 8, "dp": null }));
}

#[test]
fn experts_are_split_over_tensor_parallel_ranks_unless_the_software_does_not() {
    let script = |etp: &str| {
        format!(
            "#!/bin/bash\ntorchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --tensor-model-parallel-size 4 \
             --expert-model-parallel-size 4 --num-experts 8 {etp}\n"
        )
    };
    let four = read("moe.sh", &script(""));
    assert_eq!(four.conflicts.len(), 1);
    assert!(four.conflicts[0].text.ends_with("ep*etp*pp = 16"), "{}", four.conflicts[0].text);
    expect(&read("moe.sh", &script("--expert-tensor-parallel-size 1")), &json!({ "ep": 4, "etp": 1, "dp": 2 }));
}

#[test]
fn bridge_recipe_determines_model_and_precision() {
    let i = read(
        "b.sh",
        "#!/bin/bash\npython scripts/training/run_recipe.py --recipe nova_12b_pretrain_fp8_current_scaling_config model.tensor_model_parallel_size=2 model.pipeline_model_parallel_size=1 ++train.global_batch_size=64 dataset.seq_length=2048\n",
    );
    expect(
        &i,
        &json!({ "framework": "megatron-bridge", "model": "nova_12b", "precision": "fp8", "fp8_recipe": "current_scaling", "tp": 2, "global_batch": 64, "seq_len": 2048 }),
    );
    let p = read(
        "p.sh",
        "#!/bin/bash\npython scripts/performance/setup_experiment.py -g gb200 -ng 32 -gn 4 -c fp8_cs -tp 2 -pp 2 -mb 1 -gb 64 -t 00:20:00\n",
    );
    expect(
        &p,
        &json!({ "accelerator": "GB200", "num_accelerators": 32, "nodes": 8, "precision": "fp8", "dp": 8, "slurm.time": "00:20:00" }),
    );
}

#[test]
fn nemo_yaml_and_overrides_agree() {
    let yaml = read(
        "gpt.yaml",
        "run:\n  name: gpt_20b_bf16\n  time_limit: 0-04:00:00\ntrainer:\n  num_nodes: 4\n  devices: 8\n  precision: bf16\nmodel:\n  micro_batch_size: 2\n  global_batch_size: 256\n  tensor_model_parallel_size: 4\n  pipeline_model_parallel_size: 1\n  encoder_seq_length: 2048\n  activations_checkpoint_granularity: null\n  fp8: false\n  optim:\n    name: distributed_fused_adam\n",
    );
    let want = json!({ "framework": "nemo", "nodes": 4, "num_accelerators": 32, "tp": 4, "dp": 8, "micro_batch": 2, "precision": "bf16",
                       "sharding": "zero1", "optimizer": "distributed_fused_adam", "slurm.time": "0-04:00:00" });
    expect(&yaml, &want);
    expect(&yaml, &json!({ "recompute": "none", "model": "gpt_20b" }));
    let cli = read(
        "gpt.sh",
        "#!/bin/bash\npython3 ${ROOT:-/opt}/launcher_scripts/main.py training=gpt3/20b stages=[training] training.run.time_limit=0-04:00:00 training.trainer.num_nodes=4 training.trainer.devices=8 training.trainer.precision=bf16 training.model.micro_batch_size=2 training.model.tensor_model_parallel_size=4 +training.model.pipeline_model_parallel_size=1 training.model.optim.name=distributed_fused_adam ~training.model.optim.bucket_cap_mb\n",
    );
    expect(&cli, &want);
    expect(&cli, &json!({ "base_config": "gpt3/20b", "launcher": "nemo-launcher" }));
}

#[test]
fn primus_variable_defaults_are_resolved() {
    let i = read(
        "MI300X/mini-BF16.yaml",
        "exp_name: ${EXP:test}\nmodules:\n  pre_trainer:\n    framework: megatron\n    model: ${PRIMUS_MODEL:mini_7B}.yaml\n    overrides:\n      tensor_model_parallel_size: ${PRIMUS_TP:2}\n      micro_batch_size: 4\n      fp8: hybrid\n      use_distributed_optimizer: true\n",
    );
    expect(
        &i,
        &json!({ "framework": "primus-megatron", "model": "mini_7B", "tp": 2, "micro_batch": 4, "precision": "fp8", "fp8_format": "hybrid", "sharding": "zero1", "accelerator": "MI300X" }),
    );
}

#[test]
fn torchtitan_precision_is_fp8_only_with_a_float8_converter() {
    let toml = |converters: &str| {
        format!(
            "# preset for 32 H200 GPUs\n[model]\nname = \"llama3\"\nflavor = \"70B\"\n{converters}\n[training]\nlocal_batch_size = 1\nseq_len = 8_192\n[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = -1\ntensor_parallel_degree = 8\npipeline_parallel_degree = 2\n[quantize.linear.float8]\nfilter_fqns = [\"output\"]\n[activation_checkpoint]\nmode = \"selective\"\n"
        )
    };
    let plain = read("t.toml", &toml("# converters = [\"float8\"]"));
    expect(
        &plain,
        &json!({ "precision": null, "num_accelerators": 32, "accelerator": "H200", "dp": 2, "sharding": "hsdp", "seq_len": 8192, "recompute": "selective", "model": "llama3 70B" }),
    );
    expect(&read("t.toml", &toml("converters = [\"quantize.linear.float8\"]")), &json!({ "precision": "fp8" }));
}

#[test]
fn deepspeed_auto_is_not_a_value() {
    let i = read(
        "ds.json",
        "{\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": 4, \"bf16\": {\"enabled\": \"auto\"}, \"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"none\"}}, \"optimizer\": {\"type\": \"AdamW\"}}",
    );
    expect(
        &i,
        &json!({ "framework": "deepspeed", "sharding": "zero3", "micro_batch": 4, "global_batch": null, "precision": null, "offload_params": false, "optimizer": "adamw" }),
    );
}

#[test]
fn neox_files_are_read_with_comments_and_trailing_commas() {
    let i = read(
        "mini.yml",
        "# trained on 32x 80GB A100\n{\n  \"pipe-parallel-size\": 2, # stages\n  \"model-parallel-size\": 2,\n  \"num-layers\": 24,\n  \"train_micro_batch_size_per_gpu\": 2,\n  \"gradient_accumulation_steps\": 4,\n  \"fp16\": {\"enabled\": True,},\n  \"zero_optimization\": {\"stage\": 1,},\n  \"checkpoint-activations\": true,\n}\n",
    );
    expect(
        &i,
        &json!({ "framework": "gpt-neox", "pp": 2, "tp": 2, "dp": 8, "global_batch": 64, "accelerator": "A100 80GB", "num_accelerators": 32, "precision": "fp16", "recompute": "full" }),
    );
}

#[test]
fn accelerate_counts_processes_of_all_machines() {
    let i = read(
        "acc.yaml",
        "distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\nmixed_precision: bf16\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n  fsdp_activation_checkpointing: true\n",
    );
    expect(
        &i,
        &json!({ "nodes": 2, "num_accelerators": 16, "accelerators_per_node": 8, "dp": 16, "sharding": "hsdp", "recompute": "full" }),
    );
    let two = read(
        "acc.yaml",
        "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n",
    );
    expect(&two, &json!({ "sharding": "zero2" }));
}

#[test]
fn fine_tuning_frameworks_are_detected_from_their_files() {
    let ax = read(
        "a.yml",
        "base_model: org/base-7B\nadapter: qlora\nload_in_4bit: true\nmicro_batch_size: 2\nsequence_len: 4096\nbf16: auto\noptimizer: paged_adamw_8bit\ndeepspeed: deepspeed_configs/zero3_bf16.json\n",
    );
    expect(
        &ax,
        &json!({ "framework": "axolotl", "adapter": "qlora", "weights_precision": "int4", "precision": null, "sharding": "zero3", "seq_len": 4096 }),
    );
    let lf = read(
        "l.yaml",
        "model_name_or_path: org/base-7B\nstage: sft\nfinetuning_type: lora\ncutoff_len: 1024\nper_device_train_batch_size: 4\nfp16: true\n",
    );
    expect(
        &lf,
        &json!({ "framework": "llama-factory", "adapter": "lora", "seq_len": 1024, "micro_batch": 4, "precision": "fp16" }),
    );
    let trl = read(
        "t.yaml",
        "model_name_or_path: org/base-7B\ntorch_dtype: bfloat16\nbf16: true\nmax_seq_length: 512\ngradient_checkpointing: false\n",
    );
    expect(&trl, &json!({ "framework": "trl", "precision": "bf16", "recompute": "none" }));
}

#[test]
fn maxtext_mesh_axes_multiply_to_the_accelerator_count() {
    let i = read(
        "run.sh",
        "#!/bin/bash\npython3 MaxText/train.py MaxText/configs/base.yml model_name=gemma2-27b dcn_data_parallelism=4 ici_fsdp_parallelism=4 ici_tensor_parallelism=2 per_device_batch_size=2 max_target_length=2048 remat_policy=minimal hardware=gpu\n",
    );
    expect(
        &i,
        &json!({ "num_accelerators": 32, "nodes": 4, "accelerators_per_node": 8, "tp": 2, "dp": 16, "sharding": "hsdp", "recompute": "selective", "remat_policy": "minimal", "global_batch": 64 }),
    );
    let open = read("m.yml", "base_config: base.yml\nper_device_batch_size: 1\nici_fsdp_parallelism: -1\n");
    expect(&open, &json!({ "num_accelerators": null, "ici.fsdp": -1 }));
}

#[test]
fn llm_foundry_litgpt_and_nanotron_files_are_imported() {
    let f = read(
        "f.yaml",
        "variables:\n  n: 1024\nmax_seq_len: ${variables.n}\nmodel:\n  name: mpt_causal_lm\n  d_model: 512\nglobal_train_batch_size: 64\ndevice_train_microbatch_size: 4\nprecision: amp_bf16\nfsdp_config:\n  sharding_strategy: SHARD_GRAD_OP\n  activation_checkpointing: false\n",
    );
    expect(
        &f,
        &json!({ "framework": "llm-foundry", "seq_len": 1024, "sharding": "zero2", "recompute": "none", "precision": "bf16" }),
    );
    let l = read(
        "l.yaml",
        "checkpoint_dir: checkpoints/org/base-1B\nprecision: 16-mixed\ndevices: 2\nnum_nodes: 2\ntrain:\n  global_batch_size: 32\n  micro_batch_size: 4\noptimizer:\n  class_path: torch.optim.SGD\n",
    );
    expect(
        &l,
        &json!({ "framework": "litgpt", "model": "org/base-1B", "num_accelerators": 4, "dp": 4, "grad_accum": 2, "precision": "fp16", "optimizer": "sgd" }),
    );
    let n = read(
        "n.yaml",
        "model:\n  dtype: float16\n  model_config:\n    moe_config: null\n    hidden_size: 64\n    moe_config:\n      num_experts: 4\noptimizer:\n  zero_stage: 1\nparallelism:\n  dp: 2\n  tp: 2\n  pp: 2\ntokens:\n  micro_batch_size: 2\n  batch_accumulation_per_replica: 3\n  sequence_length: 128\n",
    );
    expect(
        &n,
        &json!({ "framework": "nanotron", "num_accelerators": 8, "global_batch": 12, "sharding": "zero1", "architecture.num_experts": 4 }),
    );
}

#[test]
fn exported_submission_variables_are_imported_as_a_job() {
    let i = read(
        "config_B200_2x8x4.sh",
        "source config_common.sh\nexport MINIBS=4\nexport TENSOR_MODEL_PARALLEL=2\nexport PIPELINE_MODEL_PARALLEL=2\nexport MICRO_BATCH_SIZE=1\nexport DGXNNODES=2\nexport DGXNGPU=8\nexport WALLTIME=$((5 + ${NEXP:-1} * 20))\n",
    );
    expect(
        &i,
        &json!({ "framework": "nemo", "accelerator": "B200", "num_accelerators": 16, "dp": 4, "minibatch_per_dp": 4, "global_batch": 16, "slurm.time_minutes": 25 }),
    );
}

#[test]
fn division_by_zero_in_a_script_is_reported_as_a_conflict() {
    let i = read(
        "n.sh",
        "#!/bin/bash\nexport NEURON_RT_EXEC=1\nW=1\nDP=$((32*W/32/8))\nBS=$((64/DP))\ntorchrun --nproc_per_node 32 run_llama_nxd.py --tensor_parallel_size 32 --pipeline_parallel_size 8 --train_batch_size $BS --num_microbatches $BS --use_zero1_optimizer 1\n",
    );
    expect(
        &i,
        &json!({ "framework": "neuronx-distributed", "tp": 32, "pp": 8, "micro_batch": 1, "sharding": "zero1" }),
    );
    assert!(
        i.conflicts.iter().any(|c| c.text.contains("division by zero") && c.at.line == Some(5)),
        "{:?}",
        i.conflicts
    );
}

#[test]
fn unnamed_trainers_are_detected_by_launcher_and_flags() {
    let i = read(
        "a.sh",
        "#!/bin/bash\naccelerate launch --num_machines 2 --num_processes 16 --use_fsdp --fsdp_sharding_strategy FULL_SHARD --mixed_precision bf16 my_model.py --per_device_train_batch_size 2\n",
    );
    expect(
        &i,
        &json!({ "kind": "training", "framework": "accelerate", "nodes": 2, "dp": 16, "sharding": "zero3", "precision": "bf16", "micro_batch": 2 }),
    );
    let d = read(
        "d.sh",
        "#!/bin/bash\nZ=$1\nif [ \"$Z\" == \"\" ]; then Z=2; fi\ndeepspeed --num_gpus 4 main.py --model_name_or_path org/base-1B --zero_stage $Z --gradient_accumulation_steps 4 --per_device_train_batch_size 1\n",
    );
    expect(&d, &json!({ "framework": "deepspeed", "sharding": "zero2", "num_accelerators": 4, "global_batch": 16 }));
    assert!(read("e.sh", "#!/bin/bash\ntorchrun --nproc_per_node 8 run_eval.py --batch_size 4\n").is_empty());
}

#[test]
fn flags_override_values_of_referenced_config_files() {
    let i = common::read_all(&[
        (
            "run.sh",
            "#!/bin/bash\naccelerate launch --config_file conf/z.yaml --num_processes 8 train.py --gradient_accumulation_steps 2\n",
        ),
        (
            "conf/z.yaml",
            "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 4\ndeepspeed_config:\n  zero_stage: 2\n",
        ),
    ]);
    expect(
        &i,
        &json!({ "num_accelerators": 8, "sharding": "zero2", "precision": "bf16", "nodes": 1, "grad_accum": 2 }),
    );
    assert_eq!(i.origin["sharding"].file, "conf/z.yaml");
    assert_eq!((i.origin["sharding"].line, i.origin["grad_accum"].line), (Some(6), Some(2)));
    let named = common::read_all(&[
        ("a/none.sh", "#!/bin/bash\necho\n"),
        ("b/MI300X.yaml", "base_model: org/base-7B\nmicro_batch_size: 1\n"),
    ]);
    expect(&named, &json!({ "accelerator": "MI300X", "framework": "axolotl" }));
    assert_eq!((named.origin["accelerator"].file.as_str(), named.origin["accelerator"].line), ("b/MI300X.yaml", None));
    assert_eq!(named.origin["framework"].file, "b/MI300X.yaml");
}

#[test]
fn nemo_states_the_number_of_recomputed_layers() {
    let found = read(
        "gpt.yaml",
        "trainer:\n  num_nodes: 4\n  devices: 8\nmodel:\n  micro_batch_size: 2\n  encoder_seq_length: 2048\n  \
         activations_checkpoint_granularity: full\n  activations_checkpoint_method: block\n  \
         activations_checkpoint_num_layers: 3\n",
    );
    expect(&found, &json!({ "recompute": "full", "recompute_method": "block", "recompute_num_layers": 3 }));
}
