//! Megatron-LM's arguments, and code shared with the tools based on it.

use atlas_catalog::transformer::{NormKind, TransformerKind};
use atlas_core::count::Count;
use atlas_core::plan::{
    AttentionKernel, ContextExchange, CpuOffload, Format, GraphCapture, MoeCapacity, MoeDispatcher, Optimizer, Sharding,
};
use atlas_plan::knob::Knob;

use super::recomputation::{Recomputation, recomputation};
use super::{Draft, Launcher, other_mode};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Training, count, maybe};
use crate::launch::words::{Arguments, Word};

/// Knobs that Megatron-LM and the tools based on it can express.
pub(super) const EXPRESSED: [Knob; 20] = [
    Knob::Tp,
    Knob::Pp,
    Knob::Vpp,
    Knob::Cp,
    Knob::Ep,
    Knob::Etp,
    Knob::Sp,
    Knob::Sharding,
    Knob::Global,
    Knob::Microbatch,
    Knob::Precision,
    Knob::GradientFormat,
    Knob::Optimizer,
    Knob::Recompute,
    Knob::Overlap,
    Knob::OverlapTensor,
    Knob::OverlapPipeline,
    Knob::OverlapExperts,
    Knob::OverlapData,
    Knob::MoeDispatcher,
];

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let t = job.training().ok_or_else(other_mode)?;
    let image = if job.vendor == "AMD" { "rocm/megatron-lm:latest" } else { "nvcr.io/nvidia/nemo:25.09" };
    let mut draft = Draft::new("megatron-lm", job, image);
    draft.expressed = EXPRESSED.to_vec();
    draft.expressed.extend([
        Knob::CpCommType,
        Knob::MtpLayers,
        Knob::Bf16Layers,
        Knob::RecomputeLayers,
        Knob::Shard,
        Knob::CpuOffload,
        Knob::MoeCapacity,
        Knob::AttentionKernel,
        Knob::GraphCapture,
        Knob::CudaGraphs,
        Knob::FirstLayers,
        Knob::LastLayers,
    ]);
    if job.transformer.kind != TransformerKind::Decoder {
        draft.reject("model", "only decoder models are supported");
    }
    draft.variables.push(("MEGATRON", "/opt/megatron-lm".to_owned()));
    draft.start = Launcher::Torchrun;
    draft.program = vec![Word::Shell("\"$MEGATRON/pretrain_gpt.py\"")];
    let mut a = Arguments::default();
    architecture(job, &mut a);
    a.comment("parallelism").put("--tensor-model-parallel-size", t.tp).put("--pipeline-model-parallel-size", t.pp);
    let outer_stages = outer_stages(job, t, &mut a, &mut draft);
    match layout(job, t).filter(|_| !outer_stages) {
        Some(layout) => a.put("--pipeline-model-parallel-layout", layout),
        None if t.vpp > 1 => a.put("--num-virtual-stages-per-pipeline-rank", t.vpp),
        None => &mut a,
    };
    a.put("--context-parallel-size", t.cp);
    let plan = &job.scenario.base.plan;
    a.put_optional("--cp-comm-type", plan.cp_comm_type.filter(|_| t.cp > 1).map(ContextExchange::name));
    if let Some(layers) = plan.mtp_layers.filter(|layers| *layers > 0.0) {
        if layout(job, t).is_some() {
            draft.reject(
                "mtp_layers",
                "not supported with uneven pipeline stages; choose pp and vpp whose product divides the layer count",
            );
        }
        a.put("--mtp-num-layers", count(layers));
    }
    if t.ep > 1 {
        a.put("--expert-model-parallel-size", t.ep);
    }
    // Without the flag, experts are split over all tensor-parallel ranks.
    if t.etp != t.tp && job.transformer.experts.is_some() {
        a.put("--expert-tensor-parallel-size", t.etp);
    }
    a.put_switch("--sequence-parallel", t.sequence_parallel);
    states(job, t, &mut a, &mut draft);
    a.comment("batch and sequence")
        .put("--micro-batch-size", t.micro)
        .put("--global-batch-size", t.global)
        .put("--seq-length", t.sequence)
        .put("--max-position-embeddings", t.sequence)
        .put("--train-iters", t.steps);
    a.comment("precision");
    precision(job, t, &mut a, &mut draft);
    a.comment("recomputation");
    match recomputation(job, t, &mut draft) {
        Recomputation::Nothing => {}
        Recomputation::Modules(modules) => {
            a.put("--recompute-granularity", "selective").put_list("--recompute-modules", &modules);
        }
        Recomputation::Layers(layers) => {
            let method = if layers.is_some() { "block" } else { "uniform" };
            a.put("--recompute-granularity", "full").put("--recompute-method", method);
            a.put("--recompute-num-layers", layers.unwrap_or(1));
        }
    }
    switches(job, t, &mut a, &mut draft);
    a.comment("not planned: data, tokenizer and learning rate; replace the mock data with yours")
        .push_unchecked(["--mock-data".into()])
        .push_unchecked(["--tokenizer-type".into(), "NullTokenizer".into()])
        .push_unchecked(["--lr".into(), "1.0e-5".into()])
        .push_unchecked(["--log-interval".into(), "1".into(), "--log-throughput".into()])
        .push_unchecked(["--eval-iters".into(), "0".into()]);
    draft.arguments = a;
    draft.exports.push(("CUDA_DEVICE_MAX_CONNECTIONS", "1".into()));
    Ok(draft)
}

