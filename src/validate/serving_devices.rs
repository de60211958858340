//! Devices as serving measurements mean them, where a name stands for more than one product of the catalog.

use super::hardware::Hardware;
use crate::engine::analytical::accelerator::Accelerator;

/// The accelerator under a measurement file's id.
pub fn find(hardware: &Hardware, id: &str) -> Option<Accelerator> {
    let id = id.trim().to_ascii_lowercase();
    // Two products share one name in the catalog's alias table; measurements tell them apart by memory.
    match id.as_str() {
        "nvidia-h20-141gb" => {
            return hardware.find("nvidia-h20").map(|a| Accelerator { mem_bytes: 141e9, mem_bw: 4.8e12, ..a });
        }
        "nvidia-v100s-pcie-32gb" => {
            return hardware.find("nvidia-v100-32gb").map(|a| Accelerator {
                mem_bw: 1.134e12,
                link_bw: 16e9,
                switched: false,
                ..a
            });
        }
        "nvidia-v100-pcie-32gb" => {
            return hardware.find("nvidia-v100-32gb").map(|a| Accelerator { link_bw: 16e9, switched: false, ..a });
        }
        // Nodes of several GH200 join them by NVLink 4 (quad GH200 boards, NVL32).
        "nvidia-gh200" => {
            return hardware.find(&id).map(|a| Accelerator { link_bw: 450e9, domain: 32.0, switched: true, ..a });
        }
        _ => {}
    }
    hardware.find(&id).or_else(|| spelled(hardware, &id))
}

/// A device under another spelling: blanks for dashes, a form factor or a memory size that the catalog's id lacks. A
/// stated memory size holds.
fn spelled(hardware: &Hardware, id: &str) -> Option<Accelerator> {
    let dashed = id.replace([' ', '_', '/'], "-");
    let is_memory = |part: &&str| {
        part.strip_suffix("gb").or(part.strip_suffix("gib")).is_some_and(|n| n.parse::<f64>().is_ok_and(|n| n > 0.0))
    };
    let parts: Vec<&str> = dashed.split('-').filter(|part| !part.is_empty()).collect();
    let memory = parts.iter().find(|part| is_memory(part)).and_then(|part| {
        part.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse::<f64>().ok().map(|gb| gb * 1e9)
    });
    let plain: Vec<&str> = parts.iter().copied().filter(|part| !is_memory(part)).collect();
    let sized = |found: Accelerator| Accelerator { mem_bytes: memory.unwrap_or(found.mem_bytes), ..found };
    let joined = plain.join("-");
    let generic = |part: &str| match part {
        "sxm2" | "sxm3" | "sxm4" | "sxm5" | "sxm6" => "sxm".to_owned(),
        other => other.to_owned(),
    };
    let general = plain.iter().map(|part| generic(part)).collect::<Vec<_>>().join("-");
    const FORMS: [&str; 7] = ["sxm", "pcie", "nvl", "oam", "hbm3", "hbm3e", "hbm2e"];
    let bare =
        plain.iter().map(|part| generic(part)).filter(|p| !FORMS.contains(&p.as_str())).collect::<Vec<_>>().join("-");
    [dashed.clone(), joined, general, bare.clone()]
        .iter()
        .find_map(|id| hardware.find(id))
        .or_else(|| ["sxm", "pcie"].iter().find_map(|form| hardware.find(&format!("{bare}-{form}"))))
        .map(sized)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn every_device_of_the_catalog_is_found_in_any_case_and_with_a_vendor() {
        let catalog = Catalog::built_in();
        let hardware = Hardware::of(&catalog);
        for sheet in catalog.accelerators() {
            for id in [sheet.id.clone(), sheet.id.to_uppercase(), format!(" {} ", sheet.id), sheet.id.replace('-', "_")]
            {
                assert!(find(&hardware, &id).is_some(), "{id}");
            }
        }
    }

    #[test]
    fn other_spellings_and_memory_sizes_mean_the_same_device() {
        let hardware = Hardware::of(&Catalog::built_in());
        let of = |id: &str| find(&hardware, id);
        let same = |a: &str, b: &str| {
            assert!(of(a).is_some(), "{a}");
            assert_eq!(of(a).map(|a| a.flops), of(b).map(|b| b.flops), "{a} {b}");
        };
        same("nvidia-h100-sxm5-80gb", "nvidia-h100-sxm-80gb");
        same("NVIDIA H100 80GB HBM3", "nvidia-h100-sxm-80gb");
        same("nvidia-h200-141gb", "nvidia-h200");
        same("amd-mi300x-192gb", "amd-mi300x");
        same("nvidia_b200_sxm", "nvidia-b200");
        same("nvidia-l40s-48gb", "nvidia-l40s");
        assert_eq!(of("nvidia-a100-sxm4-40gb").map(|a| a.mem_bytes), Some(40e9));
        for nonsense in ["", "-", "gb", "80gb", "abacus", "nvidia-"] {
            assert!(find(&hardware, nonsense).is_none(), "{nonsense}");
        }
    }
}
