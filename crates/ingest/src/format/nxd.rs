//! Training examples of neuronx-distributed: `LOG Fri Jun 21 17:26:23 2024 - (0, 389) step_loss : 6.1875 learning_rate
//! : 1.20e-04 throughput : 3.92 grad-norm : 2.0`. The throughput is in sequences per second.

use crate::lines::Line;
use crate::recognizer::Outcome;
use crate::series::Series;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary};
use crate::text::{number_after, parse_leading_number, text_after};
use crate::training::{DuplicateDetection, Step};

/// Recognizer of neuronx-distributed.
pub type Nxd = StepReader<Lines>;

/// Parser of the step lines.
#[derive(Debug, Default)]
pub struct Lines {
    rate: Series,
}

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "nxd",
        format: "nxd-log",
        triggers: &["step_loss"],
        copies: DuplicateDetection::EveryRank,
        notes: &["throughput is in sequences per second, averaged over the last steps"],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let text = line.text;
        let Some(loss) = number_after(text, "step_loss") else { return Outcome::NotRecognized };
        let Some(rate) = number_after(text, "throughput").filter(|rate| *rate > 0.0) else {
            return Outcome::Unusable("a neuronx-distributed step without a throughput");
        };
        // `(epoch, step)`
        let step = text_after(text, "- (")
            .and_then(parse_leading_number)
            .and_then(|(_, rest)| parse_leading_number(rest.strip_prefix(',')?));
        let Some((step, _)) = step.filter(|(step, _)| *step >= 0.0) else {
            return Outcome::Unusable("a neuronx-distributed step without a counter");
        };
        let new = log.push(Step {
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
        Outcome::Recognized
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        summary.series("samples_per_s", &self.rate);
        let batch = summary.context.settings.get("global_batch_size").filter(|batch| *batch > 0.0);
        match (batch, summary.training.runs.as_mut_slice()) {
            (Some(batch), [run]) => {
                for rate in self.rate.kept() {
                    run.seconds.push(batch / rate);
                }
                summary.notes.push("step times are the batch size divided by the throughput".to_owned());
            }
            (Some(_), _) => {}
            (None, _) => {
                let missing = "the log does not state the batch size; step times require --set global_batch_size=N";
                summary.notes.push(missing.to_owned());
            }
        }
    }
}
