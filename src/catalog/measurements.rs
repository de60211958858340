//! Published measurements of training and serving, as CSV: compressed in the binary, and untouched until asked for.
//!
//! Every row names its source. The files stand under `workload/measurements/`; their columns are those of the
//! collections they were copied from.

use std::io::{Error, Read as _};

use flate2::read::DeflateDecoder;

static TRAINING: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/training.csv.deflate"));
static INFERENCE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/inference.csv.deflate"));
static SERVING_LATENCY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/serving_latency.csv.deflate"));

/// Throughput of training runs: tokens per second and accelerator, step time or model FLOP/s.
///
/// # Errors
/// Where the embedded bytes do not decompress, which a test rules out.
pub fn training() -> Result<String, Error> {
    inflate(TRAINING)
}

/// Throughput of serving, and latencies where the source has them.
///
/// # Errors
/// As for [`training`].
pub fn inference() -> Result<String, Error> {
    inflate(INFERENCE)
}

/// Measured TTFT and TPOT in milliseconds, per configuration of an engine.
///
/// # Errors
/// As for [`training`].
pub fn serving_latency() -> Result<String, Error> {
    inflate(SERVING_LATENCY)
}

fn inflate(bytes: &[u8]) -> Result<String, Error> {
    let mut text = String::new();
    DeflateDecoder::new(bytes).read_to_string(&mut text)?;
    Ok(text)
}
