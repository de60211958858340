//! `amd-smi static`: devices as JSON or indented text.

use serde_json::Value;

use super::{Device, MAX_DEVICES, json, member, pci, scalar};
use crate::text::{MIB, clean, gib, leading_number};

/// Devices of `amd-smi static --asic --vram --limit`, with or without `--json`.
#[must_use]
pub fn devices(text: &str) -> Vec<Device> {
    match json(text) {
        Some(Value::Array(list)) => list.iter().take(MAX_DEVICES).filter_map(device).collect(),
        Some(Value::Object(map)) => match map.get("gpu_data").and_then(Value::as_array) {
            Some(list) => list.iter().take(MAX_DEVICES).filter_map(device).collect(),
            None => Vec::new(),
        },
        _ => parse_indented(text),
    }
}

fn device(value: &Value) -> Option<Device> {
    let of = |group: &str, field: &str| member(value, group).and_then(|group| member(group, field)).and_then(scalar);
    let power = of("limit", "max_power").or_else(|| {
        let caps = member(member(value, "limit")?, "ppt0").or_else(|| member(value, "limit"))?;
        member(caps, "max_power_limit").or_else(|| member(caps, "socket_power_limit")).and_then(scalar)
    });
    build(Fields {
        index: member(value, "gpu").and_then(scalar),
        name: of("asic", "market_name"),
        device_id: of("asic", "device_id"),
        size: of("vram", "size").or_else(|| of("vram", "vram_size_mb")),
        power,
    })
}

#[derive(Default)]
struct Fields {
    index: Option<String>,
    name: Option<String>,
    device_id: Option<String>,
    size: Option<String>,
    power: Option<String>,
}

fn build(fields: Fields) -> Option<Device> {
    let by_id = || fields.device_id.as_deref().and_then(pci::hexadecimal).and_then(|id| pci::device_name(pci::AMD, id));
    let readable = |name: &String| !name.starts_with("0x") && !name.eq_ignore_ascii_case("AMD Radeon Graphics");
    Some(Device {
        index: fields.index.as_deref()?.parse().ok()?,
        name: fields
            .name
            .as_ref()
            .filter(|name| readable(name))
            .map(|name| clean(name))
            .or_else(|| by_id().map(str::to_owned))?,
        memory_gib: fields.size.as_deref().and_then(|size| gib(size, MIB)),
        power_w: fields.power.as_deref().and_then(leading_number).filter(|watts| *watts > 0.0 && *watts < 1e5),
        ..Device::default()
    })
}

/// Parses blocks that begin with `GPU: 0` and contain lines `FIELD: value`.
fn parse_indented(text: &str) -> Vec<Device> {
    let mut devices = Vec::new();
    let mut fields = Fields::default();
    let mut group = String::new();
    for line in text.lines().take(MAX_DEVICES * 128) {
        let Some((field, value)) = line.split_once(':') else { continue };
        let (field, value) = (field.trim().to_ascii_lowercase(), value.trim());
        if value.is_empty() {
            group = field;
            continue;
        }
        let value = Some(value.to_owned());
        match (group.as_str(), field.as_str()) {
            (_, "gpu") => {
                devices.extend(build(std::mem::take(&mut fields)));
                fields.index = value;
            }
            (_, "market_name") => fields.name = value,
            ("asic", "device_id") => fields.device_id = value,
            ("vram", "size") => fields.size = value,
            (_, "max_power" | "max_power_limit") => fields.power = value,
            _ => {}
        }
        if devices.len() >= MAX_DEVICES {
            return devices;
        }
    }
    devices.extend(build(fields));
    devices
}
