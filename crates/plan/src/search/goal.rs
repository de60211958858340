//! Goal seek: finds single knobs or hardware parameters that bring a metric to a target value.

use super::around::axis_around;
use super::condition::fits;
use super::sensitivity::{Hardware, Lever};
use crate::engine::estimate_into;
use crate::estimate::{Estimate, Metric, MetricId};
use crate::knob::{Group, Knob, Setting, ValueType};
use crate::scenario::{Parts, Scenario};
use atlas_config::Mode;
use atlas_core::math;
use atlas_core::sort;
use atlas_core::units::significant;

/// Single change that reaches the goal.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Knob or hardware parameter to change.
    pub lever: Lever,
    /// Required setting of a knob; `None` for a hardware parameter.
    pub setting: Option<Setting>,
    /// Required factor on a hardware parameter; `None` for a knob.
    pub factor: Option<f64>,
    /// Resulting value of the metric.
    pub value: f64,
}

/// Result of a goal seek.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// Metric.
    pub metric: &'static Metric,
    /// Current value of the metric; `None` if the scenario cannot run, or has no finite value.
    pub now: Option<f64>,
    /// Wanted value of the metric.
    pub wanted: f64,
    /// Single changes that reach the goal: settings first, then properties of the traffic, the target and the hardware.
    pub solutions: Vec<Solution>,
    /// Knob that comes closest to the goal, if no knob reaches it.
    pub closest: Option<Solution>,
}

/// Number of values of a knob that are tried over its range.
const STEPS: u32 = 33;
/// Range of the factors on a hardware parameter: from the reciprocal of this to this.
const MAX_HARDWARE_FACTOR: f64 = 16.0;
/// Bisection steps between a value that reaches the goal and one that does not.
const HALVINGS: u32 = 40;
/// Significant digits of a resulting setting.
const DIGITS: i32 = 4;
/// Relative change that rounds the last digit to a neighboring one.
const HALF_DIGIT: f64 = 0.5e-3;

/// Knobs that select the engine, the seed or the kind of load, and thus do not affect how the work is done; and the
/// tokens of the whole run, since training on fewer gives another model.
fn is_method(knob: Knob) -> bool {
    matches!(
        knob,
        Knob::Engine
            | Knob::Software
            | Knob::Seed
            | Knob::Noise
            | Knob::Replications
            | Knob::Requests
            | Knob::Steps
            | Knob::Load
            | Knob::TrainTokens
    )
}

/// Metrics that relate the throughput to a peak rate. A lower peak raises them without any benefit.
fn is_share_of_peak(metric: &Metric) -> bool {
    matches!(
        metric.id,
        MetricId::Mfu | MetricId::MfuCausal | MetricId::Hfu | MetricId::FlopUtilization | MetricId::HbmBwUtil
    )
}

/// Knobs for the amount of work. The value 0 is excluded, because it means no work at all.
fn is_amount_of_work(knob: Knob) -> bool {
    matches!(
        knob,
        Knob::Microbatch
            | Knob::Global
            | Knob::Prompt
            | Knob::Generate
            | Knob::Images
            | Knob::ImageSize
            | Knob::TrainTokens
            | Knob::Concurrency
            | Knob::RequestRate
    )
}

/// Position of a knob's group in the list: what an operator can set comes before what users send and what hardware
/// costs.
fn rank(knob: Knob) -> u8 {
    match (knob, knob.spec().group) {
        (Knob::PrefixHit | Knob::Conversations | Knob::Turns | Knob::SharedPrefix, _) | (_, Group::Sequence) => 1,
        (_, Group::Target) => 2,
        _ => 0,
    }
}

/// Finds single changes with which `metric` reaches `wanted`.
#[must_use]
pub fn goal_seek(scenario: &Scenario, parts: &Parts, metric: &'static Metric, wanted: f64) -> Goal {
    let mut seeker =
        Seeker { scenario, parts, metric, wanted, now: None, min_per_accelerator: 0.0, estimate: Estimate::default() };
    seeker.now = seeker.value(scenario);
    if is_share_of_peak(metric) && seeker.is_below() {
        seeker.min_per_accelerator = per_accelerator(&seeker.estimate, scenario);
    }
    let mut solutions = Vec::new();
    let mut closest: Option<Solution> = None;
    for knob in Knob::all().filter(|knob| !is_method(*knob) && !knob.spec().is_model_property) {
        let (solution, best) = seeker.knob(knob);
        solutions.extend(solution);
        let distance = |solution: &Solution| (solution.value - wanted).abs();
        if let Some(best) = best
            && closest.as_ref().is_none_or(|known| distance(&best) < distance(known))
        {
            closest = Some(best);
        }
    }
    sort::by_key(&mut solutions, |solution: &Solution| match solution.lever {
        Lever::Knob(knob) => rank(knob),
        Lever::Hardware(_) => u8::MAX,
    });
    let closest = closest.filter(|_| solutions.is_empty());
    // The price is omitted, since it can be changed as a knob.
    let hardware = Hardware::ALL.into_iter().filter(|hardware| *hardware != Hardware::Price);
    solutions.extend(hardware.filter_map(|hardware| seeker.hardware(hardware)));
    Goal { metric, now: seeker.now, wanted, solutions, closest }
}

