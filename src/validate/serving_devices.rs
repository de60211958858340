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
    hardware.find(&id)
}
