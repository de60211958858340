//! InternEvo and InternLM: `tflops=189.8,step=1,loss=11.6,tgs (tokens/gpu/second)=4274.45,lr=6e-07,…`.

use crate::lines::Line;
use crate::reading::Origin;
use crate::recognizer::Outcome;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary, TFLOPS_PER_GPU, TOKENS_PER_GPU};
use crate::text::number_after;
use crate::training::Step;

/// Recognizer of InternEvo.
pub type InternEvo = StepReader<Lines>;

/// Parser of the step lines.
#[derive(Debug, Default)]
pub struct Lines {
    tokens: Option<f64>,
}

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "internevo",
        format: "internevo",
        triggers: &["tgs (tokens/gpu/second)="],
        series: &[TOKENS_PER_GPU, TFLOPS_PER_GPU],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let text = line.text;
        let Some(rate) = number_after(text, "tgs (tokens/gpu/second)=") else { return Outcome::NotRecognized };
        // `step=` may also be the end of another word: the step number must follow a comma or a blank.
        let step = [",step=", " step=", ",step: "].iter().find_map(|name| number_after(text, name));
        let Some(step) = step else { return Outcome::Unusable("an InternEvo step without a counter") };
        let loss = [",loss=", " loss="].iter().find_map(|name| number_after(text, name));
        log.push(Step {
            step: Some(step as u64),
            loss,
            learning_rate: number_after(text, "lr="),
            grad_norm: number_after(text, "grad_norm="),
            tokens_per_gpu: Some(rate),
            tflops_per_gpu: number_after(text, "tflops="),
            line: line.number,
            ..Step::default()
        });
        self.tokens = number_after(text, "num_consumed_tokens=").or(self.tokens);
        log.config.number("gradient_accumulation_steps", number_after(text, "micro_num="), Origin::File);
        log.config.number("seq_len", number_after(text, "largest_length="), Origin::Derived("longest sequence"));
        Outcome::Recognized
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        summary.facts.set_optional("consumed_tokens_last", self.tokens);
    }
}
