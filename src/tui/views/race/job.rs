//! Runs the searches of a race, one lane after another. Results are reported ten times per second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::entry::{ChosenLayout, Entry, Outcome, relative_violation};
use super::{Batch, Lane, Round, start_setup};
use crate::demo::Setup;
use crate::tui::update::applying;
use crate::tui::work::job::{Job, Product};
use atlas_config::library::Library;
use atlas_evidence::support::{self, Support};
use atlas_plan::estimate::Metric;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::optimize::freed;
use atlas_plan::search::{Condition, Gauge, Problem, optimize};

/// How long results are collected before they are reported.
const BATCH: Duration = Duration::from_millis(100);

/// Job that searches the remaining lanes.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) library: Arc<Library>,
    pub(super) base: Setup,
    pub(super) lanes: Vec<Lane>,
    pub(super) objective: &'static Metric,
    pub(super) conditions: Vec<Condition>,
    pub(super) round: Round,
}

impl Job for Work {
    fn run(&self, gauge: &Gauge) -> Result<Product, String> {
        let began = Instant::now();
        let mut entries = Vec::new();
        for lane in self.lanes.iter().skip(self.round.from) {
            let setup = start_setup(&self.base, lane);
            let name = match lane.nodes {
                Some(nodes) => format!("{} on {nodes} nodes", lane.target).into(),
                None => Arc::clone(&lane.target),
            };
            let outcome = self.best(&setup, gauge).unwrap_or_else(Outcome::Refused);
            if gauge.canceled() {
                return Err("stopped".to_owned());
            }
            entries.push(Entry { name, outcome });
            if began.elapsed() >= BATCH {
                break;
            }
        }
        Ok(Product::Race(Arc::new(Batch { round: self.round, entries })))
    }
}

impl Work {
    fn best(&self, setup: &Setup, gauge: &Gauge) -> Result<Outcome, String> {
        let parts =
            Parts::find(&self.library, &setup.target, &setup.workload).map_err(|problems| problems.messages())?;
        let resolved = Scenario::resolve(&parts, &setup.overrides).map_err(|error| error.to_string())?;
        let from = atlas_plan::engine::analytical_scenario(&resolved);
        // Results of different engines are not comparable: only the analytical hardware model is ranked.
        if !from.engine.models_hardware() {
            return Err(format!("{} engine: not comparable", from.engine.name()));
        }
        let metrics = self.conditions.iter().filter_map(|condition| match condition {
            Condition::Metric(metric, ..) => Some(*metric),
            _ => None,
        });
        if let Some(metric) = metrics.chain([self.objective]).find(|metric| !metric.applies_to(&from)) {
            return Err(match metric.lacks_price(&from) {
                true => "no price: set cost.hourly_usd in its file (H selects it, e edits)".to_owned(),
                false => format!("{} does not apply to {}", metric.label, from.mode().name()),
            });
        }
        let start = freed(&from, &|_| false, &parts);
        let mut problem = Problem::of(&start, &parts, self.objective);
        problem.conditions.clone_from(&self.conditions);
        problem.front.clear();
        problem.runners_up = 0;
        let found = optimize(&problem, gauge);
        let pick = |scenario: &Scenario, estimate| {
            let setup = applying::setup(setup, &from, scenario, &parts);
            let evidence = evidence(&parts, scenario, self.objective);
            Box::new(ChosenLayout { setup, scenario: scenario.clone(), estimate, evidence })
        };
        if let Some(best) = found.best {
            return Ok(Outcome::Best(pick(&best.scenario, best.estimate)));
        }
        let mut nearest: Option<(Box<ChosenLayout>, Condition)> = None;
        for (index, condition) in self.conditions.iter().enumerate() {
            let others = self.conditions.iter().enumerate().filter(|(at, _)| *at != index);
            let others: Vec<Condition> = others.map(|(_, condition)| condition.clone()).collect();
            let best = nearest_to(&problem, condition, others, gauge);
            let Some(best) = best.map(|best| pick(&best.scenario, best.estimate)) else { continue };
            if nearest
                .as_ref()
                .is_none_or(|(known, missed)| relative_violation(&best, condition) < relative_violation(known, missed))
            {
                nearest = Some((best, condition.clone()));
            }
        }
        if nearest.is_none() {
            // Several constraints are violated at the same time: minimize the violation of the first one only.
            let first = self.conditions.iter().find(|condition| matches!(condition, Condition::Metric(..)));
            let best = first.and_then(|first| Some((nearest_to(&problem, first, Vec::new(), gauge)?, first)));
            nearest = best.map(|(best, first)| (pick(&best.scenario, best.estimate), first.clone()));
        }
        match nearest {
            Some((pick, condition)) => Ok(Outcome::Violates(pick, condition)),
            None => {
                let detail = found.start.estimate.detail.as_ref();
                Err(detail.map_or_else(|| "no layout can run".to_owned(), |detail| detail.verdict.describe()))
            }
        }
    }
}

/// Returns the measured rows that support the ranking metric of a layout.
fn evidence(parts: &Parts, scenario: &Scenario, objective: &Metric) -> Option<Support> {
    let figure = support::accuracy_metric(objective.id, scenario.mode());
    support::of(parts, scenario).into_iter().find(|support| support.figure == figure)
}

/// Returns the layout that comes closest to `condition` while meeting `others`, in the same search space.
fn nearest_to(
    problem: &Problem<'_>,
    condition: &Condition,
    others: Vec<Condition>,
    gauge: &Gauge,
) -> Option<atlas_plan::search::optimize::Candidate> {
    let Condition::Metric(metric, ..) = condition else { return None };
    let nearest = Problem { objective: metric, conditions: others, min_gain: 0.0, ..problem.clone() };
    optimize(&nearest, gauge).best
}
