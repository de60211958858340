//! Helpers of the integration tests: location and reading of the recorded logs.

#![allow(dead_code, unreachable_pub, clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

pub mod documents;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use atlas_ingest::{Context, Ingested};
use serde_json::Value;

/// Directory of recorded logs: `tests/data/logs` in this crate or in a parent directory.
pub fn folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here.ancestors().map(|folder| folder.join("tests/data/logs")).find(|folder| folder.is_dir());
    found.expect("tests/data/logs above the crate")
}

/// Returns the decompressed bytes of a recorded log.
pub fn sample(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(folder().join(format!("{name}.gz"))).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The names of all recorded logs that have expectations.
pub fn sample_names() -> Vec<String> {
    let entries: Vec<Value> = serde_json::from_slice(&sample("expectations.json")).unwrap();
    entries.iter().map(|entry| entry["file"].as_str().unwrap().to_owned()).collect()
}

/// Returns a default context for a file of this name.
pub fn context(name: &str) -> Context {
    Context { name: name.to_owned(), seed: 1, ..Context::default() }
}

/// Reads bytes that must be recognized.
pub fn read(name: &str, bytes: &[u8]) -> Ingested {
    atlas_ingest::ingest(bytes, &context(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// The facts of the first reading of a text.
pub fn facts(text: &str) -> Value {
    Value::from(read("some.log", text.as_bytes()).readings[0].facts.clone())
}
