//! Decoding of files to entries: lists of targets and workloads, profiles, documents of the predecessor tools.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Entry, ExperimentWorkload, File, Kind, Listed};
use crate::Profile;
use crate::profile::ProfileKey;
use atlas_catalog::Catalog;
use atlas_catalog::shipped::{Document, Part, Text};
use atlas_core::escape;
use atlas_document::BrokenEntries;
use atlas_document::diagnostic::{Diagnostic, Diagnostics, Severity};
use atlas_document::node::Node;
use atlas_legacy::exchange;

impl File {
    fn empty(label: Arc<str>, kind: Kind, stem: &str, text: Text) -> File {
        File {
            label,
            kind,
            text,
            targets: Vec::new(),
            workloads: Vec::new(),
            profile: None,
            profile_key: ProfileKey { stem: stem.to_lowercase(), ..ProfileKey::default() },
            tailored: Vec::new(),
            methodology: None,
            broken: BrokenEntries::default(),
            problems: Diagnostics::new(),
        }
    }

    /// A file that exists but cannot be read.
    pub(super) fn unreadable(label: Arc<str>, kind: Kind, stem: &str) -> File {
        let mut file = File::empty(label, kind, stem, String::new().into());
        file.broken.add_file(&file.label, None);
        file
    }
}

pub(super) fn decode(label: Arc<str>, kind: Kind, stem: &str, text: Text, catalog: &Catalog) -> File {
    let mut file = File::empty(Arc::clone(&label), kind, stem, text);
    if let Text::Shipped(document) = &file.text {
        match kind {
            Kind::Targets => file.targets = shipped(&label, document),
            Kind::Workloads => file.workloads = shipped(&label, document),
            Kind::Profile if document.path.starts_with("workload/profiles/") => {
                let [matched] = document.part().values(["match"]);
                file.profile_key = ProfileKey::matching(stem, matched.as_ref());
                file.profile = Some(Arc::new(Entry::shipped(&label, stem.into(), document.part())));
            }
            Kind::Profile | Kind::Foreign => {}
        }
        if file.profile.is_some() || !(file.targets.is_empty() && file.workloads.is_empty()) {
            return file;
        }
    }
    let Some(root) = file.text.tree(&label, &mut file.problems) else {
        file.broken.add_file(&label, Some(file.text.as_str()));
        return file;
    };
    match kind {
        Kind::Profile => {
            file.profile_key = ProfileKey::of(stem, &root);
            let profile = Profile::decode(&label, stem, &root, &mut file.problems);
            file.profile = profile.map(|profile| Arc::new(Entry::decoded(profile)));
        }
        Kind::Targets => {
            file.targets = entries(&label, "targets", &root, &mut file.problems, &mut file.broken);
        }
        Kind::Workloads => {
            file.workloads = entries(&label, "workloads", &root, &mut file.problems, &mut file.broken);
        }
        Kind::Foreign => decode_foreign(&mut file, &root, catalog),
    }
    file
}

/// Imports a document of a predecessor tool. A document with errors is ignored as a whole, since its parts depend on
/// each other.
fn decode_foreign(file: &mut File, root: &Node, catalog: &Catalog) {
    let label = Arc::clone(&file.label);
    let (problems, broken) = (&mut file.problems, &mut file.broken);
    let Some(foreign) = exchange::read(&label, root, catalog, &|name| std::env::var(name).ok(), problems) else {
        problems.push(Diagnostic {
            severity: Severity::Error,
            file: label,
            at: root.at,
            path: String::new(),
            message: "found neither an experiment of the comparison tool nor scenarios of the dashboard".to_owned(),
            help: Some(
                "an experiment has hardware.platforms, models and training; see `atlas schema config`".to_owned(),
            ),
        });
        return;
    };
    let list = |nodes: Vec<Node>| Node { value: atlas_document::Value::List(nodes), at: root.at };
    let targets = entries(&label, "targets", &list(foreign.targets), problems, broken);
    let mut of =
        |nodes: Vec<Node>, problems: &mut Diagnostics| entries(&label, "workloads", &list(nodes), problems, broken);
    let workloads = of(foreign.workloads, problems);
    // A problem of a target-specific workload is also one of the general workload, where it is reported.
    let mut said = Diagnostics::new();
    let fitted = foreign.workload_variants.into_iter().filter_map(|tailored| {
        let workload = Arc::clone(of(vec![tailored.workload], &mut said).pop()?.get()?);
        Some(ExperimentWorkload { methodology: tailored.methodology, target: tailored.target.into(), workload })
    });
    let fitted: Vec<ExperimentWorkload> = fitted.collect();
    if problems.has_errors() {
        return;
    }
    (file.targets, file.workloads, file.tailored) = (targets, workloads, fitted);
    file.methodology = foreign.methodology;
}