/// Adds the widths and counts of the architecture.
fn architecture(job: &Job<'_>, a: &mut Arguments) {
    let m = job.transformer;
    a.comment(&format!("model: {}", job.model.id));
    a.put("--num-layers", count(m.n_layers)).put("--hidden-size", count(m.hidden_size));
    a.put("--ffn-hidden-size", count(m.ffn_hidden_size)).put("--num-attention-heads", count(m.n_heads));
    if m.latent.is_none() && m.n_kv_heads < m.n_heads {
        a.put_switch("--group-query-attention", true).put("--num-query-groups", count(m.n_kv_heads));
    }
    if m.latent.is_none() && m.head_dim * m.n_heads != m.hidden_size {
        a.put("--kv-channels", count(m.head_dim));
    }
    if let Some(latent) = m.latent {
        a.put_switch("--multi-latent-attention", true);
        if let Some(rank) = latent.q_lora_rank {
            a.put("--q-lora-rank", count(rank));
        }
        a.put("--kv-lora-rank", count(latent.kv_lora_rank))
            .push_unchecked(["--qk-head-dim".into(), count(latent.qk_nope_dim).into()])
            .push_unchecked(["--qk-pos-emb-head-dim".into(), count(latent.qk_rope_dim).into()])
            .push_unchecked(["--v-head-dim".into(), count(latent.v_head_dim).into()]);
    }
    a.put("--vocab-size", m.vocab_size.map_or(1, count));
    a.put_switch("--swiglu", m.gated_mlp).put_switch("--untie-embeddings-and-output-weights", !m.tied_embeddings);
    let positions = if m.learned_positions { "learned_absolute" } else { "rope" };
    a.push_unchecked(["--position-embedding-type".into(), positions.into()]);
    if m.norm == NormKind::RmsNorm {
        a.push_unchecked(["--normalization".into(), "RMSNorm".into()]);
    }
    if !m.mlp_bias {
        a.push_unchecked(["--disable-bias-linear".into()]);
    }
    a.push_unchecked(["--attention-dropout".into(), "0".into(), "--hidden-dropout".into(), "0".into()]);
    if let Some(experts) = m.experts {
        a.put("--num-experts", count(experts.count))
            .put("--moe-router-topk", count(experts.per_token))
            .put("--moe-ffn-hidden-size", count(experts.ffn_hidden_size));
        if experts.shared_ffn_hidden_size > 0.0 {
            a.put("--moe-shared-expert-intermediate-size", count(experts.shared_ffn_hidden_size));
        }
        if experts.first_dense_layers > 0.0 {
            let dense = count(experts.first_dense_layers);
            let frequency = format!("([0]*{dense}+[1]*{})", count(m.n_layers) - dense);
            a.put("--moe-layer-freq", frequency);
        }
        a.put_switch("--moe-grouped-gemm", true);
    }
}

