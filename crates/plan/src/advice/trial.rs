//! Trials: estimates of a changed scenario.

use super::{Advice, Changes, LatencyLoss, MIN_GAIN, Objective, Rule, gain};
use crate::engine;
use crate::estimate::{Estimate, Metric, MetricId, Verdict};
use crate::knob::{Knob, Setting};
use crate::scenario::{Parts, Scenario};
use crate::search::Condition;
use crate::search::optimize::default_conditions;
use atlas_perf::serving::formats::stored_bytes;

/// Relative increase of TTFT or TPOT up to which it is not stated.
const LATENCY_TOLERANCE: f64 = 0.05;

/// A scenario for which changes are tried.
pub(super) struct Trial<'a> {
    parts: &'a Parts,
    /// Scenario without its schedule: gains are those of the workload as a whole.
    base: Scenario,
    before: Estimate,
    turned: Estimate,
    metric: &'static Metric,
    /// Bounds on TTFT and TPOT that a search has by default.
    latency_bounds: Vec<Condition>,
    /// Maximum number of estimates.
    max_trials: usize,
    made: usize,
}

impl<'a> Trial<'a> {
    pub(super) fn new(
        scenario: &Scenario,
        parts: &'a Parts,
        estimate: &Estimate,
        objective: Objective,
        max_trials: usize,
    ) -> Trial<'a> {
        let mut base = scenario.clone();
        let scheduled = !base.phases.is_empty();
        base.phases.clear();
        let before = if scheduled { engine::estimate(&base) } else { estimate.clone() };
        let turned = before.clone();
        let metric = objective.metric(scenario);
        // Whatever the objective: advice that lowers one latency must not break the bound on another.
        let mut latency_bounds = default_conditions(&base, MetricId::TokensPerSec.metric(), &[]);
        latency_bounds.retain(|bound| latency_metric(bound).is_some());
        Trial { parts, metric, latency_bounds, base, before, turned, max_trials, made: usize::from(scheduled) }
    }

    /// Estimate without changes.
    pub(super) fn before(&self) -> Estimate {
        self.before.clone()
    }

    /// Whether the scenario can run without changes.
    pub(super) fn fits(&self) -> bool {
        verdict(&self.before).fits()
    }

    /// Scenario with changes, and its estimate; `None` if a knob cannot be set or has no effect, or the maximum number
    /// of estimates is reached.
    pub(super) fn try_changes(&mut self, changes: &Changes) -> Option<(Scenario, &Estimate)> {
        if self.made >= self.max_trials {
            return None;
        }
        let mut turned = self.base.clone();
        for (knob, setting) in changes {
            turned.set(*knob, setting, self.parts).ok()?;
        }
        if !changes.iter().all(|(knob, _)| turned.offers(*knob)) {
            return None;
        }
        self.made += 1;
        engine::estimate_unscheduled_into(&turned, &mut self.turned);
        Some((turned, &self.turned))
    }

    /// Gain of a rule's changes; `None` if it is less than `worth`, or the changed scenario cannot run.
    pub(super) fn advice(&mut self, rule: &'static Rule, changes: Changes, worth: f64) -> Option<Advice> {
        let metric = self.metric;
        let before = metric.value(&self.before, &self.base)?;
        let fixes = !self.fits();
        let (ran, held) = (self.base.software_supports(&self.base.base), weights_gb(&self.base));
        // Like a search, reject changes that leave too little free memory, unless the scenario leaves as little
        // already.
        let spacious = !fixes && !is_tight(&self.before);
        let (scenario, _) = self.try_changes(&changes)?;
        let estimate = &self.turned;
        let after = metric.value(estimate, &scenario)?;
        let rate = estimate.total.tokens_per_sec;
        let gain = gain(metric, before, after);
        // Reject changes that the software does not support, unless it does not support the scenario either.
        let supported = scenario.software_supports(&scenario.base) || !ran;
        let runs = verdict(estimate).fits()
            && supported
            && !(spacious && is_tight(estimate))
            && !exceeds_weight_memory(estimate, held, &scenario)
            && !self.breaks_latency_bound(estimate, &scenario);
        let shown = runs && after.is_finite() && (fixes || gain >= worth.max(MIN_GAIN));
        let text = String::new();
        let latency_losses = if fixes { Vec::new() } else { self.latency_losses(estimate, &scenario) };
        shown.then_some(Advice { rule, text, changes, metric, before, after, gain, latency_losses, fixes, rate })
    }

    /// Whether changes break a bound on TTFT or TPOT that the scenario meets. Of scenarios that do not meet it, whether
    /// they make it worse, if the workload states the bound or a common pool is split, which trades one latency for the
    /// other.
    fn breaks_latency_bound(&self, after: &Estimate, scenario: &Scenario) -> bool {
        let stated = &self.base.base.plan.simulation;
        let stated = stated.slo_ttft_ms.or(stated.slo_tpot_ms).is_some();
        let split = self.base.base.pools().is_none() && scenario.base.pools().is_some();
        self.latency_bounds.iter().any(|bound| {
            let worse = latency_metric(bound).is_some_and(|metric| {
                let (after, before) = (metric.value(after, scenario), metric.value(&self.before, &self.base));
                after.zip(before).is_some_and(|(after, before)| after > before)
            });
            let met = self.fits() && bound.holds(&self.before, &self.base);
            worse && !bound.holds(after, scenario) && (stated || split || met)
        })
    }

    /// Latencies that changes increase by more than [`LATENCY_TOLERANCE`].
    fn latency_losses(&self, after: &Estimate, scenario: &Scenario) -> Vec<LatencyLoss> {
        let latencies = [MetricId::TtftMs, MetricId::TpotMs].map(MetricId::metric).into_iter();
        latencies
            .filter(|metric| metric.applies_to(scenario))
            .filter_map(|metric| {
                let before = metric.value(&self.before, &self.base)?;
                Some(LatencyLoss { metric, before, after: metric.value(after, scenario)? })
            })
            .filter(|loss| loss.before > 0.0 && loss.after > (1.0 + LATENCY_TOLERANCE) * loss.before)
            .collect()
    }

    /// What is assumed of the drafts that changes introduce, unless their acceptance is stated.
    fn assumed_acceptance(&self, changes: &Changes) -> Option<String> {
        let stated = self.base.base.plan.serving.draft_acceptance;
        let begins = changes.iter().any(|(knob, _)| *knob == Knob::DraftMethod) && stated.is_none();
        let mut drafting = self.base.clone();
        for (knob, setting) in changes.iter().filter(|_| begins) {
            drafting.set(*knob, setting, self.parts).ok()?;
        }
        let drafts = drafting.drafts(&drafting.base);
        let percent = |share: f64| (100.0 * share).round();
        let further = match () {
            () if drafts.tokens <= 1.0 => String::new(),
            () if drafts.decline > 0.0 => format!(", {} % less at each further position", percent(drafts.decline)),
            () => " at every position".to_owned(),
        };
        begins.then(|| {
            let acceptance = percent(drafts.acceptance);
            format!(" (assumes {acceptance} % acceptance{further}; set draft_acceptance and draft_decline)")
        })
    }

    /// Value of a knob. A draft method that is not stated is none: the value of the knob is the one that drafts would
    /// have.
    fn present(&self, knob: Knob) -> Setting {
        match knob {
            Knob::DraftMethod if self.base.base.plan.serving.draft_method.is_none() => Setting::Choice("none".into()),
            _ => self.base.get(knob),
        }
    }

    /// Describes changes: `tp 8 → 4, concurrency stays 128`.
    pub(super) fn words(&self, changes: &Changes) -> String {
        let mut words = String::new();
        for (knob, setting) in changes {
            let comma = if words.is_empty() { "" } else { ", " };
            let (name, now) = (knob.name(), self.present(*knob));
            // The knob has a derived default that would change, so it is pinned.
            let turned =
                if now == *setting { format!("{name} stays {now}") } else { format!("{name} {now} → {setting}") };
            words.push_str(&format!("{comma}{turned}"));
        }
        words + &self.assumed_acceptance(changes).unwrap_or_default()
    }
}

