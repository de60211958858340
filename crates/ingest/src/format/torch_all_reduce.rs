//! `all_reduce_bench.py` of the ML engineering book: bandwidths of `torch.distributed.all_reduce`, as a table of
//! payloads or, in older versions, for a single payload.

use serde_json::{Map, Value};

use crate::lines::Line;
use crate::reading::{Config, Context, Facts, Importance, Origin, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::CommonSettings;
use crate::text::{parse_leading_number, text_after, text_between};
use crate::training::MAX_LISTED;

/// One run of the benchmark.
#[derive(Debug, Default)]
struct Test {
    ranks: Option<f64>,
    /// Bytes, algorithm bandwidth and bus bandwidth in GB/s.
    rows: Vec<[f64; 3]>,
    /// Bytes and algorithm bandwidth of the older output, until the bus bandwidth follows.
    payload: Option<f64>,
    algbw: Option<f64>,
}

/// Recognizer of both outputs.
#[derive(Debug, Default)]
pub struct AllReduceBench {
    tests: Vec<Test>,
    settings: CommonSettings,
    /// Indices of the columns for payload, bus bandwidth and algorithm bandwidth in the open table.
    columns: Option<[usize; 3]>,
}

impl Recognizer for AllReduceBench {
    fn triggers(&self) -> &'static [&'static str] {
        &["The average bandwidth of all_reduce", "busbw", "algbw", "_CudaDeviceProperties("]
    }

    fn in_block(&self) -> bool {
        self.columns.is_some()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if let Some(name) = text_between(text, "_CudaDeviceProperties(name='", "'") {
            self.settings.add("device", name);
            return Outcome::Settings;
        }
        if let Some(rest) = text_after(text, "The average bandwidth of all_reduce") {
            // `over 8 ranks (5 warmups / 20 trials):`, or `with a 4.0GB payload (5 trials, 8 ranks):`
            let ranks = rest.split(['(', ',', ' ']).zip(rest.split(['(', ',', ' ']).skip(1));
            let ranks =
                ranks.filter(|(_, word)| word.trim_matches([')', ':']) == "ranks").find_map(|(n, _)| n.parse().ok());
            let payload = text_after(rest, "with a").and_then(bytes);
            self.columns = None;
            self.tests.push(Test { ranks, payload, ..Test::default() });
            return Outcome::Recognized;
        }
        let Some(test) = self.tests.last_mut() else { return Outcome::NotRecognized };
        if text.starts_with('|') {
            let cells: Vec<&str> = text.trim_matches('|').split('|').map(str::trim).collect();
            let at = |name: &str| cells.iter().position(|cell| *cell == name);
            if let (Some(payload), Some(busbw), Some(algbw)) = (at("payload"), at("busbw"), at("algbw")) {
                self.columns = Some([payload, busbw, algbw]);
                return Outcome::Recognized;
            }
            let Some(columns) = self.columns else { return Outcome::NotRecognized };
            if cells.iter().all(|cell| cell.bytes().all(|byte| matches!(byte, b'-' | b':' | b' '))) {
                return Outcome::Recognized;
            }
            let [payload, busbw, algbw] = columns.map(|column| cells.get(column).copied().unwrap_or_default());
            let (Some(payload), Some(busbw), Some(algbw)) = (bytes(payload), bandwidth(busbw), bandwidth(algbw)) else {
                return Outcome::Unusable("a row of all_reduce_bench without a payload or bandwidths");
            };
            if test.rows.len() < MAX_LISTED {
                test.rows.push([payload, algbw, busbw]);
            }
            return Outcome::Recognized;
        }
        self.columns = None;
        let Some(payload) = test.payload else { return Outcome::NotRecognized };
        if let Some(value) = text.strip_prefix("algbw:").and_then(bandwidth) {
            test.algbw = Some(value);
            return Outcome::Recognized;
        }
        if let (Some(busbw), Some(algbw)) = (text.strip_prefix("busbw:").and_then(bandwidth), test.algbw) {
            test.rows.push([payload, algbw, busbw]);
            test.payload = None;
            return Outcome::Recognized;
        }
        Outcome::NotRecognized
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let tests: Vec<&Test> = self.tests.iter().filter(|test| !test.rows.is_empty()).collect();
        let Some(first) = tests.first() else { return Vec::new() };
        let ranks = first.ranks.filter(|_| tests.iter().all(|test| test.ranks == first.ranks));
        let mut facts = Facts::default();
        facts.set("op", "all_reduce");
        facts.set("tests", tests.len());
        facts.set_optional("ranks", ranks.map(number_to_json));
        facts.set("results", tests.iter().map(|test| test.json()).collect::<Vec<Value>>());
        let mut config: Config = self.settings.config(context);
        config.number("num_gpus", ranks, Origin::File);
        vec![Reading {
            tool: "torch_all_reduce_bench",
            format: "torch-all-reduce-bench",
            kind: "collective_bench",
            importance: Importance::Result,
            facts,
            config,
            ..Reading::default()
        }]
    }
}

impl Test {
    fn json(&self) -> Value {
        let mut out = Map::new();
        out.insert("op".to_owned(), "all_reduce".into());
        out.insert("rows".to_owned(), self.rows.len().into());
        if let Some(ranks) = self.ranks {
            out.insert("ranks".to_owned(), number_to_json(ranks));
        }
        let largest = self.rows.iter().copied().reduce(|a, b| if b[0] >= a[0] { b } else { a });
        let smallest = self.rows.iter().map(|row| row[0]).reduce(f64::min);
        if let (Some([bytes, algbw, busbw]), Some(smallest)) = (largest, smallest) {
            out.insert("size_bytes".to_owned(), vec![number_to_json(smallest), number_to_json(bytes)].into());
            out.insert("algbw_at_max_size".to_owned(), algbw.into());
            out.insert("busbw_out_of_place_at_max_size".to_owned(), busbw.into());
        }
        out.insert("max_busbw_out_of_place".to_owned(), self.rows.iter().map(|row| row[2]).reduce(f64::max).into());
        let table = self.rows.iter().map(|[bytes, algbw, busbw]| {
            let microseconds = if *algbw > 0.0 { bytes / algbw / 1e3 } else { 0.0 };
            Value::from(vec![number_to_json(*bytes), microseconds.into(), (*algbw).into(), (*busbw).into()])
        });
        out.insert("bytes_us_algbw_busbw".to_owned(), table.collect());
        Value::Object(out)
    }
}

/// Parses a payload in bytes. Units are powers of 1024.
fn bytes(text: &str) -> Option<f64> {
    let (value, rest) = parse_leading_number(text)?;
    let factor = match rest.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next()? {
        "B" | "bytes" => 1.0,
        "KB" | "KiB" => 1024.0,
        "MB" | "MiB" => 1_048_576.0,
        "GB" | "GiB" => 1_073_741_824.0,
        _ => return None,
    };
    Some(value * factor).filter(|bytes| *bytes > 0.0)
}

/// Parses a bandwidth in GB/s. `Gbps` are gigabits.
fn bandwidth(text: &str) -> Option<f64> {
    let (value, rest) = parse_leading_number(text)?;
    let factor = match rest.trim_start().split(|c: char| c.is_whitespace() || c == '(').next()? {
        "GBps" | "GB/s" => 1.0,
        "MBps" | "MB/s" => 1e-3,
        "TBps" | "TB/s" => 1e3,
        "Gbps" | "Gb/s" => 0.125,
        _ => return None,
    };
    Some(value * factor).filter(|rate| rate.is_finite())
}
