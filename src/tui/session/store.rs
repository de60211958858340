//! Where sessions are kept: one for each working directory in the user's state directory, and those that were given a
//! name.

use crate::tui::session::directory::state_dir;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::SystemTime;

use super::{Document, Unreadable};
use atlas_core::sort;
use atlas_document::Sources;
use atlas_document::files;
use atlas_document::fingerprint::fingerprint;
use atlas_document::sources::read_text;

/// Sessions of directories that are kept; the oldest go first.
const MOST: usize = 64;

/// Which session a start opens, and leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Keep {
    /// None.
    #[default]
    Nothing,
    /// That of the working directory, or the one with this name.
    Session {
        /// Its name, where it has one.
        name: Option<String>,
        /// Begin anew all the same; what is left then takes its place.
        fresh: bool,
    },
}

/// A session's file.
#[derive(Debug, Default)]
pub struct Store {
    path: Option<PathBuf>,
    fresh: bool,
    /// What the file says, as far as is known; nothing is written that it says already.
    known: Option<Document>,
    /// What is being written beside the loop.
    writing: Option<JoinHandle<Result<Written, String>>>,
    /// What the file said when it was last read or written: if it says something else, another instance wrote it.
    disk: Option<String>,
    notice: Option<String>,
}

/// A session that was written.
#[derive(Debug)]
struct Written {
    path: PathBuf,
    text: String,
}

impl Store {
    /// The file of the session that is to be kept, in the user's state directory.
    #[must_use]
    pub fn of(keep: &Keep, sources: &Sources) -> Store {
        let Keep::Session { name, fresh } = keep else { return Store::default() };
        let path = state_dir().and_then(|dir| {
            let dir = dir.join("sessions");
            match name {
                Some(name) => Some(dir.join(format!("{name}.json"))),
                None => Some(dir.join("directories").join(directory_name(&std::env::current_dir().ok()?, sources))),
            }
        });
        Store { path, fresh: *fresh, ..Store::default() }
    }

    /// A store in a file, for tests.
    #[must_use]
    pub fn at(path: PathBuf) -> Store {
        Store { path: Some(path), ..Store::default() }
    }

    /// What was left there last; `None` if nothing was, or a fresh start was asked for.
    ///
    /// # Errors
    /// Why the file is no session, in words. One that is damaged is put aside, so that nothing in it is lost; one that
    /// cannot be read now, or is of a newer version, stays as it is, and nothing is kept in this run.
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

    /// What has to be said about where the session is kept, once.
    pub fn notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    /// Whether this user has never left a session, in this directory or another.
    #[must_use]
    pub fn is_first(&self) -> bool {
        let sessions = self.path.as_deref().and_then(|path| path.ancestors().find(|dir| dir.ends_with("sessions")));
        !self.fresh && sessions.is_some_and(|sessions| !sessions.exists())
    }

    /// What a start without a session looks like: left like this, there is nothing to keep.
    pub fn starts_as(&mut self, document: Document) {
        if self.known.is_none() && self.path.as_deref().is_some_and(|path| !path.exists()) {
            self.known = Some(document);
        }
    }

    /// Writes what is left, atomically, unless the file says it already.
    ///
    /// # Errors
    /// Why it cannot be written, in words.
    pub fn save(&mut self, document: Document) -> Result<(), String> {
        self.written();
        let Some(path) = self.path.clone().filter(|_| self.known.as_ref() != Some(&document)) else { return Ok(()) };
        let written = write(path, self.disk.as_deref(), &document)?;
        self.took(written);
        self.known = Some(document);
        Ok(())
    }

