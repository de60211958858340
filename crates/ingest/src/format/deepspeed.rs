//! DeepSpeed: the throughput timer of old and new versions, and the steps of the pipeline engine.

use crate::lines::Line;
use crate::observation::Observation;
use crate::quantity::gigabytes;
use crate::reading::{Config, Context, Importance, Origin, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text::{has, number_after, parse_integer, parse_leading_number, text_after, unix_seconds};
use crate::training::{Step, Training, series_ends};
use atlas_core::statistics::median;

/// Recognizer of DeepSpeed.
#[derive(Debug, Default)]
pub struct DeepSpeed {
    timer: Training,
    current: Series,
    running: Option<f64>,
    memory: Option<f64>,
    /// Run, step, time and rate of lines with a time stamp.
    instants: Vec<(usize, u64, f64, f64)>,
    pipeline: Training,
    skipped: Option<f64>,
}

impl Recognizer for DeepSpeed {
    fn triggers(&self) -> &'static [&'static str] {
        &["SamplesPerSec=", "iter time (s):", "skipped="]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        // Test for timer and step lines first: a long log consists almost entirely of them.
        if has(text, "SamplesPerSec=") && !has(text, "E2E latency=") {
            return self.throughput(line);
        }
        if let Some(skipped) = number_after(text, "skipped=").filter(|_| has(text, "step=") && has(text, "lr=[")) {
            self.skipped = Some(skipped);
            return Outcome::Settings;
        }
        if has(text, "iter time (s):") {
            return self.pipeline(line);
        }
        Outcome::NotRecognized
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.timer.append_observations(out);
        self.pipeline.append_observations(out);
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let mut out = Vec::new();
        if !self.pipeline.is_empty() {
            let facts = self.pipeline.facts("global_steps", 1, context);
            let format = "deepspeed-pipeline";
            let reading =
                Reading { tool: "deepspeed", format, importance: Importance::Steps, facts, ..Reading::default() };
            out.push(self.pipeline.clone().reading(reading, 1, context));
        }
        if !self.current.is_empty() {
            out.push(self.throughput_reading(context));
        }
        out
    }
}

impl DeepSpeed {
    /// Parses `[…] [timer.py:199:stop] epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=…,
    /// CurrSamplesPerSec=…`, and the form before version 0.7, `[timer.py:181:stop] 0/10, SamplesPerSec=…`.
    fn throughput(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let running = number_after(text, "RunningAvgSamplesPerSec=");
        let current = number_after(text, "CurrSamplesPerSec=").or_else(|| number_after(text, " SamplesPerSec="));
        let Some(current) = current else {
            return Outcome::Unusable("a DeepSpeed throughput line without the current rate");
        };
        let step = number_after(text, "global_step=").map(|step| step as u64).or_else(|| {
            let rest = text_after(text, ":stop]")?;
            parse_integer(parse_leading_number(rest)?.1.strip_prefix('/')?)
        });
        let most = text_after(text, "MaxMemAllocated=").and_then(|text| gigabytes(text, 1.0));
        let new = self.timer.push(Step {
            step,
            // Samples per second, stored here so that copies are detected by the rate: the line has no step time.
            tokens_per_gpu: Some(current),
            memory_gb: most,
            line: line.number,
            ..Step::default()
        });
        if !new {
            return Outcome::Recognized;
        }
        self.current.push(current);
        self.running = running.or(self.running);
        self.memory = text_after(text, " MemAllocated=").and_then(|text| gigabytes(text, 1.0)).or(self.memory);
        if let (Some(step), Some(at)) = (step, text.strip_prefix('[').and_then(unix_seconds))
            && self.instants.len() < 4096
        {
            self.instants.push((self.timer.runs.len(), step, at, current));
        }
        Outcome::Recognized
    }

