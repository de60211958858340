//! Features that the serving engines share under different flags: speculative decoding, redundant experts, and KV cache
//! in host memory.

use atlas_core::plan::{DraftMethod, MoeDispatcher};
use atlas_core::units::BYTES_PER_GB;
use atlas_plan::knob::Knob;
use serde_json::json;

use super::Draft;
use crate::launch::job::{Job, Serving, count};
use crate::launch::keys::Keys;
use crate::launch::words::Arguments;

/// Knobs that all engines of this module can express.
pub(super) const EXPRESSED: [Knob; 4] = [Knob::DraftTokens, Knob::DraftMethod, Knob::RedundantExperts, Knob::KvHostGb];
/// Knobs that only vLLM and SGLang can express.
pub(super) const OVERLAPPED: [Knob; 2] = [Knob::TwoBatchOverlap, Knob::MoeDispatcher];

/// Settings of speculative decoding.
struct Drafts {
    method: DraftMethod,
    tokens: u64,
    /// Weights of the draft model, if the method requires separate ones.
    weights: Option<String>,
}

/// Settings of speculative decoding. Reports an error if the method, or the weights that it requires, are missing.
fn drafts(job: &Job<'_>, s: &Serving, draft: &mut Draft) -> Option<Drafts> {
    let tokens = s.draft_tokens?;
    let Some(method) = job.scenario.base.plan.serving.draft_method else {
        draft.reject("draft_method", "not set, but required by draft_tokens; set mtp, eagle3, draft-model or ngram");
        return None;
    };
    let weights = job.options.draft_model.clone();
    if weights.is_none() && matches!(method, DraftMethod::Eagle3 | DraftMethod::DraftModel) {
        let reason = format!("{} requires separate weights; name them with --draft-model", method.name());
        draft.reject("draft_method", reason);
        return None;
    }
    Some(Drafts { method, tokens, weights })
}

/// Host memory for the KV cache, GB per accelerator.
fn host_cache(job: &Job<'_>) -> Option<f64> {
    let [(room, _), ..] = job.scenario.base.plan.serving.kv_tiers;
    room.filter(|gb| *gb > 0.0)
}

/// Number of redundant experts per layer.
fn copies(job: &Job<'_>) -> Option<u64> {
    job.scenario.base.plan.serving.redundant_experts.filter(|copies| *copies > 0.0).map(count)
}

/// The first release of SGLang that selects the dispatcher of experts by name.
const SINCE_MOE_BACKENDS: &str = "0.5.0";

/// Whether DeepEP dispatches tokens to experts. Reports an error for a dispatcher that only supports training.
fn direct_dispatch(job: &Job<'_>, draft: &mut Draft) -> bool {
    match job.scenario.base.plan.switches.moe_dispatcher {
        Some(MoeDispatcher::DeepEp) => true,
        Some(MoeDispatcher::HybridEp) => {
            draft.reject("moe_dispatcher", "hybridep supports only training; use deepep");
            false
        }
        Some(MoeDispatcher::AllToAll) | None => false,
    }
}