/// Adds stated numbers of layers of the first and last stage. The stages between them must be even. Returns whether any
/// is stated.
fn outer_stages(job: &Job<'_>, t: &Training, a: &mut Arguments, draft: &mut Draft) -> bool {
    let plan = &job.scenario.base.plan;
    let stated = |layers: Option<Count>| maybe(layers).filter(|_| t.pp > 1);
    let (first, last) = (stated(plan.first_layers), stated(plan.last_layers));
    let (outer, stages) = (first.into_iter().chain(last), t.pp - [first, last].iter().flatten().count() as u64);
    let between = count(job.transformer.n_layers).checked_sub(outer.sum());
    let even = between.is_some_and(|layers| if stages == 0 { layers == 0 } else { layers.is_multiple_of(stages) });
    if (first.is_some() || last.is_some()) && (t.vpp > 1 || !even) {
        let knob = if first.is_some() { "first_layers" } else { "last_layers" };
        draft.reject(knob, "requires vpp = 1, and stages between the first and the last with equal numbers of layers");
    }
    a.put_optional("--decoder-first-pipeline-num-layers", first);
    a.put_optional("--decoder-last-pipeline-num-layers", last);
    first.is_some() || last.is_some()
}

/// Layers of each virtual stage, if they cannot be distributed evenly: the leading stages have one more.
fn layout(job: &Job<'_>, t: &Training) -> Option<String> {
    let (layers, stages) = (count(job.transformer.n_layers), t.pp * t.vpp);
    if layers % stages == 0 {
        return None;
    }
    let stage = |index: u64| {
        let own = layers / stages + u64::from(index < layers % stages);
        let layers = "t".repeat(usize::try_from(own).unwrap_or(0));
        match index {
            0 => format!("E{layers}"),
            last if last + 1 == stages => format!("{layers}L"),
            _ => layers,
        }
    };
    Some((0..stages).map(stage).collect::<Vec<_>>().join("|"))
}

/// Adds the flags for sharding, for the overlap of its communication, and for offloading.
fn states(job: &Job<'_>, t: &Training, a: &mut Arguments, draft: &mut Draft) {
    let software = job.scenario.training_software(&job.scenario.base);
    match t.sharding {
        Sharding::None => {}
        Sharding::Zero1 => drop(a.put_switch("--use-distributed-optimizer", true)),
        Sharding::Zero2 | Sharding::Zero3 => {
            let strategy = if t.sharding == Sharding::Zero2 { "optim_grads" } else { "optim_grads_params" };
            a.put_switch("--use-megatron-fsdp", true).put("--data-parallel-sharding-strategy", strategy);
            if t.pp > 1 && t.sharding == Sharding::Zero2 {
                draft.reject(
                    "sharding",
                    "launch files for Megatron-LM do not support zero2 with pipeline parallelism; use zero1 or zero3",
                );
            }
        }
    }
    a.put_switch("--overlap-grad-reduce", software.overlap_data)
        .put_switch("--overlap-param-gather", software.overlap_data && t.sharding != Sharding::None);
    if let Some(shard) = t.shard.filter(|shard| *shard < t.dp) {
        match t.sharding {
            Sharding::Zero1 if t.dp.is_multiple_of(shard) => {
                a.put("--num-distributed-optimizer-instances", t.dp / shard);
            }
            _ => draft.reject("shard", "requires zero1 and a shard size that divides dp"),
        }
    }
    match job.scenario.base.plan.cpu_offload {
        Some(CpuOffload::Optimizer) => {
            a.put_switch("--optimizer-cpu-offload", true).put_switch("--use-precision-aware-optimizer", true);
        }
        Some(CpuOffload::Parameters) => {
            draft.reject("cpu_offload", "Megatron-LM cannot offload weights to host memory");
        }
        Some(CpuOffload::None) | None => {}
    }
}

