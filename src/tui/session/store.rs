//! Storage of sessions in the user's state directory: one per working directory, and named ones.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::SystemTime;

use super::{Document, Unreadable};
use atlas_core::sort;
use atlas_document::Sources;
use atlas_document::files;
use atlas_document::fingerprint::fingerprint;
use atlas_document::sources::{read_text, state_dir};

/// Maximum number of sessions of directories that are kept. The oldest are deleted.
const MAX_SESSIONS: usize = 64;

/// The session that is loaded at the start and saved at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SessionMode {
    /// No session.
    #[default]
    Nothing,
    /// The session of the working directory, or the one with this name.
    Session {
        /// Name of the session, if it has one.
        name: Option<String>,
        /// Whether to start without loading the session. It is overwritten when the state is saved.
        fresh: bool,
    },
}

/// The file of a session.
#[derive(Debug, Default)]
pub struct Store {
    path: Option<PathBuf>,
    fresh: bool,
    /// Content of the file as far as known. A document that equals it is not written again.
    known: Option<Document>,
    /// Thread that is writing the session.
    writing: Option<JoinHandle<Result<Written, String>>>,
    /// Text of the file when it was last read or written. If the file differs from it, another instance has written the
    /// file.
    disk: Option<String>,
    notice: Option<String>,
}

/// A session after it was written.
#[derive(Debug)]
struct Written {
    path: PathBuf,
    text: String,
}

impl Store {
    /// Returns the store of the session selected by `keep`, in the user's state directory.
    #[must_use]
    pub fn of(keep: &SessionMode, sources: &Sources) -> Store {
        let SessionMode::Session { name, fresh } = keep else { return Store::default() };
        let path = state_dir().and_then(|dir| {
            let dir = dir.join("sessions");
            match name {
                Some(name) => Some(dir.join(format!("{name}.json"))),
                None => Some(dir.join("directories").join(directory_name(&std::env::current_dir().ok()?, sources))),
            }
        });
        Store { path, fresh: *fresh, ..Store::default() }
    }

    /// Creates a store for the file `path`, for tests.
    #[must_use]
    pub fn at(path: PathBuf) -> Store {
        Store { path: Some(path), ..Store::default() }
    }

    /// Loads the session. Returns `None` if there is none, or if a fresh start was requested.
    ///
    /// # Errors
    /// A message for the user on why the file cannot be loaded. A damaged file is renamed, so that nothing in it is
    /// lost. A file that cannot be read, or was written by a newer version, is left unchanged, and the session is not
    /// saved.
    pub fn load(&mut self) -> Result<Option<Document>, String> {
        let Some(path) = self.path.clone().filter(|path| path.exists()) else { return Ok(None) };
        let stays = "; the file is left unchanged, and this session will not be saved";
        let described = |why: &str, then: &str| format!("cannot read the session in {}: {why}{then}", path.display());
        let text = match read_text(&path) {
            Ok(text) => text,
            Err(why) => {
                self.path = None;
                return Err(described(&why, stays));
            }
        };
        match Document::parse(&text) {
            _ if self.fresh => {
                self.disk = Some(text);
                Ok(None)
            }
            Ok(document) => {
                (self.known, self.disk) = (Some(document.clone()), Some(text));
                Ok(Some(document))
            }
            Err(newer @ Unreadable::Newer(_)) => {
                self.path = None;
                Err(described(&newer.to_string(), stays))
            }
            Err(Unreadable::Broken(why)) => {
                let aside = unused(|n| path.with_extension(numbered("json.broken", n)));
                let put = std::fs::rename(&path, &aside);
                let then = put.map_or_else(|_| String::new(), |()| format!("; it was renamed to {}", aside.display()));
                Err(described(&why, &then))
            }
        }
    }

    /// Takes the notice about the location of the session, to be shown once.
    pub fn notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    /// Whether this user has never saved a session, in this directory or another.
    #[must_use]
    pub fn is_first(&self) -> bool {
        let sessions = self.path.as_deref().and_then(|path| path.ancestors().find(|dir| dir.ends_with("sessions")));
        !self.fresh && sessions.is_some_and(|sessions| !sessions.exists())
    }

    /// Sets the document of a start without a session. If the state still equals it at the end, nothing is saved.
    pub fn set_initial(&mut self, document: Document) {
        if self.known.is_none() && self.path.as_deref().is_some_and(|path| !path.exists()) {
            self.known = Some(document);
        }
    }

    /// Writes the session atomically, unless the file already contains it.
    ///
    /// # Errors
    /// A message for the user on why the session cannot be written.
    pub fn save(&mut self, document: Document) -> Result<(), String> {
        self.wait_for_write();
        let Some(path) = self.path.clone().filter(|_| self.known.as_ref() != Some(&document)) else { return Ok(()) };
        let written = write(path, self.disk.as_deref(), &document)?;
        self.finish_write(written);
        self.known = Some(document);
        Ok(())
    }

    /// Writes the session on a background thread, unless the file already contains it, so that a slow disk does not
    /// delay key presses. If writing fails, [`Store::save`] retries and reports the error. Returns `false` if the
    /// previous write is still in progress, in which case the caller has to try again.
    pub fn save_in_background(&mut self, document: Document) -> bool {
        if self.writing.as_ref().is_some_and(|writing| !writing.is_finished()) {
            return false;
        }
        self.wait_for_write();
        if let Some(path) = self.path.clone().filter(|_| self.known.as_ref() != Some(&document)) {
            let (copy, disk) = (document.clone(), self.disk.clone());
            let begun = std::thread::Builder::new()
                .name("session".to_owned())
                .spawn(move || write(path, disk.as_deref(), &copy));
            self.known = begun.is_ok().then_some(document);
            self.writing = begun.ok();
        }
        true
    }

