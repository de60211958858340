//! Writes one machine as one entry.

use std::fmt::Write as _;

use super::NodeCost;
use super::yaml::{comment, number, plausible, text};
use crate::catalog::CatalogEntry;
use crate::matching::Matched;
use crate::model::{Accelerator, Limit, Machine, Origin};
use crate::read::slurm_time;

/// Indentation of an entry's fields.
const FIELDS: usize = 2;

/// Why a machine cannot be a target. Its entry is then written as a comment.
pub(super) fn not_plannable(machine: &Machine) -> Option<String> {
    let slice = machine.accelerator.as_ref()?.slice.as_ref()?;
    Some(format!(
        "{}: jobs get MIG slices {} ({} of 7 compute slices, {} GB), not whole accelerators. The catalog describes \
         only whole accelerators, so this entry is commented out and serves only as a reference.",
        machine.name,
        slice.profile,
        slice.compute,
        number(slice.memory_gb)
    ))
}

/// Writes the entry.
pub(super) fn render(machine: &Machine, catalog: &[CatalogEntry], cost: Option<&NodeCost>) -> String {
    let mut out = format!("- name: {}\n", text(&machine.name));
    let mut field = |line: &str| {
        out.push_str("  ");
        out.push_str(line);
        out.push('\n');
    };
    field(&format!("description: {}", text(&description(machine))));
    for remark in &machine.remarks {
        comment(&mut out, FIELDS, remark);
    }
    accelerator(&mut out, machine, catalog);
    nodes(&mut out, machine);
    memory(&mut out, machine, catalog);
    links(&mut out, machine);
    costs(&mut out, machine, cost);
    remaining_fields(&mut out, machine);
    out
}

fn line(out: &mut String, value: &str) {
    let _ = writeln!(out, "  {value}");
}

fn raw(machine: &Machine) -> &str {
    machine.accelerator.as_ref().map_or("accelerators", |accelerator| accelerator.raw.as_str())
}

fn description(machine: &Machine) -> String {
    let of = match (machine.nodes.total, machine.accelerators_per_node) {
        (Some(1) | None, Some(count)) => format!("{count} {}", raw(machine)),
        (Some(nodes), Some(count)) => format!("{nodes} nodes of {count} {}", raw(machine)),
        (Some(nodes), None) => format!("{nodes} nodes of {}", raw(machine)),
        (None, None) => raw(machine).to_owned(),
    };
    match &machine.origin {
        Origin::Local => format!("this machine; {of}"),
        Origin::Slurm { cluster: Some(cluster), partition, .. } => {
            format!("Slurm partition {partition} of {cluster}; {of}")
        }
        Origin::Slurm { cluster: None, partition, .. } => format!("Slurm partition {partition}; {of}"),
        Origin::Kubernetes { pool } => format!("Kubernetes pool {pool}; {of}"),
    }
}

fn entry<'a>(catalog: &'a [CatalogEntry], key: &str) -> Option<&'a CatalogEntry> {
    catalog.iter().find(|entry| entry.key == key)
}

/// Catalog entries that may be the accelerator.
fn candidates<'a>(accelerator: &Accelerator, catalog: &'a [CatalogEntry]) -> Vec<&'a CatalogEntry> {
    let keys: &[String] = match &accelerator.matched {
        Matched::One { key, .. } => std::slice::from_ref(key),
        Matched::Several { keys, .. } => keys,
        Matched::Unknown { .. } => &[],
    };
    keys.iter().filter_map(|key| entry(catalog, key)).collect()
}

fn accelerator(out: &mut String, machine: &Machine, catalog: &[CatalogEntry]) {
    let Some(found) = &machine.accelerator else { return };
    let fitting = candidates(found, catalog);
    match fitting.first() {
        Some(first) if fitting.iter().all(|entry| entry.vendor == first.vendor) => {
            line(out, &format!("vendor: {}", text(&first.vendor)));
        }
        _ => comment(out, FIELDS, "vendor: not determined; NVIDIA, AMD, Intel, Google, AWS, Apple, …"),
    }
    let read = format!("\"{}\" ({})", found.raw, found.source);
    match &found.matched {
        Matched::One { key, by_hint } => {
            let hint = by_hint.as_ref().map(|hint| format!(", decided by {hint}")).unwrap_or_default();
            comment(out, FIELDS, &format!("matched from {read}{hint}"));
            line(out, &format!("accelerator: {}", text(key)));
        }
        Matched::Several { keys, reason } => {
            let task = "Uncomment one of:";
            comment(out, FIELDS, &format!("accelerator: not determined; {read}: {reason}. {task}"));
            for key in keys {
                comment(out, FIELDS, &format!("accelerator: {key}"));
                if let Some(gb) = entry(catalog, key).and_then(|entry| entry.memory_gb) {
                    comment(out, FIELDS, &format!("memory_gb_per_accel: {}", number(gb)));
                }
            }
        }
        Matched::Unknown { closest, reason } => {
            let near = if closest.is_empty() { String::new() } else { format!(" Closest: {}.", closest.join(", ")) };
            comment(
                out,
                FIELDS,
                &format!(
                    "accelerator: not determined; {read}: {reason}.{near} Write a catalog key, or add the device to the \
                     catalog."
                ),
            );
        }
    }
    match machine.accelerators_per_node {
        Some(count) => line(out, &format!("accelerators_per_node: {count}")),
        None => comment(out, FIELDS, "accelerators_per_node: not determined; number of accelerators in one node"),
    }
}

