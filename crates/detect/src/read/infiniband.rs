//! Ports in `/sys/class/infiniband`, with their rate and link layer.

use std::fs;
use std::path::Path;

use super::pci::{self, read_line};
use crate::model::NetworkKind;
use crate::text::{clean, leading_number};

/// Maximum number of devices and of ports that are read.
const MAX_ENTRIES: usize = 512;

/// A port of a NIC.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    /// Device name, such as `mlx5_0`.
    pub device: String,
    /// Number of the port.
    pub port: u32,
    /// Line rate, Gbit/s.
    pub gbits: f64,
    /// Kind of network.
    pub kind: NetworkKind,
    /// Whether the link is up.
    pub active: bool,
}

/// Reads the ports under `root`, which is `/sys` except in tests.
#[must_use]
pub fn scan(root: &Path) -> Vec<Port> {
    let Ok(folder) = fs::read_dir(root.join("class/infiniband")) else { return Vec::new() };
    let mut ports = Vec::new();
    for device in folder.take(MAX_ENTRIES).flatten() {
        let path = device.path();
        let name = clean(&device.file_name().to_string_lossy());
        let vendor = read_line(&path.join("device/vendor")).as_deref().and_then(pci::hexadecimal);
        let Ok(numbers) = fs::read_dir(path.join("ports")) else { continue };
        for number in numbers.take(MAX_ENTRIES).flatten() {
            let line = |file: &str| read_line(&number.path().join(file));
            let Ok(port) = number.file_name().to_string_lossy().parse() else { continue };
            let Some(gbits) = line("rate").as_deref().and_then(rate) else { continue };
            let layer = line("link_layer");
            ports.push(Port {
                device: name.clone(),
                port,
                gbits,
                kind: kind(&name, layer.as_deref(), vendor),
                active: line("state").is_some_and(|state| state.to_ascii_uppercase().contains("ACTIVE")),
            });
        }
    }
    ports.sort_by(|a, b| natural_sort_key(&a.device).cmp(&natural_sort_key(&b.device)).then(a.port.cmp(&b.port)));
    ports
}

/// Sort key that orders `mlx5_10` after `mlx5_9`.
fn natural_sort_key(device: &str) -> (String, u32) {
    let stem = device.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = device.strip_prefix(stem).and_then(|number| number.parse().ok());
    (stem.to_owned(), number.unwrap_or(0))
}

/// Parses a rate in Gbit/s: 400 for `400 Gb/sec (4X NDR)`.
pub(super) fn rate(text: &str) -> Option<f64> {
    leading_number(text).filter(|gbits| *gbits > 0.0 && *gbits < 1e5)
}

pub(super) fn kind(device: &str, layer: Option<&str>, vendor: Option<u32>) -> NetworkKind {
    let begins = |prefix: &str| device.starts_with(prefix);
    if vendor == Some(pci::AMAZON) || begins("efa") || begins("rdmap") {
        NetworkKind::Efa
    } else if begins("hfi1") || begins("opa") {
        NetworkKind::OmniPath
    } else if begins("cxi") || begins("hsi") {
        NetworkKind::Slingshot
    } else if layer.is_some_and(|layer| layer.eq_ignore_ascii_case("Ethernet")) {
        NetworkKind::RoCE
    } else {
        NetworkKind::InfiniBand
    }
}
