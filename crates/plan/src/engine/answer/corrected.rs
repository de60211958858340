//! Correction of estimates by measurements of the same cluster.
//!
//! A correction multiplies a metric; the times behind it are scaled by the same factor, so that they still sum to the
//! total. The shares of the time, on which a correction depends, do not change, so the uncorrected estimate can be
//! derived from the corrected one.

use crate::estimate::{Adjustments, Breakdown, Cause, Detail, Estimate, Interval, Latency, Metrics, Serving};
use crate::scenario::{ActiveCorrections, Phase, Scenario};
use atlas_config::Mode;
use atlas_config::corrections::{Adjustment, Features, Quantity, Shape};
use atlas_core::math;
use atlas_core::plan::Engine;
use atlas_perf::serving::latency::{Spread, end_to_end};
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// Shares of the time by class of operators: compute, memory, communication and pipeline bubble, launch.
#[must_use]
pub fn shares(detail: &Detail) -> [f64; 4] {
    let share = |cause| detail.limits.share(cause);
    let waiting = share(Cause::IntraNode) + share(Cause::InterNode) + share(Cause::PipelineBubble);
    [share(Cause::Compute), share(Cause::MemoryBandwidth), waiting, share(Cause::Launch)]
}

/// Features by which a scenario is compared with measurements.
#[must_use]
pub fn shape(scenario: &Scenario, detail: &Detail) -> Shape {
    let phase = &scenario.base.shape;
    let size = {
        let (layers, hidden) =
            scenario.model.map_or((phase.layers, phase.hidden), |model| (model.layers, model.hidden));
        layers * f64::from(hidden).powi(2)
    };
    let (generated, batch) = match phase.mode {
        Mode::Training => (0.0, scenario.microbatch.into()),
        Mode::Inference => (phase.generate, detail.serving.map_or(1.0, |serving| serving.batch)),
    };
    let accelerators = scenario.accelerators_per_node * scenario.num_nodes;
    Shape(
        [accelerators, size, phase.prompt, generated, batch, f64::from(phase.tp), f64::from(phase.pp)]
            .map(|count| math::ln(count.max(1.0))),
    )
}

/// Returns the corrections that a search applies to all of its candidates: those of the scenario that it starts from,
/// if any. Corrections fade with the distance from the measured configurations, so candidates with corrections of their
/// own would rank higher the less they resemble a measured run.
#[must_use]
pub fn shared_by_candidates(scenario: &Scenario) -> Option<Arc<ActiveCorrections>> {
    let own = scenario.corrections.as_ref()?;
    let shipped = crate::engine::estimate(&Scenario { corrections: None, ..scenario.clone() });
    let shared = adjustments(scenario, scenario.mode(), shipped.detail.as_ref()?);
    Some(Arc::new(ActiveCorrections { shared, ..(**own).clone() }))
}

/// Corrections that apply to an uncorrected estimate; `None` if there are none.
fn adjustments(scenario: &Scenario, mode: Mode, detail: &Detail) -> Option<Adjustments> {
    // Measurements are compared with the closed form; the error of simulations is unknown.
    let calibration = scenario.corrections.as_ref().filter(|_| scenario.engine == Engine::Analytical)?;
    let serving = mode == Mode::Inference;
    // Phases of a service queue at their own loads, at which nothing was measured.
    if serving && !scenario.phases.is_empty() {
        return None;
    }
    if calibration.shared.is_some() {
        return calibration.shared;
    }
    let at = |quantity, shipped: Interval| {
        let features = Features {
            accelerator: &calibration.corrections.accelerator,
            software: scenario.active_software.family(),
            model: &calibration.model,
            shares: shares(detail),
            shape: shape(scenario, detail),
            uncertainty: shipped.half(),
        };
        calibration.corrections.of(quantity).map(|correction| correction.at(&features))
    };
    let rate = if serving { Quantity::Serving } else { Quantity::Training };
    let latencies = detail.serving.as_ref().filter(|_| serving);
    let found = Adjustments {
        throughput: at(rate, detail.throughput_interval),
        tpot: latencies.and_then(|serving| at(Quantity::Tpot, serving.tpot_interval)),
        ttft: latencies.and_then(|serving| at(Quantity::Ttft, serving.ttft_interval)),
    };
    (found.throughput.is_some() || found.tpot.is_some() || found.ttft.is_some()).then_some(found)
}

/// Metric before and after correction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CorrectedMetric {
    /// Which metric.
    #[serde(serialize_with = "by_key")]
    pub quantity: Quantity,
    /// Uncorrected value: tokens per second, or milliseconds.
    pub shipped: f64,
    /// 90 % interval of the uncorrected value.
    pub shipped_interval: (f64, f64),
    /// Corrected value.
    pub calibrated: f64,
    /// 90 % interval of the corrected value.
    pub calibrated_interval: (f64, f64),
    /// Number of measured configurations behind the correction.
    pub runs: usize,
}

