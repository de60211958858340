//! The catalog's devices as [`Accelerator`]s in SI units, found under the ids that measurement files use.

use std::collections::HashMap;

use crate::catalog::Catalog;
use crate::engine::analytical::accelerator::{Accelerator, Precision};
use crate::engine::datasheet::accelerator;

/// Accelerators by catalog id and alias.
#[derive(Debug, Clone)]
pub struct Hardware(HashMap<String, Accelerator>);

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
