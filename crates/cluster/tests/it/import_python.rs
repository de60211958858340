//! Python programs: commands that they start, recipes, engines, trainers.

use crate::common::{expect, read};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn commands_in_lists_and_strings_are_followed_with_defaults() {
    let serve =
        json!({ "framework": "vllm", "model": "org/base-72B", "tp": 4, "max_model_len": 8192, "max_num_seqs": 64 });
    let list = "import subprocess\nLEN = 8192\ndef main(tp: int = 4, model=\"org/base-72B\"):\n    cmd = [\"vllm\", \"serve\", model, \"--max-model-len\", str(LEN)]\n    cmd += [\"--tensor-parallel-size\", f\"{tp}\"]\n    cmd.extend([\"--max-num-seqs\", str(8 * 8)])\n    subprocess.run(cmd, check=True)\n";
    let text = "import argparse, os\np = argparse.ArgumentParser()\np.add_argument(\"--model\", default=\"org/base-72B\")\np.add_argument(\"--tp\", type=int, default=4)\na = p.parse_args()\nN = os.environ.get(\"SEQS\", \"64\")\ncommand = (\n    f\"vllm serve {a.model} --tensor-parallel-size {a.tp} \"  # two parts\n    \"--max-model-len 8192 --max-num-seqs \" + N\n)\nos.system(command)\n";
    let read_list = read("a.py", list);
    expect(&read_list, &serve);
    assert_eq!(read_list.origin["max_num_seqs"].line, Some(6));
    expect(&read("b.py", text), &serve);
    let open = read(
        "c.py",
        "import os, subprocess\ntp = os.environ[\"TP\"]\nsubprocess.run([\"vllm\", \"serve\", \"org/m-7B\", \"-tp\", tp])\n",
    );
    expect(&open, &json!({ "model": "org/m-7B", "tp": null }));
}

#[test]
fn engines_and_trainers_are_imported_from_python_calls() {
    let llm = "from vllm import LLM\nllm = LLM(\n    model=\"org/base-70B\",\n    tensor_parallel_size=2 * 4,  # one node\n    dtype=\"bfloat16\", enable_prefix_caching=True, max_num_seqs=256)\n";
    expect(
        &read("o.py", llm),
        &json!({ "kind": "serving", "model": "org/base-70B", "tp": 8, "precision": "bf16", "prefix_caching": true, "max_num_seqs": 256 }),
    );
    let trainer = "from transformers import TrainingArguments, AutoModelForCausalLM\nmodel = AutoModelForCausalLM.from_pretrained(\"org/base-7B\", torch_dtype=torch.bfloat16)\nargs = TrainingArguments(\"out\", per_device_train_batch_size=2, gradient_accumulation_steps=8, bf16=True, gradient_checkpointing=True, deepspeed=\"zero3.json\")\n";
    expect(
        &read("t.py", trainer),
        &json!({ "framework": "transformers", "model": "org/base-7B", "micro_batch": 2, "grad_accum": 8, "precision": "bf16", "sharding": "zero3", "recompute": "full" }),
    );
}

#[test]
fn recipes_are_imported_with_later_assignments() {
    let nemo = "import nemo_run as run\nfrom nemo.collections import llm\ndef configure(nodes: int = 8, gpus: int = 8):\n    r = llm.base_70b.pretrain_recipe(name=\"x\", num_nodes=nodes, num_gpus_per_node=gpus)\n    r.trainer.strategy.tensor_model_parallel_size = 4\n    r.trainer.strategy.pipeline_model_parallel_size = 4\n    r.data.global_batch_size = 128\n    r.trainer.plugins = bf16_with_fp8_mixed()\n    return r\n";
    expect(
        &read("n.py", nemo),
        &json!({ "framework": "nemo", "model": "base_70b", "nodes": 8, "num_accelerators": 64, "tp": 4, "pp": 4, "dp": 4, "global_batch": 128, "precision": "fp8" }),
    );
    let bridge = "from megatron.bridge.recipes.base import base_8b_pretrain_config\ncfg = base_8b_pretrain_config()\ncfg.model.tensor_model_parallel_size = 2\ncfg.train.global_batch_size = 256\ncfg.train.micro_batch_size = 1\n";
    expect(
        &read("b.py", bridge),
        &json!({ "framework": "megatron-bridge", "model": "base_8b", "tp": 2, "global_batch": 256, "micro_batch": 1 }),
    );
}

proptest! {
    #[test]
    fn random_python_fragments_are_imported_without_panic(parts in prop::collection::vec(prop_oneof![
        Just("LLM("), Just(")"), Just("["), Just("]"), Just("{"), Just("}"), Just("x = "), Just("x += "), Just("\n"), Just(", "),
        Just("f\"{x}{"), Just("\""), Just("'''"), Just("#"), Just("\\"), Just(" if "), Just(" else "), Just("-"), Just("**"),
        Just("def f("), Just("model=\"a/b\""), Just("subprocess.run("), Just(".join("), Just("from vllm import LLM\n"), Just("9"),
        Just("é"), Just(": "), Just("x.append("),
    ], 0..200)) {
        let _ = read("p.py", &parts.concat());
    }
}
