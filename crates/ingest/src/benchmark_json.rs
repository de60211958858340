//! Converts training runs to the benchmark JSON of TensorPrimat: `platform`, `gpu_info`, `parallelism_config`,
//! `training_config`, `performance_metrics`, `memory_metrics`, and the arrays of per-step values.
//!
//! A document that was itself read from such JSON is written with all its fields, including unknown ones. Missing
//! fields are added, and settings given by the user replace those of the document.

use serde_json::{Map, Value, json};

use super::reading::{Config, Context, Origin, Reading};
use super::series::Series;
use super::training::{Run, tokens_per_second};

/// Location of each setting in the document: group, field, and name of the setting in [`SETTINGS`](super::SETTINGS).
pub(crate) const FIELD_LOCATIONS: [(&str, &str, &str); 18] = [
    ("training_config", "num_gpus", "num_gpus"),
    ("gpu_info", "device_count", "num_gpus"),
    ("gpu_info", "device_name", "device"),
    ("gpu_info", "total_memory_gb", "device_memory_gb"),
    ("gpu_info", "precision", "precision"),
    ("gpu_info", "gpu_cores", "gpu_cores"),
    ("gpu_info", "software_stack", "software_stack"),
    ("gpu_info", "software_version", "software_version"),
    ("gpu_info", "pytorch_version", "pytorch_version"),
    ("model_info", "name", "model"),
    ("training_config", "max_steps", "total_steps"),
    ("training_config", "global_batch_size", "global_batch_size"),
    ("training_config", "micro_batch_size", "micro_batch_size"),
    ("training_config", "sequence_length", "seq_len"),
    ("parallelism_config", "tensor_model_parallel_size", "tensor_parallel"),
    ("parallelism_config", "pipeline_model_parallel_size", "pipeline_parallel"),
    ("parallelism_config", "data_parallel_size", "data_parallel"),
    ("parallelism_config", "gradient_accumulation_steps", "gradient_accumulation_steps"),
];

/// Returns one benchmark document for each run of `reading` that has step times or token rates. Empty if the reading is
/// not of training.
#[must_use]
pub fn benchmarks(file: &str, reading: &Reading, context: &Context) -> Vec<Value> {
    let timed = reading.runs.iter().enumerate().filter(|(_, run)| !run.seconds.is_empty() || !run.tokens.is_empty());
    let written = timed.map(|(index, run)| {
        let computed = benchmark(file, reading, index, run, context);
        match &reading.document {
            Some(document) => document_with_computed(document, computed, run, &reading.settings_of(run)),
            None => computed,
        }
    });
    written.collect()
}

/// Completes a document that was read with the computed fields. Settings given by the user replace those of the
/// document.
fn document_with_computed(document: &Value, mut computed: Value, run: &Run, config: &Config) -> Value {
    if run.n == 0
        && let Some(fields) = computed.as_object_mut()
    {
        // A run with no steps has only averages, from which per-step statistics cannot be derived.
        for derived in ["statistics", "step_times", "loss_values", "learning_rates"] {
            fields.remove(derived);
        }
        if let Some(performance) = fields.get_mut("performance_metrics").and_then(Value::as_object_mut) {
            for derived in ["total_steps", "total_time_seconds", "min_step_time_seconds", "max_step_time_seconds"] {
                performance.remove(derived);
            }
        }
    }
    let mut out = document.clone();
    fill_missing_fields(&mut out, computed);
    for (group, field, setting) in FIELD_LOCATIONS {
        let stated = config.iter().find(|(name, _, origin)| *name == setting && *origin == Origin::User);
        let Some(fields) = out.get_mut(group).and_then(Value::as_object_mut) else { continue };
        if let Some((_, value, _)) = stated {
            fields.insert(field.to_owned(), value.clone());
        }
    }
    if let Some(device) = config.text("device")
        && config.iter().any(|(name, _, origin)| name == "device" && origin == Origin::User)
        && let Some(fields) = out.as_object_mut()
    {
        fields.insert("platform".to_owned(), platform(device));
    }
    out
}

/// Adds the fields of `more` that `document` lacks or in which it is null, recursively.
fn fill_missing_fields(document: &mut Value, more: Value) {
    let (Value::Object(fields), Value::Object(more)) = (document, more) else { return };
    for (name, value) in more {
        match fields.get_mut(&name) {
            Some(own) if own.is_object() => fill_missing_fields(own, value),
            Some(own) if own.is_null() => *own = value,
            Some(_) => {}
            None => drop(fields.insert(name, value)),
        }
    }
}

