//! Location of the state directory.

use std::path::PathBuf;

/// Returns the user's state directory: `$ATLAS_STATE_DIR`, otherwise the platform's usual location (`$XDG_STATE_HOME`
/// on Linux).
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("ATLAS_STATE_DIR").filter(|dir| !dir.is_empty()) {
        return Some(dir.into());
    }
    let dirs = directories::ProjectDirs::from("", "", "atlas-fabric")?;
    Some(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_path_buf())
}
