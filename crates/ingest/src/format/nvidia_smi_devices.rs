//! Devices of a node, as listed by `nvidia-smi` and `nvidia-smi -q`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::reading::{Config, Context, Facts, Importance, Origin, Reading, Setting, number_to_json};
use crate::series::Series;

/// Samples of one device.
#[derive(Debug, Default)]
pub(super) struct Device {
    pub(super) power: Series,
    pub(super) used: Series,
    pub(super) utilization: Series,
    pub(super) temperature: Series,
}

/// Devices of a node, and their common properties.
#[derive(Debug, Default)]
pub(super) struct Devices<Name> {
    pub(super) all: BTreeMap<Name, Device>,
    pub(super) driver: Option<String>,
    /// Power limit, W.
    pub(super) cap: Option<f64>,
    /// Total memory, MiB.
    pub(super) total: Option<f64>,
    pub(super) config: Config,
    /// Number of the line that names the first device.
    first_line: u64,
}

impl<Name: Ord> Devices<Name> {
    /// Returns settings for a run on the node that printed the table.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let Some(device) = self.config.text("device") else { return Vec::new() };
        let setting = |name, value: Value, origin| Setting { name, value, origin, line: self.first_line };
        let mut out = vec![setting("device", device.into(), Origin::File)];
        if !self.all.is_empty() {
            let how = Origin::Derived("devices listed by nvidia-smi");
            out.push(setting("gpus_per_node", self.all.len().into(), how));
        }
        out
    }

    /// Records the name of a device. Only the first is kept.
    pub(super) fn named(&mut self, name: &str, line: u64) {
        if self.config.text("device").is_none() {
            self.first_line = line;
        }
        self.config.note("device", name, Origin::File);
    }

    /// Whether `name` differs from the recorded device name.
    pub(super) fn differs(&self, name: &str) -> bool {
        self.config.text("device").is_some_and(|known| known != name)
    }

    /// Total mean power of all devices, W; `None` if no device reports it.
    pub(super) fn total_power(&self) -> Option<f64> {
        let watts: Vec<f64> = self.all.values().filter_map(|device| device.power.mean()).collect();
        (!watts.is_empty()).then(|| watts.iter().sum())
    }

    /// Facts on every device: the mean of its samples.
    pub(super) fn facts(&self) -> Facts {
        let means = |pick: fn(&Device) -> &Series| -> Vec<Value> {
            self.all.values().map(|device| pick(device).mean().map_or(Value::Null, number_to_json)).collect()
        };
        let mut facts = Facts::default();
        facts.set("num_gpus", self.all.len());
        facts.set_optional("driver", self.driver.clone());
        facts.set("power_w", means(|device| &device.power));
        facts.set_optional("power_cap_w", self.cap.map(number_to_json));
        facts.set("memory_used_mib", means(|device| &device.used));
        facts.set_optional("memory_total_mib", self.total.map(number_to_json));
        facts.set("utilization_percent", means(|device| &device.utilization));
        facts.set("temperature_c", means(|device| &device.temperature));
        facts
    }

    /// Creates a reading with these facts and notes.
    pub(super) fn reading(
        mut self,
        format: &'static str,
        facts: Facts,
        notes: Vec<String>,
        context: &Context,
    ) -> Reading {
        self.config.number("num_gpus", Some(self.all.len() as f64), Origin::File);
        // MiB to GB.
        self.config.number("device_memory_gb", self.total.map(|mib| mib * 1.048_576e-3), Origin::File);
        self.config.merge(&context.settings);
        Reading {
            tool: "nvidia_smi",
            format,
            kind: "gpu_state",
            importance: Importance::State,
            facts,
            config: self.config,
            notes,
            ..Reading::default()
        }
    }
}
