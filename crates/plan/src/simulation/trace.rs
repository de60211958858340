//! Parsers of published request traces: Azure's LLM inference traces (CSV), Mooncake's (JSON lines), and the detailed
//! result files of vLLM's and SGLang's serving benchmarks.

use std::path::Path;

use atlas_document::sources::read_bytes;
use atlas_sim::serving::TraceRequest;
use serde::Deserialize;
use thiserror::Error;

/// Error of parsing a trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// Malformed lines: descriptions of the first ones, and the total number.
    #[error("{}{}", first.join("; "), more(*count, first.len()))]
    Lines {
        /// Descriptions of the first malformed lines.
        first: Vec<String>,
        /// Total number of malformed lines.
        count: usize,
    },
    /// The whole file is malformed.
    #[error("{0}")]
    File(String),
}

/// Maximum number of malformed lines to describe: further ones are likely to have the same problem.
const MAX_LISTED_LINES: usize = 3;

fn more(count: usize, described: usize) -> String {
    if count > described { format!("; and {} more lines", count - described) } else { String::new() }
}

fn bad(line: usize, what: impl std::fmt::Display) -> String {
    format!("line {line}: {what}")
}

/// Collects the requests, or the descriptions of malformed lines.
fn collect_requests(
    lines: impl Iterator<Item = Result<TraceRequest, String>>,
) -> Result<Vec<TraceRequest>, TraceError> {
    let (mut requests, mut first, mut count) = (Vec::new(), Vec::new(), 0);
    for line in lines {
        match line {
            Ok(request) => requests.push(request),
            Err(what) => {
                count += 1;
                if first.len() < MAX_LISTED_LINES {
                    first.push(what);
                }
            }
        }
    }
    if count > 0 { Err(TraceError::Lines { first, count }) } else { Ok(sorted_from_zero(requests)) }
}

/// Sorts requests by time and shifts them so that the first arrives at zero.
fn sorted_from_zero(mut requests: Vec<TraceRequest>) -> Vec<TraceRequest> {
    requests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let begin = requests.first().map_or(0.0, |r| r.seconds);
    requests.iter_mut().for_each(|r| r.seconds -= begin);
    requests
}

/// Required columns of Azure's traces.
const COLUMNS: [&str; 3] = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];

/// Parses Azure's traces (AzurePublicDataset, `AzureLLMInferenceTrace_*.csv`):
/// `TIMESTAMP,ContextTokens,GeneratedTokens`, with columns in any order and others ignored. Timestamps may have a time
/// zone.
///
/// # Errors
///
/// If columns are missing or lines are malformed.
pub fn azure(text: &str) -> Result<Vec<TraceRequest>, TraceError> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| TraceError::File(bad(1, e)))?.clone();
    let column = |name: &str| header.iter().position(|h| h.trim_start_matches('\u{feff}').eq_ignore_ascii_case(name));
    let [Some(time), Some(isl), Some(osl)] = COLUMNS.map(column) else {
        let missing: Vec<&str> = COLUMNS.into_iter().filter(|name| column(name).is_none()).collect();
        let found: Vec<&str> = header.iter().filter(|name| !name.is_empty()).collect();
        let found = if found.is_empty() { "no columns".to_owned() } else { format!("columns {}", found.join(", ")) };
        return Err(TraceError::File(bad(
            1,
            format!("found {found}, expected one named {}", missing.join(" and one named ")),
        )));
    };
    collect_requests(reader.records().zip(2..).map(|(record, line)| {
        let record = record.map_err(|e| bad(line, e))?;
        let field = |at: usize| record.get(at).unwrap_or("");
        let count = |at: usize| {
            field(at)
                .parse::<u32>()
                .map_err(|_| bad(line, format!("found {:?}, expected a count of tokens", field(at))))
        };
        let seconds = timestamp(field(time), line)?;
        Ok(TraceRequest { seconds, isl: count(isl)?, osl: count(osl)?, prefix: vec![] })
    }))
}

/// Seconds of a date and time, or of a plain number.
fn timestamp(text: &str, line: usize) -> Result<f64, String> {
    if let Some(seconds) = text.parse::<f64>().ok().filter(|s| s.is_finite()) {
        return Ok(seconds);
    }
    let zoned = text.parse::<jiff::Timestamp>().ok();
    let at = zoned.or_else(|| {
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|z| z.timestamp())
    });
    let at = at.ok_or_else(|| bad(line, format!("found {text:?}, expected a time such as 2023-11-16 18:15:46.68")))?;
    Ok(at.as_second() as f64 + f64::from(at.subsec_nanosecond()) * 1e-9)
}

#[derive(Deserialize)]
struct MooncakeLine {
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

/// Parses Mooncake's traces (arXiv 2407.00079): one object per line, with times in milliseconds, and hashes of the
/// prompt's blocks of 512 tokens ([`Prefixes::Trace`](atlas_sim::serving::Prefixes::Trace)).
///
/// # Errors
///
/// If lines are malformed.
pub fn mooncake(text: &str) -> Result<Vec<TraceRequest>, TraceError> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    collect_requests(lines.map(|(text, line)| {
        let l: MooncakeLine = serde_json::from_str(text).map_err(|e| bad(line, within(&e)))?;
        let (isl, osl) = (l.input_length, l.output_length);
        Ok(TraceRequest { seconds: 1e-3 * l.timestamp, isl, osl, prefix: l.hash_ids })
    }))
}

