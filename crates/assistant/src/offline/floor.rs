//! Limits of every layout, computed without a search: bounds that no number of accelerators meets, and the fewest nodes
//! that could meet them.

use atlas_config::Mode;
use atlas_core::time_unit::TimeUnit;
use atlas_plan::engine;
use atlas_plan::estimate::MetricId;
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::Scenario;
use atlas_plan::search::Condition;
use atlas_plan::search::condition::Relation;

use super::case::Case;

/// Part of the time of a single sequence that a layout may need at least: those that are not tried here are hardly faster.
const MARGIN: f64 = 0.5;

/// Degrees of tensor parallelism that are tried.
const DEGREES: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// A bound that no number of nodes can meet, and the reason.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unreachable {
    pub(super) condition: Condition,
    pub(super) reason: String,
}

/// Returns the number of nodes below which no layout meets all conditions.
///
/// # Errors
/// No number of nodes up to `max_nodes` meets a condition.
pub(super) fn fewest_nodes(case: &Case<'_>, conditions: &[Condition], max_nodes: f64) -> Result<f64, Unreachable> {
    let mut fewest: f64 = 1.0;
    for condition in conditions {
        let Condition::Metric(metric, relation, bound) = condition else { continue };
        let unreachable = |reason| Err(Unreachable { condition: condition.clone(), reason });
        let lower_is_met = matches!(relation, Relation::AtMost | Relation::Below);
        let higher_is_met = matches!(relation, Relation::AtLeast | Relation::Above);
        let token_ms = match metric.id {
            MetricId::TpotMs if lower_is_met => Some(*bound),
            MetricId::TokensPerSecPerUser if higher_is_met => Some(TimeUnit::Second.milliseconds() / bound),
            _ => None,
        };
        if let Some((fastest, tp)) = token_ms.and_then(|_| fastest_token(case))
            && token_ms.is_some_and(|limit| limit < MARGIN * fastest)
        {
            return unreachable(format!(
                "a token of a single sequence takes {} with tp={tp}, and more accelerators only serve more sequences",
                MetricId::TpotMs.metric().show(fastest)
            ));
        }
        let rate = match metric.id {
            MetricId::TimeToTrainH if lower_is_met => tokens_within(case, *bound),
            MetricId::TokensPerSec if higher_is_met && case.mode() == Mode::Training => Some(*bound),
            _ => None,
        };
        if let Some((rate, peak)) = rate.zip(peak_tokens_per_sec(case)) {
            let nodes = (rate / (peak * f64::from(case.scenario.accelerators_per_node))).ceil();
            if nodes > max_nodes {
                return unreachable(format!("at the peak rate of every accelerator, it takes {nodes:.0} nodes"));
            }
            fewest = fewest.max(nodes);
        }
    }
    Ok(fewest)
}

/// Time per output token of a single sequence in ms, and the degree of tensor parallelism for which it is shortest. No
/// layout is limited by other sequences or by what fits in memory.
fn fastest_token(case: &Case<'_>) -> Option<(f64, u32)> {
    let model = case.scenario.model?;
    let time = |tp: u32, ep: u32| {
        let nodes = (f64::from(tp) / f64::from(case.scenario.accelerators_per_node)).ceil();
        let mut overrides: Overrides = case.overrides.clone();
        overrides.remove(&Knob::RequestRate);
        let one = [Knob::Pp, Knob::Dp, Knob::AttentionDp, Knob::Concurrency].map(|knob| (knob, 1.0));
        let layout = [(Knob::NumNodes, nodes), (Knob::Tp, tp.into()), (Knob::Ep, ep.into())];
        let none = [(Knob::PrefillAccelerators, 0.0)];
        let all = one.into_iter().chain(layout).chain(none);
        overrides.extend(all.map(|(knob, value)| (knob, Setting::Number(value))));
        let scenario = Scenario::resolve(&case.parts, &overrides).ok()?;
        if scenario.base.plan.serving.request_rate.is_some() {
            return None;
        }
        let estimate = engine::estimate(&engine::analytical_scenario(&scenario));
        let time = MetricId::TpotMs.metric().value(&estimate, &scenario)?;
        (time.is_finite() && time > 0.0).then_some((time, tp))
    };
    let degrees = DEGREES.into_iter().filter(|tp| f64::from(*tp) <= f64::from(model.heads));
    let layouts = degrees.flat_map(|tp| [Some(1), Some(tp).filter(|_| model.is_moe())].map(|ep| (tp, ep)));
    let times = layouts.filter_map(|(tp, ep)| time(tp, ep?));
    times.min_by(|a, b| a.0.total_cmp(&b.0))
}

