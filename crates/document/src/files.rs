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

use std::fs::Metadata;
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
    let path = followed(path)?;
    let old = match std::fs::metadata(&path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(old) = &old {
        replaceable(old)?;
    }
    let dir = directory(&path);
    std::fs::create_dir_all(dir)?;
    stale::remove(dir);
    let draft = draft(disk, dir, content, old.as_ref())?;
    disk.rename(draft, &path)?;
    disk.sync_directory(dir)
}

fn create(disk: &impl Disk, path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = directory(path);
    std::fs::create_dir_all(dir)?;
    stale::remove(dir);
    let draft = draft(disk, dir, content, None)?;
    disk.rename_new(draft, path)?;
    disk.sync_directory(dir)
}

/// The content in a temporary file, all of it on the disk.
fn draft(disk: &impl Disk, dir: &Path, content: &[u8], old: Option<&Metadata>) -> io::Result<tempfile::NamedTempFile> {
    let mut draft = disk.create(dir)?;
    let mut rest = content;
    while !rest.is_empty() {
        match disk.write(draft.as_file_mut(), rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if let Some(old) = old {
        disk.take_after(draft.as_file(), old)?;
    }
    disk.sync(draft.as_file())?;
    Ok(draft)
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
