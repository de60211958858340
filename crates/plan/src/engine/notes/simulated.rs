//! Notes on simulation runs.

use crate::estimate::Estimate;
use crate::scenario::Scenario;
use atlas_core::plan::Arrivals;
use atlas_core::units::duration;

/// Describes the simulation runs and what they do not model.
pub(super) fn notes(scenario: &Scenario, estimate: &Estimate) -> Vec<String> {
    let settings = scenario.simulation(&scenario.base);
    let Some(simulated) = estimate.detail.and_then(|detail| detail.simulated) else {
        return vec![
            "not simulated: no memory is left for the KV cache, or a step has too many passes to simulate; showing the \
                     closed-form estimate"
                .to_owned(),
        ];
    };
    let runs = simulated.replications;
    let seeds = match runs {
        1 => format!("seed {}", settings.seed),
        _ => format!("seeds {} to {}", settings.seed, settings.seed.saturating_add(u64::from(runs - 1))),
    };
    let chance = match simulated.half_width {
        Some(0.0) => "no randomness, so every run would be the same".to_owned(),
        Some(share) => format!("the mean throughput varies by ± {:.1} % between runs (90 %)", 100.0 * share),
        None => "a single run gives no confidence interval".to_owned(),
    };
    let plural = if runs == 1 { "run" } else { "runs" };
    let mut notes = Vec::new();
    if let Some(seen) = simulated.serving {
        notes.push(format!(
            "simulated: {runs} {plural} of {:.0} counted requests ({seeds}), {} events; {chance}",
            seen.requests, simulated.events
        ));
        if simulated.half_width == Some(0.0)
            && settings.arrivals == Arrivals::Closed
            && scenario.phases.is_empty()
            && scenario.concurrency(&scenario.base) > 1.0
        {
            notes.push(
                "identical requests stay in lockstep, so their prompts arrive together; use prompt_cv and generate_cv to \
                 vary them"
                    .to_owned(),
            );
        }
        let rateless = scenario.base.plan.serving.request_rate.is_none();
        if rateless && matches!(settings.arrivals, Arrivals::Poisson | Arrivals::Gamma) {
            notes.push(format!(
                "request_rate is not set: assuming {:.3} requests/s, the rate at which {} requests in flight would be served",
                seen.arrival_rate,
                scenario.concurrency(&scenario.base)
            ));
        }
        if seen.rejected > 0.0 {
            let share = 100.0 * seen.rejected;
            notes.push(format!("{share:.1} % of the requests do not fit in a replica's KV cache and are rejected"));
        }
    }
    if let Some(seen) = simulated.training {
        let dp = scenario.base.shape.dp;
        let stand = if f64::from(seen.replicas) < dp { "; identical replicas are simulated once" } else { "" };
        notes.push(format!(
            "simulated: {runs} {plural} of {} steps of {} of {dp} replicas ({seeds}), {} events; {chance}{stand}",
            seen.steps, seen.replicas, simulated.events
        ));
        if let Some(interval) = seen.checkpoint_interval_s.filter(|_| seen.goodput < 1.0) {
            notes.push(format!(
                "a step without interruptions takes {}; failures ({:.2} per day) and checkpoints ({} every {}) add the rest on \
                 average, assuming that a spare node is always available",
                duration(seen.step_s),
                seen.failures_per_day,
                duration(seen.checkpoint_s),
                duration(interval),
            ));
        }
        notes.push(
            "each pass of a chunk of layers is one task: operators and contention between collectives are not simulated"
                .to_owned(),
        );
    }
    notes
}
