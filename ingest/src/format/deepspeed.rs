//! DeepSpeed: its throughput timer (old and new), the steps of its pipeline engine, and the RLHF steps of
//! DeepSpeed-Chat.

use crate::lines::Line;
use crate::reading::{Config, Context, Origin, Reading, Weight, tidy};
use crate::recogniser::{Outcome, Recogniser};
use crate::series::Series;
use crate::text::{after, has, human, leading, number, number_after, unix_seconds, whole};
use crate::training::{Step, Training, ends};

/// Reads DeepSpeed's lines.
#[derive(Debug, Default)]
pub struct DeepSpeed {
    timer: Training,
    current: Series,
    running: Option<f64>,
    max_memory: Option<f64>,
    memory: Option<f64>,
    instants: Vec<(u64, f64, f64)>,
    pipeline: Training,
    rlhf: Training,
    generate: Series,
    training_time: Series,
    rlhf_rate: Option<f64>,
    rlhf_step: Option<u64>,
    actor_loss: Option<f64>,
    skipped: Option<f64>,
    sft: Training,
    config: Config,
}

impl Recogniser for DeepSpeed {
    fn triggers(&self) -> &'static [&'static str] {
        &[
            "SamplesPerSec=",
            "End-to-End =>",
            "Generation => Latency:",
            "Training   => Latency:",
            "Time/seq ",
            "iter time (s):",
            "E2E latency=",
            "|ppo_ep:",
            "| ppo_ep:",
            "skipped=",
        ]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if has(text, "E2E latency=") {
            return self.chat(line);
        }
        // The timer's lines and the steps' are nearly all there is in a log of any length.
        if has(text, "SamplesPerSec=") {
            return self.throughput(line);
        }
        if let Some(skipped) = number_after(text, "skipped=").filter(|_| has(text, "step=") && has(text, "lr=[")) {
            self.skipped = Some(skipped);
            return Outcome::Noted;
        }
        if has(text, "=> Latency:") {
            return self.chat_block(line);
        }
        if has(text, "Model Parameters:") && has(text, "Samples/sec:") {
            return self.chat_step(line);
        }
        if has(text, "ppo_ep:") {
            self.rlhf_step = number_after(text, "step").map(|step| step as u64);
            self.actor_loss = number_after(text, "act_loss");
            return Outcome::Noted;
        }
        if has(text, "iter time (s):") {
            return self.pipeline(line);
        }
        Outcome::No
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let mut out = Vec::new();
        if !self.rlhf.is_empty() {
            let mut facts = self.rlhf.facts("steps", 1, context);
            let all = &self.rlhf.all;
            facts.some("generate_time_s", all.stats(&self.generate, 1, context).map(|stats| stats.json()));
            facts.some("training_time_s", all.stats(&self.training_time, 1, context).map(|stats| stats.json()));
            facts.some("samples_per_s_avg_last", self.rlhf_rate);
            let reading = Reading {
                tool: "deepspeed",
                format: "deepspeed-chat-rlhf",
                weight: Weight::Result,
                facts,
                config: self.config.clone(),
                ..Reading::default()
            };
            out.push(self.rlhf.clone().reading(reading, 1, context));
        }
        if !self.sft.is_empty() {
            let facts = self.sft.facts("steps", 1, context);
            let (format, config) = ("deepspeed-chat-sft", self.config.clone());
            let (tool, weight) = ("deepspeed", Weight::Steps);
            let reading = Reading { tool, format, weight, facts, config, ..Reading::default() };
            out.push(self.sft.clone().reading(reading, 1, context));
        }
        if !self.pipeline.is_empty() {
            let facts = self.pipeline.facts("global_steps", 1, context);
            let format = "deepspeed-pipeline";
            let reading = Reading { tool: "deepspeed", format, weight: Weight::Steps, facts, ..Reading::default() };
            out.push(self.pipeline.clone().reading(reading, 1, context));
        }
        if !self.current.is_empty() {
            out.push(self.throughput_reading(context));
        }
        out
    }
}

