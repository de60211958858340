//! Scale-up and scale-out networks of a training run.

use atlas_catalog::Accelerator;

use super::super::record::Record;
use super::super::table::Row;
use super::super::text::{clause, number_before};

/// Fills `scale_up_domain` and `nic_gbits_per_accel`.
pub(super) fn fill(record: &mut Record, row: &Row, device: Option<&Accelerator>) {
    let (link, notes) = (row.text("intra_node_link"), row.text("notes"));
    let n = record.number("num_accelerators");
    if notes.contains("MNNVL=0") {
        if let Some(node) = record.number("accelerators_per_node") {
            record.convert("scale_up_domain", node, "notes \"MNNVL=0\"");
        }
    } else if let Some(size) = link.split("NVL").nth(1).and_then(parse_leading_number).filter(|n| *n >= 8.0) {
        record.convert("scale_up_domain", size, format!("\"{link}\""));
    } else if let Some(chips) = slice_chips(notes) {
        let chips = n.map_or(chips, |n| chips.min(n));
        record.convert("scale_up_domain", chips, format!("notes \"{}\"", clause(notes, "slice(s) of ")));
    } else if let Some(domain) = device.filter(|d| d.vendor == "NVIDIA").and_then(|d| d.scale_up.as_ref()?.domain_size)
    {
        // In racks of superchips, the stated node is one tray of the NVLink domain.
        if domain > 16.0 && record.number("accelerators_per_node").is_some_and(|node| node < domain) {
            record.assume("scale_up_domain", f64::from(domain), "not stated, the rack's NVLink domain");
        }
    }
    nic(record, row.text("inter_node_link"));
}

/// Parses the number at the start of a text.
fn parse_leading_number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// Returns the number of chips per TPU slice: `2 slice(s) of v5p-128 (64 chips each` or `4 slice(s) of v5e-256`.
pub(super) fn slice_chips(notes: &str) -> Option<f64> {
    let after = notes.split("slice(s) of ").nth(1)?;
    let clause = after.split(';').next().unwrap_or(after);
    if let Some(chips) = number_before(clause, " chips") {
        return Some(chips);
    }
    let dashed = clause.split_once('-')?.1;
    parse_leading_number(dashed).filter(|n| *n >= 1.0)
}

/// Fills the network bandwidth per accelerator, Gbit/s.
fn nic(record: &mut Record, link: &str) {
    if link.is_empty() {
        return;
    }
    let node = record.number("accelerators_per_node").unwrap_or(8.0);
    match rate(link) {
        Some(Rate { gbits, of: RateScope::Node }) => {
            record.convert("nic_gbits_per_accel", gbits / node, format!("\"{link}\""));
        }
        Some(Rate { gbits, of: RateScope::Unspecified }) => {
            record.assume("nic_gbits_per_accel", gbits, format!("\"{link}\", one NIC for each accelerator"));
        }
        None => {}
    }
}

#[derive(Debug, PartialEq)]
enum RateScope {
    Node,
    Unspecified,
}

#[derive(Debug, PartialEq)]
struct Rate {
    gbits: f64,
    of: RateScope,
}

/// Finds the bandwidth of the compute network in a description.
fn rate(link: &str) -> Option<Rate> {
    // Storage and management networks may be listed alongside the compute fabric.
    let lower = link.to_ascii_lowercase();
    if ["which one not stated", "not stated"].iter().any(|w| lower.contains(w)) {
        return None;
    }
    let named = ["compute:", "pcie-nic:"].into_iter().find_map(|name| link.get(lower.find(name)? + name.len()..));
    let scope = named.map_or(link, |rest| rest.split([',', ';']).next().unwrap_or(rest));
    // North-south traffic does not carry collectives: `BF3 200Gbps for NS and 2xBF3 400Gbps for EW`.
    let scope = match scope.to_ascii_lowercase().find(" for ew") {
        Some(end) => scope.get(..end).and_then(|head| head.rsplit(" and ").next()).unwrap_or(scope),
        None => scope,
    };
    let text = scope.to_ascii_lowercase();
    let (at, bytes) = ["gbps", "gb/s", "gbit/s", "gbe", "gb "].into_iter().find_map(|unit| {
        let at = text.find(unit)?;
        Some((at, scope.get(at..at + 4).is_some_and(|u| u == "GB/s")))
    })?;
    let head = text.get(..at)?.trim_end();
    let start = head.rfind(|ch: char| !(ch.is_ascii_digit() || ch == '.')).map_or(0, |i| i + 1);
    let each: f64 = head.get(start..)?.parse().ok()?;
    let gbits = each * if bytes { 8.0 } else { 1.0 };
    let count = text
        .split(|c: char| c.is_whitespace() || c == '(')
        .find_map(|word| word.split_once('x').and_then(|(n, _)| n.parse::<f64>().ok()))
        .filter(|n| (1.0..=16.0).contains(n));
    let per_node = ["/node", "per node", "per instance", "p4d", "p5"].iter().any(|w| lower.contains(w));
    let node_total = named.is_some_and(|_| lower.contains("pcie-nic:")) || gbits > 800.0;
    Some(match count {
        Some(count) => Rate { gbits: count * gbits, of: RateScope::Node },
        None if per_node || node_total => Rate { gbits, of: RateScope::Node },
        None => Rate { gbits, of: RateScope::Unspecified },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_description_parses_to_rate_per_node_or_nic() {
        let node = |gbits| Some(Rate { gbits, of: RateScope::Node });
        let one = |gbits| Some(Rate { gbits, of: RateScope::Unspecified });
        for (link, expected) in [
            ("4x HDR InfiniBand 200Gbps/node (800Gbps per simulator config)", node(800.0)),
            ("4x Omni-Path 100Gbps/node", node(400.0)),
            ("4x100Gb RoCE/node", node(400.0)),
            ("RoCE 1600Gbps/node", node(1600.0)),
            ("InfiniBand 8x50GB/s per node", node(3200.0)),
            ("8x 200Gb/s HDR InfiniBand per node", node(1600.0)),
            (
                "Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s, Management: 100Gb/s",
                node(3200.0),
            ),
            ("ConnectX-7 InfiniBand 400Gb/s", one(400.0)),
            ("InfiniBand 200Gb/s", one(200.0)),
            ("4x200Gbps RDMA/node", node(800.0)),
            ("ROCE2; Data bandwidth for GPU-PCIe: 504 GB/s; PCIe-NIC: 500 GB/s", node(4000.0)),
            ("AWS EFA 400Gbps (p4d.24xlarge)", node(400.0)),
            ("AWS EFA 3200Gbps (p5.48xlarge)", node(3200.0)),
            ("BF3 200Gbps for NS and 2xBF3 400Gbps for EW", node(800.0)),
            ("HPE Slingshot 11", None),
            ("EFA (trn1 800Gbps / trn1n 1600Gbps per instance; which one not stated)", None),
            ("DCN (multislice)", None),
            ("", None),
        ] {
            assert_eq!(rate(link), expected, "{link}");
        }
    }

    #[test]
    fn slices_are_counted_in_chips() {
        assert_eq!(slice_chips("2 slice(s) of v5p-128 (64 chips each; name counts TensorCores)"), Some(64.0));
        assert_eq!(slice_chips("4 slice(s) of v5e-256; FSDP within slice"), Some(256.0));
        assert_eq!(slice_chips("2 slice(s) v4-512 (256 chips)"), None);
        assert_eq!(slice_chips("1 slice(s) of ?"), None);
    }
}
