//! Spellings that several tools share: units, absent values, replicas, loops, sums, roles.

use crate::common::{expect, read};
use serde_json::{Value, json};

#[test]
fn context_length_suffixes_follow_vllm_units() {
    for (length, tokens) in [("16k", 16_000), ("16K", 16_384), ("1m", 1_000_000), ("1M", 1_048_576), ("4096", 4096)] {
        let command = format!("vllm serve org/base-7B --max-model-len {length}\n");
        expect(&read("s.sh", &command), &json!({ "max_model_len": tokens }));
        let file = format!("model: org/base-7B\ntensor-parallel-size: 2\nmax-model-len: {length}\n");
        expect(&read("vllm.yaml", &file), &json!({ "max_model_len": tokens, "tp": 2 }));
    }
}

#[test]
fn hydra_null_override_is_not_a_value() {
    let text = "python megatron_gpt_pretraining.py --config-name=x trainer.devices=8 trainer.num_nodes=2 \
                model.tensor_model_parallel_size=4 model.virtual_pipeline_model_parallel_size=null \
                model.activations_checkpoint_granularity=null\n";
    expect(&read("n.sh", text), &json!({ "tp": 4, "vpp": null, "recompute": "none", "num_accelerators": 16 }));
}

#[test]
fn compose_replicas_multiply_the_accelerator_count() {
    let service = |name: &str, model: &str, more: &str| {
        format!(
            "  {name}:\n    image: vllm/vllm-openai\n    command: --model {model} -tp 2\n    deploy:\n{more}      resources:\n        \
             reservations:\n          devices:\n          - {{driver: nvidia, count: 2, capabilities: [gpu]}}\n"
        )
    };
    let one = format!("services:\n{}", service("a", "org/base-7B", "      replicas: 3\n"));
    expect(&read("c.yml", &one), &json!({ "replicas": 3, "num_accelerators": 6, "tp": 2 }));
    let none = format!("services:\n{}", service("a", "org/base-7B", ""));
    expect(&read("c.yml", &none), &json!({ "replicas": 1, "num_accelerators": 2 }));
    let two = format!("{one}{}", service("b", "org/base-8B", ""));
    expect(
        &read("c.yml", &two),
        &json!({ "num_accelerators": 8, "variants.0.replicas": 3, "variants.1.replicas": Value::Null }),
    );
}

#[test]
fn a_loop_over_the_rate_is_one_benchmark_with_a_list() {
    let text = "for r in 1 4 inf; do\n  python -m sglang.bench_serving --model org/base-8B --dataset-name random \
                --random-input 2048 --random-output 512 --num-prompts 500 --request-rate $r\ndone\n";
    expect(
        &read("b.sh", text),
        &json!({ "benchmark.isl": 2048, "benchmark.num_prompts": 500, "benchmark.request_rate": [1, 4, "inf"],
            "variants": null }),
    );
    let apart = "sglang.bench_serving() { python -m sglang.bench_serving --model org/base-8B \"$@\"; }\n\
                 python -m sglang.bench_serving --model org/base-8B --request-rate 1 --num-prompts 100\n\
                 python -m sglang.bench_serving --model org/base-8B --request-rate 2 --num-prompts 200\n";
    expect(&read("b.sh", apart), &json!({ "benchmark": null, "variants.1.num_prompts": 200 }));
}

#[test]
fn expr_arithmetic_is_evaluated_and_expr_patterns_are_not() {
    let text = "MB=4; DP=2\ntorchrun --nnodes 1 --nproc_per_node $(expr $DP \\* 4) pretrain_gpt.py --micro-batch-size $MB \
                --tensor-model-parallel-size 4 --num-layers 32 --global-batch-size `expr $MB \\* $DP + 8`\n";
    expect(&read("m.sh", text), &json!({ "num_accelerators": 8, "global_batch": 16, "dp": 2 }));
    let pattern = "torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 32 --micro-batch-size 1 \
                   --global-batch-size $(expr \"$NAME\" : 'gbs\\([0-9]*\\)')\n";
    expect(&read("m.sh", pattern), &json!({ "num_accelerators": 8, "global_batch": null }));
}

