//! `nvidia-smi`: the query table, the device list with MIG devices, and the state of NVLink.

use super::table::Table;
use super::{Device, MAX_DEVICES};
use crate::text::{clean, leading_number};

/// Fields of [`query`]. Drivers support them since 2020.
pub const FIELDS: &str = "index,name,memory.total,power.limit,pcie.link.gen.max,pcie.link.width.max,mig.mode.current";

/// Fields that all drivers support, for drivers that reject [`FIELDS`].
pub const BASIC_FIELDS: &str = "index,name,memory.total";

/// Devices of `nvidia-smi --query-gpu=… --format=csv`.
#[must_use]
pub fn query(text: &str) -> Vec<Device> {
    let Some(table) = Table::read(text, "name") else { return Vec::new() };
    table
        .rows()
        .filter_map(|row| {
            Some(Device {
                index: row.whole("index")?,
                name: clean(row.get("name")?),
                memory_gib: row.gib("memory.total"),
                power_w: row.number("power.limit").filter(|watts| *watts > 0.0 && *watts < 1e5),
                pcie: row.whole("pcie.link.gen.max").zip(row.whole("pcie.link.width.max")),
                mig: row.get("mig.mode.current").is_some_and(|mode| mode.eq_ignore_ascii_case("enabled")),
                cores: None,
            })
        })
        .collect()
}

/// A GPU in the output of `nvidia-smi -L`, with the MIG profiles of its instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Index of the GPU.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Profiles of its MIG devices, such as `1g.10gb`.
    pub profiles: Vec<String>,
}

/// Parses the output of `nvidia-smi -L`.
#[must_use]
pub fn list(text: &str) -> Vec<Listed> {
    let mut gpus: Vec<Listed> = Vec::new();
    for line in text.lines().take(MAX_DEVICES * 8) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("GPU ") {
            let Some((index, rest)) = rest.split_once(':') else { continue };
            let Ok(index) = index.trim().parse() else { continue };
            let name = rest.split("(UUID").next().unwrap_or(rest);
            gpus.push(Listed { index, name: clean(name), profiles: Vec::new() });
        } else if let Some(rest) = line.strip_prefix("MIG ")
            && let (Some(profile), Some(gpu)) = (rest.split_whitespace().next(), gpus.last_mut())
            && gpu.profiles.len() < 16
        {
            gpu.profiles.push(clean(profile));
        }
    }
    gpus
}

/// NVLinks of one GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NvLinks {
    /// Index of the GPU.
    pub index: u32,
    /// Number of active links.
    pub links: u32,
    /// Rate of one link in one direction, GB/s, as stated in datasheets.
    pub gbytes_per_sec: f64,
}

/// Parses the active links in the output of `nvidia-smi nvlink -s`.
///
/// The tool states the line rate (25.781, 26.562 or 53.125 GB/s); datasheets exclude the encoding overhead (25 or 50
/// GB/s).
#[must_use]
pub fn nvlink(text: &str) -> Vec<NvLinks> {
    let mut gpus: Vec<NvLinks> = Vec::new();
    for line in text.lines().take(MAX_DEVICES * 32) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("GPU ") {
            let Some(index) = rest.split(':').next().and_then(|index| index.trim().parse().ok()) else { continue };
            gpus.push(NvLinks { index, links: 0, gbytes_per_sec: 0.0 });
        } else if let Some(rest) = line.strip_prefix("Link ")
            && let Some((_, rate)) = rest.split_once(':')
            && rate.contains("GB/s")
            && let (Some(rate), Some(gpu)) = (leading_number(rate), gpus.last_mut())
            && rate > 0.0
            && rate < 1e4
        {
            gpu.links = gpu.links.saturating_add(1);
            gpu.gbytes_per_sec = if rate >= 25.0 { (rate / 25.0).floor() * 25.0 } else { rate };
        }
    }
    gpus.retain(|gpu| gpu.links > 0);
    gpus
}
