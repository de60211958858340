//! Every flag in the tables of the tools is recognized, reported as not recognized, or left out for a stated reason.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::read;
use atlas_cluster::import::Import;
use serde_json::Value;

/// One row of `workload/flags.csv`.
struct Row {
    tool: String,
    flag: String,
    kind: String,
    choices: Vec<String>,
}

fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workload/flags.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut rows = Vec::new();
    for line in text.lines().skip(1) {
        let mut cells = Vec::new();
        let (mut cell, mut quoted) = (String::new(), false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(std::mem::take(&mut cell)),
                c => cell.push(c),
            }
        }
        cells.push(cell);
        // Rows of values state only the release that introduced the value.
        if cells[5] == "value" {
            continue;
        }
        let words =
            |text: &str| text.split(['|', ',', '/', ';', ' ']).filter(|w| !w.is_empty()).map(str::to_owned).collect();
        rows.push(Row {
            tool: cells[0].clone(),
            flag: cells[3].split(" / ").next().unwrap().split(' ').next().unwrap().to_owned(),
            kind: cells[5].to_ascii_lowercase(),
            choices: words(&cells[6]),
        });
    }
    rows
}

/// A command that starts the tool, without and with one additional setting.
fn command(row: &Row) -> Option<(&'static str, String)> {
    let plain = row.choices.iter().find(|c| !matches!(c.as_str(), "no" | "none" | "auto" | "null" | "None" | "..."));
    let value = match (plain, row.kind.as_str()) {
        (_, kind) if kind.starts_with("bool") || kind.starts_with("flag") => "",
        (_, kind) if kind.contains("int") => "6",
        (_, "float") => "0.77",
        (Some(word), _) => word,
        (None, _) if row.flag.contains("dtype") || row.flag.contains("precision") => "bfloat16",
        (None, _) if row.flag.contains("model") || row.flag.contains("path") => "org/Base-7B",
        (None, _) if row.flag.contains("optim") => "adamw",
        _ => "3",
    };
    let flag = format!(" {} {value}", row.flag);
    let pair = format!(" {}={}", row.flag, if value.is_empty() { "true" } else { value });
    let all = "torchrun --nproc_per_node 8 --nnodes 12 pretrain_gpt.py --foo-x 1";
    Some(match row.tool.as_str() {
        "vllm" => ("vllm serve org/M", flag),
        "sglang" => ("python -m sglang.launch_server --model-path org/M", flag),
        "trtllm-serve" => ("trtllm-serve org/M", flag),
        "llama-server" => ("llama-server -m a.gguf", flag),
        "megatron-lm" => (all, flag),
        "megatron-bridge" if row.flag.starts_with("--") => return None,
        "megatron-bridge" => ("torchrun run_recipe.py --recipe llama3_70b_pretrain_config", pair),
        "maxtext" => ("python3 -m MaxText.train base.yml", pair),
        "accelerate" => ("accelerate launch train.py --per_device_train_batch_size 1", String::new()),
        "bench" => ("python benchmark_serving.py", flag),
        _ => return None,
    })
    .map(|(base, more)| match row.tool.as_str() {
        // Options of the launcher precede the script.
        "accelerate" => (base, format!(" {} {value}", row.flag)),
        _ => (base, more),
    })
}

fn with(row: &Row, base: &str, more: &str) -> Import {
    let text = match row.tool.as_str() {
        "accelerate" => base.replacen(" launch", &format!(" launch{more}"), 1),
        _ => format!("{base}{more}"),
    };
    read("run.sh", &format!("#!/bin/bash\n{text}\n"))
}

#[derive(Debug, PartialEq)]
enum Fate {
    Recognized,
    Listed,
    Silent,
}

fn fate(row: &Row) -> Option<Fate> {
    let (base, more) = command(row)?;
    let (before, after) = (with(row, base, ""), with(row, base, &more));
    let json = |import: &Import, key: &str| import.to_json()[key].clone();
    Some(if json(&before, "fields") != json(&after, "fields") {
        Fate::Recognized
    } else if json(&before, "not_recognized") != json(&after, "not_recognized")
        || json(&before, "missing") != json(&after, "missing")
    {
        Fate::Listed
    } else {
        Fate::Silent
    })
}