/// Tokens per second that train on the tokens of the scenario within `hours`.
fn tokens_within(case: &Case<'_>, hours: f64) -> Option<f64> {
    let get = |id: MetricId| id.metric().applicable_value(&case.estimate, &case.scenario);
    let tokens = get(MetricId::TimeToTrainH)? * get(MetricId::TokensPerSec)?;
    Some(tokens / hours).filter(|rate| rate.is_finite())
}

/// Tokens per second and accelerator in training if every accelerator computes at its peak rate all the time.
fn peak_tokens_per_sec(case: &Case<'_>) -> Option<f64> {
    let get = |id: MetricId| id.metric().applicable_value(&case.estimate, &case.scenario);
    let peak = get(MetricId::TokensPerSecPerAccel)? / get(MetricId::MfuCausal)?.min(1.0);
    Some(peak).filter(|peak| peak.is_finite() && *peak > 0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::offline::Context;
    use crate::offline::rank::{MAX_CANDIDATES_PER_SEARCH, best};
    use atlas_config::library::Library;
    use atlas_document::Sources;
    use atlas_plan::search::Gauge;

    fn context<'l>(library: &'l Library, target: &str, workload: &str) -> Context<'l> {
        let (target, workload) = (target.into(), workload.into());
        Context { library, target, workload, overrides: Overrides::new(), flags: Vec::new() }
    }

    #[test]
    fn no_searched_layout_beats_the_limits() {
        let library = Library::load(&Sources::built_in(), None);
        for (target, workload) in [("h100-sxm-64", "llama3.1-70b-serve"), ("h200-sxm-64", "deepseek-v3-serve")] {
            let context = context(&library, target, workload);
            let case = Case::of(&context, target, workload, Overrides::new()).unwrap();
            let (fastest, _) = fastest_token(&case).unwrap();
            let metric = MetricId::TpotMs.metric();
            let found = best(&case, metric, &[], 200_000, &Gauge::default()).unwrap();
            let shortest = found.case.unwrap().value(metric).unwrap();
            assert!(shortest >= MARGIN * fastest, "{target}: {shortest} ms, a single sequence: {fastest} ms");
            let below = |bound| vec![Condition::Metric(metric, Relation::Below, bound)];
            assert!(fewest_nodes(&case, &below(0.001), 4096.0).is_err());
            assert_eq!(fewest_nodes(&case, &below(shortest * 1.01), 4096.0), Ok(1.0));
        }
        let (target, workload) = ("h100-sxm-128", "llama3.1-70b-train");
        let context = context(&library, target, workload);
        let tokens = Overrides::from([(Knob::TrainTokens, Setting::Number(15e12))]);
        let case = Case::of(&context, target, workload, tokens).unwrap();
        let metric = MetricId::TimeToTrainH.metric();
        let found = best(&case, metric, &[], MAX_CANDIDATES_PER_SEARCH / 20, &Gauge::default()).unwrap();
        let hours = found.case.unwrap().value(metric).unwrap();
        let bound = [Condition::Metric(metric, Relation::AtMost, hours)];
        let nodes = fewest_nodes(&case, &bound, 4096.0).unwrap();
        assert!(nodes <= 16.0 && nodes > 4.0, "{nodes} nodes");
        assert!(fewest_nodes(&case, &bound, nodes - 1.0).is_err());
    }
}
