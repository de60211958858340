//! torchtitan: a TOML configuration and its trainer.

use atlas_core::plan::{CpuOffload, Format, MoeDispatcher, Optimizer, PipelineSchedule, Recompute, Sharding};
use atlas_plan::knob::Knob;

use super::{Config, Draft, Launcher, other_mode, pytorch_image};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Training, count};
use crate::launch::keys::Keys;
use crate::launch::words::Arguments;

const EXPRESSED: [Knob; 18] = [
    Knob::Tp,
    Knob::Pp,
    Knob::Vpp,
    Knob::Cp,
    Knob::Ep,
    Knob::Etp,
    Knob::Sp,
    Knob::Sharding,
    Knob::Shard,
    Knob::PipelineSchedule,
    Knob::Global,
    Knob::Microbatch,
    Knob::Precision,
    Knob::Optimizer,
    Knob::Recompute,
    Knob::Compiled,
    Knob::CpuOffload,
    Knob::MoeDispatcher,
];

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let t = job.training().ok_or_else(other_mode)?;
    let model = job.model_name_in("torchtitan")?;
    let mut draft = Draft::new("torchtitan", job, pytorch_image(job));
    draft.expressed = EXPRESSED.to_vec();
    draft.start = Launcher::Torchrun;
    draft.program = vec!["-m".into(), "torchtitan.train".into()];
    let mut a = Arguments::default();
    a.push_unchecked(["--job.config_file".into(), "torchtitan.toml".into()]);
    draft.arguments = a;
    let keys = configuration(job, t, model, &mut draft);
    draft.configs.push(Config {
        name: "torchtitan.toml",
        text: keys.toml(&format!("# model: {}\n", job.model.id)),
        table: "torchtitan",
        keys: keys.settings(""),
    });
    Ok(draft)
}

fn configuration(job: &Job<'_>, t: &Training, model: &str, draft: &mut Draft) -> Keys {
    let (name, flavor) = model.split_once(' ').unwrap_or((model, ""));
    let (plan, software) = (&job.scenario.base.plan, job.scenario.training_software(&job.scenario.base));
    let mut k = Keys::default();
    k.put_unchecked("job.dump_folder", "./outputs").put_unchecked("job.description", job.name.as_str());
    k.put_unchecked("metrics.log_freq", 1);
    k.put("model.name", name).put("model.flavor", flavor);
    if let Some(repository) = &job.weights {
        let base = repository.rsplit('/').next().unwrap_or(repository);
        k.put_unchecked("model.hf_assets_path", format!("./assets/hf/{base}"));
    }
    match t.format {
        Format::Bf16 => {}
        Format::Fp8 => drop(k.put("model.converters", vec!["quantize.linear.float8"])),
        Format::Mxfp8 => drop(k.put("model.converters", vec!["quantize.linear.mx"])),
        other => draft
            .reject("precision", format!("launch files for torchtitan do not support training in {}", other.name())),
    }
    match t.optimizer {
        Optimizer::Adam => drop(k.put("optimizer.name", "AdamW").put("optimizer.implementation", "fused")),
        other => draft.reject("optimizer", format!("launch files for torchtitan do not support {}", other.name())),
    }
    k.put_unchecked("optimizer.lr", 3e-4);
    // With pipeline parallelism, the local batch is the rank's whole batch, which is split into micro-batches.
    let local = if t.pp > 1 { t.micro * t.accumulation() } else { t.micro };
    k.put("training.local_batch_size", local).put("training.global_batch_size", t.global);
    k.put("training.seq_len", t.sequence).put("training.steps", t.steps);
    k.put("training.mixed_precision_param", "bfloat16").put("training.mixed_precision_reduce", "float32");
    k.put_unchecked("training.dataset", "c4_test");
    match plan.cpu_offload {
        Some(CpuOffload::Parameters) => drop(k.put("training.enable_cpu_offload", true)),
        Some(CpuOffload::Optimizer) => draft.reject(
            "cpu_offload",
            "offloading only the optimizer state is not supported; use parameters, which includes the weights",
        ),
        Some(CpuOffload::None) | None => {}
    }
    let (replicate, shard) = data_parallel(t, draft);
    k.put("parallelism.data_parallel_replicate_degree", replicate).put("parallelism.data_parallel_shard_degree", shard);
    if t.sharding == Sharding::Zero2 {
        k.put("parallelism.fsdp_reshard_after_forward", "never");
    }
    if t.tp > 1 && !t.sequence_parallel {
        draft.reject("sp", "torchtitan always combines tensor parallelism with sequence parallelism");
    }
    k.put("parallelism.tensor_parallel_degree", t.tp)
        .put("parallelism.enable_async_tensor_parallel", t.tp > 1 && software.overlap_tensor && software.compiled)
        .put("parallelism.pipeline_parallel_degree", t.pp);
    pipeline(job, t, &mut k, draft);
    k.put("parallelism.context_parallel_degree", t.cp).put("parallelism.expert_parallel_degree", t.ep);
    experts(job, t, &mut k, draft);
    let mode = match t.recompute {
        Recompute::Full => "full",
        Recompute::Selective => "selective",
        Recompute::None | Recompute::Auto => "none",
    };
    k.put("activation_checkpoint.mode", mode);
    if mode == "selective" {
        k.put("activation_checkpoint.selective_ac_option", "op");
    }
    if t.recompute_layers.is_some() {
        draft.reject("recompute_layers", "launch files for torchtitan do not support recomputing only some layers");
    }
    k.put("compile.enable", software.compiled);
    if t.format == Format::Fp8 {
        k.put("quantize.linear.float8.enable_fsdp_float8_all_gather", shard > 1);
        k.put("quantize.linear.float8.filter_fqns", vec!["output"]);
    }
    k.put("checkpoint.enable", false);
    k
}

