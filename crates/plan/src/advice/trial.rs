//! Trials: estimates of a changed scenario.

use super::{Advice, Changes, MIN_GAIN, Objective, Rule, gain};
use crate::engine;
use crate::estimate::{Estimate, Metric, Serving, Verdict};
use crate::scenario::{Parts, Scenario};
use crate::search::optimize::{TPOT_MS, TTFT_MS};
use atlas_perf::serving::formats::stored_bytes;
use atlas_perf::serving::latency::Spread;

/// A scenario for which changes are tried.
pub(super) struct Trial<'a> {
    parts: &'a Parts,
    /// Scenario without its schedule: gains are those of the workload as a whole.
    base: Scenario,
    before: Estimate,
    turned: Estimate,
    metric: &'static Metric,
    /// Maximum number of estimates.
    most: usize,
    made: usize,
}

impl<'a> Trial<'a> {
    pub(super) fn new(
        scenario: &Scenario,
        parts: &'a Parts,
        estimate: &Estimate,
        objective: Objective,
        most: usize,
    ) -> Trial<'a> {
        let mut base = scenario.clone();
        let scheduled = !base.phases.is_empty();
        base.phases.clear();
        let before = if scheduled { engine::estimate(&base) } else { estimate.clone() };
        let turned = before.clone();
        Trial { parts, metric: objective.metric(scenario), base, before, turned, most, made: usize::from(scheduled) }
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
        if self.made >= self.most {
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
        let before = (metric.get)(&self.before, &self.base);
        let fixes = !self.fits();
        let (ran, held) = (self.base.software_supports(&self.base.base), weights_gb(&self.base));
        let served = self.before.detail.and_then(|detail| detail.serving);
        let together = self.base.base.pools().is_none();
        // Like a search, reject changes that leave too little free memory, unless the scenario leaves as little
        // already.
        let spacious = !fixes && !is_tight(&self.before);
        let (scenario, estimate) = self.try_changes(&changes)?;
        let after = (metric.get)(estimate, &scenario);
        let (rate, after_verdict) = (estimate.total.tokens_per_sec, verdict(estimate));
        let gain = gain(metric, before, after);
        // Reject changes that the software does not support, unless it does not support the scenario either.
        let supported = scenario.software_supports(&scenario.base) || !ran;
        let runs = after_verdict.fits()
            && supported
            && !(spacious && is_tight(estimate))
            && !exceeds_weight_memory(estimate, held, &scenario)
            && !violates_latency_bound(served, together, estimate, &scenario);
        let shown = runs && after.is_finite() && (fixes || gain >= worth.max(MIN_GAIN));
        let text = String::new();
        shown.then_some(Advice { rule, text, changes, metric, before, after, gain, fixes, rate, after_verdict })
    }

    /// Describes changes: `tp 8 → 4, concurrency stays 128`.
    pub(super) fn words(&self, changes: &Changes) -> String {
        let mut words = String::new();
        for (knob, setting) in changes {
            let comma = if words.is_empty() { "" } else { ", " };
            let (name, now) = (knob.name(), self.base.get(*knob));
            // The knob has a derived default that would change, so it is pinned.
            let turned =
                if now == *setting { format!("{name} stays {now}") } else { format!("{name} {now} → {setting}") };
            words.push_str(&format!("{comma}{turned}"));
        }
        words
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

/// Whether changes violate a bound on TTFT or TPOT and make the latency worse. Bounds are the workload's own, and, if a
/// common pool is split, which trades one latency for the other, also the defaults of a search.
fn violates_latency_bound(before: Option<Serving>, together: bool, after: &Estimate, scenario: &Scenario) -> bool {
    let (Some(before), Some(after)) = (before, after.detail.and_then(|detail| detail.serving)) else { return false };
    let split = together && scenario.base.pools().is_some();
    let breaks = |stated: Option<f64>, usual: f64, before: Spread, after: Spread| {
        stated.or(split.then_some(usual)).is_some_and(|most| after.mean > most && after.mean > before.mean)
    };
    let stated = &scenario.base.plan.simulation;
    breaks(stated.slo_ttft_ms, TTFT_MS, before.ttft_ms, after.ttft_ms)
        || breaks(stated.slo_tpot_ms, TPOT_MS, before.tpot_ms, after.tpot_ms)
}

/// Verdict of an estimate; [`Verdict::Fits`] for engines without one.
pub(super) fn verdict(estimate: &Estimate) -> Verdict {
    estimate.detail.map(|detail| detail.verdict).unwrap_or_default()
}
