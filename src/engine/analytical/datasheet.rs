//! What the catalog says of a device or a model, in the numbers this engine reasons with.

use super::accelerator::{Accelerator, Generation, Precision};
use super::arch::{Architecture, Attention};
use crate::catalog::accelerator::Accelerator as Sheet;
use crate::catalog::transformer::{Bias, Kind, Transformer};

fn generation(sheet: &Sheet) -> Generation {
    let memory = sheet.memory.kind.as_deref().unwrap_or_default();
    let workstation = memory.starts_with("GDDR") || sheet.vendor == "Apple";
    match (sheet.vendor.as_str(), sheet.generation.as_str()) {
        ("NVIDIA" | "Apple", _) if workstation => Generation::Workstation,
        (_, "Volta") => Generation::Volta,
        (_, "Ampere") => Generation::Ampere,
        (_, "Hopper") => Generation::Hopper,
        (_, "Blackwell" | "Blackwell Ultra" | "Rubin") => Generation::Blackwell,
        (_, "CDNA2") => Generation::Cdna2,
        (_, "CDNA3") => Generation::Cdna3,
        (_, "CDNA4" | "CDNA5") => Generation::Cdna4,
        (_, "TPU") => Generation::Tpu,
        (_, "Trainium" | "Inferentia") => Generation::Trainium,
        (_, "Gaudi") => Generation::Gaudi,
        (_, "Ascend") => Generation::Ascend,
        (_, "Ponte Vecchio") => Generation::PonteVecchio,
        _ => Generation::Other,
    }
}

/// GB/s one way where the catalog leaves the scale-up link blank.
fn blank_link(vendor: &str) -> f64 {
    match vendor {
        // NeuronLink-v2: 384 GB/s both ways per chip (AWS Neuron documentation, trn1 architecture).
        "AWS" => 192.0,
        // Xe Link: one 28 GB/s link to each of five peers (Aurora node description).
        "Intel" => 140.0,
        // PCIe 4.0 x16, half of its 32 GB/s: what peers reach through the host.
        _ => 16.0,
    }
}

/// A datasheet in SI units.
#[must_use]
pub fn accelerator(sheet: &Sheet) -> Accelerator {
    let peaks = &sheet.peaks;
    let mut flops = [0.0; Precision::COUNT];
    for (precision, tera) in [
        (Precision::Fp32, peaks.fp32),
        (Precision::Tf32, peaks.tf32),
        (Precision::Bf16, peaks.bf16),
        (Precision::Fp16, peaks.fp16),
        (Precision::Fp8, peaks.fp8),
        (Precision::Int8, peaks.int8),
        (Precision::Fp4, peaks.fp4),
    ] {
        if let Some(slot) = flops.get_mut(precision as usize) {
            *slot = tera.unwrap_or(0.0) * 1e12;
        }
    }
    let scale_up = sheet.scale_up.as_ref();
    let link = scale_up.and_then(|link| link.kind.as_deref()).unwrap_or_default();
    let positive = |value: Option<f64>| value.filter(|value| *value > 0.0);
    let bf16 = positive(peaks.bf16);
    let measured = sheet.measured.as_ref().zip(bf16).map_or(0.0, |(measured, peak)| measured.tflops_bf16 / peak);
    Accelerator {
        generation: generation(sheet),
        flops,
        mem_bytes: sheet.memory.gb * 1e9,
        mem_bw: positive(sheet.memory.bw_gbytes_per_sec).unwrap_or(0.0) * 1e9,
        cores: positive(sheet.cores).unwrap_or(1.0),
        cache_bytes: positive(sheet.cache_mb).unwrap_or(0.0) * 1e6,
        tdp_w: positive(sheet.tdp_w).unwrap_or(0.0),
        link_bw: scale_up
            .and_then(|link| positive(link.bw_gbytes_per_sec))
            .unwrap_or_else(|| blank_link(&sheet.vendor))
            * 1e9,
        domain: scale_up.and_then(|link| positive(link.domain_size)).unwrap_or(1.0),
        switched: link.starts_with("NVLink") && !link.contains("bridge") && !link.starts_with("NVLink 2"),
        nic_bw: positive(sheet.scale_out_gbits_per_sec).unwrap_or(100.0) * 1e9 / 8.0,
        gemm_fraction: measured,
    }
}

/// A transformer of the catalog. Windows and indexers are left out here: measurements of training do not reach beyond
/// them, and those of serving add them by the model's name.
#[must_use]
pub fn architecture(t: &Transformer) -> Architecture {
    let attention = t.latent.map_or(Attention::Grouped, |latent| Attention::Latent {
        q_rank: latent.q_lora_rank,
        kv_rank: latent.kv_lora_rank,
        nope: latent.qk_nope_dim,
        rope: latent.qk_rope_dim,
        value: latent.v_head_dim,
    });
    let experts = t.experts.as_ref();
    let of = |get: fn(&crate::catalog::transformer::Experts) -> f64| experts.map_or(0.0, get);
    Architecture {
        layers: t.n_layers,
        hidden: t.hidden_size,
        heads: t.n_heads.max(1.0),
        kv_heads: t.n_kv_heads,
        head_dim: t.head_dim,
        ffn: t.ffn_hidden_size,
        gated: t.gated_mlp,
        vocab: t.vocab_size,
        tied: t.tied_embeddings,
        attention,
        // Published indexers select 2,048 keys (`index_topk` of DeepSeek-V3.2 and GLM-5).
        selected: if t.indexer.is_some() { 2048.0 } else { 0.0 },
        causal: t.kind == Kind::Decoder,
        positions: if t.learned_positions { t.max_context } else { 0.0 },
        attn_bias: matches!(t.attention_bias, Bias::Qkv | Bias::All),
        mlp_bias: t.mlp_bias,
        experts: of(|e| e.count),
        top_k: of(|e| e.per_token),
        moe_ffn: of(|e| e.ffn_hidden_size),
        shared_ffn: of(|e| e.shared_ffn_hidden_size),
        dense_layers: of(|e| e.first_dense_layers),
        moe_step: experts.map_or(1.0, |e| e.layer_step.max(1.0)),
        ..Architecture::default()
    }
}
