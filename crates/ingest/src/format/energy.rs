//! Energy of time windows: Zeus (CSV and printed measurements) and CodeCarbon (CSV and log).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lines::Line;
use crate::reading::{Context, Facts, Importance, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{cells, has, number, number_after, owned_cells, plain_number, text_after, text_between};

/// Recognizer of Zeus: `start_time,window_name,elapsed_time,gpu0_energy,…`.
#[derive(Debug, Default)]
pub struct Zeus {
    columns: Vec<String>,
    windows: Vec<(String, f64, f64)>,
    printed: bool,
}

impl Recognizer for Zeus {
    fn triggers(&self) -> &'static [&'static str] {
        &["window_name", "gpu_energy={", "Measurement("]
    }

    fn in_table(&self) -> bool {
        !self.columns.is_empty()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if has(text, "window_name") && has(text, "energy") && text.contains(',') {
            self.columns = owned_cells(text);
            return Outcome::Recognized;
        }
        if let Some(energies) = text_between(text, "gpu_energy={", "}") {
            // `Measurement(time=24.0, gpu_energy={0: 6224.8, 1: 6100.1}, …)`
            let joules: f64 =
                energies.split(',').filter_map(|pair| pair.split_once(':')).filter_map(|(_, j)| number(j)).sum();
            let Some(seconds) = number_after(text, "time=") else {
                return Outcome::Unusable("a Zeus measurement without a time");
            };
            self.printed = true;
            let name = text_between(text, "window '", "'")
                .map_or_else(|| format!("window {}", self.windows.len()), str::to_owned);
            return self.push(name, seconds, joules);
        }
        if self.columns.is_empty() {
            return Outcome::NotRecognized;
        }
        let values = cells(text);
        if values.len() != self.columns.len() {
            return Outcome::NotRecognized;
        }
        let pairs = || self.columns.iter().zip(&values);
        let find = |name: &str| pairs().find(|(column, _)| *column == name).map(|(_, value)| value.as_ref());
        let seconds = find("elapsed_time").or_else(|| find("time")).and_then(plain_number);
        let gpus = pairs().filter(|(column, _)| column.starts_with("gpu") && column.ends_with("energy"));
        let joules: Vec<f64> = gpus.filter_map(|(_, value)| plain_number(value)).collect();
        match (find("window_name"), seconds) {
            (Some(name), Some(seconds)) if !joules.is_empty() => {
                let name = name.to_owned();
                self.push(name, seconds, joules.iter().sum())
            }
            _ => Outcome::Unusable("a Zeus window without time or energy"),
        }
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn finish(self: Box<Self>, _context: &Context) -> Vec<Reading> {
        if self.windows.is_empty() {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("n_records", self.windows.len());
        let results: Vec<Value> = self
            .windows
            .iter()
            .map(|(name, seconds, joules)| {
                let watts = (*seconds > 0.0).then(|| joules / seconds);
                json!({"window": name, "time_s": seconds, "energy_j": joules, "mean_power_w": watts})
            })
            .collect();
        facts.set("results", results);
        let least = self.windows.iter().min_by(|a, b| a.2.total_cmp(&b.2));
        facts.set_optional("min_energy_window", least.map(|(name, ..)| name.as_str()));
        facts.set("energy_j_sum", self.windows.iter().map(|(.., joules)| joules).sum::<f64>());
        vec![Reading {
            tool: "zeus",
            format: if self.printed { "zeus-measurement" } else { "zeus-window-csv" },
            kind: "energy_windows",
            importance: Importance::Samples,
            facts,
            ..Reading::default()
        }]
    }
}

impl Zeus {
    fn push(&mut self, name: String, seconds: f64, joules: f64) -> Outcome {
        if self.windows.len() < 1 << 16 {
            self.windows.push((name, seconds, joules));
        }
        Outcome::Recognized
    }
}

/// Recognizer of CodeCarbon, including `emissions.csv`, in which the records of a run are cumulative.
#[derive(Debug, Default)]
pub struct CodeCarbon {
    columns: Vec<String>,
    energy: Vec<Value>,
    duration: Vec<Value>,
    missing: u64,
    runs: BTreeMap<String, Value>,
    logged: BTreeMap<&'static str, f64>,
}

impl Recognizer for CodeCarbon {
    fn triggers(&self) -> &'static [&'static str] {
        &["energy_consumed", "codecarbon INFO"]
    }

    fn in_table(&self) -> bool {
        !self.columns.is_empty()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if has(text, "energy_consumed") && has(text, "emissions") && text.contains(',') {
            self.columns = owned_cells(text);
            return Outcome::Recognized;
        }
        if has(text, "codecarbon INFO") {
            return self.log_line(text);
        }
        if self.columns.is_empty() {
            return Outcome::NotRecognized;
        }
        let values = cells(text);
        if values.len() != self.columns.len() {
            return if values.len() > 8 {
                Outcome::Unusable("a CodeCarbon record whose number of columns differs from the header")
            } else {
                Outcome::NotRecognized
            };
        }
        let find = |name: &str| {
            let at = self.columns.iter().position(|column| column == name)?;
            values.get(at).map(Cow::as_ref)
        };
        let energy = find("energy_consumed").and_then(plain_number).map_or(Value::Null, Value::from);
        let duration = find("duration").and_then(plain_number).map_or(Value::Null, Value::from);
        if let Some(run) = find("run_id").filter(|run| !run.is_empty()) {
            let short: String = run.chars().take(8).collect();
            if !energy.is_null() && self.runs.len() < 4096 {
                self.runs.insert(short, energy.clone());
            }
        }
        self.missing += u64::from(energy.is_null());
        if self.energy.len() < 1 << 16 {
            self.energy.push(energy);
            self.duration.push(duration);
        }
        Outcome::Recognized
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn finish(self: Box<Self>, _context: &Context) -> Vec<Reading> {
        let mut facts = Facts::default();
        let reading = |format, facts| Reading {
            tool: "codecarbon",
            format,
            kind: "energy_windows",
            importance: Importance::Samples,
            facts,
            notes: vec!["records of a run are cumulative and are not summed".to_owned()],
            ..Reading::default()
        };
        if !self.energy.is_empty() {
            facts.set("n_records", self.energy.len());
            facts.set("missing_energy", self.missing);
            facts.set("energy_kwh", self.energy);
            facts.set("duration_s", self.duration);
            for (run, energy) in self.runs {
                facts.set(format!("last_energy_kwh_of_run_{run}"), energy);
            }
            return vec![reading("codecarbon-csv", facts)];
        }
        if self.logged.is_empty() {
            return Vec::new();
        }
        for (name, value) in self.logged {
            facts.set(name, value);
        }
        vec![reading("codecarbon-log", facts)]
    }
}

impl CodeCarbon {
    /// Parses `[codecarbon INFO @ 10:00:15] Energy consumed for all GPUs : 0.0023 kWh. Total GPU Power : 123.4 W`.
    fn log_line(&mut self, text: &str) -> Outcome {
        for (mark, energy, power) in [
            ("Energy consumed for all GPUs", "gpu_energy_kwh_last", Some(("Total GPU Power", "gpu_power_w_last"))),
            ("Energy consumed for all CPUs", "cpu_energy_kwh_last", Some(("Total CPU Power", "cpu_power_w_last"))),
            ("Energy consumed for RAM", "ram_energy_kwh_last", Some(("RAM Power", "ram_power_w_last"))),
        ] {
            let Some(rest) = text_after(text, mark) else { continue };
            if let Some(value) = number_after(rest, "") {
                self.logged.insert(energy, value);
            }
            if let Some((value, name)) = power.and_then(|(mark, name)| Some((number_after(rest, mark)?, name))) {
                self.logged.insert(name, value);
            }
            return Outcome::Recognized;
        }
        if let Some(total) =
            number(text.rsplit(']').next().unwrap_or_default()).filter(|_| has(text, "kWh of electricity"))
        {
            self.logged.insert("energy_kwh_last", total);
            return Outcome::Recognized;
        }
        Outcome::NotRecognized
    }
}
