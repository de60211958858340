//! PyTorch FSDP through Accelerate: the configuration of Accelerate, with the Hugging Face Trainer.

use atlas_core::plan::{CpuOffload, Format, Recompute, Sharding};
use atlas_plan::knob::Knob;

use super::{Config, Draft, Launcher, deepspeed, other_mode, pytorch_image};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Training};
use crate::launch::keys::Keys;

const EXPRESSED: [Knob; 9] = [
    Knob::Tp,
    Knob::Sharding,
    Knob::Shard,
    Knob::Global,
    Knob::Microbatch,
    Knob::Precision,
    Knob::Optimizer,
    Knob::Recompute,
    Knob::CpuOffload,
];

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let t = job.training().ok_or_else(other_mode)?;
    let mut draft = Draft::new("hf-trainer", job, pytorch_image(job));
    draft.expressed = EXPRESSED.to_vec();
    deepspeed::trainer(job, t, &mut draft)?;
    draft.start = Launcher::Accelerate("accelerate.yaml");
    let keys = configuration(job, t, &mut draft);
    let settings = keys.settings("").into_iter().map(|(key, value)| {
        // The table contains the names of the command line; the file nests them.
        let flat = key.rsplit('.').next().unwrap_or(&key).to_owned();
        (if flat == "distributed_type" { "distributed_type (YAML)".to_owned() } else { flat }, value)
    });
    draft.configs.push(Config {
        name: "accelerate.yaml",
        text: keys.yaml(&format!("# model: {}\n", job.model.id)),
        table: "accelerate",
        keys: settings.collect(),
    });
    Ok(draft)
}

fn configuration(job: &Job<'_>, t: &Training, draft: &mut Draft) -> Keys {
    let mut k = Keys::default();
    let full = t.recompute == Recompute::Full;
    k.put_unchecked("compute_environment", "LOCAL_MACHINE");
    let plain = t.sharding == Sharding::None && t.tp == 1;
    k.put("distributed_type", if plain { "MULTI_GPU" } else { "FSDP" });
    k.put("num_machines", job.nodes).put("num_processes", job.nodes * job.per_node);
    match t.format {
        Format::Bf16 => drop(k.put("mixed_precision", "bf16")),
        Format::Fp16 => drop(k.put("mixed_precision", "fp16")),
        _ => drop(k.put("mixed_precision", "no")),
    }
    let offload = job.scenario.base.plan.cpu_offload;
    if plain {
        if offload.is_some_and(|offload| offload != CpuOffload::None) {
            draft.reject("cpu_offload", "offloading requires FSDP; set sharding to zero2 or zero3");
        }
        draft.arguments.comment("recomputation");
        draft.arguments.put("--gradient_checkpointing", if full { "true" } else { "false" });
        return k;
    }
    k.put("fsdp_config.fsdp_version", 2).put("fsdp_config.fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
    match t.sharding {
        Sharding::Zero3 => drop(k.put("fsdp_config.fsdp_reshard_after_forward", true)),
        Sharding::Zero2 => drop(k.put("fsdp_config.fsdp_reshard_after_forward", false)),
        Sharding::Zero1 | Sharding::None => {
            draft.reject("sharding", "FSDP supports zero2 and zero3, and none only with tp = 1");
        }
    }
    k.put("fsdp_config.fsdp_activation_checkpointing", full);
    k.put("fsdp_config.fsdp_offload_params", offload == Some(CpuOffload::Parameters));
    if offload == Some(CpuOffload::Optimizer) {
        draft.reject(
            "cpu_offload",
            "offloading only the optimizer state is not supported; use parameters, which includes the weights",
        );
    }
    k.put("fsdp_config.fsdp_cpu_ram_efficient_loading", true)
        .put("fsdp_config.fsdp_state_dict_type", "SHARDED_STATE_DICT");
    let shard = t.shard.filter(|shard| *shard < t.dp);
    if shard.is_some() || t.tp > 1 {
        let group = shard.unwrap_or(t.dp);
        if !t.dp.is_multiple_of(group) {
            draft.reject("shard", format!("{} replicas are not a multiple of the shard size {group}", t.dp));
        }
        k.put("parallelism_config.parallelism_config_dp_replicate_size", t.dp / group)
            .put("parallelism_config.parallelism_config_dp_shard_size", group)
            .put("parallelism_config.parallelism_config_tp_size", t.tp);
    }
    k
}
