//! Replay of a recorded training step on other hardware: the same tasks with the same dependencies, and the times of
//! the target's accelerators and network.
//!
//! GEMM kernels scale with the rate of the matrix units, other kernels with memory bandwidth, by the ratio of the two
//! datasheets. Collectives take the time that the collective model yields for the target's fabrics. Host gaps keep
//! their recorded lengths.

use std::collections::BTreeMap;

use atlas_core::sort;
use atlas_ingest::step_trace::{Collective, StepTrace, Task, TaskKind};
use atlas_perf::accelerator::{Accelerator, Precision};
use atlas_perf::collective::{self, Fabric, Group};
use atlas_perf::constants::Constants;
use atlas_sim::replay::{self, ReplayError};
use serde::Serialize;

use crate::scenario::Machine;

/// Time breakdown of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shares {
    /// Step time, s.
    pub step_s: f64,
    /// Time in which any kernel runs, s.
    pub compute_s: f64,
    /// Time in which any collective runs, s.
    pub communication_s: f64,
    /// Time in which a collective but no kernel runs, s.
    pub exposed_communication_s: f64,
    /// Time in which neither runs, which the host causes, s.
    pub idle_s: f64,
}

/// Collectives of one kind and size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exchange {
    /// Kind of collective.
    pub collective: &'static str,
    /// Bytes per collective, if the trace has them.
    pub bytes: Option<f64>,
    /// Number of participating ranks.
    pub ranks: f64,
    /// Number of collectives.
    pub count: usize,
    /// Mean recorded time of one, s; `None` if not measured.
    pub recorded_s: Option<f64>,
    /// Time of one on the target, s; `None` without a target, or if the trace lacks its size.
    pub modeled_s: Option<f64>,
}

/// Result of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Breakdown of the recorded step; `None` if the trace contains tasks without times.
    pub recorded: Option<Shares>,
    /// Breakdown on the target.
    pub target: Option<Shares>,
    /// Collectives of the step, largest total time first.
    pub exchanges: Vec<Exchange>,
    /// Notes on assumptions and limitations.
    pub notes: Vec<String>,
}

/// The hardware of a replay.
#[derive(Debug, Clone, Copy)]
pub struct Hardware<'a> {
    /// Machine to replay on.
    pub machine: &'a Machine,
    /// Number of accelerators of the target.
    pub accelerators: f64,
    /// Accelerator that the step was recorded on, if known.
    pub from: Option<&'a Accelerator>,
}

/// Replays a step as recorded and on the hardware.
///
/// # Errors
///
/// If tasks depend on each other cyclically, or have no times and there is no hardware to estimate them.
pub fn answer(trace: &StepTrace, hardware: Option<&Hardware<'_>>) -> Result<Answer, ReplayProblem> {
    let mut notes = trace.notes.clone();
    let measured = trace.tasks.iter().all(|task| match task.kind {
        TaskKind::Work { .. } => false,
        TaskKind::Collective { .. } => task.seconds > 0.0,
        _ => true,
    });
    if !measured && hardware.is_none() {
        return Err(ReplayProblem::NoTimes);
    }
    let recorded = measured.then(|| shares(trace, &trace.tasks.iter().map(|task| task.seconds).collect::<Vec<_>>()));
    let recorded = recorded.transpose()?;
    let all = trace.rank.map(|(_, world)| f64::from(world));
    let modeled: Vec<Option<f64>> =
        trace.tasks.iter().map(|task| hardware.and_then(|hardware| on(task, hardware, all))).collect();
    let target = match hardware {
        None => None,
        Some(hardware) => {
            notes.extend(remarks(trace, hardware, &modeled));
            let seconds = trace.tasks.iter().zip(&modeled).map(|(task, modeled)| modeled.unwrap_or(task.seconds));
            Some(shares(trace, &seconds.collect::<Vec<_>>())?)
        }
    };
    let ranks = all.or(hardware.map(|hardware| hardware.accelerators)).unwrap_or(1.0);
    Ok(Answer { recorded, target, exchanges: exchanges(trace, &modeled, ranks), notes })
}

/// Error of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplayProblem {
    /// Tasks without times, and no hardware to estimate them.
    #[error("the trace contains work without times; use --target to choose the hardware")]
    NoTimes,
    /// The dependencies are cyclic.
    #[error(transparent)]
    Order(#[from] ReplayError),
}

