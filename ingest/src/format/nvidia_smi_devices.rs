//! What plain `nvidia-smi` and `nvidia-smi -q` tell of a node's devices, whichever way they print it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::reading::{Config, Context, Facts, Origin, Reading, Weight, tidy};
use crate::series::Series;

/// What is known of one device.
#[derive(Debug, Default)]
pub(super) struct Device {
    pub(super) power: Series,
    pub(super) used: Series,
    pub(super) utilisation: Series,
    pub(super) temperature: Series,
}

/// The devices of a node, and what they have in common.
#[derive(Debug, Default)]
pub(super) struct Devices<Name> {
    pub(super) all: BTreeMap<Name, Device>,
    pub(super) driver: Option<String>,
    /// Power limit, W.
    pub(super) cap: Option<f64>,
    /// Memory, MiB.
    pub(super) total: Option<f64>,
    pub(super) config: Config,
}

impl<Name: Ord> Devices<Name> {
    /// Printed in front of a run, it tells what one of its nodes holds.
    pub(super) fn settings(&self) -> Option<Config> {
        let mut config = Config::default();
        let devices = Some(self.all.len() as f64).filter(|devices| *devices > 0.0);
        config.number("gpus_per_node", devices, Origin::Derived("devices that nvidia-smi lists"));
        config.note("device", self.config.text("device")?, Origin::File);
        Some(config)
    }

    /// Mean power of all devices together, W; `None` where none tells it.
    pub(super) fn total_power(&self) -> Option<f64> {
        let told: Vec<f64> = self.all.values().filter_map(|device| device.power.mean()).collect();
        (!told.is_empty()).then(|| told.iter().sum())
    }

    /// What every device tells: of one state the value, of several the mean.
    pub(super) fn facts(&self) -> Facts {
        let means = |pick: fn(&Device) -> &Series| -> Vec<Value> {
            self.all.values().map(|device| pick(device).mean().map_or(Value::Null, tidy)).collect()
        };
        let mut facts = Facts::default();
        facts.set("num_gpus", self.all.len());
        facts.some("driver", self.driver.clone());
        facts.set("power_w", means(|device| &device.power));
        facts.some("power_cap_w", self.cap.map(tidy));
        facts.set("memory_used_mib", means(|device| &device.used));
        facts.some("memory_total_mib", self.total.map(tidy));
        facts.set("utilization_percent", means(|device| &device.utilisation));
        facts.set("temperature_c", means(|device| &device.temperature));
        facts
    }

    /// The reading that tells the facts and notes.
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
            weight: Weight::State,
            facts,
            config: self.config,
            notes,
            ..Reading::default()
        }
    }
}
