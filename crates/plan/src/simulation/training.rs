//! A single run of a training job, and its measurements.

use crate::estimate::{Breakdown, MemoryPart, TimePart};
use std::ops::Range;

use super::words::Window;
use super::{Problems, Run, SimulationMetric};
use atlas_perf::training::memory::MemoryBreakdown;
use atlas_perf::training::{TimeBreakdown, TrainingInput, estimate};
use atlas_sim::kernel::Progress;
use atlas_sim::training;
use atlas_sim::training::input::StageLoad;
use atlas_sim::training::{Hosts, Input, OtherKind, Output, allocation};

/// Training job and the requested variation.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Input of the simulation; `slow` and `kinds` are set for each run.
    pub input: Input,
    /// Assignment of accelerators to hosts.
    pub hosts: Hosts,
    /// Number of slow nodes.
    pub slow_nodes: u32,
    /// Slowdown factor of slow nodes.
    pub slow_factor: f64,
    /// Accelerators of other kinds, each with the number of the job's last hosts that have it.
    pub kinds: Vec<(OtherKind, u32)>,
    /// Name of a sample: `image` or `sequence`.
    pub sample: &'static str,
    /// Time window in which tasks are recorded; `None`: the first step.
    pub window: Option<Window>,
}

/// Breakdown of the mean step, seconds. The parts sum to the step time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parts {
    /// Computation, mean over stages.
    pub compute: f64,
    /// Exposed collectives and transfers.
    pub communication: f64,
    /// Waiting for slow or different hosts and random variation: the difference to the same step on uniform hardware.
    pub stragglers: f64,
    /// Pipeline bubble.
    pub bubble: f64,
    /// Optimizer.
    pub optimizer: f64,
    /// Waiting for data.
    pub loading: f64,
}

impl Parts {
    /// The parts and their seconds.
    #[must_use]
    pub fn list(&self) -> [(TimePart, f64); 6] {
        [
            (TimePart::Compute, self.compute),
            (TimePart::Communication, self.communication),
            (TimePart::Stragglers, self.stragglers),
            (TimePart::PipelineBubble, self.bubble),
            (TimePart::Optimizer, self.optimizer),
            (TimePart::DataLoading, self.loading),
        ]
    }

    /// Step time.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.list().iter().map(|(_, seconds)| seconds).sum()
    }
}

/// Measurements of the first run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The job.
    pub system: TrainingInput,
    /// Output of the simulation.
    pub output: Output,
    /// Breakdown of the mean step.
    pub parts: Parts,
    /// Share of the time in which the network streams of the stages are active, exposed or overlapped.
    pub network_busy: f64,
    /// Step time on uniform hardware, seconds.
    pub even_step: f64,
    /// Step time according to the closed form, seconds.
    pub analytical_step: f64,
    /// Breakdown according to the closed form.
    pub closed: TimeBreakdown,
    /// Model FLOPs per token, forward and backward.
    pub flops_per_token: f64,
    /// As `flops_per_token`, but attention counts only what causal masks and windows leave.
    pub causal_flops_per_token: f64,
    /// Memory of the fullest device by purpose, bytes.
    pub memory: Breakdown<MemoryPart>,
    /// Memory in the order of allocation, with a caching allocator.
    pub allocation: allocation::Output,
    /// Memory capacity of a device, bytes.
    pub capacity: f64,
    /// Name of a sample.
    pub sample: &'static str,
    /// Requested time window.
    pub window: Option<Window>,
}

impl Measured {
    /// Breakdown according to the closed form, in the same parts.
    #[must_use]
    pub fn closed_parts(&self) -> Parts {
        let t = &self.closed;
        Parts {
            compute: t.gemm + t.attention + t.elementwise + t.recompute + t.host + t.offload,
            communication: t.tensor_parallel
                + t.context_parallel
                + t.expert_parallel
                + t.pipeline_transfer
                + t.data_parallel,
            stragglers: 0.0,
            bubble: t.pipeline_bubble,
            optimizer: t.optimizer,
            loading: 0.0,
        }
    }

    /// Samples per second.
    #[must_use]
    pub fn samples_per_second(&self) -> f64 {
        self.system.global / self.output.step.mean.max(1e-12)
    }

    /// Model FLOPs utilization of the simulated step with full attention, as defined by PaLM.
    #[must_use]
    pub fn mfu(&self) -> f64 {
        self.utilization(self.flops_per_token)
    }

    /// Model FLOPs utilization of the simulated step, with attention as masked.
    #[must_use]
    pub fn mfu_causal(&self) -> f64 {
        self.utilization(self.causal_flops_per_token)
    }