fn precision(job: &Job<'_>, t: &Training, a: &mut Arguments, draft: &mut Draft) {
    match t.format {
        Format::Bf16 => drop(a.put_switch("--bf16", true)),
        Format::Fp16 => drop(a.put_switch("--fp16", true)),
        Format::Fp8 => drop(a.put_switch("--bf16", true).put("--fp8-format", "hybrid")),
        Format::Mxfp8 => drop(a.put_switch("--bf16", true).put("--fp8-format", "e4m3").put("--fp8-recipe", "mxfp8")),
        Format::Fp4 => drop(a.put_switch("--bf16", true).put("--fp4-format", "e2m1").put("--fp4-recipe", "nvfp4")),
        other => draft
            .reject("precision", format!("launch files for Megatron-LM do not support training in {}", other.name())),
    }
    if let Some([start, end]) = t.bf16_ends {
        if end > count(job.transformer.n_layers) / t.pp {
            draft.reject("bf16_layers", "at each end of the model, at most the layers of a pipeline stage");
        }
        // Delayed scaling, the default, does not support layers in 16 bit.
        if t.format == Format::Fp8 {
            a.put("--fp8-recipe", "tensorwise");
        }
        a.put_switch("--first-last-layers-bf16", true);
        a.put("--num-layers-at-start-in-bf16", start).put("--num-layers-at-end-in-bf16", end);
    }
    match job.scenario.base.plan.gradient_format {
        Some(Format::Fp32) => drop(a.put_switch("--accumulate-allreduce-grads-in-fp32", true)),
        Some(Format::Bf16) => drop(a.put_switch("--grad-reduce-in-bf16", true)),
        Some(other) => draft.reject("gradient_format", format!("gradients can be fp32 or bf16, not {}", other.name())),
        None => {}
    }
    match t.optimizer {
        Optimizer::Adam => drop(a.put("--optimizer", "adam")),
        Optimizer::Sgd => drop(a.put("--optimizer", "sgd")),
        Optimizer::Adam16bit => {
            a.put("--optimizer", "adam").put_switch("--use-precision-aware-optimizer", true);
            a.put("--exp-avg-dtype", "bf16").put("--exp-avg-sq-dtype", "bf16");
        }
        other => draft
            .reject("optimizer", format!("launch files for Megatron-LM do not support the {} optimizer", other.name())),
    }
}

/// Adds the flags for kernels, CUDA graphs and the dispatch of tokens to experts.
fn switches(job: &Job<'_>, t: &Training, a: &mut Arguments, draft: &mut Draft) {
    let (scenario, phase) = (job.scenario, &job.scenario.base);
    let (software, switches) = (scenario.training_software(phase), &phase.plan.switches);
    a.comment("kernels and overlap");
    a.put_switch("--tp-comm-overlap", t.tp > 1 && t.sequence_parallel && software.overlap_tensor);
    a.put_switch("--no-overlap-p2p-communication", t.vpp > 1 && !software.overlap_pipeline);
    if job.transformer.experts.is_some() {
        a.put_switch("--overlap-moe-expert-parallel-comm", t.ep > 1 && software.overlap_experts);
        match scenario.moe_dispatcher(phase) {
            MoeDispatcher::AllToAll => drop(a.put("--moe-token-dispatcher-type", "alltoall")),
            MoeDispatcher::DeepEp => {
                a.put("--moe-token-dispatcher-type", "flex").put_switch("--moe-enable-deepep", true);
            }
            MoeDispatcher::HybridEp => {
                draft.reject("moe_dispatcher", "launch files for Megatron-LM do not support hybridep");
            }
        }
        a.put_switch("--moe-permute-fusion", software.fused_experts);
        if switches.moe_capacity == Some(MoeCapacity::Dropped) {
            a.put("--moe-expert-capacity-factor", "1.0");
        }
    }
    match switches.attention_kernel {
        Some(AttentionKernel::Unfused) => drop(a.put("--attention-backend", "unfused")),
        Some(AttentionKernel::Flash2) => drop(a.put("--attention-backend", "flash")),
        Some(AttentionKernel::Native) => drop(a.put("--attention-backend", "fused")),
        Some(AttentionKernel::Flash1) => draft.reject("attention_kernel", "Megatron-LM does not support flash1"),
        None => {}
    }
    let captured = switches.graph_capture.or((phase.plan.graphs == Some(true)).then_some(GraphCapture::Layer));
    match captured {
        Some(GraphCapture::Layer) => drop(a.put("--cuda-graph-impl", "local")),
        Some(GraphCapture::FullIteration) => {
            a.put("--cuda-graph-impl", "local").put("--cuda-graph-scope", "full_iteration");
        }
        Some(GraphCapture::None) | None => {}
    }
}
