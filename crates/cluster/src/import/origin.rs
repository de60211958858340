//! Places in files.

/// Where a value is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The file as it was given.
    pub file: String,
    /// The line, from 1; `None` if the value follows from the file's name or from the kind of the file.
    pub line: Option<u32>,
}