    /// Waits for the write in progress. If it failed, the content of the file is unknown.
    fn wait_for_write(&mut self) {
        match self.writing.take().map(JoinHandle::join) {
            None => {}
            Some(Ok(Ok(written))) => self.finish_write(written),
            Some(_) => self.known = None,
        }
    }

    fn finish_write(&mut self, written: Written) {
        if self.path.as_ref() != Some(&written.path) {
            let name = written.path.file_stem().unwrap_or_default().to_string_lossy();
            let why = "another instance has saved this session in the meantime";
            self.notice = Some(format!("{why}; saving this one as --session {name}"));
        }
        (self.path, self.disk) = (Some(written.path), Some(written.text));
    }
}

/// Writes a session. If the file has changed since `before`, another instance has written it, and the session is
/// written to a new file, whose path is returned by [`unused_sibling`]. Deletes the oldest sessions of directories.
fn write(path: PathBuf, before: Option<&str>, document: &Document) -> Result<Written, String> {
    let now = read_text(&path).ok();
    let path = if now.is_none() || now.as_deref() == before { path } else { unused_sibling(&path) };
    let text = document.text();
    files::write(&path, &text)
        .map_err(|error| format!("session not saved: cannot write to {}: {error}", path.display()))?;
    if let Some(dir) = path.parent().filter(|dir| dir.ends_with("directories")) {
        prune(dir);
    }
    Ok(Written { path, text })
}

/// Returns an unused path for a session of the same name that can be loaded by name.
fn unused_sibling(path: &Path) -> PathBuf {
    let dir = path.parent().unwrap_or(Path::new(""));
    let sessions = if dir.ends_with("directories") { dir.parent().unwrap_or(dir) } else { dir };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    // The name of a directory's session without its hash.
    let name = if sessions == dir { &*stem } else { stem.rsplit_once('-').map_or(&*stem, |(name, _)| name) };
    let name = if name.is_empty() { "session" } else { name };
    unused(|n| sessions.join(format!("{}.json", numbered(name, n + 1))))
}

/// Returns the first path of a numbered series that does not exist.
fn unused(path: impl Fn(u32) -> PathBuf) -> PathBuf {
    (1..u32::MAX).map(&path).find(|path| std::fs::symlink_metadata(path).is_err()).unwrap_or_else(|| path(u32::MAX))
}

/// Returns `name`, `name-2`, `name-3` and so on.
fn numbered(name: &str, n: u32) -> String {
    if n < 2 { name.to_owned() } else { format!("{name}-{n}") }
}

/// Returns the file name of a directory's session: the last component of the path, for readability, and a hash of the
/// whole path and of the files given on the command line, because other files define other names.
fn directory_name(dir: &Path, sources: &Sources) -> String {
    let given = [&sources.workload_dir, &sources.targets, &sources.workloads, &sources.hardware];
    let mut described = dir.to_string_lossy().into_owned();
    for path in given {
        described.push('\0');
        described += &path.as_ref().map(|path| path.to_string_lossy()).unwrap_or_default();
    }
    let hash = fingerprint(described.as_bytes());
    let last = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain: String = last.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).take(32).collect();
    format!("{plain}-{hash:016x}.json")
}

/// Deletes the sessions that were saved longest ago, down to [`MAX_SESSIONS`].
fn prune(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains(".json"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    sort::ascending(&mut files);
    let excess = files.len().saturating_sub(MAX_SESSIONS);
    for (_, path) in files.into_iter().take(excess) {
        // A file that cannot be removed is harmless.
        let _ = std::fs::remove_file(path);
    }
}

/// Parses the name of a session.
///
/// # Errors
/// A description of valid names, if this one is invalid.
pub fn session_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.starts_with('.') || text.chars().count() > 64 || !text.chars().all(good) {
        return Err("expected 1 to 64 letters, digits, hyphens, underscores or dots, and no leading dot".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn session_file_name_depends_on_directory_and_source_files() {
        let sources = Sources::default();
        let name = directory_name(Path::new("/home/me/clusters"), &sources);
        assert!(name.starts_with("clusters-") && name.ends_with(".json"));
        assert_eq!(name, directory_name(Path::new("/home/me/clusters"), &sources));
        assert_ne!(name, directory_name(Path::new("/home/you/clusters"), &sources));
        let other = Sources { targets: Some("mine.yaml".into()), ..Sources::default() };
        assert_ne!(name, directory_name(Path::new("/home/me/clusters"), &other));
        assert!(directory_name(Path::new("/"), &sources).starts_with('-'));
    }

    #[test]
    fn session_names_reject_paths_and_hidden_files() {
        assert!(session_name("night-run_2.b").is_ok());
        for bad in ["", "../x", "a/b", ".hidden", "a b", "a\n"] {
            assert!(session_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_the_latest_sessions_of_directories_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..MAX_SESSIONS + 5 {
            let path = dir.path().join(format!("{i:03}.json"));
            std::fs::write(&path, "{}").unwrap();
            let when = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(i as u64 + 1);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(when).unwrap();
        }
        prune(dir.path());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), MAX_SESSIONS);
        assert!(!dir.path().join("004.json").exists() && dir.path().join("005.json").exists());
    }
}
