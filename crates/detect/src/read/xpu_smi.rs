//! `xpu-smi discovery`: devices as JSON or as a table.

use serde_json::Value;

use super::{Device, MAX_DEVICES, json, member, scalar};
use crate::text::{clean, gib};

/// Parses the output of `xpu-smi discovery`, with or without `-j`, and of `xpu-smi discovery -d N -j` for one device.
#[must_use]
pub fn devices(text: &str) -> Vec<Device> {
    match json(text) {
        Some(document) => match member(&document, "device_list").and_then(Value::as_array) {
            Some(list) => list.iter().take(MAX_DEVICES).filter_map(device).collect(),
            None => device(&document).into_iter().collect(),
        },
        None => table(text),
    }
}

fn device(value: &Value) -> Option<Device> {
    let field = |key: &str| member(value, key).and_then(scalar);
    if field("device_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("GPU")) {
        return None;
    }
    Some(Device {
        index: field("device_id")?.parse().ok()?,
        name: clean(&field("device_name")?),
        memory_gib: field("memory_physical_size_byte").and_then(|bytes| gib(&bytes, 1.0)),
        ..Device::default()
    })
}

/// Parses rows such as `| 0  | Device Name: Intel(R) Data Center GPU Max 1550 |`.
fn table(text: &str) -> Vec<Device> {
    let mut devices: Vec<Device> = Vec::new();
    let mut index = None;
    for line in text.lines().take(MAX_DEVICES * 16) {
        for cell in line.split('|').map(str::trim) {
            if let Ok(number) = cell.parse::<u32>() {
                index = Some(number);
            } else if let Some(name) = cell.strip_prefix("Device Name:")
                && let Some(index) = index.take()
                && devices.len() < MAX_DEVICES
            {
                devices.push(Device { index, name: clean(name), ..Device::default() });
            } else if let Some(size) = cell.strip_prefix("Memory Physical Size:")
                && let Some(device) = devices.last_mut()
            {
                device.memory_gib = gib(size.trim(), 1.0);
            }
        }
    }
    devices
}
