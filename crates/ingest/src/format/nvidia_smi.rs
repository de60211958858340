//! `nvidia-smi --query-gpu=… --format=csv`: columns in any order, with or without units, with its header once, at every
//! sample, or not at all.

use std::borrow::Cow;

use crate::lines::Line;
use crate::observation::{Device, Observation};
use crate::reading::{Config, Context, Facts, Importance, Origin, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text::{cells, has, number, parse_leading_number, unix_seconds};

use super::power::{Devices, TOO_MANY_DEVICES};

/// Content of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Time,
    Index,
    Uuid,
    Bus,
    Name,
    Power,
    Limit,
    Used,
    Total,
    Utilization,
    MemoryUtilization,
    Temperature,
    Clock,
    Other,
}

impl Column {
    fn of(head: &str) -> Column {
        let name = head.split('[').next().unwrap_or_default().trim();
        match name {
            "timestamp" => Column::Time,
            "index" | "gpu" | "gpu_index" => Column::Index,
            "uuid" | "gpu_uuid" => Column::Uuid,
            "pci.bus_id" | "gpu_bus_id" | "pci.bus" => Column::Bus,
            "name" | "gpu_name" => Column::Name,
            "power.draw" | "power.draw.instant" | "power.draw.average" => Column::Power,
            "power.limit" | "enforced.power.limit" | "power.max_limit" => Column::Limit,
            "memory.used" => Column::Used,
            "memory.total" => Column::Total,
            "utilization.gpu" => Column::Utilization,
            "utilization.memory" => Column::MemoryUtilization,
            "temperature.gpu" => Column::Temperature,
            "clocks.current.sm" | "clocks.sm" | "clocks.current.graphics" | "clocks.gr" => Column::Clock,
            _ => Column::Other,
        }
    }
}

/// Recognizer of the samples.
#[derive(Debug, Default)]
pub struct Query {
    columns: Vec<Column>,
    head: String,
    heads: u64,
    infer_columns: bool,
    n: u64,
    devices: Devices,
    utilization: Series,
    memory: Series,
    temperature: Series,
    timed: bool,
    config: Config,
}

impl Recognizer for Query {
    fn triggers(&self) -> &'static [&'static str] {
        // Samples without a header are recognized by their units.
        &[
            "utilization.gpu",
            "power.draw",
            "memory.used",
            "temperature.gpu",
            "clocks.",
            " W, ",
            " %, ",
            " MiB, ",
            "0 W",
            "1 W",
            "2 W",
            "3 W",
            "4 W",
            "5 W",
            "6 W",
            "7 W",
            "8 W",
            "9 W",
        ]
    }

    fn in_table(&self) -> bool {
        !self.columns.is_empty()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii().trim_start_matches('\u{feff}');
        if text == self.head && !text.is_empty() {
            self.heads += 1;
            return Outcome::Recognized;
        }
        // Rows are more frequent than headers, so try them first.
        let row = if self.columns.is_empty() { Outcome::NotRecognized } else { self.sample(text) };
        if row == Outcome::Recognized {
            return row;
        }
        let known = ["utilization.gpu", "power.draw", "memory.used", "temperature.gpu", "clocks.", "power.limit"];
        if text.contains(',') && known.iter().any(|name| has(text, name)) && !has(text, "--query") {
            let columns: Vec<Column> = cells(text).iter().map(|name| Column::of(name)).collect();
            if columns.iter().filter(|column| **column != Column::Other).count() * 2 < columns.len() {
                return Outcome::NotRecognized;
            }
            self.heads += 1;
            self.columns = columns;
            text.clone_into(&mut self.head);
            return Outcome::Recognized;
        }
        if !self.columns.is_empty() {
            return row;
        }
        match infer_columns(text) {
            Some(columns) => (self.columns, self.infer_columns) = (columns, true),
            None => return Outcome::NotRecognized,
        }
        self.sample(text)
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
        let has_power = self.devices.has_power();
        facts.set("n_records", self.n);
        facts.set("num_gpus", self.devices.len());
        facts.set("header_lines", self.heads);
        facts.set("has_power", has_power);
        facts.set("has_timestamp", self.timed);
        self.devices.facts(&mut facts);
        facts.set_optional("mean_utilization_percent", self.utilization.mean());
        facts.set_optional("utilization_percent_max", self.utilization.max().map(number_to_json));
        facts.set_optional("memory_used_mib_max", self.memory.max().map(number_to_json));
        facts.set_optional("temperature_max_c", self.temperature.max().map(number_to_json));
        self.config.number("num_gpus", Some(self.devices.len() as f64), Origin::File);
        self.config.merge(&context.settings);
        let mut notes = Vec::new();
        if self.timed {
            notes.push("time stamps have no time zone; UTC is assumed".to_owned());
        }
        if self.infer_columns {
            notes.push("no header: columns are identified by their units".to_owned());
        }
        vec![Reading {
            tool: "nvidia_smi",
            format: "nvidia-smi-csv",
            kind: if has_power { "power" } else { "gpu_samples" },
            importance: Importance::Samples,
            facts,
            config: self.config,
            power: std::mem::take(&mut self.devices.samples),
            devices: self.devices.names,
            notes,
            ..Reading::default()
        }]
    }
}

