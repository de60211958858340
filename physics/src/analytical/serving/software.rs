//! What an engine's name and version say: runtime kind, numeric formats, scheduler defaults.

use crate::analytical::accelerator::{Accelerator, Generation, Precision};
use crate::analytical::arch::{Architecture, Attention};
use crate::analytical::serving::{Admission, Formats, Stack};

/// Kind of runtime behind an engine's name.
pub fn stack(engine: &str) -> Stack {
    let e = engine.to_ascii_lowercase();
    let any = |names: &[&str]| names.iter().any(|n| e.contains(n));
    if any(&["llama.cpp", "ollama", "exllama", "ctransformers", "mlx", "ctranslate", "tinychat", "autoawq"]) {
        Stack::Local
    } else if any(&[
        "tensorrt",
        "fastertransformer",
        "neuronx",
        "sambaflow",
        "optimum nvidia",
        "saxml",
        "habana",
        "triton",
    ]) {
        Stack::Compiled
    } else if e.contains("deepspeed-mii") {
        // FastGen: ragged batching on injected kernels, an engine in all but name.
        Stack::Graphed
    } else if any(&["tt-nn", "transformers", "accelerate", "deepspeed", "autogptq", "lightning", "onnx", "megatron"]) {
        Stack::Eager
    } else {
        Stack::Graphed
    }
}

/// Whether a framework's layers are replaced by an engine's fused kernels, launched one by one: DeepSpeed-Inference's
/// kernel injection (arXiv 2207.00032, section 3).
pub fn injected(engine: &str) -> bool {
    let e = engine.to_ascii_lowercase();
    e.starts_with("deepspeed") && !e.contains("zero") && !e.contains("habana")
}

/// Bytes per weight and multiplication format of a weight format's name, in whatever spelling.
fn weight(name: &str) -> Option<(f64, Precision)> {
    let lower = name.trim().to_ascii_lowercase().replace([' ', '_'], "-");
    // A name of several parts ("int4-awq", "fp8/bf16") says the weights' format first.
    let first = lower.split(['/', '+']).next().unwrap_or("");
    let found = match first {
        "fp32" | "float32" | "f32" => (4.0, Precision::Fp32),
        "tf32" => (4.0, Precision::Tf32),
        "bf16" | "fp16" | "f16" | "float16" | "bfloat16" | "half" | "16" => (2.0, Precision::Bf16),
        "fp8" | "mxfp8" | "fp8-block" | "fp8-e4m3" | "fp8-e5m2" | "e4m3" | "e5m2" | "float8" => (1.0, Precision::Fp8),
        "int8" | "w8a8" | "w8a16" | "i8" | "bnb-int8" | "smoothquant" => (1.0, Precision::Int8),
        "mxfp6" | "fp6" => (0.78, Precision::Fp6),
        // Block scales of 4-bit formats: one 8-bit scale per 16 or 32 weights.
        "fp4" | "nvfp4" | "mxfp4" => (0.53, Precision::Fp4),
        "int4" | "awq" | "gptq" | "nf4" | "w4a16" | "w4a8" | "i4" | "bnb-nf4" | "hqq" => (0.53, Precision::Int4),
        other => match ggml_bits(other) {
            Some(bits) => (bits / 8.0, if bits > 15.0 { Precision::Bf16 } else { Precision::Int4 }),
            None if other.contains('-') => return other.split('-').find_map(weight),
            None => return None,
        },
    };
    Some(found)
}

