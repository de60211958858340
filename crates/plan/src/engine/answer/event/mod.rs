//! A scenario passed to the event engine: what the closed form computes, the events let happen.
//!
//! Inputs, memory, power, prices and verdicts are those of the analytical answer; times, rates and their spread come
//! from the simulation. Independent runs under successive seeds say how far chance carries; their spread widens the
//! interval that measurements gave the analytical engine.

pub mod serving;
pub mod training;

use super::Physics;
use crate::estimate::{Estimate, Simulated};
use crate::scenario::{Phase, Scenario, Simulation};
use atlas_perf::serving::{ServingEstimate, ServingInput};
use atlas_perf::training::{TrainingEstimate, TrainingInput};
use atlas_sim::kernel::replication::Interval;
use atlas_sim::kernel::{Progress, Tally};
use atlas_sim::{serving as requests, training as steps};

/// Level of the confidence intervals over runs: that of the prediction intervals.
pub const LEVEL: f64 = 0.9;

/// The estimate of a simulation, and the run behind it.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// In the words that all engines share.
    pub estimate: Estimate,
    /// The first run of a training workload, its tasks recorded.
    pub training: Option<steps::Output>,
    /// The first run of a serving workload.
    pub serving: Option<requests::Output>,
}

impl Run {
    /// Bytes that it takes, about: what grows with the simulation.
    #[must_use]
    pub fn bytes(&self) -> usize {
        fn of<T>(list: &Vec<T>) -> usize {
            list.capacity() * size_of::<T>()
        }
        let training = self.training.as_ref().map_or(0, |out| {
            of(&out.tasks) + of(&out.operators) + of(&out.critical_path) + of(&out.steps) + of(&out.stages)
        });
        let serving = self.serving.as_ref().map_or(0, |out| of(&out.records) + of(&out.timeline));
        size_of::<Run>() + training + serving
    }
}

/// Simulates a scenario. Without an answer where `progress` was canceled.
#[must_use]
pub fn run(scenario: &Scenario, progress: &Progress) -> Option<Run> {
    let mut estimate = Estimate::default();
    let mut events = Events::new(scenario, progress, true);
    super::estimate_with(scenario, &mut events, &mut estimate);
    let Events { training, serving, .. } = events;
    (!progress.cancelled()).then_some(Run { estimate, training, serving })
}

/// The scenario as the events see it. What work costs and emits follows from its figures afterwards, so that scenarios which
/// differ in nothing but prices share one simulation.
#[must_use]
pub fn unpriced(mut scenario: Scenario) -> Scenario {
    // Notes say whether a price is known, not which.
    scenario.hourly_usd = if scenario.hourly_usd > 0.0 { 1.0 } else { scenario.hourly_usd };
    scenario.capex_usd_node = scenario.capex_usd_node.map(|_| 1.0);
    (scenario.pue, scenario.usd_per_kwh, scenario.kg_co2e_per_kwh, scenario.amortization_years) = (1.0, 0.0, 0.0, 1.0);
    scenario
}

impl Run {
    /// The estimate of a scenario that is [`unpriced`] the same as the one that was simulated.
    #[must_use]
    pub fn estimate_of(&self, scenario: &Scenario) -> Estimate {
        let mut estimate = self.estimate.clone();
        estimate.cost = crate::engine::cost(scenario, &estimate.total);
        estimate
    }
}

/// Answers a scenario into `estimate`, as long as that takes.
pub fn estimate_into(scenario: &Scenario, estimate: &mut Estimate) {
    let _ = estimate_until(scenario, &Progress::new(), estimate);
}

/// As [`estimate_into`], unless `progress` is cancelled; answers whether it came to its end.
#[must_use]
pub fn estimate_until(scenario: &Scenario, progress: &Progress, estimate: &mut Estimate) -> bool {
    super::estimate_with(scenario, &mut Events::new(scenario, progress, false), estimate);
    !progress.cancelled()
}

/// As [`estimate_into`], without the schedule.
pub fn estimate_unscheduled_into(scenario: &Scenario, estimate: &mut Estimate) {
    let progress = Progress::new();
    super::estimate_unscheduled_with(scenario, &mut Events::new(scenario, &progress, false), estimate);
}

/// The physics as they happen.
struct Events<'a> {
    progress: &'a Progress,
    /// Answers given so far, and how many there will be: one of the whole, one of each phase.
    answered: u32,
    answers: u32,
    /// Whether the first runs are kept.
    keeps: bool,
    training: Option<steps::Output>,
    serving: Option<requests::Output>,
}

impl<'a> Events<'a> {
    fn new(scenario: &Scenario, progress: &'a Progress, keeps: bool) -> Self {
        let answers = 1 + scenario.phases.len() as u32;
        Events { progress, answered: 0, answers, keeps, training: None, serving: None }
    }

    /// Of one input, without a scenario around it.
    fn alone(progress: &'a Progress) -> Self {
        Events { progress, answered: 0, answers: 1, keeps: false, training: None, serving: None }
    }

    /// Lets `run` count its own share of the progress, as run `number` of `of` of this answer.
    fn within(&self, number: u32, of: u32) {
        let share = |n: u32| (f64::from(self.answered) + f64::from(n) / f64::from(of.max(1))) / f64::from(self.answers);
        self.progress.stage(share(number), share(number + 1));
    }
}

impl Physics for Events<'_> {
    fn training(
        &mut self,
        scenario: &Scenario,
        phase: &Phase,
        input: &TrainingInput,
        closed: TrainingEstimate,
    ) -> training::Answer {
        let first = self.keeps && self.answered == 0;
        let settings = scenario.simulation(phase);
        let (answer, kept) = training::answer(scenario, &settings, input, closed, first, self);
        if first {
            self.training = kept;
        }
        self.answered += 1;
        answer
    }

    fn serving(
        &mut self,
        scenario: &Scenario,
        phase: &Phase,
        input: &ServingInput,
        closed: ServingEstimate,
    ) -> serving::Answer {
        let first = self.keeps && self.answered == 0;
        let settings = scenario.simulation(phase);
        let constants = super::throttle::serving(scenario, input);
        let (answer, kept) = serving::answer(&settings, input, &constants, closed, self);
        if first {
            self.serving = kept;
        }
        self.answered += 1;
        answer
    }
}

/// What a simulation knows of itself.
fn simulated(settings: &Simulation, runs: u32, rates: &Tally, drawn: bool, events: u64) -> Simulated {
    let interval = Interval::of(rates, LEVEL);
    let half_width = match (drawn, runs) {
        (false, _) => Some(0.0),
        (true, 0 | 1) => None,
        (true, _) => Some(if interval.mean > 0.0 { interval.half_width / interval.mean } else { 0.0 }),
    };
    Simulated { seed: settings.seed, replications: runs, half_width, events, ..Simulated::default() }
}
