//! AMD's tools: `rocm-smi` (concise table, one line per metric, CSV, JSON) and `amd-smi monitor` (table and CSV).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::json::json_number;
use crate::lines::Line;
use crate::observation::Observation;
use crate::quantity::{Measure, quantity};
use crate::reading::{Config, Context, Facts, Importance, Origin, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text::{cells, has, number, owned_cells, parse_leading_number, text_after, words};

use super::power::Devices;

/// A metric of all devices, by device.
type ByDevice = BTreeMap<u64, Series>;

fn push(metric: &mut ByDevice, device: u64, value: Option<f64>) {
    if let Some(value) = value.filter(|_| metric.len() < 4096) {
        metric.entry(device).or_default().push(value);
    }
}

/// Returns the mean of each device as a list.
fn listed(metric: &ByDevice) -> Option<Value> {
    let values = || metric.values().filter_map(|series| series.mean().map(number_to_json));
    (!metric.is_empty()).then(|| values().collect())
}

/// Recognizer of `rocm-smi`.
#[derive(Debug, Default)]
pub struct RocmSmi {
    concise: bool,
    /// Number of columns of the concise table that are percentages.
    shares: usize,
    format: &'static str,
    columns: Vec<String>,
    power: ByDevice,
    temperature: ByDevice,
    used_percent: ByDevice,
    used_bytes: ByDevice,
    busy: ByDevice,
    cap: Option<f64>,
    total_bytes: Option<f64>,
    seen: std::collections::BTreeSet<u64>,
}

impl Recognizer for RocmSmi {
    fn triggers(&self) -> &'static [&'static str] {
        &["Concise Info", "PwrCap", "GPU[", "Package Power (W)", "ROCm System Management", "End of ROCm SMI"]
    }

    fn in_table(&self) -> bool {
        self.concise || !self.columns.is_empty()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if has(text, "ROCm System Management") || has(text, "Concise Info") {
            return Outcome::Recognized;
        }
        if has(text, "PwrCap") && has(text, "GPU%") {
            (self.concise, self.format) = (true, "rocm-smi-concise");
            let shares = text.split_ascii_whitespace().filter(|name| *name == "Fan" || name.ends_with('%'));
            self.shares = shares.count();
            return Outcome::Recognized;
        }
        if has(text, "End of ROCm SMI") {
            self.concise = false;
            return Outcome::Recognized;
        }
        if let Some((index, metric)) = text.strip_prefix("GPU[").and_then(parse_leading_number) {
            return self.metric_line(index as u64, metric);
        }
        if text.starts_with("device,") {
            self.columns = owned_cells(text);
            self.format = "rocm-smi-csv";
            return Outcome::Recognized;
        }
        if let Some(card) = text.strip_prefix("card").filter(|_| !self.columns.is_empty()) {
            let Some((index, _)) = parse_leading_number(card) else { return Outcome::NotRecognized };
            let columns = std::mem::take(&mut self.columns);
            for (name, cell) in columns.iter().zip(cells(text)).skip(1) {
                self.named(index as u64, name, number(&cell));
            }
            self.columns = columns;
            return Outcome::Recognized;
        }
        if self.concise { self.concise_row(text, line.whole) } else { Outcome::NotRecognized }
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let Some(map) = document.as_object() else { return Outcome::NotRecognized };
        let mut took = false;
        for (card, metrics) in map {
            let index = card.strip_prefix("card").and_then(number);
            let (Some(index), Some(metrics)) = (index, metrics.as_object()) else { continue };
            for (name, value) in metrics {
                took |= self.named(index as u64, name, json_number(value));
            }
        }
        if took {
            self.format = "rocm-smi-json";
        }
        if took { Outcome::Recognized } else { Outcome::NotRecognized }
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.power.is_empty() && self.used_bytes.is_empty() && self.busy.is_empty() {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("num_gpus", self.seen.len());
        facts.set_optional("power_w", listed(&self.power));
        let total: f64 = self.power.values().filter_map(Series::mean).sum();
        facts.set_optional("total_power_w", (!self.power.is_empty()).then(|| number_to_json(total)));
        facts.set_optional("temp_c", listed(&self.temperature));
        facts.set_optional("power_cap_w", self.cap.map(number_to_json));
        facts.set_optional("vram_percent", listed(&self.used_percent));
        facts.set_optional("vram_used_bytes", listed(&self.used_bytes));
        facts.set_optional("vram_total_bytes", self.total_bytes.map(number_to_json));
        facts.set_optional("gpu_percent", listed(&self.busy));
        let snapshots = self.power.values().map(Series::len).max().unwrap_or(0);
        let mut notes = Vec::new();
        if snapshots > 1 {
            facts.set("snapshots", snapshots);
            notes.push(format!("values are means over {snapshots} snapshots"));
        }
        let mut config = Config::default();
        config.number("num_gpus", Some(self.seen.len() as f64), Origin::File);
        config.number("device_memory_gb", self.total_bytes.map(|bytes| bytes / 1e9), Origin::File);
        config.merge(&context.settings);
        vec![Reading {
            tool: "rocm_smi",
            format: self.format,
            kind: if self.power.is_empty() || snapshots > 1 { "gpu_samples" } else { "gpu_state" },
            importance: Importance::State,
            facts,
            config,
            notes,
            ..Reading::default()
        }]
    }
}

impl RocmSmi {
    /// Parses `0  2  0x74a1, 60024  46.0°C  130.0W  NPS1, SPX, 0  132Mhz  900Mhz  0%  auto  750.0W  71%  0%` by the
    /// units of the values.
    fn concise_row(&mut self, text: &str, whole: bool) -> Outcome {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let index = words.first().and_then(|word| word.parse::<u64>().ok());
        let with = |units: &[&str]| -> Vec<Option<f64>> {
            let of_unit = |word: &&&str| {
                units.iter().any(|unit| parse_leading_number(word).is_some_and(|(_, rest)| rest == *unit))
            };
            words.iter().filter(of_unit).map(|word| number(word)).collect()
        };
        let (watts, degrees, percents) =
            (with(&["W"]), with(&["°C", "C", "c", "\u{fffd}C", "\u{fffd}\u{fffd}C"]), with(&["%"]));
        let (Some(index), true) = (index, !watts.is_empty() || percents.len() >= 2) else {
            return Outcome::NotRecognized;
        };
        if !whole && percents.len() < self.shares {
            return Outcome::Unusable("a truncated row of rocm-smi");
        }
        self.seen.insert(index);
        push(&mut self.power, index, watts.first().copied().flatten());
        push(&mut self.temperature, index, degrees.first().copied().flatten());
        if watts.len() > 1 {
            self.cap = watts.last().copied().flatten().or(self.cap);
        }
        // VRAM% and GPU% are the last columns.
        if let [.., vram, gpu] = percents.as_slice() {
            push(&mut self.used_percent, index, *vram);
            push(&mut self.busy, index, *gpu);
        }
        Outcome::Recognized
    }

    /// Parses `GPU[0] : Current Socket Graphics Package Power (W): 130.0`.
    fn metric_line(&mut self, index: u64, rest: &str) -> Outcome {
        let Some((name, value)) = rest.trim_start_matches([']', ' ', '\t', ':']).rsplit_once(':') else {
            return Outcome::NotRecognized;
        };
        if self.format.is_empty() {
            self.format = "rocm-smi-lines";
        }
        if self.named(index, name, number(value)) { Outcome::Recognized } else { Outcome::NotRecognized }
    }

    fn named(&mut self, index: u64, name: &str, value: Option<f64>) -> bool {
        let name = name.trim();
        let metric = if has(name, "Package Power (W)") && !has(name, "Max") {
            &mut self.power
        } else if has(name, "Temperature (Sensor junction)") || has(name, "Temperature (Sensor edge)") {
            &mut self.temperature
        } else if name == "GPU use (%)" {
            &mut self.busy
        } else if has(name, "Memory Allocated (VRAM%)")
            || has(name, "GPU Memory Allocated")
            || name == "GPU memory use (%)"
        {
            &mut self.used_percent
        } else if has(name, "VRAM Total Used Memory (B)") {
            &mut self.used_bytes
        } else if has(name, "VRAM Total Memory (B)") {
            self.total_bytes = value.or(self.total_bytes);
            return value.is_some();
        } else if has(name, "Max Graphics Package Power (W)") {
            self.cap = value.or(self.cap);
            return value.is_some();
        } else {
            return false;
        };
        push(metric, index, value);
        self.seen.insert(index);
        value.is_some()
    }
}

/// Recognizer of `amd-smi`.
#[derive(Debug, Default)]
pub struct AmdSmi {
    /// Contents of the columns.
    columns: Vec<&'static str>,
    /// Values of the current row.
    figures: Vec<(&'static str, f64)>,
    csv: bool,
    n: u64,
    metrics: BTreeMap<&'static str, ByDevice>,
    gpus: std::collections::BTreeSet<u64>,
    devices: Devices,
    current: Option<u64>,
    document: bool,
}

impl Recognizer for AmdSmi {
    fn triggers(&self) -> &'static [&'static str] {
        &["GPU  ", "gpu,", "SOCKET_POWER:", "GPU: "]
    }

    fn in_table(&self) -> bool {
        !self.columns.is_empty()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        // `amd-smi metric`: `GPU: 0` … `SOCKET_POWER: 182 W`
        if let Some(index) = text.strip_prefix("GPU: ").and_then(number) {
            self.current = Some(index as u64);
            return Outcome::Settings;
        }
        let watts = text_after(text, "SOCKET_POWER:").and_then(|text| quantity(text, Measure::Power, 1.0));
        if let (Some(watts), Some(gpu)) = (watts, self.current) {
            self.gpus.insert(gpu);
            self.n += 1;
            self.power(gpu, None, watts);
            return Outcome::Recognized;
        }
        // Rows are more frequent than headers, so try them first.
        if !self.columns.is_empty() {
            let outcome = if self.csv { self.row(cells(text).iter().map(Cow::as_ref)) } else { self.row(words(text)) };
            if outcome == Outcome::Recognized {
                return outcome;
            }
        }
        let words = || text.split_ascii_whitespace();
        let is_head = words().any(|word| word == "GPU") && words().any(|word| column(word) == "power");
        if is_head && !text.contains([',', '|', '[', ':']) {
            self.columns = words().map(column).collect();
            self.csv = false;
            return Outcome::Recognized;
        }
        let lower = text.to_ascii_lowercase();
        if text.contains(',') && has(&lower, "gpu") && has(&lower, "power_usage") | has(&lower, "socket_power") {
            self.columns = cells(text).iter().map(|name| column(name)).collect();
            self.csv = true;
            return Outcome::Recognized;
        }
        Outcome::NotRecognized
    }

    /// Parses the output of `amd-smi metric --json`: a list of devices, at the top or under `gpu_data`.
    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let list = document.as_array().or_else(|| document.get("gpu_data").and_then(Value::as_array));
        let mut outcome = Outcome::NotRecognized;
        for device in list.into_iter().flatten() {
            let Some(gpu) = device.get("gpu").and_then(json_number) else { continue };
            // Values are numbers, or of the form {"value": 643, "unit": "W"}.
            let figure = |group: &str, names: &[&str]| {
                let group = device.get(group)?;
                let value = names.iter().find_map(|name| group.get(*name))?;
                json_number(value).or_else(|| {
                    let unit = value.get("unit").and_then(Value::as_str).unwrap_or_default();
                    Some(json_number(value.get("value")?)? * megabytes(unit))
                })
            };
            let found = [
                ("power", figure("power", &["socket_power", "average_socket_power", "current_socket_power"])),
                ("gfx", figure("usage", &["gfx_activity", "gfx_usage"])),
                ("mem", figure("usage", &["umc_activity", "mem_usage"])),
                ("temperature", figure("temperature", &["hotspot", "edge"])),
                ("memory_temperature", figure("temperature", &["mem", "vram"])),
                ("vram_used", figure("mem_usage", &["used_vram"])),
            ];
            if found.iter().all(|(_, value)| value.is_none()) {
                continue;
            }
            let gpu = gpu.max(0.0) as u64;
            self.gpus.insert(gpu);
            self.n += 1;
            self.document = true;
            for (name, value) in found.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                match name {
                    "power" => self.power(gpu, None, value),
                    _ => push(self.metrics.entry(name).or_default(), gpu, Some(value)),
                }
            }
            outcome = Outcome::Recognized;
        }
        outcome
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.devices.append_observations(out);
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.n == 0 {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("num_gpus", self.gpus.len());
        facts.set("n_records", self.n);
        let get = |name: &str| self.metrics.get(name).and_then(listed);
        facts.set_optional("power_w", get("power"));
        let power = self.metrics.get("power");
        let total: Option<f64> = power.map(|power| power.values().filter_map(Series::mean).sum());
        facts.set_optional("total_power_w", total.map(number_to_json));
        facts.set_optional("gfx_util_percent", get("gfx"));
        facts.set_optional("mem_util_percent", get("mem"));
        facts.set_optional("gpu_temp_c", get("temperature"));
        facts.set_optional("mem_temp_c", get("memory_temperature"));
        facts.set_optional("vram_used_mb", get("vram_used"));
        facts.set_optional("power_cap_w", get("cap"));
        let snapshots = power.and_then(|power| power.values().map(Series::len).max()).unwrap_or(0);
        let mut notes = Vec::new();
        if snapshots > 1 {
            facts.set("snapshots", snapshots);
            self.devices.facts(&mut facts);
            notes.push(format!("lists are means over {snapshots} samples per GPU"));
        }
        let mut config = Config::default();
        config.number("num_gpus", Some(self.gpus.len() as f64), Origin::File);
        config.merge(&context.settings);
        vec![Reading {
            tool: "amd_smi",
            format: match (self.document, self.csv) {
                (true, _) => "amd-smi-json",
                (false, true) => "amd-smi-csv",
                (false, false) => "amd-smi-monitor",
            },
            kind: if snapshots > 1 { "power" } else { "gpu_state" },
            importance: if snapshots > 1 { Importance::Samples } else { Importance::State },
            facts,
            config,
            power: std::mem::take(&mut self.devices.samples),
            devices: self.devices.names,
            notes,
            ..Reading::default()
        }]
    }
}

