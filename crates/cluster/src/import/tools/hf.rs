//! Flags of scripts based on Hugging Face's Trainer, DeepSpeed-Chat, Gaudi, and small FSDP scripts.

use crate::import::argv::Args;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::names::snake;
use crate::import::place::Place;
use crate::import::value::{Node, Value};
use crate::import::{Field, Kind};

/// Settings that are known and change nothing that is read.
const IGNORED: &str = "
world_size use_habana use_lazy_mode use_deepspeed adjust_throughput lora_alpha per_device_eval_batch_size tf32
packing dataloader_num_workers attn_implementation flash_attention_recompute flash_attention_fast_softmax
flash_attention_recompute_enable model_type val_batch_size gradient_checkpointing_kwargs
";

/// Reads one flag or key. Returns false if it is not recognized.
pub(crate) fn flag(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    let key = key.strip_prefix("fsdp_config.").unwrap_or(key);
    match key {
        "model_name_or_path"
        | "actor_model_name_or_path"
        | "model_path"
        | "model_id"
        | "base_model"
        | "pretrained_model_name_or_path" => super::model(out, node),
        "model_name" | "model" if node.text().is_some_and(|t| t.contains('/')) => super::model(out, node),
        "per_device_train_batch_size"
        | "per_device_training_batch_size"
        | "device_train_microbatch_size"
        | "micro_batch_size"
        | "train_batch_size_per_gpu"
        | "train_micro_batch_size_per_gpu"
        | "micro_batch_size_per_gpu"
        | "local_batch_size"
        | "batch_size_training" => out.int(Field::MicroBatch, node),
        // In the small scripts that have this flag, it is the batch per rank.
        "train_batch_size" | "batch_size" | "train_batch" => {
            if !out.fields.has(Field::MicroBatch) {
                out.int(Field::MicroBatch, node);
            }
            true
        }
        "global_batch_size" | "global_train_batch_size" => out.int(Field::GlobalBatch, node),
        "gradient_accumulation_steps" | "grad_accum_steps" => out.int(Field::GradAccum, node),
        "max_seq_len" | "max_seq_length" | "max_length" | "model_max_length" | "cutoff_len" | "block_size"
        | "seq_length" | "seq_len" | "sequence_len" | "max_context_width" | "context_length" => {
            if key == "max_context_width" {
                out.int(Field::ArchitectureMaxPositionEmbeddings, node);
            }
            out.int(Field::SeqLen, node)
        }
        "zero_stage" | "actor_zero_stage" => super::zero_stage(out, node),
        "gradient_checkpointing"
        | "actor_gradient_checkpointing"
        | "use_gradient_checkpointing"
        | "activation_checkpointing"
        | "enable_gradient_checkpointing" => match node.switch() {
            Some(true) => out.set(Field::Recompute, "full", node.line),
            Some(false) => out.set(Field::Recompute, "none", node.line),
            // axolotl offloads the inputs of the layers.
            None if matches!(node.text().as_deref(), Some("offload" | "offload_disk" | "unsloth")) => {
                out.fields.set(Field::OffloadActivations, true, node.line);
                out.set(Field::Recompute, "full", node.line)
            }
            None => true,
        },
        "bf16" | "fp16" | "fp8" => super::precision_switch(out, key, node),
        "mixed_precision" | "dtype" | "compute_dtype" => super::precision(out, node),
        // Precision of the trained weights; a stated compute precision takes precedence.
        "torch_dtype" => {
            if let Some(p) = node.text().as_deref().and_then(names::precision) {
                out.fields.set_implied(Field::Precision, p, node.line);
            }
            true
        }
        "deepspeed" | "deepspeed_config" | "ds_config" => {
            if let Some(t) = node.text() {
                if let Some(z) = super::zero_in_name(&t) {
                    out.fields.set_implied(Field::Sharding, z, node.line);
                }
                out.references.push((t, node.line));
            }
            true
        }
        "fsdp" => {
            let t = match &node.value {
                Value::List(l) => l.iter().filter_map(Node::text).collect::<Vec<_>>().join(" "),
                _ => node.text().unwrap_or_default(),
            };
            for w in t.split_whitespace() {
                super::fsdp_strategy(out, &Node::str(w, node.line));
            }
            if t.contains("offload") {
                out.set(Field::OffloadParams, "cpu", node.line);
            }
            true
        }
        "sharding_strategy" | "fsdp_sharding_strategy" => super::fsdp_strategy(out, node),
        "enable_fsdp" | "use_fsdp" => out.imply_if_on(Field::Sharding, "zero3", node),
        "pure_bf16" => super::precision_switch(out, "bf16", node),
        "peft_method" => out.text(Field::Adapter, node),
        "fsdp_activation_checkpointing" => flag("gradient_checkpointing", node, out),
        "offload_activations" | "activation_offloading" => out.flag(Field::OffloadActivations, node),
        "offload" | "offload_optimizer" => out.set_if_on(Field::OffloadOptimizer, "cpu", node),
        "optim" | "optimizer" => super::optimizer(out, node),
        "adam_beta1" | "adam_beta2" | "adam_epsilon" => {
            out.fields.set_implied(Field::Optimizer, "adam", node.line);
            true
        }
        _ => {
            let read = adapter(key, node, out).or_else(|| size(key, node, out));
            read.unwrap_or_else(|| super::lists(IGNORED, key) || super::is_irrelevant(key))
        }
    }
}

