//! Fields that the configurations of single runs and of several jobs share: names of targets and workloads, and changed
//! knobs.

use atlas_document::decode::Fields;
use atlas_document::{Diagnostic, Node};

/// Serializes a list of `knob=value` as a mapping.
pub(super) fn as_mapping<S: serde::Serializer>(set: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(set.iter().filter_map(|text| text.split_once('=')))
}

/// Reports an unknown name as an error of field `key`.
pub(super) fn named(
    fields: &mut Fields<'_>,
    key: &'static str,
    name: Option<&str>,
    unknown: impl FnOnce(&str) -> Option<Diagnostic>,
) {
    if let Some(problem) = name.and_then(unknown) {
        fields.error(key, problem.message, problem.help);
    }
}

/// Reads changed knobs, given as a mapping or a list of `knob=value`.
pub(super) fn settings(fields: &mut Fields<'_>) -> Vec<String> {
    let Some(node) = fields.node("set") else { return Vec::new() };
    match node.entries() {
        Some(entries) => entries.iter().map(|entry| format!("{}={}", entry.key, plain(&entry.value))).collect(),
        None => fields.texts("set"),
    }
}

/// Formats a scalar as a user would type it.
pub(super) fn plain(node: &Node) -> String {
    node.text().map_or_else(|| node.describe(), str::to_owned)
}