/// Bits per weight of whole files in llama.cpp's and ExLlama's formats (ggml-quants; `exl2-4.0bpw`).
fn ggml_bits(name: &str) -> Option<f64> {
    if let Some(bits) = name.strip_prefix("exl2-").or(name.strip_prefix("exl3-")).and_then(|b| b.strip_suffix("bpw")) {
        return bits.parse().ok().filter(|bits: &f64| (1.0..=16.0).contains(bits));
    }
    Some(match name {
        "q8-0" => 8.5,
        "q6-k" => 6.56,
        "q5-0" => 5.54,
        "q5-k-m" | "q5-k" => 5.69,
        "q5-k-s" => 5.54,
        "q4-0" => 4.56,
        "q4-1" => 5.0,
        "q4-k-m" | "q4-k" => 4.85,
        "q4-k-s" => 4.58,
        "iq4-nl" => 4.5,
        "iq4-xs" => 4.25,
        "q3-k-m" | "q3-k" => 3.91,
        "q3-k-l" => 4.27,
        "q3-k-s" => 3.5,
        "q2-k" => 2.96,
        _ => return None,
    })
}

/// A checkpoint's own format, where a row leaves the precision empty.
pub fn native(model: &str) -> &'static str {
    let m = model.to_ascii_lowercase();
    if m.starts_with("gpt-oss") {
        "mxfp4"
    } else if m.starts_with("kimi-k2-thinking") || m.starts_with("kimi-k2.5") {
        "int4"
    } else if m.starts_with("deepseek-v") || m == "deepseek-r1" || m.starts_with("kimi-k2") || m.starts_with("minimax")
    {
        "fp8"
    } else {
        "bf16"
    }
}

/// Formats of a deployment. `weights`, `activations` and `kv` are names as measurements spell them, empty if unknown.
#[allow(clippy::too_many_arguments)]
pub fn formats(
    acc: &Accelerator,
    arch: &Architecture,
    model: &str,
    engine: &str,
    stack: Stack,
    weights: &str,
    activations: &str,
    kv: &str,
) -> Formats {
    let reserved_kv = stack == Stack::Compiled || engine.to_ascii_lowercase().contains("tensorrt");
    // OpenAI's checkpoints exist in MXFP4 only; a label such as "fp8" names the activations or the cache.
    let name = if weights.is_empty() || model.starts_with("gpt-oss") { native(model) } else { weights };
    let (bytes, stored) = weight(name).unwrap_or((2.0, Precision::Bf16));
    let wide = weight(activations).map(|w| w.1);
    // Weight-only quantisation: a format that the device cannot multiply, or activations said to be wider.
    let multiplied = |p: Precision| -> (Precision, bool) {
        let narrow = matches!(p, Precision::Fp8 | Precision::Fp4 | Precision::Int8);
        if p == Precision::Int4 {
            // QServe and others multiply 4-bit weights with 8-bit activations on integer units.
            return match wide {
                Some(Precision::Int8) if acc.has(Precision::Int8) => (Precision::Int8, true),
                _ => (Precision::Bf16, true),
            };
        }
        if !narrow {
            return (p, false);
        }
        let unpacking = matches!(stack, Stack::Local | Stack::Eager) || injected(engine);
        if !acc.has(p) || wide == Some(Precision::Bf16) || unpacking {
            return (Precision::Bf16, true);
        }
        if p == Precision::Fp4 && wide == Some(Precision::Fp8) {
            return (Precision::Fp8, false);
        }
        (p, false)
    };
    let (expert, expert_unpack) = multiplied(stored);
    let mut f = Formats {
        dense_bytes: bytes,
        expert_bytes: bytes,
        dense: expert,
        expert,
        dense_unpack: expert_unpack,
        expert_unpack,
        product_kernels: if expert_unpack && (stack == Stack::Eager || injected(engine)) {
            product_kernels(acc, engine, stored)
        } else {
            1.0
        },
        // DeepSpeed-Inference's quantised products write the weights out in 16 bit and multiply those
        // (`ds_vector_matmul_int8`): once in their own format, twice in 16 bit.
        unpack_passes: if expert_unpack && injected(engine) { 1.0 + 4.0 / bytes } else { 1.0 },
        kv_bytes: weight(kv).map_or(2.0, |w| w.0),
    };
    if kv.is_empty() && reserved_kv && matches!(stored, Precision::Fp8 | Precision::Fp4) {
        // TensorRT-LLM's quantised checkpoints carry fp8 keys and values.
        f.kv_bytes = 1.0;
    }
    if name == "fp8/fp4-experts" {
        (f.expert_bytes, f.expert, f.expert_unpack) = (0.53, Precision::Fp4, !acc.has(Precision::Fp4));
    }
    if arch.is_moe() && stored == Precision::Fp4 {
        // Published 4-bit checkpoints of mixtures quantise the experts and leave attention in 16 or 8 bit.
        (f.dense_bytes, f.dense, f.dense_unpack) = (2.0, Precision::Bf16, false);
        if stack == Stack::Local {
            // GGUF files of such checkpoints keep attention in q8_0.
            (f.dense_bytes, f.dense_unpack) = (1.0625, true);
        }
    }
    f
}

