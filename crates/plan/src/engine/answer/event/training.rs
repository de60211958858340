//! Training, pass by pass: what is uneven and what fails as the knobs say, then the run's integrals as figures.

use super::super::throttle;
use super::Events;
use crate::estimate::{Simulated, SimulatedTraining};
use crate::scenario::{Scenario, Simulation};
use atlas_core::count::Count;
use atlas_perf::constants::Constants;
use atlas_perf::training::{TimeBreakdown, TrainingEstimate, TrainingInput};
use atlas_sim::kernel::{Distribution, Progress, Tally};
use atlas_sim::training::input::StageLoad;
use atlas_sim::training::{Hosts, Input, Output, Slow, faults, simulate};

/// Failures that a course of failures is watched for, so that its goodput is known to about a percent.
const FAILURES: f64 = 2000.0;
/// Checkpoints that a course takes at most.
const MOST_CHECKPOINTS: f64 = 500_000.0;

/// The answer to a phase.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// In the closed form's words; its step holds failures and checkpoints.
    pub estimate: TrainingEstimate,
    /// Seconds of the step that slow nodes and jitter cost.
    pub stragglers: f64,
    /// Seconds of the step that failures and checkpoints cost, on average.
    pub failures: f64,
    /// What the simulation adds; none of a closed form, nor where the input could not be simulated.
    pub simulated: Option<Simulated>,
}

impl Answer {
    /// A closed form's.
    #[must_use]
    pub fn closed(estimate: TrainingEstimate) -> Answer {
        Answer { estimate, stragglers: 0.0, failures: 0.0, simulated: None }
    }
}

/// The simulation's input. Ranks are laid out as Megatron's: tensor and context parallel inside, then data, then pipeline.
#[must_use]
pub fn input(scenario: &Scenario, settings: &Simulation, system: &TrainingInput) -> Input {
    let mut input = Input::of(system, &throttle::training(scenario, system));
    input.steps = settings.steps;
    input.jitter = settings.jitter;
    input.slow = slow(scenario, settings, system);
    input
}

/// Tokens per second and accelerator of a job on even hardware, as measurements are predicted; `None` if it cannot be
/// simulated.
#[must_use]
pub fn rate(system: &TrainingInput) -> Option<f64> {
    let (step, _) = even(system)?;
    Some(system.global * system.seq / step / system.accelerators.max(1.0))
}

/// Where the step of such a job goes, under the names of `closed`, the closed form's.
#[must_use]
pub fn times(system: &TrainingInput, closed: &TimeBreakdown) -> Option<TimeBreakdown> {
    let (step, load) = even(system)?;
    let mean = load.total().max(1e-12);
    Some(parts(closed, &StageLoad::default().add(&load, step / mean)))
}

/// A step of a job on even hardware, and what its stages do in it.
fn even(system: &TrainingInput) -> Option<(f64, StageLoad)> {
    // Where stages continue without waiting for each other, only the first step fills an empty pipeline.
    let steps = if system.schedule.own_optimizers() { 3 } else { 1 };
    let input = Input { steps, recorded: None, ..Input::of(system, &Constants::default()) };
    let out = simulate(&input, 0, &Progress::new()).ok()?;
    let step = out.steps.last().copied().filter(|step| *step > 0.0)?;
    Some((step, out.load))
}

/// How the job's accelerators sit in hosts.
#[must_use]
pub fn hosts(scenario: &Scenario, system: &TrainingInput) -> Hosts {
    let per_host = scenario.accelerators_per_node * scenario.machine.map_or(1.0, |machine| machine.dies);
    Hosts { devices: system.accelerators.max(1.0) as u32, per_host: per_host as u32 }
}

/// The stages that slow nodes hold a rank of.
fn slow(scenario: &Scenario, settings: &Simulation, system: &TrainingInput) -> Vec<Slow> {
    hosts(scenario, system).slow(system, settings.slow_nodes.get(), settings.slow_factor, settings.seed)
}

/// Runs the phase. `records` requests the tasks of the first run's last step.
pub(super) fn answer(
    scenario: &Scenario,
    settings: &Simulation,
    system: &TrainingInput,
    closed: TrainingEstimate,
    records: bool,
    events: &Events<'_>,
) -> (Answer, Option<Output>) {
    let mut uneven = input(scenario, settings, system);
    let drawn = settings.jitter > 0.0;
    let runs = if drawn { settings.replications } else { 1 };
    // Where the events have an even job to compare with, that is one run more.
    let even = Input { jitter: 0.0, slow: Vec::new(), recorded: None, ..uneven.clone() };
    let is_even = !drawn && uneven.slow.is_empty();
    let all = runs + u32::from(!is_even);
    let (mut rates, mut step, mut load, mut busy) = (Tally::default(), 0.0, StageLoad::default(), 0.0);
    let (mut handled, mut replicas, mut kept) = (0, 0, None);
    for number in 0..runs {
        events.within(number, all);
        let last = settings.steps.saturating_sub(1);
        uneven.recorded = (records && number == 0).then_some(last..last + 1);
        let seed = settings.seed.wrapping_add(u64::from(number));
        let Ok(out) = simulate(&uneven, seed, events.progress) else { return (Answer::closed(closed), None) };
        rates.add(out.tokens_per_second);
        step += out.step.mean / f64::from(runs);
        load = load.add(&out.load, 1.0 / f64::from(runs));
        busy += out.busy / f64::from(runs);
        (handled, replicas) = (handled + out.events, out.replicas);
        kept.get_or_insert(out);
        if events.progress.cancelled() {
            return (Answer::closed(closed), None);
        }
    }
    let mut stragglers = 0.0;
    if !is_even {
        events.within(runs, all);
        if let Ok(out) = simulate(&even, settings.seed, events.progress) {
            // What unevenness costs is what it adds: the others wait for the slow ones wherever they meet.
            stragglers = (step - out.step.mean).max(0.0);
            load = out.load;
            handled += out.events;
        }
    }
    let faults = failing(scenario, settings, step);
    let goodput = faults.map_or(1.0, |faults| faults.goodput);
    let wall = step / goodput.max(1e-6);
    let time = parts(&closed.time, &load);
    let slower = closed.step_seconds / wall.max(1e-12);
    let estimate = TrainingEstimate {
        step_seconds: wall,
        tokens_per_second: closed.tokens_per_second * slower,
        tokens_per_second_per_accelerator: closed.tokens_per_second_per_accelerator * slower,
        mfu: closed.mfu * slower,
        mfu_causal: closed.mfu_causal * slower,
        hfu: closed.hfu * slower,
        time,
        ..closed
    };
    let mut simulated = super::simulated(settings, runs, &rates, drawn, handled);
    simulated.training = Some(SimulatedTraining {
        steps: settings.steps,
        replicas,
        busy,
        stragglers: stragglers / step.max(1e-12),
        goodput,
        failures_per_day: faults.map_or(0.0, |faults| faults.failures_per_day),
        checkpoint_interval_s: faults.map(|faults| faults.interval),
        checkpoint_s: settings.checkpoint,
        restart_s: settings.restart,
        step_s: step,
    });
    (Answer { estimate, stragglers, failures: wall - step, simulated: Some(simulated) }, kept)
}