impl DeepSpeed {
    /// `[…] [timer.py:199:stop] epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=…, CurrSamplesPerSec=…`
    /// and before 0.7 `[timer.py:181:stop] 0/10, SamplesPerSec=…`.
    fn throughput(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let running = number_after(text, "RunningAvgSamplesPerSec=");
        let current = number_after(text, "CurrSamplesPerSec=").or_else(|| number_after(text, " SamplesPerSec="));
        let Some(current) = current else {
            return Outcome::Skipped("a DeepSpeed throughput line without the current rate");
        };
        let step = number_after(text, "global_step=").map(|step| step as u64).or_else(|| {
            let rest = after(text, ":stop]")?;
            whole(leading(rest)?.1.strip_prefix('/')?)
        });
        let new = self.timer.push(Step {
            step,
            // What copies look like: the rate stands where a time would.
            tokens_per_gpu: Some(current),
            line: line.number,
            ..Step::default()
        });
        if !new {
            return Outcome::Took;
        }
        self.current.push(current);
        self.running = running.or(self.running);
        self.memory = after(text, " MemAllocated=").and_then(human_gigabytes).or(self.memory);
        let most = after(text, "MaxMemAllocated=").and_then(human_gigabytes);
        self.max_memory = match (self.max_memory, most) {
            (Some(known), Some(now)) => Some(known.max(now)),
            (known, now) => known.or(now),
        };
        if let (Some(step), Some(at)) = (step, text.strip_prefix('[').and_then(unix_seconds))
            && self.instants.len() < 4096
        {
            self.instants.push((step, at, current));
        }
        Outcome::Took
    }

