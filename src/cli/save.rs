//! Output files of commands.

use std::path::Path;

pub(super) use atlas_document::save::{
    FORCE_OR_OTHER_DIRECTORY, FORCE_OR_OTHER_FILE, OTHER_NAME, SaveError, create_directory, make_executable,
    refuse_existing, write, write_error, write_new,
};

use super::output::write_stderr;

/// Writes a file, replacing an existing one, and reports its path.
pub(super) fn save(path: &Path, content: impl AsRef<[u8]>) -> Result<(), SaveError> {
    write(path, content)?;
    write_stderr(&format!("wrote {}", path.display()));
    Ok(())
}
