//! Training simulation, pass by pass: applies variation and failures of the knobs, and converts the integrals to
//! metrics.

use super::super::throttle;
use super::Events;
use crate::estimate::{Simulated, SimulatedTraining};
use crate::scenario::{Scenario, Simulation};
use atlas_perf::constants::Constants;
use atlas_perf::training::{TimeBreakdown, TrainingEstimate, TrainingInput};
use atlas_sim::kernel::{Distribution, Progress, Tally};
use atlas_sim::training::input::StageLoad;
use atlas_sim::training::{Hosts, Input, Output, Slow, faults, simulate};

/// Number of failures to simulate, which determines goodput to about one percent.
const FAILURES: f64 = 2000.0;
/// Goodput below which the simulation of failures is not precise: nearly every interval between checkpoints has a failure.
pub(in super::super) const MIN_GOODPUT: f64 = 1e-3;
/// Maximum number of checkpoints in a simulation of failures.
const MAX_CHECKPOINTS: f64 = 500_000.0;

/// Result for a phase.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// Estimate in the format of the closed form. The step time includes failures and checkpoints.
    pub estimate: TrainingEstimate,
    /// Seconds of the step lost to slow nodes and jitter.
    pub stragglers: f64,
    /// Mean seconds of the step lost to failures and checkpoints.
    pub failures: f64,
    /// Additional results of the simulation; `None` for a closed form or if the input could not be simulated.
    pub simulated: Option<Simulated>,
}

impl Answer {
    /// Result of the closed form, without a simulation.
    #[must_use]
    pub fn closed(estimate: TrainingEstimate) -> Answer {
        Answer { estimate, stragglers: 0.0, failures: 0.0, simulated: None }
    }
}

/// Input of the simulation. The rank order is Megatron's: tensor and context parallel innermost, then data, then
/// pipeline.
#[must_use]
pub fn input(scenario: &Scenario, settings: &Simulation, system: &TrainingInput) -> Input {
    let mut input = Input::of(system, &throttle::training(scenario, system));
    input.steps = settings.steps;
    input.jitter = settings.jitter;
    input.slow = slow(scenario, settings, system);
    input
}

/// Tokens per second per accelerator of a job on uniform hardware, for comparison with measurements; `None` if it
/// cannot be simulated.
#[must_use]
pub fn rate(system: &TrainingInput) -> Option<f64> {
    let (step, _) = even(system)?;
    Some(system.global * system.seq / step / system.accelerators.max(1.0))
}

/// Time breakdown of a step of such a job. Kernel times have the proportions of the closed form `closed`.
#[must_use]
pub fn times(system: &TrainingInput, closed: &TimeBreakdown) -> Option<TimeBreakdown> {
    let (step, load) = even(system)?;
    let mean = load.total().max(1e-12);
    Some(parts(system, closed, &StageLoad::default().add(&load, step / mean)))
}

/// Step time of a job on uniform hardware, and the load of its stages.
fn even(system: &TrainingInput) -> Option<(f64, StageLoad)> {
    // With per-stage optimizers, stages continue without waiting for each other, and only the first step fills an empty
    // pipeline.
    let steps = if system.schedule.has_independent_optimizers() { 3 } else { 1 };
    let input = Input { steps, recorded: None, ..Input::of(system, &Constants::default()) };
    let out = simulate(&input, 0, &Progress::new()).ok()?;
    let step = out.steps.last().copied().filter(|step| *step > 0.0)?;
    Some((step, out.load))
}

/// Assignment of the job's accelerators to hosts.
#[must_use]
pub fn hosts(scenario: &Scenario, system: &TrainingInput) -> Hosts {
    let per_host = scenario.accelerators_per_node * scenario.machine.map_or(1.0, |machine| machine.dies);
    Hosts { devices: system.accelerators.max(1.0) as u32, per_host: per_host as u32 }
}

/// Stages that have a rank on a slow node.
fn slow(scenario: &Scenario, settings: &Simulation, system: &TrainingInput) -> Vec<Slow> {
    hosts(scenario, system).slow(system, settings.slow_nodes.get(), settings.slow_factor, settings.seed)
}

/// Simulates the phase. `records`: record the tasks of the last step of the first run.
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
    // Includes one further run if a uniform job is needed for comparison.
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
        if events.progress.canceled() {
            return (Answer::closed(closed), None);
        }
    }
    let mut stragglers = 0.0;
    if !is_even {
        events.within(runs, all);
        if let Ok(out) = simulate(&even, settings.seed, events.progress) {
            // The cost of stragglers is the difference to a uniform job, since the other ranks wait for the slow ones.
            stragglers = (step - out.step.mean).max(0.0);
            load = out.load;
            handled += out.events;
        }
    }
    let faults = failure_effect(settings, hosts(scenario, system).count(), step);
    let goodput = faults.map_or(1.0, |faults| faults.goodput);
    let wall = step / goodput.max(1e-9);
    let time = parts(system, &closed.time, &load);
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

