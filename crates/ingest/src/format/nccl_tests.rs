//! Tables of nccl-tests and rccl-tests of all versions: with or without the column of roots, with `error` or `#wrong`.

use serde_json::{Map, Value};

use crate::json::json_number;
use crate::lines::Line;
use crate::reading::{Config, Context, Facts, Importance, Origin, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{find, has, number, number_after, parse_leading_number, text_after};
use crate::training::MAX_LISTED;

/// A row: bytes, then time in µs, algorithm bandwidth and bus bandwidth in GB/s, out of place and in place.
#[derive(Debug, Clone, Copy)]
struct Row {
    bytes: f64,
    out_of_place: [f64; 3],
    in_place: Option<[f64; 3]>,
}

/// A table.
#[derive(Debug, Default)]
struct Test {
    op: Option<String>,
    rows: Vec<Row>,
    dtype: Option<String>,
    redop: Option<String>,
    root: Option<String>,
    average: Option<f64>,
    ranks: u64,
    gpus: Option<f64>,
    /// Device name of the ranks.
    device: Option<String>,
}

/// Recognizer of nccl-tests.
#[derive(Debug, Default)]
pub struct NcclTests {
    tests: Vec<Test>,
    /// Number of tables. If there are very many, only the first are kept in `tests`.
    tables: usize,
    current: Test,
    /// Number of words of a row before the first time.
    before_time: Option<usize>,
    /// Number of words of a row before the in-place time, in the second half of the row.
    in_place: Option<usize>,
    /// Collective named by a command line above the table.
    called: Option<String>,
}

impl Recognizer for NcclTests {
    fn triggers(&self) -> &'static [&'static str] {
        &["algbw", "_perf", "# Avg bus bandwidth", "nThread", "Pid "]
    }

    fn in_block(&self) -> bool {
        self.before_time.is_some()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if has(text, "algbw") && has(text, "busbw") && has(text, "time") {
            let words: Vec<&str> = text.split_ascii_whitespace().filter(|word| *word != "#").collect();
            let head = words.iter().position(|word| word.trim_start_matches('#') == "size");
            let time = words.iter().position(|word| *word == "time");
            if let (Some(head), Some(time)) = (head, time) {
                if !self.current.rows.is_empty() {
                    self.close();
                }
                self.before_time = time.checked_sub(head);
                let second = words.iter().rposition(|word| *word == "time").filter(|second| *second > time);
                self.in_place = second.and_then(|second| second.checked_sub(head));
                return Outcome::Recognized;
            }
        }
        if let Some(average) = number_after(text, "Avg bus bandwidth") {
            self.current.average = Some(average);
            self.close();
            return Outcome::Recognized;
        }
        if has(text, "nThread") && has(text, "minBytes") {
            self.close();
            let gpus = number_after(text, "nGpus").unwrap_or(1.0) * number_after(text, "nThread").unwrap_or(1.0);
            self.current.gpus = Some(gpus);
            return Outcome::Recognized;
        }
        if let Some(rank) = text_after(text, "Rank ").and_then(parse_leading_number)
            && text.contains('#')
            && has(rank.1, "Pid")
            && has(rank.1, "device")
        {
            self.close();
            self.current.ranks = self.current.ranks.max(rank.0.max(0.0) as u64 + 1);
            let device = text_after(text, "] ").map(str::trim).filter(|device| !device.is_empty());
            self.current.device = self.current.device.take().or(device.map(str::to_owned));
            return Outcome::Recognized;
        }
        if let Some(name) = called(text) {
            if has(text, "Collective test starting") {
                self.close();
                self.current.op = Some(name);
            } else {
                self.close();
                self.called = Some(name);
            }
            return Outcome::Settings;
        }
        match self.before_time {
            Some(before) if !text.starts_with('#') => self.row(text, before),
            _ => Outcome::NotRecognized,
        }
    }

    /// Parses the report of `--output_file`, in which rows are objects with `out_of_place` and `in_place`.
    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let Some(rows) = document.get("results").and_then(Value::as_array) else { return Outcome::NotRecognized };
        let figure = |side: &Value, names: &[&str]| names.iter().find_map(|name| json_number(side.get(*name)?));
        let triple = |row: &Value, side: &str| {
            let side = row.get(side)?;
            let time = figure(side, &["time", "time_us"])?;
            Some([time, figure(side, &["alg_bw", "algbw"])?, figure(side, &["bus_bw", "busbw"])?])
        };
        let mut took = false;
        for row in rows {
            let (Some(bytes), Some(out_of_place)) =
                (row.get("size").and_then(json_number), triple(row, "out_of_place"))
            else {
                continue;
            };
            let word = |name: &str| {
                let value = row.get(name)?;
                value.as_str().map(str::to_owned).or_else(|| json_number(value).map(|number| number.to_string()))
            };
            let current = &mut self.current;
            current.dtype = current.dtype.take().or(word("type"));
            current.redop = current.redop.take().or(word("redop"));
            current.root = current.root.take().or(word("root"));
            current.rows.push(Row { bytes, out_of_place, in_place: triple(row, "in_place") });
            took = true;
        }
        if !took {
            return Outcome::NotRecognized;
        }
        let average = document.get("average_bus_bandwidth").or_else(|| document.get("avg_bus_bw"));
        self.current.average =
            average.and_then(|average| json_number(average).or_else(|| figure(average, &["bandwidth", "value"])));
        let devices = document.get("devices").and_then(Value::as_array);
        if let Some(devices) = devices {
            self.current.ranks = devices.len() as u64;
            let name = devices.first().and_then(|device| device.get("device_name").or_else(|| device.get("name")));
            if let Some(name) = name.and_then(Value::as_str) {
                self.current.device = Some(name.to_owned());
            }
        }
        let command = document.get("args").or_else(|| document.get("name")).map(Value::to_string);
        self.current.op = command.as_deref().and_then(called);
        self.close();
        Outcome::Recognized
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        self.close();
        if self.tests.is_empty() {
            return Vec::new();
        }
        let mut facts = Facts::default();
        let mut notes = Vec::new();
        if self.tests.iter().any(|test| test.op.is_none()) {
            notes.push("a test does not name its collective: it is inferred from bus / algorithm bandwidth".to_owned());
        }
        let named: Vec<(String, Option<(f64, Origin)>)> = self
            .tests
            .iter()
            .map(|test| {
                let op = test.op.clone().or_else(|| test.op_from_bandwidths().map(str::to_owned));
                let op = op.unwrap_or_else(|| "unknown".to_owned());
                let ranks = test.ranks(&op);
                (op, ranks)
            })
            .collect();
        // Properties common to all tests. Those that differ are listed with each test.
        let op = named.first().map(|(op, _)| op.clone()).filter(|op| named.iter().all(|(other, _)| other == op));
        let ranks = named.first().and_then(|(_, ranks)| *ranks);
        let same = |(_, other): &(String, Option<(f64, Origin)>)| other.map(|(n, _)| n) == ranks.map(|(n, _)| n);
        let ranks = ranks.filter(|_| named.iter().all(same));
        let device = self.tests.first().and_then(|test| test.device.clone());
        let device =
            device.filter(|_| self.tests.windows(2).all(|pair| matches!(pair, [a, b] if a.device == b.device)));
        facts.set("op", op.as_deref().unwrap_or("several"));
        facts.set("tests", self.tables);
        facts.set_optional("ranks", ranks.map(|(ranks, _)| number_to_json(ranks)));
        let results: Vec<Value> = self
            .tests
            .iter()
            .zip(&named)
            .map(|(test, (op, ranks))| test.json(op, ranks.map(|(ranks, _)| ranks)))
            .collect();
        facts.set("results", results);
        let mut config = Config::default();
        if let Some((ranks, origin)) = ranks {
            config.number("num_gpus", Some(ranks), origin);
        }
        if let Some(device) = device {
            config.note("device", device, Origin::File);
        }
        config.merge(&context.settings);
        vec![Reading {
            tool: "nccl_tests",
            format: "nccl-tests",
            kind: "collective_bench",
            importance: Importance::Result,
            facts,
            config,
            notes,
            ..Reading::default()
        }]
    }
}

