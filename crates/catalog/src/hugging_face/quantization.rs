//! The number format of quantized weights: `quantization_config`, as vLLM and transformers read it.

use atlas_core::plan::Format;
use atlas_document::decode::Fields;
use atlas_document::{Node, Value};

/// Format of the weights; `None` without quantization. An unknown method is reported as a warning.
pub(super) fn native_format(fields: &mut Fields<'_>) -> Option<Format> {
    let config = fields.node("quantization_config")?;
    let format = format(config);
    if format.is_none() {
        let method = config.get("quant_method").and_then(Node::text).unwrap_or("not stated");
        let message = format!("quantization method {method} is not supported: the weights are taken as 16 bit");
        fields.warn(
            "quantization_config",
            message,
            Some("set precision, and weight_bits if they are known".to_owned()),
        );
    }
    format
}

/// Whether the weights are NVFP4: blocks of 16, while those of MX formats have 32.
pub(super) fn is_nvfp4(config: &Node) -> bool {
    let algorithm = config.get("quant_algo").and_then(Node::text);
    let group = group(config).and_then(|weights| weights.get("group_size")?.number());
    format(config) == Some(Format::Fp4) && (algorithm == Some("NVFP4") || group == Some(16.0))
}

/// Weights of a checkpoint of compressed-tensors. All groups of published checkpoints have the same format; layers that
/// are not quantized are in none.
fn group(config: &Node) -> Option<&Node> {
    config.get("config_groups")?.entries()?.first()?.value.get("weights")
}

fn format(config: &Node) -> Option<Format> {
    let bits = |keys: &[&str]| keys.iter().find_map(|key| config.get(key)).and_then(Node::number);
    let is_on = |key: &str| config.get(key).is_some_and(|node| node.value == Value::Bool(true));
    match config.get("quant_method").and_then(Node::text)?.to_ascii_lowercase().as_str() {
        "fp8" | "fbgemm_fp8" => Some(Format::Fp8),
        "mxfp4" => Some(Format::Fp4),
        "awq" | "gptq" | "gptq_marlin" | "awq_marlin" | "auto-round" | "autoround" => {
            integer(bits(&["bits", "w_bit"]).unwrap_or(4.0))
        }
        "bitsandbytes" if is_on("load_in_4bit") => Some(Format::Int4),
        "bitsandbytes" if is_on("load_in_8bit") => Some(Format::Int8),
        "compressed-tensors" => {
            let weights = group(config)?;
            let bits = weights.get("num_bits")?.number()?;
            match (weights.get("type").and_then(Node::text), bits) {
                (Some("float"), 8.0) => Some(Format::Fp8),
                (Some("float"), 4.0) => Some(Format::Fp4),
                (Some("int"), bits) => integer(bits),
                _ => None,
            }
        }
        "modelopt" | "modelopt_fp4" => match config.get("quant_algo").and_then(Node::text)? {
            "FP8" => Some(Format::Fp8),
            "NVFP4" => Some(Format::Fp4),
            _ => None,
        },
        _ => None,
    }
}

fn integer(bits: f64) -> Option<Format> {
    match bits {
        4.0 => Some(Format::Int4),
        8.0 => Some(Format::Int8),
        _ => None,
    }
}
