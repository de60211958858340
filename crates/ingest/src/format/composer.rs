//! Composer and llm-foundry: a block per batch, starting with `[batch=2/100]:`, followed by lines like `Train
//! loss/train/total: 11.5012`.

use crate::lines::Line;
use crate::reading::{Origin, number_to_json};
use crate::recognizer::Outcome;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary, TFLOPS_PER_GPU, TOKENS_PER_GPU};
use crate::text::{find, number, parse_integer, text_after};
use crate::training::Step;

/// Recognizer of Composer.
pub type Composer = StepReader<Lines>;

/// Parser of the blocks.
#[derive(Debug, Default)]
pub struct Lines {
    block: Option<Step>,
    /// Tokens per second of all accelerators in the current block. `rates` has the latest values in total and per
    /// device.
    total: Option<f64>,
    rates: Option<(f64, f64)>,
}

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "composer",
        format: "composer",
        triggers: &["[batch="],
        counter: "batches",
        series: &[TOKENS_PER_GPU, TFLOPS_PER_GPU],
        notes: &["rates are averages over the last batches"],
        ..Spec::DEFAULT
    };

    fn in_block(&self) -> bool {
        self.block.is_some()
    }

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let text = line.text.trim();
        if let Some(counter) = text.strip_suffix("]:").and_then(|text| text_after(text, "[batch=")) {
            self.close(log);
            let step = parse_integer(counter);
            if step.is_none() {
                return Outcome::Unusable("a Composer block without a batch number");
            }
            let planned = counter.split_once('/').and_then(|(_, planned)| parse_integer(planned));
            self.block = Some(Step { step, planned, line: line.number, ..Step::default() });
            return Outcome::Recognized;
        }
        let Some((name, value)) = text.strip_prefix("Train ").and_then(|text| text.split_once(": ")) else {
            return Outcome::NotRecognized;
        };
        let (Some(step), Some(value)) = (&mut self.block, number(value)) else { return Outcome::NotRecognized };
        match name {
            "throughput/batches_per_sec" => step.seconds = (value > 0.0).then(|| 1.0 / value),
            "throughput/tokens_per_sec" => self.total = Some(value),
            "throughput/device/tokens_per_sec" => step.tokens_per_gpu = Some(value),
            "throughput/device/flops_per_sec" => step.tflops_per_gpu = Some(value / 1e12),
            "throughput/device/mfu" => step.mfu = Some(value * 100.0),
            "loss/train/total" => step.loss = Some(value),
            "trainer/device_train_microbatch_size" => {
                log.config.number("micro_batch_size", Some(value), Origin::File);
            }
            name if name.starts_with("lr-") => step.learning_rate = Some(value),
            name if find(name, "l2_norm/grad/global").is_some() => step.grad_norm = Some(value),
            _ => {}
        }
        Outcome::Recognized
    }

    /// Ends the block. A block without rate and loss is not a record.
    fn close(&mut self, log: &mut StepLog) {
        let total = self.total.take();
        let Some(step) = self.block.take() else { return };
        if step.seconds.is_none() && step.loss.is_none() && step.tokens_per_gpu.is_none() {
            return;
        }
        log.push(step);
        self.rates = total.zip(step.tokens_per_gpu).or(self.rates);
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        if let Some((total, of_one)) = self.rates.filter(|(_, of_one)| *of_one > 0.0) {
            let gpus = (total / of_one).round();
            summary.facts.set("num_gpus_implied", number_to_json(gpus));
            summary.config.number("num_gpus", Some(gpus), Origin::Derived("tokens/s / tokens/s/device"));
        }
    }
}