impl Query {
    fn sample(&mut self, text: &str) -> Outcome {
        let values = cells(text);
        if values.len() != self.columns.len() {
            return if values.len() > 1
                && values.iter().any(|cell| number(cell).is_some())
                && values.len() + 2 > self.columns.len()
            {
                Outcome::Unusable("a sample whose number of columns differs from the header")
            } else {
                Outcome::NotRecognized
            };
        }
        // Several columns may have the same content: instantaneous and average power, of which old devices report only
        // one.
        let (mut watts, mut utilization, mut used, mut temperature, mut clock) = (None, None, None, None, None);
        for (column, value) in self.columns.iter().zip(&values) {
            let slot = match column {
                Column::Power => &mut watts,
                Column::Utilization => &mut utilization,
                Column::Used => &mut used,
                Column::Temperature => &mut temperature,
                Column::Clock => &mut clock,
                _ => continue,
            };
            *slot = slot.or_else(|| parse_with_unit(value));
        }
        if [watts, utilization, used, temperature, clock].iter().all(Option::is_none) {
            return Outcome::Unusable("a sample without a valid value");
        }
        let columns = &self.columns;
        let cell = |column: Column| {
            let at = columns.iter().position(|known| *known == column)?;
            values.get(at).map(Cow::as_ref)
        };
        let at = cell(Column::Time).and_then(unix_seconds);
        let name = [Column::Index, Column::Bus, Column::Uuid].into_iter().find_map(cell).unwrap_or("0");
        let Some(device_index) = self.devices.index(name) else { return Outcome::Unusable(TOO_MANY_DEVICES) };
        self.n += 1;
        if let Some(at) = at {
            self.timed = true;
            self.devices.record_time(at);
        }
        if let Some(watts) = watts {
            self.devices.push(device_index, at, watts);
        }
        self.devices.add_metrics(Device {
            index: device_index,
            at,
            watts,
            busy: utilization.map(|percent| percent / 100.0),
            clock_mhz: clock,
            celsius: temperature,
        });
        for (series, value) in
            [(&mut self.utilization, utilization), (&mut self.memory, used), (&mut self.temperature, temperature)]
        {
            value.into_iter().for_each(|value| series.push(value));
        }
        if self.n < 64 {
            if let Some(device) = cell(Column::Name) {
                self.config.note("device", device, Origin::File);
            }
            // MiB to GB.
            let total = cell(Column::Total).and_then(parse_with_unit);
            self.config.number("device_memory_gb", total.map(|mib| mib * 1.048_576e-3), Origin::File);
        }
        Outcome::Recognized
    }
}

/// Parses a cell that consists of a number and an optional unit. Memory is converted to MiB, power to W.
fn parse_with_unit(cell: &str) -> Option<f64> {
    let (value, rest) = parse_leading_number(cell).filter(|(value, _)| value.is_finite())?;
    let factor = match rest.strip_prefix(' ').unwrap_or(rest) {
        "" | "W" | "%" | "MiB" | "MHz" | "C" => 1.0,
        "GiB" => 1024.0,
        "KiB" => 1.0 / 1024.0,
        "mW" => 1e-3,
        "kW" => 1e3,
        _ => return None,
    };
    Some(value * factor)
}

/// Infers the columns of a sample without a header from the units. If a unit occurs twice, the columns are assumed to
/// be in the usual order of a query.
fn infer_columns(text: &str) -> Option<Vec<Column>> {
    let values = cells(text);
    let mut columns = Vec::new();
    let mut strong = 0;
    for value in &values {
        let unit = parse_leading_number(value).map_or("", |(_, rest)| rest.trim());
        let wanted = match unit {
            "W" => [Column::Power, Column::Limit],
            "%" => [Column::Utilization, Column::MemoryUtilization],
            "MiB" => [Column::Used, Column::Total],
            "MHz" => [Column::Clock, Column::Other],
            "" if value.parse::<u32>().is_ok() => [Column::Index, Column::Temperature],
            _ if unix_seconds(value).is_some() => [Column::Time, Column::Other],
            _ if value.starts_with("GPU-") => [Column::Uuid, Column::Other],
            _ if value.starts_with("NVIDIA") || value.starts_with("Tesla") => [Column::Name, Column::Other],
            _ if value.starts_with("[N/A]") || value.starts_with("[Not") => [Column::Other, Column::Other],
            _ => return None,
        };
        strong += usize::from(matches!(unit, "W" | "%" | "MiB"));
        let column = wanted.into_iter().find(|column| !columns.contains(column)).unwrap_or(Column::Other);
        columns.push(column);
    }
    (strong >= 1 && values.len() >= 2).then_some(columns)
}