/// The stages' integrals under the closed form's names: kernels, and what is waited for inside passes, each in the closed
/// form's proportions; what is waited for between them as it was.
fn parts(closed: &TimeBreakdown, load: &StageLoad) -> TimeBreakdown {
    let kernels = closed.gemm + closed.attention + closed.elementwise + closed.recompute + closed.host + closed.images;
    let layered = closed.tensor_parallel + closed.context_parallel + closed.expert_parallel;
    let of = |part: f64| load.compute * part / kernels.max(1e-12);
    // Without a collective in the closed form what is waited for are copies.
    let waited = |part: f64| if layered > 0.0 { load.collectives * part / layered } else { 0.0 };
    TimeBreakdown {
        gemm: of(closed.gemm),
        attention: of(closed.attention),
        elementwise: of(closed.elementwise),
        recompute: of(closed.recompute),
        host: of(closed.host),
        tensor_parallel: waited(closed.tensor_parallel),
        context_parallel: waited(closed.context_parallel),
        expert_parallel: waited(closed.expert_parallel),
        pipeline_transfer: load.transfer,
        pipeline_bubble: load.bubble + load.loading,
        data_parallel: load.exposed_data,
        optimizer: load.optimizer,
        offload: if layered > 0.0 { 0.0 } else { load.collectives },
        images: of(closed.images),
    }
}

/// Events of a course that is simulated: a tenth of a second of computing, and far more than a course takes in which work
/// continues.
const MOST_EVENTS_OF_A_COURSE: f64 = 2e6;

/// What failures and checkpoints do to a long run.
#[derive(Debug, Clone, Copy)]
struct Failing {
    goodput: f64,
    failures_per_day: f64,
    interval: f64,
}

/// A long course of failures, of a job whose step takes so long; `None` if nothing fails and nothing is saved.
fn failing(scenario: &Scenario, settings: &Simulation, step: f64) -> Option<Failing> {
    let fails = settings.node_mtbf.is_some();
    if !fails && settings.checkpoint_interval.is_none() {
        return None;
    }
    let mut input = faults::Input {
        work: 0.0,
        nodes: scenario.num_nodes.max(Count::ONE).get(),
        node_mtbf: settings.node_mtbf.unwrap_or(f64::INFINITY),
        interval: 0.0,
        checkpoint: settings.checkpoint,
        flush: settings.checkpoint_write,
        detection: 0.0,
        restart: settings.restart,
        // A spare is always at hand: how many that takes is another question.
        spares: u32::MAX,
        repair: Distribution::Constant(0.0),
    };
    // No work is saved more often than a step ends.
    // One checkpoint is written before the next one begins.
    let least = step.max(settings.checkpoint_write).max(1e-3);
    input.interval = settings.checkpoint_interval.unwrap_or_else(|| input.daly()).max(least);
    let mtbf = input.mtbf();
    if !fails {
        let goodput = input.interval / (input.interval + input.checkpoint);
        return Some(Failing { goodput, failures_per_day: 0.0, interval: input.interval });
    }
    // Courses are described in units of their own length, so that no span is too long for the clock.
    let work = (FAILURES * mtbf).min(MOST_CHECKPOINTS * input.interval);
    let unit = work / 1e6;
    let scaled = faults::Input {
        work: work / unit,
        node_mtbf: input.node_mtbf / unit,
        interval: input.interval / unit,
        checkpoint: input.checkpoint / unit,
        flush: input.flush / unit,
        restart: input.restart / unit,
        ..input
    };
    let goodput = if scaled.expected_events() > MOST_EVENTS_OF_A_COURSE {
        // Hardly an interval ends without a failure: the closed-form expectation of an endless run is used.
        (scaled.work / scaled.daly_wall()).clamp(1e-9, 1e-3)
    } else {
        let course = faults::simulate(&scaled, settings.seed, &Progress::new()).ok()?;
        if course.unfinished { course.goodput.min(1e-3) } else { course.goodput }
    };
    Some(Failing { goodput, failures_per_day: 86_400.0 / mtbf, interval: input.interval })
}
