#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::Cell;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use tempfile::{NamedTempFile, TempDir, tempdir};

use super::*;

/// A [`Disk`] whose calls fail from call number `at` on, and which writes a few bytes at a time if `short` is set.
struct Faulty {
    calls: Cell<usize>,
    at: usize,
    errno: i32,
    short: bool,
}

impl Faulty {
    fn new(at: usize, errno: i32, short: bool) -> Faulty {
        Faulty { calls: Cell::new(0), at, errno, short }
    }

    fn call(&self) -> io::Result<()> {
        let call = self.calls.replace(self.calls.get() + 1);
        if call >= self.at { Err(io::Error::from_raw_os_error(self.errno)) } else { Ok(()) }
    }
}

impl Disk for Faulty {
    fn create(&self, dir: &Path) -> io::Result<NamedTempFile> {
        self.call()?;
        System.create(dir)
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<usize> {
        let some = if self.short { bytes.len().min(3) } else { bytes.len() };
        // A full disk accepts part of the data first.
        match self.call() {
            Ok(()) => System.write(file, &bytes[..some]),
            Err(error) => {
                System.write(file, &bytes[..some / 2])?;
                Err(error)
            }
        }
    }

    fn copy_metadata(&self, file: &File, old: &Metadata) -> io::Result<()> {
        self.call()?;
        System.copy_metadata(file, old)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.call()?;
        System.sync(file)
    }

    fn rename(&self, draft: NamedTempFile, path: &Path) -> io::Result<()> {
        self.call()?;
        System.rename(draft, path)
    }

    fn rename_new(&self, draft: NamedTempFile, path: &Path) -> io::Result<()> {
        self.call()?;
        System.rename_new(draft, path)
    }

    fn sync_directory(&self, dir: &Path) -> io::Result<()> {
        self.call()?;
        System.sync_directory(dir)
    }
}

const OLD: &str = "what was there before";
const NEW: &str = "something else, which is longer than what was there before";
/// EIO, EROFS, ENOSPC, EDQUOT, ESTALE, EACCES.
const ERRNOS: [i32; 6] = [5, 30, 28, 122, 116, 13];

fn names(dir: &TempDir) -> Vec<String> {
    let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn a_failed_write_leaves_the_old_or_the_new_file() {
    for short in [false, true] {
        for errno in ERRNOS {
            for at in 0.. {
                let dir = tempdir().unwrap();
                let path = dir.path().join("f.yaml");
                std::fs::write(&path, OLD).unwrap();
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
                let disk = Faulty::new(at, errno, short);
                let result = replace(&disk, &path, NEW.as_bytes());
                let text = std::fs::read_to_string(&path).unwrap();
                let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
                assert_eq!((mode, names(&dir)), (0o640, vec!["f.yaml".to_owned()]), "call {at}, errno {errno}");
                match result {
                    Ok(()) => {
                        assert_eq!(text, NEW);
                        break;
                    }
                    // Any call can fail before the rename. Only the last call, which synchronizes the directory,
                    // follows it.
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(errno));
                        assert!(text == OLD || text == NEW && disk.calls.get() == at + 1, "call {at}: {text}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_failed_write_of_a_new_file_leaves_it_whole_or_absent() {
    for at in 0.. {
        let dir = tempdir().unwrap();
        let path = dir.path().join("f.yaml");
        let result = create(&Faulty::new(at, 28, true), &path, NEW.as_bytes());
        match std::fs::read_to_string(&path) {
            Ok(text) => assert_eq!((text.as_str(), names(&dir).len()), (NEW, 1)),
            Err(_) => assert_eq!((result.is_err(), names(&dir).len()), (true, 0)),
        }
        if result.is_ok() {
            break;
        }
    }
    let dir = tempdir().unwrap();
    let path = dir.path().join("f");
    std::fs::write(&path, OLD).unwrap();
    assert_eq!(write_new(&path, NEW).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), OLD);
}

#[test]
fn draft_file_appears_only_on_commit() {
    for at in 0.. {
        let dir = tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, OLD).unwrap();
        let disk = Faulty::new(at, 5, false);
        let result = AtomicFile::create_on(&disk, &path).and_then(|draft| {
            draft.file().write_all(&NEW.as_bytes()[..5])?;
            assert_eq!(std::fs::read_to_string(&path)?, OLD);
            draft.file().write_all(&NEW.as_bytes()[5..])?;
            draft.commit_on(&disk)
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text == OLD && result.is_err() || text == NEW, "call {at}: {text}");
        assert_eq!(names(&dir), ["f"], "call {at}");
        if result.is_ok() {
            break;
        }
    }
    let dir = tempdir().unwrap();
    drop(AtomicFile::begin(&dir.path().join("made/f")).unwrap());
    assert!(
        std::fs::read_dir(dir.path().join("made")).unwrap().next().is_none(),
        "nothing is left of what was dropped"
    );
}

#[test]
fn links_are_kept_and_their_targets_are_written() {
    let dir = tempdir().unwrap();
    std::fs::create_dir(dir.path().join("shared")).unwrap();
    std::fs::write(dir.path().join("shared/f"), OLD).unwrap();
    symlink("shared", dir.path().join("folder")).unwrap();
    symlink("folder/f", dir.path().join("link")).unwrap();
    symlink("absent", dir.path().join("to-be")).unwrap();
    symlink("circle", dir.path().join("circle")).unwrap();
    write(&dir.path().join("link"), NEW).unwrap();
    assert!(dir.path().join("link").is_symlink());
    assert_eq!(std::fs::read_to_string(dir.path().join("shared/f")).unwrap(), NEW);
    write(&dir.path().join("to-be"), NEW).unwrap();
    assert!(dir.path().join("to-be").is_symlink());
    assert_eq!(std::fs::read_to_string(dir.path().join("absent")).unwrap(), NEW);
    write(&dir.path().join("circle"), NEW).unwrap_err();
}

#[test]
fn modes_and_owners_are_kept_and_protected_files_refused() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("f");
    for mode in [0o600, 0o664, 0o755] {
        std::fs::write(&path, OLD).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let before = std::fs::metadata(&path).unwrap();
        write(&path, NEW).unwrap();
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(after.permissions().mode() & 0o777, mode);
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_ne!(after.ino(), before.ino(), "replaced, not written in place");
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    assert!(write(&path, OLD).unwrap_err().to_string().contains("read-only"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::hard_link(&path, dir.path().join("again")).unwrap();
    assert!(write(&path, OLD).unwrap_err().to_string().contains("hard links"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), NEW);
    assert!(write(dir.path(), OLD).is_err());
}

#[test]
fn new_file_has_the_default_mode() {
    let dir = tempdir().unwrap();
    File::create(dir.path().join("usual")).unwrap();
    write(&dir.path().join("new"), NEW).unwrap();
    let mode = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("new"), mode("usual"));
}

#[test]
fn stale_temporary_files_are_removed_and_others_kept() {
    let dir = tempdir().unwrap();
    let put = |name: &str, age: u64| {
        let file = File::create(dir.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    };
    put(".atlas-aB3xY9", 3600);
    put(".atlas-new123", 0);
    put(".atlas-settings", 3600);
    put("atlas-aB3xY9", 3600);
    write(&dir.path().join("f"), NEW).unwrap();
    let mut left = names(&dir);
    left.sort();
    assert_eq!(left, [".atlas-new123", ".atlas-settings", "atlas-aB3xY9", "f"]);
}