/// Reads a setting of adapters, or of the format of the frozen weights.
fn adapter(key: &str, node: &Node, out: &mut ReadFields) -> Option<bool> {
    Some(match key {
        "lora_dim" | "actor_lora_dim" => {
            if node.int() != Some(0) {
                out.int(Field::LoraRank, node);
                out.set(Field::Adapter, "lora", node.line)
            } else {
                true
            }
        }
        "use_peft_lora" | "use_lora" | "use_peft" | "enable_lora" => out.imply_if_on(Field::Adapter, "lora", node),
        "use_qlora" => out.set_if_on(Field::Adapter, "qlora", node),
        "lora_r" | "lora_rank" => {
            out.fields.set_implied(Field::Adapter, "lora", node.line);
            out.int(Field::LoraRank, node)
        }
        "lora_target_modules" | "lora_target" | "lora_target_linear" => lora_targets(key, node, out),
        "load_in_4bit" | "use_4bit_quantization" => out.set_if_on(Field::WeightsPrecision, "int4", node),
        "load_in_8bit" => out.set_if_on(Field::WeightsPrecision, "int8", node),
        _ => return None,
    })
}

/// Reads a parallel size, or a size of the model.
fn size(key: &str, node: &Node, out: &mut ReadFields) -> Option<bool> {
    Some(match key {
        "tensor_parallel_size" | "tensor_model_parallel_size" => out.int(Field::Tp, node),
        "pipeline_parallel_size" | "pipeline_model_parallel_size" => out.int(Field::Pp, node),
        "context_parallel_size" => out.int(Field::Cp, node),
        "num_layers" | "num_hidden_layers" | "n_layer" => out.int(Field::ArchitectureNumLayers, node),
        "hidden_width" | "hidden_size" | "n_embd" => out.int(Field::ArchitectureHiddenSize, node),
        "intermediate_size" => out.int(Field::ArchitectureFfnHiddenSize, node),
        "vocab_size" => out.int(Field::ArchitectureVocabSize, node),
        "num_heads" | "num_attention_heads" | "n_head" => out.int(Field::ArchitectureNumAttentionHeads, node),
        "num_key_value_heads" => out.int(Field::ArchitectureNumQueryGroups, node),
        _ => return None,
    })
}

/// Reads the names of the layers that have adapters: a list, or a text with commas.
pub(crate) fn lora_targets(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    let names: Vec<String> = match (&node.value, key) {
        (_, "lora_target_linear") if node.switch() == Some(true) => vec!["all-linear".to_owned()],
        (_, "lora_target_linear") => return true,
        (Value::List(list), _) => list.iter().filter_map(Node::text).collect(),
        _ => node.text().unwrap_or_default().split([',', ' ']).map(str::to_owned).collect(),
    };
    let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
    names.is_empty() || out.set(Field::LoraTargets, names, node.line)
}

/// Reads the arguments of a command. The caller sets the framework.
pub(crate) fn command(args: &Args, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    for f in &args.flags {
        if !flag(&snake(&f.name), &f.node, out) {
            out.unrecognized.push((f.name.clone(), f.node.line));
        }
    }
}

/// Whether the flags are those of a trainer.
pub(crate) fn looks_like(args: &Args) -> bool {
    const OWN: &[&str] = &[
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "zero_stage",
        "sharding_strategy",
        "train_batch_size",
        "deepspeed",
        "micro_batch_size",
        "gradient_checkpointing",
        "mixed_precision",
        "fsdp",
        "learning_rate",
        "lora_r",
    ];
    args.flags.iter().filter(|f| OWN.contains(&snake(&f.name).as_str())).count() >= 1
}
