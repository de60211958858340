//! `hl-smi`: Gaudi devices as a query table or the default screen.

use super::table::Table;
use super::{Device, MAX_DEVICES};
use crate::text::{clean, gib};

/// Devices of `hl-smi -Q index,name,memory.total,power.max -f csv`, or of `hl-smi` without options.
#[must_use]
pub fn devices(text: &str) -> Vec<Device> {
    let Some(table) = Table::read(text, "name") else { return parse_table(text) };
    table
        .rows()
        .filter_map(|row| {
            Some(Device {
                index: row.whole("index").or_else(|| row.whole("module_id"))?,
                name: clean(row.get("name")?),
                memory_gib: row.gib("memory.total"),
                power_w: row.number("power.max").filter(|watts| *watts > 0.0 && *watts < 1e5),
                ..Device::default()
            })
        })
        .collect()
}

/// Parses rows such as `|   0  HL-225  N/A  | 0000:19:00.0  N/A | … |`, each followed by one with `… 768MiB /
/// 98304MiB`.
fn parse_table(text: &str) -> Vec<Device> {
    let mut devices: Vec<Device> = Vec::new();
    for line in text.lines().take(MAX_DEVICES * 16) {
        let mut words = line.trim_start_matches('|').split_whitespace();
        if let (Some(Ok(index)), Some(name)) = (words.next().map(str::parse), words.next())
            && name.starts_with("HL-")
            && devices.len() < MAX_DEVICES
        {
            devices.push(Device { index, name: clean(name), ..Device::default() });
        } else if let Some(device) = devices.last_mut().filter(|device| device.memory_gib.is_none()) {
            let total = line.split('|').filter_map(|cell| cell.split_once('/')).find_map(|(_, total)| {
                let total = total.trim();
                total.ends_with("MiB").then(|| gib(total, 1.0)).flatten()
            });
            device.memory_gib = total;
        }
    }
    devices
}
