//! Goal seek: which single knob or number of the hardware brings a figure to a wanted value.

use super::around;
use super::condition::fits;
use super::sensitivity::{Hardware, Lever};
use crate::engine::estimate_into;
use crate::estimate::{Estimate, Metric};
use crate::knob::{Group, Knob, Setting, ValueType};
use crate::scenario::{Parts, Scenario};
use atlas_core::math;
use atlas_core::sort;
use atlas_core::units::significant;

/// One way to the goal.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// What is changed.
    pub lever: Lever,
    /// The setting that a knob needs; a factor on a number of the hardware has none.
    pub setting: Option<Setting>,
    /// What a number of the hardware is multiplied by.
    pub factor: Option<f64>,
    /// The figure there.
    pub value: f64,
}

/// The ways to a goal.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// The figure.
    pub metric: &'static Metric,
    /// Its value now.
    pub now: f64,
    /// Its wanted value.
    pub wanted: f64,
    /// What reaches it alone: settings first, then properties of the traffic, of the target, and of the hardware.
    pub ways: Vec<Way>,
    /// What comes nearest of all knobs, where none reaches it.
    pub nearest: Option<Way>,
}

/// Values of a knob that are tried on its whole range.
const STEPS: u32 = 33;
/// A number of the hardware is tried from this fraction of it to this many times it.
const REACH: f64 = 16.0;
/// Halvings between a value that reaches the goal and one that does not.
const HALVINGS: u32 = 40;
/// Significant digits of a setting that reaches the goal.
const DIGITS: i32 = 4;
/// Enough to round the last of them to the next.
const HALF_DIGIT: f64 = 0.5e-3;

/// Knobs that change which engine answers, the seed or what kind of load there is, not how the work is done.
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
    )
}

/// Knobs that say how much work there is. At 0 there is nothing to plan, so that value is no way to a goal.
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

/// Position of a knob's group in the list: what an operator can set comes before what users send and what hardware costs.
fn rank(knob: Knob) -> u8 {
    match (knob, knob.spec().group) {
        (Knob::PrefixHit | Knob::Conversations | Knob::Turns | Knob::SharedPrefix, _) | (_, Group::Sequence) => 1,
        (_, Group::Target) => 2,
        _ => 0,
    }
}

/// Looks for what reaches a value, everything else as it is.
#[must_use]
pub fn goal_seek(scenario: &Scenario, parts: &Parts, metric: &'static Metric, wanted: f64) -> Goal {
    let mut seeker = Seeker { scenario, parts, metric, wanted, now: 0.0, estimate: Estimate::default() };
    seeker.now = seeker.value(scenario).unwrap_or(f64::NAN);
    let mut ways = Vec::new();
    let mut nearest: Option<Way> = None;
    for knob in Knob::all().filter(|knob| !is_method(*knob) && !knob.spec().given) {
        let (way, best) = seeker.knob(knob);
        ways.extend(way);
        let distance = |way: &Way| (way.value - wanted).abs();
        if let Some(best) = best
            && nearest.as_ref().is_none_or(|known| distance(&best) < distance(known))
        {
            nearest = Some(best);
        }
    }
    sort::by_key(&mut ways, |way: &Way| match way.lever {
        Lever::Knob(knob) => rank(knob),
        Lever::Hardware(_) => u8::MAX,
    });
    // The price is a knob as well: there it can be applied.
    let hardware = Hardware::ALL.into_iter().filter(|hardware| *hardware != Hardware::Price);
    let numbers: Vec<Way> = hardware.filter_map(|hardware| seeker.hardware(hardware)).collect();
    let nearest = nearest.filter(|_| ways.is_empty());
    ways.extend(numbers);
    Goal { metric, now: seeker.now, wanted, ways, nearest }
}

struct Seeker<'s> {
    scenario: &'s Scenario,
    parts: &'s Parts,
    metric: &'static Metric,
    wanted: f64,
    now: f64,
    estimate: Estimate,
}

