//! Files of the history: one directory per month, one file per entry.

use std::path::{Path, PathBuf};

use atlas_core::sort;
use atlas_document::files;
use atlas_document::sources::{read_bytes, state_dir};

use super::entry::{Entry, FORMAT};
use super::filter::Filter;

/// Size of the largest file that is read as an entry, in bytes.
const MAX_ENTRY_BYTES: u64 = 64 << 20;
/// Number of names that are tried for one entry.
const MAX_NAME_ATTEMPTS: u32 = 16;

/// The directory that contains the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    directory: PathBuf,
}

/// An entry that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenEntry {
    /// Id of the entry.
    pub id: String,
    /// Path of its file.
    pub path: PathBuf,
}

/// A file that is not a valid entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct Problem {
    /// Path of the file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// Errors of the history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The directory or a file cannot be read or written.
    #[error("history: {}: {source}", path.display())]
    File {
        /// Path of the directory or file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// An entry cannot be serialized as JSON.
    #[error("history: cannot write an entry: {0}")]
    Json(#[from] serde_json::Error),
    /// No entry matches the name.
    #[error("history: no entry \"{0}\"; run `atlas history` to list entries")]
    Unknown(String),
    /// Several entries match the name.
    #[error("history: \"{name}\" is ambiguous: {}", .found.join(", "))]
    Ambiguous {
        /// The name that was requested.
        name: String,
        /// The first matching entries.
        found: Vec<String>,
    },
    /// The file of an entry is damaged.
    #[error("history: {0}")]
    Damaged(Problem),
}

impl Store {
    /// The user's history; `None` if `ATLAS_HISTORY=off` or there is no directory for it.
    #[must_use]
    pub fn of_user() -> Option<Store> {
        let off = std::env::var_os("ATLAS_HISTORY").is_some_and(|value| value == "off");
        let directory = state_dir().filter(|_| !off)?;
        Some(Store::at(directory.join("history")))
    }

    /// Opens the history in a directory, which need not exist.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>) -> Store {
        Store { directory: directory.into() }
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes an entry. Concurrent readers see the whole entry or none, even if this process is killed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, entry: &Entry) -> Result<WrittenEntry, HistoryError> {
        let month = self.directory.join(entry.at.strftime("%Y-%m").to_string());
        let mut entry = entry.clone();
        for attempt in 0..MAX_NAME_ATTEMPTS {
            let mut text = serde_json::to_vec_pretty(&entry)?;
            text.push(b'\n');
            let path = month.join(format!("{}.json", entry.id));
            match files::write_new(&path, &text) {
                Ok(()) => return Ok(WrittenEntry { id: entry.id, path }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && attempt + 1 < MAX_NAME_ATTEMPTS => {
                    // An import keeps its time and id, so importing the same entry again must not create a second one.
                    if read_bytes(&path, MAX_ENTRY_BYTES).is_ok_and(|there| there == text) {
                        return Ok(WrittenEntry { id: entry.id, path });
                    }
                    entry.id = format!("{}{attempt:x}", entry.id);
                }
                Err(source) => return Err(HistoryError::File { path, source }),
            }
        }
        Err(HistoryError::File { path: month, source: std::io::ErrorKind::AlreadyExists.into() })
    }

    /// Returns the entries that match the filter, newest first, and the files that are not valid entries.
    ///
    /// # Errors
    /// If the directory cannot be read. A history that does not exist is empty.
    pub fn list(&self, filter: &Filter) -> Result<(Vec<Entry>, Vec<Problem>), HistoryError> {
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        for path in self.paths()? {
            if filter.limit.is_some_and(|limit| entries.len() >= limit) {
                break;
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            if !filter.may_match_name(&name) {
                continue;
            }
            match read(&path) {
                Ok(entry) if filter.matches(&entry) => entries.push(entry),
                Ok(_) => {}
                Err(problem) => problems.push(problem),
            }
        }
        Ok((entries, problems))
    }

    /// Finds an entry by its id, the beginning of its handle, `last` or `last~3`.
    ///
    /// # Errors
    /// If no entry or several entries match, or the file is damaged.
    pub fn find(&self, name: &str) -> Result<Entry, HistoryError> {
        let paths = self.paths()?;
        let unknown = || HistoryError::Unknown(name.to_owned());
        if let Some(rest) = name.strip_prefix("last") {
            let back = match rest.strip_prefix('~') {
                Some(count) => count.parse::<usize>().map_err(|_| unknown())?,
                None if rest.is_empty() => 0,
                None => return Err(unknown()),
            };
            return read(paths.get(back).ok_or_else(unknown)?).map_err(HistoryError::Damaged);
        }
        let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let matches = |path: &&PathBuf| {
            let stem = stem(path);
            !name.is_empty() && (stem == name || stem.rsplit('-').next().is_some_and(|handle| handle.starts_with(name)))
        };
        let found: Vec<&PathBuf> = paths.iter().filter(matches).collect();
        match found.as_slice() {
            [] => Err(unknown()),
            [path] => read(path).map_err(HistoryError::Damaged),
            several => match several.iter().find(|path| stem(path) == name) {
                Some(path) => read(path).map_err(HistoryError::Damaged),
                None => Err(HistoryError::Ambiguous {
                    name: name.to_owned(),
                    found: several.iter().take(5).map(|path| stem(path)).collect(),
                }),
            },
        }
    }

    /// Paths of all entries, newest first.
    fn paths(&self) -> Result<Vec<PathBuf>, HistoryError> {
        let failed = |path: &Path, source| HistoryError::File { path: path.to_owned(), source };
        let months = match std::fs::read_dir(&self.directory) {
            Ok(months) => months,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&self.directory, error)),
        };
        let mut paths = Vec::new();
        for month in months {
            let month = month.map_err(|error| failed(&self.directory, error))?.path();
            if !month.is_dir() {
                continue;
            }
            for file in std::fs::read_dir(&month).map_err(|error| failed(&month, error))? {
                let path = file.map_err(|error| failed(&month, error))?.path();
                let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
                if !hidden && path.extension().is_some_and(|ending| ending == "json") {
                    paths.push(path);
                }
            }
        }
        sort::by(&mut paths, |a, b| b.file_name().cmp(&a.file_name()));
        Ok(paths)
    }
}

