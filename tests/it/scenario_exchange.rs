//! Scenarios exported as dashboard JSON and imported again.
use std::path::Path;

use crate::common::program::{atlas, stderr, stdout};
use atlas_config::library::Library;
use proptest::prelude::*;
use serde_json::Value;

/// Export of all pairs; `None` if the dashboard's model has no estimate for one of them.
fn exported(dir: &Path, targets: &[&str], workloads: &[&str]) -> Option<Value> {
    let mut args = vec!["scenario", "export"];
    targets.iter().for_each(|target| args.extend(["--target", target]));
    workloads.iter().for_each(|workload| args.extend(["--workload", workload]));
    let run = atlas(dir, &args).assert();
    if !run.get_output().status.success() {
        return None;
    }
    Some(serde_json::from_str(&stdout(&run)).unwrap())
}

fn imported(dir: &Path, document: &Value) -> Value {
    std::fs::write(dir.join("e.json"), document.to_string()).unwrap();
    serde_yaml::from_str(&stdout(&atlas(dir, &["scenario", "import", "e.json"]).assert().code(0))).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn exported_scenarios_round_trip_through_import(targets in prop::collection::btree_set(0_usize..1000, 1..4), workloads in prop::collection::btree_set(0_usize..1000, 1..3)) {
        let library = Library::load(&atlas_document::Sources::default(), None);
        let targets: std::collections::BTreeSet<usize> = targets.iter().map(|at| at % library.targets().len()).collect();
        let workloads: std::collections::BTreeSet<usize> =
            workloads.iter().map(|at| at % library.workloads().len()).collect();
        let targets: Vec<_> = targets.into_iter().map(|at| &library.targets()[at]).collect();
        let workloads: Vec<_> = workloads.into_iter().map(|at| &library.workloads()[at]).collect();
        let names: Vec<&str> = targets.iter().map(|target| &*target.name).collect();
        let called: Vec<&str> = workloads.iter().map(|workload| &*workload.name).collect();
        let dir = tempfile::tempdir().unwrap();
        let document = exported(dir.path(), &names, &called);
        prop_assume!(document.is_some());
        let back = imported(dir.path(), &document.unwrap());
        let entry = |node: &atlas_document::Node| serde_json::to_value(node).unwrap();
        let find = |list: &str, name: &str| -> Value {
            let all = back[list].as_array().unwrap();
            all.iter().find(|entry| entry["name"] == name).cloned().unwrap_or_default()
        };
        for target in targets {
            prop_assert_eq!(find("targets", &target.name), entry(&target.document), "{}", target.name);
        }
        for workload in workloads {
            prop_assert_eq!(find("workloads", &workload.name), entry(&workload.document), "{}", workload.name);
        }
    }
}

#[test]
fn edits_after_export_are_imported_with_a_notice() {
    let dir = tempfile::tempdir().unwrap();
    let mut document = exported(dir.path(), &["h100-sxm-8"], &["llama3.1-8b-train"]).unwrap();
    document["parallelism"]["tensorParallel"] = 4.into();
    std::fs::write(dir.path().join("e.json"), document.to_string()).unwrap();
    let run = atlas(dir.path(), &["scenario", "import", "e.json"]).assert().code(0);
    let back: Value = serde_yaml::from_str(&stdout(&run)).unwrap();
    assert_eq!(back["workloads"][0]["parallelism"]["tp"], 4);
    assert_eq!(back["targets"][0]["accelerator"], "nvidia-h100-sxm-80gb", "the hardware was not changed");
    assert!(stderr(&run).contains("changed after it was exported"), "{}", stderr(&run));
}
