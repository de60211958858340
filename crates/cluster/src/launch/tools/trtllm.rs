//! TensorRT-LLM: `trtllm-serve` with a file of LLM arguments.

use atlas_core::plan::{Format, cache_format_name};
use atlas_plan::knob::Knob;

use super::serving::{servers, set_servers};
use super::{Config, Draft, MultiNode, features, other_mode, serving};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Serving};
use crate::launch::keys::Keys;
use crate::launch::words::Arguments;

const EXPRESSED: [Knob; 14] = [
    Knob::Tp,
    Knob::Pp,
    Knob::Ep,
    Knob::AttentionDp,
    Knob::Precision,
    Knob::KvPrecision,
    Knob::MaxNumSeqs,
    Knob::MaxNumBatchedTokens,
    Knob::GpuMemoryUtilization,
    Knob::ChunkedPrefill,
    Knob::CudaGraphs,
    Knob::OverlapScheduling,
    Knob::ReserveOutput,
    Knob::Beams,
];

/// Knobs that TensorRT-LLM can express.
pub(super) fn expressed() -> Vec<Knob> {
    EXPRESSED.into_iter().chain(features::EXPRESSED).collect()
}

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let s = job.serving().ok_or_else(other_mode)?;
    let release = job.release.as_deref().unwrap_or("1.2.0");
    let mut draft = Draft::new("trtllm-serve", job, format!("nvcr.io/nvidia/tensorrt-llm/release:{release}"));
    draft.expressed = expressed();
    serving::add_stored(job, s, &mut draft);
    serving::check_model(job, "TensorRT-LLM", false, &mut draft);
    let servers = servers(job, s, false);
    draft.program = vec!["trtllm-serve".into(), job.repository()?.into()];
    let mut a = Arguments::default();
    a.comment("parallelism").put("--tensor_parallel_size", s.tp * s.attention_dp).put("--pipeline_parallel_size", s.pp);
    if s.ep > 1 {
        a.put("--moe_expert_parallel_size", s.ep);
    }
    a.comment("scheduler and memory").put("--max_seq_len", s.length());
    a.put_optional("--max_batch_size", s.max_num_seqs).put_optional("--max_num_tokens", s.max_num_batched_tokens);
    a.comment("address").push_unchecked(["--host".into(), "0.0.0.0".into()]);
    let keys = extra_options(job, s, &mut draft);
    if !keys.is_empty() {
        a.put("--config", "./trtllm.yaml");
        draft.configs.push(Config {
            name: "trtllm.yaml",
            text: keys.yaml(&format!("# model: {}\n", job.model.id)),
            table: "trtllm-yaml",
            keys: keys.settings(""),
        });
    }
    draft.arguments = a;
    set_servers(job, s, servers, &mut draft);
    if servers.nodes > 1 {
        // Slurm starts one rank per device. The launcher makes the first one the server.
        draft.program.insert(0, "trtllm-llmapi-launch".into());
        draft.spread = Some(MultiNode { nodes: servers.nodes, flags: String::new() });
    }
    Ok(draft)
}

/// Settings that can only be stated in the file.
pub(super) fn extra_options(job: &Job<'_>, s: &Serving, draft: &mut Draft) -> Keys {
    let plan = &job.scenario.base.plan.serving;
    let mut k = Keys::default();
    if s.attention_dp > 1 {
        if s.tp > 1 {
            let reason = "TensorRT-LLM makes every rank an attention group: attention_dp requires tp = 1";
            draft.reject("attention_dp", reason);
        }
        k.put("enable_attention_dp", true);
    }
    match serving::converted(job, s, draft) {
        Some(Format::Bf16) => drop(k.put("dtype", "bfloat16")),
        Some(Format::Fp16) => drop(k.put("dtype", "float16")),
        Some(_) if job.options.model.is_none() => {
            draft.reject("precision", "fp8 requires a quantized checkpoint; name one with --model-path");
        }
        Some(_) | None => {}
    }
    if s.quantized == Some(Format::Fp8) && job.options.model.is_some() {
        k.put_unchecked("quant_config.quant_algo", "FP8");
    }
    if let Some(format) = s.kv {
        match cache_format_name("tensorrt-llm", format) {
            Some(name) => drop(k.put("kv_cache_config.dtype", name)),
            None => draft.reject_cache_format(format),
        }
    }
    if let Some(share) = s.memory_share {
        // The fraction counts only the memory that the weights leave free.
        let weights = job.scenario.weights_share(&job.scenario.base).unwrap_or(0.0);
        let of_free = (share - weights) / (1.0 - weights);
        if of_free > 0.0 {
            k.put("kv_cache_config.free_gpu_memory_fraction", (1e4 * of_free).round() / 1e4);
        } else {
            draft.reject("gpu_memory_utilization", format!("the weights need more than {share} of device memory"));
        }
    }
    if let Some(on) = s.chunked_prefill {
        k.put("enable_chunked_prefill", on);
    }
    if s.graphs == Some(false) {
        k.put("cuda_graph_config", serde_json::Value::Null);
    }
    if let Some(on) = plan.overlap_scheduling {
        k.put("disable_overlap_scheduler", !on);
    }
    if let Some(on) = plan.reserve_output {
        let policy = if on { "GUARANTEED_NO_EVICT" } else { "MAX_UTILIZATION" };
        k.put("scheduler_config.capacity_scheduler_policy", policy);
    }
    if let Some(beams) = plan.beams.filter(|beams| *beams > 1.0) {
        k.put("max_beam_width", crate::launch::job::count(beams));
    }
    features::trtllm(job, s, &mut k, draft);
    k
}
