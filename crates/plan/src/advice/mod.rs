//! Advice: best-practice rules, each tried on the current scenario.
//!
//! A rule consists of a condition, changes of one or more knobs, a reason and its source. The gain is computed, not
//! claimed: the changed scenario is estimated again, and rules without a gain are omitted. If the scenario cannot run,
//! only changes that make it run are returned ([`fit`]).

mod case;
pub mod fit;
mod rules;
mod trial;

pub use rules::rules;

use crate::engine;
use crate::estimate::{Direction, Estimate, Metric, MetricId};
use crate::knob::{Knob, Setting};
use crate::scenario::{Parts, Scenario};
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_core::{sort, units};
use case::Case;
use trial::Trial;

/// Knobs and the values to set them to.
pub type Changes = Vec<(Knob, Setting)>;

/// Maximum number of estimates per call of [`advise`].
pub const MAX_TRIALS: usize = 90;
/// Minimum relative gain to report: smaller gains are within the variation between runs of the same job.
const MIN_GAIN: f64 = 0.005;

/// Objective of the advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Objective {
    /// Tokens per second.
    #[default]
    Throughput,
    /// p99 request latency; in training, the duration of the whole run.
    Latency,
    /// Dollars per token.
    Cost,
    /// Joules per token.
    Energy,
    /// Model FLOPs utilization.
    Mfu,
    /// Memory of the fullest device.
    Memory,
}

impl Objective {
    /// Names on the command line and in the user interface.
    pub const NAMES: [&'static str; 6] = ["throughput", "latency", "cost", "energy", "mfu", "memory"];
    /// All objectives.
    pub const ALL: [Objective; 6] = [
        Objective::Throughput,
        Objective::Latency,
        Objective::Cost,
        Objective::Energy,
        Objective::Mfu,
        Objective::Memory,
    ];

    /// Name of the objective.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Objective::Throughput => "throughput",
            Objective::Latency => "latency",
            Objective::Cost => "cost",
            Objective::Energy => "energy",
            Objective::Mfu => "mfu",
            Objective::Memory => "memory",
        }
    }

    /// Metric of the objective in a scenario.
    #[must_use]
    pub fn metric(self, scenario: &Scenario) -> &'static Metric {
        match (self, scenario.mode(), scenario.engine) {
            (Objective::Throughput, ..) => MetricId::TokensPerSec.metric(),
            (Objective::Latency, Mode::Inference, _) => MetricId::P99Ms.metric(),
            (Objective::Latency, Mode::Training, Engine::SemiEmpirical) => MetricId::StepTimeMs.metric(),
            // The step time would decrease with a smaller batch, without any benefit.
            (Objective::Latency, Mode::Training, _) => MetricId::TimeToTrainH.metric(),
            (Objective::Cost, ..) => MetricId::DollarPer1kTokens.metric(),
            (Objective::Energy, ..) => MetricId::JoulesPerToken.metric(),
            // In serving, and for the legacy engines, the share of peak FLOP/s spent on useful work.
            (Objective::Mfu, Mode::Training, Engine::Analytical | Engine::Event) => MetricId::Mfu.metric(),
            (Objective::Mfu, ..) => MetricId::FlopUtilization.metric(),
            (Objective::Memory, ..) => MetricId::PeakMemGb.metric(),
        }
    }
}

/// Best-practice rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Short description of what to do.
    pub name: &'static str,
    /// Reason, in one sentence.
    pub reason: &'static str,
    /// Source of the rule.
    pub source: &'static str,
    /// Mode that the rule applies to; `None`: both.
    mode: Option<Mode>,
    /// Engine that can estimate the effect; `None`: all.
    engine: Option<Engine>,
    /// Appends proposed changes if the condition of the rule is met.
    propose: fn(&Case<'_>, &mut Vec<Changes>),
    /// Minimum gain that justifies the side effects of the changes.
    worth: fn(&Case<'_>, &Changes) -> f64,
}

/// Latency that a piece of advice makes worse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyLoss {
    /// TTFT or TPOT.
    pub metric: &'static Metric,
    /// Its value without the changes.
    pub before: f64,
    /// Its value with the changes.
    pub after: f64,
}

impl std::fmt::Display for LatencyLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.metric.label, units::relative(self.before, self.after))
    }
}

/// An applied rule: changes and their effect.
#[derive(Debug, Clone)]
pub struct Advice {
    /// The rule.
    pub rule: &'static Rule,
    /// Description of the changes: `tp 8 → 4, micro 1 → 2`.
    pub text: String,
    /// Knobs to set, in addition to the overrides in effect.
    pub changes: Changes,
    /// Metric of the objective.
    pub metric: &'static Metric,
    /// Value of the metric without the changes.
    pub before: f64,
    /// Value of the metric with the changes.
    pub after: f64,
    /// Relative improvement of the metric: 0.18 is 18 % more tokens/s, or 18 % less time.
    pub gain: f64,
    /// TTFT and TPOT, if the changes make them worse by more than a few percent.
    pub latency_losses: Vec<LatencyLoss>,
    /// Whether the changes make a scenario run that cannot run without them. `gain` is then relative to the
    /// hypothetical estimate.
    pub fixes: bool,
    /// Tokens per second with the changes.
    pub rate: f64,
}

