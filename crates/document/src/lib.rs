//! YAML documents with positions: [`parse`] turns text into a [`Node`] tree, [`decode`] turns the tree into typed
//! documents, and [`Diagnostics`] collects every problem found.

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
pub mod save;
#[cfg(feature = "files")]
pub mod sources;
pub mod suggestion;

pub use broken::BrokenEntries;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use node::{Node, Position, Value};
#[cfg(feature = "files")]
pub use sources::Sources;

use std::path::Path;
use std::sync::Arc;

/// Origin of an entry: the location that the key `e` opens in the editor and that explanations refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file as the user named it; embedded files begin with `built-in:`.
    pub file: Arc<str>,
    /// The line and column of the entry.
    pub at: Position,
}

impl Origin {
    /// Prefix of the names of built-in files.
    pub const BUILT_IN: &str = "built-in:";

    /// Whether the entry is built in, so that there is no file to edit.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.file.starts_with(Origin::BUILT_IN)
    }

    /// Directory that relative paths in the file are resolved against. Empty for built-in entries.
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
