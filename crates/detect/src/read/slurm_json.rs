//! `sinfo --json`: the format of Slurm 22.05 (a list of nodes) and that of 23.02 and later (one entry per kind of
//! node).

use serde_json::Value;

use super::slurm_sinfo::{Row, State, features};
use super::{json, member, scalar, slurm_gres};
use crate::model::Limit;
use crate::text::clean;

/// Maximum number of rows that are read.
const MAX_ROWS: usize = 200_000;

/// Parses the output of `sinfo --json` into the rows that [`super::slurm_sinfo::parse`] returns.
#[must_use]
pub fn rows(text: &str) -> Vec<Row> {
    let Some(document) = json(text) else { return Vec::new() };
    if let Some(list) = member(&document, "sinfo").and_then(Value::as_array) {
        return list.iter().take(MAX_ROWS).filter_map(group).collect();
    }
    let nodes = member(&document, "nodes").and_then(Value::as_array);
    nodes.into_iter().flatten().flat_map(node).take(MAX_ROWS).collect()
}

fn path<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().try_fold(value, |value, key| member(value, key))
}

/// Parses a number, or an object `{"set": true, "infinite": false, "number": 16}`.
fn limit(value: &Value) -> Option<Limit> {
    if let Some(number) = value.as_u64() {
        return Some(Limit::Max(number));
    }
    if member(value, "infinite").and_then(Value::as_bool) == Some(true) {
        return Some(Limit::Unlimited);
    }
    let set = member(value, "set").and_then(Value::as_bool) != Some(false);
    set.then(|| member(value, "number").and_then(Value::as_u64)).flatten().map(Limit::Max)
}

fn number(value: &Value) -> Option<u32> {
    match limit(value)? {
        Limit::Max(number) => u32::try_from(number).ok(),
        Limit::Unlimited => None,
    }
}

/// Parses a state: a string with separate flags, or a list of both.
fn state(value: Option<&Value>, flags: Option<&Value>) -> State {
    let words = |value: Option<&Value>| -> Vec<String> {
        match value {
            Some(Value::String(word)) => vec![word.clone()],
            Some(Value::Array(list)) => list.iter().filter_map(scalar).take(16).collect(),
            _ => Vec::new(),
        }
    };
    let mut all = words(value);
    all.extend(words(flags));
    State::parse(&all.join("+"))
}

fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(list)) => features(list),
        Some(Value::Array(list)) => list.iter().filter_map(scalar).map(|text| clean(&text)).take(64).collect(),
        _ => Vec::new(),
    }
}

/// Parses a node of the 22.05 format into one row per partition.
fn node(value: &Value) -> Vec<Row> {
    let text = |key: &str| member(value, key).and_then(scalar);
    texts(member(value, "partitions"))
        .into_iter()
        .map(|partition| Row {
            partition,
            up: None,
            nodes: 1,
            state: state(member(value, "state"), member(value, "state_flags")),
            cpus: member(value, "cpus").and_then(number),
            memory_mib: member(value, "real_memory").and_then(number).map(f64::from),
            gres: slurm_gres::parse(&text("gres").unwrap_or_default()),
            features: texts(member(value, "active_features")),
            max_time: None,
            max_nodes: None,
            list: text("name").map(|name| clean(&name)).unwrap_or_default(),
        })
        .collect()
}

/// Parses an entry of the format of 23.02 and later.
fn group(value: &Value) -> Option<Row> {
    let at = |keys: &[&str]| path(value, keys);
    // The time limit is in minutes.
    let max_time = at(&["partition", "maximums", "time"]).and_then(limit).map(|time| match time {
        Limit::Max(minutes) => Limit::Max(minutes.saturating_mul(60)),
        Limit::Unlimited => Limit::Unlimited,
    });
    Some(Row {
        partition: clean(&at(&["partition", "name"]).and_then(scalar)?),
        up: None,
        nodes: at(&["nodes", "total"]).and_then(number)?,
        state: state(at(&["node", "state"]), None),
        cpus: at(&["cpus", "minimum"]).and_then(number),
        memory_mib: at(&["memory", "minimum"]).and_then(number).map(f64::from),
        gres: slurm_gres::parse(&at(&["gres", "total"]).and_then(scalar).unwrap_or_default()),
        features: texts(at(&["features", "active"]).or_else(|| at(&["features", "total"]))),
        max_time,
        max_nodes: at(&["partition", "maximums", "nodes"]).and_then(limit),
        list: texts(at(&["nodes", "nodes"])).join(","),
    })
}
