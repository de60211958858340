//! llama.cpp's server.

use atlas_core::plan::{Format, cache_format_name};
use atlas_plan::knob::Knob;

use super::serving::{servers, set_servers};
use super::{Draft, other_mode, serving};
use crate::launch::Unsupported;
use crate::launch::job::Job;
use crate::launch::words::Arguments;

const EXPRESSED: [Knob; 6] =
    [Knob::Tp, Knob::Pp, Knob::Precision, Knob::WeightBits, Knob::KvPrecision, Knob::MaxNumSeqs];

/// Formats in which GGUF files store weights.
const GGUF_FORMATS: [Format; 4] = [Format::Int4, Format::Int8, Format::Fp16, Format::Bf16];

/// The first release whose flags were read.
const SINCE: &str = "b4748";
/// The first release that is planned with FlashAttention.
const SINCE_FLASH: &str = "b6325";

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let s = job.serving().ok_or_else(other_mode)?;
    let image = if job.vendor == "AMD" {
        "ghcr.io/ggml-org/llama.cpp:server-rocm"
    } else {
        "ghcr.io/ggml-org/llama.cpp:server-cuda"
    };
    let mut draft = Draft::new("llama-server", job, image);
    draft.expressed = EXPRESSED.to_vec();
    draft.expressed.push(Knob::MaxNumBatchedTokens);
    serving::check_model(job, "llama.cpp", false, &mut draft);
    let servers = servers(job, s, false);
    if servers.nodes > 1 {
        draft.reject("tp", "launch files for llama.cpp do not support servers that span several nodes");
    }
    if job.is_older(SINCE) {
        let reason =
            format!("launch files for llama.cpp require {SINCE} or later; earlier servers have other names and flags");
        draft.reject("software", reason);
    }
    draft.program = vec!["llama-server".into()];
    let mut a = Arguments::default();
    // The weights are converted files, which the user must specify.
    match &job.options.model {
        Some(path) if path.ends_with(".gguf") => drop(a.put("--model", path.as_str())),
        Some(repository) => drop(a.put("--hf-repo", repository.as_str())),
        None => draft.reject("model", "name a GGUF file, or a repository with GGUF files, with --model-path"),
    }
    serving::note_stored(job, &[Knob::Precision, Knob::WeightBits], &mut draft);
    if let Some(format) = s.quantized.filter(|format| !GGUF_FORMATS.contains(format)) {
        let reason = format!("GGUF weights cannot be stored in {}; set int4, int8, fp16 or bf16", format.name());
        draft.reject("precision", reason);
    }
    a.comment("devices").put("--gpu-layers", 999_u64);
    if s.devices() > 1 {
        // The split mode `row` is tensor parallelism; `layer` is pipeline parallelism.
        if s.tp > 1 && s.pp > 1 {
            draft.reject("pp", "llama.cpp splits the model by rows (tp) or by layers (pp); set one of them to 1");
        }
        a.put("--split-mode", if s.tp > 1 { "row" } else { "layer" });
    } else {
        a.put("--split-mode", "none");
    }
    a.comment("slots and context");
    let slots = s.max_num_seqs.unwrap_or_else(|| s.concurrency.div_ceil(s.replicas));
    // All slots share the context.
    a.put("--parallel", slots).put("--ctx-size", s.length().saturating_mul(slots));
    a.put_optional("--batch-size", s.max_num_batched_tokens);
    if let Some(format) = s.kv {
        match cache_format_name("llama.cpp", format) {
            Some(name) => drop(a.put("--cache-type-k", name).put("--cache-type-v", name)),
            None => draft.reject_cache_format(format),
        }
    }
    if job.is_older(SINCE_FLASH) {
        if s.kv.is_some_and(|format| matches!(format, Format::Int8 | Format::Int4)) {
            let reason = format!("a quantized cache requires FlashAttention, which is planned from {SINCE_FLASH} on");
            draft.reject("kv_precision", reason);
        }
    } else {
        a.put("--flash-attn", "on");
    }
    a.comment("address").push_unchecked(["--host".into(), "0.0.0.0".into()]);
    draft.arguments = a;
    set_servers(job, s, servers, &mut draft);
    Ok(draft)
}
