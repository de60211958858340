//! Atomic writes of whole files: a reader sees either the old content or the new, even if the write fails.
//!
//! All code that writes whole files uses this module. The content is written to a temporary file in the same directory,
//! which is synchronized and renamed; then the directory is synchronized. A symbolic link is followed, so that its
//! target is replaced and the link is kept. A file that is replaced keeps its mode, owner and group; a new file has the
//! mode that the umask leaves. A file that is read-only, or that has further hard links, is refused.

mod disk;
mod stale;
#[cfg(test)]
mod tests;

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use self::disk::{Disk, System};

/// Number of symbolic links that are followed before they count as a cycle.
const MAX_SYMLINKS: usize = 40;

/// Writes a file, replacing an existing one. Creates the directory if it is missing.
///
/// # Errors
/// The system's error. The file is then unchanged, unless only the directory could not be synchronized.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    replace(&System, path, content.as_ref())
}

/// Like [`write()`], but fails if the file exists.
///
/// # Errors
/// The system's error; [`io::ErrorKind::AlreadyExists`] if the file exists.
pub fn write_new(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    create(&System, path, content.as_ref())
}

fn replace(disk: &impl Disk, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut draft = AtomicFile::create_on(disk, path)?;
    write_all(disk, &mut draft.file, content)?;
    draft.commit_on(disk)
}

/// A file that is written incrementally and takes its final name in [`AtomicFile::commit`]. If it is dropped before
/// that, the temporary file is removed.
#[derive(Debug)]
pub struct AtomicFile {
    file: tempfile::NamedTempFile,
    path: PathBuf,
    /// Metadata of the file that is replaced, if it exists.
    old: Option<Metadata>,
}

impl AtomicFile {
    /// Creates the temporary file, and the directory if it is missing. [`AtomicFile::commit`] replaces the file at
    /// `path`, if there is one.
    ///
    /// # Errors
    /// The system's error, or an error if the existing file may not be replaced.
    pub fn begin(path: &Path) -> io::Result<AtomicFile> {
        AtomicFile::create_on(&System, path)
    }

    fn create_on(disk: &impl Disk, path: &Path) -> io::Result<AtomicFile> {
        let path = resolve_links(path)?;
        let old = match std::fs::metadata(&path) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let Some(old) = &old {
            check_replaceable(old)?;
        }
        Ok(AtomicFile { file: create_temporary(disk, directory(&path))?, path, old })
    }

    /// The temporary file, for writing.
    #[must_use]
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Synchronizes the file to disk and renames it to its final path.
    ///
    /// # Errors
    /// The system's error. The previous file is then unchanged, unless only the synchronization of the directory
    /// failed.
    pub fn commit(self) -> io::Result<()> {
        self.commit_on(&System)
    }

    fn commit_on(self, disk: &impl Disk) -> io::Result<()> {
        if let Some(old) = &self.old {
            disk.copy_metadata(self.file.as_file(), old)?;
        }
        disk.sync(self.file.as_file())?;
        disk.rename(self.file, &self.path)?;
        disk.sync_directory(directory(&self.path))
    }
}

fn create(disk: &impl Disk, path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = directory(path);
    let mut draft = create_temporary(disk, dir)?;
    write_all(disk, &mut draft, content)?;
    disk.sync(draft.as_file())?;
    disk.rename_new(draft, path)?;
    disk.sync_directory(dir)
}

/// Creates an empty temporary file in `dir`, and `dir` if it is missing.
fn create_temporary(disk: &impl Disk, dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    std::fs::create_dir_all(dir)?;
    stale::remove(dir);
    disk.create(dir)
}

/// Writes all of `content`, and retries short and interrupted writes.
fn write_all(disk: &impl Disk, draft: &mut tempfile::NamedTempFile, content: &[u8]) -> io::Result<()> {
    let mut rest = content;
    while !rest.is_empty() {
        match disk.write(draft.as_file_mut(), rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Follows a chain of symbolic links and returns the final path, whether it exists or not.
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_SYMLINKS {
        match std::fs::read_link(&path) {
            Ok(target) => path = directory(&path).join(target),
            // Not a link, or missing.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other(format!("more than {MAX_SYMLINKS} symbolic links in a chain; they probably form a cycle")))
}

/// Returns an error if the file may not be replaced: not a regular file, read-only, or with several hard links.
fn check_replaceable(old: &Metadata) -> io::Result<()> {
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if !old.is_file() {
        return refuse("it exists and is not a regular file".to_owned());
    }
    if old.permissions().readonly() {
        return refuse("it is read-only; `chmod u+w` makes it writable".to_owned());
    }
    #[cfg(unix)]
    {
        let links = std::os::unix::fs::MetadataExt::nlink(old);
        if links > 1 {
            return refuse(format!("it has {links} hard links, and replacing it would update only one of them"));
        }
    }
    Ok(())
}
