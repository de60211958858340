//! Conversion of catalog entries (devices and models) to the inputs of the physics engines.

use crate::accelerator::Accelerator as Sheet;
use crate::convolution::Convolutional;
use crate::images::Images;
use crate::model::{Architecture as Network, Model};
use crate::transformer;
use crate::transformer::{Bias, Transformer, TransformerKind};
use atlas_core::count::Count;
use atlas_core::network::LinkPath;
use atlas_perf::accelerator::{Accelerator, Generation, Precision};
use atlas_perf::arch::{Architecture, Attention, Head, Linear};
use atlas_perf::constants::documented::A100_CLOCK;
use atlas_perf::convolution::{MAX_STAGES, Multiples, Residual, Stage};

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

/// Whether users can limit the core clock of a device. `nvidia-smi --lock-gpu-clocks`, `amd-smi set --clk-limit sclk`
/// and `xpu-smi config --frequencyrange` do; the tools for Apple, Google, AWS, Huawei, Gaudi and dataflow devices do
/// not.
#[must_use]
pub fn clock_can_be_limited(sheet: &Sheet) -> bool {
    matches!(sheet.vendor.as_str(), "NVIDIA" | "AMD") || (sheet.vendor == "Intel" && sheet.generation != "Gaudi")
}

/// Scale-up bandwidth per direction, GB/s, and path, for datasheets that lack the bandwidth.
fn blank_link(vendor: &str) -> (f64, LinkPath) {
    match vendor {
        // NeuronLink-v2: 384 GB/s in both directions per chip (AWS Neuron documentation, trn1 architecture).
        "AWS" => (192.0, LinkPath::Direct),
        // Xe Link: one 28 GB/s link to each of five peers (Aurora node description).
        "Intel" => (140.0, LinkPath::Direct),
        // Half of the 32 GB/s of PCIe 4.0 x16, for transfers between peers through the host.
        _ => (16.0, LinkPath::Host),
    }
}

/// Converts a datasheet to SI units.
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
    let positive = |value: Option<f64>| value.filter(|value| *value > 0.0);
    let generation = generation(sheet);
    let kind = scale_up.and_then(|link| link.kind.as_deref());
    let usual = if generation == Generation::Workstation { LinkPath::Host } else { LinkPath::Direct };
    let (link_gbytes, link_path) = match scale_up.and_then(|link| positive(link.bw_gbytes_per_sec)) {
        Some(gbytes) => (gbytes, kind.map_or(usual, LinkPath::named)),
        None => blank_link(&sheet.vendor),
    };
    Accelerator {
        generation,
        flops,
        mem_bytes: sheet.memory.gb * 1e9,
        usable_share: sheet.memory.usable_gib.map_or(1.0, |usable| usable / sheet.memory.gb),
        mem_bw: positive(sheet.memory.bw_gbytes_per_sec).unwrap_or(0.0) * 1e9,
        cores: positive(sheet.cores).unwrap_or(1.0),
        clock: positive(sheet.boost_clock_mhz).map_or(A100_CLOCK, |mhz| mhz * 1e6),
        tdp_w: positive(sheet.tdp_w),
        link_bw: link_gbytes * 1e9,
        link_path,
        domain: scale_up.and_then(|link| link.domain_size).map_or(1.0, f64::from),
        bridge: None,
        switched: scale_up.and_then(|link| link.switched).unwrap_or(false),
        mesh_peers: scale_up.and_then(|link| link.peers).map(f64::from),
        nic_bw: positive(sheet.scale_out_gbits_per_sec).unwrap_or(100.0) * 1e9 / 8.0,
        network: Default::default(),
    }
}

/// Converts a model of the catalog: a transformer or a convolutional network.
#[must_use]
pub fn model(model: &Model) -> Architecture {
    match &model.architecture {
        Network::Transformer(transformer) => architecture(transformer),
        Network::Convolutional(network) => convolutional(&residual(network)),
    }
}

/// Converts the vision encoder of a model.
#[must_use]
pub fn encoder(images: &Images) -> Architecture {
    architecture(&images.encoder)
}

/// Converts a convolutional network of the catalog.
fn residual(network: &Convolutional) -> Residual {
    let mut stages = [Stage::default(); MAX_STAGES];
    for (stage, (&blocks, &width)) in stages.iter_mut().zip(network.blocks.iter().zip(&network.widths)) {
        *stage = Stage { blocks, width };
    }
    Residual {
        stem_width: network.stem_width,
        stages,
        expansion: network.expansion,
        image_size: network.image_size,
        classes: network.classes,
        multiples: Multiples::ONE,
    }
}

/// Sums over the layers of a model that is described layer by layer, for one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sums {
    /// Number of layers.
    pub layers: f64,
    /// FLOPs of the forward pass; positive.
    pub forward_flops: f64,
    /// FLOPs of the backward pass.
    pub backward_flops: f64,
    /// Parameters.
    pub parameters: f64,
    /// Number of elements that the forward pass saves for the backward pass.
    pub kept: f64,
}

/// Converts a model that is described only by sums. Since sums contain no shapes, its GEMMs run at the rates of
/// ResNet-50's convolutions, and its memory traffic has the same ratio to its activations as ResNet-50's.
#[must_use]
pub fn of_sums(sums: &Sums) -> Architecture {
    let like = residual(&Convolutional::resnet_50());
    let flops = 2.0 * like.multiply_adds();
    let multiples = Multiples {
        layers: sums.layers / like.depth(),
        forward: sums.forward_flops / flops,
        backward: sums.backward_flops / (2.0 * flops),
        parameters: sums.parameters / like.params(),
        // Both the output of a convolution and that of its activation function are saved.
        activations: sums.kept / (2.0 * like.outputs()),
    };
    convolutional(&Residual { multiples, ..like })
}