    /// Parses `steps: 10 loss: 2.30 iter time (s): 0.512 samples/sec: 62.5`.
    fn pipeline(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let seconds = number_after(text, "iter time (s)").filter(|seconds| *seconds > 0.0);
        let (Some(step), Some(seconds)) = (number_after(text, "steps"), seconds) else {
            return Outcome::Unusable("a DeepSpeed pipeline line without step or time");
        };
        let rate = number_after(text, "samples/sec");
        self.pipeline.push(Step {
            step: Some(step as u64),
            seconds: Some(seconds),
            loss: number_after(text, "loss"),
            batch: rate.map(|rate| (rate * seconds).round()).filter(|batch| *batch >= 1.0),
            line: line.number,
            ..Step::default()
        });
        Outcome::Recognized
    }

    /// Infers the global batch size of a run, which the log does not state, as samples per second times seconds per
    /// step.
    fn batch(&self, run: usize, config: &Config) -> Option<f64> {
        let of: Vec<&(usize, u64, f64, f64)> = self.instants.iter().filter(|(of, ..)| *of == run + 1).collect();
        let batches: Vec<f64> = of
            .windows(2)
            .filter_map(|pair| match pair {
                [(_, before, from, _), (_, now, to, rate)] if now > before => {
                    Some((to - from) * rate / (now - before) as f64)
                }
                _ => None,
            })
            .collect();
        if batches.len() < 4 {
            return None;
        }
        let median = median(batches)?;
        let unit = config.get("micro_batch_size").unwrap_or(1.0).max(1.0);
        let near = (median / unit).round() * unit;
        (near > 0.0 && (median / near - 1.0).abs() < 0.02).then_some(near)
    }

    fn throughput_reading(self, context: &Context) -> Reading {
        let mut config = Config::default();
        let hint = ["gbs", "globalbatchsize", "bs"].iter().find_map(|name| context.number_in_file_name(name));
        config.number("global_batch_size", hint, Origin::FileName);
        config.merge(&context.settings);
        let how = Origin::Derived("samples/s x seconds between steps");
        let derived: Vec<Option<f64>> = (0..self.timer.runs.len()).map(|run| self.batch(run, &config)).collect();
        if let Some((first, others)) = derived.split_first()
            && others.iter().all(|other| other == first)
        {
            config.number("global_batch_size", *first, how);
        }
        let mut facts = self.timer.facts("global_steps", 1, context);
        let all = self.timer.all();
        let stats = all.stats(&self.current, 1, context);
        facts.set_optional("samples_per_s_current", stats.map(|stats| stats.json()));
        facts.set_optional("samples_per_s_running_avg_last", self.running);
        facts.set_optional("mem_allocated_gb", self.memory);
        facts.set_optional("max_mem_allocated_gb", all.memory.max());
        facts.set_optional("skipped_iterations_total", self.skipped.map(number_to_json));
        let mut notes = Vec::new();
        // A batch size stated before the first run does not apply to runs that start later.
        let one = derived.iter().skip(1).all(|derived| *derived == config.get("global_batch_size"));
        match (config.get("global_batch_size"), stats) {
            (Some(batch), Some(stats)) if one => {
                facts.set("step_time_s_mean_no_warmup", batch / stats.mean);
                notes.push("step time is the batch size divided by the mean of the current rates".to_owned());
            }
            _ => {
                let missing = "the log does not state the batch size; step times require --set global_batch_size=N";
                notes.push(missing.to_owned());
            }
        }
        facts.set_optional("samples_per_s", series_ends(&self.current));
        let mut reading = Reading {
            tool: "deepspeed",
            format: "deepspeed-throughput",
            importance: Importance::Steps,
            facts,
            config,
            notes,
            ..Reading::default()
        };
        // The rates in samples per second were stored as `tokens`. Convert them to step times.
        let batch = reading.config.get("global_batch_size");
        let mut timer = self.timer;
        for (index, (run, derived)) in timer.runs.iter_mut().zip(derived).enumerate() {
            let batch = if index == 0 { batch.or(derived) } else { derived };
            run.config.number("global_batch_size", batch.filter(|_| derived == batch), how);
            let rates = std::mem::take(&mut run.tokens);
            for rate in rates.kept().iter().filter(|rate| **rate > 0.0) {
                if let Some(batch) = batch {
                    run.seconds.push(batch / rate);
                }
            }
        }
        reading.kind = "training";
        timer.reading(reading, 1, context)
    }
}
