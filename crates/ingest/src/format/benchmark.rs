//! The benchmark JSON of TensorPrimat, which Atlas also writes: `platform`, `gpu_info`,
//! `performance_metrics`, and arrays of step times, losses and learning rates.

use serde_json::Value;

use crate::benchmark_json::FIELD_LOCATIONS;
use crate::json::json_number;
use crate::lines::Line;
use crate::reading::{Config, Context, Importance, Origin, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::training::{Run, Training};

/// Recognizer of benchmark JSON.
#[derive(Debug, Default)]
pub struct Benchmark {
    documents: Vec<Value>,
}

impl Recognizer for Benchmark {
    fn triggers(&self) -> &'static [&'static str] {
        &[]
    }

    fn line(&mut self, _line: Line<'_>) -> Outcome {
        Outcome::NotRecognized
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let known = ["performance_metrics", "step_times", "memory_metrics"];
        let is_one = document.get("performance_metrics").is_some_and(Value::is_object)
            && (document.get("gpu_info").is_some()
                || known.iter().filter(|name| document.get(**name).is_some()).count() > 1);
        if !is_one || self.documents.len() >= 256 {
            return Outcome::NotRecognized;
        }
        self.documents.push(document.clone());
        Outcome::Recognized
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        self.documents.iter().map(|document| reading(document, context)).collect()
    }
}

fn reading(document: &Value, context: &Context) -> Reading {
    let at = |group: &str, name: &str| document.get(group).and_then(|group| group.get(name));
    let number = |group: &str, name: &str| at(group, name).and_then(json_number);
    let mut config = Config::default();
    for (group, name, ours) in FIELD_LOCATIONS {
        match at(group, name) {
            Some(Value::String(text)) => config.note(ours, text.as_str(), Origin::File),
            Some(value) => config.number(ours, json_number(value), Origin::File),
            None => {}
        }
    }
    let parameters = number("model_info", "total_params").map(|parameters| parameters / 1e9);
    config.number("parameters_billion", parameters, Origin::File);
    config.merge(&context.settings);

    let values = |name: &str| {
        let list = document.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(json_number).collect::<Vec<f64>>()
    };
    let mut training = Training::default();
    let mut run = Run::default();
    run.lines = [1, 1];
    let (times, losses, rates) = (values("step_times"), values("loss_values"), values("learning_rates"));
    run.n = times.len().max(losses.len());
    times.iter().for_each(|value| run.seconds.push(*value));
    losses.iter().for_each(|value| run.loss.push(*value));
    rates.iter().for_each(|value| run.learning_rate.push(*value));
    if run.seconds.is_empty() {
        // The report has only averages.
        if let Some(seconds) = number("performance_metrics", "avg_step_time_seconds") {
            run.seconds.push(seconds);
        }
    }
    run.batch = config.get("global_batch_size");
    let per_gpu = number("performance_metrics", "tokens_per_second_per_gpu").or_else(|| {
        Some(number("performance_metrics", "tokens_per_second")? / config.get("num_gpus").filter(|gpus| *gpus > 0.0)?)
    });
    if run.batch.is_none() || config.get("seq_len").is_none() {
        // The rate cannot be computed, so use the reported one.
        per_gpu.into_iter().for_each(|value| run.tokens.push(value));
    }
    let memory = number("memory_metrics", "peak_memory_allocated_gb");
    memory.into_iter().for_each(|value| run.memory.push(value));
    let seconds = run.seconds.clone();
    training.runs.push(run);

    let mut facts = training.facts("steps", 1, context);
    facts.set_optional("platform", document.get("platform").cloned());
    facts.set_optional("device", config.value("device").cloned());
    facts.set_optional("reported_avg_step_time_s", number("performance_metrics", "avg_step_time_seconds"));
    facts.set_optional("reported_tokens_per_s_per_gpu", number("performance_metrics", "tokens_per_second_per_gpu"));
    facts.set_optional("reported_tokens_per_s", number("performance_metrics", "tokens_per_second"));
    let stats = training.all().stats(&seconds, 1, context);
    let sizes = (config.get("global_batch_size"), config.get("seq_len"), config.get("num_gpus"));
    if let (Some(stats), (Some(batch), Some(length), Some(gpus))) = (stats, sizes) {
        facts.set("median_tokens_per_s_per_gpu", batch * length / stats.median / gpus);
    }
    facts.set("peak_memory_allocated_gb", memory.map_or(Value::Null, Value::from));
    facts.set_optional("avg_memory_allocated_gb", number("memory_metrics", "avg_memory_allocated_gb"));
    let reading = Reading {
        tool: "tprimat",
        format: "tprimat-result-json",
        importance: Importance::Record,
        facts,
        config,
        document: Some(Box::new(document.clone())),
        ..Reading::default()
    };
    training.reading(reading, 1, context)
}