/// Kernels launched for one where a framework multiplies quantised weights. bitsandbytes's LLM.int8() finds outlying
/// columns, quantises rows and columns, changes the layout of both, multiplies, scales, multiplies the outliers in 16 bit
/// and adds (eight launches and a wait for the outliers' number, `MatMul8bitLt`); others unpack, multiply and scale.
fn product_kernels(acc: &Accelerator, engine: &str, stored: Precision) -> f64 {
    let e = engine.to_ascii_lowercase();
    // Tenstorrent's matrix units multiply block floats as they are stored.
    if e.contains("vllm") || (e.contains("tt-nn") && acc.generation == Generation::Other) {
        1.0
    } else if stored == Precision::Int8 && !e.contains("deepspeed") {
        8.0
    } else {
        3.0
    }
}

/// Whether a mixture's experts are multiplied one after another: SGLang's for 4-bit integer weights. What a step costs is
/// 20-80 us for every expert touched, in two collections and on both vendors' devices (SGLang 0.4.6 to 0.5.9).
pub fn experts_in_turn(arch: &Architecture, formats: &Formats, engine: &str) -> bool {
    let four = formats.expert_unpack && formats.expert_bytes < 0.6 && formats.expert == Precision::Bf16;
    four && arch.is_moe() && engine.to_ascii_lowercase().contains("sglang")
}

/// Whether prompts run uncompiled, kernel by kernel from Python: SGLang's until v0.5.10, which captures them piece by
/// piece unless told otherwise (its release notes, April 2026, "Piecewise CUDA Graph Enabled by Default"). Of a nightly
/// image the date counts; the first release candidate is of the end of March.
pub fn eager_prompts(engine: &str, version: &str) -> bool {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.trim_start_matches('v').parse::<u32>().ok());
    let nightly =
        || version.split('-').any(|part| part.len() == 8 && part.parse().is_ok_and(|day: u32| day >= 20_260_401));
    let captured = match (parts.next().flatten(), parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor), Some(patch)) => (major, minor, patch) >= (0, 5, 10),
        _ => nightly(),
    };
    engine.to_ascii_lowercase().contains("sglang") && !captured
}

/// Longest context for which vLLM's engine before V1 replays captured graphs (`max_seq_len_to_capture`, `EngineArgs`).
pub const CAPTURED_CONTEXT: f64 = 8192.0;

/// Whether matrix products of a few rows run on kernels tuned for them. hipBLASLt's default choice on CDNA 3 was not in
/// 2024, when AMD's guide to vLLM had users tune every shape by hand (TunableOp); vLLM from 0.7 comes with kernels and
/// tables for them.
pub fn tuned_products(acc: &Accelerator, engine: &str, version: &str) -> bool {
    use crate::analytical::accelerator::Generation::Cdna3;
    !(acc.generation == Cdna3 && engine.to_ascii_lowercase().contains("vllm") && before(version, 0, 7))
}

/// Whether drafted tokens are verified as sequences of their own: vLLM's engine before V1 (`BatchExpansionTop1Scorer`).
pub fn expands_drafts(engine: &str, version: &str) -> bool {
    engine.to_ascii_lowercase().contains("vllm") && before(version, 0, 8)
}

