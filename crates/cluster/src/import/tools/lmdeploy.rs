//! LMDeploy: `lmdeploy serve api_server`.

use crate::import::fields::ReadFields;
use crate::import::value::Node;

/// Reads one flag. Returns false if it is not recognized.
pub(crate) fn flag(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    match key {
        "model_path" => super::model(out, node),
        "tp" => out.int("tp", node),
        "dp" => out.int("dp", node),
        "ep" => out.int("ep", node),
        "session_len" => out.int("max_model_len", node),
        "max_batch_size" => out.int("max_num_seqs", node),
        "max_prefill_token_num" => out.int("max_num_batched_tokens", node),
        "cache_max_entry_count" => out.float("gpu_memory_share", node),
        "cache_block_seq_len" => out.int("block_size", node),
        "enable_prefix_caching" => out.flag("prefix_caching", node),
        "dtype" => super::precision(out, node),
        "backend" => out.text("backend", node),
        "nnodes" => out.int("nodes", node),
        // Number of bits of the KV cache; zero means the precision of the model.
        "quant_policy" => match node.int() {
            Some(bits @ (4 | 8)) => out.set("kv_precision", format!("int{bits}"), node.line),
            _ => true,
        },
        "model_format" => {
            if let Some(t) = node.text().filter(|t| t != "hf") {
                if let Some(word) = crate::import::names::weights(&t) {
                    out.set("weights_precision", word, node.line);
                }
                out.set("quantization", t, node.line);
            }
            true
        }
        "model_name" | "server_port" | "server_name" | "vision_max_batch_size" | "rope_scaling_factor" => true,
        _ => super::is_irrelevant(key),
    }
}
