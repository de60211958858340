//! From logs to measurements: what training, serving, network and power tools write, recognised by content.
//!
//! A file is read once, in constant memory, line by line ([`lines`]) or, where it is one JSON document, as a whole.
//! Every line is offered to the recognisers ([`recogniser`]) whose words it holds; each gathers what it knows how to
//! read and gives a [`Reading`]: facts by name, configuration with its origin, runs with their series. Nothing is
//! guessed silently: what a figure was worked out from stands in its origin, and the [`Tally`] counts what was read,
//! what was passed over, and why.
//!
//! A crate of its own: it knows nothing of plans and predictions. What it does a million times is in `atlas-lines`.

#![forbid(unsafe_code)]

pub mod economics;
pub mod format;
pub mod founding;
pub mod intake;
pub mod joint;
pub(crate) mod json;
pub mod measurement;
pub mod reading;
pub mod recogniser;
pub mod training;

pub use atlas_lines::{series, stream as lines};
pub use intake::{Ingested, Tally, ingest};
pub use reading::{Config, Context, Facts, Origin, Reading, SETTINGS};
pub use series::Warmup;

use atlas_lines::text;
use std::path::{Path, PathBuf};

/// Why a file gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// It cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Read {
        /// The file as named.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// No format was recognised in it.
    #[error("{0}")]
    Unknown(String),
}

/// The files behind a path: itself, or all files below a directory in order of their names.
///
/// # Errors
///
/// What reading the directory says.
pub fn files_below(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut out = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            // Links are not followed: they may lead in circles.
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                out.push(entry.path());
            }
        }
    }
    out.sort();
    Ok(out)
}
