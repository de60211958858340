//! Levanter: `Progress on:train 1.20kit/10.0kit rate:2.3it/s remaining:1:03:45 elapsed:08:40 postfix:loss=3.21`.

use crate::lines::Line;
use crate::recognizer::Outcome;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader};
use crate::text::{number_after, parse_abbreviated_number, parse_leading_number, text_after};
use crate::training::Step;

/// Recognizer of Levanter.
pub type Levanter = StepReader<Lines>;

/// Parser of the progress lines.
#[derive(Debug, Default)]
pub struct Lines;

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "levanter",
        format: "levanter",
        triggers: &["Progress on:train"],
        notes: &["step times are from the progress bar, which smooths and rounds them"],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let Some(rest) = text_after(line.text, "Progress on:train") else { return Outcome::NotRecognized };
        let rate = text_after(rest, "rate:")
            .and_then(parse_leading_number)
            .filter(|(rate, _)| rate.is_finite() && *rate > 0.0);
        let seconds = rate.and_then(|(rate, unit)| match unit {
            unit if unit.starts_with("it/s") => Some(1.0 / rate),
            unit if unit.starts_with("s/it") => Some(rate),
            _ => None,
        });
        let Some(seconds) = seconds else {
            return Outcome::Unusable("a Levanter progress bar without a rate");
        };
        let (count, planned) = rest.split_once("it/").unwrap_or((rest, ""));
        let exact = |text: &str| parse_abbreviated_number(text).filter(|count| *count >= 0.0).map(|count| count as u64);
        log.push(Step {
            // Counts in thousands (`1.20k`) are rounded to three digits, so several steps may have the same.
            step: exact(count).filter(|_| !count.trim_end().ends_with(|c: char| c.is_ascii_alphabetic())),
            planned: exact(planned),
            seconds: Some(seconds),
            loss: number_after(rest, "loss="),
            line: line.number,
            ..Step::default()
        });
        Outcome::Recognized
    }
}
