//! Groups the rows of nodes into one machine per partition and kind of node.

use std::collections::{BTreeMap, HashMap};

use crate::catalog::CatalogEntry;
use crate::matching::{Index, Lookup, Query};
use crate::model::{Accelerator, Detected, Host, Limits, Machine, Nodes, Origin, Undetermined};
use crate::network;
use crate::read::slurm_gres::Gres;
use crate::read::slurm_scontrol::Partition;
use crate::read::slurm_sinfo::{Row, State};
use crate::text::shell_word;

/// Maximum number of machines that are reported. More partitions than this cannot be reviewed by hand.
const MAX_MACHINES: usize = 1000;

/// Properties that nodes must share to be grouped into one machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct NodeProperties {
    partition: String,
    /// Name and type of the generic resource; `None` if only a feature names the accelerator.
    gres: Option<(String, Option<String>)>,
    count: Option<u64>,
    /// The name to look up in the catalog.
    text: String,
    /// Result of the lookup, so that nodes whose features name different variants are not grouped together.
    found: String,
}

struct Group<'a> {
    rows: Vec<&'a Row>,
    lookup: Lookup,
    source: String,
}

/// Adds one machine per partition and kind of node.
pub(super) fn machines(
    rows: &[Row],
    partitions: &BTreeMap<String, Partition>,
    cluster: Option<&str>,
    catalog: &[CatalogEntry],
    detected: &mut Detected,
) {
    let index = Index::new(catalog);
    let mut cache = HashMap::new();
    let mut order: Vec<NodeProperties> = Vec::new();
    let mut groups: BTreeMap<NodeProperties, Group<'_>> = BTreeMap::new();
    let mut bare: Vec<&str> = Vec::new();
    for row in rows {
        let kinds = node_properties(row, &index, &mut cache);
        if kinds.is_empty() && !bare.contains(&row.partition.as_str()) && bare.len() < MAX_MACHINES {
            bare.push(&row.partition);
        }
        for (kind, lookup, source) in kinds {
            if let Some(group) = groups.get_mut(&kind) {
                group.rows.push(row);
            } else if groups.len() < MAX_MACHINES {
                order.push(kind.clone());
                groups.insert(kind, Group { rows: vec![row], lookup, source });
            }
        }
    }
    let mut seen: Vec<(Vec<String>, String)> = Vec::new();
    for kind in &order {
        let Some(group) = groups.get(kind) else { continue };
        let siblings = order.iter().filter(|other| other.partition == kind.partition).count();
        let mut machine = machine(kind, group, partitions.get(&kind.partition), cluster);
        let base = cluster.map_or_else(|| kind.partition.clone(), |cluster| format!("{cluster}-{}", kind.partition));
        machine.name = if siblings > 1 { format!("{base}-{}", kind.text) } else { base };
        let mut lists = machine.node_lists.clone();
        lists.sort();
        if let Some((_, first)) = seen.iter().find(|(own, _)| *own == lists) {
            machine.remarks.push(format!("the same nodes as partition {first}"));
        } else {
            seen.push((lists, kind.partition.clone()));
        }
        detected.machines.push(machine);
    }
    bare.retain(|name| !order.iter().any(|kind| kind.partition == **name));
    if !bare.is_empty() {
        detected.undetermined.push(Undetermined::new(
            "accelerators of partitions",
            format!("no node of {} has an accelerator GRES or a feature that names an accelerator", listed(&bare)),
            "if they have accelerators, copy a target and set accelerator and accelerators_per_node",
        ));
    }
}

fn listed(names: &[&str]) -> String {
    match names.split_at_checked(8) {
        Some((first, rest)) if !rest.is_empty() => format!("{} and {} more", first.join(", "), rest.len()),
        _ => names.join(", "),
    }
}

type Cache = HashMap<(String, Vec<String>), Lookup>;

/// The accelerators of a row's nodes: one kind per generic resource, or one named by a feature.
fn node_properties(row: &Row, index: &Index<'_>, cache: &mut Cache) -> Vec<(NodeProperties, Lookup, String)> {
    let mut find = |text: &str| {
        let key = (text.to_owned(), row.features.clone());
        cache
            .entry(key)
            .or_insert_with(|| {
                let query = Query { text: text.to_owned(), hints: row.features.clone(), ..Query::default() };
                index.look_up(&query)
            })
            .clone()
    };
    let mut kinds = Vec::new();
    let gres: Vec<&Gres> = row.gres.iter().filter(|gres| gres.is_accelerator() && gres.count > 0).collect();
    let by_feature = || index.model_in_features(&row.features);
    let mut add = |gres: Option<&Gres>, text: String, source: String, lookup: Lookup| {
        let kind = NodeProperties {
            partition: row.partition.clone(),
            gres: gres.map(|gres| (gres.name.clone(), gres.kind.clone())),
            count: gres.map(|gres| gres.count),
            text,
            found: format!("{:?}", lookup.matched),
        };
        kinds.push((kind, lookup, source));
    };
    for gres in gres.iter().take(8) {
        match &gres.kind {
            Some(kind) => {
                let lookup = find(kind);
                add(Some(gres), kind.clone(), "GRES type".to_owned(), lookup);
            }
            None => {
                let named = by_feature();
                let text = named.clone().unwrap_or_else(|| gres.name.clone());
                let source = if named.is_some() { "feature" } else { "GRES without a type" };
                let lookup = find(&text);
                add(Some(gres), text, source.to_owned(), lookup);
            }
        }
    }
    if gres.is_empty()
        && let Some(text) = by_feature()
    {
        let lookup = find(&text);
        add(None, text, "feature".to_owned(), lookup);
    }
    kinds
}

