//! `nvidia-smi dmon` and `dcgmi dmon`: columns under a head that comes again and again.

use crate::order::Gather;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::ingest::lines::Line;
use crate::ingest::reading::{Context, Facts, Reading, Weight, tidy};
use crate::ingest::recogniser::{Outcome, Recogniser};
use crate::ingest::series::Series;
use crate::ingest::text::{has, leading, unix_seconds};

use super::power::Devices;

/// Columns of one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Nothing,
    Smi,
    Dcgm,
}

/// Reads both.
#[derive(Debug, Default)]
pub struct Dmon {
    kind: Kind,
    columns: Vec<String>,
    series: BTreeMap<String, Series>,
    n: u64,
    devices: Devices,
    dcgm: bool,
}

impl Recogniser for Dmon {
    fn triggers(&self) -> &'static [&'static str] {
        &["# gpu ", " gpu  ", "#gpu,", "# gpu,", "#Entity", "# Entity", "# Idx"]
    }

    fn open(&self) -> bool {
        self.kind != Kind::Nothing
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        // `--format csv` puts commas between the columns.
        let spaced = line.text.contains(',').then(|| line.text.replace(',', " "));
        let text = spaced.as_deref().unwrap_or(line.text).trim();
        if text.starts_with('#') {
            let words: Vec<&str> = text.trim_start_matches('#').split_whitespace().collect();
            let first = words.first().copied().unwrap_or_default();
            if first == "Entity" && words.len() > 1 {
                self.begin(Kind::Dcgm, &words);
                return Outcome::Took;
            }
            if words.contains(&"gpu") && (words.contains(&"pwr") || words.contains(&"sm") || words.contains(&"fb")) {
                self.begin(Kind::Smi, &words);
                return Outcome::Took;
            }
            let units = self.kind != Kind::Nothing && (words.contains(&"Idx") || words.contains(&"YYYYMMDD"));
            return if units { Outcome::Took } else { Outcome::No };
        }
        match self.kind {
            Kind::Nothing => Outcome::No,
            Kind::Dcgm if text == "Id" || text == "ID" => Outcome::Took,
            Kind::Dcgm => self.dcgm_row(text),
            Kind::Smi => self.smi_row(text),
        }
    }

    fn finish(mut self: Box<Self>, _context: &Context) -> Vec<Reading> {
        if self.n == 0 {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("n_records", self.n);
        facts.set("num_gpus", self.devices.len());
        let listed = |series: &Series| -> Value { series.kept().iter().map(|value| tidy(*value)).collect() };
        let has_power = self.devices.has_power();
        if self.dcgm {
            for (name, series) in &self.series {
                facts.set(name.clone(), listed(series));
                facts.some(format!("mean_{name}"), series.mean());
            }
            self.devices.facts(&mut facts);
        } else {
            if let Some(power) = self.series.get("pwr") {
                facts.set("power_w", listed(power));
                facts.some("mean_power_w", power.mean());
            }
            self.devices.facts(&mut facts);
            for (name, ours) in [("sm", "sm_percent_mean"), ("mem", "mem_percent_mean")] {
                facts.some(ours, self.series.get(name).and_then(Series::mean));
            }
            facts.some("memory_used_mb_max", self.series.get("fb").and_then(Series::max).map(tidy));
        }
        let (tool, format) = if self.dcgm { ("dcgm", "dcgmi-dmon") } else { ("nvidia_smi", "nvidia-smi-dmon") };
        vec![Reading {
            tool,
            format,
            kind: if has_power && !self.dcgm { "power" } else { "gpu_samples" },
            weight: Weight::Samples,
            facts,
            power: std::mem::take(&mut self.devices.samples),
            devices: self.devices.names,
            ..Reading::default()
        }]
    }
}

impl Dmon {
    fn begin(&mut self, kind: Kind, words: &[&str]) {
        self.kind = kind;
        self.dcgm |= kind == Kind::Dcgm;
        self.columns = words.iter().map(|word| (*word).to_owned()).collect();
    }

    fn take(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.series.entry(name.to_owned()).or_default().push(value);
        }
    }

    /// `GPU 0     61      0.367`
    fn dcgm_row(&mut self, text: &str) -> Outcome {
        let Some(rest) = ["GPU ", "GPU-I ", "CI ", "CPU "].iter().find_map(|name| text.strip_prefix(name)) else {
            return Outcome::No;
        };
        let mut words = rest.split_whitespace();
        let Some(id) = words.next() else { return Outcome::No };
        let values: Vec<&str> = words.collect();
        if values.len() + 1 != self.columns.len() {
            return Outcome::Skipped("a sample with other columns than its head");
        }
        let device = self.devices.index(id);
        self.n += 1;
        for (name, value) in self.columns.clone().iter().skip(1).zip(values) {
            let value = figure(value);
            self.take(name, value);
            if let (Some(watts), "POWER") = (value, name.as_str()) {
                self.devices.push(device, None, watts);
            }
        }
        Outcome::Took
    }

    fn smi_row(&mut self, text: &str) -> Outcome {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.len() != self.columns.len() || words.len() < 2 {
            return Outcome::No;
        }
        let by_name: BTreeMap<&str, &str> = self.columns.iter().map(String::as_str).zip(words).gather();
        let Some(id) = by_name.get("gpu").filter(|id| id.bytes().all(|byte| byte.is_ascii_digit())) else {
            return Outcome::No;
        };
        // `-o DT` puts `20240131 12:34:56` in front.
        let at = match (by_name.get("Date"), by_name.get("Time")) {
            (Some(date), Some(time)) => unix_seconds(&format!("{date} {time}")),
            _ => None,
        };
        let device = self.devices.index(id);
        if let Some(watts) = by_name.get("pwr").and_then(|word| figure(word)) {
            self.devices.push(device, at, watts);
        }
        let values: Vec<(String, Option<f64>)> = by_name
            .iter()
            .filter(|(name, _)| !has("gpu Date Time", name))
            .map(|(name, word)| ((*name).to_owned(), figure(word)))
            .collect();
        self.n += 1;
        for (name, value) in values {
            self.take(&name, value);
        }
        Outcome::Took
    }
}

/// A word that is a number and nothing else; `-` and `N/A` are none.
fn figure(word: &str) -> Option<f64> {
    leading(word).filter(|(value, rest)| rest.is_empty() && value.is_finite()).map(|(value, _)| value)
}