/// Entries of a built-in list; a test ensures that they are valid.
fn shipped<T: Listed>(label: &Arc<str>, document: &Document) -> Vec<Arc<Entry<T>>> {
    let entry = |part: Part| {
        let [name] = part.values(["name"]);
        let name = name.as_ref().and_then(Node::text)?.into();
        Some(Arc::new(Entry::shipped(label, name, part)))
    };
    document.items().filter_map(entry).collect()
}

/// Decodes the entries of a list document. A single entry, or the list under the key `kind`, is accepted as well.
/// Entries that cannot be decoded are added to `broken`.
fn entries<T: Listed>(
    label: &Arc<str>,
    kind: &str,
    root: &Node,
    problems: &mut Diagnostics,
    broken: &mut BrokenEntries,
) -> Vec<Arc<Entry<T>>> {
    let root = root.get(kind).unwrap_or(root);
    if let Some(name) = keyed_by_name(root) {
        problems.push(Diagnostic {
            severity: Severity::Error,
            file: Arc::clone(label),
            at: root.at,
            path: String::new(),
            message: format!("found a mapping of names to fields, expected a list of {kind}"),
            help: Some(format!("write `- name: {name}` instead of `{name}:`, followed by its fields")),
        });
        broken.add_file(label, None);
        return Vec::new();
    }
    let single = std::slice::from_ref(root);
    let items = match root.items() {
        Some(items) => items,
        None if root.entries().is_some() => single,
        None => {
            let message = format!("found {}, expected a list of {kind}", root.describe());
            let file = Arc::clone(label);
            problems.push(Diagnostic {
                severity: Severity::Error,
                file,
                at: root.at,
                path: String::new(),
                message,
                help: None,
            });
            broken.add_file(label, None);
            return Vec::new();
        }
    };
    let mut all: Vec<Arc<Entry<T>>> = Vec::new();
    let mut names: HashSet<Arc<str>> = HashSet::new();
    for item in items {
        let Some(entry) = T::decode(label, "", item, problems) else {
            broken.add_entry(label, item, "name");
            continue;
        };
        if !is_valid_name(entry.name()) {
            let at = item.get("name").map_or(item.at, |node| node.at);
            let message =
                format!("found {:?}, expected a printable name: not empty, no control characters", entry.name());
            let file = Arc::clone(label);
            problems.push(Diagnostic {
                severity: Severity::Error,
                file,
                at,
                path: "name".to_owned(),
                message,
                help: None,
            });
            continue;
        }
        if !names.insert(Arc::clone(entry.name())) {
            broken.add_entry(label, item, "name");
            let message = "duplicate name; using the first entry".to_owned();
            let path = entry.name().to_string();
            let help = Some("rename or remove one of the two".to_owned());
            problems.push(Diagnostic {
                severity: Severity::Error,
                file: Arc::clone(label),
                at: item.at,
                path,
                message,
                help,
            });
            continue;
        }
        all.push(Arc::new(Entry::decoded(entry)));
    }
    all
}

/// First key of a mapping of mappings, whose keys are names rather than fields.
fn keyed_by_name(root: &Node) -> Option<&str> {
    let entries = root.entries()?;
    let named = root.get("name").is_some() || entries.iter().any(|entry| entry.value.entries().is_none());
    entries.first().filter(|_| !named).map(|entry| &*entry.key)
}

/// Whether a name can be used in lists, tables and file names: not blank, no control characters, no direction
/// characters.
fn is_valid_name(name: &str) -> bool {
    !name.trim().is_empty() && !name.contains(escape::is_control_or_bidi)
}