impl AmdSmi {
    fn row<'a>(&mut self, values: impl Iterator<Item = &'a str>) -> Outcome {
        let mut found = 0;
        let (mut gpu, mut power, mut time) = (None, None, None);
        self.figures.clear();
        for value in values {
            if is_unit(value) {
                // A separate word with a unit applies to the value before it.
                if let Some((_, figure)) = self.figures.last_mut().filter(|(name, _)| *name == "vram_used") {
                    *figure *= megabytes(value);
                }
                continue;
            }
            let Some(name) = self.columns.get(found) else { return Outcome::NotRecognized };
            found += 1;
            if name.is_empty() || matches!(value, "" | "N/A" | "-") {
                continue;
            }
            // A word that is not a value shows that the row belongs to another table.
            let figure = parse_leading_number(value).filter(|(_, rest)| rest.is_empty() || is_unit(rest));
            let Some((value, _)) = figure.filter(|(value, _)| value.is_finite()) else { return Outcome::NotRecognized };
            match *name {
                "gpu" => gpu = Some(value),
                "power" => power = Some(value),
                "time" => time = Some(value),
                _ => {}
            }
            self.figures.push((name, value));
        }
        let (Some(gpu), true) = (gpu, found == self.columns.len() && self.figures.len() > 1) else {
            return Outcome::NotRecognized;
        };
        let gpu = gpu.max(0.0) as u64;
        for (name, value) in self.figures.iter().filter(|(name, _)| *name != "power") {
            push(self.metrics.entry(name).or_default(), gpu, Some(*value));
        }
        self.gpus.insert(gpu);
        self.n += 1;
        if let Some(watts) = power {
            // The monitor prints Unix times in seconds.
            self.power(gpu, time, watts);
        }
        Outcome::Recognized
    }

    /// Adds a power sample. All statistics of power are of these samples.
    fn power(&mut self, gpu: u64, time: Option<f64>, watts: f64) {
        let Some(device) = self.devices.index(&gpu.to_string()) else { return };
        push(self.metrics.entry("power").or_default(), gpu, Some(watts));
        self.devices.push(device, time, watts);
    }
}