/// Flags that set a field of the planner, by tool.
const MODELED: &[(&str, &[&str])] = &[
    (
        "vllm",
        &[
            "--model",
            "--dtype",
            "--quantization",
            "--max-model-len",
            "--tensor-parallel-size",
            "--pipeline-parallel-size",
            "--data-parallel-size",
            "--enable-expert-parallel",
            "--max-num-seqs",
            "--max-num-batched-tokens",
            "--gpu-memory-utilization",
            "--kv-cache-dtype",
            "--enable-prefix-caching",
            "--enable-chunked-prefill",
            "--block-size",
            "--cpu-offload-gb",
            "--enforce-eager",
            "--async-scheduling",
        ],
    ),
    (
        "sglang",
        &[
            "--model-path",
            "--dtype",
            "--quantization",
            "--kv-cache-dtype",
            "--context-length",
            "--tp-size",
            "--pp-size",
            "--dp-size",
            "--ep-size",
            "--enable-dp-attention",
            "--mem-fraction-static",
            "--max-running-requests",
            "--chunked-prefill-size",
            "--disable-radix-cache",
            "--page-size",
            "--nnodes",
            "--speculative-algorithm",
            "--disaggregation-mode",
        ],
    ),
    (
        "trtllm-serve",
        &[
            "--tensor_parallel_size",
            "--pipeline_parallel_size",
            "--moe_expert_parallel_size",
            "--max_batch_size",
            "--max_num_tokens",
            "--max_seq_len",
            "--free_gpu_memory_fraction",
            "--enable_chunked_prefill",
        ],
    ),
    (
        "llama-server",
        &["--hf-repo", "--ctx-size", "--parallel", "--gpu-layers", "--cache-type-k", "--flash-attn", "--batch-size"],
    ),
    (
        "megatron-lm",
        &[
            "--num-layers",
            "--hidden-size",
            "--ffn-hidden-size",
            "--num-attention-heads",
            "--num-query-groups",
            "--seq-length",
            "--num-experts",
            "--moe-router-topk",
            "--micro-batch-size",
            "--global-batch-size",
            "--tensor-model-parallel-size",
            "--pipeline-model-parallel-size",
            "--context-parallel-size",
            "--expert-model-parallel-size",
            "--expert-tensor-parallel-size",
            "--sequence-parallel",
            "--use-distributed-optimizer",
            "--use-megatron-fsdp",
            "--recompute-granularity",
            "--recompute-activations",
            "--bf16",
            "--fp16",
            "--fp8-format",
            "--optimizer",
            "--optimizer-cpu-offload",
        ],
    ),
    (
        "megatron-bridge",
        &[
            "model.tensor_model_parallel_size",
            "model.pipeline_model_parallel_size",
            "model.context_parallel_size",
            "model.expert_model_parallel_size",
            "model.sequence_parallel",
            "train.global_batch_size",
            "train.micro_batch_size",
        ],
    ),
    (
        "maxtext",
        &[
            "model_name",
            "per_device_batch_size",
            "gradient_accumulation_steps",
            "max_target_length",
            "dtype",
            "remat_policy",
            "ici_fsdp_parallelism",
            "ici_tensor_parallelism",
            "dcn_data_parallelism",
            "ici_expert_parallelism",
            "ici_context_parallelism",
        ],
    ),
    ("accelerate", &["--num_processes", "--num_machines", "--mixed_precision", "--use_fsdp"]),
    (
        "bench",
        &[
            "--random-input-len",
            "--random-output-len",
            "--max-concurrency",
            "--request-rate",
            "--num-prompts",
            "--dataset-name",
        ],
    ),
];

/// Flags that are silently left out: tool, flag, and what they concern.
fn left_out() -> BTreeMap<(String, String), String> {
    let text = include_str!("../data/flags_left_out.csv");
    let cells = text.lines().skip(1).map(|line| line.splitn(3, ',').collect::<Vec<_>>());
    cells.map(|c| ((c[0].to_owned(), c[1].to_owned()), c[2].to_owned())).collect()
}

#[test]
fn flags_of_modeled_fields_are_recognized() {
    let rows = rows();
    let mut failed = Vec::new();
    for (tool, flags) in MODELED {
        for flag in *flags {
            match rows.iter().find(|row| row.tool == *tool && row.flag == *flag) {
                None => failed.push(format!("{tool} {flag}: not in the table")),
                Some(row) if fate(row) != Some(Fate::Recognized) => {
                    failed.push(format!("{tool} {flag}: {:?}", fate(row)))
                }
                Some(_) => {}
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn silently_ignored_flags_equal_the_documented_list() {
    let known = left_out();
    assert!(known.values().all(|concerns| !concerns.is_empty()));
    let mut counts = [0; 3];
    let mut silent = BTreeSet::new();
    for row in rows() {
        let Some(fate) = fate(&row) else { continue };
        counts[match fate {
            Fate::Recognized => 0,
            Fate::Listed => 1,
            Fate::Silent => 2,
        }] += 1;
        if fate == Fate::Silent {
            silent.insert((row.tool, row.flag));
        }
    }
    let listed: BTreeSet<_> = known.into_keys().collect();
    let new: Vec<_> = silent.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&silent).collect();
    assert!(new.is_empty() && gone.is_empty(), "{counts:?}\nnow left out: {new:#?}\nno longer left out: {gone:#?}");
}

#[test]
fn unknown_flag_is_listed_as_not_recognized() {
    for base in ["vllm serve org/M", "python -m sglang.launch_server --model-path org/M", "trtllm-serve org/M"] {
        let import = read("run.sh", &format!("{base} --brand-new-parallel-mode 2\n"));
        let listed = import.to_json()["not_recognized"].to_string();
        assert!(listed.contains("brand-new-parallel-mode") && !listed.contains("did you mean"), "{base}: {listed}");
        assert_ne!(import.to_json()["fields"], Value::Null);
    }
}

#[test]
fn misspelled_flag_is_listed_with_the_right_spelling() {
    let import = read("run.sh", "torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-paralel-size 4\n");
    let listed = import.to_json()["not_recognized"].to_string();
    assert!(listed.contains("--tensor-model-paralel-size; did you mean `--tensor-model-parallel-size`?"), "{listed}");
}
