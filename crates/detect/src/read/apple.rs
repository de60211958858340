//! macOS: `system_profiler` and `sysctl`.

use serde_json::Value;

use super::{Device, json, member, scalar};
use crate::text::{GIB, clean, gib};

/// The chip in `system_profiler SPHardwareDataType SPDisplaysDataType -json`; `None` for Macs without an Apple chip.
#[must_use]
pub fn chip(text: &str) -> Option<Device> {
    let document = json(text)?;
    let first = |section: &str, field: &str| {
        let list = member(&document, section)?.as_array()?;
        list.iter().take(64).find_map(|item| member(item, field).and_then(scalar))
    };
    let name = first("SPHardwareDataType", "chip_type").or_else(|| first("SPDisplaysDataType", "sppci_model"))?;
    if !name.starts_with("Apple ") {
        return None;
    }
    let displays = member(&document, "SPDisplaysDataType").and_then(Value::as_array);
    let own = displays.into_iter().flatten().find(|gpu| member(gpu, "sppci_cores").is_some());
    Some(Device {
        name: clean(&name),
        memory_gib: first("SPHardwareDataType", "physical_memory").and_then(|size| gib(&size, GIB)),
        cores: own.and_then(|gpu| member(gpu, "sppci_cores")).and_then(scalar).and_then(|cores| cores.parse().ok()),
        ..Device::default()
    })
}

/// The chip in `sysctl hw.memsize machdep.cpu.brand_string`, which does not state the number of GPU cores.
#[must_use]
pub fn sysctl(text: &str) -> Option<Device> {
    let value = |key: &str| {
        text.lines().find_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix(':').map(str::trim))
    };
    let name = value("machdep.cpu.brand_string").filter(|name| name.starts_with("Apple "))?;
    Some(Device {
        name: clean(name),
        memory_gib: value("hw.memsize").and_then(|bytes| gib(bytes, 1.0)),
        ..Device::default()
    })
}
