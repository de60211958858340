//! List entries, decoded on first use: the first frame lists many entries but needs only two.

use atlas_core::count::Count;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::{Mode, Profile, Target, Workload};
use atlas_catalog::shipped::Part;
use atlas_document::{BrokenEntries, Diagnostic, Diagnostics, Node};

/// A kind of entry in the library.
pub trait Listed: Sized {
    /// Decodes an entry; `name` is the name under which it is listed.
    fn decode(file: &Arc<str>, name: &str, node: &Node, problems: &mut Diagnostics) -> Option<Self>;
    /// Name of the entry.
    fn name(&self) -> &Arc<str>;
}

impl Listed for Target {
    fn decode(file: &Arc<str>, _: &str, node: &Node, problems: &mut Diagnostics) -> Option<Target> {
        Target::decode(file, node, problems)
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }
}

impl Listed for Workload {
    fn decode(file: &Arc<str>, _: &str, node: &Node, problems: &mut Diagnostics) -> Option<Workload> {
        Workload::decode(file, node, problems)
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }
}

impl Listed for Profile {
    fn decode(file: &Arc<str>, name: &str, node: &Node, problems: &mut Diagnostics) -> Option<Profile> {
        Profile::decode(file, name, node, problems)
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }
}

/// A loaded target, workload or profile.
#[derive(Debug, Clone)]
pub struct Entry<T> {
    /// Name of the entry.
    pub name: Arc<str>,
    /// File name and position of a built-in entry; `None` for others.
    shipped: Option<(Arc<str>, Part)>,
    decoded: OnceLock<Option<Arc<T>>>,
}

impl<T: Listed> Entry<T> {
    /// Creates a built-in entry, which is valid and decoded on first use.
    pub(super) fn shipped(file: &Arc<str>, name: Arc<str>, part: Part) -> Entry<T> {
        Entry { name, shipped: Some((Arc::clone(file), part)), decoded: OnceLock::new() }
    }

    /// Creates an entry that is already decoded.
    pub(super) fn decoded(entry: T) -> Entry<T> {
        Entry { name: Arc::clone(entry.name()), shipped: None, decoded: Some(Arc::new(entry)).into() }
    }

    /// The decoded entry. It always exists: built-in entries are valid, and others are already decoded.
    #[must_use]
    pub fn get(&self) -> Option<&Arc<T>> {
        let read = || {
            let (file, part) = self.shipped.as_ref()?;
            T::decode(file, &self.name, &part.tree()?, &mut Diagnostics::new()).map(Arc::new)
        };
        self.decoded.get_or_init(read).as_ref()
    }

    /// The decoded entry; `None` for built-in entries.
    #[must_use]
    pub fn user_entry(&self) -> Option<&Arc<T>> {
        if self.shipped.is_none() { self.decoded_entry() } else { None }
    }

    /// The decoded entry, if it is already decoded. Users' entries always are.
    pub(super) fn decoded_entry(&self) -> Option<&Arc<T>> {
        self.decoded.get()?.as_ref()
    }

    /// Position of a built-in entry that is not decoded yet.
    fn undecoded_part(&self) -> Option<Part> {
        self.shipped.as_ref().filter(|_| self.decoded.get().is_none()).map(|(_, part)| *part)
    }
}

impl Entry<Target> {
    /// Accelerators per node, and number of nodes.
    #[must_use]
    pub fn size(&self) -> Option<(Count, Count)> {
        let written = self.undecoded_part().and_then(|part| {
            let [each, nodes] = part.values(["accelerators_per_node", "num_nodes"]);
            each?.number().and_then(Count::from_exact).zip(nodes?.number().and_then(Count::from_exact))
        });
        written.or_else(|| self.get().map(|target| (target.accelerators_per_node, target.num_nodes)))
    }
}

impl Entry<Workload> {
    /// Mode of the workload.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        let written = self.undecoded_part().and_then(|part| {
            let [mode] = part.values(["mode"]);
            Mode::of(mode.as_ref().and_then(Node::text), &self.name)
        });
        written.or_else(|| self.get().map(|workload| workload.shape.mode))
    }
}

/// All entries of a list.
#[derive(Debug, Clone)]
pub(super) struct Entries<T> {
    listed: Vec<Arc<Entry<T>>>,
    broken: BrokenEntries,
    index: HashMap<Arc<str>, usize>,
    all: OnceLock<Vec<Arc<T>>>,
}

impl<T> Default for Entries<T> {
    fn default() -> Entries<T> {
        Entries { listed: Vec::new(), broken: BrokenEntries::default(), index: HashMap::new(), all: OnceLock::new() }
    }
}

