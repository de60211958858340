//! vLLM: `vllm serve`, its API server modules, `--config` files and the keys of charts.

use crate::import::Field;
use crate::import::fields::ReadFields;
use crate::import::json;
use crate::import::place::Place;
use crate::import::value::{Node, Value};

/// Flags of which `argparse` accepts a prefix.
const LONG: &[&str] = &[
    "model",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "enable_expert_parallel",
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "kv_cache_dtype",
    "quantization",
    "enable_prefix_caching",
    "enable_chunked_prefill",
    "enforce_eager",
    "block_size",
    "swap_space",
    "cpu_offload_gb",
    "speculative_config",
    "async_scheduling",
];

/// Settings that are known and change nothing that is read.
const IGNORED: &str = "
max_lora_rank max_loras enable_lora compilation_config cc max_cudagraph_capture_size cuda_graph_sizes
attention_backend stream_interval distributed_executor_backend enable_eplb data_parallel_hybrid_lb
disable_custom_all_reduce enable_reasoning config max_seq_len_to_capture num_scheduler_steps generation_config
limit_mm_per_prompt hf_overrides data_parallel_address data_parallel_start_rank headless data_parallel_rpc_port
safetensors_load_strategy attention_config uvicorn_log_level
";

/// Reads one flag or key. Returns false if it is not recognized.
pub(crate) fn flag(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    // Negations: `--no-x`, `no-x: true`, and `no-x: false`, which enables `x`.
    if let Some(rest) = key.strip_prefix("no_") {
        let on = node.switch().unwrap_or(true);
        return flag(rest, &Node::new(Value::Bool(!on), node.line), out);
    }
    match key {
        "model" | "model_tag" | "model_id" | "model_name" => super::model(out, node),
        "served_model_name" => super::served_name(out, node),
        "tensor_parallel_size" | "tp" | "tp_size" => out.int(Field::Tp, node),
        "pipeline_parallel_size" | "pp" | "pp_size" => out.int(Field::Pp, node),
        "data_parallel_size" | "dp" | "dp_size" => out.int(Field::Dp, node),
        "data_parallel_size_local" | "dpl" => out.int(Field::DpLocal, node),
        "decode_context_parallel_size" | "dcp" => out.int(Field::Dcp, node),
        "prefill_context_parallel_size" => out.int(Field::Cp, node),
        "enable_expert_parallel" | "ep" => out.flag(Field::ExpertParallel, node),
        "max_model_len" | "sequence_length" | "max_total_tokens" => length(out, node),
        "max_num_seqs" | "batch_size" => out.int(Field::MaxNumSeqs, node),
        "max_num_batched_tokens" => out.int(Field::MaxNumBatchedTokens, node),
        "gpu_memory_utilization" => out.float(Field::GpuMemoryShare, node),
        "kv_cache_dtype" => super::kv(out, node),
        "dtype" => super::precision(out, node),
        "quantization" | "q" => super::quantization(out, node),
        "load_in_low_bit" => {
            if let Some(t) = node.text() {
                let word = match t.as_str() {
                    "sym_int4" | "asym_int4" | "int4" | "nf4" | "woq_int4" => "int4".to_owned(),
                    "sym_int8" | "int8" => "int8".to_owned(),
                    _ if t.starts_with("fp8") => "fp8".to_owned(),
                    _ if t.starts_with("fp4") => "fp4".to_owned(),
                    _ => t,
                };
                out.set(Field::WeightsPrecision, word, node.line);
            }
            true
        }
        "enable_prefix_caching" => out.flag(Field::PrefixCaching, node),
        "enable_chunked_prefill" => out.flag(Field::ChunkedPrefill, node),
        // False is the engine's default, so it is not recorded.
        "enforce_eager" => out.set_if_on(Field::EnforceEager, true, node),
        "async_scheduling" => out.flag(Field::AsyncScheduling, node),
        "block_size" => out.int(Field::BlockSize, node),
        "nnodes" => super::server_nodes(out, node),
        "swap_space" => out.float(Field::SwapSpaceGb, node),
        "cpu_offload_gb" => out.float(Field::CpuOffloadGb, node),
        "long_prefill_token_threshold" => out.int(Field::LongPrefillTokenThreshold, node),
        "all2all_backend" => match node.text().as_deref() {
            Some("deepep_high_throughput" | "deepep_low_latency") => out.set(Field::MoeDispatcher, "deepep", node.line),
            Some("naive" | "allgather_reducescatter") => true,
            Some(_) => false,
            None => out.record_unset_variables(node),
        },
        "enable_dbo" => out.flag(Field::TwoBatchOverlap, node),
        "kv_offloading_size" => out.float(Field::KvOffloadingGib, node),
        "num_redundant_experts" => out.int(Field::RedundantExperts, node),
        "eplb_config" => {
            if let Some(n) = object(node).and_then(|o| o.get("num_redundant_experts").cloned()) {
                out.int(Field::RedundantExperts, &at(&n, node.line));
            }
            true
        }
        "speculative_config" => {
            if let Some(o) = object(node) {
                speculative(&o, node.line, out);
            }
            true
        }
        "speculative_model" => out.text(Field::SpeculativeModel, node),
        "num_speculative_tokens" => out.int(Field::SpeculativeTokens, node),
        "device" => super::device(out, node),
        "kv_transfer_config" => {
            let kv = object(node).and_then(|o| o.get("kv_role").and_then(Node::text));
            if let Some(r) = kv.as_deref().and_then(super::roles::role) {
                out.fields.set_implied(Field::Role, r, node.line);
            }
            true
        }
        // Flags of Dynamo's workers.
        "is_prefill_worker" | "is_decode_worker" => {
            let role = if key == "is_prefill_worker" { "prefill" } else { "decode" };
            out.fields.set_implied(Field::Role, role, node.line);
            true
        }
        _ if super::lists(IGNORED, key) => true,
        _ => {
            let mut hits = LONG.iter().filter(|l| key.len() >= 7 && l.starts_with(key));
            match (hits.next(), hits.next()) {
                (Some(full), None) if *full != key => flag(full, node, out),
                _ => super::is_irrelevant(key),
            }
        }
    }
}