impl Seeker<'_> {
    /// The figure of a scenario that can run.
    fn value(&mut self, scenario: &Scenario) -> Option<f64> {
        scenario.check(self.parts).ok()?;
        estimate_into(scenario, &mut self.estimate);
        let value = (self.metric.get)(&self.estimate, scenario);
        // Nothing at all is no figure: an engine that generates no token has no time per token.
        let says = value != 0.0 || self.wanted == 0.0 || self.now == 0.0;
        (fits(&self.estimate) && value.is_finite() && says).then_some(value)
    }

    fn at(&mut self, knob: Knob, setting: &Setting) -> Option<f64> {
        let mut scenario = self.scenario.clone();
        scenario.set(knob, setting, self.parts).ok()?;
        self.value(&scenario)
    }

    /// Whether a value is at the goal or beyond it.
    fn reaches(&self, value: f64) -> bool {
        if self.now < self.wanted { value >= self.wanted } else { value <= self.wanted }
    }

    /// The setting nearest to the present one that reaches the goal; and what comes nearest to the goal.
    fn knob(&mut self, knob: Knob) -> (Option<Way>, Option<Way>) {
        let Some(axis) = around(knob, self.scenario, &[], STEPS) else { return (None, None) };
        let present = self.scenario.get(knob);
        let here = axis.values.iter().position(|value| *value == present).unwrap_or_default();
        let mut order: Vec<usize> = (0..axis.values.len()).filter(|at| *at != here).collect();
        sort::by_key(&mut order, |at| at.abs_diff(here));
        let mut best: Option<Way> = None;
        for at in order {
            let Some(setting) = axis.values.get(at).cloned() else { continue };
            if setting == Setting::Number(0.0) && is_amount_of_work(knob) {
                continue;
            }
            let Some(value) = self.at(knob, &setting) else { continue };
            let lever = Lever::Knob(knob);
            if self.reaches(value) {
                let before = if at > here { at.checked_sub(1) } else { Some(at + 1) };
                let before = before.and_then(|before| axis.values.get(before)).cloned();
                let (setting, value) = self.refined(knob, before, setting, value);
                return (Some(Way { lever, setting: Some(setting), factor: None, value }), None);
            }
            let distance = (value - self.wanted).abs();
            let nearer = best.as_ref().is_none_or(|known| distance < (known.value - self.wanted).abs());
            if nearer && distance < (self.now - self.wanted).abs() {
                best = Some(Way { lever, setting: Some(setting), factor: None, value });
            }
        }
        (None, best)
    }

    /// Between a value that does not reach the goal and one that does, the first that does.
    fn refined(&mut self, knob: Knob, short: Option<Setting>, far: Setting, value: f64) -> (Setting, f64) {
        let ValueType::Number { bounds, .. } = knob.spec().kind else { return (far, value) };
        let (Some(Setting::Number(mut short)), Setting::Number(mut far)) = (short, far.clone()) else {
            return (far, value);
        };
        // Many knobs mean by 0 that they are not set: there is nothing between that and a value.
        if short == 0.0 {
            return (Setting::Number(far), value);
        }
        // Ranks and batches go by divisors and powers of two; real numbers and node counts can be anything between.
        if bounds.whole && knob != Knob::NumNodes {
            return (Setting::Number(far), value);
        }
        let mut found = value;
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(short, far);
            let middle = if bounds.whole { middle.round() } else { middle };
            if middle == short || middle == far {
                break;
            }
            match self.at(knob, &Setting::Number(middle)) {
                Some(value) if self.reaches(value) => (far, found) = (middle, value),
                _ => short = middle,
            }
        }
        let (value, found) = self.rounded(knob, far).unwrap_or((far, found));
        (Setting::Number(value), found)
    }

    /// A value of [`DIGITS`] digits beside an exact one that reaches the goal as well: more digits are never set.
    fn rounded(&mut self, knob: Knob, exact: f64) -> Option<(f64, f64)> {
        [0.0, HALF_DIGIT, -HALF_DIGIT].into_iter().find_map(|share| {
            let value: f64 = significant(exact * (1.0 + share), DIGITS).parse().ok()?;
            let figure = self.at(knob, &Setting::Number(value))?;
            self.reaches(figure).then_some((value, figure))
        })
    }

    /// The factor on a number of the hardware that reaches the goal.
    fn hardware(&mut self, hardware: Hardware) -> Option<Way> {
        let at = |seeker: &mut Self, factor: f64| seeker.value(&hardware.scaled(self.scenario, factor));
        let ends = [REACH, 1.0 / REACH];
        let far = ends.into_iter().find(|factor| at(self, *factor).is_some_and(|value| self.reaches(value)))?;
        let (mut short, mut far) = (0.0_f64, math::ln(far));
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(short, far);
            if at(self, math::exp(middle)).is_some_and(|value| self.reaches(value)) {
                far = middle;
            } else {
                short = middle;
            }
        }
        let value = at(self, math::exp(far))?;
        Some(Way { lever: Lever::Hardware(hardware), setting: None, factor: Some(math::exp(far)), value })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::estimate::MetricId;
    use crate::knob::Overrides;
    use atlas_config::library::Library;
    use atlas_document::Sources;

    #[test]
    fn settings_are_listed_before_traffic_prices_and_hardware() {
        let library = Library::load(&Sources::built_in(), None);
        let parts = Parts::find(&library, "h200-sxm-8", "llama3.1-70b-serve").unwrap();
        let scenario = Scenario::resolve(&parts, &Overrides::default()).unwrap();
        let goal = goal_seek(&scenario, &parts, MetricId::DollarPer1mTokens.metric(), 2.0);
        let names: Vec<&str> = goal.ways.iter().map(|way| way.lever.name()).collect();
        let place = |name: &str| names.iter().position(|known| *known == name);
        assert!(place("concurrency").is_some() && place("concurrency") < place("prompt"), "{names:?}");
        assert!(place("prefix_hit") < place("hourly_usd"), "{names:?}");
        assert!(place("hourly_usd") < place("memory bandwidth"), "{names:?}");
    }
}
