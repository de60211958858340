//! The playbook: rules of practice, each tried on the current scenario.
//!
//! A rule is a condition under which it has something to propose, one or more knobs to turn, a reason and its source.
//! What it gains is not claimed but computed: the changed scenario is estimated again, and what does not gain is not
//! shown. Where the scenario cannot run, only what makes it run is shown ([`fit`]).

mod case;
pub mod fit;
mod rules;
mod trial;

pub use rules::rules;

use crate::engine;
use crate::estimate::{Better, Estimate, Metric, MetricId, Verdict};
use crate::knob::{Knob, Setting};
use crate::scenario::{Parts, Scenario};
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_core::sort;
use case::Case;
use trial::Trial;

/// Knobs and the values to set them to.
pub type Changes = Vec<(Knob, Setting)>;

/// Maximum estimates that one call of [`advise`] makes.
pub const MOST_TRIALS: usize = 90;
/// Least gain that is worth a line: below it lies what any two runs of the same job differ by.
const LEAST_GAIN: f64 = 0.005;

/// What is to become better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Objective {
    /// Tokens per second.
    #[default]
    Throughput,
    /// Time of a request, p99; of the whole run in training.
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
    /// Its words on the command line and on screens.
    pub const NAMES: [&'static str; 6] = ["throughput", "latency", "cost", "energy", "mfu", "memory"];
    /// All of them.
    pub const ALL: [Objective; 6] = [
        Objective::Throughput,
        Objective::Latency,
        Objective::Cost,
        Objective::Energy,
        Objective::Mfu,
        Objective::Memory,
    ];

    /// Its name.
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

    /// The figure it looks at in a scenario.
    #[must_use]
    pub fn metric(self, scenario: &Scenario) -> &'static Metric {
        match (self, scenario.mode(), scenario.engine) {
            (Objective::Throughput, ..) => MetricId::TokensPerSec.metric(),
            (Objective::Latency, Mode::Inference, _) => MetricId::P99Ms.metric(),
            (Objective::Latency, Mode::Training, Engine::SemiEmpirical) => MetricId::StepTimeMs.metric(),
            // A step's time would fall with the batch, and nothing would be won.
            (Objective::Latency, Mode::Training, _) => MetricId::TimeToTrainH.metric(),
            (Objective::Cost, ..) => MetricId::DollarPer1kTokens.metric(),
            (Objective::Energy, ..) => MetricId::JoulesPerToken.metric(),
            // In serving, and to the legacy engines, it is the share of the peak that does useful work.
            (Objective::Mfu, Mode::Training, Engine::Analytical | Engine::Event) => MetricId::Mfu.metric(),
            (Objective::Mfu, ..) => MetricId::FlopUtilization.metric(),
            (Objective::Memory, ..) => MetricId::PeakMemGb.metric(),
        }
    }
}

/// A rule of the trade.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// What it says to do, in a few words.
    pub name: &'static str,
    /// Why, in one sentence.
    pub reason: &'static str,
    /// Its source.
    pub source: &'static str,
    /// The mode it speaks of; both where unset.
    mode: Option<Mode>,
    /// The engine that can tell; any where unset.
    engine: Option<Engine>,
    /// Proposes changes where its condition holds.
    propose: fn(&Case<'_>, &mut Vec<Changes>),
    /// The least gain for which changes are worth their side effects.
    worth: fn(&Case<'_>, &Changes) -> f64,
}

/// A rule applied: what to change, and what comes of it.
#[derive(Debug, Clone)]
pub struct Advice {
    /// The rule behind it.
    pub rule: &'static Rule,
    /// What to change, in words: `tp 8 → 4, micro 1 → 2`.
    pub text: String,
    /// The knobs to set, on top of the overrides in effect.
    pub changes: Changes,
    /// The figure that becomes better.
    pub metric: &'static Metric,
    /// The figure now.
    pub before: f64,
    /// The figure with the changes.
    pub after: f64,
    /// By which share of itself the figure becomes better: 0.18 is 18 % more tokens/s, or 18 % less time.
    pub gain: f64,
    /// Whether a scenario that cannot run can run with it; `gain` compares with what could not run then.
    pub fixes: bool,
    /// Tokens per second with the changes.
    pub rate: f64,
    /// Whether it runs with the changes: always so.
    pub after_verdict: Verdict,
}

impl Advice {
    /// Whether it comes from no rule, but from the search for a smallest change that runs.
    #[must_use]
    pub fn is_plain_fix(&self) -> bool {
        std::ptr::eq(self.rule, &raw const rules::MAKE_IT_FIT)
    }
}

/// By which share of `before` the figure becomes better.
fn gain(metric: &Metric, before: f64, after: f64) -> f64 {
    let change = match metric.better {
        Better::Lower if before.is_infinite() && after.is_finite() => 1.0,
        // Memory is neither good nor bad, but advice on it aims at less.
        Better::Lower | Better::Neutral => 1.0 - after / before,
        Better::Higher => after / before - 1.0,
    };
    if change.is_finite() { change } else { 0.0 }
}

/// What to change, best first: rules tried on the scenario with its estimate. At most [`MOST_TRIALS`] estimates
/// are made. A schedule is left out: gains are those of the workload as a whole. Where the scenario cannot run, what makes it run comes first and alone, by what is left of the figure.
///
/// Where the scenario's engine simulates, the closed form of the same physics judges instead: sixty simulations are no
/// answer while one looks at a screen, and their chance would hide small gains.
#[must_use]
pub fn advise(scenario: &Scenario, parts: &Parts, estimate: &Estimate, objective: Objective) -> Vec<Advice> {
    if scenario.engine.simulates() {
        let twin = engine::at_once(scenario);
        return advise(&twin, parts, &engine::estimate(&twin), objective);
    }
    let mut trial = Trial::new(scenario, parts, estimate, objective, MOST_TRIALS);
    let case = Case::of(scenario, parts, trial.before());
    let mut all: Vec<Advice> = Vec::new();
    let mut proposals: Vec<Changes> = Vec::new();
    for rule in rules().filter(|rule| rule.speaks_of(scenario)) {
        proposals.clear();
        (rule.propose)(&case, &mut proposals);
        let mut best: Option<Advice> = None;
        for changes in proposals.drain(..) {
            // What an earlier rule said in other words is not tried again.
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

/// Of advice in order of its gain, leaves out what makes all changes of better advice, and more; what gains no more worth a
/// line than a part of its changes; and of advice on the same knobs all but the best. Formats differ in more than speed, so that each is shown, and so is each way to make
/// a scenario run.
fn drop_dominated(all: &mut Vec<Advice>) {
    let formats = [Knob::Precision, Knob::Compute, Knob::KvPrecision];
    // What a part of the changes nearly reaches needs no more of them.
    let nearly = |advice: &Advice, part: &Advice| {
        part.changes.len() < advice.changes.len()
            && part.changes.iter().all(|change| advice.changes.contains(change))
            && advice.gain < part.gain + LEAST_GAIN
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
    /// Whether the rule can say anything about the scenario.
    fn speaks_of(&self, scenario: &Scenario) -> bool {
        self.mode.is_none_or(|mode| mode == scenario.mode())
            && self.engine.is_none_or(|engine| engine == scenario.engine)
    }
}
