//! Bill of materials in CycloneDX JSON: all packages that are compiled into the binary.
#![allow(clippy::indexing_slicing, reason = "a JSON value without the key answers null")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::ReleaseError;

/// Creates the bill from the output of `cargo metadata`.
pub(super) fn bill(metadata: &str, version: &str) -> Result<String, ReleaseError> {
    let metadata: Value = serde_json::from_str(metadata).map_err(|error| ReleaseError::Metadata(error.to_string()))?;
    let missing = |what: &str| ReleaseError::Metadata(format!("found no {what}"));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = list(&metadata["packages"]);
    let nodes = list(&metadata["resolve"]["nodes"]);
    let root =
        packages.iter().find(|package| package["name"] == "atlas-fabric").ok_or_else(|| missing("atlas-fabric"))?;
    let (mut reached, mut open) = (BTreeSet::new(), vec![text(&root["id"])]);
    while let Some(id) = open.pop() {
        if !reached.insert(id.clone()) {
            continue;
        }
        let node = nodes.iter().find(|node| node["id"] == *id).ok_or_else(|| missing(&id))?;
        // Packages that only tests and build scripts need are not in the binary.
        let linked = |dep: &&Value| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        open.extend(list(&node["deps"]).iter().filter(linked).map(|dep| text(&dep["pkg"])));
    }
    let mut components: Vec<Value> = packages
        .iter()
        .filter(|package| {
            reached.contains(package["id"].as_str().unwrap_or_default()) && package["name"] != "atlas-fabric"
        })
        .map(|package| {
            let (name, version) = (text(&package["name"]), text(&package["version"]));
            json!({
                "type": "library",
                "name": name,
                "version": version,
                "purl": format!("pkg:cargo/{name}@{version}"),
                "licenses": [{ "expression": text(&package["license"]).replace('/', " OR ") }],
            })
        })
        .collect();
    components.sort_by_key(|component| (text(&component["name"]), text(&component["version"])));
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": "atlas", "version": version } },
        "components": components,
    });
    serde_json::to_string_pretty(&bill)
        .map(|text| text + "\n")
        .map_err(|error| ReleaseError::Metadata(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bill_of_materials_lists_linked_crates_without_dev_dependencies() {
        let package = |name: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0" });
        let dep = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let node = |name: &str, deps: Vec<Value>| json!({ "id": name, "deps": deps });
        let metadata = json!({
            "packages": (["atlas-fabric", "linked", "below", "test", "other"].map(package)),
            "resolve": { "nodes": [
                node("atlas-fabric", vec![dep("linked", Value::Null), dep("test", json!("dev"))]),
                node("linked", vec![dep("below", Value::Null)]),
                node("below", vec![]), node("test", vec![]), node("other", vec![]),
            ]},
        });
        let bill: Value = serde_json::from_str(&bill(&metadata.to_string(), "1").unwrap()).unwrap();
        let names: Vec<&str> = bill["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|component| component["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["below", "linked"]);
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["components"][1]["purl"], "pkg:cargo/linked@1.0.0");
    }
}
