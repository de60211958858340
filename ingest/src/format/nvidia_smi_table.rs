//! The table of plain `nvidia-smi`: one state, or many where it was watched.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lines::Line;
use crate::reading::{Config, Context, Facts, Origin, Reading, Weight, tidy};
use crate::recogniser::{Outcome, Recogniser};
use crate::series::Series;
use crate::text::{between, has, leading, number};

/// What is known of one device.
#[derive(Debug, Default)]
struct Device {
    power: Series,
    used: Series,
    utilisation: Series,
    temperature: Series,
}

/// Reads the table.
#[derive(Debug, Default)]
pub struct Table {
    driver: Option<String>,
    tables: u64,
    current: Option<u64>,
    devices: BTreeMap<u64, Device>,
    cap: Option<f64>,
    total: Option<f64>,
    config: Config,
}

impl Recogniser for Table {
    fn triggers(&self) -> &'static [&'static str] {
        &["| NVIDIA-SMI", "W / ", "MiB / ", "  NVIDIA ", "  Tesla "]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if has(text, "| NVIDIA-SMI") {
            self.tables += 1;
            self.driver = between(text, "Driver Version:", " ").map(str::to_owned).or(self.driver.take());
            return Outcome::Took;
        }
        let Some(inner) = text.strip_prefix('|') else { return Outcome::No };
        if !has(inner, "MiB /") && !has(inner, "W /") {
            // `|   0  NVIDIA H100 80GB HBM3          On  | 00000000:61:00.0 Off |`
            let Some((index, rest)) = leading(inner).filter(|(index, _)| index.fract() == 0.0) else {
                return Outcome::No;
            };
            let parts: Vec<&str> = inner.split('|').collect();
            if parts.get(1).is_none_or(|bus| bus.matches(':').count() < 2) {
                return Outcome::No;
            }
            let name = rest.split('|').next().unwrap_or_default().trim();
            let name = name.strip_suffix("On").or(name.strip_suffix("Off")).unwrap_or(name).trim();
            self.config.note("device", name.trim_end_matches('.'), Origin::File);
            self.current = Some(index as u64);
            self.devices.entry(index as u64).or_default();
            return Outcome::Took;
        }
        // `| N/A   48C    P0            464W /  700W |   72770MiB /  81559MiB |     97%      Default |`
        let Some(device) = self.current.take().and_then(|index| self.devices.get_mut(&index)) else {
            return Outcome::Skipped("a row of nvidia-smi without its device above");
        };
        let mut parts = inner.split('|');
        let (state, memory, load) =
            (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let with_unit = |text: &str, unit: &str| {
            text.split_ascii_whitespace().find_map(|word| word.strip_suffix(unit).and_then(number))
        };
        let (draw, cap) = state.rsplit_once('/').unwrap_or((state, ""));
        for (series, value) in [
            (&mut device.power, with_unit(draw, "W")),
            (&mut device.temperature, with_unit(state, "C")),
            (&mut device.used, with_unit(memory, "MiB")),
            (&mut device.utilisation, with_unit(load, "%")),
        ] {
            value.into_iter().for_each(|value| series.push(value));
        }
        self.cap = with_unit(cap, "W").or(self.cap);
        self.total = memory.split_once('/').and_then(|(_, total)| with_unit(total, "MiB")).or(self.total);
        Outcome::Took
    }

    /// Printed in front of a run, the table tells what one of its nodes holds.
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
        // Of one table the value, of several the mean.
        let means = |pick: fn(&Device) -> &Series| -> Vec<Value> {
            self.devices.values().map(|device| pick(device).mean().map_or(Value::Null, tidy)).collect()
        };
        let total: f64 = self.devices.values().filter_map(|device| device.power.mean()).sum();
        facts.set("power_w", means(|device| &device.power));
        facts.some("power_cap_w", self.cap.map(tidy));
        facts.set("memory_used_mib", means(|device| &device.used));
        facts.some("memory_total_mib", self.total.map(tidy));
        facts.set("utilization_percent", means(|device| &device.utilisation));
        facts.set("temperature_c", means(|device| &device.temperature));
        facts.set("total_power_w", tidy(total));
        let snapshots = self.devices.values().map(|device| device.power.len()).max().unwrap_or(0);
        let mut notes = Vec::new();
        if snapshots > 1 {
            facts.set("snapshots", snapshots);
            facts.set("tables", json!(self.tables));
            notes.push(format!("{snapshots} tables: figures are means over them"));
        }
        self.config.number("num_gpus", Some(self.devices.len() as f64), Origin::File);
        // MiB to GB.
        self.config.number("device_memory_gb", self.total.map(|mib| mib * 1.048_576e-3), Origin::File);
        self.config.merge(&context.settings);
        vec![Reading {
            tool: "nvidia_smi",
            format: "nvidia-smi-table",
            kind: "gpu_state",
            weight: Weight::State,
            facts,
            config: self.config,
            notes,
            ..Reading::default()
        }]
    }
}