/// Number of copies of the model states, and number of ranks over which each is sharded.
fn data_parallel(t: &Training, draft: &mut Draft) -> (u64, u64) {
    match (t.sharding, t.shard.filter(|shard| *shard < t.dp)) {
        (Sharding::None, _) => (t.dp, 1),
        (Sharding::Zero3 | Sharding::Zero2, None) => (1, t.dp),
        (Sharding::Zero3 | Sharding::Zero2, Some(shard)) if t.dp.is_multiple_of(shard) => (t.dp / shard, shard),
        (Sharding::Zero3 | Sharding::Zero2, Some(shard)) => {
            draft.reject("shard", format!("{} replicas are not a multiple of the shard size {shard}", t.dp));
            (1, t.dp)
        }
        (Sharding::Zero1, _) => {
            draft.reject("sharding", "torchtitan does not support zero1; use none, zero2 or zero3");
            (1, t.dp)
        }
    }
}

/// Schedule and virtual stages of the pipeline.
fn pipeline(job: &Job<'_>, t: &Training, k: &mut Keys, draft: &mut Draft) {
    if t.pp <= 1 {
        return;
    }
    let schedule = match (job.scenario.base.plan.schedule.unwrap_or(PipelineSchedule::OneForwardOneBackward), t.vpp) {
        (PipelineSchedule::OneForwardOneBackward, 1) => Some("1F1B"),
        (PipelineSchedule::OneForwardOneBackward, _) => Some("Interleaved1F1B"),
        (PipelineSchedule::AllForward, 1) => Some("GPipe"),
        (PipelineSchedule::ZeroBubble, 2) => Some("InterleavedZeroBubble"),
        _ => None,
    };
    match schedule {
        Some(schedule) => drop(k.put("parallelism.pipeline_parallel_schedule", schedule)),
        None => {
            draft.reject("pp_schedule", format!("torchtitan does not support this schedule with vpp = {}", t.vpp));
        }
    }
    k.put("parallelism.pipeline_parallel_microbatch_size", t.micro);
    if t.vpp > 1 {
        let layers = count(job.transformer.n_layers).div_ceil(t.pp * t.vpp);
        k.put("parallelism.pipeline_parallel_layers_per_stage", layers);
    }
}

/// The distribution of experts, and the dispatch of tokens to them.
fn experts(job: &Job<'_>, t: &Training, k: &mut Keys, draft: &mut Draft) {
    // `ParallelDims` asserts this; without expert parallelism, torchtitan splits experts over all tensor-parallel ranks.
    let (whole, split) = (t.etp == 1, t.etp == t.tp);
    if job.transformer.experts.is_some() && !(split || whole && t.ep > 1) {
        let why = "torchtitan splits experts over tp ranks or, with expert parallelism, not at all";
        draft.reject("etp", why);
    } else if t.etp > 1 {
        k.put("parallelism.expert_tensor_parallel_degree", t.etp);
    }
    if t.ep > 1 {
        match job.scenario.moe_dispatcher(&job.scenario.base) {
            MoeDispatcher::AllToAll => drop(k.put("parallelism.expert_parallel_comm_backend", "standard")),
            MoeDispatcher::DeepEp => drop(k.put("parallelism.expert_parallel_comm_backend", "deepep")),
            MoeDispatcher::HybridEp => {
                draft.reject("moe_dispatcher", "launch files for torchtitan do not support hybridep");
            }
        }
    }
}
