//! DeepSpeed: its configuration with the Hugging Face Trainer, and code shared with Accelerate.

use atlas_core::plan::{CpuOffload, Format, Optimizer, Recompute, Sharding};
use atlas_plan::knob::Knob;

use super::{Config, Draft, Launcher, other_mode, pytorch_image};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Training};
use crate::launch::keys::Keys;
use crate::launch::words::{Arguments, Word};

const EXPRESSED: [Knob; 9] = [
    Knob::Tp,
    Knob::Sharding,
    Knob::Global,
    Knob::Microbatch,
    Knob::Precision,
    Knob::GradientFormat,
    Knob::Optimizer,
    Knob::Recompute,
    Knob::CpuOffload,
];

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let t = job.training().ok_or_else(other_mode)?;
    let mut draft = Draft::new("hf-trainer", job, pytorch_image(job));
    draft.expressed = EXPRESSED.to_vec();
    draft.expressed.push(Knob::OverlapData);
    draft.start = Launcher::Torchrun;
    trainer(job, t, &mut draft)?;
    draft.arguments.comment("sharding and precision").put("--deepspeed", "./deepspeed.json");
    let keys = configuration(job, t, &mut draft);
    let config = Config { name: "deepspeed.json", text: keys.json(), table: "deepspeed", keys: keys.settings("") };
    draft.configs.push(config);
    Ok(draft)
}

/// The program with its own arguments: `run_clm.py` of Transformers, or the user's program with the same arguments.
pub(super) fn trainer(job: &Job<'_>, t: &Training, draft: &mut Draft) -> Result<(), Unsupported> {
    match &job.options.program {
        Some(program) => draft.program = vec![program.as_str().into()],
        None => {
            draft.variables.push(("TRANSFORMERS", "/opt/transformers".to_owned()));
            draft.program = vec![Word::Shell("\"$TRANSFORMERS/examples/pytorch/language-modeling/run_clm.py\"")];
        }
    }
    draft.variables.push(("DATASET", "wikitext".to_owned()));
    draft.variables.push(("DATASET_CONFIG", "wikitext-103-raw-v1".to_owned()));
    if t.pp > 1 || t.cp > 1 || t.vpp > 1 {
        let reason = "launch files for this tool do not support pipeline, virtual-pipeline or context parallelism";
        draft.reject("pp", reason);
    }
    let mut a = Arguments::default();
    a.comment(&format!("model: {}", job.model.id)).put("--model_name_or_path", job.repository()?);
    a.comment("batch and sequence")
        .put("--per_device_train_batch_size", t.micro)
        .put("--gradient_accumulation_steps", t.accumulation())
        .push_unchecked(["--block_size".into(), t.sequence.into()])
        .push_unchecked(["--max_steps".into(), t.steps.into()]);
    match t.optimizer {
        Optimizer::Adam => drop(a.put("--optim", "adamw_torch_fused")),
        Optimizer::Adam8bit => drop(a.put("--optim", "adamw_bnb_8bit")),
        Optimizer::Adafactor => drop(a.put("--optim", "adafactor")),
        Optimizer::Sgd => drop(a.put("--optim", "sgd")),
        other => draft.reject("optimizer", format!("launch files for this tool do not support {}", other.name())),
    }
    match t.format {
        Format::Bf16 => drop(a.put("--bf16", "true")),
        Format::Fp16 => drop(a.push_unchecked(["--fp16".into(), "true".into()])),
        Format::Fp32 => {}
        other => draft.reject("precision", format!("launch files for this tool do not support {}", other.name())),
    }
    if t.recompute_layers.is_some() {
        draft.reject("recompute_layers", "this tool recomputes either all layers or none");
    }
    if t.recompute == Recompute::Selective {
        let reason = "launch files for this tool do not support selective recomputation; use none or full";
        draft.reject("recompute", reason);
    }
    a.comment("not planned: data and learning rate; replace them with your own")
        .push_unchecked(["--dataset_name".into(), Word::Shell("\"$DATASET\"")])
        .push_unchecked(["--dataset_config_name".into(), Word::Shell("\"$DATASET_CONFIG\"")])
        .push_unchecked(["--do_train".into()])
        .push_unchecked(["--learning_rate".into(), "1e-5".into()])
        .push_unchecked(["--logging_steps".into(), "1".into()])
        .push_unchecked(["--save_strategy".into(), "no".into()])
        .push_unchecked(["--output_dir".into(), "output".into()]);
    draft.arguments = a;
    Ok(())
}

fn configuration(job: &Job<'_>, t: &Training, draft: &mut Draft) -> Keys {
    let plan = &job.scenario.base.plan;
    let software = job.scenario.training_software(&job.scenario.base);
    let mut k = Keys::default();
    k.put("train_micro_batch_size_per_gpu", t.micro)
        .put("train_batch_size", t.global)
        .put("gradient_accumulation_steps", t.accumulation());
    k.put("bf16.enabled", t.format == Format::Bf16).put("fp16.enabled", t.format == Format::Fp16);
    let stage = match t.sharding {
        Sharding::None => 0,
        Sharding::Zero1 => 1,
        Sharding::Zero2 => 2,
        Sharding::Zero3 => 3,
    };
    k.put("zero_optimization.stage", stage);
    k.put("zero_optimization.overlap_comm", software.overlap_data);
    if software.overlap_parameters && matches!(t.sharding, Sharding::Zero1 | Sharding::Zero2) {
        let reason = "DeepSpeed overlaps gradients, but not the all-gather of parameters; leave it unset, or use zero3";
        draft.reject("overlap_data", reason);
    }
    k.put("zero_optimization.contiguous_gradients", true);
    match plan.cpu_offload {
        Some(CpuOffload::Optimizer) => drop(k.put("zero_optimization.offload_optimizer.device", "cpu")),
        Some(CpuOffload::Parameters) => {
            k.put("zero_optimization.offload_optimizer.device", "cpu");
            k.put("zero_optimization.offload_param.device", "cpu");
        }
        Some(CpuOffload::None) | None => {}
    }
    match plan.gradient_format {
        Some(Format::Fp32) => drop(k.put("grad_accum_dtype", "fp32")),
        Some(Format::Bf16) => drop(k.put("grad_accum_dtype", "bf16")),
        Some(Format::Fp16) => drop(k.put("grad_accum_dtype", "fp16")),
        Some(other) => {
            draft.reject("gradient_format", format!("gradients can be fp32, bf16 or fp16, not {}", other.name()));
        }
        None => {}
    }
    if t.tp > 1 {
        k.put("tensor_parallel.autotp_size", t.tp);
        if stage == 3 {
            draft.reject("tp", "tensor parallelism requires ZeRO stage 2 or lower");
        }
    }
    k.put("gradient_clipping", 1.0);
    draft.arguments.comment("recomputation");
    let full = if t.recompute == Recompute::Full { "true" } else { "false" };
    draft.arguments.put("--gradient_checkpointing", full);
    k
}