fn nodes(out: &mut String, machine: &Machine) {
    let Some(total) = machine.nodes.total.filter(|total| *total > 0) else {
        comment(out, FIELDS, "num_nodes: not determined; maximum number of nodes of one job");
        return;
    };
    let states = [
        ("idle", machine.nodes.idle),
        ("partly used", machine.nodes.mixed),
        ("in use", machine.nodes.allocated),
        ("reserved for a pending job", machine.nodes.planned),
        ("unavailable", machine.nodes.unavailable),
    ];
    let counts: Vec<String> = states
        .iter()
        .filter_map(|(label, count)| count.filter(|count| *count > 0).map(|count| format!("{count} {label}")))
        .collect();
    if !counts.is_empty() {
        comment(
            out,
            FIELDS,
            &format!("of {total} {} now: {}", if total == 1 { "node" } else { "nodes" }, counts.join(", ")),
        );
    }
    let most = match machine.limits.max_nodes {
        Some(Limit::Max(most)) => u32::try_from(most).unwrap_or(u32::MAX),
        _ => total,
    };
    if most > 0 && most < total {
        comment(out, FIELDS, &format!("a job gets at most {most} of the {total} nodes"));
        line(out, &format!("num_nodes: {most}"));
    } else {
        line(out, &format!("num_nodes: {total}"));
    }
}

fn memory(out: &mut String, machine: &Machine, catalog: &[CatalogEntry]) {
    let Some(found) = &machine.accelerator else { return };
    let fitting = candidates(found, catalog);
    // A chip that uses the host's memory is sold in many sizes, so that the measured size takes precedence over the
    // nominal one.
    let own_size =
        |entry: &CatalogEntry| entry.form_factor.as_deref().is_some_and(|form| form.eq_ignore_ascii_case("soc"));
    let nominal = match fitting.as_slice() {
        _ if found.slice.is_some() => found.slice.as_ref().map(|slice| slice.memory_gb),
        [only] if own_size(only) => found.memory_gib.map(f64::round).or(only.memory_gb),
        [only] => only.memory_gb,
        _ => None,
    };
    let measured = found.memory_gib.filter(|_| fitting.is_empty()).map(|gib| gib.round().max(1.0));
    match plausible(nominal.or(measured)).filter(|gb| *gb <= 1e6) {
        Some(gb) => line(out, &format!("memory_gb_per_accel: {}", number(gb))),
        None if fitting.is_empty() => {
            comment(out, FIELDS, "memory_gb_per_accel: not determined; memory of one accelerator, GB");
        }
        None => {}
    }
}

fn links(out: &mut String, machine: &Machine) {
    match &machine.link {
        Some(link) => {
            let domain = link.domain_size.map(|size| format!(", domain_size: {size}")).unwrap_or_default();
            match plausible(link.gbytes_per_sec) {
                Some(rate) => {
                    comment(out, FIELDS, &format!("measured: {}", link.source));
                    line(
                        out,
                        &format!("interconnect: {{ type: {}, bw_GBps: {}{domain} }}", text(&link.kind), number(rate)),
                    );
                }
                None => comment(
                    out,
                    FIELDS,
                    &format!(
                        "interconnect: {{ type: {}, bw_GBps: …{domain} }}; rate not determined (type from: {}), the \
                         catalog value is used",
                        text(&link.kind),
                        link.source
                    ),
                ),
            }
        }
        None => {
            comment(out, FIELDS, "interconnect: { type: …, bw_GBps: … }; not determined, the catalog value is used")
        }
    }
    network(out, machine);
    for open in machine.undetermined.iter().filter(|open| open.what != "network") {
        comment(out, FIELDS, &format!("{}: not determined; {}; {}.", open.what, open.why, open.state));
    }
}