/// Maps the integrated times of the stages to the parts of the closed form. Kernel times and waits inside passes are
/// split in the closed form's proportions; waits between passes are those of the simulation.
fn parts(system: &TrainingInput, closed: &TimeBreakdown, load: &StageLoad) -> TimeBreakdown {
    let kernels = closed.gemm + closed.attention + closed.elementwise + closed.recompute + closed.host + closed.images;
    let layered = closed.tensor_parallel + closed.context_parallel + closed.expert_parallel;
    let of = |part: f64| load.compute * part / kernels.max(1e-12);
    // Copies to the host share no links with collectives, which therefore wait as long as in the closed form.
    let offload = system.offload;
    let copies = offload.weights > 0.0 || offload.activations > 0.0;
    let collectives = if copies { load.collectives.min(of(layered)) } else { load.collectives };
    let optimizer = if offload.optimizer > 0.0 { load.optimizer.min(closed.optimizer) } else { load.optimizer };
    let waited = |part: f64| if layered > 0.0 { collectives * part / layered } else { 0.0 };
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
        optimizer,
        offload: if layered > 0.0 { load.collectives - collectives } else { load.collectives } + load.optimizer
            - optimizer,
        images: of(closed.images),
    }
}

/// Maximum number of events in a simulation of failures: a tenth of a second of computing, and far more than needed if
/// the job makes progress.
const MAX_FAILURE_EVENTS: f64 = 2e6;

/// Effect of failures and checkpoints on a long run.
#[derive(Debug, Clone, Copy)]
struct FailureEffect {
    goodput: f64,
    failures_per_day: f64,
    interval: f64,
}

/// Simulates a long series of failures of a job on `nodes` nodes with step time `step`; `None` without failures and
/// checkpoints.
fn failure_effect(settings: &Simulation, nodes: u32, step: f64) -> Option<FailureEffect> {
    let fails = settings.node_mtbf.is_some();
    if !fails && settings.checkpoint_interval.is_none() {
        return None;
    }
    let mut input = faults::Input {
        work: 0.0,
        nodes,
        node_mtbf: settings.node_mtbf.unwrap_or(f64::INFINITY),
        interval: 0.0,
        checkpoint: settings.checkpoint,
        flush: settings.checkpoint_write,
        detection: 0.0,
        restart: settings.restart,
        // Spare nodes are always available; their number is not estimated here.
        spares: u32::MAX,
        repair: Distribution::Constant(0.0),
    };
    // A checkpoint is taken at most once per step, and must be written before the next one begins.
    let shortest = step.max(settings.checkpoint_write).max(1e-3);
    input.interval = settings.checkpoint_interval.unwrap_or_else(|| input.daly_interval()).max(shortest);
    let mtbf = input.mtbf();
    if !fails {
        let goodput = input.interval / (input.interval + input.checkpoint);
        return Some(FailureEffect { goodput, failures_per_day: 0.0, interval: input.interval });
    }
    // Scale all times by the length of the run, so that none exceeds the range of the simulation clock.
    let work = (FAILURES * mtbf).min(MAX_CHECKPOINTS * input.interval);
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
    let goodput = if scaled.expected_events() > MAX_FAILURE_EVENTS {
        // Almost every interval has a failure: use the closed-form expectation of an endless run.
        (scaled.work / scaled.daly_wall()).clamp(0.0, MIN_GOODPUT)
    } else {
        let course = faults::simulate(&scaled, settings.seed, &Progress::new()).ok()?;
        if course.unfinished { course.goodput.min(MIN_GOODPUT) } else { course.goodput }
    };
    Some(FailureEffect { goodput, failures_per_day: 86_400.0 / mtbf, interval: input.interval })
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_perf::training::Offload;

    #[test]
    fn waits_for_copies_to_the_host_are_not_counted_as_collectives() {
        let offload = Offload { optimizer: 1.0, weights: 1.0, ..Offload::default() };
        let system = TrainingInput { offload, ..TrainingInput::default() };
        let closed =
            TimeBreakdown { gemm: 8.0, expert_parallel: 0.1, optimizer: 0.2, offload: 5.0, ..TimeBreakdown::default() };
        let load = StageLoad { compute: 8.0, collectives: 10.1, optimizer: 0.7, ..StageLoad::default() };
        let time = parts(&system, &closed, &load);
        assert!((time.expert_parallel - 0.1).abs() < 1e-9 && (time.optimizer - 0.2).abs() < 1e-9, "{time:?}");
        assert!((time.offload - 10.5).abs() < 1e-9 && (time.total() - load.total()).abs() < 1e-9, "{time:?}");
        let kept = parts(&TrainingInput::default(), &closed, &load);
        assert!((kept.expert_parallel - 10.1).abs() < 1e-9 && kept.offload == 0.0, "{kept:?}");
    }
}