/// Weights per device if only tensor and pipeline parallelism split them, GB. Parameters are those of the architecture,
/// otherwise 12 h² per layer (arXiv 2001.08361, section 2.1).
fn weights_gb(scenario: &Scenario) -> f64 {
    let shape = &scenario.base.shape;
    let params = scenario.model.map_or(12.0 * shape.layers * shape.hidden * shape.hidden, |model| model.params());
    params * stored_bytes(scenario.format(&scenario.base)) / (shape.tp * shape.pp) * 1e-9
}

/// Whether a layout puts more weights on a device than fit, for engines without a verdict.
fn exceeds_weight_memory(after: &Estimate, before_gb: f64, scenario: &Scenario) -> bool {
    let gb = weights_gb(scenario);
    after.detail.is_none() && gb > before_gb && gb > scenario.memory_gb_per_accel
}

/// Whether an estimate leaves less memory free than searches require by default.
fn is_tight(estimate: &Estimate) -> bool {
    estimate.detail.is_some_and(|detail| detail.memory.is_tight())
}

/// The metric of a constraint on TTFT or TPOT.
fn latency_metric(bound: &Condition) -> Option<&'static Metric> {
    match bound {
        Condition::Metric(metric, ..) if matches!(metric.id, MetricId::TtftMs | MetricId::TpotMs) => Some(metric),
        _ => None,
    }
}

