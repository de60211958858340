//! Converts readings to measurement YAML: what was measured, under which configuration, where every value comes from,
//! and which settings are missing for a comparison with an estimate.

use serde_json::{Map, Value, json};

use super::intake::Ingested;
use super::reading::{Config, Context, Reading, object};
use super::training::{Run, tokens_per_second};

/// Settings without which a training measurement cannot be compared with an estimate.
const NEEDED: [&str; 3] = ["num_gpus", "global_batch_size", "seq_len"];

/// The measurements of a file, to be written as YAML or JSON.
#[must_use]
pub fn measurements(ingested: &Ingested, context: &Context) -> Vec<Value> {
    let of = |reading: &Reading| -> Vec<Value> {
        let head = head(&ingested.file, reading);
        if reading.runs.is_empty() {
            let mut entry = head;
            entry.insert("figures".to_owned(), reading.facts.clone().into());
            return vec![Value::Object(entry)];
        }
        let runs = reading.runs.iter().enumerate();
        runs.map(|(index, run)| {
            let mut entry = head.clone();
            entry.insert("configuration".to_owned(), configuration(&reading.settings_of(run)));
            entry.extend(training(reading, index, run, context));
            Value::Object(entry)
        })
        .collect()
    };
    ingested.readings.iter().flat_map(of).collect()
}

fn head(file: &str, reading: &Reading) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("source".to_owned(), file.into());
    out.insert("tool".to_owned(), reading.tool.into());
    out.insert("format".to_owned(), reading.format.into());
    out.insert("kind".to_owned(), reading.kind.into());
    out.insert("configuration".to_owned(), configuration(&reading.config));
    if !reading.notes.is_empty() {
        out.insert("notes".to_owned(), reading.notes.clone().into());
    }
    out
}

fn configuration(config: &Config) -> Value {
    let settings = config.iter();
    Value::Object(object(
        settings
            .map(|(name, value, origin)| (name.to_owned(), json!({"value": value, "origin": origin.description()}))),
    ))
}

fn training(reading: &Reading, index: usize, run: &Run, context: &Context) -> Map<String, Value> {
    let stats = |series| run.stats(series, reading.tool_warmup_steps, context);
    let seconds = stats(&run.seconds);
    let config = reading.settings_of(run);
    let total = seconds.and_then(|stats| tokens_per_second(&config, run.batch, stats.mean));
    let gpus = config.get("num_gpus").filter(|gpus| *gpus > 0.0);
    let mut figures = Map::new();
    for (name, value) in [
        ("step_time_s", seconds.map(|stats| stats.json())),
        ("tokens_per_s", total.map(Value::from)),
        ("tokens_per_s_per_gpu", total.and_then(|total| Some((total / gpus?).into()))),
        ("tokens_per_s_per_gpu_reported", stats(&run.tokens).map(|stats| stats.json())),
        ("tflops_per_gpu_reported", stats(&run.tflops).map(|stats| stats.json())),
        ("mfu_percent_reported", stats(&run.mfu).map(|stats| stats.json())),
        ("memory_gb_max", run.memory.max().map(Value::from)),
        ("loss", super::training::series_ends(&run.loss)),
    ] {
        if let Some(value) = value {
            figures.insert(name.to_owned(), value);
        }
    }
    let missing: Vec<Value> = missing(reading, run).into_iter().map(Value::from).collect();
    let mut out = Map::new();
    out.insert("run".to_owned(), (index + 1).into());
    out.insert("lines".to_owned(), json!(run.lines));
    out.insert("steps".to_owned(), json!([run.first_step, run.last_step]));
    out.insert("figures".to_owned(), Value::Object(figures));
    if !missing.is_empty() {
        out.insert("missing".to_owned(), Value::Array(missing));
    }
    out
}

/// Returns the settings needed for a comparison that neither the log nor the user states.
#[must_use]
pub fn missing(reading: &Reading, run: &Run) -> Vec<&'static str> {
    let config = reading.settings_of(run);
    let known = |name: &str| config.get(name).is_some() || (name == "global_batch_size" && run.batch.is_some());
    NEEDED.into_iter().filter(|name| !known(name)).collect()
}