    /// `steps: 10 loss: 2.30 iter time (s): 0.512 samples/sec: 62.5`
    fn pipeline(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let seconds = number_after(text, "iter time (s)").filter(|seconds| *seconds > 0.0);
        let (Some(step), Some(seconds)) = (number_after(text, "steps"), seconds) else {
            return Outcome::Skipped("a DeepSpeed pipeline line without step or time");
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
        Outcome::Took
    }

    /// `|E2E latency=7.99s |Gather latency=0.00s (0.00%) |Generate time=5.26s (65.81%) |Training time=2.52s …`
    fn chat(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let Some(seconds) = number_after(text, "E2E latency=") else {
            return Outcome::Skipped("an RLHF step without its latency");
        };
        let new = self.rlhf.push(Step {
            step: self.rlhf_step.take(),
            seconds: Some(seconds),
            loss: self.actor_loss.take(),
            line: line.number,
            ..Step::default()
        });
        if new {
            for (series, name) in [(&mut self.generate, "Generate time="), (&mut self.training_time, "Training time=")]
            {
                if let Some(value) = number_after(text, name) {
                    series.push(value);
                }
            }
            self.rlhf_rate = number_after(text, "AvgSamplesPerSec=").or(self.rlhf_rate);
        }
        Outcome::Took
    }

    /// Newer DeepSpeed-Chat, three lines a step: `End-to-End => Latency: 3.79s, TFLOPs: 10.87, Samples/sec: 8.44, …,
    /// Batch Size: 32, Total Seq. Length: 512`, then `Generation => …` and `Training   => …`.
    fn chat_block(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let Some(seconds) = number_after(text, "=> Latency:") else {
            return Outcome::Skipped("an RLHF step without its latency");
        };
        if has(text, "Generation") {
            self.generate.push(seconds);
        } else if has(text, "Training") {
            self.training_time.push(seconds);
        } else {
            self.config.number("seq_len", number_after(text, "Seq. Length:"), Origin::File);
            self.rlhf_rate = number_after(text, "Samples/sec:").or(self.rlhf_rate);
            self.rlhf.push(Step {
                seconds: Some(seconds),
                tflops_per_gpu: number_after(text, "TFLOPs:"),
                batch: number_after(text, "Batch Size:"),
                line: line.number,
                ..Step::default()
            });
        }
        Outcome::Took
    }

    /// Its first two stages: `Model Parameters: 1.3 B, Latency: 0.65s, TFLOPs: 45.2, Samples/sec: 24.3, …`
    fn chat_step(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let Some(seconds) = number_after(text, "Latency:").filter(|seconds| *seconds > 0.0) else {
            return Outcome::Skipped("a step of DeepSpeed-Chat without its latency");
        };
        self.config.number("parameters_billion", number_after(text, "Model Parameters:"), Origin::File);
        self.config.number("seq_len", number_after(text, "Sequence Length:"), Origin::File);
        self.sft.push(Step {
            seconds: Some(seconds),
            tflops_per_gpu: number_after(text, "TFLOPs:"),
            batch: number_after(text, "Batch Size:"),
            line: line.number,
            ..Step::default()
        });
        Outcome::Took
    }

    /// The global batch is not in the lines. Samples a second times seconds a step is.
    fn batch(&self, config: &Config) -> Option<f64> {
        let mut batches: Vec<f64> = self
            .instants
            .iter()
            .zip(self.instants.iter().skip(1))
            .filter(|((before, ..), (now, ..))| now > before)
            .map(|((before, from, _), (now, to, rate))| (to - from) * rate / (now - before) as f64)
            .collect();
        if batches.len() < 4 {
            return None;
        }
        let median = crate::series::quantile(&mut batches, 0.5);
        let unit = config.get("micro_batch_size").unwrap_or(1.0).max(1.0);
        let near = (median / unit).round() * unit;
        (near > 0.0 && (median / near - 1.0).abs() < 0.02).then_some(near)
    }

    fn throughput_reading(self, context: &Context) -> Reading {
        let mut config = Config::default();
        let hint = ["gbs", "globalbatchsize", "bs"].iter().find_map(|name| context.hint(name));
        config.number("global_batch_size", hint, Origin::FileName);
        config.merge(&context.settings);
        let how = Origin::Derived("samples/s x seconds between steps");
        config.number("global_batch_size", self.batch(&config), how);
        let mut facts = self.timer.facts("global_steps", 1, context);
        let all = &self.timer.all;
        let stats = all.stats(&self.current, 1, context);
        facts.some("samples_per_s_current", stats.map(|stats| stats.json()));
        facts.some("samples_per_s_running_avg_last", self.running);
        facts.some("mem_allocated_gb", self.memory);
        facts.some("max_mem_allocated_gb", self.max_memory);
        facts.some("skipped_iterations_total", self.skipped.map(tidy));
        let mut notes = Vec::new();
        match (config.get("global_batch_size"), stats) {
            (Some(batch), Some(stats)) => {
                facts.set("step_time_s_mean_no_warmup", batch / stats.mean);
                notes.push("step time is the batch over the mean of the current rates".to_owned());
            }
            _ => notes.push("the batch is not in the log: --set global_batch_size=N gives step times".to_owned()),
        }
        facts.some("samples_per_s", ends(&self.current));
        let mut reading = Reading {
            tool: "deepspeed",
            format: "deepspeed-throughput",
            weight: Weight::Steps,
            facts,
            config,
            notes,
            ..Reading::default()
        };
        // The rates were kept where a run keeps tokens a second; they become step times.
        let batch = reading.config.get("global_batch_size");
        let mut timer = self.timer;
        for run in &mut timer.runs {
            let rates = std::mem::take(&mut run.tokens);
            for rate in rates.kept().iter().filter(|rate| **rate > 0.0) {
                if let Some(batch) = batch {
                    run.seconds.push(batch / rate);
                }
            }
            if let Some(memory) = self.max_memory {
                run.memory.push(memory);
            }
        }
        reading.kind = "training";
        timer.reading(reading, 1, context)
    }
}

/// `22.95GB`, and older `3.1 GB`, as GB.
fn human_gigabytes(text: &str) -> Option<f64> {
    let (value, rest) = leading(text)?;
    match rest.trim_start().get(..2) {
        Some("MB") => Some(value / 1e3),
        Some("GB") | None => Some(value),
        _ => human(text).or_else(|| number(text)),
    }
}
