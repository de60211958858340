//! `scontrol show node` and `scontrol show partition`, with or without `-o`.

use std::collections::BTreeMap;

use super::slurm_gres::{self, Gres};
use super::slurm_sinfo::{self, State};
use super::slurm_time;
use crate::model::{Limit, Limits};
use crate::text::{clean, present};

/// Maximum number of records that are read.
const MAX_RECORDS: usize = 200_000;

type Fields<'a> = BTreeMap<&'a str, String>;

/// Parses records of `Key=Value` pairs. A record begins with the key `first`. Values may contain spaces.
fn records<'a>(text: &'a str, first: &str) -> Vec<Fields<'a>> {
    let mut records: Vec<Fields<'a>> = Vec::new();
    let mut key = None;
    for line in text.lines() {
        // A value does not continue on the next line.
        key.take();
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            let pair = word.split_once('=').filter(|(name, _)| is_key(name));
            if let Some((name, value)) = pair {
                if name == first {
                    if records.len() >= MAX_RECORDS {
                        return records;
                    }
                    records.push(Fields::new());
                }
                let Some(record) = records.last_mut() else { continue };
                // A reason or comment at the end may contain text that looks like pairs, so the first value of a key is
                // kept.
                key = (!record.contains_key(name)).then_some(name);
                record.entry(name).or_insert_with(|| value.to_owned());
            } else if let (Some(name), Some(record)) = (key, records.last_mut())
                && let Some(value) = record.get_mut(name)
            {
                value.push(' ');
                value.push_str(word);
            }
        }
    }
    records
}

fn is_key(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: State,
    /// Partitions it belongs to.
    pub partitions: Vec<String>,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Memory, MiB.
    pub memory_mib: Option<f64>,
    /// Architecture.
    pub architecture: Option<String>,
    /// Generic resources; those of `CfgTRES` if `Gres` has no types.
    pub gres: Vec<Gres>,
    /// The active features, or the available ones if none are active.
    pub features: Vec<String>,
}

/// Parses the output of `scontrol show node`.
#[must_use]
pub fn nodes(text: &str) -> Vec<Node> {
    records(text, "NodeName")
        .into_iter()
        .filter_map(|record| {
            let field = |key: &str| record.get(key).map(String::as_str).and_then(present);
            let listed = slurm_gres::parse(field("Gres").unwrap_or(""));
            let counted = slurm_gres::parse_tres(field("CfgTRES").unwrap_or(""));
            let typed = |list: &[Gres]| list.iter().any(|gres| gres.is_accelerator() && gres.kind.is_some());
            let use_counted = (!typed(&listed) && typed(&counted)) || listed.is_empty();
            Some(Node {
                name: clean(field("NodeName")?),
                state: State::parse(field("State").unwrap_or("")),
                partitions: slurm_sinfo::features(field("Partitions").unwrap_or("")),
                cpus: field("CPUTot").and_then(|number| number.parse().ok()),
                memory_mib: field("RealMemory").and_then(|number| number.parse().ok()).filter(|m: &f64| m.is_finite()),
                architecture: field("Arch").map(clean),
                gres: if use_counted { counted } else { listed },
                features: slurm_sinfo::features(
                    field("ActiveFeatures").or_else(|| field("AvailableFeatures")).unwrap_or(""),
                ),
            })
        })
        .collect()
}

/// Converts nodes to the rows of `sinfo`: one row per node and partition.
#[must_use]
pub fn rows(nodes: &[Node]) -> Vec<slurm_sinfo::Row> {
    let rows = nodes.iter().flat_map(|node| {
        node.partitions.iter().map(|partition| slurm_sinfo::Row {
            partition: partition.clone(),
            up: None,
            nodes: 1,
            state: node.state,
            cpus: node.cpus,
            memory_mib: node.memory_mib,
            gres: node.gres.clone(),
            features: node.features.clone(),
            max_time: None,
            max_nodes: None,
            list: node.name.clone(),
        })
    });
    rows.take(MAX_RECORDS).collect()
}

/// A partition.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// Its limits.
    pub limits: Limits,
    /// All its nodes, as a host list.
    pub list: String,
}

/// Parses the output of `scontrol show partition`.
#[must_use]
pub fn partitions(text: &str) -> Vec<Partition> {
    records(text, "PartitionName")
        .into_iter()
        .filter_map(|record| {
            let field = |key: &str| record.get(key).map(String::as_str).and_then(present);
            let default_seconds = match field("DefaultTime").and_then(slurm_time::limit) {
                Some(Limit::Max(seconds)) => Some(seconds),
                _ => None,
            };
            let allowed = ["AllowAccounts", "AllowGroups", "AllowQos", "DenyAccounts", "DenyQos"]
                .iter()
                .filter_map(|key| {
                    field(key).filter(|value| *value != "ALL").map(|value| format!("{key}={}", clean(value)))
                })
                .collect();
            Some(Partition {
                name: clean(field("PartitionName")?),
                limits: Limits {
                    max_time: field("MaxTime").and_then(slurm_time::limit),
                    default_seconds,
                    max_nodes: field("MaxNodes").and_then(slurm_time::count),
                    min_nodes: field("MinNodes").and_then(|number| number.parse().ok()).filter(|least| *least > 1),
                    allowed,
                    state: field("State").map(clean),
                },
                list: field("Nodes").unwrap_or("").to_owned(),
            })
        })
        .collect()
}

/// The cluster name in the output of `scontrol show config`.
#[must_use]
pub fn cluster_name(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.trim_start().starts_with("ClusterName"))?;
    let (_, name) = line.split_once('=')?;
    present(name).map(clean)
}