/// Seconds of a task on the hardware; `None` if it keeps its recorded time.
fn on(task: &Task, hardware: &Hardware<'_>, all: Option<f64>) -> Option<f64> {
    let device = &hardware.machine.device;
    let peak = |device: &Accelerator| device.peak(Precision::Bf16).max(device.peak(Precision::Fp16));
    let by = |rate: &dyn Fn(&Accelerator) -> f64| {
        let from = hardware.from.map(rate).filter(|rate| *rate > 0.0)?;
        Some(task.seconds * from / rate(device)).filter(|seconds| seconds.is_finite())
    };
    match task.kind {
        TaskKind::Matrix => by(&peak),
        TaskKind::Elementwise => by(&|device| device.mem_bw),
        TaskKind::Copy => None,
        TaskKind::Work { flops, bytes } => {
            let seconds = (flops / peak(device)).max(bytes / device.mem_bw);
            seconds.is_finite().then_some(seconds)
        }
        TaskKind::Collective { what, bytes, ranks, stride } => {
            let ranks = ranks.or(all).unwrap_or(hardware.accelerators);
            Some(seconds_of(what, bytes?, ranks, stride, hardware.machine))
        }
    }
}

/// Seconds of a collective on the fabrics of a machine.
fn seconds_of(what: Collective, bytes: f64, ranks: f64, stride: f64, machine: &Machine) -> f64 {
    let device = &machine.device;
    let fabric = Fabric::new(device, &Constants::default(), machine.oversubscription);
    let group = Group::strided(ranks, stride, machine.domain);
    match what {
        Collective::AllReduce => collective::all_reduce(&fabric, group, bytes),
        // A broadcast moves as much data as an all-gather of the same vector.
        Collective::AllGather | Collective::Broadcast => collective::all_gather(&fabric, group, bytes),
        Collective::ReduceScatter => collective::reduce_scatter(&fabric, group, bytes),
        Collective::AllToAll => collective::all_to_all(&fabric, group, bytes, 1.0),
        Collective::PointToPoint => collective::point_to_point(&fabric, bytes, group.local >= group.size),
    }
}

fn remarks(trace: &StepTrace, hardware: &Hardware<'_>, modeled: &[Option<f64>]) -> Vec<String> {
    let mut notes = Vec::new();
    let kernels = trace
        .tasks
        .iter()
        .any(|task| matches!(task.kind, TaskKind::Matrix | TaskKind::Elementwise) && task.seconds > 0.0);
    if kernels && hardware.from.is_none() {
        notes.push("the trace names no accelerator in the catalog: kernels keep their recorded times".to_owned());
    }
    let silent =
        |(task, modeled): &(&Task, &Option<f64>)| matches!(task.kind, TaskKind::Collective { .. }) && modeled.is_none();
    let kept = trace.tasks.iter().zip(modeled).filter(silent).count();
    if kept > 0 {
        notes.push(format!("{kept} collectives have no size and keep their recorded times"));
    }
    if trace.tasks.iter().any(|task| matches!(task.kind, TaskKind::Work { .. })) {
        notes.push("work without times is estimated from peak datasheet rates, which is a lower bound".to_owned());
    }
    notes
}

fn exchanges(trace: &StepTrace, modeled: &[Option<f64>], ranks_of_all: f64) -> Vec<Exchange> {
    let mut found: BTreeMap<(Collective, Option<u64>, u64), Exchange> = BTreeMap::new();
    for (task, modeled) in trace.tasks.iter().zip(modeled) {
        let TaskKind::Collective { what, bytes, ranks, .. } = task.kind else { continue };
        let ranks = ranks.unwrap_or(ranks_of_all);
        let entry = found.entry((what, bytes.map(f64::to_bits), ranks.to_bits())).or_insert_with(|| Exchange {
            collective: what.name(),
            bytes,
            ranks,
            count: 0,
            recorded_s: None,
            modeled_s: *modeled,
        });
        let n = entry.count as f64;
        entry.count += 1;
        if task.seconds > 0.0 {
            entry.recorded_s = Some((entry.recorded_s.unwrap_or(0.0) * n + task.seconds) / (n + 1.0));
        }
    }
    let mut list: Vec<Exchange> = found.into_values().collect();
    let time = |e: &Exchange| e.count as f64 * e.recorded_s.or(e.modeled_s).unwrap_or(0.0);
    sort::by(&mut list, |a, b| time(b).total_cmp(&time(a)));
    list
}

