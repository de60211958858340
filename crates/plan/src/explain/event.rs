//! Derivations of simulated metrics: sums and quotients of counted values, and the knobs that the simulation depends
//! on. The simulated events have no equation; the timeline shows them.

use super::expression::sum;
use super::money::working_accelerators;
use super::{Context, Origin, Term, serving, training};
use crate::estimate::{MetricId, Serving, Simulated, TimePart, Training};
use crate::knob::Knob;
use atlas_config::Mode;

/// Derivation of a metric. Metrics that the simulation does not affect (memory, power, prices) are derived by the
/// closed form.
pub(super) fn explain(whole: &Context<'_>, id: MetricId, value: f64) -> Option<Term> {
    let closed = || match whole.scenario.mode() {
        Mode::Training => training::explain(whole, id, value),
        Mode::Inference => serving::explain(whole, id, value),
    };
    let Some((detail, simulated)) = whole.estimate.detail.and_then(|d| Some((d, d.simulated?))) else {
        return closed();
    };
    let described = Reported { whole, simulated };
    match (detail.training, detail.serving) {
        (Some(training), _) => described.training(&training, id, value),
        (_, Some(serving)) => described.serving(&serving, id, value),
        _ => None,
    }
    .or_else(closed)
}

struct Reported<'a> {
    whole: &'a Context<'a>,
    simulated: Simulated,
}

impl Reported<'_> {
    fn knob(&self, symbol: &'static str, knob: Knob) -> Term {
        self.whole.inputs.knob(symbol, knob)
    }

    /// Counted value, and the knobs that it depends on.
    fn counted(&self, symbol: &'static str, name: &str, unit: &'static str, value: f64, how: &'static str) -> Term {
        let knobs: &[Knob] = match self.whole.scenario.mode() {
            Mode::Training => &[Knob::Seed, Knob::Steps, Knob::Jitter, Knob::SlowNodes, Knob::SlowFactor],
            Mode::Inference => &[
                Knob::Seed,
                Knob::Replications,
                Knob::Requests,
                Knob::Arrivals,
                Knob::ArrivalCv,
                Knob::PromptCv,
                Knob::GenerateCv,
            ],
        };
        let bearing = knobs.iter().map(|knob| self.knob(knob.name(), *knob)).collect();
        Term::input(symbol, name.to_owned(), unit, value).from(Origin::Engine(how)).depending_on(bearing)
    }

    /// Step time in seconds: the sum of the stages' integrated times, averaged over stages and steps.
    fn step(&self) -> Option<Term> {
        let detail = self.whole.estimate.detail;
        let parts = detail.iter().flat_map(|detail| detail.time.parts()).filter(|(_, seconds)| *seconds != 0.0);
        let parts = parts.map(|(part, seconds)| {
            let (how, bearing) = match part {
                TimePart::Stragglers => (
                    "simulated step minus the same step on uniform hardware",
                    vec![
                        self.knob("n_slow", Knob::SlowNodes),
                        self.knob("f_slow", Knob::SlowFactor),
                        self.knob("cv", Knob::Jitter),
                    ],
                ),
                TimePart::Failures => (
                    "lost work, restarts and checkpoints of a long simulated run, per step",
                    vec![
                        self.knob("mtbf", Knob::NodeMtbf),
                        self.knob("tau", Knob::CheckpointInterval),
                        self.knob("C", Knob::Checkpoint),
                        self.knob("R", Knob::Restart),
                    ],
                ),
                TimePart::PipelineBubble => ("integral: time that stages wait for each other", Vec::new()),
                TimePart::PipelineTransfer => ("integral: time that stages wait for transfers", Vec::new()),
                TimePart::DataParallel => {
                    ("integral: time that stages wait for collectives of their group", Vec::new())
                }
                _ => ("integral: compute time of the stages, split as in the closed form", Vec::new()),
            };
            Term::part("T", part, "s", seconds).from(Origin::Engine(how)).depending_on(bearing)
        });
        let seconds = self.whole.total.step_time_ms? / 1000.0;
        Some(Term::stated("T", "optimizer step time, mean over the simulated steps", "s", seconds, sum(parts)))
    }

    fn training(&self, training: &Training, id: MetricId, value: f64) -> Option<Term> {
        let seen = self.simulated.training?;
        Some(match id {
            MetricId::TokensPerSec => {
                let tokens = Term::input("D", "tokens per step", "tok", training.tokens_per_step)
                    .from(Origin::Engine("sequences per step × tokens per sequence"));
                Term::stated("X", "", "tok/s", value, tokens / self.step()?)
            }
            MetricId::StepTimeMs => Term::stated("T_ms", "", "ms", value, self.step()? * 1000.0),
            MetricId::Goodput => self.counted("g", "", "", value, "useful work / wall-clock time of a long run"),
            MetricId::StragglerShare => {
                let how = "(simulated step - the same step on uniform hardware) / simulated step";
                self.counted("s", "", "", value, how)
            }
            MetricId::FailuresPerDay => {
                let day = Term::input("day", "hours of a day", "h", 24.0).from(Origin::Engine("by definition"));
                let rate = self.knob("nodes", Knob::NumNodes) * day / self.knob("mtbf", Knob::NodeMtbf);
                if seen.failures_per_day <= 0.0 {
                    return Some(self.counted("f", "", "", value, "no node fails"));
                }
                Term::stated("f", "", "", value, rate)
            }
            _ => return None,
        })
    }

    fn serving(&self, serving: &Serving, id: MetricId, value: f64) -> Option<Term> {
        let output = || self.knob("OSL", Knob::Generate);
        let rate = |value| {
            self.counted(
                "R",
                "requests served per second",
                "req/s",
                value,
                "counted between the first counted arrival and the last one",
            )
        };
        let spread = |what, value| self.counted(what, "", "ms", value, "over the counted requests of all runs");
        Some(match id {
            MetricId::TokensPerSec => Term::stated("X", "", "tok/s", value, rate(serving.requests_per_sec) * output()),
            MetricId::RequestsPerSec => rate(value),
            MetricId::TpotMs => spread("TPOT", value),
            MetricId::TtftMs if serving.first_token.total().is_finite() => {
                let parts = serving.first_token.parts().filter(|(_, ms)| *ms > 0.0).map(|(part, ms)| {
                    Term::part("t", part, "ms", ms).from(Origin::Engine("mean over the counted requests"))
                });
                let whole = self.counted("TTFT", "", "ms", value, "mean over the counted requests");
                Term::stated("TTFT", "", "ms", value, sum(parts)).depending_on(whole.dependencies)
            }
            MetricId::TtftMs | MetricId::TtftP99Ms => spread("TTFT", value),
            MetricId::ItlP99Ms => spread("ITL", value),
            MetricId::P50Ms | MetricId::P95Ms | MetricId::P99Ms => spread("E2E", value),
            MetricId::GoodputRpsPerAccel => {
                let goodput = self.simulated.serving?.goodput;
                let all =
                    self.counted("R_good", "requests within limits", "req/s", goodput, "counted in the simulation");
                Term::stated("R_a", "", "req/s", value, all / working_accelerators(self.whole))
            }
            MetricId::GoodShare
            | MetricId::GoodputRps
            | MetricId::WaitingRequests
            | MetricId::KvUsed
            | MetricId::PreemptionsPerRequest => self.counted("n", "", "", value, "counted in the simulation"),
            _ => return None,
        })
    }
}
