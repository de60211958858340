//! `neuron-ls --json-output`: Trainium and Inferentia devices.

use serde_json::Value;

use super::{Device, MAX_DEVICES, json, member, scalar};
use crate::text::gib;

/// Parses the devices. The tool does not state names, so the name is derived from memory, cores and the instance type.
#[must_use]
pub fn devices(text: &str, instance_type: Option<&str>) -> Vec<Device> {
    let Some(document) = json(text) else { return Vec::new() };
    let list = document.as_array().or_else(|| member(&document, "neuron_devices").and_then(Value::as_array));
    list.into_iter()
        .flatten()
        .take(MAX_DEVICES)
        .filter_map(|value| {
            let cores = member(value, "nc_count").and_then(scalar)?.parse().ok()?;
            let memory_gib = member(value, "memory_size").and_then(scalar).and_then(|bytes| gib(&bytes, 1.0));
            Some(Device {
                index: member(value, "neuron_device").and_then(scalar)?.parse().ok()?,
                name: name(cores, memory_gib, instance_type),
                memory_gib,
                ..Device::default()
            })
        })
        .collect()
}

fn name(cores: u32, memory_gib: Option<f64>, instance_type: Option<&str>) -> String {
    if let Some(name) = instance_type.and_then(crate::matching::instance_accelerator) {
        return name.to_owned();
    }
    // Cores may be counted in pairs, so memory is decisive: Inferentia has 8 GB, Trainium2 96 GB, Trainium3 144 GB.
    // Trainium and Inferentia2 both have two cores and 32 GiB.
    match (memory_gib, cores) {
        (Some(size), _) if size > 120.0 => "trn3",
        (Some(size), _) if size > 60.0 => "trn2",
        (Some(size), 4) if size < 12.0 => "inf1",
        (None, 8) => "trn2",
        _ => UNNAMED_DEVICE,
    }
    .to_owned()
}

/// Name of a device that may be a Trainium or an Inferentia2.
pub const UNNAMED_DEVICE: &str = "Neuron device";

/// The instance type in the text output of `neuron-ls`.
#[must_use]
pub fn instance_type(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("instance-type:"))?;
    Some(crate::text::clean(line)).filter(|name| !name.is_empty())
}
