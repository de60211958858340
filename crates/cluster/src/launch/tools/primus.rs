//! Primus: a YAML configuration that starts Megatron-LM.

use atlas_core::plan::{Format, Optimizer, Sharding};
use atlas_plan::knob::Knob;

use super::megatron::EXPRESSED;
use super::recomputation::{Recomputation, recomputation};
use super::{Config, Draft, Launcher, other_mode};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Training};
use crate::launch::keys::Keys;
use crate::launch::words::Word;

/// Prefix of the settings. Their names are those of Megatron-LM, with underscores.
const SETTINGS_PREFIX: &str = "modules.pre_trainer.overrides.";

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let t = job.training().ok_or_else(other_mode)?;
    let model = job.model_name_in("primus")?;
    let mut draft = Draft::new("megatron-lm", job, "rocm/primus:v25.9_gfx942");
    draft.expressed = EXPRESSED.into_iter().filter(|knob| *knob != Knob::MoeDispatcher).collect();
    draft.variables.push(("PRIMUS", "/workspace/Primus".to_owned()));
    draft.start = Launcher::Direct;
    // Primus's script starts `torchrun` itself, with these variables.
    draft.exports.push(("EXP", Word::Shell("\"$PWD/primus.yaml\"")));
    draft.exports.push(("NNODES", job.nodes.into()));
    draft.exports.push(("GPUS_PER_NODE", job.per_node.into()));
    draft.exports.push(("MASTER_ADDR", Word::Shell("\"$HEAD_NODE\"")));
    draft.program = vec!["bash".into(), Word::Shell("\"$PRIMUS/examples/run_pretrain.sh\"")];
    let keys = configuration(job, t, model, &mut draft);
    let settings =
        keys.settings(SETTINGS_PREFIX).into_iter().map(|(key, value)| (format!("--{}", key.replace('_', "-")), value));
    draft.configs.push(Config {
        name: "primus.yaml",
        text: keys.yaml(&format!("# model: {}\n", job.model.id)),
        table: "megatron-lm",
        keys: settings.collect(),
    });
    Ok(draft)
}

fn configuration(job: &Job<'_>, t: &Training, model: &str, draft: &mut Draft) -> Keys {
    let software = job.scenario.training_software(&job.scenario.base);
    let mut keys = Keys::default();
    keys.put_unchecked("work_group", "${PRIMUS_TEAM:amd}").put_unchecked("user_name", "${PRIMUS_USER:root}");
    keys.put_unchecked("exp_name", job.name.as_str()).put_unchecked("workspace", "${PRIMUS_WORKSPACE:./output}");
    keys.put_unchecked("modules.pre_trainer.framework", "megatron")
        .put_unchecked("modules.pre_trainer.config", "pre_trainer.yaml");
    keys.put_unchecked("modules.pre_trainer.model", format!("{model}.yaml"));
    let mut put = |key: &str, value: serde_json::Value| {
        keys.put(&format!("{SETTINGS_PREFIX}{key}"), value);
    };
    put("train_iters", t.steps.into());
    put("micro_batch_size", t.micro.into());
    put("global_batch_size", t.global.into());
    put("seq_length", t.sequence.into());
    put("max_position_embeddings", t.sequence.into());
    put("tensor_model_parallel_size", t.tp.into());
    put("pipeline_model_parallel_size", t.pp.into());
    if t.vpp > 1 {
        put("num_virtual_stages_per_pipeline_rank", t.vpp.into());
    }
    put("context_parallel_size", t.cp.into());
    put("expert_model_parallel_size", t.ep.into());
    // Without the key, experts are split over all tensor-parallel ranks.
    if t.etp != t.tp && job.transformer.experts.is_some() {
        put("expert_tensor_parallel_size", t.etp.into());
    }
    put("sequence_parallel", t.sequence_parallel.into());
    match t.sharding {
        Sharding::None => put("use_distributed_optimizer", false.into()),
        Sharding::Zero1 => put("use_distributed_optimizer", true.into()),
        Sharding::Zero2 => draft.reject("sharding", "launch files for Primus do not support zero2; use zero1 or zero3"),
        Sharding::Zero3 => put("use_torch_fsdp2", true.into()),
    }
    put("overlap_grad_reduce", software.overlap_data.into());
    put("overlap_param_gather", (software.overlap_data && t.sharding == Sharding::Zero1).into());
    put("bf16", true.into());
    match t.format {
        Format::Bf16 => {}
        Format::Fp8 => put("fp8_format", "hybrid".into()),
        Format::Mxfp8 => {
            put("fp8_format", "e4m3".into());
            put("fp8_recipe", "mxfp8".into());
        }
        other => {
            draft.reject("precision", format!("launch files for Primus do not support training in {}", other.name()))
        }
    }
    match job.scenario.base.plan.gradient_format {
        Some(Format::Fp32) => put("accumulate_allreduce_grads_in_fp32", true.into()),
        Some(Format::Bf16) => put("grad_reduce_in_bf16", true.into()),
        Some(other) => draft.reject("gradient_format", format!("gradients can be fp32 or bf16, not {}", other.name())),
        None => {}
    }
    match t.optimizer {
        Optimizer::Adam => put("optimizer", "adam".into()),
        Optimizer::Sgd => put("optimizer", "sgd".into()),
        other => {
            draft.reject("optimizer", format!("launch files for Primus do not support the {} optimizer", other.name()))
        }
    }
    match recomputation(job, t, draft) {
        Recomputation::Nothing => put("recompute_granularity", serde_json::Value::Null),
        Recomputation::Modules(modules) => {
            put("recompute_granularity", "selective".into());
            put("recompute_modules", modules.into());
        }
        Recomputation::Layers(layers) => {
            put("recompute_granularity", "full".into());
            put("recompute_method", if layers.is_some() { "block" } else { "uniform" }.into());
            put("recompute_num_layers", layers.unwrap_or(1).into());
        }
    }
    if t.ep > 1 && software.overlap_experts {
        put("overlap_moe_expert_parallel_comm", true.into());
    }
    let plan = &job.scenario.base.plan;
    if t.vpp > 1 && plan.switches.overlap_pipeline.or(plan.overlap) == Some(false) {
        draft.reject("overlap_pipeline", "launch files for Primus cannot turn the overlap off");
    }
    put("tp_comm_overlap", (t.tp > 1 && t.sequence_parallel && software.overlap_tensor).into());
    let mut other = |key: &str, value: serde_json::Value| {
        keys.put_unchecked(&format!("{SETTINGS_PREFIX}{key}"), value);
    };
    other("lr", 1e-5.into());
    other("mock_data", true.into());
    other("disable_last_saving", true.into());
    keys
}
