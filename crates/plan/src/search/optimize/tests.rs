//! Searches for the fewest accelerators, compared with trying every layout.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::engine::estimate;
use crate::knob::{Knob, Setting};
use crate::search::Axis;
use crate::testing;

fn case(target: &str, workload: &str, set: &[&str]) -> (Parts, Scenario) {
    let (parts, scenario) = testing::scenario(target, workload, set);
    (parts, scenario)
}

fn fewest(parts: &Parts, requested: &Scenario) -> (Vec<Condition>, Candidate) {
    let start = freed(requested, &|_| false, parts);
    let problem =
        Problem::of(&start, parts, MetricId::Accelerators.metric()).from(requested).with_default_conditions(&[]);
    let best = optimize(&problem, &Gauge::default()).best.unwrap();
    (problem.conditions, best)
}

fn accelerators(candidate: &Candidate) -> f64 {
    candidate.value(MetricId::Accelerators.metric()).unwrap()
}

#[test]
fn fewest_accelerators_are_those_of_the_smallest_layout_that_meets_the_bounds() {
    for (target, workload, set, expected) in [
        ("h100-sxm-8", "llama3.1-70b-serve", &[][..], 4.0),
        ("h100-sxm-8", "llama3.1-8b-serve", &[], 2.0),
        ("h100-sxm-8", "llama3.1-8b-serve", &["concurrency=64"], 1.0),
        ("h200-sxm-8", "llama3.1-70b-serve", &["concurrency=512"], 6.0),
    ] {
        let (parts, requested) = case(target, workload, set);
        let (conditions, best) = fewest(&parts, &requested);
        let mut smallest = f64::INFINITY;
        for (tp, pp) in [1.0, 2.0, 4.0, 8.0].into_iter().flat_map(|tp| (1..=8).map(move |pp| (tp, f64::from(pp)))) {
            for dp in (1..=8).map(f64::from).filter(|dp| tp * pp * dp <= 8.0) {
                let mut scenario = requested.clone();
                for (knob, ranks) in [(Knob::Tp, tp), (Knob::Pp, pp), (Knob::Dp, dp)] {
                    scenario.set(knob, &Setting::Number(ranks), &parts).unwrap();
                }
                let estimate = estimate(&scenario);
                if fits(&estimate) && conditions.iter().all(|condition| condition.holds(&estimate, &scenario)) {
                    smallest = smallest.min(tp * pp * dp);
                }
            }
        }
        assert!(accelerators(&best) <= smallest, "{workload}: {} of {smallest}", accelerators(&best));
        assert_eq!(accelerators(&best), expected, "{workload} {set:?}: {:?}", best.changes);
    }
}

#[test]
fn the_fewest_accelerators_leave_no_node_idle() {
    let (parts, requested) = case("h100-sxm-64", "llama3.1-70b-serve", &["concurrency=1024"]);
    let (_, best) = fewest(&parts, &requested);
    let nodes = f64::from(best.scenario.num_nodes);
    assert_eq!(nodes, (accelerators(&best) / best.scenario.accelerators_per_node).ceil(), "{:?}", best.changes);
}

#[test]
fn nothing_is_searched_if_no_candidate_can_have_the_stated_format() {
    let (parts, requested) = case("h100-sxm-1024", "deepseek-v3-train", &["precision=mxfp8"]);
    let start = freed(&requested, &|_| false, &parts);
    let problem = Problem::of(&start, &parts, MetricId::TokensPerSec.metric()).from(&requested);
    let found = optimize(&problem, &Gauge::default());
    assert!(found.best.is_none() && found.extent.estimated == 0);
    assert_eq!(
        found.why_none(),
        "no candidate can run: the accelerator does not support mxfp8; search with precision=fp8, which it supports, or \
         see `atlas advise`"
    );
    // A search of formats finds those that can run.
    let formats =
        Axis { knob: Knob::Precision, values: vec![Setting::Choice("mxfp8".into()), Setting::Choice("fp8".into())] };
    let problem = Problem { space: Space::of(vec![formats]).unwrap(), ..problem };
    assert!(optimize(&problem, &Gauge::default()).common_verdict.is_none());
}