struct Seeker<'s> {
    scenario: &'s Scenario,
    parts: &'s Parts,
    metric: &'static Metric,
    wanted: f64,
    now: Option<f64>,
    /// Lowest throughput per accelerator of a solution.
    min_per_accelerator: f64,
    estimate: Estimate,
}

/// Tokens per second and accelerator.
fn per_accelerator(estimate: &Estimate, scenario: &Scenario) -> f64 {
    estimate.total.tokens_per_sec / scenario.accelerators().max(1.0)
}

impl Seeker<'_> {
    /// Whether the current value is less than the wanted one.
    fn is_below(&self) -> bool {
        self.now.is_some_and(|now| now < self.wanted)
    }

    /// Finite value of the metric for a scenario, if it can run.
    fn value(&mut self, scenario: &Scenario) -> Option<f64> {
        scenario.check(self.parts).ok()?;
        estimate_into(scenario, &mut self.estimate);
        let value = self.metric.value(&self.estimate, scenario).filter(|value| value.is_finite())?;
        let slower = per_accelerator(&self.estimate, scenario) < self.min_per_accelerator;
        (fits(&self.estimate) && !slower).then_some(value)
    }

    fn at(&mut self, knob: Knob, setting: &Setting) -> Option<f64> {
        let mut scenario = self.scenario.clone();
        scenario.set(knob, setting, self.parts).ok()?;
        let lacks = |scenario: &Scenario| scenario.unsupported_training(&scenario.base).len();
        if scenario.mode() == Mode::Training && lacks(&scenario) > lacks(self.scenario) {
            return None;
        }
        self.changed_value(&scenario)
    }

    /// Like [`Seeker::value`], for a changed scenario. A value of 0 that is neither wanted nor the current one means that
    /// the metric is undefined: without output tokens there is no time per token.
    fn changed_value(&mut self, scenario: &Scenario) -> Option<f64> {
        self.value(scenario).filter(|value| *value != 0.0 || self.wanted == 0.0 || self.now == Some(0.0))
    }

    /// Whether a value reaches the goal.
    fn reaches(&self, value: f64) -> bool {
        if self.is_below() { value >= self.wanted } else { value <= self.wanted }
    }

    /// Setting nearest to the current one that reaches the goal, or otherwise the one that comes closest to it.
    fn knob(&mut self, knob: Knob) -> (Option<Solution>, Option<Solution>) {
        let Some(axis) = axis_around(knob, self.scenario, &[], STEPS) else { return (None, None) };
        let current = self.scenario.get(knob);
        let current = axis.values.iter().position(|value| *value == current).unwrap_or_default();
        let mut order: Vec<usize> = (0..axis.values.len()).filter(|at| *at != current).collect();
        sort::by_key(&mut order, |at| at.abs_diff(current));
        let mut best: Option<Solution> = None;
        for at in order {
            let Some(setting) = axis.values.get(at).cloned() else { continue };
            if setting == Setting::Number(0.0) && is_amount_of_work(knob) {
                continue;
            }
            let Some(value) = self.at(knob, &setting) else { continue };
            let lever = Lever::Knob(knob);
            if self.reaches(value) {
                let previous = if at > current { at.checked_sub(1) } else { Some(at + 1) };
                let previous = previous.and_then(|previous| axis.values.get(previous)).cloned();
                let (setting, value) = self.refined(knob, previous, setting, value);
                return (Some(Solution { lever, setting: Some(setting), factor: None, value }), None);
            }
            let distance = (value - self.wanted).abs();
            let nearer = best.as_ref().is_none_or(|known| distance < (known.value - self.wanted).abs());
            if nearer && self.now.is_some_and(|now| distance < (now - self.wanted).abs()) {
                best = Some(Solution { lever, setting: Some(setting), factor: None, value });
            }
        }
        (None, best)
    }

    /// Bisects between a setting that does not reach the goal (`failing`) and one that does (`reaching`), with the value
    /// `value` of the metric.
    fn refined(&mut self, knob: Knob, failing: Option<Setting>, reaching: Setting, value: f64) -> (Setting, f64) {
        let ValueType::Number { bounds, .. } = knob.spec().kind else { return (reaching, value) };
        let (Some(Setting::Number(mut failing)), Setting::Number(mut number)) = (failing, reaching.clone()) else {
            return (reaching, value);
        };
        // For many knobs 0 means not set, so there is nothing between 0 and a value. Ranks and batches are divisors or
        // powers of two; real numbers and node counts can have any value between.
        if failing == 0.0 || (bounds.whole && knob != Knob::NumNodes) {
            return (reaching, value);
        }
        let mut found = value;
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(failing, number);
            let middle = if bounds.whole { middle.round() } else { middle };
            if middle == failing || middle == number {
                break;
            }
            match self.at(knob, &Setting::Number(middle)) {
                Some(value) if self.reaches(value) => (number, found) = (middle, value),
                _ => failing = middle,
            }
        }
        let (number, found) = self.rounded(knob, number).unwrap_or((number, found));
        (Setting::Number(number), found)
    }

    /// Rounds `exact` to [`DIGITS`] digits such that the goal is still reached.
    fn rounded(&mut self, knob: Knob, exact: f64) -> Option<(f64, f64)> {
        [0.0, HALF_DIGIT, -HALF_DIGIT].into_iter().find_map(|share| {
            let value: f64 = significant(exact * (1.0 + share), DIGITS).parse().ok()?;
            let figure = self.at(knob, &Setting::Number(value))?;
            self.reaches(figure).then_some((value, figure))
        })
    }

    /// Factor on a hardware parameter with which the goal is reached.
    fn hardware(&mut self, hardware: Hardware) -> Option<Solution> {
        let at = |seeker: &mut Self, factor: f64| seeker.changed_value(&hardware.scaled(self.scenario, factor));
        let ends = [MAX_HARDWARE_FACTOR, 1.0 / MAX_HARDWARE_FACTOR];
        let end = ends.into_iter().find(|factor| at(self, *factor).is_some_and(|value| self.reaches(value)))?;
        // Bisects the logarithm of the factor.
        let (mut failing, mut reaching) = (0.0_f64, math::ln(end));
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(failing, reaching);
            if at(self, math::exp(middle)).is_some_and(|value| self.reaches(value)) {
                reaching = middle;
            } else {
                failing = middle;
            }
        }
        let factor = math::exp(reaching);
        let value = at(self, factor)?;
        Some(Solution { lever: Lever::Hardware(hardware), setting: None, factor: Some(factor), value })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    use crate::testing;

    #[test]
    fn utilization_is_not_raised_by_slower_runs_nor_cost_lowered_by_less_training() {
        let (parts, scenario) = testing::scenario("h100-sxm-128", "llama3.1-70b-train", &[]);
        let before = per_accelerator(&crate::engine::estimate(&scenario), &scenario);
        let goal = goal_seek(&scenario, &parts, MetricId::MfuCausal.metric(), 0.55);
        for way in goal.solutions.iter().chain(&goal.closest) {
            let changed = match (way.lever, &way.setting, way.factor) {
                (Lever::Knob(knob), Some(setting), _) => {
                    let mut changed = scenario.clone();
                    changed.set(knob, setting, &parts).unwrap();
                    changed
                }
                (Lever::Hardware(hardware), _, Some(factor)) => hardware.scaled(&scenario, factor),
                _ => continue,
            };
            assert!(way.setting.as_ref().is_none_or(|setting| !setting.to_string().contains("fp4")), "{way:?}");
            let after = per_accelerator(&crate::engine::estimate(&changed), &changed);
            assert!(after >= before, "{way:?}: {before} to {after} tokens/s");
        }
        let cost = goal_seek(&scenario, &parts, MetricId::UsdPerRun.metric(), 1e3);
        assert!(cost.solutions.iter().all(|way| way.lever != Lever::Knob(Knob::TrainTokens)));
    }

    #[test]
    fn settings_are_listed_before_traffic_prices_and_hardware() {
        let (parts, scenario) = testing::scenario("h200-sxm-8", "llama3.1-70b-serve", &[]);
        let goal = goal_seek(&scenario, &parts, MetricId::DollarPer1mTokens.metric(), 2.0);
        let names: Vec<&str> = goal.solutions.iter().map(|way| way.lever.name()).collect();
        let place = |name: &str| names.iter().position(|known| *known == name);
        assert!(place("concurrency").is_some() && place("concurrency") < place("prompt"), "{names:?}");
        assert!(place("prefix_hit") < place("hourly_usd"), "{names:?}");
        assert!(place("hourly_usd") < place("memory bandwidth"), "{names:?}");
    }
}
