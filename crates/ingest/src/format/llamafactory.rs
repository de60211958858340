//! LLaMA-Factory's `trainer_log.jsonl`: `{"current_steps": 10, "total_steps": 100, "loss": 1.2, "lr": 1e-05, "epoch":
//! 0.1, "percentage": 10.0, "elapsed_time": "0:00:25", "remaining_time": "0:03:45", "throughput": 8123.45,
//! "total_tokens": 204800}`. Times are since the start of the process.

use serde_json::Value;

use crate::json::json_number;
use crate::lines::Line;
use crate::quantity::duration;
use crate::reading::number_to_json;
use crate::recognizer::Outcome;
use crate::series::Series;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary};
use crate::training::{DuplicateDetection, Step};

/// Recognizer of LLaMA-Factory.
pub type LlamaFactory = StepReader<Records>;

/// Parser of the records.
#[derive(Debug, Default)]
pub struct Records {
    before: Option<Progress>,
    /// Input tokens per second of all accelerators, for each interval.
    tokens_per_second: Series,
    /// Whether times are known only in whole seconds.
    whole_seconds: bool,
}

/// Progress at the time of a record.
#[derive(Debug, Clone, Copy)]
struct Progress {
    step: u64,
    planned: u64,
    /// Seconds since the start of the process.
    elapsed: f64,
    /// Input tokens so far, of all accelerators and including padding.
    tokens: Option<f64>,
}

impl StepFormat for Records {
    const SPEC: Spec = Spec {
        tool: "llamafactory",
        format: "llamafactory",
        copies: DuplicateDetection::EveryRank,
        // The first record has no time.
        warmup: 0,
        notes: &["step times are means over the steps between two records, and include saving checkpoints"],
        ..Spec::DEFAULT
    };

    fn line(&mut self, _line: Line<'_>, _log: &mut StepLog) -> Outcome {
        Outcome::NotRecognized
    }

    fn json(&mut self, record: &Value, line: u64, log: &mut StepLog) -> Outcome {
        let count = |name: &str| record.get(name).and_then(Value::as_u64);
        let whole = record.get("elapsed_time").and_then(Value::as_str).and_then(duration);
        let (Some(step), Some(planned), Some(whole)) = (count("current_steps"), count("total_steps"), whole) else {
            return Outcome::NotRecognized;
        };
        let number = |name: &str| record.get(name).and_then(json_number);
        let tokens = number("total_tokens").filter(|tokens| *tokens > 0.0);
        // `throughput` is the quotient of tokens and elapsed time, which is more precise than the time in whole seconds.
        let exact = tokens.zip(number("throughput")).map(|(tokens, rate)| tokens / rate);
        let exact = exact.filter(|exact| (exact - whole - 0.5).abs() < 1.0);
        let now = Progress { step, planned, elapsed: exact.unwrap_or(whole), tokens };
        // Evaluations are records, too, so an interval does not include the one before it.
        let before = self.before.replace(now).filter(|before| before.precedes(&now));
        let Some(loss) = number("loss") else { return Outcome::Recognized };
        let interval = before.map(|before| (now.elapsed - before.elapsed, (step - before.step) as f64));
        let is_new = log.push(Step {
            step: Some(step),
            planned: Some(planned),
            seconds: interval.map(|(seconds, steps)| seconds / steps),
            loss: Some(loss),
            // Until 0.8 the name was `learning_rate`.
            learning_rate: number("lr").or_else(|| number("learning_rate")),
            memory_gb: number("vram_allocated").map(|gib| gib * 1.073_741_824),
            line,
            ..Step::default()
        });
        if is_new && let Some((seconds, _)) = interval {
            self.whole_seconds |= exact.is_none();
            if let Some((before, now)) = before.and_then(|before| before.tokens).zip(tokens) {
                self.tokens_per_second.push((now - before) / seconds);
            }
        }
        Outcome::Recognized
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        summary.series("tokens_per_s", &self.tokens_per_second);
        let tokens = self.before.and_then(|last| last.tokens);
        summary.facts.set_optional("consumed_tokens_last", tokens.map(number_to_json));
        let most = summary.all().memory.max();
        summary.facts.set_optional("max_memory_gb", most);
        if self.whole_seconds {
            summary.notes.push("times are in whole seconds, so short intervals are imprecise".to_owned());
        }
    }
}

impl Progress {
    /// Whether `later` is of the same process and later, by at least one step.
    fn precedes(&self, later: &Progress) -> bool {
        self.step < later.step
            && self.planned == later.planned
            && self.elapsed < later.elapsed
            && self.tokens.is_none_or(|tokens| later.tokens.is_some_and(|later| tokens < later))
    }
}