/// Wraps a convolutional network. Transformer fields are zero, except widths that other code reads.
fn convolutional(network: &Residual) -> Architecture {
    Architecture {
        layers: Count::floor(network.depth()),
        hidden: Count::floor(network.features()),
        heads: Count::ONE,
        kv_heads: Count::ONE,
        head_dim: 1.0,
        ffn: Count::ZERO,
        vocab: Count::ZERO,
        tied: true,
        causal: false,
        attention_share: 0.0,
        mlp_share: 0.0,
        head: Head::Classes(network.classes),
        convolutions: Some(*network),
        ..Architecture::default()
    }
}

fn linear(t: &Transformer) -> Option<Linear> {
    let linear = t.linear.as_ref()?;
    Some(Linear {
        kind: linear.kind,
        share: linear.layers / t.n_layers.max(Count::ONE),
        heads: linear.heads,
        head_dim: linear.head_dim,
        state: linear.state,
        groups: linear.groups,
        taps: linear.taps,
    })
}

/// Converts a transformer of the catalog.
#[must_use]
pub fn architecture(t: &Transformer) -> Architecture {
    let attention = t.latent.map_or(Attention::Grouped, |latent| Attention::Latent {
        q_rank: latent.q_lora_rank,
        kv_rank: latent.kv_lora_rank,
        nope: latent.qk_nope_dim,
        rope: latent.qk_rope_dim,
        value: latent.v_head_dim,
        direct: latent.direct,
        output: latent.output,
    });
    let experts = t.experts.as_ref();
    let of = |get: fn(&transformer::Experts) -> Count| experts.map_or(Count::ZERO, get);
    let patches = t.patches.filter(|_| t.kind == TransformerKind::Vision);
    let layers = t.n_layers.max(Count::ONE);
    Architecture {
        layers: t.n_layers,
        hidden: t.hidden_size,
        heads: t.n_heads.max(Count::ONE),
        kv_heads: t.n_kv_heads,
        head_dim: t.head_dim,
        ffn: t.ffn_hidden_size,
        gated: t.gated_mlp,
        vocab: t.vocab_size.unwrap_or(Count::ZERO),
        tied: t.tied_embeddings,
        attention,
        window: t.window,
        streams: t.residual_streams,
        causal: matches!(t.kind, TransformerKind::Decoder | TransformerKind::EncoderDecoder),
        positions: if t.learned_positions { t.max_context } else { Count::ZERO },
        attn_bias: matches!(t.attention_bias, Bias::Qkv | Bias::All),
        mlp_bias: t.mlp_bias,
        experts: of(|e| e.count),
        top_k: of(|e| e.per_token),
        moe_ffn: of(|e| e.ffn_hidden_size),
        shared_ffn: of(|e| e.shared_ffn_hidden_size),
        dense_layers: of(|e| e.first_dense_layers),
        moe_step: experts.map_or(Count::ONE, |e| e.layer_step.max(Count::ONE)),
        moe_hidden: experts.and_then(|e| e.hidden_size),
        attention_share: t.attention_layers / layers,
        mlp_share: t.mlp_layers / layers,
        linear: linear(t),
        attention_gate: t.attention_gate,
        indexer: t.indexer,
        encoder_layers: if t.kind == TransformerKind::EncoderDecoder { t.n_layers } else { Count::ZERO },
        head: match (t.kind, patches) {
            (TransformerKind::Encoder, _) => Head::Masked,
            (_, Some(patches)) => Head::Classes(patches.classes),
            _ => Head::Language,
        },
        patch: patches.map(|patches| Count::floor(3.0 * patches.patch_size * patches.patch_size)),
        token_types: if t.kind == TransformerKind::Encoder { Count::new(2) } else { Count::ZERO },
        convolutions: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    #[test]
    fn architecture_parameter_counts_match_the_catalog() {
        let catalog = Catalog::built_in();
        let mut n = 0;
        for entry in catalog.models() {
            let (ours, theirs) = (model(&entry).params(), entry.language_parameters());
            assert!((ours / theirs - 1.0).abs() < 0.003, "{}: {ours} against {theirs}", entry.id);
            let (ours, theirs) = (model(&entry).active_params(), entry.active_parameters());
            assert!((ours / theirs - 1.0).abs() < 0.003, "{}: {ours} against {theirs} active", entry.id);
            if let Some(images) = &entry.images {
                let (ours, theirs) = (encoder(images).params(), images.encoder.parameters());
                assert!((ours / theirs - 1.0).abs() < 0.01, "{}: {ours} against {theirs} in the encoder", entry.id);
            }
            n += 1;
        }
        assert!(n > 100);
    }

    #[test]
    fn residual_network_counts_match_the_catalog() {
        let network = Convolutional::resnet_50();
        let plain = residual(&network);
        assert_eq!(plain.params(), network.parameters());
        assert!((plain.multiply_adds() / network.multiply_adds() - 1.0).abs() < 1e-12);
        assert_eq!(plain.depth(), 53.0);
        // 11.1 M activations according to torchvision's table; counts only the inputs of batch norms.
        assert!((plain.outputs() / 11.11e6 - 1.0).abs() < 0.01, "{}", plain.outputs());
    }
}