impl NcclTests {
    /// Ends a table. The properties stated in its header do not apply to later tables.
    fn close(&mut self) {
        if self.current.rows.is_empty() {
            return;
        }
        self.before_time = None;
        self.tables += 1;
        let mut table = std::mem::take(&mut self.current);
        table.op = table.op.or(self.called.take());
        if self.tests.len() < MAX_LISTED {
            self.tests.push(table);
        }
    }

    fn row(&mut self, text: &str, before: usize) -> Outcome {
        let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
        // `srun -l` prepends the rank.
        if words.first().is_some_and(|word| word.ends_with(':')) {
            words.remove(0);
        }
        let figure = |index: usize| {
            words.get(index).and_then(|word| parse_leading_number(word)).filter(|(_, rest)| rest.is_empty())
        };
        let Some((bytes, _)) = figure(0) else { return Outcome::NotRecognized };
        let triple = |from: usize| {
            let values = [figure(from)?.0, figure(from + 1)?.0, figure(from + 2)?.0];
            values.iter().all(|value| value.is_finite()).then_some(values)
        };
        let Some(out_of_place) = triple(before) else { return Outcome::NotRecognized };
        let in_place = self.in_place.and_then(triple);
        let word = |index: usize| words.get(index).filter(|_| index < before).map(|word| (*word).to_owned());
        let current = &mut self.current;
        current.dtype = current.dtype.take().or(word(2));
        current.redop = current.redop.take().or(word(3));
        current.root = current.root.take().or(word(4));
        if current.rows.len() < 1 << 16 {
            current.rows.push(Row { bytes, out_of_place, in_place });
        }
        Outcome::Recognized
    }
}