fn benchmark(file: &str, reading: &Reading, index: usize, run: &Run, context: &Context) -> Value {
    let config = &reading.settings_of(run);
    let value = |name: &str| config.value(name).cloned().unwrap_or_default();
    let device = config.text("device").unwrap_or_default();
    let seconds = run.stats(&run.seconds, reading.tool_warmup_steps, context);
    let tokens = run.stats(&run.tokens, reading.tool_warmup_steps, context);
    let gpus = config.get("num_gpus").filter(|gpus| *gpus > 0.0);
    // Prefer the rate computed from batch size, sequence length and step time to the one that the tool reports.
    let total = seconds.and_then(|stats| tokens_per_second(config, run.batch, stats.mean));
    let total = total.or_else(|| Some(tokens?.mean * gpus?));
    let per_gpu = total.and_then(|total| Some(total / gpus?)).or_else(|| tokens.map(|stats| stats.mean));

    let mut performance = Map::new();
    performance.insert("total_steps".to_owned(), run.n.into());
    let mut set = |name: &str, value: Option<f64>| {
        performance.insert(name.to_owned(), value.map_or(Value::Null, Value::from));
    };
    set("total_time_seconds", seconds.map(|stats| stats.mean_all * stats.n as f64));
    set("avg_step_time_seconds", seconds.map(|stats| stats.mean));
    set("min_step_time_seconds", seconds.map(|stats| stats.min));
    set("max_step_time_seconds", seconds.map(|stats| stats.max));
    set("steps_per_second", seconds.map(|stats| 1.0 / stats.mean).filter(|rate| rate.is_finite()));
    set("tokens_per_second", total);
    set("tokens_per_second_per_gpu", per_gpu);

    let parallel = |letter: &str, name: &str| config.get(name).map(|degree| format!("{letter}{degree}"));
    let strategy: Vec<String> =
        [parallel("TP", "tensor_parallel"), parallel("PP", "pipeline_parallel")].into_iter().flatten().collect();
    let strategy = if strategy.is_empty() { Value::Null } else { strategy.join("_").into() };
    let platform = platform(device);
    // Infer the software stack from the vendor if it is not set.
    let stack = match (config.value("software_stack"), platform.as_str()) {
        (Some(stack), _) => stack.clone(),
        (None, Some("nvd")) => "cuda".into(),
        (None, Some("amd")) => "rocm".into(),
        (None, _) => Value::Null,
    };
    json!({
        "platform": platform,
        "gpu_info": {
            "device_count": value("num_gpus"),
            "device_name": value("device"),
            "total_memory_gb": value("device_memory_gb"),
            "gpu_cores": value("gpu_cores"),
            "precision": value("precision"),
            "software_stack": stack,
            "software_version": value("software_version"),
            "pytorch_version": value("pytorch_version"),
        },
        "model_info": {
            "name": value("model"),
            "total_params": config.get("parameters_billion").map(|billions| billions * 1e9),
        },
        "parallelism_config": {
            "strategy_name": strategy,
            "tensor_model_parallel_size": value("tensor_parallel"),
            "pipeline_model_parallel_size": value("pipeline_parallel"),
            "data_parallel_size": value("data_parallel"),
            "gradient_accumulation_steps": value("gradient_accumulation_steps"),
        },
        "training_config": {
            "max_steps": value("total_steps"),
            "global_batch_size": run.batch.map_or_else(|| value("global_batch_size"), super::reading::number_to_json),
            "micro_batch_size": value("micro_batch_size"),
            "sequence_length": value("seq_len"),
            "num_gpus": value("num_gpus"),
        },
        "performance_metrics": performance,
        "memory_metrics": {
            "avg_memory_allocated_gb": run.memory.mean(),
            "peak_memory_allocated_gb": run.memory.max(),
        },
        "step_times": values_json(&run.seconds),
        "loss_values": values_json(&run.loss),
        "learning_rates": values_json(&run.learning_rate),
        "source": {
            "file": file,
            "tool": reading.tool,
            "format": reading.format,
            "run": index + 1,
            "lines": run.lines,
            "first_step": run.first_step,
            "last_step": run.last_step,
        },
        "statistics": {
            "step_time_s": seconds.map(|stats| stats.json()),
            "tflops_per_gpu_reported": run.stats(&run.tflops, reading.tool_warmup_steps, context).map(|stats| stats.json()),
            "tokens_per_s_per_gpu_reported": tokens.map(|stats| stats.json()),
        },
    })
}

/// Returns TensorPrimat's name for the vendor of a device, or null if the device is unknown.
fn platform(device: &str) -> Value {
    let lower = device.to_lowercase();
    let is = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let nvidia = ["nvidia", "tesla", "geforce", "rtx", "h100", "h200", "h800", "h20", "gh200"];
    if is(&nvidia) || is(&["a100", "a800", "b100", "b200", "b300", "gb300", "v100", "l40", "a6000"]) {
        "nvd".into()
    } else if is(&["amd", "instinct", "radeon", "mi100", "mi210", "mi250", "mi300", "mi308", "mi325", "mi350", "mi355"])
    {
        "amd".into()
    } else {
        Value::Null
    }
}

fn values_json(series: &Series) -> Value {
    series.kept().iter().copied().collect()
}
