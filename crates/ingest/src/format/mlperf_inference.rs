//! MLPerf Inference: `mlperf_log_summary.txt` of the load generator (LoadGen).

use serde_json::Value;

use super::mllog::percentile_name;
use crate::lines::Line;
use crate::reading::{Context, Facts, Importance, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::Reports;
use crate::text::{has, number};

/// Recognizer of the summary.
#[derive(Debug, Default)]
pub struct LoadGen {
    reports: Reports,
    open: bool,
}

impl Recognizer for LoadGen {
    fn triggers(&self) -> &'static [&'static str] {
        &["MLPerf Results Summary", "Result is :", "percentile latency (ns)", "SUT name :"]
    }

    fn in_block(&self) -> bool {
        self.open
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if has(text, "MLPerf Results Summary") {
            self.reports.begin();
            self.open = true;
            return Outcome::Recognized;
        }
        let Some((label, value)) = text.split_once(':') else { return Outcome::NotRecognized };
        let (label, value) = (label.trim(), value.trim());
        self.open |= label == "SUT name" || label == "Result is" || label.ends_with("percentile latency (ns)");
        match label {
            "SUT name" => {
                self.reports.begin();
                self.reports.set("sut", value);
            }
            "Scenario" => self.reports.set("scenario", value),
            "Mode" => self.reports.set("mode", value),
            "Result is" => self.reports.set("valid", value == "VALID"),
            "samples_per_query" => self.some("samples_per_query", number(value).map(number_to_json)),
            "target_qps" => self.some("target_qps", number(value).map(Value::from)),
            _ => return self.figure(label, value),
        }
        Outcome::Recognized
    }

    fn finish(self: Box<Self>, _context: &Context) -> Vec<Reading> {
        let complete = |report: &Facts| report.get("scenario").is_some() || report.get("valid").is_some();
        let reports = self.reports.finish(complete);
        if reports.is_empty() {
            return Vec::new();
        }
        let (facts, notes) = reports.facts();
        vec![Reading {
            tool: "mlperf_inference",
            format: "mlperf-loadgen-summary",
            kind: "mlperf_inference",
            importance: Importance::Result,
            facts,
            notes,
            ..Reading::default()
        }]
    }
}

impl LoadGen {
    fn some(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.reports.set(name, value);
        }
    }

    fn figure(&mut self, label: &str, value: &str) -> Outcome {
        let rate = match label.to_lowercase().as_str() {
            "samples per second"
            | "completed samples per second"
            | "queries per second"
            | "qps w/ loadgen overhead" => "samples_per_s",
            "tokens per second" | "completed tokens per second" => "tokens_per_s",
            "scheduled samples per second" => "scheduled_samples_per_s",
            "tokens per second (inferred)" => "tokens_per_s_inferred",
            "tpot tokens per second" => "tpot_tokens_per_s",
            _ => "",
        };
        let value = number(value);
        if !rate.is_empty() {
            self.some(rate, value.map(Value::from));
            return Outcome::Recognized;
        }
        let Some(rest) = label.strip_suffix("(ns)") else { return Outcome::NotRecognized };
        let lower = rest.trim().to_lowercase();
        let (statistic, metric) = match lower.split_once(' ') {
            Some((statistic @ ("min" | "max" | "mean"), metric)) => (statistic.to_owned(), metric),
            Some((p, metric)) if number(p).is_some() && metric.starts_with("percentile ") => {
                let p = p.trim_end_matches("th");
                (percentile_name(p).replace("p50.00", "p50"), metric.trim_start_matches("percentile "))
            }
            _ => return Outcome::NotRecognized,
        };
        let block = match metric {
            "latency" => "latency_ns",
            "first token latency" => "ttft_ns",
            "time to output token" | "time per output token" => "tpot_ns",
            _ => return Outcome::NotRecognized,
        };
        let Some(value) = value else { return Outcome::Unusable("a summary row without a number") };
        self.reports.set_in(block, &statistic, value);
        Outcome::Recognized
    }
}
