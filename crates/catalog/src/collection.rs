//! Entries of one kind: the built-in ones, decoded on first use, and those of the user, which override them.

use std::sync::{Arc, OnceLock};

use super::digest::Digest;
use super::{Accelerator, Model, Price};
use atlas_document::{BrokenEntries, Diagnostic, Diagnostics, Node};

/// An entry of the catalog.
pub(super) trait Item: Sized {
    /// Whether the id of an entry is unique.
    const UNIQUE: bool = true;

    /// Decodes an entry.
    fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Self>;
    /// Iterates over the id, followed by the aliases.
    fn names(&self) -> impl Iterator<Item = &str>;
}

impl Item for Accelerator {
    fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        Accelerator::decode(file, node, diagnostics)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.id).chain(&self.aliases).map(String::as_str)
    }
}

impl Item for Model {
    fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        Model::decode(file, node, diagnostics)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.id).chain(&self.aliases).map(String::as_str)
    }
}

impl Item for Price {
    const UNIQUE: bool = false;

    fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        Price::decode(file, node, diagnostics)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.accelerator.as_str())
    }
}

#[derive(Debug, Clone)]
pub(super) struct Collection<T> {
    digest: &'static Digest,
    /// Names of the built-in entries, in order. Cached because names are looked up on every key press.
    names: OnceLock<Vec<Vec<&'static str>>>,
    shipped: Vec<OnceLock<Option<Arc<T>>>>,
    user_entries: Vec<Arc<T>>,
    broken: BrokenEntries,
}

impl<T: Item> Collection<T> {
    pub(super) fn new(digest: &'static Digest) -> Collection<T> {
        Collection {
            digest,
            names: OnceLock::new(),
            shipped: (0..digest.len()).map(|_| OnceLock::new()).collect(),
            user_entries: Vec::new(),
            broken: BrokenEntries::default(),
        }
    }

    /// Whether there are user entries.
    pub(super) fn has_own(&self) -> bool {
        !self.user_entries.is_empty()
    }

    /// Records entries that could not be decoded.
    pub(super) fn record_broken(&mut self, broken: &BrokenEntries) {
        self.broken.extend(broken);
    }

    /// Returns the problem of a user entry with this name that could not be decoded.
    pub(super) fn broken_entry_diagnostic(&self, kind: &str, name: &str) -> Option<Diagnostic> {
        if self.broken.is_empty() {
            return None;
        }
        let id = self.find(name).and_then(|found| found.names().next().map(str::to_owned));
        self.broken.diagnostic(kind, name).or_else(|| self.broken.diagnostic(kind, &id?))
    }

    /// Adds a user entry, which overrides other entries with its id.
    pub(super) fn add_override(&mut self, entry: Arc<T>) {
        let id = entry.names().next().unwrap_or_default().to_owned();
        self.broken.replace(&id);
        match self.user_entries.iter_mut().find(|known| known.names().next() == Some(id.as_str())) {
            Some(known) => *known = entry,
            None => self.user_entries.push(entry),
        }
    }

    /// Adds a user entry without overriding others.
    pub(super) fn add(&mut self, entry: Arc<T>) {
        self.user_entries.push(entry);
    }

    /// Finds an entry by name. User entries are preferred to built-in ones, ids to aliases. An alias of an overridden
    /// built-in entry finds the entry that overrides it.
    pub(super) fn find(&self, name: &str) -> Option<Arc<T>> {
        if let Some(found) = self.find_user_entry(name, 1).or_else(|| self.find_user_entry(name, usize::MAX)) {
            return Some(found);
        }
        let index = self.shipped_index(name, 1).or_else(|| self.shipped_index(name, usize::MAX))?;
        let id = self.digest.names(index).next()?;
        self.find_user_entry(id, 1).or_else(|| self.shipped(index))
    }

    /// Finds a user entry that has `name` among its `first` names.
    fn find_user_entry(&self, name: &str, first: usize) -> Option<Arc<T>> {
        self.user_entries.iter().find(|entry| entry.names().take(first).any(|known| same_name(known, name))).cloned()
    }

    /// All entries that are not overridden, built-in ones first.
    pub(super) fn all(&self) -> Vec<Arc<T>> {
        let hidden = |index: usize| {
            let id = self.digest.names(index).next().unwrap_or_default();
            self.user_entries.iter().any(|own| own.names().next().is_some_and(|name| same_name(name, id)))
        };
        let shipped = (0..self.digest.len()).filter(|&index| !hidden(index)).filter_map(|index| self.shipped(index));
        shipped.chain(self.user_entries.iter().cloned()).collect()
    }

    /// Returns all entries with this name, built-in ones first.
    pub(super) fn named(&self, name: &str) -> Vec<Arc<T>> {
        let named = self.shipped_names().iter().enumerate().filter(|(_, names)| contains_name(names, name));
        let shipped = named.filter_map(|(index, _)| self.shipped(index));
        let own = self.user_entries.iter().filter(|entry| entry.names().any(|known| same_name(known, name))).cloned();
        shipped.chain(own).collect()
    }

    /// Returns all built-in and user entries, including overridden ones.
    pub(super) fn all_with_overridden(&self) -> Vec<Arc<T>> {
        let shipped = (0..self.digest.len()).filter_map(|index| self.shipped(index));
        shipped.chain(self.user_entries.iter().cloned()).collect()
    }

    /// Iterates over all names by which an entry can be found.
    pub(super) fn names(&self) -> impl Iterator<Item = String> + '_ {
        let shipped = (0..self.digest.len()).flat_map(|index| self.digest.names(index)).map(str::to_owned);
        shipped.chain(self.user_entries.iter().flat_map(|entry| entry.names()).map(str::to_owned))
    }

    fn shipped_index(&self, name: &str, names: usize) -> Option<usize> {
        let first = |known: &Vec<&'static str>| contains_name(known.get(..names).unwrap_or(known), name);
        self.shipped_names().iter().position(first)
    }

    fn shipped_names(&self) -> &[Vec<&'static str>] {
        self.names.get_or_init(|| (0..self.digest.len()).map(|index| self.digest.names(index).collect()).collect())
    }

    fn shipped(&self, index: usize) -> Option<Arc<T>> {
        let read = || {
            let (file, node) = self.digest.entry(index)?;
            T::decode(&file, &node, &mut Diagnostics::new()).map(Arc::new)
        };
        self.shipped.get(index)?.get_or_init(read).clone()
    }
}

fn contains_name(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| same_name(known, name))
}

/// Whether two names are equal, ignoring case and the separators of words: `h100_sxm` equals `H100-SXM`.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    let fold = |byte: u8| match byte {
        b'_' | b' ' => b'-',
        byte => byte.to_ascii_lowercase(),
    };
    a.len() == b.len() && a.bytes().map(fold).eq(b.bytes().map(fold))
}
