//! What DCGM's exporter answers to Prometheus.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::lines::Line;
use crate::reading::{Config, Context, Facts, Origin, Reading, Weight, object, tidy};
use crate::recogniser::{Outcome, Recogniser};
use crate::text::{between, number};

/// From here on integers are DCGM's blanks: not found, not supported, no permission (dcgm_structs.h).
const BLANK: f64 = 9.223_372_036_854_775e18;
/// From here on floating-point values are blanks.
const BLANK_FP64: f64 = 140_737_488_355_328.0;

/// Reads the samples; of a metric that comes again the last counts.
#[derive(Debug, Default)]
pub struct Exporter {
    metrics: BTreeMap<String, BTreeMap<String, Option<f64>>>,
    gpus: BTreeSet<String>,
    samples: u64,
    device: Option<String>,
}

impl Recogniser for Exporter {
    fn triggers(&self) -> &'static [&'static str] {
        &["DCGM_FI_"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if text.starts_with('#') && text.contains("DCGM_FI_") {
            return Outcome::Noted;
        }
        if !text.starts_with("DCGM_FI_") {
            return Outcome::No;
        }
        let (Some((name, _)), Some((_, value))) = (text.split_once('{'), text.rsplit_once('}')) else {
            return Outcome::Skipped("a DCGM sample without its labels");
        };
        let Some(value) = number(value) else { return Outcome::Skipped("a DCGM sample without a value") };
        let gpu = between(text, "gpu=\"", "\"").unwrap_or("0").to_owned();
        let blank = value >= BLANK || (BLANK_FP64..BLANK_FP64 + 64.0).contains(&value);
        if self.gpus.len() < 4096 && self.metrics.len() < 4096 {
            self.device = between(text, "modelName=\"", "\"").map(str::to_owned).or(self.device.take());
            self.metrics.entry(name.to_owned()).or_default().insert(gpu.clone(), (!blank).then_some(value));
            self.gpus.insert(gpu);
            self.samples += 1;
        }
        Outcome::Took
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let Some(first) = self.gpus.first() else { return Vec::new() };
        let told = |value: &Option<f64>| value.map_or(Value::Null, tidy);
        let metrics = self.metrics.iter().map(|(name, by_gpu)| {
            let value = if self.gpus.len() == 1 {
                by_gpu.values().next().map_or(Value::Null, told)
            } else {
                Value::Object(object(by_gpu.iter().map(|(gpu, value)| (gpu.clone(), told(value)))))
            };
            (name.clone(), value)
        });
        let mut facts = Facts::default();
        facts.set("metrics", Value::Object(object(metrics)));
        facts.set("gpu", first.as_str());
        facts.set("num_gpus", self.gpus.len());
        facts.set("n_records", self.samples);
        if let Some(power) = self.metrics.get("DCGM_FI_DEV_POWER_USAGE") {
            facts.set("total_power_w", power.values().flatten().sum::<f64>());
        }
        let mut config = Config::default();
        config.number("num_gpus", Some(self.gpus.len() as f64), Origin::File);
        config.note("device", self.device, Origin::File);
        config.merge(&context.settings);
        vec![Reading {
            tool: "dcgm",
            format: "dcgm-exporter",
            kind: "gpu_state",
            weight: Weight::State,
            facts,
            config,
            ..Reading::default()
        }]
    }
}
