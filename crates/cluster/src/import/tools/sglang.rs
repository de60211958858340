//! SGLang: `sglang.launch_server` and files with its flags.

use crate::import::Field;
use crate::import::fields::ReadFields;
use crate::import::place::Place;
use crate::import::value::Node;

/// Settings that are known and change nothing that is read.
const IGNORED: &str = "
enable_torch_compile attention_backend moe_runner_backend deepep_mode load_balance_method
prefill_round_robin_balance dist_init_addr node_rank num_continuous_decode_steps stream_interval watchdog_timeout
schedule_policy schedule_conservativeness enable_eplb moe_dense_tp_size nsa_prefill_backend nsa_decode_backend
enable_symm_mem fp4_gemm_backend enable_dp_lm_head enable_hierarchical_cache enable_hicache enable_p2p_check
enable_nan_detection enable_metrics enable_cache_report enable_custom_logit_processor enable_memory_saver
enable_multimodal enable_tokenizer_batch_encode enable_flashinfer_mla cuda_graph_bs mamba_ssm_dtype
enable_flashinfer_allreduce_fusion
";

/// Reads one flag or key. Returns false if it is not recognized.
pub(crate) fn flag(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    match key {
        "model_path" | "model" => super::model(out, node),
        "served_model_name" => super::served_name(out, node),
        "tp" | "tp_size" | "tensor_parallel_size" => out.int(Field::Tp, node),
        "pp" | "pp_size" | "pipeline_parallel_size" => out.int(Field::Pp, node),
        "dp" | "dp_size" | "data_parallel_size" => out.int(Field::Dp, node),
        "ep" | "ep_size" | "expert_parallel_size" => out.int(Field::Ep, node),
        "enable_dp_attention" => out.flag(Field::AttentionDp, node),
        "mem_fraction_static" => out.float(Field::GpuMemoryShare, node),
        "max_running_requests" => out.int(Field::MaxNumSeqs, node),
        "context_length" => out.int(Field::MaxModelLen, node),
        "chunked_prefill_size" => {
            if node.int() == Some(-1) {
                return out.set(Field::ChunkedPrefill, false, node.line);
            }
            out.int(Field::ChunkedPrefillSize, node)
        }
        "max_prefill_tokens" => out.int(Field::MaxPrefillTokens, node),
        "max_total_tokens" => out.int(Field::MaxTotalTokens, node),
        "disable_radix_cache" => out.set_negated(Field::PrefixCaching, node),
        "kv_cache_dtype" => super::kv(out, node),
        "dtype" => super::precision(out, node),
        "quantization" => super::weights(out, node),
        "cuda_graph_max_bs" => out.int(Field::CudaGraphMaxBatch, node),
        "disable_cuda_graph" => out.set_if_on(Field::EnforceEager, true, node),
        "page_size" => out.int(Field::BlockSize, node),
        "speculative_algorithm" | "speculative_algo" => super::speculative_method(out, node),
        "speculative_num_steps" => out.int(Field::SpeculativeSteps, node),
        "speculative_eagle_topk" => out.int(Field::SpeculativeTopk, node),
        "speculative_num_draft_tokens" => out.int(Field::SpeculativeTokens, node),
        "speculative_draft_model_path" | "speculative_draft_model" | "speculative_draft" => {
            out.text(Field::SpeculativeModel, node)
        }
        "attn_cp_size" | "context_parallel_size" => out.int(Field::Cp, node),
        "dcp_size" | "decode_context_parallel_size" => out.int(Field::Dcp, node),
        "moe_a2a_backend" => match node.text().as_deref() {
            Some("deepep") => deepep(out, node.line),
            Some("none") => out.set(Field::MoeDispatcher, "alltoall", node.line),
            Some(_) => false,
            None => out.record_unset_variables(node),
        },
        // 0.4.1 to 0.4.9: all tensor ranks.
        "enable_ep_moe" => node.switch() != Some(true) || out.set(Field::ExpertParallel, true, node.line),
        // Before 0.4.9.
        "enable_deepep_moe" => node.switch() != Some(true) || deepep(out, node.line),
        "enable_two_batch_overlap" => out.flag(Field::TwoBatchOverlap, node),
        "disable_overlap_schedule" => out.set_negated(Field::AsyncScheduling, node),
        "scheduler_recv_interval" => out.int(Field::RecvInterval, node),
        "enable_mixed_chunk" => out.flag(Field::ChunkedPrefill, node),
        "hicache_size" => out.float(Field::KvHostGb, node),
        "ep_num_redundant_experts" => out.int(Field::RedundantExperts, node),
        "nnodes" => super::server_nodes(out, node),
        "disaggregation_mode" => super::worker_role(out, node),
        "device" => super::device(out, node),
        "cpu_offload_gb" => out.float(Field::CpuOffloadGb, node),
        _ => {
            super::lists(IGNORED, key)
                || key.starts_with("disaggregation_")
                || key.starts_with("mamba_")
                || super::is_irrelevant(key)
        }
    }
}

/// DeepEP distributes the experts over all tensor ranks.
fn deepep(out: &mut ReadFields, line: Place) -> bool {
    out.set(Field::ExpertParallel, true, line);
    out.set(Field::MoeDispatcher, "deepep", line)
}

/// Whether the keys of a mapping are those of SGLang.
pub(crate) fn looks_like(keys: &[String]) -> bool {
    const OWN: &[&str] = &[
        "mem_fraction_static",
        "enable_dp_attention",
        "chunked_prefill_size",
        "max_running_requests",
        "disable_radix_cache",
        "disaggregation_mode",
        "context_length",
        "cuda_graph_max_bs",
        "dp_size",
        "ep_size",
        "max_prefill_tokens",
        "moe_runner_backend",
        "schedule_conservativeness",
        "enable_torch_compile",
    ];
    keys.iter().filter(|k| OWN.contains(&k.as_str())).count() >= 1
}
