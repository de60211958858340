//! A measured row: its configuration and its measurements. Rows come from CSV, measurement YAML and logs, all of which
//! are flattened to names and values first. [`COLUMNS`](super::columns::COLUMNS) lists the known names.

use std::collections::BTreeMap;

use serde_json::Value;

use super::columns::{MetricColumn, column, normalized};
use crate::validate::columns;
use atlas_config::Mode;
use atlas_core::statistics::quantile;

/// A measured metric: value, spread, and number of values behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The mean; for logs the median, which is robust against a few slow steps.
    pub value: f64,
    /// Sample standard deviation.
    pub std: Option<f64>,
    /// Number of values behind it.
    pub n: Option<f64>,
    /// Bounds of its 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// 95th percentile of the values behind it, and their mean.
    pub p95_and_mean: Option<[f64; 2]>,
}

impl Measured {
    /// A value without a spread.
    #[must_use]
    pub fn without_spread(value: f64) -> Measured {
        Measured { value, std: None, n: None, interval: None, p95_and_mean: None }
    }

    /// Coefficient of variation.
    #[must_use]
    pub fn variation(&self) -> Option<f64> {
        self.std.map(|std| std / self.value.abs()).filter(|cv| cv.is_finite())
    }

    /// Returns `by / value`, which converts times to rates and vice versa.
    #[must_use]
    pub fn inverted(self, by: f64) -> Measured {
        let rate = by / self.value;
        Measured {
            value: rate,
            std: self.std.map(|std| std / self.value * rate),
            interval: self.interval.map(|[low, high]| [by / high, by / low]),
            p95_and_mean: None,
            ..self
        }
    }

    fn scaled(self, by: f64) -> Measured {
        Measured {
            value: self.value * by,
            std: self.std.map(|std| std * by),
            interval: self.interval.map(|[low, high]| [low * by, high * by]),
            p95_and_mean: self.p95_and_mean.map(|all| all.map(|value| value * by)),
            ..self
        }
    }
}

/// A measured row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observation {
    /// File, and location within it.
    pub source: String,
    /// Training or inference, if the row states it.
    pub mode: Option<Mode>,
    /// Settings by column name, as JSON numbers, strings or booleans.
    settings: BTreeMap<&'static str, Value>,
    /// Measured metrics.
    figures: BTreeMap<MetricColumn, Measured>,
    /// Cells of columns of measurement tables, as text.
    typed: BTreeMap<&'static str, String>,
    /// Message size in bytes and bus bandwidth in GB/s.
    pub collective: Vec<(f64, f64)>,
    /// Kind of log.
    pub kind: String,
    /// Whether warm-up steps were left out, if known.
    pub warmup: Option<bool>,
}

/// Smallest message of which the time is dominated by bandwidth rather than latency, in bytes: the guide begins at 1
/// MB.
pub const LARGE_MESSAGE: f64 = 1e6;

impl Observation {
    /// Creates a row from names and values. Also returns the unknown names.
    #[must_use]
    pub fn of<'a>(
        source: impl Into<String>,
        fields: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> (Observation, Vec<String>) {
        let mut row = Observation { source: source.into(), ..Observation::default() };
        let mut unknown = Vec::new();
        for (name, value) in fields {
            row.take(name, value, &mut unknown);
        }
        row.derive_missing();
        (row, unknown)
    }

