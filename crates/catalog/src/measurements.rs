//! Published measurements of training and serving, as CSV. They are compressed in the binary and decompressed on use.
//!
//! Every row states its source. The files are in `workload/measurements/`; their columns are those of the original
//! collections.

use std::io::{Error, Read as _};

use flate2::read::DeflateDecoder;

static TRAINING: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/training.csv.deflate"));
static INFERENCE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/inference.csv.deflate"));
static SERVING_LATENCY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/serving_latency.csv.deflate"));

/// Throughput of training runs: tokens per second and accelerator, step time, or model FLOP/s.
///
/// # Errors
/// If the embedded bytes cannot be decompressed, which a test excludes.
pub fn training() -> Result<String, Error> {
    inflate(TRAINING)
}

/// Throughput of serving, with latencies if stated by the source.
///
/// # Errors
/// See [`training`].
pub fn inference() -> Result<String, Error> {
    inflate(INFERENCE)
}

/// Measured TTFT and TPOT in milliseconds, per configuration of an engine.
///
/// # Errors
/// See [`training`].
pub fn serving_latency() -> Result<String, Error> {
    inflate(SERVING_LATENCY)
}

/// Decompresses a table, and converts it from columns, in which the build stores it for better compression, to rows.
fn inflate(bytes: &[u8]) -> Result<String, Error> {
    let mut text = String::new();
    DeflateDecoder::new(bytes).read_to_string(&mut text)?;
    let mut columns: Vec<_> = text.split_terminator('\u{1e}').map(|column| column.split_terminator('\u{1f}')).collect();
    let mut rows = csv::Writer::from_writer(Vec::new());
    loop {
        let row: Vec<&str> = columns.iter_mut().filter_map(Iterator::next).collect();
        if row.is_empty() {
            break;
        }
        rows.write_record(row)?;
    }
    String::from_utf8(rows.into_inner().map_err(Error::other)?).map_err(Error::other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn built_in_entries_equal_their_files() {
        let cells = |text: &str| {
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            reader.records().map(|record| record.unwrap()).collect::<Vec<csv::StringRecord>>()
        };
        for (ships, name) in
            [(training(), "training"), (inference(), "inference"), (serving_latency(), "serving_latency")]
        {
            let path = format!("{}/../../workload/measurements/{name}.csv", env!("CARGO_MANIFEST_DIR"));
            assert_eq!(cells(&ships.unwrap()), cells(&std::fs::read_to_string(path).unwrap()), "{name}");
        }
    }
}