/// Whether the engine schedules the next step while the accelerator computes the current one: vLLM from 0.8 (V1),
/// SGLang from 0.4, TensorRT-LLM's and others' newer runtimes.
pub fn overlapped(engine: &str, version: &str) -> bool {
    !(engine.to_ascii_lowercase().contains("vllm") && before(version, 0, 8))
}

/// Whether a compiled runtime's scheduler and sampler run in Python: TensorRT-LLM's PyTorch backend, the default from
/// 1.0; what states neither version nor backend is taken for the one of its date. MLPerf's harness drives the C++
/// executor.
pub fn python_executor(engine: &str, version: &str, date: &str, notes: &str) -> bool {
    if !engine.to_ascii_lowercase().contains("tensorrt") || notes.contains("MLPerf") {
        return false;
    }
    if notes.contains("PyTorch backend") {
        return true;
    }
    let digits = version.find(|c: char| c.is_ascii_digit()).and_then(|at| version.get(at..)).unwrap_or("");
    if digits.is_empty() { date > "2025-09" } else { !before(digits.trim_end_matches(','), 1, 0) }
}

/// Whether an engine runs graphs compiled for one batch and one length: Neuron's.
pub fn fixed_shapes(engine: &str) -> bool {
    engine.to_ascii_lowercase().contains("neuron")
}

/// How the engine admits requests.
pub fn admission(engine: &str) -> Admission {
    let e = engine.to_ascii_lowercase();
    if e.contains("sglang") {
        Admission::Polled
    } else if e.contains("tensorrt") {
        Admission::Batched
    } else {
        Admission::EveryStep
    }
}

/// When llama.cpp began to replay CUDA graphs (pull request 6766); ctransformers stopped before.
const CUDA_GRAPHS: &str = "2024-05";

/// Whether decode steps replay captured graphs. vLLM's ROCm port of 2024 launched kernels one by one: its steps are
/// longer than CUDA's by a constant per layer at every batch and tensor-parallel size.
pub fn captured_graphs(acc: &Accelerator, engine: &str, version: &str, date: &str, context: f64) -> bool {
    use crate::analytical::accelerator::Generation::{Cdna2, Cdna3, Cdna4, PonteVecchio};
    // DeepSpeed-FastGen's ragged batches change shape at every step and are not captured.
    if injected(engine) {
        return false;
    }
    let e = engine.to_ascii_lowercase();
    let aged = e.contains("llama.cpp") && !date.is_empty() && date < CUDA_GRAPHS;
    if acc.generation.is_nvidia() && (aged || e.contains("ctransformers")) {
        return false;
    }
    if e.contains("llama.cpp") {
        // CUDA graphs, Metal's and Vulkan's command buffers replay a token; HIP and SYCL launch kernel by kernel.
        return !matches!(acc.generation, Cdna2 | Cdna3 | Cdna4 | PonteVecchio);
    }
    if e.contains("vllm") && before(version, 0, 8) && context > CAPTURED_CONTEXT {
        return false;
    }
    !(matches!(acc.generation, Cdna2 | Cdna3) && e.contains("vllm") && before(version, 0, 7))
}

/// Whether the layers of a mixture with block-scaled 8-bit experts are launched one kernel after another. vLLM's were
/// until about 0.15: in two collections that do not know of each other (0.12 on H200, 0.11 on H100 and B200) the step of
/// a 235B mixture in 8 bit lasts 35-55 ms at 4 to 16 streams alike, longer than the same model's in 16 bit, while other
/// engines take 13-17 ms. The cause is our reading; neither page states it. DeepSeek's shapes, for which tuned tables
/// shipped early, do not show it.
pub fn launches_experts(arch: &Architecture, formats: &Formats, engine: &str, version: &str, date: &str) -> bool {
    let old = if version.is_empty() { !date.is_empty() && date < "2026-03" } else { before(version, 0, 15) };
    let native = formats.expert == Precision::Fp8 && formats.expert_bytes == 1.0;
    let latent = matches!(arch.attention, Attention::Latent { .. });
    old && arch.is_moe() && native && !latent && engine.eq_ignore_ascii_case("vllm")
}

