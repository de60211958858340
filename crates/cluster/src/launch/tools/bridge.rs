//! Megatron-Bridge: a recipe for the model, with overrides.

use atlas_core::plan::{Format, MoeDispatcher, Optimizer, Sharding};

use super::megatron::EXPRESSED;
use super::recomputation::{Recomputation, recomputation};
use super::{Draft, Launcher, other_mode};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Training};
use crate::launch::words::{Arguments, Word};
use atlas_plan::knob::Knob;

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let t = job.training().ok_or_else(other_mode)?;
    let model = job.model_name_in("megatron-bridge")?;
    let mut draft = Draft::new("megatron-bridge", job, "nvcr.io/nvidia/nemo:25.09");
    draft.expressed = EXPRESSED.into_iter().chain([Knob::Bf16Layers]).collect();
    draft.variables.push(("MEGATRON_BRIDGE", "/opt/Megatron-Bridge".to_owned()));
    draft.start = Launcher::Torchrun;
    draft.program = vec![Word::Shell("\"$MEGATRON_BRIDGE/scripts/training/run_recipe.py\"")];
    let mut a = Arguments::default();
    a.comment(&format!("model: {}", job.model.id));
    a.push_unchecked(["--recipe".into(), format!("{model}_pretrain_config").into()]);
    a.comment("parallelism")
        .assign("model.tensor_model_parallel_size", t.tp)
        .assign("model.pipeline_model_parallel_size", t.pp);
    // Without an explicit value, the recipe's value would apply.
    let stages = if t.vpp > 1 { t.vpp.to_string() } else { "null".to_owned() };
    a.assign("model.virtual_pipeline_model_parallel_size", stages)
        .assign("model.context_parallel_size", t.cp)
        .assign("model.expert_model_parallel_size", t.ep)
        .assign("model.expert_tensor_parallel_size", t.etp)
        .assign("model.sequence_parallel", word(t.sequence_parallel));
    a.comment("optimizer and gradients");
    let software = job.scenario.training_software(&job.scenario.base);
    a.assign("ddp.use_distributed_optimizer", word(t.sharding != Sharding::None))
        .assign("ddp.overlap_grad_reduce", word(software.overlap_data))
        .assign("ddp.overlap_param_gather", word(software.overlap_data && t.sharding != Sharding::None));
    match t.sharding {
        Sharding::None | Sharding::Zero1 => {}
        Sharding::Zero2 | Sharding::Zero3 => {
            let strategy = if t.sharding == Sharding::Zero2 { "optim_grads" } else { "optim_grads_params" };
            a.assign("ddp.use_megatron_fsdp", "true").assign("ddp.data_parallel_sharding_strategy", strategy);
        }
    }
    match job.scenario.base.plan.gradient_format {
        Some(Format::Fp32) => drop(a.assign("ddp.grad_reduce_in_fp32", "true")),
        Some(Format::Bf16) => drop(a.assign("ddp.grad_reduce_in_fp32", "false")),
        Some(other) => draft.reject("gradient_format", format!("gradients can be fp32 or bf16, not {}", other.name())),
        None => {}
    }
    a.comment("batch and sequence")
        .assign("train.micro_batch_size", t.micro)
        .assign("train.global_batch_size", t.global)
        .assign("train.train_iters", t.steps)
        .push_unchecked([format!("model.seq_length={}", t.sequence).into()])
        .push_unchecked([format!("dataset.seq_length={}", t.sequence).into()]);
    precision_and_optimizer(t, &mut a, &mut draft);
    a.comment("recomputation");
    match recomputation(job, t, &mut draft) {
        Recomputation::Nothing => drop(a.assign("model.recompute_granularity", "null")),
        Recomputation::Modules(modules) => {
            a.assign("model.recompute_granularity", "selective")
                .assign("model.recompute_modules", format!("[{}]", modules.join(",")));
        }
        Recomputation::Layers(None) => {
            a.assign("model.recompute_granularity", "full")
                .assign("model.recompute_method", "uniform")
                .assign("model.recompute_num_layers", 1_u64);
        }
        Recomputation::Layers(Some(_)) => draft
            .reject("recompute_layers", "launch files for Megatron-Bridge do not support recomputing only some layers"),
    }
    overlap(job, t, &mut a);
    draft.arguments = a;
    draft.exports.push(("CUDA_DEVICE_MAX_CONNECTIONS", "1".into()));
    draft.notes.push("data, learning rate and all other settings that are not planned come from the recipe".to_owned());
    Ok(draft)
}

fn precision_and_optimizer(t: &Training, a: &mut Arguments, draft: &mut Draft) {
    a.comment("precision");
    // The named configuration replaces the formats of the model.
    match (t.format, t.bf16_ends) {
        (Format::Bf16, _) => drop(a.assign("mixed_precision", "bf16_mixed")),
        (Format::Fp8, None) => drop(a.assign("mixed_precision", "bf16_with_fp8_delayed_scaling_mixed")),
        (Format::Fp8, Some([1, 1])) => drop(a.assign("mixed_precision", "bf16_with_fp8_current_scaling_mixed")),
        (Format::Fp8, Some([2, 2])) => {
            a.assign("mixed_precision", "nemotron_h_bf16_with_fp8_current_scaling_mixed");
        }
        (Format::Mxfp8, None) => drop(a.assign("mixed_precision", "bf16_with_mxfp8_mixed")),
        (Format::Fp4, None) => drop(a.assign("mixed_precision", "bf16_with_nvfp4_mixed")),
        (Format::Fp8 | Format::Mxfp8 | Format::Fp4, Some(_)) => draft.reject(
            "bf16_layers",
            "Megatron-Bridge has configurations of mixed precision with 0 layers in 16 bit, and with 2 or 4 in fp8",
        ),
        (other, _) => draft.reject(
            "precision",
            format!("launch files for Megatron-Bridge do not support training in {}", other.name()),
        ),
    }
    match t.optimizer {
        Optimizer::Adam => drop(a.assign("optimizer.optimizer", "adam")),
        Optimizer::Sgd => drop(a.assign("optimizer.optimizer", "sgd")),
        other => draft.reject(
            "optimizer",
            format!("launch files for Megatron-Bridge do not support the {} optimizer", other.name()),
        ),
    }
}

/// Overlap of communication, and the dispatch of tokens to experts.
fn overlap(job: &Job<'_>, t: &Training, a: &mut Arguments) {
    let software = job.scenario.training_software(&job.scenario.base);
    a.comment("overlap")
        .assign("comm_overlap.tp_comm_overlap", word(t.tp > 1 && t.sequence_parallel && software.overlap_tensor));
    if t.vpp > 1 {
        a.assign("model.overlap_p2p_comm", word(software.overlap_pipeline));
    }
    if job.transformer.experts.is_some() {
        let overlapped = t.ep > 1 && software.overlap_experts;
        a.assign("model.overlap_moe_expert_parallel_comm", word(overlapped));
        match job.scenario.moe_dispatcher(&job.scenario.base) {
            MoeDispatcher::AllToAll => drop(a.assign("model.moe_token_dispatcher_type", "alltoall")),
            MoeDispatcher::DeepEp => drop(
                a.assign("model.moe_token_dispatcher_type", "flex")
                    .assign("model.moe_flex_dispatcher_backend", "deepep"),
            ),
            MoeDispatcher::HybridEp => drop(
                a.assign("model.moe_token_dispatcher_type", "flex")
                    .assign("model.moe_flex_dispatcher_backend", "hybridep"),
            ),
        }
    }
}

fn word(on: bool) -> &'static str {
    if on { "true" } else { "false" }
}