impl<T: Listed> Entries<T> {
    /// Entries in list order.
    pub(super) fn listed(&self) -> &[Arc<Entry<T>>] {
        &self.listed
    }

    /// All entries, decoded.
    pub(super) fn all(&self) -> &[Arc<T>] {
        self.all.get_or_init(|| self.listed.iter().filter_map(|entry| entry.get()).cloned().collect())
    }

    /// Finds an entry by name and decodes it.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<T>> {
        self.listed.get(*self.index.get(name)?)?.get()
    }

    /// Names of all entries.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.listed.iter().map(|entry| &*entry.name)
    }

    /// Entries that are already decoded. Users' entries always are.
    pub(super) fn known(&self) -> impl Iterator<Item = &Arc<T>> {
        self.listed.iter().filter_map(|entry| entry.decoded.get()?.as_ref())
    }

    /// Records entries that could not be decoded.
    pub(super) fn record_broken(&mut self, broken: &BrokenEntries) {
        self.broken.extend(broken);
    }

    /// The diagnostic of a user's entry with the same name that could not be decoded.
    pub(super) fn diagnostic(&self, kind: &str, entry: &Arc<T>) -> Option<Diagnostic> {
        if self.broken.is_empty() || !self.find(entry.name()).is_some_and(|known| Arc::ptr_eq(known, entry)) {
            return None;
        }
        self.broken.diagnostic(kind, entry.name())
    }

    /// Replaces the entry of the same name, or appends a new one.
    pub(super) fn insert_or_replace(&mut self, entry: &Arc<Entry<T>>) {
        self.all = OnceLock::new();
        self.broken.replace(&entry.name);
        match self.index.get(&entry.name).and_then(|at| self.listed.get_mut(*at)) {
            Some(known) => *known = Arc::clone(entry),
            None => {
                self.index.insert(Arc::clone(&entry.name), self.listed.len());
                self.listed.push(Arc::clone(entry));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::library::Library;
    use atlas_catalog::shipped::document;
    use atlas_document::{Diagnostics, Sources};

    fn file_as_a_user_has_it<T: Listed>(path: &str) -> Vec<T> {
        let mut problems = Diagnostics::new();
        let tree = document(path).unwrap().tree().unwrap();
        let file = format!("{}{path}", atlas_document::Origin::BUILT_IN).into();
        let stem = std::path::Path::new(path).file_stem().unwrap().to_str().unwrap();
        let nodes = tree.items().unwrap_or(std::slice::from_ref(&tree)).iter();
        let all = nodes.map(|node| T::decode(&file, stem, node, &mut problems).unwrap()).collect();
        assert!(problems.is_empty(), "{problems}");
        all
    }

    #[test]
    fn built_in_lists_equal_their_files_and_decode_lazily() {
        let library = Library::load(&Sources::built_in(), None);
        let targets: Vec<Target> = file_as_a_user_has_it("workload/targets.yaml");
        assert_eq!(library.target_list().len(), targets.len());
        for (entry, target) in library.target_list().iter().zip(&targets) {
            let size = Some((target.accelerators_per_node, target.num_nodes));
            assert_eq!((&entry.name, entry.size()), (&target.name, size));
            assert!(entry.decoded.get().is_none(), "a list decodes nothing");
            assert_eq!(entry.get().map(|entry| &**entry), Some(target));
            assert_eq!(entry.size(), size);
        }
        let workloads: Vec<Workload> = file_as_a_user_has_it("workload/workloads.yaml");
        assert_eq!(library.workload_list().len(), workloads.len());
        for (entry, workload) in library.workload_list().iter().zip(&workloads) {
            assert_eq!((&entry.name, entry.mode()), (&workload.name, Some(workload.shape.mode)));
            assert!(entry.decoded.get().is_none(), "a list decodes nothing");
            assert_eq!(entry.get().map(|entry| &**entry), Some(workload));
            assert_eq!(entry.mode(), Some(workload.shape.mode));
        }
        for (key, entry) in &library.profiles {
            let entry = entry.as_ref().unwrap();
            assert!(entry.decoded.get().is_none(), "a key decodes nothing");
            let path = format!("workload/profiles/{}.yaml", entry.name);
            let profile = file_as_a_user_has_it::<Profile>(&path).remove(0);
            assert_eq!((&key.stem, &entry.name), (&profile.name.to_lowercase(), &profile.name));
            assert_eq!(key.vendor, profile.match_vendor.as_ref().map(|vendor| vendor.to_lowercase()));
            assert_eq!((&key.target, entry.get().map(|entry| &**entry)), (&profile.match_name, Some(&profile)));
        }
        assert!(library.profiles.len() >= 3);
    }
}
