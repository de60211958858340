//! DeepSpeed-Chat: steps of supervised fine-tuning, reward models, DPO, and RLHF.

use crate::lines::Line;
use crate::observation::Observation;
use crate::quantity::seconds_after;
use crate::reading::{Config, Context, Importance, Origin, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text::{has, number_after};
use crate::training::{Step, Training};
use atlas_core::statistics::median;

/// Counts steps across epochs; DeepSpeed-Chat restarts the step counter in every epoch.
#[derive(Debug, Default)]
struct Counter {
    epoch: Option<u64>,
    last: Option<u64>,
    before: u64,
}

impl Counter {
    /// Returns the number of the step across all epochs.
    fn step(&mut self, epoch: Option<u64>, step: u64) -> u64 {
        match (self.epoch, epoch) {
            (Some(known), Some(now)) if now == known + 1 => self.before += self.last.map_or(0, |last| last + 1),
            (Some(known), Some(now)) if now < known => self.before = 0,
            _ => {}
        }
        self.epoch = epoch;
        self.last = Some(step);
        self.before + step
    }
}

/// Recognizer of DeepSpeed-Chat.
#[derive(Debug, Default)]
pub struct DeepSpeedChat {
    rlhf: Training,
    generate: Series,
    training_time: Series,
    rlhf_rate: Option<f64>,
    /// Samples per second times seconds per step, which is the global batch size of RLHF.
    rlhf_batches: Vec<f64>,
    counter: Counter,
    /// Step and loss stated by the line above a timing.
    pending: (Option<u64>, Option<f64>),
    sft: Training,
    config: Config,
}

impl Recognizer for DeepSpeedChat {
    fn triggers(&self) -> &'static [&'static str] {
        &[
            "E2E latency=",
            "End-to-End =>",
            "Generation => Latency:",
            "Training   => Latency:",
            "Time/seq ",
            "|ppo_ep:",
            "| ppo_ep:",
            "PPO Epoch:",
            ", Rank: ",
        ]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if has(text, "E2E latency=") {
            return self.chat(line);
        }
        if has(text, "=> Latency:") {
            return self.chat_block(line);
        }
        if has(text, "Model Parameters:") && has(text, "Samples/sec:") {
            return self.chat_step(line);
        }
        if has(text, "ppo_ep:") {
            return self.chat_counter(text, "epoch", "step", "act_loss");
        }
        if has(text, "PPO Epoch:") {
            return self.chat_counter(text, "Epoch", "Step", "Actor Loss");
        }
        // `Epoch: 0, Step: 3, Rank: 0, loss = 2.23`: only rank 0 is read.
        if number_after(text, ", Rank") == Some(0.0) && has(text, "Step:") {
            return self.chat_counter(text, "Epoch", "Step", "loss");
        }
        Outcome::NotRecognized
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.rlhf.append_observations(out);
        self.sft.append_observations(out);
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let mut out = Vec::new();
        if !self.rlhf.is_empty() {
            let mut facts = self.rlhf.facts("steps", 1, context);
            let mut config = self.config.clone();
            let how = Origin::Derived("samples/s x seconds per step");
            config.number("global_batch_size", self.rlhf_batch(), how);
            let all = self.rlhf.all();
            facts.set_optional("generate_time_s", all.stats(&self.generate, 1, context).map(|stats| stats.json()));
            facts.set_optional("training_time_s", all.stats(&self.training_time, 1, context).map(|stats| stats.json()));
            facts.set_optional("samples_per_s_avg_last", self.rlhf_rate);
            let reading = Reading {
                tool: "deepspeed",
                format: "deepspeed-chat-rlhf",
                importance: Importance::Result,
                facts,
                config,
                ..Reading::default()
            };
            out.push(self.rlhf.clone().reading(reading, 1, context));
        }
        if !self.sft.is_empty() {
            let facts = self.sft.facts("steps", 1, context);
            let (format, config) = ("deepspeed-chat-sft", self.config.clone());
            let (tool, weight) = ("deepspeed", Importance::Steps);
            let (mut sft, mut notes) = (self.sft.clone(), Vec::new());
            let accumulated = context.settings.get("gradient_accumulation_steps").filter(|steps| *steps > 1.0);
            if let Some(steps) = accumulated {
                notes.push(format!("times are per micro-batch; a step has {steps} micro-batches"));
                let batch = context.settings.get("global_batch_size").map(|batch| batch / steps);
                sft.runs.iter_mut().for_each(|run| run.batch = batch);
            }
            let reading = Reading { tool, format, importance: weight, facts, config, notes, ..Reading::default() };
            out.push(sft.reading(reading, 1, context));
        }
        out
    }
}

