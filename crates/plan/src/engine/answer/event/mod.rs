//! Event engine: estimates a scenario by simulation.
//!
//! Inputs, memory, power, prices and verdicts are those of the analytical engine. Times, rates and their spread come
//! from the simulation. Independent runs with successive seeds measure the random variation, which widens the measured
//! prediction interval of the analytical engine.

pub mod serving;
pub mod training;

use super::Physics;
use crate::estimate::{Estimate, Simulated};
use crate::scenario::{KnobSet, Phase, Scenario, Simulation};
use atlas_core::plan::Arrivals;
use atlas_perf::serving::{Load, ServingEstimate, ServingInput};
use atlas_perf::training::{TrainingEstimate, TrainingInput};
use atlas_sim::kernel::replication::Interval;
use atlas_sim::kernel::{Progress, Tally};
use atlas_sim::{serving as requests, training as steps};

/// Confidence level of intervals over runs: the same as that of the prediction intervals.
pub const CONFIDENCE_LEVEL: f64 = 0.9;

/// Estimate of a simulation, and the output of its first run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Estimate in the format common to all engines.
    pub estimate: Estimate,
    /// Output of the first run of a training workload, with recorded tasks.
    pub training: Option<steps::Output>,
    /// Output of the first run of a serving workload.
    pub serving: Option<requests::Output>,
}

impl Run {
    /// Approximate memory use in bytes: counts the parts that grow with the simulation.
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

/// Simulates a scenario. Returns `None` if `progress` was canceled.
#[must_use]
pub fn run(scenario: &Scenario, progress: &Progress) -> Option<Run> {
    let mut estimate = Estimate::default();
    let mut events = Events::new(scenario, progress, true);
    super::estimate_with(scenario, &mut events, &mut estimate);
    let Events { training, serving, .. } = events;
    (!progress.canceled()).then_some(Run { estimate, training, serving })
}

/// Returns the scenario with normalized prices and emissions. These are applied to the simulated metrics afterwards, so
/// scenarios that differ only in them can share one simulation.
#[must_use]
pub fn unpriced(mut scenario: Scenario) -> Scenario {
    // Notes depend on whether a price is known, but not on its value.
    scenario.hourly_usd = scenario.hourly_usd.map(|_| 1.0);
    scenario.capex_usd_node = scenario.capex_usd_node.map(|_| 1.0);
    (scenario.pue, scenario.usd_per_kwh, scenario.kg_co2e_per_kwh, scenario.amortization_years) = (1.0, 0.0, 0.0, 1.0);
    scenario.stated = KnobSet::default();
    scenario
}

impl Run {
    /// Estimate of `scenario`, which must be equal to the simulated one after [`unpriced`].
    #[must_use]
    pub fn estimate_of(&self, scenario: &Scenario) -> Estimate {
        let mut estimate = self.estimate.clone();
        estimate.cost = crate::engine::cost(scenario, &estimate.total);
        estimate
    }
}

/// Estimates a scenario into `estimate`. Blocks until the simulation ends.
pub fn estimate_into(scenario: &Scenario, estimate: &mut Estimate) {
    let _ = estimate_until(scenario, &Progress::new(), estimate);
}

/// Like [`estimate_into`], but stops if `progress` is canceled. Returns whether the simulation completed.
#[must_use]
pub fn estimate_until(scenario: &Scenario, progress: &Progress, estimate: &mut Estimate) -> bool {
    super::estimate_with(scenario, &mut Events::new(scenario, progress, false), estimate);
    !progress.canceled()
}

/// Like [`estimate_into`], but ignores the schedule.
pub fn estimate_unscheduled_into(scenario: &Scenario, estimate: &mut Estimate) {
    let progress = Progress::new();
    super::estimate_unscheduled_with(scenario, &mut Events::new(scenario, &progress, false), estimate);
}

/// Physics by event simulation.
struct Events<'a> {
    progress: &'a Progress,
    /// Number of phases estimated so far, and in total: the whole workload and each phase of its schedule.
    answered: u32,
    answers: u32,
    /// Whether to keep the output of the first run.
    keeps: bool,
    training: Option<steps::Output>,
    serving: Option<requests::Output>,
}

impl<'a> Events<'a> {
    fn new(scenario: &Scenario, progress: &'a Progress, keeps: bool) -> Self {
        let answers = 1 + scenario.phases.len() as u32;
        Events { progress, answered: 0, answers, keeps, training: None, serving: None }
    }

    /// For a single input without a scenario.
    fn alone(progress: &'a Progress) -> Self {
        Events { progress, answered: 0, answers: 1, keeps: false, training: None, serving: None }
    }

    /// Maps the progress of run `number` of `of` in the current phase to its share of the total progress.
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
        let mut settings = scenario.simulation(phase);
        // Requests of a phase of a schedule arrive at the rate of the phase, unless a knob states other arrivals.
        let stated = phase.plan.simulation;
        if matches!(input.load, Load::Open { .. }) && stated.arrivals.is_none() {
            let own = phase.arrival.arrival_cv.unwrap_or(phase.traffic.cv);
            settings.arrival_cv = stated.arrival_cv.unwrap_or(own);
            settings.arrivals = if settings.arrival_cv == 1.0 { Arrivals::Poisson } else { Arrivals::Gamma };
        }
        let constants = super::throttle::serving(scenario, input);
        let (answer, kept) = serving::answer(&settings, input, &constants, closed, self);
        if first {
            self.serving = kept;
        }
        self.answered += 1;
        answer
    }
}

/// Statistics of a simulation.
fn simulated(settings: &Simulation, runs: u32, rates: &Tally, drawn: bool, events: u64) -> Simulated {
    let interval = Interval::of(rates, CONFIDENCE_LEVEL);
    let half_width = match (drawn, runs) {
        (false, _) => Some(0.0),
        (true, 0 | 1) => None,
        (true, _) => Some(if interval.mean > 0.0 { interval.half_width / interval.mean } else { 0.0 }),
    };
    Simulated { seed: settings.seed, replications: runs, half_width, events, ..Simulated::default() }
}
