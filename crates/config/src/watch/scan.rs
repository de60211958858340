//! State of the watched files at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use atlas_core::sort;

/// More files than a directory of documents has; limits the cost of watching `/usr/bin` by mistake.
const MOST_FILES: usize = 4096;

/// Distinguishes states of a file. Times alone do not: a rename brings the time of the new file,
/// which may be older, and a copy may keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    /// Size and times of a file; of a subdirectory only that it exists.
    contents: Option<(u64, i64, i64)>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        let contents = metadata.is_file().then(|| (metadata.size(), metadata.mtime(), metadata.mtime_nsec()));
        Stamp { device: metadata.dev(), inode: metadata.ino(), contents }
    }
}

/// Identity of the directory at a path: device and inode.
pub(super) type DirectoryId = (u64, u64);

/// The stamps of all watched files, and the directories that must be watched for changes to them.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    files: BTreeMap<PathBuf, Stamp>,
    directories: Vec<(PathBuf, DirectoryId)>,
    /// Targets of symbolic links among the files.
    targets: BTreeSet<PathBuf>,
}

impl Snapshot {
    /// Takes all stamps.
    pub(super) fn take(paths: &[PathBuf]) -> Snapshot {
        let mut look = Look::default();
        for path in paths {
            look.add(path);
        }
        look.taken
    }

    /// The directories to watch: absolute, each once.
    pub(super) fn directories(&self) -> &[(PathBuf, DirectoryId)] {
        &self.directories
    }

    /// Whether a symbolic link among the files points to `path`.
    pub(super) fn links_to(&self, path: &Path) -> bool {
        self.targets.contains(path)
    }

    /// This snapshot with the older stamps of everything that `old` has under one of `old_paths`: later changes
    /// are yet to be reported. Paths that were not watched before keep their new stamps.
    pub(super) fn with_stamps_of(mut self, old: &Snapshot, old_paths: &[PathBuf]) -> Snapshot {
        let was_watched = |path: &Path| old_paths.iter().any(|old| path == old || path.parent() == Some(old));
        self.files.retain(|path, stamp| match old.files.get(path) {
            Some(before) => {
                *stamp = *before;
                true
            }
            // Watched before and missing then: it is new.
            None => !was_watched(path),
        });
        self
    }

    /// Paths that changed, appeared or disappeared since `before`. A file that is in `hinted` and exists in both has been
    /// written to, even if its stamp is equal: two writes within one tick of the file system's clock.
    pub(super) fn changes_since(&self, before: &Snapshot, hinted: &[PathBuf]) -> BTreeSet<PathBuf> {
        let is_file = |path: &Path| self.files.get(path).is_some_and(|stamp| stamp.contents.is_some());
        let written = self
            .files
            .keys()
            .filter(|path| is_file(path) && std::path::absolute(path).is_ok_and(|absolute| hinted.contains(&absolute)));
        let changed = self.files.iter().filter(|(path, stamp)| before.files.get(*path) != Some(stamp));
        let gone = before.files.keys().filter(|path| !self.files.contains_key(*path));
        sort::filled(changed.map(|(path, _)| path).chain(gone).chain(written).cloned())
    }
}

/// A snapshot while it is taken. Most paths share their parents, which are examined once: the program
/// does this before its first frame.
#[derive(Debug, Default)]
struct Look {
    taken: Snapshot,
    /// Paths already examined for links, with their parents.
    walked: BTreeSet<OsString>,
    /// Paths whose nearest existing directory, at or above, is watched.
    sought: BTreeSet<OsString>,
}

impl Look {
    fn add(&mut self, path: &Path) {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.watch_links_on_the_way(&absolute);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                self.watch(&absolute, &metadata);
                // So that the directory itself is reported when an empty one replaces it.
                self.taken.files.insert(path.to_owned(), Stamp::of(&metadata));
                for entry in fs::read_dir(path).into_iter().flatten().flatten().take(MOST_FILES) {
                    let name = entry.file_name();
                    if is_of_interest(&name.to_string_lossy()) {
                        self.add_entry(path.join(name));
                    }
                }
            }
            Ok(_) => {
                self.watch_parent(&absolute);
                self.add_entry(path.to_owned());
            }
            Err(_) => self.watch_parent(&absolute),
        }
    }

    /// A file, a subdirectory, or a link to either. A dangling link counts as no file.
    fn add_entry(&mut self, path: PathBuf) {
        if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink())
            && let Ok(target) = fs::canonicalize(&path)
        {
            self.watch_parent(&target);
            self.taken.targets.insert(target);
        }
        if let Ok(metadata) = fs::metadata(&path) {
            self.taken.files.insert(path, Stamp::of(&metadata));
        }
    }

    /// Changing the target of a link changes the directory that contains it, not the one it points to.
    fn watch_links_on_the_way(&mut self, absolute: &Path) {
        for part in absolute.ancestors() {
            if !self.walked.insert(part.into()) {
                return;
            }
            if fs::symlink_metadata(part).is_ok_and(|metadata| metadata.is_symlink())
                && let Some(parent) = part.parent()
                && let Ok(metadata) = fs::metadata(parent)
            {
                self.watch(parent, &metadata);
            }
        }
    }

    /// The nearest existing parent directory.
    fn watch_parent(&mut self, absolute: &Path) {
        for parent in absolute.ancestors().skip(1) {
            if !self.sought.insert(parent.into()) {
                return;
            }
            if let Ok(metadata) = fs::metadata(parent)
                && metadata.is_dir()
            {
                return self.watch(parent, &metadata);
            }
        }
    }

    fn watch(&mut self, absolute: &Path, metadata: &Metadata) {
        let entry = (absolute.to_owned(), (metadata.dev(), metadata.ino()));
        if !self.taken.directories.contains(&entry) {
            self.taken.directories.push(entry);
        }
    }
}

/// Not hidden files or temporary files of editors.
fn is_of_interest(name: &str) -> bool {
    !(name.starts_with('.') || name.starts_with('#') || name.ends_with('~') || name.ends_with(".swp"))
}
