//! DCGM exporter: samples of NVIDIA GPUs in the Prometheus text format, or in responses of the Prometheus HTTP API.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::lines::Line;
use crate::observation::Observation;
use crate::prometheus::{Sample, answer, sample};
use crate::reading::{Context, Facts, Importance, Origin, Reading, number_to_json, object};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::CommonSettings;

use super::power::{Devices, TOO_MANY_DEVICES};

/// Integers of at least this value are DCGM's blank values: not found, not supported, no permission (dcgm_structs.h).
const BLANK: f64 = 9.223_372_036_854_775e18;
/// Lower end of the range of floating-point blank values.
const BLANK_FP64: f64 = 140_737_488_355_328.0;

/// Recognizer of DCGM samples. If a metric occurs repeatedly, the last value is reported.
#[derive(Debug, Default)]
pub struct Exporter {
    metrics: BTreeMap<String, BTreeMap<String, Option<f64>>>,
    /// Devices as host, GPU and MIG instance, separated by line breaks.
    gpus: BTreeSet<String>,
    samples: u64,
    settings: CommonSettings,
    /// Power of all scrapes.
    power: Devices,
    scrapes: BTreeMap<String, u64>,
}

impl Recognizer for Exporter {
    fn triggers(&self) -> &'static [&'static str] {
        &["DCGM_FI_"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if text.starts_with('#') && text.contains("DCGM_FI_") {
            return Outcome::Settings;
        }
        if !text.starts_with("DCGM_FI_") {
            return Outcome::NotRecognized;
        }
        match sample(text).filter(|_| text.contains('{')) {
            Some(sample) => self.take(&sample),
            None => Outcome::Unusable("a DCGM sample without its labels or value"),
        }
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let samples = answer(document);
        let mut outcome = Outcome::NotRecognized;
        for sample in samples.iter().filter(|sample| sample.name.starts_with("DCGM_FI_")) {
            outcome = self.take(sample);
        }
        outcome
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.power.append_observations(out);
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.gpus.is_empty() {
            return Vec::new();
        }
        let names = self.names();
        let plain = |value: &Option<f64>| value.map_or(Value::Null, number_to_json);
        let metrics = self.metrics.iter().map(|(name, by_gpu)| {
            let value = if names.len() == 1 {
                by_gpu.values().next().map_or(Value::Null, plain)
            } else {
                let named = by_gpu.iter().filter_map(|(gpu, value)| Some((names.get(gpu)?.clone(), plain(value))));
                Value::Object(object(named))
            };
            (name.clone(), value)
        });
        let mut facts = Facts::default();
        facts.set("metrics", Value::Object(object(metrics)));
        facts.set_optional("gpu", names.values().next().cloned());
        facts.set("num_gpus", names.len());
        facts.set("n_records", self.samples);
        let scrapes = self.scrapes.values().copied().max().unwrap_or(0);
        if let Some(power) = self.metrics.get("DCGM_FI_DEV_POWER_USAGE") {
            facts.set("total_power_w", power.values().flatten().sum::<f64>());
        }
        let mut notes = Vec::new();
        if scrapes > 1 {
            facts.set("snapshots", scrapes);
            self.power.facts(&mut facts);
            notes.push(format!("metrics are those of the last of {scrapes} scrapes"));
        }
        let mut config = self.settings.config(context);
        config.number("num_gpus", Some(names.len() as f64), Origin::File);
        vec![Reading {
            tool: "dcgm",
            format: "dcgm-exporter",
            kind: if scrapes > 1 && self.power.has_power() { "power" } else { "gpu_state" },
            importance: if scrapes > 1 { Importance::Samples } else { Importance::State },
            facts,
            config,
            power: std::mem::take(&mut self.power.samples),
            devices: self.power.names,
            notes,
            ..Reading::default()
        }]
    }
}

impl Exporter {
    fn take(&mut self, sample: &Sample<'_>) -> Outcome {
        if self.gpus.len() >= 4096 || self.metrics.len() >= 4096 {
            return Outcome::Unusable("a sample beyond the limit of 4096 devices or metrics");
        }
        let label = |names: &[&str]| names.iter().find_map(|name| sample.labels.get(name)).unwrap_or_default();
        // GPUs with the same index on different hosts are different devices, and so are different MIG instances of a
        // GPU.
        let (host, gpu) = (label(&["Hostname", "hostname", "instance"]), label(&["gpu", "GPU"]));
        let key = format!("{host}\n{gpu}\n{}", label(&["GPU_I_ID"]));
        let value = sample.value;
        let blank = !value.is_finite() || value >= BLANK || (BLANK_FP64..BLANK_FP64 + 64.0).contains(&value);
        if let Some(device) = sample.labels.get("modelName") {
            self.settings.add("device", device);
        }
        let known = self.metrics.entry(sample.name.to_owned()).or_default();
        known.insert(key.clone(), (!blank).then_some(value));
        if sample.name == "DCGM_FI_DEV_POWER_USAGE" && !blank {
            let Some(device) = self.power.index(key.replace('\n', " ").trim()) else {
                return Outcome::Unusable(TOO_MANY_DEVICES);
            };
            *self.scrapes.entry(key.clone()).or_default() += 1;
            self.power.push(device, sample.at, value);
        }
        self.gpus.insert(key);
        self.samples += 1;
        Outcome::Recognized
    }

    /// Returns the display names of the devices: the GPU index, prefixed with the host if there are several, and
    /// followed by the MIG instance.
    fn names(&self) -> BTreeMap<String, String> {
        let parts = |key: &str| -> [String; 3] {
            let mut parts = key.split('\n').map(str::to_owned);
            std::array::from_fn(|_| parts.next().unwrap_or_default())
        };
        let hosts: BTreeSet<String> = self.gpus.iter().map(|key| parts(key)[0].clone()).collect();
        let name = |key: &String| {
            let [host, gpu, instance] = parts(key);
            let gpu = if gpu.is_empty() { "0".to_owned() } else { gpu };
            let gpu = if hosts.len() > 1 { format!("{host}/{gpu}") } else { gpu };
            (key.clone(), if instance.is_empty() { gpu } else { format!("{gpu}.{instance}") })
        };
        self.gpus.iter().map(name).collect()
    }
}