/// Adds the flags of vLLM.
pub(super) fn vllm(job: &Job<'_>, s: &Serving, a: &mut Arguments, draft: &mut Draft) {
    let plan = &job.scenario.base.plan.serving;
    if let Some(Drafts { method, tokens, weights }) = drafts(job, s, draft) {
        let mut config = match method {
            DraftMethod::Mtp => json!({ "method": "mtp" }),
            DraftMethod::Eagle3 => json!({ "method": "eagle3", "model": weights }),
            DraftMethod::DraftModel => json!({ "method": "draft_model", "model": weights }),
            DraftMethod::Ngram => json!({ "method": "ngram", "prompt_lookup_max": tokens }),
        };
        if let Some(map) = config.as_object_mut() {
            map.insert("num_speculative_tokens".to_owned(), tokens.into());
        }
        a.comment("speculative decoding").put("--speculative-config", config.to_string());
    }
    if let Some(copies) = copies(job) {
        a.put_switch("--enable-eplb", true)
            .put("--eplb-config", json!({ "num_redundant_experts": copies }).to_string());
    }
    if direct_dispatch(job, draft) {
        // The low-latency mode is for few tokens per step and supports CUDA graphs; the high-throughput mode is for
        // many tokens.
        let mode = if s.only_prefills { "deepep_high_throughput" } else { "deepep_low_latency" };
        a.put("--all2all-backend", mode);
    }
    a.put_switch("--enable-dbo", plan.two_batch_overlap == Some(true));
    if let Some(gb) = host_cache(job) {
        // The buffer is shared by all ranks of the server.
        let all = gb * 1e9 * (s.tp * s.pp) as f64 / BYTES_PER_GB;
        a.put("--kv-offloading-backend", "native").put("--kv-offloading-size", format!("{all:.0}"));
    }
}

/// Adds the flags of SGLang.
pub(super) fn sglang(job: &Job<'_>, s: &Serving, a: &mut Arguments, draft: &mut Draft) {
    let plan = &job.scenario.base.plan.serving;
    if let Some(Drafts { method, tokens, weights }) = drafts(job, s, draft) {
        let algorithm = match method {
            DraftMethod::Mtp => "NEXTN",
            DraftMethod::Eagle3 => "EAGLE3",
            DraftMethod::DraftModel => "STANDALONE",
            DraftMethod::Ngram => "NGRAM",
        };
        a.comment("speculative decoding").put("--speculative-algorithm", algorithm);
        a.put_optional("--speculative-draft-model-path", weights);
        if method == DraftMethod::Ngram {
            a.put("--speculative-num-draft-tokens", tokens);
        } else {
            // A single branch: each step drafts one token. The last accepted token is verified together with the
            // drafted ones.
            a.put("--speculative-num-steps", tokens)
                .put("--speculative-eagle-topk", 1)
                .put("--speculative-num-draft-tokens", tokens + 1);
        }
    }
    if let Some(copies) = copies(job) {
        a.put_switch("--enable-eplb", true).put("--ep-num-redundant-experts", copies);
    }
    if direct_dispatch(job, draft) {
        if job.is_older(SINCE_MOE_BACKENDS) {
            a.put_switch("--enable-deepep-moe", true);
        } else {
            a.put("--moe-a2a-backend", "deepep");
        }
    }
    a.put_switch("--enable-two-batch-overlap", plan.two_batch_overlap == Some(true));
    if let Some(gb) = host_cache(job) {
        a.put_switch("--enable-hierarchical-cache", true).put("--hicache-size", count(gb));
    }
}

/// Adds the keys of TensorRT-LLM's configuration file.
pub(super) fn trtllm(job: &Job<'_>, s: &Serving, k: &mut Keys, draft: &mut Draft) {
    if let Some(Drafts { method, tokens, weights }) = drafts(job, s, draft) {
        let decoding = match method {
            DraftMethod::Mtp => "MTP",
            DraftMethod::Eagle3 => "Eagle3",
            DraftMethod::DraftModel => "DraftTarget",
            DraftMethod::Ngram => "NGram",
        };
        k.put("speculative_config.decoding_type", decoding);
        match method {
            DraftMethod::Mtp => k.put("speculative_config.num_nextn_predict_layers", tokens),
            _ => k.put("speculative_config.max_draft_len", tokens),
        };
        if let Some(weights) = weights {
            k.put_unchecked("speculative_config.speculative_model_dir", weights);
        }
    }
    if let Some(copies) = copies(job) {
        let experts = job.transformer.experts.as_ref().map_or(0, |experts| count(experts.count));
        k.put("moe_config.load_balancer", json!({ "num_slots": experts + copies, "layer_updates_per_iter": 1 }));
    }
    if let Some(gb) = host_cache(job) {
        k.put("kv_cache_config.host_cache_size", count(gb * 1e9));
    }
}
