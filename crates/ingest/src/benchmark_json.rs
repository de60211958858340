//! A training run as the benchmark JSON of TensorPrimat: `platform`, `gpu_info`,
//! `parallelism_config`, `training_config`, `performance_metrics`, `memory_metrics`, and the arrays behind them.

use serde_json::{Map, Value, json};

use super::reading::{Context, Reading};
use super::series::Series;
use super::training::{Run, tokens_per_second};

/// The runs of a reading as such documents; none where it is not of training.
#[must_use]
pub fn benchmarks(file: &str, reading: &Reading, context: &Context) -> Vec<Value> {
    let timed = reading.runs.iter().enumerate().filter(|(_, run)| !run.seconds.is_empty() || !run.tokens.is_empty());
    timed.map(|(index, run)| benchmark(file, reading, index, run, context)).collect()
}

fn benchmark(file: &str, reading: &Reading, index: usize, run: &Run, context: &Context) -> Value {
    let config = &run.settings(reading);
    let value = |name: &str| config.value(name).cloned().unwrap_or_default();
    let device = config.text("device").unwrap_or_default();
    let seconds = run.stats(&run.seconds, reading.usual_warmup, context);
    let tokens = run.stats(&run.tokens, reading.usual_warmup, context);
    let gpus = config.get("num_gpus").filter(|gpus| *gpus > 0.0);
    // From batch, sequence and time where they are known, else what the tool says.
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
    json!({
        "platform": platform(device),
        "gpu_info": {
            "device_count": value("num_gpus"),
            "device_name": value("device"),
            "total_memory_gb": value("device_memory_gb"),
            "precision": value("precision"),
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
            "global_batch_size": run.batch.map_or_else(|| value("global_batch_size"), super::reading::tidy),
            "micro_batch_size": value("micro_batch_size"),
            "sequence_length": value("seq_len"),
            "num_gpus": value("num_gpus"),
        },
        "performance_metrics": performance,
        "memory_metrics": {
            "avg_memory_allocated_gb": run.memory.mean(),
            "peak_memory_allocated_gb": run.memory.max(),
        },
        "step_times": listed(&run.seconds),
        "loss_values": listed(&run.loss),
        "learning_rates": listed(&run.learning_rate),
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
            "tflops_per_gpu_reported": run.stats(&run.tflops, reading.usual_warmup, context).map(|stats| stats.json()),
            "tokens_per_s_per_gpu_reported": tokens.map(|stats| stats.json()),
        },
    })
}

/// TensorPrimat's name for the maker of a device; null where the device is not known.
fn platform(device: &str) -> Value {
    let lower = device.to_lowercase();
    let is = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if is(&["nvidia", "tesla", "h100", "h200", "a100", "b200", "b300", "gb200", "v100", "l40"]) {
        "nvd".into()
    } else if is(&["amd", "instinct", "radeon"]) {
        "amd".into()
    } else {
        Value::Null
    }
}

fn listed(series: &Series) -> Value {
    series.kept().iter().copied().collect()
}