#[test]
fn dynamo_workers_have_roles_only_beside_a_prefill_worker() {
    let worker = |more: &str| format!("python3 -m dynamo.vllm --model org/base-14B -tp 2 {more} &\n");
    let split = read("d.sh", &(worker("") + &worker("--is-prefill-worker")));
    expect(
        &split,
        &json!({ "orchestrator": "dynamo", "num_accelerators": 4, "roles.prefill.tp": 2, "roles.decode.tp": 2 }),
    );
    expect(&read("d.sh", &worker("")), &json!({ "orchestrator": "dynamo", "roles": null, "role": null, "tp": 2 }));
}

#[test]
fn python_functions_are_evaluated_with_call_arguments() {
    let text = "from nemo.collections import llm\ndef configure(name, nodes: int = 2, gpus: int = 8):\n    \
                r = llm.base_70b.pretrain_recipe(name=name, num_nodes=nodes, num_gpus_per_node=gpus)\n    \
                r.trainer.strategy.tensor_model_parallel_size = 4\n    r.trainer.strategy.pipeline_model_parallel_size = 2\n    \
                return r\nif __name__ == '__main__':\n    recipe = configure('x', nodes=16)\n    run.run(recipe, executor=make(recipe.nodes))\n";
    expect(&read("r.py", text), &json!({ "nodes": 16, "num_accelerators": 128, "dp": 16 }));
    let by_place = text.replace("nodes=16", "4");
    expect(&read("r.py", &by_place), &json!({ "nodes": 4, "num_accelerators": 32 }));
    let unknown = text.replace("nodes=16", "nodes=ask()");
    expect(&read("r.py", &unknown), &json!({ "nodes": 2 }));
}

#[test]
fn tpu_slice_and_tensor_split_determine_the_hardware() {
    let command = "python3 -m MaxText.train base.yml model_name=llama3-70b quantization=int8 dtype=bfloat16 ici_fsdp_parallelism=256\n";
    expect(
        &read("m.sh", &format!("# 70B on v5e-256\n{command}")),
        &json!({ "accelerator": "TPU v5e", "precision": "int8" }),
    );
    expect(&read("m.sh", &format!("# not on v5e-x, see step-12\n{command}")), &json!({ "accelerator": null }));
    expect(&read("l.sh", "llama-server -m a-Q4_K_M.gguf -ngl 99 -ts 3,1\n"), &json!({ "num_accelerators": 2 }));
    expect(&read("l.sh", "llama-server -m a-Q4_K_M.gguf -ngl 99 -ts 1,0\n"), &json!({ "num_accelerators": 1 }));
}

#[test]
fn data_parallelism_follows_from_deepspeed_batch_sizes() {
    let text = r#"{"train_batch_size": 512, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4,
        "zero_optimization": {"stage": 2}}"#;
    expect(&read("ds.json", text), &json!({ "dp": 32, "num_accelerators": null }));
    expect(&read("ds.json", &text.replace("512", "\"auto\"")), &json!({ "dp": null, "grad_accum": 4 }));
}

#[test]
fn a_lora_recipe_of_litgpt_is_an_adapter() {
    let text = "litgpt finetune_lora org/phi-2 --train.micro_batch_size 4 --devices 2";
    expect(&read("l.sh", &format!("{text}\n")), &json!({ "adapter": "lora", "micro_batch": 4 }));
    expect(&read("l.sh", &format!("{text} --quantize bnb.nf4\n")), &json!({ "adapter": "qlora" }));
    expect(&read("l.sh", &format!("{text} --lora_r 32\n")), &json!({ "adapter": "lora", "lora_rank": 32 }));
}

#[test]
fn the_rank_of_adapters_is_read() {
    let axolotl = "base_model: org/base-7B\nadapter: lora\nlora_r: 32\nmicro_batch_size: 2\nsequence_len: 4096\n";
    expect(&read("a.yml", axolotl), &json!({ "adapter": "lora", "lora_rank": 32 }));
    expect(&read("a.yml", &axolotl.replace("adapter: lora\n", "")), &json!({ "adapter": null, "lora_rank": null }));
    let factory =
        "model_name_or_path: org/base-7B\nstage: sft\nfinetuning_type: lora\nlora_rank: 8\ncutoff_len: 1024\n";
    expect(&read("l.yaml", factory), &json!({ "adapter": "lora", "lora_rank": 8 }));
    let script = "from transformers import AutoModelForCausalLM, TrainingArguments\nfrom peft import LoraConfig\n\
                  config = LoraConfig(r=64, lora_alpha=16)\n\
                  arguments = TrainingArguments(per_device_train_batch_size=2)\n";
    expect(&read("t.py", script), &json!({ "adapter": "lora", "lora_rank": 64 }));
}