    fn take(&mut self, name: &str, value: &Value, unknown: &mut Vec<String>) {
        if value.is_null() {
            return;
        }
        // Nested latencies of serving logs: e2el_ms: {median: …}, or `e2el_ms.median`.
        if let Some(group) = latency_group(name) {
            if let Some(map) = value.as_object() {
                map.iter().for_each(|(statistic, value)| self.latency(group, statistic, value));
            } else if let Some((_, statistic)) = name.split_once('.') {
                self.latency(group, statistic, value);
            } else if let Some(number) = number(value) {
                self.latency(group, "median", &number.into());
            }
            return;
        }
        let typed = typed(name);
        if let (Some(column), Some(text)) = (typed, scalar(value)) {
            self.typed.entry(column).or_insert(text);
        }
        let Some(column) = column(name) else {
            if typed.is_none() {
                unknown.push(name.to_owned());
            }
            return;
        };
        if let ("step_time_s", Some(dropped)) = (column.name, value.get("warmup_dropped").and_then(Value::as_u64)) {
            self.warmup = Some(dropped > 0);
        }
        if let Some(metric) = column.figure {
            if let Some(mut measured) = measured(value) {
                let name = name.to_lowercase();
                let share = matches!(metric, MetricColumn::Utilization | MetricColumn::FlopUtilization);
                if name.contains("percent") || (share && measured.value > 1.5) {
                    measured = measured.scaled(0.01);
                }
                self.figures.entry(metric).or_insert(measured);
            }
        } else {
            let value = match (number(value), value) {
                (Some(number), _) if !value.is_boolean() => Value::from(number),
                (_, Value::String(text)) if text.trim().is_empty() => return,
                (_, other) => other.clone(),
            };
            self.settings.entry(column.name).or_insert(value);
        }
    }

    fn latency(&mut self, group: &str, statistic: &str, value: &Value) {
        let column = match (group, statistic) {
            ("e2e", "median" | "p50") => MetricColumn::P50Ms,
            ("e2e", "p95") => MetricColumn::P95Ms,
            ("e2e", "p99") => MetricColumn::P99Ms,
            ("e2e", "mean") => MetricColumn::LatencyMs,
            ("ttft", "median" | "p50") => MetricColumn::TtftMs,
            ("tpot", "median" | "p50") => MetricColumn::TpotMs,
            _ => return,
        };
        if let Some(value) = number(value) {
            self.figures.entry(column).or_insert(Measured::without_spread(value));
        }
    }

    /// Derives missing values.
    fn derive_missing(&mut self) {
        if self.mode.is_none() {
            self.mode = self.word("mode").and_then(|word| mode(&word));
        }
        if let Some(ms) = self.figures.remove(&MetricColumn::StepTimeMs) {
            self.figures.entry(MetricColumn::StepTimeS).or_insert(ms.scaled(1e-3));
        }
        let repeats = self.figure(MetricColumn::Samples).map(|samples| samples.value);
        if let (Some(std), Some(main)) = (self.figures.remove(&MetricColumn::Std), self.main())
            && let Some(figure) = self.figures.get_mut(&main)
        {
            figure.std = figure.std.or(Some(std.value));
            figure.n = figure.n.or(repeats);
        }
        if let (Some(bytes), Some(bandwidth)) = (self.number("message_bytes"), self.figure(MetricColumn::BusbwGbps)) {
            self.collective.push((bytes, bandwidth.value));
        } else if let (true, Some(bandwidth)) = (self.collective.is_empty(), self.figure(MetricColumn::BusbwGbps)) {
            // A bandwidth without a size is one of a large message.
            self.collective.push((f64::INFINITY, bandwidth.value));
        }
        self.warmup = self.warmup.or(self.figure(MetricColumn::WarmupSteps).map(|steps| steps.value > 0.0));
    }

    /// The metric to which a standard deviation without a name belongs.
    fn main(&self) -> Option<MetricColumn> {
        const ORDER: [MetricColumn; 7] = [
            MetricColumn::TokensPerSec,
            MetricColumn::TokensPerSecPerGpu,
            MetricColumn::StepTimeS,
            MetricColumn::Utilization,
            MetricColumn::FlopUtilization,
            MetricColumn::PowerW,
            MetricColumn::LatencyMs,
        ];
        ORDER.into_iter().find(|name| self.figures.contains_key(name))
    }

