//! LMDeploy: `lmdeploy serve api_server`.

use crate::import::Field;
use crate::import::fields::ReadFields;
use crate::import::value::Node;

/// Reads one flag. Returns false if it is not recognized.
pub(crate) fn flag(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    match key {
        "model_path" => super::model(out, node),
        "tp" => out.int(Field::Tp, node),
        "dp" => out.int(Field::Dp, node),
        "ep" => out.int(Field::Ep, node),
        "session_len" => out.int(Field::MaxModelLen, node),
        "max_batch_size" => out.int(Field::MaxNumSeqs, node),
        "max_prefill_token_num" => out.int(Field::MaxNumBatchedTokens, node),
        "cache_max_entry_count" => out.float(Field::GpuMemoryShare, node),
        "cache_block_seq_len" => out.int(Field::BlockSize, node),
        "enable_prefix_caching" => out.flag(Field::PrefixCaching, node),
        "dtype" => super::precision(out, node),
        "backend" => out.text(Field::Backend, node),
        "nnodes" => out.int(Field::Nodes, node),
        // Number of bits of the KV cache; zero means the precision of the model.
        "quant_policy" => match node.int() {
            Some(bits @ (4 | 8)) => out.set(Field::KvPrecision, format!("int{bits}"), node.line),
            _ => true,
        },
        "model_format" => {
            if let Some(t) = node.text().filter(|t| t != "hf") {
                if let Some(word) = crate::import::names::weights(&t) {
                    out.set(Field::WeightsPrecision, word, node.line);
                }
                out.set(Field::Quantization, t, node.line);
            }
            true
        }
        "model_name" | "server_port" | "server_name" | "vision_max_batch_size" | "rope_scaling_factor" => true,
        _ => super::is_irrelevant(key),
    }
}
