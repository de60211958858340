//! Post-training: verl's Hydra overrides, and the flags of OpenRLHF.

use crate::import::argv::Args;
use crate::import::fields::{Fields, ReadFields};
use crate::import::names::snake;
use crate::import::place::Place;
use crate::import::value::Node;
use crate::import::{Field, Kind};

/// Reads `python -m verl.trainer.…` with its overrides. Settings of the rollout engine are kept separate.
pub(crate) fn verl(args: &Args, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "verl", Place::NONE);
    // enable_gradient_checkpointing is on in verl's configurations.
    out.fields.set(Field::RecomputeDefault, "full", Place::NONE);
    // The trainer of fine-tuning has other settings, and no rollouts.
    let rolls_out = args.overrides.iter().any(|(path, _)| path.contains("actor_rollout_ref."));
    let mut mini_batch = (MINI_BATCH, Place::NONE);
    for (path, node) in &args.overrides {
        let path = path.trim_start_matches(['+', '~']);
        let known = match path {
            "actor_rollout_ref.model.path" | "model.partial_pretrain" | "model.path" => super::model(out, node),
            "trainer.nnodes" => out.int(Field::Nodes, node),
            "trainer.n_gpus_per_node" => out.int(Field::AcceleratorsPerNode, node),
            "data.train_batch_size" if rolls_out => out.int(Field::RolloutPrompts, node),
            "data.train_batch_size" => out.int(Field::GlobalBatch, node),
            "actor_rollout_ref.actor.ppo_mini_batch_size" => {
                if let Some(prompts) = node.int() {
                    mini_batch = (prompts, node.line);
                }
                true
            }
            "data.max_length" => out.int(Field::SeqLen, node),
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu" | "data.micro_batch_size_per_gpu" => {
                out.int(Field::MicroBatch, node)
            }
            "actor_rollout_ref.actor.ulysses_sequence_parallel_size" | "ulysses_sequence_parallel_size" => {
                out.int(Field::UlyssesSp, node)
            }
            "actor_rollout_ref.model.enable_gradient_checkpointing" | "model.enable_gradient_checkpointing" => {
                super::hf::flag("gradient_checkpointing", node, out)
            }
            "actor_rollout_ref.actor.strategy" | "model.strategy" => {
                if node.text().is_some_and(|t| t.starts_with("fsdp")) {
                    out.set(Field::Sharding, "zero3", node.line);
                }
                true
            }
            "actor_rollout_ref.actor.fsdp_config.param_offload" => offloaded(Field::OffloadParams, node, out),
            "actor_rollout_ref.actor.fsdp_config.optimizer_offload" => offloaded(Field::OffloadOptimizer, node, out),
            "actor_rollout_ref.rollout.name" => out.text(Field::RolloutFramework, node),
            "actor_rollout_ref.rollout.tensor_model_parallel_size" => out.int(Field::RolloutTp, node),
            "actor_rollout_ref.rollout.gpu_memory_utilization" => out.float(Field::RolloutGpuMemoryShare, node),
            "actor_rollout_ref.rollout.n" => out.int(Field::RolloutSamples, node),
            "data.max_prompt_length" => out.int(Field::RolloutIsl, node),
            "data.max_response_length" => out.int(Field::RolloutOsl, node),
            _ => match path.strip_prefix("actor_rollout_ref.actor.megatron.") {
                Some(key) => super::megatron::flag(&snake(key), node, out),
                // Settings of other models in the loop have the same names.
                None => !path.starts_with("actor_rollout_ref.actor.") || super::is_irrelevant(&snake(path)),
            },
        };
        if !known {
            out.unrecognized.push((path.to_owned(), node.line));
        }
    }
    if rolls_out {
        updates(mini_batch, &mut out.fields);
    }
}

/// Prompts of an optimizer step that verl takes by default.
const MINI_BATCH: i64 = 256;

/// Derives the sequences of an optimizer step: responses to the prompts of a mini-batch, of at most the stated lengths.
fn updates((prompts, at): (i64, Place), fields: &mut Fields) {
    let responses = fields.int(Field::RolloutSamples).unwrap_or(1);
    if let Some(sequences) = prompts.checked_mul(responses) {
        fields.set_implied(Field::GlobalBatch, sequences, at);
    }
    if let (Some(prompt), Some(response)) = (fields.int(Field::RolloutIsl), fields.int(Field::RolloutOsl))
        && let Some(length) = prompt.checked_add(response)
    {
        let at = fields.at(Field::RolloutOsl);
        fields.set_implied(Field::SeqLen, length, at);
    }
}

fn offloaded(field: Field, node: &Node, out: &mut ReadFields) -> bool {
    if node.switch() == Some(true) {
        out.set(field, "cpu", node.line);
    }
    true
}

/// Reads `openrlhf.cli.train_…`. Its training batch is that of all ranks.
pub(crate) fn openrlhf(args: &Args, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "openrlhf", Place::NONE);
    for f in &args.flags {
        let key = snake(&f.name);
        let known = match key.as_str() {
            "pretrain" => super::model(out, &f.node),
            "micro_train_batch_size" => out.int(Field::MicroBatch, &f.node),
            "train_batch_size" => out.int(Field::GlobalBatch, &f.node),
            "max_len" => out.int(Field::SeqLen, &f.node),
            "ring_attn_size" => out.int(Field::Cp, &f.node),
            "ds_tensor_parallel_size" => out.int(Field::Tp, &f.node),
            "adam_offload" => offloaded(Field::OffloadOptimizer, &f.node, out),
            "reward_pretrain" | "critic_pretrain" | "flash_attn" | "packing_samples" => true,
            _ => super::hf::flag(&key, &f.node, out),
        };
        if !known {
            out.unrecognized.push((f.name.clone(), f.node.line));
        }
    }
}
