//! Two fair ways to compare targets: with the same knobs, or each with its own best ones under the same constraints.

use super::gauge::Gauge;
use super::optimise::{Optimum, Problem, freed, optimise};
use crate::estimate::Estimate;
use crate::knob::{Knob, Setting};
use crate::scenario::{Parts, Scenario};

/// How targets are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Methodology {
    /// Every target with the same knobs: what the hardware changes, all else equal
    #[default]
    IdenticalConfig,
    /// Every target with its own best knobs under the same constraints: what a buyer would get
    MaximumPerformance,
}

impl Methodology {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Methodology::IdenticalConfig => "identical-config",
            Methodology::MaximumPerformance => "maximum-performance",
        }
    }
}

/// A target at its best.
#[derive(Debug, Clone)]
pub struct Contender {
    /// The scenario that stands for the target: its best, or where it started.
    pub scenario: Scenario,
    /// Its estimate.
    pub estimate: Estimate,
    /// The search that found it.
    pub optimum: Optimum,
}

/// The best of a target's scenario. `pose` makes the problem of the scenario whose knobs are free; `held` are knobs that
/// stay what they are.
///
/// # Errors
/// What `pose` returns; in words, that nothing meets the constraints.
pub fn at_its_best<E: From<String>>(
    start: &Scenario,
    parts: &Parts,
    held: &dyn Fn(Knob) -> bool,
    pose: impl for<'p> FnOnce(&'p Scenario, &'p Parts) -> Result<Problem<'p>, E>,
    gauge: &Gauge,
) -> Result<Contender, E> {
    let start = freed(start, held, parts);
    let problem = pose(&start, parts)?;
    let optimum = optimise(&problem, gauge);
    let Some(best) = &optimum.best else {
        return Err("no combination of the knobs meets all constraints".to_owned().into());
    };
    Ok(Contender { scenario: best.scenario.clone(), estimate: best.estimate.clone(), optimum })
}

/// Knobs that are not the same in all scenarios that heed them, with each one's value; `None` where it is not heeded.
#[must_use]
pub fn differences(scenarios: &[&Scenario]) -> Vec<(Knob, Vec<Option<Setting>>)> {
    let values = |knob: Knob| -> Vec<Option<Setting>> {
        scenarios.iter().map(|scenario| scenario.heeds(knob).then(|| scenario.get(knob))).collect()
    };
    Knob::all()
        .map(|knob| (knob, values(knob)))
        .filter(|(_, values)| values.windows(2).any(|pair| matches!(pair, [a, b] if a != b)))
        .collect()
}