/// Whether decode attention reads keys and values once per group of query heads. TensorRT-LLM's masked multi-head kernel
/// did not; its XQA kernels came with 0.6, at first for groups of eight (release notes). vLLM's own paged attention does
/// not either: on CUDA until FlashAttention took over with 0.4.2, on ROCm until 0.7, and on devices before Ampere, which
/// FlashAttention-2 does not support. Transformers repeats keys and values to all heads.
pub fn grouped_decode(acc: &Accelerator, arch: &Architecture, engine: &str, version: &str) -> bool {
    use crate::analytical::accelerator::Generation::{Cdna2, Cdna3};
    let e = engine.to_ascii_lowercase();
    if e.contains("tensorrt") {
        let eight = (arch.heads / arch.kv_heads.max(1.0) - 8.0).abs() < 0.01;
        return !before(version, 0, 6) && (eight || !before(version, 0, 10));
    }
    if e.contains("vllm") {
        let rocm = matches!(acc.generation, Cdna2 | Cdna3) && before(version, 0, 7);
        let old_device = acc.generation.is_nvidia() && !acc.has(Precision::Bf16) && before(version, 0, 10);
        return !(rocm || old_device || before(version, 0, 4));
    }
    !(e.contains("transformers") && stack(engine) == Stack::Eager)
}

/// Devices for which Python engines capture no graphs: kernels are launched one by one.
pub fn lacks_graphs(acc: &Accelerator, engine: &str) -> bool {
    use crate::analytical::accelerator::Generation::{Ascend, Other, PonteVecchio};
    matches!(acc.generation, Ascend | PonteVecchio | Other) && engine.to_ascii_lowercase().contains("vllm")
}

/// Scheduler limits of an engine where a row does not state them: sequences per step, tokens per step, chunked
/// prefill, share of memory. From the engines' documentation and source (vLLM `EngineArgs`, SGLang `ServerArgs`,
/// TensorRT-LLM `trtllm-bench`).
pub fn scheduler(engine: &str, version: &str, acc: &Accelerator) -> (f64, f64, bool, f64) {
    let e = engine.to_ascii_lowercase();
    let big = acc.mem_bytes >= 75e9 && !matches!(acc.generation, crate::analytical::accelerator::Generation::Ampere);
    if e.contains("vllm") {
        let v1 = !before(version, 0, 8);
        return match (v1, big) {
            (false, _) => (256.0, 8192.0, false, 0.9),
            (true, true) => (1024.0, 8192.0, true, 0.9),
            (true, false) => (256.0, 2048.0, true, 0.9),
        };
    }
    if e.contains("sglang") {
        return (2048.0, if big { 8192.0 } else { 4096.0 }, false, 0.88);
    }
    if e.contains("tensorrt") {
        return (2048.0, 8192.0, true, 0.93);
    }
    if ["llama.cpp", "ollama", "ctransformers", "llama-cpp"].iter().any(|n| e.contains(n)) {
        // A prompt passes in micro-batches of `n_ubatch` tokens, each of which reads all weights anew.
        return (512.0, 512.0, true, 0.95);
    }
    if e.contains("exllama") {
        return (512.0, 2048.0, true, 0.95);
    }
    // Unknown: memory decides.
    (2048.0, 8192.0, true, 0.9)
}

/// Whether a version string is below `major.minor`; unknown versions are not.
fn before(version: &str, major: u32, minor: u32) -> bool {
    let mut parts = version.split(['.', '-', '+']).map(|p| p.trim_start_matches('v').parse::<u32>());
    match (parts.next(), parts.next()) {
        (Some(Ok(a)), Some(Ok(b))) => (a, b) < (major, minor),
        _ => false,
    }
}
