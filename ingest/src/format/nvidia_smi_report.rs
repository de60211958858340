//! The report of `nvidia-smi -q`, old drivers and new: sections of `name : value`, a device at a time.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lines::Line;
use crate::reading::{Config, Context, Facts, Origin, Reading, Weight, tidy};
use crate::recogniser::{Outcome, Recogniser};
use crate::series::Series;
use crate::text::{has, leading};

/// What is known of one device, by its bus address.
#[derive(Debug, Default)]
struct Device {
    power: Series,
    used: Series,
    utilisation: Series,
    temperature: Series,
    /// Power of the report at hand: an average stands before an instantaneous figure, and is the one that counts.
    told: bool,
}

/// Reads the report.
#[derive(Debug, Default)]
pub struct Report {
    open: bool,
    section: String,
    current: Option<String>,
    devices: BTreeMap<String, Device>,
    reports: u64,
    driver: Option<String>,
    cap: Option<f64>,
    total: Option<f64>,
    config: Config,
}

impl Recogniser for Report {
    fn triggers(&self) -> &'static [&'static str] {
        &["NVSMI LOG"]
    }

    fn open(&self) -> bool {
        self.open
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_end();
        if has(text, "NVSMI LOG") {
            self.open = true;
            self.reports += 1;
            self.current = None;
            return Outcome::Took;
        }
        if !self.open {
            return Outcome::No;
        }
        let inner = text.trim_start();
        let indented = inner.len() < text.len();
        if let Some(bus) = inner.strip_prefix("GPU ").filter(|bus| !indented && bus.matches(':').count() >= 2) {
            self.devices.entry(bus.to_owned()).or_default().told = false;
            self.current = Some(bus.to_owned());
            self.section.clear();
            return Outcome::Took;
        }
        let Some((name, value)) = inner.split_once(" : ").map(|(name, value)| (name.trim(), value.trim())) else {
            if indented {
                inner.clone_into(&mut self.section);
                return Outcome::Took;
            }
            // A line that stands at the margin and is none of the report's ends it.
            self.open = false;
            return Outcome::No;
        };
        self.value(name, value, indented)
    }

    fn settings(&self) -> Option<Config> {
        let mut config = Config::default();
        let devices = Some(self.devices.len() as f64).filter(|devices| *devices > 0.0);
        config.number("gpus_per_node", devices, Origin::Derived("devices that nvidia-smi lists"));
        config.note("device", self.config.text("device")?, Origin::File);
        Some(config)
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.devices.is_empty() {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("num_gpus", self.devices.len());
        facts.some("driver", self.driver);
        let means = |pick: fn(&Device) -> &Series| -> Vec<Value> {
            self.devices.values().map(|device| pick(device).mean().map_or(Value::Null, tidy)).collect()
        };
        let total: Vec<f64> = self.devices.values().filter_map(|device| device.power.mean()).collect();
        facts.set("power_w", means(|device| &device.power));
        facts.some("power_cap_w", self.cap.map(tidy));
        facts.set("memory_used_mib", means(|device| &device.used));
        facts.some("memory_total_mib", self.total.map(tidy));
        facts.set("utilization_percent", means(|device| &device.utilisation));
        facts.set("temperature_c", means(|device| &device.temperature));
        facts.some("total_power_w", (!total.is_empty()).then(|| tidy(total.iter().sum())));
        let mut notes = Vec::new();
        if self.reports > 1 {
            facts.set("snapshots", json!(self.reports));
            notes.push(format!("{} reports: figures are means over them", self.reports));
        }
        self.config.number("num_gpus", Some(self.devices.len() as f64), Origin::File);
        // MiB to GB.
        self.config.number("device_memory_gb", self.total.map(|mib| mib * 1.048_576e-3), Origin::File);
        self.config.merge(&context.settings);
        vec![Reading {
            tool: "nvidia_smi",
            format: "nvidia-smi-q",
            kind: "gpu_state",
            weight: Weight::State,
            facts,
            config: self.config,
            notes,
            ..Reading::default()
        }]
    }
}

impl Report {
    fn value(&mut self, name: &str, value: &str, indented: bool) -> Outcome {
        if !indented {
            if name == "Driver Version" {
                self.driver = Some(value.to_owned());
            }
            return Outcome::Took;
        }
        if name == "Product Name" {
            self.config.note("device", value, Origin::File);
        }
        let Some(device) = self.current.as_ref().and_then(|bus| self.devices.get_mut(bus)) else {
            return Outcome::Skipped("a line of nvidia-smi -q without its device above");
        };
        let figure = |unit: &str| leading(value).filter(|(_, rest)| rest.trim() == unit).map(|(figure, _)| figure);
        match (self.section.as_str(), name) {
            // Newer drivers report the module's power in a section of its own.
            ("GPU Power Readings" | "Power Readings", _) => match name {
                "Power Draw" | "Average Power Draw" | "Instantaneous Power Draw" if !device.told => {
                    if let Some(watts) = figure("W") {
                        device.power.push(watts);
                        device.told = true;
                    }
                }
                "Current Power Limit" | "Enforced Power Limit" | "Power Limit" => self.cap = figure("W").or(self.cap),
                _ => {}
            },
            ("FB Memory Usage", "Total") => self.total = figure("MiB").or(self.total),
            ("FB Memory Usage", "Used") => figure("MiB").into_iter().for_each(|mib| device.used.push(mib)),
            // Newer drivers say `GPU` where older ones say `Gpu`.
            ("Utilization", "Gpu" | "GPU") => figure("%").into_iter().for_each(|share| device.utilisation.push(share)),
            ("Temperature", "GPU Current Temp") => {
                figure("C").into_iter().for_each(|degrees| device.temperature.push(degrees));
            }
            _ => {}
        }
        Outcome::Took
    }
}
