//! Formats of the KV cache that serving software offers.

use super::Format;

/// Formats and their names in the options of the software.
type Names = &'static [(Format, &'static str)];

/// `--kv-cache-dtype` of vLLM.
const VLLM: Names =
    &[(Format::Fp8, "fp8"), (Format::Bf16, "bfloat16"), (Format::Fp16, "float16"), (Format::Fp4, "nvfp4")];
/// `--kv-cache-dtype` of SGLang.
const SGLANG: Names = &[(Format::Fp8, "fp8_e4m3"), (Format::Bf16, "bf16"), (Format::Fp4, "nvfp4")];
/// `kv_cache_config.dtype` of TensorRT-LLM.
const TENSORRT_LLM: Names =
    &[(Format::Fp8, "fp8"), (Format::Fp4, "nvfp4"), (Format::Bf16, "bfloat16"), (Format::Fp16, "float16")];
/// `--cache-type-k` and `--cache-type-v` of llama.cpp.
const LLAMA_CPP: Names =
    &[(Format::Bf16, "bf16"), (Format::Fp16, "f16"), (Format::Int8, "q8_0"), (Format::Int4, "q4_0")];

fn names(software: &str) -> Option<Names> {
    let family = software.split('@').next().unwrap_or_default();
    Some(match family {
        "vllm" => VLLM,
        "sglang" => SGLANG,
        "tensorrt-llm" => TENSORRT_LLM,
        "llama.cpp" => LLAMA_CPP,
        _ => return None,
    })
}

/// Name of a KV cache format in the options of `software`, with or without a release; `None` if it has no such option.
#[must_use]
pub fn cache_format_name(software: &str, format: Format) -> Option<&'static str> {
    names(software)?.iter().find(|(known, _)| *known == format).map(|(_, name)| *name)
}

/// Whether `software` may keep the KV cache in `format`. Software whose options are not known may do what any other does.
#[must_use]
pub fn caches_in(software: &str, format: Format) -> bool {
    // BF16 and FP16 have the same size, and stand for the format of the model.
    match names(software) {
        Some(names) => {
            let sixteen_bit = |format| matches!(format, Format::Bf16 | Format::Fp16);
            names.iter().any(|(known, _)| *known == format || (sixteen_bit(*known) && sixteen_bit(format)))
        }
        None => {
            matches!(format, Format::Fp32 | Format::Bf16 | Format::Fp16)
                || [VLLM, SGLANG, TENSORRT_LLM, LLAMA_CPP]
                    .iter()
                    .any(|names| names.iter().any(|(known, _)| *known == format))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_formats_follow_the_options_of_the_software() {
        assert!(!caches_in("vllm", Format::Int4) && !caches_in("vllm@0.11.0", Format::Tf32));
        assert!(caches_in("vllm@0.11.0", Format::Fp8) && caches_in("sglang", Format::Fp16));
        assert!(caches_in("llama.cpp", Format::Int4) && !caches_in("llama.cpp", Format::Fp8));
        assert!(caches_in("lmdeploy", Format::Int4) && !caches_in("lmdeploy", Format::Tf32));
        assert_eq!(cache_format_name("sglang", Format::Fp8), Some("fp8_e4m3"));
        assert_eq!(cache_format_name("sglang", Format::Fp16), None);
    }
}
