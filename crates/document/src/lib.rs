//! YAML documents with positions: text → [`parse`] → [`Node`] → [`decode`], with [`Diagnostics`] for every problem found.

#![forbid(unsafe_code)]

pub mod broken;
pub mod decode;
pub mod diagnostic;
#[cfg(feature = "files")]
pub mod files;
pub mod fingerprint;
pub mod node;
pub mod parse;
#[cfg(feature = "files")]
pub mod sources;

pub use broken::Broken;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use node::{Node, Position, Value};
#[cfg(feature = "files")]
pub use sources::Sources;

use std::path::Path;
use std::sync::Arc;

/// Origin of an entry: the place that `e` opens in the editor and explanations refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file as the user named it; embedded files begin with `built-in:`.
    pub file: Arc<str>,
    /// The line and column of the entry.
    pub at: Position,
}

impl Origin {
    /// Marks built-in files.
    pub const BUILT_IN: &str = "built-in:";

    /// Whether the entry is built in, and so has no file to edit.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.file.starts_with(Origin::BUILT_IN)
    }

    /// The directory that relative paths in the file start from.
    #[must_use]
    pub fn folder(&self) -> &Path {
        let file = (!self.is_built_in()).then(|| Path::new(&*self.file));
        file.and_then(Path::parent).unwrap_or(Path::new(""))
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.at.line == 0 { f.write_str(&self.file) } else { write!(f, "{}:{}", self.file, self.at.line) }
    }
}