fn read(path: &Path) -> Result<Entry, Problem> {
    let problem = |reason: String| Problem { path: path.to_owned(), reason };
    let text = read_bytes(path, MAX_ENTRY_BYTES).map_err(problem)?;
    let entry: Entry = serde_json::from_slice(&text).map_err(|error| problem(format!("not an entry: {error}")))?;
    if entry.history > FORMAT {
        return Err(problem(format!("written by a newer version: format {}, expected {FORMAT}", entry.history)));
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Draft, EntryKind};

    fn draft(target: &str) -> Draft {
        Draft { target: Some(target.to_owned()), ..Draft::default() }
    }

    #[test]
    fn written_entry_is_found_by_id_handle_and_last() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::at(directory.path().join("history"));
        assert_eq!(store.list(&Filter::default()).unwrap().0, []);
        let entry = Entry::new(EntryKind::Prediction, draft("h100"));
        let written = store.write(&entry).unwrap();
        for name in [&*written.id, entry.handle(), "last", "last~0"] {
            assert_eq!(store.find(name).unwrap(), entry, "{name}");
        }
        for name in ["", "zz", "last~1", "lasting", "last~x"] {
            assert!(matches!(store.find(name), Err(HistoryError::Unknown(_))), "{name}");
        }
    }

    #[test]
    fn entry_with_an_existing_id_does_not_replace_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::at(directory.path());
        let first = Entry::new(EntryKind::Run, draft("a"));
        let second = Entry { target: Some("b".to_owned()), ..first.clone() };
        store.write(&first).unwrap();
        let id = store.write(&second).unwrap().id;
        assert_ne!(id, first.id);
        assert_eq!(store.write(&first).unwrap().id, first.id, "the same entry again is the same file");
        assert_eq!(store.list(&Filter::default()).unwrap().0.len(), 2);
        assert_eq!(store.find(&first.id).unwrap(), first);
    }

    #[test]
    fn concurrent_writers_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::at(directory.path());
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let store = &store;
                scope.spawn(move || {
                    for number in 0..20 {
                        let entry = Entry::new(EntryKind::Prediction, draft(&format!("{writer}/{number}")));
                        store.write(&entry).unwrap();
                    }
                });
            }
        });
        let (entries, problems) = store.list(&Filter::default()).unwrap();
        let mut targets: Vec<_> = entries.iter().filter_map(|entry| entry.target.clone()).collect();
        targets.sort();
        targets.dedup();
        assert_eq!((targets.len(), problems.len()), (160, 0));
    }

    #[test]
    fn damaged_files_are_reported_and_the_others_listed() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::at(directory.path());
        let written = store.write(&Entry::new(EntryKind::Sweep, draft("a"))).unwrap();
        let month = written.path.parent().unwrap();
        std::fs::write(month.join("20250101T000000000-run-00000000.json"), "{\"history\": 1,").unwrap();
        std::fs::write(month.join(".atlas-xyz.json"), "half").unwrap();
        let newer = std::fs::read_to_string(&written.path).unwrap().replace("\"history\": 1", "\"history\": 9");
        std::fs::write(month.join("20250101T000000001-run-00000001.json"), newer).unwrap();
        let (entries, problems) = store.list(&Filter::default()).unwrap();
        assert_eq!((entries.len(), problems.len()), (1, 2));
        assert!(problems.iter().any(|problem| problem.to_string().contains("newer version")));
    }
}
