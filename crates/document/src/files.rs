//! Writing files: a reader sees the old content or the new, never a mix, whatever fails on the way.
//!
//! This is the only place that writes whole files. The content goes to a temporary file in the same directory, reaches
//! the disk, and is renamed; then the directory reaches the disk. A link is followed, so that the file behind it is
//! replaced and the link stays. Mode, owner and group of a file that is replaced are kept; a new file has the mode that
//! the umask leaves. A file that is read-only, or that has further hard links, is refused.

mod disk;
mod stale;
#[cfg(test)]
mod tests;

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use self::disk::{Disk, System};

/// Links that are followed before they count as a circle.
const MOST_LINKS: usize = 40;

/// Writes a file, in place of the one that is there. Makes the directory where it is missing.
///
/// # Errors
/// What the system says. The file is then as it was, unless only the directory could not be brought to the disk.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    replace(&System, path, content.as_ref())
}

/// As [`write()`], but a file that is there already stays as it is.
///
/// # Errors
/// What the system says; [`io::ErrorKind::AlreadyExists`] where there is one.
pub fn write_new(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    create(&System, path, content.as_ref())
}

fn replace(disk: &impl Disk, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut draft = Draft::begin_on(disk, path)?;
    fill(disk, &mut draft.file, content)?;
    draft.commit_on(disk)
}

/// A file that is written piece by piece, and takes its place when it is whole. Dropped before that, it is gone.
#[derive(Debug)]
pub struct Draft {
    file: tempfile::NamedTempFile,
    path: PathBuf,
    /// What it replaces.
    old: Option<Metadata>,
}

impl Draft {
    /// Begins a file that will be put in place of the one that is there, if one is. Makes the directory where it is missing.
    ///
    /// # Errors
    /// What the system says, or that the file that is there may not be replaced.
    pub fn begin(path: &Path) -> io::Result<Draft> {
        Draft::begin_on(&System, path)
    }

    fn begin_on(disk: &impl Disk, path: &Path) -> io::Result<Draft> {
        let path = followed(path)?;
        let old = match std::fs::metadata(&path) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let Some(old) = &old {
            replaceable(old)?;
        }
        Ok(Draft { file: empty(disk, directory(&path))?, path, old })
    }

    /// What is written to.
    #[must_use]
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Puts the file in its place, once all of it has reached the disk.
    ///
    /// # Errors
    /// What the system says. What was there before is then there still, unless only the directory could not be brought
    /// to the disk.
    pub fn commit(self) -> io::Result<()> {
        self.commit_on(&System)
    }

    fn commit_on(self, disk: &impl Disk) -> io::Result<()> {
        if let Some(old) = &self.old {
            disk.take_after(self.file.as_file(), old)?;
        }
        disk.sync(self.file.as_file())?;
        disk.rename(self.file, &self.path)?;
        disk.sync_directory(directory(&self.path))
    }
}

fn create(disk: &impl Disk, path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = directory(path);
    let mut draft = empty(disk, dir)?;
    fill(disk, &mut draft, content)?;
    disk.sync(draft.as_file())?;
    disk.rename_new(draft, path)?;
    disk.sync_directory(dir)
}

/// An empty temporary file in a directory, which is made where it is missing.
fn empty(disk: &impl Disk, dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    std::fs::create_dir_all(dir)?;
    stale::remove(dir);
    disk.create(dir)
}

/// Writes all of the content.
fn fill(disk: &impl Disk, draft: &mut tempfile::NamedTempFile, content: &[u8]) -> io::Result<()> {
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

/// The file behind a chain of links, whether it exists or not.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&path) {
            Ok(target) => path = directory(&path).join(target),
            // Not a link, or nothing at all.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("its links form a circle"))
}

/// Whether a file may be replaced by another.
fn replaceable(old: &Metadata) -> io::Result<()> {
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if !old.is_file() {
        return refuse("there is something that is not a file".to_owned());
    }
    if old.permissions().readonly() {
        return refuse("it is read-only; `chmod u+w` makes it writable".to_owned());
    }
    #[cfg(unix)]
    {
        let links = std::os::unix::fs::MetadataExt::nlink(old);
        if links > 1 {
            return refuse(format!("it has {links} hard links, of which this would replace only one"));
        }
    }
    Ok(())
}
