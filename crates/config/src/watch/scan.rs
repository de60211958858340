//! State of the watched files at a point in time.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use atlas_core::sort;

/// Maximum number of files of a directory, to limit the cost of watching a large directory such as `/usr/bin` by
/// mistake.
const MAX_FILES: usize = 4096;

/// Identifies the state of a file. Times alone are insufficient: a rename keeps the time of the new file, which may be
/// older, and a copy can preserve it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
    /// Size and modification time of a file; `None` for a subdirectory.
    contents: Option<(u64, i64, i64)>,
}

impl FileIdentity {
    fn of(metadata: &Metadata) -> FileIdentity {
        let contents = metadata.is_file().then(|| (metadata.size(), metadata.mtime(), metadata.mtime_nsec()));
        FileIdentity { device: metadata.dev(), inode: metadata.ino(), contents }
    }
}

/// Identity of the directory at a path: device and inode.
pub(super) type DirectoryId = (u64, u64);

/// Stamps of all watched files, and the directories to watch for changes.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    files: BTreeMap<PathBuf, FileIdentity>,
    directories: Vec<(PathBuf, DirectoryId)>,
    /// Targets of symbolic links among the files.
    targets: BTreeSet<PathBuf>,
}

impl Snapshot {
    /// Takes the stamps of all paths.
    pub(super) fn take(paths: &[PathBuf]) -> Snapshot {
        let mut look = SnapshotBuilder::default();
        for path in paths {
            look.add(path);
        }
        look.taken
    }

    /// Directories to watch: absolute, without duplicates.
    pub(super) fn directories(&self) -> &[(PathBuf, DirectoryId)] {
        &self.directories
    }

    /// Whether a symbolic link among the files points to `path`.
    pub(super) fn links_to(&self, path: &Path) -> bool {
        self.targets.contains(path)
    }

    /// Replaces stamps by those of `old` for everything that `old` contains, so that later changes are reported. Drops
    /// files under `old_paths` that `old` does not contain, so that they are reported as new. Paths that were not
    /// watched before keep their new stamps.
    pub(super) fn with_stamps_of(mut self, old: &Snapshot, old_paths: &[PathBuf]) -> Snapshot {
        let was_watched = |path: &Path| old_paths.iter().any(|old| path == old || path.parent() == Some(old));
        self.files.retain(|path, stamp| match old.files.get(path) {
            Some(before) => {
                *stamp = *before;
                true
            }
            // A file under a previously watched path that did not exist then is new.
            None => !was_watched(path),
        });
        self
    }

    /// Paths that changed, appeared or disappeared since `before`. An existing file in `hinted` is reported even if its
    /// stamp is equal, since two writes can occur within one tick of the file system's clock.
    pub(super) fn changes_since(&self, before: &Snapshot, hinted: &[PathBuf]) -> BTreeSet<PathBuf> {
        let is_file = |path: &Path| self.files.get(path).is_some_and(|stamp| stamp.contents.is_some());
        let written = self
            .files
            .keys()
            .filter(|path| is_file(path) && std::path::absolute(path).is_ok_and(|absolute| hinted.contains(&absolute)));
        let changed = self.files.iter().filter(|(path, stamp)| before.files.get(*path) != Some(stamp));
        let gone = before.files.keys().filter(|path| !self.files.contains_key(*path));
        sort::collect_unsorted(changed.map(|(path, _)| path).chain(gone).chain(written).cloned())
    }
}

/// A snapshot in progress. Most paths share their parents, which are examined only once, since this runs before the
/// first frame.
#[derive(Debug, Default)]
struct SnapshotBuilder {
    taken: Snapshot,
    /// Paths that were already examined for links, with their parents.
    walked: BTreeSet<OsString>,
    /// Paths for which the nearest existing directory at or above is already watched.
    sought: BTreeSet<OsString>,
}

impl SnapshotBuilder {
    fn add(&mut self, path: &Path) {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.watch_links_on_the_way(&absolute);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                self.watch(&absolute, &metadata);
                // So that the directory itself is reported if it is replaced by an empty one.
                self.taken.files.insert(path.to_owned(), FileIdentity::of(&metadata));
                for entry in fs::read_dir(path).into_iter().flatten().flatten().take(MAX_FILES) {
                    let name = entry.file_name();
                    if is_relevant_file(&name.to_string_lossy()) {
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

    /// Adds a file, a subdirectory, or a link to either. A dangling link is ignored.
    fn add_entry(&mut self, path: PathBuf) {
        if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink())
            && let Ok(target) = fs::canonicalize(&path)
        {
            self.watch_parent(&target);
            self.taken.targets.insert(target);
        }
        if let Ok(metadata) = fs::metadata(&path) {
            self.taken.files.insert(path, FileIdentity::of(&metadata));
        }
    }

    /// Replacing a link changes the directory that contains it, not its target.
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

    /// Watches the nearest existing parent directory.
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

/// Whether a file is relevant: neither hidden nor a temporary file of an editor.
fn is_relevant_file(name: &str) -> bool {
    !(name.starts_with('.') || name.starts_with('#') || name.ends_with('~') || name.ends_with(".swp"))
}