fn by_key<S: Serializer>(quantity: &Quantity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(quantity.key())
}

/// All corrected metrics of an estimate with their uncorrected values.
#[must_use]
pub fn corrected_metrics(scenario: &Scenario, estimate: &Estimate) -> Vec<CorrectedMetric> {
    let (Some(own), Some(detail)) = (&scenario.corrections, &estimate.detail) else { return Vec::new() };
    let mode = scenario.mode();
    let Some(found) = detail.adjustments else { return Vec::new() };
    let shipped = crate::engine::estimate(&Scenario { corrections: None, ..scenario.clone() });
    let Some(before) = &shipped.detail else { return Vec::new() };
    let rate = if mode == Mode::Training { Quantity::Training } else { Quantity::Serving };
    let of = |quantity: Quantity, figure: fn(&Estimate, &Detail) -> Option<(f64, Interval)>| {
        let (shipped, shipped_interval) = figure(&shipped, before)?;
        let (calibrated, interval) = figure(estimate, detail)?;
        Some(CorrectedMetric {
            quantity,
            shipped,
            shipped_interval: shipped_interval.around(shipped),
            calibrated,
            calibrated_interval: interval.around(calibrated),
            runs: own.corrections.of(quantity)?.runs,
        })
    };
    let throughput =
        found.throughput.and_then(|_| of(rate, |e, d| Some((e.total.tokens_per_sec, d.throughput_interval))));
    let tpot = found.tpot.and_then(|_| of(Quantity::Tpot, |_, d| d.serving.map(|s| (s.tpot_ms.mean, s.tpot_interval))));
    let ttft = found.ttft.and_then(|_| of(Quantity::Ttft, |_, d| d.serving.map(|s| (s.ttft_ms.mean, s.ttft_interval))));
    [throughput, tpot, ttft].into_iter().flatten().collect()
}

/// Corrects the estimate of a phase.
pub(super) fn correct(scenario: &Scenario, phase: &Phase, metrics: &mut Metrics, detail: &mut Detail) {
    let Some(mut found) = adjustments(scenario, phase.shape.mode, detail) else { return };
    // If the load limits the throughput, it equals the arrival rate.
    found.throughput = found.throughput.filter(|_| !detail.limits.load);
    detail.adjustments = Some(found);
    // The interval from other clusters still applies where it is narrower.
    let own = |found: Adjustment, shipped: Interval| {
        let half = math::exp(found.half_width.max(1e-9));
        Interval { low: shipped.low.max(1.0 / half), high: shipped.high.min(half) }
    };
    if let Some(found) = found.throughput {
        let factor = found.factor;
        metrics.tokens_per_sec *= factor;
        metrics.flop_utilization *= factor;
        metrics.hbm_bw_util *= factor;
        metrics.step_time_ms = metrics.step_time_ms.map(|ms| ms / factor);
        detail.throughput_interval = own(found, detail.throughput_interval);
        if let Some(training) = &mut detail.training {
            training.mfu *= factor;
            training.mfu_causal *= factor;
            training.hfu *= factor;
            detail.time = detail.time.scaled(1.0 / factor);
        }
        if let Some(serving) = &mut detail.serving {
            serving.total_tokens_per_sec *= factor;
            serving.requests_per_sec *= factor;
            serving.capacity_requests_per_sec *= factor;
        }
    }
    let Some(serving) = &mut detail.serving else { return };
    let (tpot, ttft) = (found.tpot.map_or(1.0, |one| one.factor), found.ttft.map_or(1.0, |one| one.factor));
    if let Some(found) = found.tpot {
        serving.tpot_interval = own(found, serving.tpot_interval);
        detail.time = detail.time.scaled(tpot);
    }
    if let Some(found) = found.ttft {
        serving.ttft_interval = own(found, serving.ttft_interval);
    }
    if let (Some(input), Some(latency)) = (scenario.serving_input(phase), &mut metrics.latency) {
        latencies(serving, latency, input.output_lengths(), tpot, ttft);
    }
}