/// Replays the tasks with the given times, and computes the overlap of kernels and collectives.
fn shares(trace: &StepTrace, seconds: &[f64]) -> Result<Shares, ReplayError> {
    let tasks: Vec<replay::Task> = trace
        .tasks
        .iter()
        .zip(seconds)
        .map(|(task, seconds)| replay::Task {
            lane: task.lane,
            seconds: *seconds,
            delay: task.delay,
            after: task.after.clone(),
        })
        .collect();
    let out = replay::replay(&tasks)?;
    let network = |task: &Task| matches!(task.kind, TaskKind::Collective { .. });
    let mut changes: Vec<(f64, i32, i32)> = Vec::with_capacity(2 * out.times.len());
    for (task, (begin, end)) in trace.tasks.iter().zip(&out.times) {
        let (compute, communication) = if network(task) { (0, 1) } else { (1, 0) };
        changes.push((*begin, compute, communication));
        changes.push((*end, -compute, -communication));
    }
    sort::by(&mut changes, |a, b| a.0.total_cmp(&b.0));
    let mut shares =
        Shares { step_s: out.seconds, compute_s: 0.0, communication_s: 0.0, exposed_communication_s: 0.0, idle_s: 0.0 };
    let (mut at, mut computing, mut sending) = (0.0, 0, 0);
    for (moment, compute, communication) in changes {
        let span = moment - at;
        if computing > 0 {
            shares.compute_s += span;
        }
        if sending > 0 {
            shares.communication_s += span;
        }
        match (computing > 0, sending > 0) {
            (false, true) => shares.exposed_communication_s += span,
            (false, false) => shares.idle_s += span,
            _ => {}
        }
        (at, computing, sending) = (moment, computing + compute, sending + communication);
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use atlas_catalog::Catalog;

    fn task(kind: TaskKind, lane: u32, seconds: f64, delay: f64, after: &[u32]) -> Task {
        Task { name: String::new(), kind, lane: Some(lane), seconds, delay, after: after.to_vec() }
    }

    fn trace(tasks: Vec<Task>) -> StepTrace {
        StepTrace { format: "test", tasks, device: None, rank: Some((0, 8)), steps: 1, notes: Vec::new() }
    }

    fn reduce(bytes: f64) -> TaskKind {
        TaskKind::Collective { what: Collective::AllReduce, bytes: Some(bytes), ranks: Some(8.0), stride: 1.0 }
    }

    fn machine(id: &str) -> Machine {
        let catalog = Catalog::built_in();
        let device = atlas_catalog::datasheet::accelerator(&catalog.accelerator(id).unwrap());
        Machine::alone(device)
    }

    #[test]
    fn recorded_step_is_split_into_compute_communication_and_idle() {
        let tasks = vec![
            task(TaskKind::Matrix, 0, 1.0, 0.25, &[]),
            task(reduce(1e6), 1, 2.0, 0.0, &[0]),
            task(TaskKind::Matrix, 0, 1.0, 0.0, &[0]),
            task(TaskKind::Elementwise, 0, 0.5, 0.0, &[1, 2]),
        ];
        let shares = answer(&trace(tasks), None).unwrap().recorded.unwrap();
        let expected =
            Shares { step_s: 3.75, compute_s: 2.5, communication_s: 2.0, exposed_communication_s: 1.0, idle_s: 0.25 };
        assert_eq!(shares, expected);
    }

    #[test]
    fn another_accelerator_scales_replayed_kernels_by_its_rates() {
        let (h100, a100) = (machine("nvidia-h100-sxm-80gb"), machine("nvidia-a100-sxm-80gb"));
        let recorded =
            trace(vec![task(TaskKind::Matrix, 0, 1.0, 0.0, &[]), task(TaskKind::Elementwise, 0, 1.0, 0.0, &[0])]);
        let on = |machine: &Machine, from: &Machine| {
            let hardware = Hardware { machine, accelerators: 8.0, from: Some(&from.device) };
            answer(&recorded, Some(&hardware)).unwrap().target.unwrap().step_s
        };
        assert!((on(&h100, &h100) - 2.0).abs() < 1e-9);
        let rate = a100.device.peak(Precision::Bf16) / h100.device.peak(Precision::Bf16);
        let expected = rate + a100.device.mem_bw / h100.device.mem_bw;
        assert!((on(&h100, &a100) / expected - 1.0).abs() < 1e-6, "{} {expected}", on(&h100, &a100));
    }

    #[test]
    fn replayed_collectives_take_the_modeled_time() {
        let machine = machine("nvidia-h100-sxm-80gb");
        let hardware = Hardware { machine: &machine, accelerators: 8.0, from: None };
        let found = answer(&trace(vec![task(reduce(1e9), 0, 1.0, 0.0, &[])]), Some(&hardware)).unwrap();
        let alone = seconds_of(Collective::AllReduce, 1e9, 8.0, 1.0, &machine);
        assert!((found.target.unwrap().step_s - alone).abs() < 1e-9 && alone < 0.1, "{alone}");
        assert_eq!(found.exchanges.iter().map(|e| (e.count, e.recorded_s)).collect::<Vec<_>>(), [(1, Some(1.0))]);
        // With one rank per node, all traffic crosses the network.
        let spread = seconds_of(Collective::AllReduce, 1e9, 8.0, 8.0, &machine);
        assert!(spread > 2.0 * alone, "{spread} {alone}");
    }

    #[test]
    fn work_without_times_needs_hardware() {
        let work = trace(vec![task(TaskKind::Work { flops: 1e15, bytes: 0.0 }, 0, 0.0, 0.0, &[])]);
        assert_eq!(answer(&work, None), Err(ReplayProblem::NoTimes));
        let machine = machine("nvidia-h100-sxm-80gb");
        let found = answer(&work, Some(&Hardware { machine: &machine, accelerators: 8.0, from: None })).unwrap();
        assert!(found.recorded.is_none() && found.target.unwrap().step_s > 1.0);
    }
}
