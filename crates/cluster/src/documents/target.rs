//! The target of a job: its accelerators, with links, price and power from a target of the library.

use atlas_core::count::Count;
use atlas_core::field::FileLocation;
use atlas_core::math;
use std::sync::Arc;

use atlas_catalog::Accelerator;
use atlas_config::Target;
use atlas_config::library::Library;

use super::facts::{Facts, Line, YamlLines, line_with_comment};
use super::{MissingInput, UserInput};
use crate::import::Field;

/// The entry of a target.
pub(super) struct Machine {
    /// The entry without its name.
    pub(super) body: String,
    /// The origins of its values.
    pub(super) read_from: String,
    /// Number of accelerators.
    pub(super) devices: u64,
}

/// Writes the entry.
pub(super) fn write(
    facts: &Facts,
    library: &Library,
    given: &UserInput,
    notes: &mut Vec<String>,
) -> Result<Machine, MissingInput> {
    let catalog = library.catalog();
    let (base, named) = match &given.target {
        Some(name) => {
            let target = library.target(name).map_err(|problem| MissingInput::new("target", problem.message))?;
            (Arc::clone(target), true)
        }
        None => {
            let Some(label) = facts.text(Field::Accelerator) else {
                return Err(MissingInput::new("accelerator", "not stated in the files; name a target with --target"));
            };
            let (name, memory) = split(label);
            let Some(sheet) = catalog.find_accelerator_by_description(name, memory) else {
                let reason = format!("{label} is not in the catalog; name a target with --target");
                return Err(MissingInput::new("accelerator", reason));
            };
            (most_similar_target(facts, library, &sheet)?, false)
        }
    };
    let (devices, nodes, at) = size(facts, &base);
    // Launchers and schedulers count the dies or cores of an accelerator that software sees as devices.
    let sheet = base.accelerator.as_deref().and_then(|name| catalog.accelerator(name).ok());
    let dies = u64::from(sheet.map_or(1, |sheet| sheet.ranks.get()));
    let parts = devices > crate::launch::count(base.accelerators_per_node) && devices.is_multiple_of(dies);
    let per_node = if parts { devices / dies } else { devices };
    let scale = per_node as f64 / base.accelerators_per_node.max(Count::ONE);
    let from = format!("from target {}", base.name);
    let mut lines = YamlLines::default();
    lines.push_string("vendor", &base.vendor, Some(&from));
    if let Some(accelerator) = &base.accelerator {
        let place = facts.place(Field::Accelerator).filter(|_| !named);
        lines.push_string("accelerator", accelerator, Some(place.as_deref().unwrap_or(&from)));
    }
    lines.push_scalar("accelerators_per_node", per_node, at.0.as_deref());
    lines.push_scalar("num_nodes", nodes, at.1.as_deref());
    lines.push_scalar("memory_gb_per_accel", base.memory_gb_per_accel, Some(&from));
    if let Some(link) = &base.interconnect {
        let mut section = vec![line_with_comment("type", crate::launch::yaml_text(&link.kind), &from)];
        section.extend(link.bw_gbytes_per_sec.map(|rate| line_with_comment("bw_GBps", rate, "")));
        section.extend(link.domain_size.map(|size| line_with_comment("domain_size", size, "")));
        lines.section(&["interconnect"], section);
    }
    if let Some(network) = &base.network {
        let word = |key, value: &Option<String>| {
            value.as_ref().map(|value| line_with_comment(key, crate::launch::yaml_text(value), &from))
        };
        let mut section: Vec<Line> = word("type", &network.kind).into_iter().collect();
        section.extend(network.gbits_per_accel.map(|rate| line_with_comment("Gbps_per_accel", rate, "")));
        section.extend(network.topology.map(|topology| line_with_comment("topology", topology.name(), "")));
        section.extend(network.oversubscription.map(|ratio| line_with_comment("oversubscription", ratio, "")));
        lines.section(&["network"], section);
    }
    let share = if scale == 1.0 { from.clone() } else { format!("{from}, scaled by {scale}") };
    let cost = &base.cost;
    let mut section = vec![
        line_with_comment("hourly_usd", cost.hourly_usd * scale, &share),
        line_with_comment("energy_watts_node", cost.energy_watts_node * scale, &share),
        line_with_comment("pue", cost.pue, &from),
    ];
    section.extend(cost.usd_per_kwh.map(|price| line_with_comment("usd_per_kwh", price, &from)));
    section.extend(cost.capex_usd_node.map(|price| line_with_comment("capex_usd_node", price * scale, &share)));
    lines.section(&["cost"], section);
    given.overwrite(&mut lines, |knob| match knob.spec().location {
        FileLocation::Target(path) => Some(path),
        FileLocation::Workload(_) | FileLocation::Nowhere => None,
    });
    notes.push(format!("links, price and power are taken from target {}", base.name));
    let (body, read_from) = lines.finish();
    Ok(Machine { body, read_from, devices: devices * nodes })
}

