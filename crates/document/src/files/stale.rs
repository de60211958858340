//! Cleanup of temporary files that killed processes left behind.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Prefix of the names of temporary files; six letters and digits follow.
pub(super) const PREFIX: &str = ".atlas-";
/// Age from which a temporary file counts as abandoned. No write takes this long.
const ABANDONED_AGE: Duration = Duration::from_secs(600);

/// Directories that this process has cleaned already.
static CLEANED_DIRECTORIES: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);

/// Removes abandoned temporary files of a directory, once per process. Errors are ignored.
pub(super) fn remove(dir: &Path) {
    let mut seen = CLEANED_DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner);
    if seen.get_or_insert_default().insert(dir.to_owned()) {
        drop(seen);
        remove_older_than(dir, ABANDONED_AGE);
    }
}

pub(super) fn remove_older_than(dir: &Path, age: Duration) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_temporary)) {
        // `elapsed` fails for a time in the future, after the clock was set back; such a file is kept.
        let old =
            entry.metadata().ok().filter(|meta| meta.is_file()).and_then(|meta| meta.modified().ok()?.elapsed().ok());
        if old.is_some_and(|old| old >= age) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX);
    random.is_some_and(|random| random.len() == 6 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}
