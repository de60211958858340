//! Places in source files.

/// The place where a value is stated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// File name as given by the caller.
    pub file: String,
    /// Line number, from 1. `None` if the value is derived from the name or the type of the file.
    pub line: Option<u32>,
}
