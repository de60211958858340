//! Training examples of neuronx-distributed: `LOG Fri Jun 21 17:26:23 2024 - (0, 389) step_loss : 6.1875
//! learning_rate : 1.20e-04 throughput : 3.92 grad-norm : 2.0`, the throughput in sequences a second.

use crate::lines::Line;
use crate::observation::Observation;
use crate::reading::{Config, Context, Reading, Weight};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text::{after, leading, number_after};
use crate::training::{Copies, Step, Training, ends};

/// Reads its step lines.
#[derive(Debug)]
pub struct Nxd {
    training: Training,
    rate: Series,
}

impl Default for Nxd {
    fn default() -> Nxd {
        Nxd { training: Training::new(Copies::EveryRank), rate: Series::default() }
    }
}

impl Recognizer for Nxd {
    fn triggers(&self) -> &'static [&'static str] {
        &["step_loss"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let Some(loss) = number_after(text, "step_loss") else { return Outcome::No };
        let Some(rate) = number_after(text, "throughput").filter(|rate| *rate > 0.0) else {
            return Outcome::Skipped("a neuronx-distributed step without a throughput");
        };
        // `(epoch, step)`
        let step = after(text, "- (").and_then(leading).and_then(|(_, rest)| leading(rest.strip_prefix(',')?));
        let Some((step, _)) = step.filter(|(step, _)| *step >= 0.0) else {
            return Outcome::Skipped("a neuronx-distributed step without a counter");
        };
        let new = self.training.push(Step {
            step: Some(step as u64),
            loss: Some(loss),
            learning_rate: number_after(text, "learning_rate"),
            grad_norm: number_after(text, "grad-norm"),
            line: line.number,
            ..Step::default()
        });
        if new {
            self.rate.push(rate);
        }
        Outcome::Took
    }

    fn observed(&mut self, out: &mut Vec<Observation>) {
        self.training.observed(out);
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.training.is_empty() {
            return Vec::new();
        }
        let mut facts = self.training.facts("steps", 1, context);
        facts.some("samples_per_s", self.training.all().stats(&self.rate, 1, context).map(|stats| stats.json()));
        facts.some("loss", ends(&self.training.all().loss));
        let mut notes = vec!["throughput is sequences a second, averaged over the last steps".to_owned()];
        let batch = context.settings.get("global_batch_size").filter(|batch| *batch > 0.0);
        match (batch, self.training.runs.as_mut_slice()) {
            (Some(batch), [run]) => {
                for rate in self.rate.kept() {
                    run.seconds.push(batch / rate);
                }
                notes.push("step times are the batch over the throughput".to_owned());
            }
            (Some(_), _) => {}
            (None, _) => {
                notes.push("the batch is not in the log: --set global_batch_size=N gives step times".to_owned())
            }
        }
        let reading = Reading {
            tool: "nxd",
            format: "nxd-log",
            weight: Weight::Steps,
            facts,
            config: Config::default(),
            notes,
            ..Reading::default()
        };
        vec![self.training.reading(reading, 1, context)]
    }
}
