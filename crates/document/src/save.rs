//! Output files of commands. They are written atomically, missing directories are created, and errors contain the path.

use std::io::ErrorKind;
use std::path::Path;

use crate::files;

/// What to do about an existing file, for commands with `--force` and `--out FILE`.
pub const FORCE_OR_OTHER_FILE: &str = "use --force to overwrite it or --out to choose another file";
/// The same for commands with `--force` and `--out DIR`.
pub const FORCE_OR_OTHER_DIRECTORY: &str = "use --force to overwrite or --out to choose another directory";
/// The same for commands without `--force`.
pub const OTHER_NAME: &str = "choose another name";

/// Why a file was not written: what happened, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveError(String);

impl std::fmt::Display for SaveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SaveError {}

/// Writes a file, replacing an existing one.
///
/// # Errors
/// The system's error with the path.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), SaveError> {
    files::write(path, content).map_err(|error| write_error(path, &error))
}

/// Writes a file. If it exists, fails with an error that ends with `hint`.
///
/// # Errors
/// The file exists, or the system's error with the path.
pub fn write_new(path: &Path, content: impl AsRef<[u8]>, hint: &str) -> Result<(), SaveError> {
    files::write_new(path, content).map_err(|error| match error.kind() {
        // The directory can also be the cause: if it is a file, the error is of the same kind.
        ErrorKind::AlreadyExists if path.exists() => exists_error(&[path], hint),
        _ => write_error(path, &error),
    })
}

/// Fails if any of the files exists, for commands that write either all files or none.
///
/// # Errors
/// The paths of the files that exist, and `hint`.
pub fn refuse_existing<'a>(paths: impl IntoIterator<Item = &'a Path>, hint: &str) -> Result<(), SaveError> {
    let existing: Vec<&Path> = paths.into_iter().filter(|path| path.exists()).collect();
    if existing.is_empty() { Ok(()) } else { Err(exists_error(&existing, hint)) }
}

fn exists_error(paths: &[&Path], hint: &str) -> SaveError {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let verb = if names.len() == 1 { "exists" } else { "exist" };
    SaveError(format!("{} already {verb}; {hint}", names.join(", ")))
}

/// Creates a directory and its parents, unless it exists.
///
/// # Errors
/// The system's error with the path.
pub fn create_directory(path: &Path) -> Result<(), SaveError> {
    std::fs::create_dir_all(path).map_err(|error| write_error(path, &error))
}

/// Lets everybody execute the file.
///
/// # Errors
/// The system's error with the path.
pub fn make_executable(path: &Path) -> Result<(), SaveError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, mode).map_err(|error| write_error(path, &error))?;
    }
    Ok(())
}

/// The error of a failed write to a file or directory.
#[must_use]
pub fn write_error(path: &Path, error: &std::io::Error) -> SaveError {
    SaveError(match error.kind() {
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            format!("cannot write to {}: a file is where a directory is expected", path.display())
        }
        _ => format!("cannot write to {}: {error}", path.display()),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn existing_files_and_directories_that_are_files_are_reported_with_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let (file, missing) = (folder.path().join("a/file"), folder.path().join("missing"));
        write_new(&file, "first", OTHER_NAME).unwrap();
        let name = file.display();
        let error = write_new(&file, "second", OTHER_NAME).unwrap_err().to_string();
        assert_eq!(error, format!("{name} already exists; choose another name"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "first");
        refuse_existing([missing.as_path()], OTHER_NAME).unwrap();
        let error = refuse_existing([file.as_path(), &missing, folder.path()], OTHER_NAME).unwrap_err().to_string();
        assert_eq!(error, format!("{name}, {} already exist; choose another name", folder.path().display()));
        let below = file.join("below");
        for error in [write(&below, "").unwrap_err(), write_new(&below, "", OTHER_NAME).unwrap_err()] {
            let expected = format!("cannot write to {}: a file is where a directory is expected", below.display());
            assert_eq!(error.to_string(), expected);
        }
        write(&file, "third").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "third");
    }
}
