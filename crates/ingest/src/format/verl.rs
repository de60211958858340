//! verl: `step:2 - actor/grad_norm:0.22 - timing_s/step:59.9 - perf/total_num_tokens:936004 - perf/throughput:1953.3`.

use serde_json::{Map, Value, json};

use crate::lines::Line;
use crate::reading::Origin;
use crate::recognizer::Outcome;
use crate::series::Series;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary, TOKENS_PER_GPU};
use crate::text::{number, parse_integer};
use crate::training::Step;

/// Parts of a reinforcement learning step whose times are read.
const PARTS: [&str; 6] = ["gen", "old_log_prob", "ref", "values", "adv", "update_actor"];

/// Recognizer of verl.
pub type Verl = StepReader<Lines>;

/// Parser of the step lines.
#[derive(Debug, Default)]
pub struct Lines {
    parts: [Series; PARTS.len()],
}

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "verl",
        format: "verl",
        triggers: &["timing_s/step:"],
        series: &[TOKENS_PER_GPU],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let Some(fields) = line.text.trim_ascii_start().strip_prefix("step:") else { return Outcome::NotRecognized };
        let mut fields = fields.split(" - ");
        let counter = fields.next().and_then(parse_integer);
        let mut step = Step { step: counter, line: line.number, ..Step::default() };
        let (mut tokens, mut parts) = (None, [None; PARTS.len()]);
        for (key, value) in fields.filter_map(|field| field.trim_ascii().split_once(':')) {
            // NumPy scalars may be printed with their type: `np.float64(0.41)`.
            let value = value.strip_prefix("np.float64(").unwrap_or(value);
            match key {
                "timing_s/step" => step.seconds = number(value),
                "perf/throughput" => step.tokens_per_gpu = number(value),
                "perf/total_num_tokens" => tokens = number(value),
                "actor/grad_norm" => step.grad_norm = number(value),
                "actor/lr" => step.learning_rate = number(value),
                // The value is in GiB.
                "perf/max_memory_allocated_gb" => step.memory_gb = number(value).map(|gib| gib * 1.073_741_824),
                _ => {
                    let known = key.strip_prefix("timing_s/").and_then(|part| PARTS.iter().position(|p| *p == part));
                    if let Some(slot) = known.and_then(|index| parts.get_mut(index)) {
                        *slot = number(value);
                    }
                }
            }
        }
        if step.step.is_none() || step.seconds.is_none() {
            return Outcome::Unusable("a verl step without a counter or a valid time");
        }
        if log.push(step) {
            self.parts.iter_mut().zip(parts).for_each(|(series, value)| value.into_iter().for_each(|v| series.push(v)));
            if let (Some(tokens), Some(seconds), Some(rate)) = (tokens, step.seconds, step.tokens_per_gpu) {
                let gpus = tokens / (seconds * rate);
                if gpus >= 0.99 && (gpus - gpus.round()).abs() < 0.01 * gpus {
                    let how = Origin::Derived("tokens / (step time x tokens/s/GPU)");
                    log.config.number("num_gpus", Some(gpus.round()), how);
                }
            }
        }
        Outcome::Recognized
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        let most = summary.all().memory.max();
        summary.facts.set_optional("max_memory_gb", most);
        let mut parts = Map::new();
        for (name, series) in PARTS.iter().zip(&self.parts) {
            if let Some(mean) = series.mean() {
                parts.insert((*name).to_owned(), json!(mean));
            }
        }
        if !parts.is_empty() {
            summary.facts.set("mean_seconds_of_parts", Value::Object(parts));
        }
    }
}
