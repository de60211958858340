//! `rocm-smi`: product names, memory and power as JSON or text, and the link matrix.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Device, MAX_DEVICES, json, member, pci, scalar};
use crate::text::{clean, gib, leading_number};

/// Parses the output of `rocm-smi --showproductname --showmeminfo vram --showmaxpower --json`.
#[must_use]
pub fn devices(text: &str) -> Vec<Device> {
    let mut cards: BTreeMap<u32, BTreeMap<String, String>> = BTreeMap::new();
    if let Some(Value::Object(map)) = json(text) {
        for (key, value) in map.iter().take(MAX_DEVICES) {
            let Some(index) = key.strip_prefix("card").and_then(|index| index.parse().ok()) else { continue };
            let Value::Object(fields) = value else { continue };
            let card = cards.entry(index).or_default();
            for (field, value) in fields.iter().take(64) {
                if let Some(value) = scalar(value) {
                    card.insert(field.trim().to_ascii_lowercase(), value);
                }
            }
        }
    } else {
        lines(text, &mut cards);
    }
    cards.into_iter().filter_map(|(index, fields)| device(index, &fields)).collect()
}

/// Parses lines such as `GPU[0]  : Card Series:  AMD Instinct MI300X OAM`.
fn lines(text: &str, cards: &mut BTreeMap<u32, BTreeMap<String, String>>) {
    for line in text.lines().take(MAX_DEVICES * 32) {
        let Some(rest) = line.trim().strip_prefix("GPU[") else { continue };
        let Some((index, rest)) = rest.split_once(']') else { continue };
        let Ok(index) = index.parse() else { continue };
        if cards.len() >= MAX_DEVICES && !cards.contains_key(&index) {
            continue;
        }
        let Some((field, value)) = rest.trim_start().trim_start_matches(':').split_once(':') else { continue };
        cards.entry(index).or_default().insert(field.trim().to_ascii_lowercase(), value.trim().to_owned());
    }
}

fn device(index: u32, fields: &BTreeMap<String, String>) -> Option<Device> {
    let field = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)).map(String::as_str);
    let names = ["card series", "card model", "device name", "card sku"];
    let readable = |name: &&str| !name.starts_with("0x") && !name.eq_ignore_ascii_case("AMD Radeon Graphics");
    let named = names.iter().filter_map(|name| field(&[name])).find(readable);
    // If there is no name, it is derived from the PCI device id.
    let by_id = ["card model", "device id", "card series"]
        .iter()
        .filter_map(|name| field(&[name]))
        .filter_map(pci::hexadecimal)
        .find_map(|id| pci::device_name(pci::AMD, id));
    Some(Device {
        index,
        name: named.map(clean).or_else(|| by_id.map(str::to_owned))?,
        memory_gib: field(&["vram total memory (b)"]).and_then(|bytes| gib(bytes, 1.0)),
        power_w: field(&["max graphics package power (w)", "average graphics package power cap (w)"])
            .and_then(leading_number)
            .filter(|watts| *watts > 0.0 && *watts < 1e5),
        ..Device::default()
    })
}

/// Size of the smallest group of devices that are directly connected by xGMI, from `rocm-smi --showtopotype`: for each
/// device, the devices connected to it and the device itself. `None` if the output has no matrix.
#[must_use]
pub fn xgmi_domain(text: &str) -> Option<u32> {
    let mut rows = text.lines().skip_while(|line| !line.to_ascii_lowercase().contains("link type between"));
    rows.next()?;
    let mut smallest = None;
    for line in rows.take(MAX_DEVICES) {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if first.starts_with('=') {
            break;
        }
        let values: Vec<&str> = words.take(MAX_DEVICES).collect();
        if !first.starts_with("GPU") || values.iter().all(|value| value.starts_with("GPU")) {
            continue;
        }
        let joined = values.iter().filter(|value| value.eq_ignore_ascii_case("XGMI")).count() + 1;
        smallest = Some(smallest.map_or(joined, |least: usize| least.min(joined)));
    }
    smallest.and_then(|joined| u32::try_from(joined).ok())
}

/// Like [`xgmi_domain`], from `amd-smi topology --json`.
#[must_use]
pub fn xgmi_domain_of_amd_smi(text: &str) -> Option<u32> {
    let document = json(text)?;
    let gpus = document.as_array()?;
    let joined = gpus.iter().take(MAX_DEVICES).filter_map(|gpu| {
        let links = member(gpu, "links")?.as_array()?;
        let is_xgmi = |link: &&Value| {
            member(link, "link_type").and_then(Value::as_str).is_some_and(|kind| kind.eq_ignore_ascii_case("XGMI"))
        };
        u32::try_from(links.iter().filter(is_xgmi).count().saturating_add(1)).ok()
    });
    joined.min()
}
