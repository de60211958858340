//! Two fair ways to compare targets: with the same knobs, or each with its own best ones under the same constraints,
//! which [`super::optimise()`] finds from what [`super::optimise::freed`] leaves free.

use crate::knob::{Knob, Setting};
use crate::scenario::Scenario;

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