fn machine(kind: &NodeProperties, group: &Group<'_>, partition: Option<&Partition>, cluster: Option<&str>) -> Machine {
    let first = group.rows.first();
    let gres = kind.gres.as_ref().map(|(name, own)| {
        let count = kind.count.unwrap_or(1);
        own.as_ref().map_or_else(|| format!("{name}:{count}"), |own| format!("{name}:{own}:{count}"))
    });
    let mut machine = Machine {
        origin: Origin::Slurm { cluster: cluster.map(str::to_owned), partition: kind.partition.clone(), gres },
        accelerator: Some(Accelerator {
            raw: kind.text.clone(),
            source: group.source.clone(),
            matched: group.lookup.matched.clone(),
            memory_gib: None,
            power_w: None,
            slice: group.lookup.slice.clone(),
        }),
        nodes: count(&group.rows),
        node_lists: group.rows.iter().map(|row| row.list.clone()).filter(|list| !list.is_empty()).collect(),
        limits: limits(first, partition),
        host: host(&group.rows),
        features: shared_features(&group.rows),
        ..Machine::default()
    };
    let per = group.lookup.devices_per_accelerator;
    let devices = kind.count.and_then(|count| u32::try_from(count).ok());
    machine.accelerators_per_node = devices.map(|count| count.div_ceil(per));
    if per > 1
        && let Some(count) = devices
    {
        machine.remarks.push(format!("{count} devices per node; Slurm counts each accelerator as {per} devices"));
    }
    if devices.is_none() {
        machine.undetermined.push(Undetermined::new(
            "accelerators_per_node",
            "the nodes have no GRES that counts accelerators",
            "log in to a node of the partition and count them",
        ));
    }
    machine.network = network::from_features(&machine.features);
    let (what, why) = match &machine.network {
        Some(link) if link.gbits_per_nic.is_some() => {
            ("network", format!("{} states the rate, but not the number of NICs", link.source))
        }
        Some(link) => ("network", format!("{} states the type, but not the rate", link.source)),
        None => ("network", "Slurm does not report the network".to_owned()),
    };
    machine.undetermined.push(Undetermined::new(
        what,
        why,
        format!(
            "`srun -p {} -N1 sh -c 'cat /sys/class/infiniband/*/ports/*/rate'`, or `atlas detect` in a job on this \
             partition",
            shell_word(&kind.partition)
        ),
    ));
    machine
}

fn count(rows: &[&Row]) -> Nodes {
    let of = |wanted: State| {
        Some(rows.iter().filter(|row| row.state == wanted).fold(0_u32, |sum, row| sum.saturating_add(row.nodes)))
    };
    Nodes {
        total: Some(rows.iter().fold(0_u32, |sum, row| sum.saturating_add(row.nodes))),
        idle: of(State::Idle),
        mixed: of(State::Mixed),
        allocated: of(State::Allocated),
        planned: of(State::Planned),
        unavailable: of(State::Unavailable),
    }
}

fn limits(row: Option<&&Row>, partition: Option<&Partition>) -> Limits {
    let mut limits = partition.map(|partition| partition.limits.clone()).unwrap_or_default();
    if let Some(row) = row {
        limits.max_time = limits.max_time.or(row.max_time);
        limits.max_nodes = limits.max_nodes.or(row.max_nodes);
        if limits.state.is_none() && row.up == Some(false) {
            limits.state = Some("DOWN".to_owned());
        }
    }
    limits
}

/// CPUs and memory of a node: the minimum over all nodes.
fn host(rows: &[&Row]) -> Host {
    Host {
        cpus: rows.iter().filter_map(|row| row.cpus).min(),
        memory_gib: rows.iter().filter_map(|row| row.memory_mib).min_by(f64::total_cmp).map(|mib| mib / 1024.0),
        ..Host::default()
    }
}

/// Features that all nodes have.
fn shared_features(rows: &[&Row]) -> Vec<String> {
    let mut shared = rows.first().map(|row| row.features.clone()).unwrap_or_default();
    shared.retain(|feature| rows.iter().all(|row| row.features.contains(feature)));
    shared
}
