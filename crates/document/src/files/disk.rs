//! The system calls of a write, behind a trait so that tests can make each of them fail.

use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use super::stale::PREFIX;

/// The system calls of one write, in the order in which they are made.
pub(super) trait Disk {
    /// Creates an empty temporary file, which is removed when it is dropped.
    fn create(&self, dir: &Path) -> io::Result<NamedTempFile>;
    /// Writes some of the bytes and returns their number.
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<usize>;
    /// Gives `file` the mode, owner and group of the file that it replaces.
    fn copy_metadata(&self, file: &File, old: &Metadata) -> io::Result<()>;
    /// Synchronizes a file to disk.
    fn sync(&self, file: &File) -> io::Result<()>;
    /// Renames a file to `path`, replacing an existing file.
    fn rename(&self, draft: NamedTempFile, path: &Path) -> io::Result<()>;
    /// Renames a file to `path`; fails if `path` exists.
    fn rename_new(&self, draft: NamedTempFile, path: &Path) -> io::Result<()>;
    /// Synchronizes a directory to disk.
    fn sync_directory(&self, dir: &Path) -> io::Result<()>;
}

/// The operating system.
pub(super) struct System;

impl Disk for System {
    fn create(&self, dir: &Path) -> io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // `tempfile` defaults to 0o600; with 0o666, the umask decides, as for any new file.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        builder.tempfile_in(dir)
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    #[cfg(unix)]
    fn copy_metadata(&self, file: &File, old: &Metadata) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt as _;
        let new = file.metadata()?;
        let group = (new.gid() != old.gid()).then_some(old.gid());
        let owner = (new.uid() != old.uid()).then_some(old.uid());
        // Only root can change the owner. The group must be kept, since others may have read access through it.
        if owner.is_none() || std::os::unix::fs::fchown(file, owner, group).is_err() {
            std::os::unix::fs::fchown(file, None, group)?;
        }
        // After `fchown`, which clears the setuid and setgid bits.
        file.set_permissions(old.permissions())
    }

    #[cfg(not(unix))]
    fn copy_metadata(&self, file: &File, old: &Metadata) -> io::Result<()> {
        file.set_permissions(old.permissions())
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, draft: NamedTempFile, path: &Path) -> io::Result<()> {
        draft.persist(path).map(drop).map_err(|error| error.error)
    }

    fn rename_new(&self, draft: NamedTempFile, path: &Path) -> io::Result<()> {
        draft.persist_noclobber(path).map(drop).map_err(|error| error.error)
    }

    fn sync_directory(&self, dir: &Path) -> io::Result<()> {
        match File::open(dir).and_then(|dir| dir.sync_all()) {
            // Some file systems do not support this, and a directory may be writable without being readable.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied) => {
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
            result => result,
        }
    }
}