    /// Writes where one is, unless the file says it already, on a thread of its own: the disk may be far, and keys do not
    /// wait for it. What cannot be written now is tried again with [`Store::save`], which tells why. Answers whether this
    /// can be left at that; not while something else is still being written.
    pub fn save_beside(&mut self, document: Document) -> bool {
        if self.writing.as_ref().is_some_and(|writing| !writing.is_finished()) {
            return false;
        }
        self.written();
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

    /// Waits for what is being written. What was not is not known to be there.
    fn written(&mut self) {
        match self.writing.take().map(JoinHandle::join) {
            None => {}
            Some(Ok(Ok(written))) => self.took(written),
            Some(_) => self.known = None,
        }
    }

    fn took(&mut self, written: Written) {
        if self.path.as_ref() != Some(&written.path) {
            let name = written.path.file_stem().unwrap_or_default().to_string_lossy();
            let why = "another instance has saved this session in the meantime";
            self.notice = Some(format!("{why}; saving this one as --session {name}"));
        }
        (self.path, self.disk) = (Some(written.path), Some(written.text));
    }
}

/// Writes a session, beside the file where that does not say what was found there before: another instance has written
/// it. Of directories' sessions, forgets the oldest.
fn write(path: PathBuf, before: Option<&str>, document: &Document) -> Result<Written, String> {
    let now = read_text(&path).ok();
    let path = if now.is_none() || now.as_deref() == before { path } else { beside(&path) };
    let text = document.text();
    files::write(&path, &text)
        .map_err(|error| format!("session not saved: cannot write to {}: {error}", path.display()))?;
    if let Some(dir) = path.parent().filter(|dir| dir.ends_with("directories")) {
        prune(dir);
    }
    Ok(Written { path, text })
}

/// A file for another session of the same name: one that can be asked for by name.
fn beside(path: &Path) -> PathBuf {
    let dir = path.parent().unwrap_or(Path::new(""));
    let sessions = if dir.ends_with("directories") { dir.parent().unwrap_or(dir) } else { dir };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    // Of a directory's session without the hash that tells it from others.
    let name = if sessions == dir { &*stem } else { stem.rsplit_once('-').map_or(&*stem, |(name, _)| name) };
    let name = if name.is_empty() { "session" } else { name };
    unused(|n| sessions.join(format!("{}.json", numbered(name, n + 1))))
}

/// The first path of a numbered series that does not exist.
fn unused(path: impl Fn(u32) -> PathBuf) -> PathBuf {
    (1..u32::MAX).map(&path).find(|path| std::fs::symlink_metadata(path).is_err()).unwrap_or_else(|| path(u32::MAX))
}

/// `name`, `name-2`, `name-3` and so on.
fn numbered(name: &str, n: u32) -> String {
    if n < 2 { name.to_owned() } else { format!("{name}-{n}") }
}

/// The file of a directory's session: its last name, so that people find it, and a hash of all that tells it from others:
/// the whole path, and the files named on the command line, since another set of files has other names in it.
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

/// Forgets the sessions that were left longest ago, beyond what is kept.
fn prune(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains(".json"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    sort::ascending(&mut files);
    let excess = files.len().saturating_sub(MOST);
    for (_, path) in files.into_iter().take(excess) {
        // One that cannot be removed does no harm.
        let _ = std::fs::remove_file(path);
    }
}

/// A name that a session may have.
///
/// # Errors
/// What is wrong with it.
pub fn session_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.starts_with('.') || text.chars().count() > 64 || !text.chars().all(good) {
        return Err("expected up to 64 letters, digits, hyphens, underscores and dots".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn directories_and_files_of_the_command_line_have_sessions_of_their_own() {
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
    fn names_are_names_and_no_paths() {
        assert!(session_name("night-run_2.b").is_ok());
        for bad in ["", "../x", "a/b", ".hidden", "a b", "a\n"] {
            assert!(session_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_the_latest_sessions_of_directories_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..MOST + 5 {
            let path = dir.path().join(format!("{i:03}.json"));
            std::fs::write(&path, "{}").unwrap();
            let when = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(i as u64 + 1);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(when).unwrap();
        }
        prune(dir.path());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), MOST);
        assert!(!dir.path().join("004.json").exists() && dir.path().join("005.json").exists());
    }
}
