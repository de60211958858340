//! Determines which cause best explains why a serving engine is slower than predicted.

use super::cause::{Cause, Diagnosis, Scale};
use super::prediction::{Part, Prediction};
use super::shift::shape;
use super::track::{Point, Track};

/// Metrics in the reports of a serving engine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reports {
    /// Running requests.
    pub running: Track,
    /// Waiting requests.
    pub waiting: Track,
    /// Fraction of the KV cache in use.
    pub cache: Track,
    /// Prefill throughput, tokens per second.
    pub prompt: Track,
    /// Decode throughput, tokens per second.
    pub generated: Track,
}

/// Computes the likelihoods of the causes of a slower deployment. `since` is the first slow report; `before` is empty
/// if all reports are slow.
#[must_use]
pub fn diagnose(
    prediction: &Prediction,
    reports: &Reports,
    since: u64,
    before: &[Point],
    after: &[Point],
) -> Diagnosis {
    let mut scale = Scale::default();
    for (cause, share) in [(Cause::KvCache, 0.25), (Cause::Load, 0.3), (Cause::Host, 0.15), (Cause::Clocks, 0.15)] {
        scale.prior(cause, share);
    }
    if prediction.of(Part::Network) > 0.0 {
        scale.prior(Cause::Network, 0.15);
    }
    if before.is_empty() {
        scale.prior(Cause::Plan, 0.5);
        scale.add_evidence(Cause::Plan, 0.0, "slower than predicted from the first report");
    }
    // Compared with the values before the deviation, or with the plan.
    let levels = |track: &Track, planned: Option<f64>| {
        track.medians_around(since).or_else(|| Some([planned?, super::track::median(track.points())?]))
    };
    if let Some([was, now]) = levels(&reports.cache, None) {
        let waiting = levels(&reports.waiting, Some(0.0)).map_or([0.0; 2], |pair| pair);
        if now >= 0.95 && waiting[1] >= waiting[0] + 1.0 {
            let text = format!(
                "the KV cache is {:.0} % full (before: {:.0} %) and {:.0} requests wait",
                100.0 * now,
                100.0 * was,
                waiting[1]
            );
            scale.add_evidence(Cause::KvCache, 4.0, text);
        } else if now < 0.85 {
            scale.add(Cause::KvCache, -3.0);
        }
    }
    if let Some([was, now]) = levels(&reports.running, prediction.batch).filter(|[was, _]| *was > 0.0) {
        if now > 1.15 * was {
            let text = format!("{now:.0} requests are running (before: {was:.0})");
            scale.add_evidence(Cause::Load, 3.0, text);
        } else {
            scale.add_evidence(Cause::Load, -1.5, format!("the number of running requests has not grown ({now:.0})"));
        }
    }
    if let Some([was, now]) = reports.prompt.medians_around(since).filter(|[was, _]| *was > 0.0)
        && now > 1.5 * was
    {
        let text = format!("prefill throughput rose to {now:.0} tokens/s (before: {was:.0}) and delays decode");
        scale.add_evidence(Cause::Load, 2.0, text);
    }
    if let (Some(was), Some(now)) = (shape(before).filter(|_| before.len() >= 4), shape(after)) {
        let noise = now.noise.max(1e-3) / was.noise.max(1e-3);
        if noise >= 2.0 {
            let text = format!("step times vary {noise:.1} times as much as before");
            scale.add_evidence(Cause::Network, 0.7, text.clone());
            scale.add_evidence(Cause::Host, 0.7, text);
            scale.add(Cause::Clocks, -0.7);
        } else {
            scale.add_evidence(Cause::Clocks, 0.8, "all reports are slower by the same factor");
        }
    }
    scale.normalize()
}