/// Removes the line number, which is always 1, from the error of a single line.
fn within(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

#[derive(Deserialize)]
struct BenchmarkResult {
    input_lens: Vec<u32>,
    output_lens: Vec<u32>,
    #[serde(default)]
    start_times: Vec<f64>,
    #[serde(default)]
    request_rate: serde_json::Value,
}

/// Parses a detailed result of a serving benchmark (vLLM's `--save-detailed`, SGLang's `--output-details`; the last
/// object if there are several lines). Without `start_times`, requests are spread evenly at the `request_rate`, or
/// arrive at once if that is `inf`.
///
/// # Errors
///
/// If `input_lens` or `output_lens` are missing.
pub fn benchmark(text: &str) -> Result<Vec<TraceRequest>, TraceError> {
    let whole = serde_json::from_str(text);
    let last = || serde_json::from_str(text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(""));
    let r: BenchmarkResult = whole.or_else(|_| last()).map_err(|e| {
        TraceError::File(format!("{e}; benchmark results contain input_lens and output_lens only with detailed output"))
    })?;
    let rate = r.request_rate.as_f64().filter(|&rate| rate > 0.0);
    let start = |k: usize| r.start_times.get(k).copied().unwrap_or(rate.map_or(0.0, |rate| k as f64 / rate));
    let both = r.input_lens.iter().zip(&r.output_lens).enumerate();
    let request = |(k, (&isl, &osl))| TraceRequest { seconds: start(k), isl, osl, prefix: vec![] };
    Ok(sorted_from_zero(both.map(request).collect()))
}

/// Maximum size of a trace file, bytes.
const MAX_TRACE_BYTES: u64 = 1 << 30;

/// Reads a trace in any of the supported formats.
///
/// # Errors
///
/// If the file cannot be read or is not a trace.
pub fn read(file: &Path) -> Result<Vec<TraceRequest>, String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let bytes = read_bytes(file, MAX_TRACE_BYTES).map_err(|error| named(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| named(&error.utf8_error()))?;
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let read = if first.trim_start().starts_with('{') {
        // An object per line with its own timestamp is Mooncake's format; a complete result is a benchmark's.
        let timed = ["timestamp", "input_length"].iter().any(|key| first.contains(&format!("\"{key}\"")));
        if timed { mooncake(&text) } else { benchmark(&text) }
    } else {
        azure(&text)
    };
    let requests = read.map_err(|error| named(&error))?;
    if requests.is_empty() { Err(named(&"found no requests")) } else { Ok(requests) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn plain(requests: &[TraceRequest]) -> Vec<(f64, u32, u32)> {
        requests.iter().map(|r| ((r.seconds * 1e6).round() / 1e6, r.isl, r.osl)).collect()
    }

    #[test]
    fn azure_trace_parses_and_reports_malformed_lines() {
        let text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n\
                    2023-11-16 18:15:50.9951690,396,109\n";
        assert_eq!(plain(&azure(text).unwrap()), [(0.0, 374, 44), (4.314579, 396, 109)]);
        let zoned =
            "ContextTokens,TIMESTAMP,GeneratedTokens\n5,2024-05-10 00:00:01.5+00:00,7\n6,2024-05-10 00:00:01+00:00,8\n";
        assert_eq!(plain(&azure(zoned).unwrap()), [(0.0, 6, 8), (0.5, 5, 7)]);
        let missing = azure("a,TIMESTAMP\n1,2\n").unwrap_err().to_string();
        assert_eq!(
            missing,
            "line 1: found columns a, TIMESTAMP, expected one named ContextTokens and one named GeneratedTokens"
        );
        assert!(azure("").unwrap_err().to_string().starts_with("line 1: found no columns, expected"));
        let broken = azure("TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,1,2\n").unwrap_err();
        assert!(broken.to_string().starts_with("line 2: found \"noon\""), "{broken}");
        let lines = (0..5).map(|k| format!("{k},-{k}.5,1\n")).collect::<String>();
        let all = azure(&format!("TIMESTAMP,ContextTokens,GeneratedTokens\n{lines}9,1,1\n")).unwrap_err().to_string();
        assert!(all.contains("line 2: found \"-0.5\"") && all.contains("line 4:") && !all.contains("line 5:"), "{all}");
        assert!(all.ends_with("; and 2 more lines"), "{all}");
    }

    #[test]
    fn mooncake_trace_parses_with_prefix_hashes() {
        let text = r#"{"timestamp": 3000, "input_length": 1024, "output_length": 5, "hash_ids": [0, 7]}

{"timestamp": 1000, "input_length": 10, "output_length": 6}"#;
        let requests = mooncake(text).unwrap();
        assert_eq!(plain(&requests), [(0.0, 10, 6), (2.0, 1024, 5)]);
        assert_eq!(requests.last().unwrap().prefix, [0, 7]);
        let broken = mooncake("{}\n{\"timestamp\": 0, \"input_length\": 3, \"output_length\": 1}\n{bad")
            .unwrap_err()
            .to_string();
        assert!(broken.starts_with("line 1: missing field `timestamp` at column 2; line 3: "), "{broken}");
    }

    #[test]
    fn only_detailed_benchmark_results_are_parsed() {
        let timed = r#"{"input_lens": [3, 4], "output_lens": [5, 6], "start_times": [12.5, 12.0]}"#;
        assert_eq!(plain(&benchmark(timed).unwrap()), [(0.0, 4, 6), (0.5, 3, 5)]);
        let spread = r#"{"input_lens": [3, 4], "output_lens": [5, 6], "request_rate": 4.0, "other": null}"#;
        assert_eq!(plain(&benchmark(spread).unwrap()), [(0.0, 3, 5), (0.25, 4, 6)]);
        let at_once = "{}\n{\"input_lens\": [3], \"output_lens\": [5], \"request_rate\": \"inf\"}\n";
        assert_eq!(plain(&benchmark(at_once).unwrap()), [(0.0, 3, 5)]);
        assert!(benchmark(r#"{"completed": 5}"#).unwrap_err().to_string().contains("detailed"));
    }
}
