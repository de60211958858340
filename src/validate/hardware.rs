//! The catalog's devices as [`Accelerator`]s in SI units, found under the ids that measurement files use.

use std::collections::HashMap;

use crate::catalog::Catalog;
use crate::catalog::accelerator::Accelerator as Sheet;
use crate::engine::analytical::accelerator::{Accelerator, Generation, Precision};

/// Accelerators by catalog id and alias.
#[derive(Debug, Clone)]
pub struct Hardware(HashMap<String, Accelerator>);

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
fn accelerator(sheet: &Sheet) -> Accelerator {
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

/// Catalog id for an id as measurement files spell it: vendor prefix and memory size left out.
fn alias(id: &str) -> &str {
    match id {
        "nvidia-a100" | "nvidia-a100-80gb" => "a100-sxm-80gb",
        "nvidia-v100s-pcie-32gb" | "nvidia-v100-pcie-32gb" => "v100-pcie-16gb",
        "nvidia-v100-32gb" | "nvidia-v100-sxm-32gb" => "v100-sxm2-32gb",
        "nvidia-v100-sxm-16gb" => "v100-sxm2-16gb",
        "nvidia-h100-sxm-80gb" | "h100_sxm" => "h100-sxm",
        "nvidia-h100-pcie-80gb" => "h100-pcie",
        "nvidia-h100-nvl-94gb" => "h100-nvl",
        "nvidia-h800-sxm-80gb" => "h800-sxm",
        "nvidia-h200" | "h200_sxm" => "h200-sxm",
        "nvidia-h20" | "nvidia-h20-96gb" | "nvidia-h20-141gb" => "h20-sxm",
        "nvidia-b200" | "b200_sxm" => "b200-sxm",
        "nvidia-b300" | "b300_sxm" => "b300-sxm",
        "nvidia-gh200" => "gh200-96gb",
        "nvidia-rtx-pro-6000-blackwell-server" => "rtx-pro-6000-server",
        "nvidia-rtx-pro-6000-blackwell" => "rtx-pro-6000-ws",
        "nvidia-rtx-4090-d" => "rtx-4090",
        "nvidia-rtx-3090-ti" => "rtx-3090",
        "google-tpu-v7x" => "tpu-v7",
        "aws-trn1" => "trainium1",
        "aws-trn2" => "trainium2",
        "aws-trn3" => "trainium3",
        "aws-inf2" => "inferentia2",
        "huawei-ascend-910b" => "ascend-910b2",
        "huawei-ascend-910-64gb" => "ascend-910b2",
        other => other.split_once('-').map_or(other, |(vendor, rest)| match vendor {
            "nvidia" | "amd" | "google" | "aws" | "intel" | "huawei" | "apple" | "sambanova" => rest,
            _ => other,
        }),
    }
}

impl Hardware {
    /// Every accelerator of the catalog.
    #[must_use]
    pub fn of(catalog: &Catalog) -> Hardware {
        let mut all = HashMap::new();
        for sheet in catalog.accelerators() {
            let found = accelerator(&sheet);
            for alias in &sheet.aliases {
                all.entry(alias.to_ascii_lowercase()).or_insert(found);
            }
            all.insert(sheet.id.to_ascii_lowercase(), found);
        }
        Hardware(all)
    }

    /// The accelerator under a catalog id or a measurement file's id.
    pub fn find(&self, id: &str) -> Option<Accelerator> {
        let id = id.trim().to_ascii_lowercase();
        if let Some(a) = self.0.get(id.as_str()).or_else(|| self.0.get(alias(&id))) {
            return Some(*a);
        }
        variant(self, &id)
    }
}

/// Devices that the catalog lacks, as variants of one it has.
fn variant(h: &Hardware, id: &str) -> Option<Accelerator> {
    let of = |id: &str| h.0.get(id).copied();
    match id {
        // MareNostrum 5's custom H100: 64 GB HBM2e, 4 to a node with 4 NDR200 NICs (BSC user guide); its entry in the
        // Top500 implies about 58 of the standard part's 66.9 TFLOPS FP64 a device.
        "nvidia-h100-sxm-64gb" => of("h100-sxm").map(|a| Accelerator {
            mem_bytes: 64e9,
            mem_bw: 2.02e12,
            domain: 4.0,
            nic_bw: 25e9,
            flops: a.flops.map(|f| f * 58.0 / 66.9),
            ..a
        }),
        // Leonardo's custom A100: 64 GB, 124 SMs, 4 to a node with two dual-port HDR100 NICs (arXiv 2307.16885).
        "nvidia-a100-sxm-64gb" => of("a100-sxm-80gb").map(|a| Accelerator {
            mem_bytes: 64e9,
            mem_bw: 1.64e12,
            cores: 124.0,
            domain: 4.0,
            nic_bw: 12.5e9,
            flops: a.flops.map(|f| f * 124.0 / 108.0),
            ..a
        }),
        // Gaudi 1: two MMEs of 256 x 256 bf16 MACs at about 1.1 GHz are not published as TFLOPS; 110 is measured.
        "intel-gaudi1" => of("gaudi2").map(|a| Accelerator {
            flops: {
                let mut flops = [0.0; Precision::COUNT];
                if let Some(slot) = flops.get_mut(Precision::Bf16 as usize) {
                    *slot = 110e12;
                }
                flops
            },
            mem_bytes: 32e9,
            mem_bw: 1.0e12,
            link_bw: 87.5e9,
            nic_bw: 12.5e9,
            tdp_w: 350.0,
            ..a
        }),
        _ => None,
    }
}