    /// Returns a setting as a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.settings.get(name).and_then(Value::as_f64)
    }

    /// Returns a setting as text.
    #[must_use]
    pub fn word(&self, name: &str) -> Option<String> {
        match self.settings.get(name)? {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(on) => Some(on.to_string()),
            _ => None,
        }
    }

    /// Returns a setting as a boolean.
    #[must_use]
    pub fn switch(&self, name: &str) -> Option<bool> {
        match self.settings.get(name)? {
            Value::Bool(on) => Some(*on),
            Value::Number(number) => number.as_f64().map(|number| number != 0.0),
            Value::String(text) => match text.trim().to_lowercase().as_str() {
                "on" | "true" | "yes" | "1" => Some(true),
                "off" | "false" | "no" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// Adds a setting given by the user, which takes precedence over the file.
    pub fn set(&mut self, name: &'static str, value: Value) {
        if name == "mode" {
            self.mode = None;
        }
        if let (Some(column), Some(text)) = (typed(name), scalar(&value)) {
            self.typed.insert(column, text);
        }
        if column(name).is_some() {
            self.settings.insert(name, value);
        }
        self.derive_missing();
    }

    /// Cells that are columns of measurement tables, by column name.
    pub fn typed(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.typed.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// Returns a measured metric, if the row has it.
    #[must_use]
    pub fn figure(&self, metric: MetricColumn) -> Option<Measured> {
        self.figures.get(&metric).copied()
    }

    /// Whether the row has no measured metrics.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let beside = [MetricColumn::Samples, MetricColumn::Std, MetricColumn::WarmupSteps];
        self.figures.keys().all(|name| beside.contains(name)) && self.collective.is_empty()
    }

    /// Degree of parallelism `name`, 1 by default.
    #[must_use]
    pub fn ranks(&self, name: &str) -> f64 {
        self.number(name).filter(|ranks| *ranks >= 1.0).unwrap_or(1.0)
    }

    /// Number of accelerators of the run: as given, or otherwise the product of the degrees of parallelism if any is
    /// given.
    #[must_use]
    pub fn accelerators(&self) -> Option<f64> {
        let stated = self.number("num_gpus").filter(|n| *n >= 1.0);
        let names = ["tp", "pp", "cp", "dp"];
        let known = names.iter().any(|name| self.number(name).is_some());
        stated.or_else(|| known.then(|| names.iter().map(|name| self.ranks(name)).product()))
    }

    /// Throughput of the whole run, tokens per second.
    #[must_use]
    pub fn throughput(&self) -> Option<Measured> {
        let whole = self.figure(MetricColumn::TokensPerSec);
        let each = || Some(self.figure(MetricColumn::TokensPerSecPerGpu)?.scaled(self.accelerators()?));
        let counted = || {
            let tokens = self.number("global_batch")? * self.number("seq_len")?;
            Some(self.figure(MetricColumn::StepTimeS)?.inverted(tokens))
        };
        whole.or_else(each).or_else(counted).filter(|measured| measured.value.is_finite() && measured.value > 0.0)
    }

    /// Training or inference: as given, or otherwise derived from the measured metrics.
    #[must_use]
    pub fn mode(&self) -> Mode {
        let serves =
            [MetricColumn::P50Ms, MetricColumn::P95Ms, MetricColumn::P99Ms, MetricColumn::TtftMs, MetricColumn::TpotMs]
                .iter()
                .any(|name| self.figures.contains_key(name))
                || ["generate", "concurrency", "request_rate"].iter().any(|name| self.settings.contains_key(name));
        self.mode.unwrap_or(if serves { Mode::Inference } else { Mode::Training })
    }

    /// Settings that identify a configuration, except those named in `but`.
    #[must_use]
    pub fn configuration_key(&self, but: &[&str]) -> String {
        let settings = self.settings.iter().filter(|(name, _)| !but.contains(name));
        let settings = settings.map(|(name, value)| format!("{name}={value};"));
        // Of the cells of measurement tables, only those without a corresponding setting.
        let typed = self.typed.iter().filter(|(name, _)| column(name).is_none() && is_scenario(name));
        settings.chain(typed.map(|(name, text)| format!("{name}={text};"))).collect()
    }

    /// All settings, by name.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.settings.iter().map(|(name, value)| (*name, value))
    }

    /// Short name of the row: its file without directories, and the location within it.
    #[must_use]
    pub fn short(&self) -> &str {
        self.source.rsplit(['/', '\\']).next().unwrap_or(&self.source)
    }
}

/// Column of measurement tables with this name, if any.
pub(super) fn typed(name: &str) -> Option<&'static str> {
    columns::find(&normalized(name)).map(|column| column.name)
}