fn network(out: &mut String, machine: &Machine) {
    let per = machine.accelerators_per_node.filter(|count| *count > 0);
    let open = machine.undetermined.iter().find(|open| open.what == "network");
    let link = machine.network.as_ref();
    let rate = link.and_then(|link| plausible(link.gbits_per_nic));
    if let (Some(link), Some(rate), Some(accelerators)) = (link, rate, per)
        && let Some(nics) = link.nics_per_node
    {
        let each = plausible(Some(rate * f64::from(nics) / f64::from(accelerators)));
        if let Some(each) = each {
            comment(out, FIELDS, &format!("{nics} × {} Gbit/s per node ({})", number(rate), link.source));
            line(out, &format!("network: {{ type: {}, Gbps_per_accel: {} }}", text(link.kind.label()), number(each)));
            return;
        }
    }
    let kind = link.map_or("…", |link| link.kind.label());
    let nics = link.and_then(|link| link.nics_per_node).map_or("NICs per node".to_owned(), |nics| nics.to_string());
    let rate = rate.map_or("Gbit/s per NIC".to_owned(), number);
    let per = per.map_or("accelerators per node".to_owned(), |count| count.to_string());
    let why = open.map(|open| format!("; {}", open.why)).unwrap_or_default();
    let state = open.map(|open| format!(". To determine it, run {}", open.state)).unwrap_or_default();
    comment(
        out,
        FIELDS,
        &format!(
            "network: {{ type: {kind}, Gbps_per_accel: … }}; not determined. Gbps_per_accel is {nics} × {rate} / \
             {per}{why}{state}."
        ),
    );
}

fn costs(out: &mut String, machine: &Machine, cost: Option<&NodeCost>) {
    let known = cost.cloned().unwrap_or_default();
    line(out, "cost:");
    let depth = FIELDS + 2;
    if !known.source.is_empty() {
        comment(out, depth, &format!("assumed: {}", known.source));
    }
    let mut value = |key: &str, value: Option<f64>, help: &str| match plausible(value) {
        Some(value) => line(out, &format!("  {key}: {}", number(value))),
        None => comment(out, depth, &format!("{key}: not determined; {help}")),
    };
    value("hourly_usd", known.hourly_usd, "price of one node, USD per hour; 0 if it is free of charge");
    let power =
        machine.accelerator.as_ref().and_then(|found| plausible(found.power_w)).zip(machine.accelerators_per_node);
    let alone = power.map(|(watts, count)| {
        format!("; the power limits of its accelerators add up to {} W", number(watts * f64::from(count)))
    });
    let help = format!("maximum power draw of one node, W{}", alone.unwrap_or_default());
    value("energy_watts_node", known.energy_watts_node, &help);
    value("pue", known.pue, "facility power over IT power, 1.1 to 1.6 for most sites");
}

fn remaining_fields(out: &mut String, machine: &Machine) {
    if let Some(instance) = &machine.host.instance_type {
        line(out, &format!("instance_type: {}", text(instance)));
    }
    if let Some(architecture) = &machine.host.architecture {
        line(out, &format!("host_cpu_arch: {}", text(architecture)));
    }
    let host: Vec<String> = [
        machine.host.cpus.map(|cpus| format!("{cpus} CPUs")),
        machine.host.memory_gib.map(|gib| format!("{} GiB", gib.round())),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !host.is_empty() {
        comment(out, FIELDS, &format!("host: {}", host.join(", ")));
    }
    if !machine.features.is_empty() {
        comment(out, FIELDS, &format!("features: {}", machine.features.join(", ")));
    }
    let limits = limits(machine);
    if !limits.is_empty() {
        line(out, &format!("notes: {}", text(&limits)));
    }
    let source = machine.accelerator.as_ref().map_or("", |found| found.source.as_str());
    line(out, &format!("source: {}", text(&format!("detected; {source}"))));
}

fn limits(machine: &Machine) -> String {
    let own = &machine.limits;
    let mut parts = Vec::new();
    if let Some(Limit::Max(seconds)) = own.max_time {
        parts.push(format!("maximum job time {}", slurm_time::format_duration(seconds)));
    }
    if let Some(seconds) = own.default_seconds {
        parts.push(format!("default job time {}", slurm_time::format_duration(seconds)));
    }
    if let Some(Limit::Max(nodes)) = own.max_nodes {
        parts.push(format!("at most {}", nodes_per_job(nodes)));
    }
    if let Some(nodes) = own.min_nodes {
        parts.push(format!("at least {}", nodes_per_job(nodes)));
    }
    if let Some(state) = own.state.as_ref().filter(|state| !state.eq_ignore_ascii_case("up")) {
        parts.push(format!("the partition is {state}"));
    }
    parts.extend(own.allowed.iter().cloned());
    parts.join("; ")
}

fn nodes_per_job(count: u64) -> String {
    if count == 1 { "1 node per job".to_owned() } else { format!("{count} nodes per job") }
}