/// Scales TTFT and TPOT by the given factors. The latency of requests with outputs of `lengths` tokens follows.
fn latencies(serving: &mut Serving, latency: &mut Latency, lengths: Spread, tpot: f64, ttft: f64) {
    serving.ttft_ms = serving.ttft_ms.map(|one| one * ttft);
    serving.first_token = Breakdown::scaled(serving.first_token, ttft);
    serving.tpot_ms = serving.tpot_ms.map(|one| one * tpot);
    serving.e2e_ms = end_to_end(lengths, serving.ttft_ms, serving.tpot_ms);
    let Spread { p50, p95, p99, .. } = serving.e2e_ms;
    serving.itl_ms = serving.itl_ms.map(|one| one * tpot);
    serving.tokens_per_sec_per_user /= tpot;
    *latency = Latency { p50, p95, p99, ttft: latency.ttft * ttft };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::estimate::MetricId;
    use crate::knob::{Knob, Overrides, Setting};
    use crate::scenario::Parts;
    use crate::search::optimize::Problem;
    use crate::search::{Axis, Gauge, Space, optimize};
    use crate::testing;
    use atlas_config::Corrections;
    use atlas_config::corrections::{Configuration, Correction, Factor};

    #[test]
    fn layouts_do_not_win_a_search_by_not_having_been_measured() {
        let mut parts = testing::parts("h100-sxm-8", "llama3.1-8b-train");
        let best = |parts: &Parts| {
            let start = Scenario::resolve(parts, &Overrides::default()).unwrap();
            let axes =
                ["microbatch=1,2,4,8", "tp=1,2,4", "cp=1,2,4"].map(|axis| Axis::parse(axis, &start, &[]).unwrap());
            let mut problem = Problem::of(&start, parts, MetricId::TokensPerSec.metric());
            problem.space = Space::of(axes.to_vec()).unwrap();
            let found = optimize(&problem, &Gauge::default());
            let best = found.best.unwrap();
            let settings: Vec<(_, Setting)> = best.changes;
            (settings, best.estimate.total.tokens_per_sec)
        };
        let (shipped, rate) = best(&parts);
        // The start was measured, and takes e^0.5 times as long as estimated.
        let start = Scenario::resolve(&parts, &Overrides::default()).unwrap();
        let measured = Factor::Near(Configuration {
            accelerator: (*parts.accelerator.as_ref().unwrap().id).into(),
            software: start.active_software.family().into(),
            shape: shape(&start, &crate::engine::estimate(&start).detail.unwrap()),
            falloff: 0.5,
        });
        let correction = Correction {
            runs: 1,
            effects: vec![(measured, -0.5)],
            covariance: vec![vec![0.0]],
            reach: 1.6,
            ..Correction::default()
        };
        let mut corrections = Corrections::on((*parts.accelerator.as_ref().unwrap().id).into(), vec!["a run".into()]);
        corrections.set(Quantity::Training, correction);
        parts.corrections = Some(Arc::new(corrections));
        let (calibrated, slower) = best(&parts);
        assert_eq!(calibrated, shipped);
        assert!((slower / rate - math::exp(-0.5)).abs() < 1e-9, "{rate} {slower}");
    }

    #[test]
    fn calibrated_latency_of_requests_follows_from_calibrated_ttft_and_tpot() {
        let mut parts = testing::parts("h100-sxm-8", "llama3.1-70b-serve");
        let accelerator: Arc<str> = (*parts.accelerator.as_ref().unwrap().id).into();
        for spread in [1.0, 4.0] {
            let overrides = Overrides::from([(Knob::GenerateSpread, Setting::Number(spread))]);
            parts.corrections = None;
            let start = Scenario::resolve(&parts, &overrides).unwrap();
            let shipped = crate::engine::estimate(&start).detail.unwrap();
            let measured = Factor::Near(Configuration {
                accelerator: accelerator.clone(),
                software: start.active_software.family().into(),
                shape: shape(&start, &shipped),
                falloff: 0.5,
            });
            let mut corrections = Corrections::on(accelerator.clone(), vec!["a run".into()]);
            for (quantity, effect) in [(Quantity::Tpot, 0.3), (Quantity::Ttft, -0.4)] {
                let effects = vec![(measured.clone(), effect)];
                let covariance = vec![vec![0.0]];
                corrections
                    .set(quantity, Correction { runs: 1, effects, covariance, reach: 1.6, ..Correction::default() });
            }
            parts.corrections = Some(Arc::new(corrections));
            let scenario = Scenario::resolve(&parts, &overrides).unwrap();
            let estimate = crate::engine::estimate(&scenario);
            let (before, after) = (shipped.serving.unwrap(), estimate.detail.unwrap().serving.unwrap());
            assert!(after.tpot_ms.mean > 1.1 * before.tpot_ms.mean && after.ttft_ms.mean < before.ttft_ms.mean);
            let lengths = scenario.serving_input(&scenario.base).unwrap().output_lengths();
            assert_eq!(after.e2e_ms, end_to_end(lengths, after.ttft_ms, after.tpot_ms));
            for id in [MetricId::P50Ms, MetricId::P95Ms, MetricId::P99Ms] {
                let term = crate::explain::explain(&scenario, &parts, &estimate, id.metric()).unwrap();
                assert!(term.equation.is_some(), "{spread}: {} has no equation", id.metric().name);
            }
        }
    }
}