impl DeepSpeedChat {
    /// Parses the step and loss that a line states for the timing below it.
    fn chat_counter(&mut self, text: &str, epoch: &str, step: &str, loss: &str) -> Outcome {
        let Some(step) = number_after(text, step).filter(|step| *step >= 0.0) else { return Outcome::NotRecognized };
        let epoch = number_after(text, epoch).map(|epoch| epoch.max(0.0) as u64);
        self.pending = (Some(self.counter.step(epoch, step as u64)), number_after(text, loss));
        Outcome::Settings
    }

    /// Parses `|E2E latency=7.99s |Gather latency=0.00s (0.00%) |Generate time=5.26s (65.81%) |Training time=2.52s …`.
    fn chat(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let Some(seconds) = seconds_after(text, "E2E latency=", 1.0) else {
            return Outcome::Unusable("an RLHF step without its latency");
        };
        let (step, loss) = std::mem::take(&mut self.pending);
        let new = self.rlhf.push(Step { step, seconds: Some(seconds), loss, line: line.number, ..Step::default() });
        if let Some(rate) = number_after(text, "CurSamplesPerSec=").filter(|_| new && self.rlhf_batches.len() < 4096) {
            self.rlhf_batches.push(rate * seconds);
        }
        if new {
            for (series, name) in [(&mut self.generate, "Generate time="), (&mut self.training_time, "Training time=")]
            {
                if let Some(value) = seconds_after(text, name, 1.0) {
                    series.push(value);
                }
            }
            self.rlhf_rate = number_after(text, "AvgSamplesPerSec=").or(self.rlhf_rate);
        }
        Outcome::Recognized
    }

    /// Parses the form of newer versions with three lines per step: `End-to-End => Latency: 3.79s, TFLOPs: 10.87,
    /// Samples/sec: 8.44, …, Batch Size: 32, Total Seq. Length: 512`, then `Generation => …` and `Training   => …`.
    fn chat_block(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let Some(seconds) = seconds_after(text, "=> Latency:", 1.0) else {
            return Outcome::Unusable("an RLHF step without its latency");
        };
        if has(text, "Generation") {
            self.generate.push(seconds);
        } else if has(text, "Training") {
            self.training_time.push(seconds);
        } else {
            self.config.number("seq_len", number_after(text, "Seq. Length:"), Origin::File);
            self.rlhf_rate = number_after(text, "Samples/sec:").or(self.rlhf_rate);
            let (step, loss) = std::mem::take(&mut self.pending);
            self.rlhf.push(Step {
                step,
                loss,
                seconds: Some(seconds),
                tflops_per_gpu: number_after(text, "TFLOPs:"),
                batch: number_after(text, "Batch Size:"),
                line: line.number,
                ..Step::default()
            });
        }
        Outcome::Recognized
    }

    /// Parses a step of the first two stages: `Model Parameters: 1.3 B, Latency: 0.65s, TFLOPs: 45.2, Samples/sec:
    /// 24.3, …`.
    fn chat_step(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let Some(seconds) = seconds_after(text, "Latency:", 1.0).filter(|seconds| *seconds > 0.0) else {
            return Outcome::Unusable("a step of DeepSpeed-Chat without its latency");
        };
        self.config.number("parameters_billion", number_after(text, "Model Parameters:"), Origin::File);
        self.config.number("seq_len", number_after(text, "Sequence Length:"), Origin::File);
        // The batch size on this line is per accelerator, and the time is that of a micro-batch.
        self.config.number("micro_batch_size", number_after(text, "Batch Size:"), Origin::File);
        let (step, loss) = std::mem::take(&mut self.pending);
        self.sft.push(Step {
            step,
            loss,
            seconds: Some(seconds),
            tflops_per_gpu: number_after(text, "TFLOPs:"),
            line: line.number,
            ..Step::default()
        });
        Outcome::Recognized
    }

    /// Returns the global batch size of RLHF, if rates and times give an integer.
    fn rlhf_batch(&self) -> Option<f64> {
        let median = median(self.rlhf_batches.iter().copied())?;
        let near = median.round();
        (near >= 1.0 && (median / near - 1.0).abs() < 0.01).then_some(near)
    }
}