impl Advice {
    /// Whether the advice comes from the search of [`fit`] rather than from a rule.
    #[must_use]
    pub fn is_plain_fix(&self) -> bool {
        std::ptr::eq(self.rule, &raw const rules::MAKE_IT_FIT)
    }

    /// The latencies that become worse: `but TTFT +12 %, TPOT +8 %`. `None` if there are none.
    #[must_use]
    pub fn objection(&self) -> Option<String> {
        let losses: Vec<String> = self.latency_losses.iter().map(LatencyLoss::to_string).collect();
        (!losses.is_empty()).then(|| format!("but {}", losses.join(", ")))
    }
}

/// Relative improvement of a metric.
fn gain(metric: &Metric, before: f64, after: f64) -> f64 {
    let change = match metric.better {
        Direction::Lower if before.is_infinite() && after.is_finite() => 1.0,
        // Memory has no better direction, but the objective is less memory.
        Direction::Lower | Direction::Neutral => 1.0 - after / before,
        Direction::Higher => after / before - 1.0,
    };
    if change.is_finite() { change } else { 0.0 }
}

/// Tries the rules on a scenario with its estimate and returns the advice, largest gain first. Makes at most
/// [`MAX_TRIALS`] estimates. The schedule is ignored: gains are those of the workload as a whole. If the scenario
/// cannot run, returns only changes that make it run, ordered by the remaining value of the metric.
///
/// If the scenario's engine simulates, the closed form of the same physics is used instead: that many simulations take
/// too long for interactive use, and their random variation would hide small gains.
#[must_use]
pub fn advise(scenario: &Scenario, parts: &Parts, estimate: &Estimate, objective: Objective) -> Vec<Advice> {
    if scenario.engine.simulates() {
        let twin = engine::analytical_scenario(scenario);
        return advise(&twin, parts, &engine::estimate(&twin), objective);
    }
    let mut trial = Trial::new(scenario, parts, estimate, objective, MAX_TRIALS);
    let case = Case::of(scenario, parts, trial.before());
    let mut all: Vec<Advice> = Vec::new();
    let mut proposals: Vec<Changes> = Vec::new();
    for rule in rules().filter(|rule| rule.applies_to(scenario)) {
        proposals.clear();
        (rule.propose)(&case, &mut proposals);
        let mut best: Option<Advice> = None;
        for changes in proposals.drain(..) {
            // Skip changes that an earlier rule has already proposed.
            if changes.is_empty() || all.iter().any(|known| known.changes == changes) {
                continue;
            }
            let worth = (rule.worth)(&case, &changes);
            let Some(advice) = trial.advice(rule, changes, worth) else { continue };
            if best.as_ref().is_none_or(|best| advice.gain > best.gain) {
                best = Some(advice);
            }
        }
        all.extend(best);
    }
    if !trial.fits() {
        for advice in fit::search(&mut trial, &case) {
            if !all.iter().any(|known| known.changes == advice.changes) {
                all.push(advice);
            }
        }
    }
    sort::by(&mut all, |a, b| b.gain.total_cmp(&a.gain));
    drop_dominated(&mut all);
    for advice in &mut all {
        advice.text = trial.words(&advice.changes);
    }
    all
}

/// From advice in order of gain, removes advice that contains all changes of a better one; advice that gains less than
/// [`MIN_GAIN`] more than one with a part of its changes; and all but the best of those on the same knobs. Exceptions
/// are formats, which differ in more than speed, and ways to make a scenario run: all of these are kept.
fn drop_dominated(all: &mut Vec<Advice>) {
    let formats = [Knob::Precision, Knob::Compute, Knob::KvPrecision];
    // If a part of the changes gains nearly as much, the others are not needed.
    let nearly = |advice: &Advice, part: &Advice| {
        part.changes.len() < advice.changes.len()
            && part.changes.iter().all(|change| advice.changes.contains(change))
            && advice.gain < part.gain + MIN_GAIN
    };
    let spare: Vec<bool> =
        all.iter().map(|advice| !advice.fixes && all.iter().any(|part| nearly(advice, part))).collect();
    let mut kept: Vec<Advice> = Vec::with_capacity(all.len());
    for (advice, spare) in all.drain(..).zip(spare) {
        let more = |better: &Advice| better.changes.iter().all(|change| advice.changes.contains(change));
        let same = |better: &Advice| {
            let within = |a: &Changes, b: &Changes| a.iter().all(|(knob, _)| b.iter().any(|(other, _)| other == knob));
            within(&better.changes, &advice.changes) && within(&advice.changes, &better.changes)
        };
        let choice = advice.fixes || advice.changes.iter().any(|(knob, _)| formats.contains(knob));
        if !spare && !kept.iter().any(|better| more(better) || (!choice && same(better))) {
            kept.push(advice);
        }
    }
    *all = kept;
}

impl Rule {
    /// Whether the rule applies to the mode and engine of the scenario.
    fn applies_to(&self, scenario: &Scenario) -> bool {
        self.mode.is_none_or(|mode| mode == scenario.mode())
            && self.engine.is_none_or(|engine| engine == scenario.engine)
    }
}