/// Whether this column of measurement tables is part of the scenario.
fn is_scenario(name: &str) -> bool {
    columns::find(name).is_some_and(|column| column.place.is_scenario())
}

/// Converts a number, string or boolean to the text of a cell.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(on) => Some(on.to_string()),
        _ => None,
    }
}

/// Kind of latency that a name denotes.
fn latency_group(name: &str) -> Option<&'static str> {
    let head = name.split('.').next().unwrap_or(name);
    match head {
        "e2el_ms" | "request_latency_ms" | "e2e_ms" => Some("e2e"),
        "ttft_ms" => Some("ttft"),
        "tpot_ms" => Some("tpot"),
        _ => None,
    }
}

/// Parses a mode.
pub(super) fn mode(word: &str) -> Option<Mode> {
    match word.trim().to_lowercase().as_str() {
        "training" | "train" | "pretrain" | "finetune" => Some(Mode::Training),
        "inference" | "infer" | "serving" | "serve" | "generation" => Some(Mode::Inference),
        _ => None,
    }
}

/// Returns a finite number, which may also be given as text.
pub(super) fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().trim_end_matches('%').parse().ok(),
        _ => None,
    };
    number.filter(|number| number.is_finite())
}

/// Parses a measured metric: a number, a list, or the statistics of a series as written by `atlas ingest`.
fn measured(value: &Value) -> Option<Measured> {
    if let Some(map) = value.as_object() {
        let at = |names: &[&str]| names.iter().find_map(|name| map.get(*name).and_then(number));
        let interval = ["median_interval", "mean_interval", "interval"].iter().find_map(|name| {
            let ends: Vec<f64> = map.get(*name)?.as_array()?.iter().filter_map(number).collect();
            <[f64; 2]>::try_from(ends).ok()
        });
        let mean = at(&["mean_no_warmup", "mean"]);
        return Some(Measured {
            value: at(&["median_no_warmup", "median", "mean_no_warmup", "mean", "value", "p50"])?,
            std: at(&["std_no_warmup", "std"]),
            n: at(&["n"]),
            interval,
            p95_and_mean: at(&["p95_no_warmup", "p95"]).zip(mean).map(|(p95, mean)| [p95, mean]),
        });
    }
    let list = value.as_array().map(|list| list.iter().filter_map(number).collect::<Vec<f64>>());
    if let Some(mut values) = list {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n.max(1) as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n.max(2) - 1) as f64;
        let p95 = quantile(&mut values, 0.95);
        let value = quantile(&mut values, 0.5);
        return (n > 0).then_some(Measured {
            value,
            std: Some(variance.sqrt()),
            n: Some(n as f64),
            interval: None,
            p95_and_mean: Some([p95, mean]),
        });
    }
    number(value).map(Measured::without_spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_of_parallelism_have_one_meaning_under_all_their_names() {
        for name in ["tp", "tensor_parallel", "tensor_parallel_size", "tp_size", "Tensor-Parallel-Size"] {
            let (row, unknown) = Observation::of("a.csv:2", [(name, &Value::from("2")), ("num_devices", &"8".into())]);
            let typed: Vec<(&str, &str)> = row.typed().collect();
            assert_eq!(typed, [("num_accelerators", "8"), ("tp", "2")], "{name}");
            assert_eq!((row.number("tp"), row.accelerators()), (Some(2.0), Some(8.0)), "{name}");
            assert!(unknown.is_empty(), "{name}");
        }
    }
}
