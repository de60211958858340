//! MLPerf logs (`:::MLLOG {"key": …, "value": …}`): training results, with step times if they were tracked; power
//! readings of a node; and the detail log of the inference load generator (LoadGen).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::json::json_number;
use crate::lines::Line;
use crate::observation::Observation;
use crate::reading::{Config, Context, Facts, Importance, Origin, PowerSample, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text;
use crate::training::{Step, Training, series_ends, tokens_per_second};

/// Maximum number of power readings. Of a longer log, the first are kept.
const READINGS: usize = 1 << 20;

/// Recognizer of MLPerf logs.
#[derive(Debug, Default)]
pub struct MlLog {
    records: u64,
    named: BTreeMap<String, Value>,
    training: Training,
    accuracy: Series,
    validation: Series,
    throughput: Series,
    /// Step times and losses of blocks of steps rather than of single steps.
    block_seconds: Series,
    loss: Series,
    start: Option<f64>,
    stop: Option<(f64, Option<String>)>,
    power: Vec<(f64, f64)>,
    efficiency: Option<f64>,
    detail: BTreeMap<String, Value>,
}

impl Recognizer for MlLog {
    fn triggers(&self) -> &'static [&'static str] {
        &[":::MLL", ":::MLPv"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        if let Some(rest) = text::text_after(line.text, ":::MLPv") {
            return match parse_old_record(rest) {
                Some(record) => self.record(&record, line.number),
                None => Outcome::Unusable("an incomplete MLPerf record of version 0.5"),
            };
        }
        let Some(start) = text::text_after(line.text, ":::MLL") else { return Outcome::NotRecognized };
        let start = start.trim_start_matches(|c: char| c != '{');
        // The output of another rank may follow on the same line.
        let mut stream = serde_json::Deserializer::from_str(start).into_iter::<Value>();
        match stream.next() {
            Some(Ok(record)) => self.record(&record, line.number),
            _ => Outcome::Unusable("an MLPerf record with incomplete JSON"),
        }
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.training.append_observations(out);
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.records == 0 {
            return Vec::new();
        }
        if !self.power.is_empty() {
            return vec![self.power_reading()];
        }
        if !self.detail.is_empty() {
            return vec![self.inference_reading()];
        }
        vec![self.training_reading(context)]
    }
}

/// Converts `0.5.0 resnet 1541635401.98 (main.py:122) run_stop: {"success": true}` to a record of the current format.
fn parse_old_record(rest: &str) -> Option<Value> {
    let mut words = rest.splitn(3, ' ');
    let (_version, _benchmark, rest) = (words.next()?, words.next()?, words.next()?);
    let (seconds, rest) = text::parse_leading_number(rest)?;
    let record = rest.trim_start().strip_prefix('(')?.split_once(')')?.1.trim();
    let (key, value) = record.split_once(':').map_or((record, ""), |(key, value)| (key.trim(), value.trim()));
    if key.is_empty() || key.contains(' ') {
        return None;
    }
    let value: Value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    let status = value.get("success").and_then(Value::as_bool).map(|ok| if ok { "success" } else { "aborted" });
    // Accuracies were written as {"epoch": 61, "value": 0.75}.
    let plain = value.get("value").cloned();
    Some(json!({"key": key, "value": plain.unwrap_or(value), "time_ms": seconds * 1e3, "metadata": {"status": status}}))
}

impl MlLog {
    fn record(&mut self, record: &Value, line: u64) -> Outcome {
        let Some(key) = record.get("key").and_then(Value::as_str) else {
            return Outcome::Unusable("an MLPerf record without a key");
        };
        if self.ended(key, record) {
            return Outcome::NewDocument;
        }
        self.records += 1;
        let value = record.get("value").unwrap_or(&Value::Null);
        let milliseconds = record.get("time_ms").and_then(json_number);
        if record.get("namespace").and_then(Value::as_str) == Some("mlperf::logging") {
            if self.detail.len() < 1000 {
                self.detail.insert(key.to_owned(), value.clone());
            }
            return Outcome::Recognized;
        }
        let metadata = record.get("metadata");
        let about = |name: &str| metadata.and_then(|metadata| metadata.get(name));
        match key {
            "power_reading" => {
                if let (Some(at), Some(watts), true) = (milliseconds, json_number(value), self.power.len() < READINGS) {
                    self.power.push((at / 1e3, watts));
                }
            }
            "conversion_eff" => self.efficiency = json_number(value),
            "run_start" => self.start = milliseconds,
            "run_stop" => {
                let status = about("status").and_then(Value::as_str).map(str::to_owned);
                self.stop = milliseconds.map(|at| (at, status));
            }
            "eval_accuracy" | "eval_error" => {
                if let Some(accuracy) = json_number(value) {
                    self.accuracy.push(accuracy);
                }
            }
            "tracked_stats" => {
                let number = |name: &str| value.get(name).and_then(json_number);
                let step = about("step").or_else(|| about("samples_count")).and_then(json_number);
                let seconds = number("train_step_timing in s")
                    .or_else(|| number("train_step_time"))
                    .or_else(|| number("step_time"));
                let loss = number("reduced_train_loss").or_else(|| number("train_loss"));
                let block = number("throughput").is_some();
                match seconds {
                    Some(seconds) if block => self.block_seconds.push(seconds),
                    Some(seconds) => {
                        self.training.push(Step {
                            step: step.map(|step| step.max(0.0) as u64),
                            seconds: Some(seconds),
                            loss,
                            line,
                            ..Step::default()
                        });
                    }
                    None => {}
                }
                loss.into_iter().for_each(|loss| self.loss.push(loss));
                for (series, name) in
                    [(&mut self.validation, "validation_step_timing in s"), (&mut self.throughput, "throughput")]
                {
                    if let Some(value) = number(name) {
                        series.push(value);
                    }
                }
            }
            "train_loss" => json_number(value).into_iter().for_each(|loss| self.loss.push(loss)),
            "throughput" => json_number(value).into_iter().for_each(|rate| self.throughput.push(rate)),
            _ if record.get("event_type").and_then(Value::as_str) == Some("POINT_IN_TIME")
                && !value.is_null()
                && self.named.len() < 1000 =>
            {
                self.named.entry(key.to_owned()).or_insert_with(|| value.clone());
            }
            _ => {}
        }
        Outcome::Recognized
    }

    /// Whether a record belongs to another log: it starts a log after the current one has ended, or states another
    /// configuration.
    fn ended(&self, key: &str, record: &Value) -> bool {
        let begins = matches!(key, "cache_clear" | "init_start" | "run_start" | "submission_benchmark");
        if self.stop.is_some() && begins {
            return true;
        }
        let states = matches!(key, "submission_org" | "submission_platform" | "submission_benchmark")
            || matches!(key, "global_batch_size" | "max_sequence_length" | "gradient_accumulation_steps");
        states && self.named.get(key).is_some_and(|known| Some(known) != record.get("value"))
    }

    fn training_reading(self, context: &Context) -> Reading {
        let mut config = Config::default();
        for (name, ours) in [
            ("global_batch_size", "global_batch_size"),
            ("max_sequence_length", "seq_len"),
            ("gradient_accumulation_steps", "gradient_accumulation_steps"),
        ] {
            config.number(ours, self.named.get(name).and_then(json_number), Origin::File);
        }
        // The platform, such as `32xNVIDIA DGX H100`, counts nodes rather than devices, so it is ignored.
        config.merge(&context.settings);
        let mut facts = self.training.facts("steps", 1, context);
        let timed = self.training.all().n;
        facts.set("n_records", self.records);
        for name in [
            "submission_benchmark",
            "submission_org",
            "submission_division",
            "submission_status",
            "submission_platform",
            "global_batch_size",
            "max_sequence_length",
            "gradient_accumulation_steps",
            "seed",
            "train_samples",
            "eval_samples",
        ] {
            facts.set_optional(name, self.named.get(name).cloned());
        }
        let all = self.training.all();
        let rate = all.stats(&all.seconds, 1, context);
        let rate = rate.and_then(|stats| tokens_per_second(&config, None, stats.mean));
        facts.set_optional("tokens_per_s_no_warmup", rate);
        facts.set_optional("train_loss", spread(&self.loss));
        facts.set_optional("block_step_time_s", spread(&self.block_seconds));
        facts.set_optional("eval_accuracy", series_ends(&self.accuracy));
        facts.set_optional("validation_step_s", series_ends(&self.validation));
        facts.set_optional("throughput_samples_per_s", spread(&self.throughput));
        if let (Some(start), Some((stop, status))) = (self.start, &self.stop) {
            facts.set("time_to_train_s", (stop - start) / 1e3);
            facts.set_optional("status", status.clone());
        }
        let mut notes = Vec::new();
        if timed == 0 {
            notes.push("the log has no times of individual steps".to_owned());
        }
        let reading = Reading {
            tool: "mllog",
            format: "mlperf-mllog",
            kind: "mlperf_training",
            importance: Importance::Record,
            facts,
            config,
            notes,
            ..Reading::default()
        };
        self.training.reading(reading, 1, context)
    }

    fn power_reading(self) -> Reading {
        let mut facts = Facts::default();
        let n = self.power.len() as f64;
        let watts = || self.power.iter().map(|(_, watts)| *watts);
        let mean = watts().sum::<f64>() / n;
        // Of several readings at the same time, use the last.
        let mut distinct: BTreeMap<u64, f64> = BTreeMap::new();
        for (at, watts) in &self.power {
            distinct.insert((at * 1e3) as u64, *watts);
        }
        let joules: f64 = distinct
            .iter()
            .zip(distinct.iter().skip(1))
            .map(|((from, before), (to, now))| (to - from) as f64 / 1e3 * (before + now) / 2.0)
            .sum();
        facts.set("readings", self.power.len());
        facts.set("distinct_timestamps", distinct.len());
        if let (Some((from, _)), Some((to, _))) = (distinct.first_key_value(), distinct.last_key_value()) {
            facts.set("duration_s", (to - from) as f64 / 1e3);
        }
        facts.set("mean_reading_w", mean);
        facts.set_optional("max_w", watts().reduce(f64::max));
        facts.set_optional("min_w", watts().reduce(f64::min));
        facts.set("energy_wh_trapezoid_distinct", joules / 3600.0);
        if let Some(efficiency) = self.efficiency.filter(|efficiency| *efficiency > 0.0) {
            facts.set("conversion_eff", efficiency);
            facts.set("mean_ac_w", mean / efficiency);
        }
        let power = self.power.iter().map(|(at, watts)| PowerSample { device: 0, at: *at, watts: *watts }).collect();
        Reading {
            tool: "mllog",
            format: "mlperf-power",
            kind: "power",
            importance: Importance::Record,
            facts,
            power,
            devices: vec!["node".to_owned()],
            notes: vec![
                "readings are the power of one node without conversion losses; AC power is the reading divided by \
                 conversion_eff"
                    .to_owned(),
            ],
            ..Reading::default()
        }
    }

    fn inference_reading(self) -> Reading {
        let mut facts = Facts::default();
        let get = |name: &str| self.detail.get(name);
        facts.set_optional("scenario", get("effective_scenario").cloned());
        facts.set_optional("valid", get("result_validity").and_then(Value::as_str).map(|word| word == "VALID"));
        for (name, ours) in [
            ("result_samples_per_second", "samples_per_s"),
            ("result_completed_samples_per_sec", "samples_per_s"),
            ("result_scheduled_samples_per_sec", "scheduled_samples_per_s"),
            ("result_tokens_per_second", "tokens_per_s"),
            ("result_completed_tokens_per_second", "tokens_per_s"),
        ] {
            facts.set_optional(ours, get(name).and_then(json_number).map(number_to_json));
        }
        for (prefix, ours) in
            [("result", "latency_ns"), ("result_first_token", "ttft_ns"), ("result_time_per_output_token", "tpot_ns")]
        {
            let mut block = serde_json::Map::new();
            for (key, value) in &self.detail {
                let Some(rest) = key.strip_prefix(prefix) else { continue };
                let name = match rest {
                    "_mean_latency_ns" | "_mean_ns" => "mean".to_owned(),
                    "_min_latency_ns" | "_min_ns" => "min".to_owned(),
                    "_max_latency_ns" | "_max_ns" => "max".to_owned(),
                    _ => match rest.strip_prefix('_').and_then(|rest| rest.split_once("_percentile")) {
                        Some((p, _)) if text::number(p).is_some() => percentile_name(p),
                        _ => continue,
                    },
                };
                block.insert(name, value.clone());
            }
            if !block.is_empty() {
                facts.set(ours, Value::Object(block));
            }
        }
        facts.set("records", json!(self.records));
        Reading {
            tool: "mlperf_inference",
            format: "mlperf-loadgen-detail",
            kind: "mlperf_inference",
            importance: Importance::Record,
            facts,
            ..Reading::default()
        }
    }
}

/// Summarizes a series by its first, last and extreme values, mean and median.
fn spread(series: &Series) -> Option<Value> {
    let (first, last) = (series.first()?, series.last()?);
    Some(json!({"n": series.len(), "first": first, "last": last, "mean": series.mean(), "median": series.median(),
        "min": series.min(), "max": series.max()}))
}

/// Returns the name of a percentile: `p99` for `99.00`, `p99.9` for `99.90`.
pub(super) fn percentile_name(digits: &str) -> String {
    let digits = digits.trim();
    let short = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    format!("p{short}")
}
