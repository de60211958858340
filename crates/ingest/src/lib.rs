//! Reads logs of training, serving, network and power tools, recognized by their content, as measurements.
//!
//! A file is read once, in constant memory: line by line ([`lines`]), or document by document if it is JSON. The
//! documents of one file are kept apart: each is read in its own segment. Every line is offered to those recognizers
//! ([`recognizer`]) one of whose trigger words it contains. A recognizer returns [`Reading`]s: named facts,
//! configuration with its origin, and training runs with their series. Derived metrics state how they were derived, the
//! [`Tally`] counts the lines read, ignored and skipped, and notes list values that are impossible or contradict each
//! other.

#![forbid(unsafe_code)]

pub mod benchmark_json;
pub(crate) mod block;
pub(crate) mod code;
pub mod config;
pub mod context;
pub mod economics;
pub mod facts;
pub mod follow;
pub mod format;
pub mod intake;
pub mod job_trace;
pub mod joint;
pub(crate) mod json;
pub mod lines;
pub(crate) mod markdown;
pub mod measurement;
pub mod named;
pub(crate) mod notebook;
pub mod observation;
pub(crate) mod plausibility;
pub(crate) mod prefix;
pub(crate) mod prometheus;
pub(crate) mod protobuf;
pub(crate) mod quantity;
pub mod reading;
pub mod recognizer;
pub(crate) mod reports;
pub mod run;
pub(crate) mod scalars;
pub(crate) mod segment;
pub mod series;
pub mod step_log;
pub mod step_trace;
pub(crate) mod tensorboard;
pub(crate) mod text;
pub(crate) mod timers;
pub mod training;

/// The former name of [`benchmark_json`].
#[doc(hidden)]
pub use benchmark_json as predecessor;
pub use follow::Follow;
pub use intake::{Ingested, Tally, ingest};
pub use named::NamedFile;
pub use observation::Observation;
pub use reading::{Config, Context, Facts, Origin, Reading, SETTINGS, SettingSpec};
pub use series::Warmup;

use std::path::{Path, PathBuf};

/// Reasons why a file has no readings.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Read {
        /// Name of the file, as given.
        file: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// No format was recognized in the file.
    #[error("{0}")]
    Unknown(String),
}

/// Returns `path` itself if it is a file, or all files below it, sorted by path, if it is a directory.
///
/// # Errors
///
/// If a directory cannot be read.
pub fn files_below(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut out = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            // Symbolic links are not followed: they may form cycles.
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