impl Test {
    fn json(&self, op: &str, ranks: Option<f64>) -> Value {
        let mut out = Map::new();
        let largest = self.rows.iter().copied().reduce(|a, b| if b.bytes >= a.bytes { b } else { a });
        let smallest = self.rows.iter().map(|row| row.bytes).reduce(f64::min);
        out.insert("rows".to_owned(), self.rows.len().into());
        out.insert("dtype".to_owned(), self.dtype.clone().into());
        if let (Some(smallest), Some(largest)) = (smallest, largest) {
            out.insert("size_bytes".to_owned(), vec![number_to_json(smallest), number_to_json(largest.bytes)].into());
            let [time, algbw, busbw] = largest.out_of_place;
            out.insert("time_us_at_max_size".to_owned(), time.into());
            out.insert("algbw_at_max_size".to_owned(), algbw.into());
            out.insert("busbw_out_of_place_at_max_size".to_owned(), busbw.into());
            out.insert("busbw_in_place_at_max_size".to_owned(), largest.in_place.map(|row| row[2]).into());
        }
        let most = self.rows.iter().map(|row| row.out_of_place[2]).reduce(f64::max);
        out.insert("max_busbw_out_of_place".to_owned(), most.into());
        out.insert("avg_busbw_reported".to_owned(), self.average.into());
        out.insert("op".to_owned(), op.into());
        if let Some(ranks) = ranks {
            out.insert("ranks".to_owned(), number_to_json(ranks));
        }
        let table = self.rows.iter().take(MAX_LISTED).map(|row| {
            let [time, algbw, busbw] = row.out_of_place;
            Value::from(vec![number_to_json(row.bytes), time.into(), algbw.into(), busbw.into()])
        });
        out.insert("bytes_us_algbw_busbw".to_owned(), table.collect());
        Value::Object(out)
    }

    /// Number of participating ranks: as listed, or derived from the bandwidths or the arguments.
    fn ranks(&self, op: &str) -> Option<(f64, Origin)> {
        let followed = self.ranks_from_bandwidths(op).map(|n| (n, Origin::Derived("bus / algorithm bandwidth")));
        if self.ranks > 0 {
            // The list may be truncated. The bandwidths then indicate more ranks.
            let longer = followed.filter(|(n, _)| *n > self.ranks as f64 && self.off(op).is_some_and(|f| f > 0.02));
            return longer.or(Some((self.ranks as f64, Origin::File)));
        }
        followed.or_else(|| Some((self.gpus?, Origin::Derived("threads x GPUs per thread of one process"))))
    }

    /// Ratio of bus bandwidth to algorithm bandwidth of the largest message.
    fn factor(&self) -> Option<f64> {
        let [_, algbw, busbw] = self.rows.last()?.out_of_place;
        (algbw > 0.0).then(|| busbw / algbw)
    }

    /// Infers the collective from the ratio of the bandwidths. According to nccl-tests' PERFORMANCE.md, it is 2(n-1)/n
    /// for all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, and 1 for broadcast, reduce and
    /// send-receive.
    fn op_from_bandwidths(&self) -> Option<&'static str> {
        let factor = self.factor()?;
        let reduces = self.redop.as_deref().is_some_and(|redop| !matches!(redop, "none" | "" | "N/A"));
        let rooted = self.root.as_deref().is_some_and(|root| number(root).is_some_and(|root| root >= 0.0));
        Some(match factor {
            factor if factor < 0.995 && reduces => "reduce_scatter",
            factor if factor < 0.995 => "all_gather",
            // Only all-reduce has a ratio above 1; with two ranks it is 1.
            _ if reduces && !rooted => "all_reduce",
            factor if factor > 1.005 => return None,
            _ if rooted && reduces => "reduce",
            _ if rooted => "broadcast",
            _ => "sendrecv",
        })
    }

    /// Difference between the ratio of the bandwidths and that expected for the number of listed ranks.
    fn off(&self, op: &str) -> Option<f64> {
        let n = self.ranks as f64;
        let expected = (n - 1.0) / n * if op == "all_reduce" { 2.0 } else { 1.0 };
        Some((self.factor()? - expected).abs())
    }

    /// Derives the number of ranks from the ratio of the bandwidths.
    fn ranks_from_bandwidths(&self, op: &str) -> Option<f64> {
        let factor = self.factor()?;
        let n = match op {
            "all_reduce" => 2.0 / (2.0 - factor),
            "all_gather" | "reduce_scatter" | "alltoall" => 1.0 / (1.0 - factor),
            _ => return None,
        };
        (n.is_finite() && (1.5..64.0).contains(&n)).then(|| n.round())
    }
}

/// Returns the collective of a program name: `all_reduce_perf`, `alltoall_perf_mpi`, ….
fn called(text: &str) -> Option<String> {
    let at = find(text, "_perf")?;
    let name = text.get(..at)?.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
    let known = [
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "alltoall",
        "alltoallv",
        "broadcast",
        "reduce",
        "sendrecv",
        "scatter",
        "gather",
        "hypercube",
    ];
    known.contains(&name).then(|| name.to_owned())
}