/// Returns the content of a column of `amd-smi monitor`. Names differ between versions.
fn column(name: &str) -> &'static str {
    match name.to_ascii_lowercase().as_str() {
        "gpu" => "gpu",
        "timestamp" => "time",
        "power" | "power_usage" | "pwr" | "socket_power" | "average_socket_power" => "power",
        "pwr_cap" | "power_cap" | "max_power" => "cap",
        "gpu_temp" | "gpu_t" | "hotspot_temperature" | "hotspot_temp" => "temperature",
        "mem_temp" | "mem_t" | "memory_temperature" => "memory_temperature",
        "gfx_util" | "gfx%" | "gfx" => "gfx",
        "mem_util" | "mem%" | "mem" => "mem",
        "vram_used" => "vram_used",
        _ => "",
    }
}

/// Returns the factor from a unit of memory to the MB of `amd-smi`, which are binary. 1 for other units.
fn megabytes(unit: &str) -> f64 {
    match unit {
        "KB" | "KiB" => 1.0 / 1024.0,
        "GB" | "GiB" => 1024.0,
        _ => 1.0,
    }
}

/// Whether a word is a unit separate from its value.
fn is_unit(word: &str) -> bool {
    matches!(
        word,
        "W" | "%" | "C" | "°C" | "MHz" | "KB" | "KiB" | "MB" | "MiB" | "GB" | "GiB" | "V" | "MB/s" | "Mb/s" | "/"
    ) || word.ends_with("°C") && parse_leading_number(word).is_none()
}
