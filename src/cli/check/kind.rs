//! Detection of a document's type.

use std::path::Path;

use atlas_catalog::Part;
use atlas_core::sort;
use atlas_document::Node;
use atlas_legacy::exchange::{dashboard, experiment};

/// Type of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Targets,
    Workloads,
    Profile,
    Theme,
    Demo,
    Record,
    Simulation,
    Catalog(Part),
    Experiment,
    Scenarios,
    Software,
}

/// Keys that are characteristic of a type.
const KEYS_BY_KIND: [(Kind, &[&str]); 8] = [
    (
        Kind::Targets,
        &[
            "vendor",
            "accelerators_per_node",
            "num_nodes",
            "memory_gb_per_accel",
            "interconnect",
            "cost",
            "instance_type",
        ],
    ),
    (
        Kind::Workloads,
        &[
            "mode",
            "model",
            "params",
            "parallelism",
            "sequence",
            "precision",
            "runtime_tuning",
            "schedule",
            "model_family",
            "dataloader",
        ],
    ),
    (
        Kind::Profile,
        &["compute", "utilization", "communication", "throughput", "latency", "power", "hbm", "noise", "retries"],
    ),
    (Kind::Software, &["releases", "sources", "aliases", "kind", "base", "plugins", "serving", "training"]),
    (Kind::Theme, &["palette", "roles", "order", "extends"]),
    (Kind::Demo, &["steps", "title", "targets", "workload"]),
    (
        Kind::Simulation,
        &["simulate", "hardware", "training", "network", "jobs", "cluster", "scheduler", "output_directory"],
    ),
    (Kind::Record, &["record", "knobs", "dollar_per_1k_tokens", "label", "ts", "track"]),
];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Targets => "targets",
            Kind::Workloads => "workloads",
            Kind::Profile => "profile",
            Kind::Theme => "theme",
            Kind::Demo => "tour",
            Kind::Record => "record",
            Kind::Simulation => "simulation",
            Kind::Catalog(part) => part.name(),
            Kind::Experiment => "experiment",
            Kind::Scenarios => "dashboard scenarios",
            Kind::Software => "software",
        }
    }

    /// Guesses the type by the keys of the entries; if they are inconclusive, by file name and directory.
    pub(super) fn guess(path: &Path, root: Option<&Node>) -> Option<Kind> {
        if root.is_some_and(experiment::is_document) {
            return Some(Kind::Experiment);
        }
        if root.is_some_and(dashboard::is_document) {
            return Some(Kind::Scenarios);
        }
        let catalog = root.and_then(Part::of).map(Kind::Catalog);
        catalog.or_else(|| root.and_then(Kind::by_content)).or_else(|| Kind::by_name(path))
    }

    fn by_content(root: &Node) -> Option<Kind> {
        for (key, kind) in [("targets", Kind::Targets), ("workloads", Kind::Workloads)] {
            // In a demo, this key holds a list of names instead.
            let entries = root.get(key).and_then(Node::items);
            if entries.is_some_and(|items| items.iter().any(|item| item.entries().is_some())) {
                return Some(kind);
            }
        }
        let entries = root.items().unwrap_or(std::slice::from_ref(root));
        let score = |keys: &[&str]| {
            entries.iter().map(|entry| keys.iter().filter(|key| entry.get(key).is_some()).count()).sum::<usize>()
        };
        let mut scores: Vec<(usize, Kind)> = KEYS_BY_KIND.iter().map(|(kind, keys)| (score(keys), *kind)).collect();
        sort::by_key(&mut scores, |(score, _)| std::cmp::Reverse(*score));
        match scores.as_slice() {
            [(0, _), ..] => None,
            [(first, _), (second, _), ..] if first == second => None,
            [(_, kind), ..] => Some(*kind),
            [] => None,
        }
    }

    fn by_name(path: &Path) -> Option<Kind> {
        let stem = path.file_stem()?.to_string_lossy().to_lowercase();
        let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().to_lowercase());
        match folder.as_deref() {
            Some("themes") => return Some(Kind::Theme),
            Some("demo" | "demos") => return Some(Kind::Demo),
            Some("software") => return Some(Kind::Software),
            Some("profiles" | "accelerators") => return Some(Kind::Profile),
            _ => {}
        }
        let named = [("target", Kind::Targets), ("workload", Kind::Workloads), ("profile", Kind::Profile)];
        named.iter().find(|(word, _)| stem.contains(word)).map(|(_, kind)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_document::Diagnostics;
    use atlas_document::parse::parse;

    #[test]
    fn file_kind_is_guessed_from_content_before_the_path() {
        let guess = |path: &str, text: &str| {
            Kind::guess(Path::new(path), parse(&"x".into(), text, &mut Diagnostics::new()).as_ref())
        };
        assert_eq!(guess("a.yaml", "- name: x\n  vendor: v\n"), Some(Kind::Targets));
        assert_eq!(guess("targets.yaml", "- name: x\n  sequence: {}\n"), Some(Kind::Workloads));
        assert_eq!(
            guess("b.yaml", "- name: x\n  mode: inference\n  model: m\n  sequence: {}\n  serving: {}\n"),
            Some(Kind::Workloads)
        );
        assert_eq!(guess("a.yaml", "compute: {}\nnoise: {}\n"), Some(Kind::Profile));
        assert_eq!(guess("a.yaml", "title: t\nsteps: []\ntargets: [a]\n"), Some(Kind::Demo));
        assert_eq!(guess("themes/a.yaml", "name: x\n"), Some(Kind::Theme));
        assert_eq!(guess("my_targets.yaml", "]["), Some(Kind::Targets));
        assert_eq!(guess("a.yaml", "name: x\n"), None);
        assert_eq!(guess("a.yaml", "hardware: { platforms: {} }\nmodels: {}\n"), Some(Kind::Experiment));
        assert_eq!(guess("a.json", "{\"model\": {}, \"parallelism\": {}, \"workload\": {}}"), Some(Kind::Scenarios));
        assert_eq!(guess("a.json", "{\"target\": \"t\", \"record\": {}, \"knobs\": {}}"), Some(Kind::Record));
        for document in atlas_catalog::shipped::documents("workload") {
            let (path, text) = (document.path, document.text());
            let wanted = match path {
                "workload/targets.yaml" | "workload/benchboard/targets.yaml" => Kind::Targets,
                "workload/workloads.yaml" | "workload/benchboard/workloads.yaml" => Kind::Workloads,
                path if path.starts_with("workload/software/") => Kind::Software,
                _ => Kind::Profile,
            };
            assert_eq!(guess("a.yaml", text), Some(wanted), "{path}");
        }
    }
}