/// Splits a label such as `H100 80GB` into name and memory.
fn split(label: &str) -> (&str, Option<f64>) {
    let found = label.rsplit_once(' ').and_then(|(name, gb)| Some((name, gb.strip_suffix("GB")?.parse().ok()?)));
    found.map_or((label, None), |(name, gb): (&str, f64)| (name, Some(gb)))
}

/// The target of the library with this accelerator that is most similar: first in node size, then in number of nodes.
fn most_similar_target(facts: &Facts, library: &Library, sheet: &Accelerator) -> Result<Arc<Target>, MissingInput> {
    let catalog = library.catalog();
    let same = |target: &&Arc<Target>| {
        let own = target.accelerator.as_deref().and_then(|name| catalog.accelerator(name).ok());
        own.is_some_and(|own| own.id == sheet.id)
    };
    let (per_node, nodes) = (facts.number(Field::AcceleratorsPerNode), facts.number(Field::Nodes));
    let far = |value: Option<f64>, own: f64| value.map_or(0.0, |value| math::ln(value / own.max(1.0)).abs());
    let distance = |target: &Target| {
        100.0 * far(per_node, f64::from(target.accelerators_per_node))
            + far(nodes.or(Some(1.0)), f64::from(target.num_nodes))
    };
    let found = library.targets().iter().filter(same).min_by(|a, b| distance(a).total_cmp(&distance(b)));
    found.cloned().ok_or_else(|| {
        let reason = format!("no target has {}; define one, and name it with --target", sheet.id);
        MissingInput::new("target", reason)
    })
}

type Places = (Option<String>, Option<String>);

/// Accelerators per node and number of nodes: as the files state, or the fewest nodes of the usual size that hold all
/// accelerators.
fn size(facts: &Facts, base: &Target) -> (u64, u64, Places) {
    let usual = crate::launch::count(base.accelerators_per_node);
    let (per_node, nodes) = (facts.count(Field::AcceleratorsPerNode), facts.count(Field::Nodes));
    let all = facts.count(Field::NumAccelerators);
    let place = |field: Field| facts.place(field);
    let servers = super::workload::array(facts).unwrap_or(1);
    let node = per_node.or_else(|| facts.count(Field::AcceleratorsPerReplica).filter(|devices| *devices > usual));
    match (node, nodes, all) {
        (Some(per_node), Some(nodes), _) if servers == 1 => {
            (per_node, nodes, (place(Field::AcceleratorsPerNode), place(Field::Nodes)))
        }
        // Members of a job array are separate jobs, which may share nodes.
        (_, _, Some(all)) if servers > 1 => split_into_nodes(all * servers, usual, place(Field::NumAccelerators)),
        (_, _, Some(all)) => split_into_nodes(all, per_node.unwrap_or(usual).max(1), place(Field::NumAccelerators)),
        (Some(per_node), None, None) => (per_node, 1, (place(Field::AcceleratorsPerNode), None)),
        (None, Some(nodes), None) => (crate::launch::devices_per_host(usual), nodes, (None, place(Field::Nodes))),
        (Some(per_node), Some(nodes), None) => {
            (per_node, nodes * servers, (place(Field::AcceleratorsPerNode), place(Field::Nodes)))
        }
        (None, None, None) => (usual, crate::launch::count(base.num_nodes), (None, None)),
    }
}

/// Accelerators per node, and number of nodes that hold all accelerators.
fn split_into_nodes(all: u64, node: u64, place: Option<String>) -> (u64, u64, Places) {
    let per_node = all.min(node);
    (per_node, all.div_ceil(per_node), (place.clone(), place))
}