    fn utilization(&self, flops_per_token: f64) -> f64 {
        let peak = self.system.accelerator.peak(self.system.fastest_format()) * self.system.accelerators;
        self.output.tokens_per_second * flops_per_token / peak.max(1.0)
    }
}

pub(super) fn run(work: &Work, seed: u64, progress: &Progress, first: bool) -> Result<Run, Problems> {
    let slow = work.hosts.slow(&work.input.system, work.slow_nodes, work.slow_factor, seed);
    let kinds = work.hosts.mixed(&work.input.system, &work.input.constants, &work.kinds);
    let mut input = Input { slow, kinds, recorded: None, ..work.input.clone() };
    if first {
        input.recorded = Some(match work.window {
            Some(window) => seen(&training::simulate(&input, seed, &progress.part())?.steps, &window),
            None => 0..1,
        });
    }
    let output = training::simulate(&input, seed, progress)?;
    let metrics = metrics(work, &output);
    let (events, canceled) = (output.events, output.canceled);
    // Without a completed step there is nothing to break down, and the comparison would delay cancellation.
    let measured = match first && !(canceled && output.steps.is_empty()) {
        true => {
            // Simulate a step on uniform hosts for comparison, unless the run was canceled.
            let even = if canceled { output.load } else { even(&input)? };
            Some(super::Measured::Training(Box::new(measure(work, &input, output, even, seed))))
        }
        false => None,
    };
    Ok(Run { metrics, measured, events, canceled })
}

/// Steps that overlap a window; the first step if there are none.
fn seen(steps: &[f64], window: &Window) -> Range<u32> {
    let mut begin = 0.0;
    let (mut first, mut count) = (0, 0);
    for (number, step) in (0..).zip(steps) {
        if window.sees(begin, begin + step) {
            first = if count == 0 { number } else { first };
            count += 1;
        }
        begin += step;
    }
    first..first + count.max(1)
}

/// Metrics of every run.
fn metrics(work: &Work, output: &Output) -> Vec<(SimulationMetric, f64)> {
    use SimulationMetric as M;
    let s = &work.input.system;
    vec![
        (M::StepTime, 1e3 * output.step.mean),
        (M::StepTimeP99, 1e3 * output.step.p99),
        (M::TokensPerSec, output.tokens_per_second),
        (M::TokensPerSecPerAccelerator, output.tokens_per_second / s.accelerators.max(1.0)),
        (M::StagesBusy, output.busy),
    ]
}

/// Breakdown of a step with uniform hosts and without waiting for data.
fn even(input: &Input) -> Result<StageLoad, Problems> {
    let even = Input {
        slow: Vec::new(),
        kinds: Vec::new(),
        jitter: 0.0,
        lengths: 0.0,
        loading: 0.0,
        every_replica: false,
        steps: 1,
        recorded: None,
        ..input.clone()
    };
    Ok(training::simulate(&even, 0, &Progress::new())?.load)
}

/// Number of steps after which the allocator has reached a steady state.
const ALLOCATED_STEPS: u32 = 3;

fn measure(work: &Work, input: &Input, output: Output, even: StageLoad, seed: u64) -> Measured {
    let system = input.system;
    let closed = estimate(&system, &input.constants);
    let step = output.step.mean;
    let even_step = even.total();
    let loading = output.load.loading;
    // The cost of stragglers is the difference to uniform hosts, since the other ranks wait for the slow ones.
    let stragglers = (step - loading - even_step).max(0.0);
    let uneven = input.jitter > 0.0
        || input.lengths > 0.0
        || !input.slow.is_empty()
        || !input.kinds.iter().all(|k| k.places.is_empty());
    let stragglers = if uneven { stragglers } else { 0.0 };
    let parts = Parts {
        compute: even.compute,
        communication: even.collectives + even.transfer + even.exposed_data,
        stragglers,
        bubble: even.bubble,
        optimizer: even.optimizer,
        loading,
    };
    let carried: f64 = output.stages.iter().map(|stage| stage.data).sum();
    let stages = output.stages.len().max(1) as f64;
    Measured {
        network_busy: ((carried / stages + output.load.collectives) / step.max(1e-12)).min(1.0),
        parts,
        even_step,
        analytical_step: closed.step_seconds,
        closed: closed.time,
        flops_per_token: closed.flops_per_token,
        causal_flops_per_token: closed.causal_flops_per_token,
        memory: Breakdown::of(&MemoryBreakdown::PARTS, closed.memory.values()),
        allocation: allocation::simulate(&system, &input.constants, input.lengths, seed, ALLOCATED_STEPS),
        capacity: system.accelerator.capacity(),
        sample: work.sample,
        window: work.window,
        system,
        output,
    }
}
