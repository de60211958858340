//! Locations of documents: the layers of directories, and safe reading of files.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::node::Node;
use super::parse::MAX_FILE_BYTES;
use atlas_core::sort;

/// Locations of the documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// A directory with `targets.yaml`, `workloads.yaml` and `profiles/`, in place of the layers.
    pub workload_dir: Option<PathBuf>,
    /// A file of targets, in place of the layers' targets.
    pub targets: Option<PathBuf>,
    /// A file of workloads, in place of the layers' workloads.
    pub workloads: Option<PathBuf>,
    /// A directory of profiles, or one profile for every target, in place of the layers' profiles.
    pub hardware: Option<PathBuf>,
    /// An experiment of the predecessor comparison tool or scenarios of the predecessor dashboard, in place of all
    /// targets and workloads.
    pub config: Option<PathBuf>,
    /// The user's configuration directory, if there is one.
    pub config_dir: Option<PathBuf>,
    /// Whether `workload/` of the working directory is a layer.
    pub working_dir: bool,
}

impl Sources {
    /// Default sources, without any flags: the user's configuration directory and `workload/` of the working directory.
    #[must_use]
    pub fn default_sources() -> Sources {
        Sources { config_dir: config_dir(), working_dir: true, ..Sources::default() }
    }

    /// Sources with only the built-in documents.
    #[must_use]
    pub fn built_in() -> Sources {
        Sources::default()
    }

    /// The command-line flags that select these files.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let flags = [
            ("--workload-dir", &self.workload_dir),
            ("--targets", &self.targets),
            ("--workloads", &self.workloads),
            ("--hardware", &self.hardware),
            ("--config", &self.config),
        ];
        let given = flags.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?)));
        given.flat_map(|(flag, path)| [flag.to_owned(), path.to_string_lossy().into_owned()]).collect()
    }

    /// Files and directories to watch for changes, whether they exist or not.
    #[must_use]
    pub fn watched_paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.layers();
        let files = [&self.targets, &self.workloads, &self.hardware, &self.config];
        paths.extend(files.into_iter().flatten().cloned());
        let profiles: Vec<PathBuf> = self.layers().iter().map(|layer| layer.join("profiles")).collect();
        paths.extend(profiles);
        paths
    }

    /// Layer directories, lowest precedence first.
    pub fn layers(&self) -> Vec<PathBuf> {
        if let Some(dir) = &self.workload_dir {
            return vec![dir.clone()];
        }
        let config = self.config_dir.as_ref().map(|dir| dir.join("workload"));
        config.into_iter().chain(self.working_dir.then(|| PathBuf::from("workload"))).collect()
    }
}

/// The user's configuration directory: `$ATLAS_CONFIG_DIR`, or the platform's default.
#[must_use]
pub fn config_dir() -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("ATLAS_CONFIG_DIR").filter(|dir| !dir.is_empty()) {
        return Some(dir.into());
    }
    directories::ProjectDirs::from("", "", "atlas-fabric").map(|dirs| dirs.config_dir().to_path_buf())
}

/// The user's state directory: `$ATLAS_STATE_DIR`, or the platform's default (`$XDG_STATE_HOME` on Linux).
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("ATLAS_STATE_DIR").filter(|dir| !dir.is_empty()) {
        return Some(dir.into());
    }
    let dirs = directories::ProjectDirs::from("", "", "atlas-fabric")?;
    Some(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_path_buf())
}

/// Path of an entry in diagnostics: its name, or its kind if it has none.
pub fn entry_label(node: &Node, kind: &str) -> String {
    node.get("name").and_then(Node::text).map_or_else(|| kind.to_owned(), str::to_owned)
}

/// Whether a file or directory exists, or something that was meant to be one, such as a dangling link or a directory
/// without permission. Only paths that certainly do not exist return `false`.
#[must_use]
pub fn may_exist(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory),
    }
}

/// Returns the YAML files of a directory, sorted so that precedence does not depend on the file system. Hidden files
/// are skipped. A missing directory has none.
pub fn yaml_files(dir: &Path) -> Result<Vec<PathBuf>, String> {
    if !may_exist(dir) {
        return Ok(Vec::new());
    }
    let cannot = |error: std::io::Error| format!("cannot be listed: {error}");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let yaml = path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml");
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if yaml && !hidden {
            paths.push(path);
        }
    }
    sort::ascending(&mut paths);
    Ok(paths)
}

/// Reads a regular file of bounded size as UTF-8.
pub fn read_text(path: &Path) -> Result<String, String> {
    let bytes = read_bytes(path, MAX_FILE_BYTES)?;
    String::from_utf8(bytes)
        .map_err(|error| format!("not UTF-8: the byte at offset {} is invalid", error.utf8_error().valid_up_to()))
}

/// Reads a regular file of at most `limit` bytes.
pub fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    // The type is checked before the file is opened: opening a pipe without a writer would block forever.
    let meta = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?;
    if !meta.is_file() {
        return Err("cannot be read: not a regular file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    // One byte beyond the limit detects a file that is too large even if it grows while it is read.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > limit {
        return Err(format!("larger than the maximum of {limit} bytes"));
    }
    Ok(bytes)
}
