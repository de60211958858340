//! TensorRT-LLM: `trtllm-serve`, `trtllm-bench` and YAML files with LLM arguments.

use crate::import::Field;
use crate::import::fields::ReadFields;
use crate::import::value::{Node, Value};

/// Reads one flag or dotted key. Returns false if it is not recognized.
pub(crate) fn flag(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    // Sections of TensorRT-LLM's own configuration and of MLPerf's.
    let key = ["llm_api_args.", "build_config.", "build_flags.", "trtllm_build_flags.", "trtllm_runtime_flags."]
        .iter()
        .find_map(|section| key.strip_prefix(section))
        .unwrap_or(key);
    match key {
        "model" | "model_path" | "hf_model" | "model_name" => {
            if key != "model" && out.fields.has(Field::Model) {
                return true;
            }
            super::model(out, node)
        }
        "served_model_name" => super::served_name(out, node),
        "tensor_parallel_size" | "tp_size" | "tp" | "tensor_parallelism" => out.int(Field::Tp, node),
        "pipeline_parallel_size" | "pp_size" | "pp" | "pipeline_parallelism" => out.int(Field::Pp, node),
        "moe_expert_parallel_size" | "ep_size" | "ep" | "expert_parallel_size" => out.int(Field::Ep, node),
        "moe_tensor_parallel_size" => out.int(Field::MoeTp, node),
        "context_parallel_size" | "cp_size" => out.int(Field::Cp, node),
        "max_batch_size" => out.int(Field::MaxNumSeqs, node),
        _ if key.starts_with("gpu_batch_size.") => out.int(Field::MaxNumSeqs, node),
        "max_num_tokens" => out.int(Field::MaxNumBatchedTokens, node),
        "max_seq_len" => out.int(Field::MaxModelLen, node),
        "kv_cache_free_gpu_mem_fraction"
        | "kvcache_free_gpu_mem_frac"
        | "kv_cache_free_gpu_memory_fraction"
        | "free_gpu_memory_fraction"
        | "kv_cache_config.free_gpu_memory_fraction" => out.float(Field::GpuMemoryShare, node),
        "kv_cache_dtype" | "kv_cache_config.dtype" => super::kv(out, node),
        "dtype" => super::precision(out, node),
        "enable_attention_dp" => out.flag(Field::AttentionDp, node),
        "enable_chunked_prefill" | "enable_chunked_context" => out.flag(Field::ChunkedPrefill, node),
        "kv_cache_config.enable_block_reuse" | "enable_block_reuse" => out.flag(Field::PrefixCaching, node),
        "kv_cache_config.tokens_per_block" => out.int(Field::BlockSize, node),
        "cuda_graph_config" => node.value != Value::Null || out.set(Field::EnforceEager, true, node.line),
        "cuda_graph_config.max_batch_size" => out.int(Field::CudaGraphMaxBatch, node),
        "quantization" | "quant_algo" | "quant_config.quant_algo" | "precision" => super::weights(out, node),
        "disable_overlap_scheduler" => out.set_negated(Field::AsyncScheduling, node),
        "max_beam_width" => out.int(Field::Beams, node),
        "scheduler_config.capacity_scheduler_policy" => match node.text().as_deref() {
            Some("GUARANTEED_NO_EVICT") => out.set(Field::ReserveOutput, true, node.line),
            Some("MAX_UTILIZATION") => out.set(Field::ReserveOutput, false, node.line),
            _ => false,
        },
        "kv_cache_config.host_cache_size" => {
            if let Some(bytes) = node.float() {
                out.set(Field::KvHostGb, bytes / 1e9, node.line);
            }
            true
        }
        "moe_config.load_balancer.num_slots" => out.int(Field::ExpertSlots, node),
        "speculative_config.decoding_type" => super::speculative_method(out, node),
        "speculative_config.max_draft_len" | "speculative_config.num_nextn_predict_layers" => {
            out.int(Field::SpeculativeTokens, node)
        }
        "speculative_config.speculative_model_dir" | "speculative_config.speculative_model" => {
            out.text(Field::SpeculativeModel, node)
        }
        "disaggregation_mode" => super::worker_role(out, node),
        "extra_llm_api_options" | "extra_engine_args" | "config" | "extra_llm_api_options_file" => {
            super::reference(out, node)
        }
        "backend"
        | "print_iter_log"
        | "stream_interval"
        | "num_postprocess_workers"
        | "sampler_type"
        | "gpus_per_node"
        | "override_engine_args"
        | "modality"
        | "streaming" => true,
        _ => {
            [
                "cuda_graph_config.",
                "moe_config.",
                "cache_transceiver_config.",
                "torch_compile_config.",
                "kv_cache_config.",
                "scheduler_config.",
                "speculative_config.",
                "attention_dp_config.",
                "nvfp4_gemm_config.",
                "perf_metrics",
            ]
            .iter()
            .any(|p| key.starts_with(p))
                || super::is_irrelevant(key)
        }
    }
}

/// Whether the keys of a mapping are LLM arguments.
pub(crate) fn looks_like(keys: &[String]) -> bool {
    const OWN: &[&str] = &[
        "kv_cache_config",
        "llm_api_args",
        "cuda_graph_config",
        "moe_expert_parallel_size",
        "enable_attention_dp",
        "max_num_tokens",
        "kv_cache_free_gpu_mem_fraction",
        "cache_transceiver_config",
        "moe_config",
        "print_iter_log",
        "disable_overlap_scheduler",
        "enable_chunked_context",
    ];
    keys.iter().any(|k| OWN.contains(&k.as_str()))
}