/// Whether the keys of a mapping are those of vLLM and not of another engine.
pub(crate) fn looks_like(keys: &[String]) -> bool {
    const OWN: &[&str] = &[
        "gpu_memory_utilization",
        "max_model_len",
        "max_num_seqs",
        "max_num_batched_tokens",
        "enable_prefix_caching",
        "enable_chunked_prefill",
        "speculative_config",
        "kv_cache_dtype",
        "enforce_eager",
        "tensor_parallel_size",
        "no_enable_prefix_caching",
        "async_scheduling",
        "max_cudagraph_capture_size",
        "swap_space",
        "compilation_config",
    ];
    keys.iter().any(|k| OWN.contains(&k.as_str()))
}

/// Reads a length with a unit, as on vLLM's command line: `k`, `m` and `g` are decimal, `K`, `M` and `G` binary.
fn length(out: &mut ReadFields, node: &Node) -> bool {
    if let Some(text) = node.text() {
        let factor = match text.chars().last() {
            Some('k') => 1e3,
            Some('m') => 1e6,
            Some('g') => 1e9,
            Some('K') => 1024.0,
            Some('M') => 1_048_576.0,
            Some('G') => 1_073_741_824.0,
            _ => 0.0,
        };
        let digits = text.get(..text.len().saturating_sub(1)).unwrap_or_default();
        let known = digits.parse::<f64>().ok().filter(|n| factor > 0.0 && *n >= 0.0 && n * factor < 9e15);
        if let Some(n) = known {
            return out.set(Field::MaxModelLen, (n * factor).round() as i64, node.line);
        }
    }
    out.int(Field::MaxModelLen, node)
}

/// Returns a mapping, or parses a string that contains one as JSON.
pub(crate) fn object(node: &Node) -> Option<Node> {
    match &node.value {
        Value::Map(_) => Some(node.clone()),
        Value::Str(s) => json::parse(s).filter(Node::is_map),
        _ => None,
    }
}

fn at(node: &Node, line: Place) -> Node {
    Node::new(node.value.clone(), line)
}

pub(crate) fn speculative(o: &Node, line: Place, out: &mut ReadFields) {
    if let Some(m) = o.first(&["method", "decoding_type"]).and_then(Node::text) {
        out.set(Field::SpeculativeMethod, m.to_ascii_lowercase(), line);
    } else if o.first(&["model"]).is_some() {
        out.fields.set_implied(Field::SpeculativeMethod, "draft", line);
    }
    if let Some(n) = o.first(&["num_speculative_tokens", "max_draft_len", "num_nextn_predict_layers"]) {
        out.int(Field::SpeculativeTokens, &at(n, line));
    }
    if let Some(n) = o.first(&["model", "speculative_model_dir", "speculative_model"]) {
        out.text(Field::SpeculativeModel, &at(n, line));
    }
    if let Some(n) = o.get("draft_tensor_parallel_size") {
        out.int(Field::SpeculativeTp, &at(n, line));
    }
}