/// Verdict of an estimate; [`Verdict::Fits`] for engines without one.
pub(super) fn verdict(estimate: &Estimate) -> Verdict {
    estimate.detail.map(|detail| detail.verdict).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::advice::{Advice, Objective, advise};
    use crate::engine::estimate;
    use crate::estimate::MetricId;

    use crate::testing;

    fn advice(target: &str, workload: &str, set: &[&str]) -> Vec<Advice> {
        let (parts, scenario) = testing::scenario(target, workload, set);
        advise(&scenario, &parts, &estimate(&scenario), Objective::Throughput)
    }

    #[test]
    fn advice_states_latencies_that_become_worse_and_breaks_no_bound_that_is_met() {
        let mut stated = 0;
        for (target, workload) in [
            ("gb10-1", "llama3.1-8b-serve"),
            ("h100-sxm-8", "llama3.1-70b-serve"),
            ("h200-sxm-8", "llama3.1-70b-serve"),
            ("b200-8", "deepseek-v3-serve"),
        ] {
            for advice in advice(target, workload, &[]) {
                for loss in &advice.latency_losses {
                    let bound = if loss.metric.id == MetricId::TtftMs { 2000.0 } else { 50.0 };
                    assert!(loss.after > 1.05 * loss.before, "{workload}: {}: {loss}", advice.text);
                    assert!(loss.before > bound || loss.after <= bound, "{workload}: {}: {loss}", advice.text);
                    stated += 1;
                }
            }
        }
        assert!(stated > 0);
    }

    #[test]
    fn a_draft_method_that_is_not_stated_is_none() {
        for (workload, method) in [("llama3.1-70b-serve", "eagle3"), ("deepseek-v3-serve", "mtp")] {
            let all = advice("h200-sxm-8", workload, &["concurrency=8"]);
            let drafts = all.iter().find(|advice| advice.text.contains("draft_tokens 0")).unwrap();
            assert!(drafts.text.contains(&format!("draft_method none → {method}")), "{}", drafts.text);
            assert!(drafts.text.contains(" % acceptance, "), "{}", drafts.text);
        }
        let stated = advice("h200-sxm-8", "llama3.1-70b-serve", &["concurrency=8", "draft_acceptance=0.8"]);
        assert!(!stated.iter().any(|advice| advice.text.contains("acceptance")));
    }

    #[test]
    fn latencies_that_become_worse_are_listed_in_one_line() {
        let all = advice("h100-sxm-8", "llama3.1-8b-serve", &[]);
        let more = all.iter().find(|advice| advice.latency_losses.len() == 2).unwrap();
        let objection = more.objection().unwrap();
        assert!(objection.starts_with("but TTFT +") && objection.contains(" %, TPOT +"), "{objection}");
        assert_eq!(objection.matches("but").count(), 1);
    }

    #[test]
    fn advice_that_delays_the_first_token_beyond_two_seconds_is_omitted() {
        // A quarter of the chunk raises the throughput by 3 % and TTFT from 1.7 to 9.8 s.
        let all = advice("gb10-1", "llama3.1-8b-serve", &[]);
        assert!(!all.iter().any(|advice| advice.text.contains("max_num_batched_tokens 2048 → 512")));
    }
}
