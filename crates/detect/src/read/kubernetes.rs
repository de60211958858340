//! `kubectl get nodes -o json`: labels, allocatable resources, taints and readiness.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::scalar;
use crate::text::clean;

/// A node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Resources that are allocatable to pods.
    pub allocatable: BTreeMap<String, String>,
    /// Taints as `key=value:effect`.
    pub taints: Vec<String>,
    /// Whether it is ready and takes new pods.
    pub usable: bool,
}

impl Node {
    /// Returns the value of a label if it is not empty.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Number of units of an allocatable resource; `None` if the node does not list it.
    #[must_use]
    pub fn count(&self, resource: &str) -> Option<u32> {
        self.allocatable.get(resource)?.parse().ok().filter(|count| *count > 0)
    }
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    name: String,
    labels: Option<BTreeMap<String, Value>>,
}

#[derive(Deserialize, Default)]
struct Spec {
    taints: Option<Vec<Taint>>,
    unschedulable: Option<bool>,
}

#[derive(Deserialize)]
struct Taint {
    #[serde(default)]
    key: String,
    value: Option<String>,
    #[serde(default)]
    effect: String,
}

#[derive(Deserialize, Default)]
struct Status {
    allocatable: Option<BTreeMap<String, Value>>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    status: String,
}

/// Parses the list of nodes.
///
/// # Errors
/// If the text is not a list of nodes. The error states what was found instead, with line and column.
pub fn nodes(text: &str) -> Result<Vec<Node>, String> {
    let list: List = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(list.items.into_iter().map(node).collect())
}

fn node(item: Item) -> Node {
    let map = |values: Option<BTreeMap<String, Value>>| -> BTreeMap<String, String> {
        let values = values.into_iter().flatten().take(1024);
        values.filter_map(|(key, value)| Some((key, clean(&scalar(&value)?)))).collect()
    };
    let taints = item.spec.taints.into_iter().flatten().take(64);
    let ready = item.status.conditions.into_iter().flatten().find(|condition| condition.kind == "Ready");
    Node {
        name: clean(&item.metadata.name),
        labels: map(item.metadata.labels),
        allocatable: map(item.status.allocatable),
        taints: taints
            .map(|taint| {
                let value = taint.value.filter(|value| !value.is_empty()).map(|value| format!("={value}"));
                clean(&format!("{}{}:{}", taint.key, value.unwrap_or_default(), taint.effect))
            })
            .collect(),
        usable: ready.is_none_or(|condition| condition.status == "True") && item.spec.unschedulable != Some(true),
    }
}
