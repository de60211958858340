//! MaxText: its trainer, with `key=value` settings.

use atlas_core::plan::{CpuOffload, Format, Optimizer, Recompute, Sharding};
use atlas_plan::knob::Knob;

use super::{Draft, Launcher, other_mode};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Training, count};
use crate::launch::words::{Arguments, Word};

const EXPRESSED: [Knob; 11] = [
    Knob::Tp,
    Knob::Pp,
    Knob::Cp,
    Knob::Ep,
    Knob::Sharding,
    Knob::Global,
    Knob::Microbatch,
    Knob::Precision,
    Knob::Optimizer,
    Knob::Recompute,
    Knob::CpuOffload,
];

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let t = job.training().ok_or_else(other_mode)?;
    let model = job.model_name_in("maxtext")?;
    let tpu = is_tpu(job);
    let image = match job.vendor.as_str() {
        "Google" => "us-docker.pkg.dev/cloud-tpu-images/jax-ai-image/tpu:latest",
        "AMD" => "rocm/jax-training:latest",
        _ => "nvcr.io/nvidia/jax:25.04-maxtext-py3",
    };
    let mut draft = Draft::new("maxtext", job, image);
    draft.expressed = EXPRESSED.to_vec();
    draft.variables.push(("MAXTEXT", "/opt/maxtext/src/maxtext".to_owned()));
    draft.start = Launcher::Direct;
    if !tpu {
        // JAX uses these variables to connect the nodes.
        draft.exports.push(("NNODES", job.nodes.into()));
        draft.exports.push(("JAX_COORDINATOR_IP", Word::Shell("\"$HEAD_NODE\"")));
        draft.exports.push(("JAX_COORDINATOR_PORT", "12345".into()));
    }
    draft.program = ["python3", "-m", "maxtext.trainers.pre_train.train"].map(Word::from).to_vec();
    draft.program.push(Word::Shell("\"$MAXTEXT/configs/base.yml\""));
    let (micro, model_devices) = (t.micro, t.tp * t.pp * t.cp);
    if micro % model_devices != 0 && model_devices != 1 {
        // MaxText's batch is per device, so that the devices of one replica share sequences.
        draft.notes.push(format!(
            "per_device_batch_size is fractional: the {model_devices} devices of a replica share a micro-batch of \
             {micro}"
        ));
    }
    let mut a = Arguments::default();
    a.comment(&format!("model: {}", job.model.id)).assign("model_name", model);
    a.assign("hardware", if tpu { "tpu" } else { "gpu" });
    a.comment("batch and sequence");
    match t.micro % model_devices {
        0 => a.assign("per_device_batch_size", t.micro / model_devices),
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        _ => a.assign("per_device_batch_size", (t.micro as f64 / model_devices as f64).to_string()),
    };
    a.assign("gradient_accumulation_steps", t.accumulation())
        .assign("max_target_length", t.sequence)
        .assign("steps", t.steps);
    mesh(job, t, &mut a, &mut draft);
    precision_and_states(job, t, &mut a, &mut draft);
    a.comment("not planned: data and output directory")
        .push_unchecked(["dataset_type=synthetic".into()])
        .push_unchecked([format!("run_name={}", job.name).into()])
        .push_unchecked(["base_output_directory=./output".into()])
        .push_unchecked(["enable_checkpointing=false".into()]);
    draft.arguments = a;
    Ok(draft)
}

fn is_tpu(job: &Job<'_>) -> bool {
    job.vendor == "Google"
}

