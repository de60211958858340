//! Trade-offs: pairs of metrics, and the knobs that trade one for the other.

use super::optimize::{MAX_CANDIDATES, Problem, freed};
use super::space::{Axis, Space, divisors, doublings, stages};
use crate::estimate::{Metric, MetricId};
use crate::knob::{Knob, Setting};
use crate::scenario::{Parts, Scenario};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::plan::Recompute;

/// Two metrics with a trade-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Description.
    pub name: &'static str,
    /// Metric on the horizontal axis.
    pub across: MetricId,
    /// Metric on the vertical axis.
    pub up: MetricId,
    /// Mode that the pair applies to.
    pub mode: Mode,
    /// Whether the number of nodes is varied too.
    pub nodes: bool,
}

const fn pair(name: &'static str, across: MetricId, up: MetricId, mode: Mode, nodes: bool) -> Pair {
    Pair { name, across, up, mode, nodes }
}

/// All pairs; the first one of each mode is the default.
pub const PAIRS: [Pair; 7] = [
    pair(
        "throughput against interactivity",
        MetricId::TokensPerSecPerUser,
        MetricId::TokensPerSecPerAccel,
        Mode::Inference,
        false,
    ),
    pair(
        "cost against interactivity",
        MetricId::TokensPerSecPerUser,
        MetricId::DollarPer1mTokens,
        Mode::Inference,
        false,
    ),
    pair(
        "throughput against time to first token",
        MetricId::TtftMs,
        MetricId::TokensPerSecPerAccel,
        Mode::Inference,
        false,
    ),
    pair(
        "energy against interactivity",
        MetricId::TokensPerSecPerUser,
        MetricId::JoulesPerToken,
        Mode::Inference,
        false,
    ),
    pair("cost against time", MetricId::TimeToTrainH, MetricId::UsdPerRun, Mode::Training, true),
    pair("energy against time", MetricId::TimeToTrainH, MetricId::KwhPerRun, Mode::Training, true),
    pair("throughput against free memory", MetricId::Headroom, MetricId::TokensPerSec, Mode::Training, false),
];

impl Pair {
    /// Pairs that apply to a scenario.
    pub fn of(scenario: &Scenario) -> impl Iterator<Item = &'static Pair> {
        let applies = |metric: &Metric| metric.applies_to(scenario);
        PAIRS.iter().filter(move |pair| pair.mode == scenario.mode() && pair.metrics().into_iter().all(applies))
    }

    /// The metrics: horizontal, vertical.
    #[must_use]
    pub fn metrics(&self) -> [&'static Metric; 2] {
        [self.across.metric(), self.up.metric()]
    }

    /// Starting point of the search.
    #[must_use]
    pub fn start(&self, scenario: &Scenario, parts: &Parts) -> Scenario {
        freed(scenario, &|_| false, parts)
    }

    /// Search for the Pareto front from [`Pair::start`]. It varies the layout and, in serving, the load, or, in
    /// training, nodes, micro-batch and recomputation. The space is small enough for an exhaustive search without a
    /// noticeable delay.
    #[must_use]
    pub fn problem<'p>(&self, start: &'p Scenario, parts: &'p Parts) -> Problem<'p> {
        let front = self.metrics().to_vec();
        let objective = self.up.metric();
        let space = self.space(start);
        Problem {
            requested: start,
            start,
            parts,
            space,
            objective,
            conditions: Vec::new(),
            default_conditions: Vec::new(),
            idle: false,
            front,
            runners_up: 0,
            max_candidates: MAX_CANDIDATES,
            min_gain: 0.0,
        }
    }

    fn space(&self, start: &Scenario) -> Space {
        let model = start.model.unwrap_or_default();
        let nodes = if self.nodes {
            doublings((start.num_nodes / 8.0).ceil().max(1.0), start.num_nodes * 8.0)
        } else {
            Vec::new()
        };
        let dies = start.machine.map_or(1.0, |machine| machine.dies);
        let per_node = start.accelerators() / start.num_nodes.max(Count::ONE) * dies;
        let devices = nodes.last().copied().unwrap_or(f64::from(start.num_nodes)) * per_node;
        let ranks = |count: f64, limit: f64| -> Vec<f64> {
            if count >= 1.0 { divisors(count).filter(|ranks| *ranks <= limit).collect() } else { doublings(1.0, limit) }
        };
        // More tensor-parallel ranks than in a node or scale-up domain are never the better choice.
        let domain = start.machine.map_or(per_node, |machine| machine.device.domain.max(per_node));
        let mut axes = vec![
            Axis::of(Knob::NumNodes, nodes),
            Axis::of(Knob::Tp, ranks(f64::from(model.heads), domain.min(devices))),
            Axis::of(Knob::Pp, stages(model.depth(), devices.min(64.0), self.mode)),
        ];
        if model.is_moe() {
            axes.push(Axis::of(Knob::Ep, ranks(f64::from(model.experts), devices)));
        }
        match self.mode {
            Mode::Training => {
                axes.push(Axis::of(Knob::Microbatch, doublings(1.0, 16.0)));
                let words = Recompute::NAMES.iter().map(|word| Setting::Choice((*word).into()));
                axes.push(Axis { knob: Knob::Recompute, values: words.collect() });
            }
            Mode::Inference => axes.push(Axis::of(Knob::Concurrency, doublings(1.0, 16_384.0))),
        }
        axes.retain(|axis| axis.turns(start));
        Space::of(axes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    use crate::search::{Gauge, metric, optimize};
    use crate::testing;

    #[test]
    fn every_pareto_front_has_several_non_dominated_points() {
        for (target, workload) in [("h100-sxm-8", "llama3.1-70b-serve"), ("h100-sxm-128", "llama3.1-70b-train")] {
            let (parts, scenario) = testing::scenario(target, workload, &[]);
            assert!(Pair::of(&scenario).count() >= 3);
            for pair in Pair::of(&scenario) {
                let start = pair.start(&scenario, &parts);
                let problem = pair.problem(&start, &parts);
                assert!(problem.space.size() < 200_000, "{}: {}", pair.name, problem.space.size());
                let found = optimize(&problem, &Gauge::default());
                assert!(found.front.len() > 1, "{}: nothing is traded", pair.name);
                let scores = |candidate: &crate::search::optimize::Candidate| {
                    pair.metrics().map(|metric| metric::score(metric, &candidate.estimate, &candidate.scenario))
                };
                let front: Vec<[f64; 2]> = found.front.iter().map(scores).collect();
                for (i, a) in front.iter().enumerate() {
                    let beaten = front.iter().enumerate().any(|(j, b)| i != j && b[0] <= a[0] && b[1] <= a[1]);
                    assert!(!beaten, "{}: {a:?} is beaten", pair.name);
                }
            }
        }
    }
}