/// The parallel sizes within a slice or node, and between them.
fn mesh(job: &Job<'_>, t: &Training, a: &mut Arguments, draft: &mut Draft) {
    let tpu = is_tpu(job);
    // A slice of TPUs is one torus over all of its hosts.
    let devices = job.nodes * job.per_node;
    let slice = job.scenario.machine.filter(|_| tpu).map_or(job.per_node, |machine| count(machine.domain)).min(devices);
    let (part, parts) = if tpu { ("slice", "slices") } else { ("node", "nodes") };
    a.comment(&format!("mesh: ici_* within a {part}, dcn_* between {parts}"));
    // Pipeline stages that do not fill several slices are within one.
    let inner_stages = if tpu && slice == devices { t.pp } else { 1 };
    let inner = (t.tp * t.cp * inner_stages).min(slice);
    if !slice.is_multiple_of(t.tp * t.cp) {
        let reason = format!("tp times cp = {} does not divide the {slice} accelerators of a {part}", t.tp * t.cp);
        draft.reject("tp", reason);
    }
    let replicas_inside = (slice / inner.max(1)).min(t.dp).max(1);
    if !t.dp.is_multiple_of(replicas_inside) || replicas_inside * inner != slice && devices > slice {
        draft.reject("dp", format!("the replicas cannot be distributed evenly over the {parts}"));
    }
    let outside = t.dp / replicas_inside;
    let (data, fsdp) = match t.sharding {
        Sharding::None => ((replicas_inside, outside), (1, 1)),
        Sharding::Zero3 => ((1, 1), (replicas_inside, outside)),
        Sharding::Zero1 => {
            a.assign("shard_optimizer_over_data", "true");
            ((replicas_inside, outside), (1, 1))
        }
        Sharding::Zero2 => {
            draft.reject("sharding", "launch files for MaxText do not support zero2; use none, zero1 or zero3");
            ((1, 1), (1, 1))
        }
    };
    if t.ep > 1 && (t.sharding != Sharding::Zero3 || !replicas_inside.is_multiple_of(t.ep)) {
        let reason = format!("launch files for MaxText require zero3 and expert groups that evenly divide a {part}");
        draft.reject("ep", reason);
    }
    let experts = if t.ep > 1 { t.ep } else { 1 };
    a.assign("ici_data_parallelism", data.0)
        .assign("ici_fsdp_parallelism", (fsdp.0 / experts).max(1))
        .assign("ici_tensor_parallelism", t.tp)
        .assign("ici_context_parallelism", t.cp)
        .assign("ici_expert_parallelism", experts);
    if inner_stages > 1 {
        a.assign("ici_pipeline_parallelism", inner_stages);
    }
    a.assign("dcn_data_parallelism", data.1)
        .assign("dcn_fsdp_parallelism", fsdp.1)
        .assign("dcn_pipeline_parallelism", t.pp / inner_stages.max(1));
}

/// Formats, recomputation, optimizer and offloading.
fn precision_and_states(job: &Job<'_>, t: &Training, a: &mut Arguments, draft: &mut Draft) {
    a.comment("precision and recomputation").assign("dtype", "bfloat16");
    match t.format {
        Format::Bf16 => {}
        Format::Fp8 => drop(a.assign("quantization", "fp8")),
        Format::Int8 => drop(a.assign("quantization", "int8")),
        other => draft.reject("precision", format!("launch files for MaxText do not support {}", other.name())),
    }
    let policy = match t.recompute {
        Recompute::Full => "full",
        Recompute::Selective => "minimal",
        Recompute::None | Recompute::Auto => "none",
    };
    a.assign("remat_policy", policy);
    if t.recompute_layers.is_some() {
        draft.reject("recompute_layers", "launch files for MaxText do not support recomputing only some layers");
    }
    match t.optimizer {
        Optimizer::Adam => drop(a.assign("opt_type", "adamw")),
        other => draft.reject("optimizer", format!("launch files for MaxText do not support {}", other.name())),
    }
    match job.scenario.base.plan.cpu_offload {
        Some(CpuOffload::Optimizer) => drop(a.assign("optimizer_memory_host_offload", "true")),
        Some(CpuOffload::Parameters) => {
            a.assign("optimizer_memory_host_offload", "true").assign("parameter_memory_host_offload", "true");
        }
        Some(CpuOffload::None) | None => {}
    }
}
