//! Training: converts the estimate of an optimizer step to metrics.

use super::event::training::{Answer, MIN_GOODPUT, hosts};
use super::{Physics, Results, limits, power, refused_nvfp4, throttle};
use crate::estimate::{
    Breakdown, Detail, Interval, MemoryPart, MemoryUse, Metrics, SimulatedTraining, TimePart, Training, Verdict,
};
use crate::scenario::{Phase, Scenario};
use atlas_core::plan::Format;
use atlas_perf::accelerator::Precision;
use atlas_perf::constants::Constants;
use atlas_perf::interval::{self, Release};
use atlas_perf::training;
use atlas_perf::training::memory::{self, MemoryBreakdown};
use atlas_perf::training::{Recompute, TimeBreakdown, TrainingEstimate, TrainingInput, Unsupported};
use atlas_perf::traits::TrainingTraits;

/// Bytes per parameter of weights, gradients and Adam states in mixed precision (ZeRO, arXiv 1910.02054, section 3.1),
/// with gradients kept in fp32.
pub(crate) const STATE_BYTES: f64 = 18.0;

/// Input, constants and result of the closed form for a phase, for use by explanations.
#[must_use]
pub fn closed(scenario: &Scenario, phase: &Phase) -> Option<(TrainingInput, Constants, TrainingEstimate)> {
    let input = scenario.training_input(phase)?;
    let constants = throttle::training(scenario, &input);
    let out = training::estimate(&input, &constants);
    Some((input, constants.into_owned(), out))
}

/// Writes metrics and detail of a phase. `None` without machine or model.
pub(super) fn answer(
    scenario: &Scenario,
    phase: &Phase,
    physics: &mut impl Physics,
    results: &mut Results<'_>,
) -> Option<()> {
    let dies = scenario.machine.as_ref()?.dies;
    let input = scenario.training_input(phase)?;
    let closed = training::memoized(&input, &throttle::training(scenario, &input), physics.memo());
    let answer = physics.training(scenario, phase, &input, closed);
    let out = &answer.estimate;
    let limits = limits::training(&input, &out.time, answer.stragglers + answer.failures);
    let release = Release::assumed_if(scenario.active_software.release_assumed());
    let interval::Factors { low, high } = interval::training(&input, release);
    let used = power::DeviceUtilization::training(out, scenario.terms.clock_share);
    let devices = scenario.accelerators() * dies;
    let power = power::node(scenario, &used, input.accelerators / devices);
    let detail = results.detail.insert(Detail {
        time: breakdown(&answer),
        memory: MemoryUse {
            parts: memory_parts(&out.memory),
            upper: out.memory_upper,
            capacity: input.accelerator.capacity(),
        },
        limits,
        verdict: verdict(
            &input,
            (scenario.format(phase), phase.plan.format),
            &scenario.active_software.training,
            out,
            devices,
        )
        .or(|| refused_nvfp4(phase.plan.nvfp4 == Some(true), &input.accelerator))
        .or(|| over_host_memory(scenario, &input))
        .or(|| answer.simulated.and_then(|_| more_slow_nodes_than_nodes(scenario, phase, &input)))
        .or(|| answer.simulated?.training.and_then(no_progress)),
        throughput_interval: Interval { low, high }.widened(answer.simulated.as_ref()),
        power: Some(power),
        training: Some(Training {
            mfu: out.mfu,
            mfu_causal: out.mfu_causal,
            hfu: out.hfu,
            recompute: if out.recompute.full_share >= 1.0 { Recompute::Full } else { out.recompute.mode },
            full_recompute_share: out.recompute.full_share,
            micro_batches: input.micro_batches(),
            tokens_per_step: input.global * input.seq,
            run_tokens: phase.plan.train_tokens.unwrap_or(1e12),
        }),
        serving: None,
        simulated: answer.simulated,
        adjustments: None,
    });
    *results.metrics = Metrics {
        tokens_per_sec: out.tokens_per_second,
        flop_utilization: out.mfu_causal,
        hbm_bw_util: used.memory,
        comm_compute_ratio: communication(&out.time) / out.step_seconds.max(1e-12),
        step_time_ms: Some(out.step_seconds * 1e3),
        peak_mem_gb: detail.memory.total() * dies / atlas_core::units::BYTES_PER_GB,
        node_power_w: power.total(),
        minutes: phase.minutes,
        ..Metrics::default()
    };
    Some(())
}

/// Parts of a simulated step: those of the closed form, followed by those of a simulation only.
const SIMULATED: [TimePart; TimeBreakdown::PARTS.len() + 2] = {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = TimeBreakdown::PARTS;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, TimePart::Stragglers, TimePart::Failures]
};

/// Time breakdown of a step.
fn breakdown(answer: &Answer) -> Breakdown<TimePart> {
    let closed = answer.estimate.time.values();
    if answer.simulated.is_none() {
        return Breakdown::of(&TimeBreakdown::PARTS, closed);
    }
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = closed;
    Breakdown::of(&SIMULATED, [a, b, c, d, e, f, g, h, i, j, k, l, m, n, answer.stragglers, answer.failures])
}

/// Exposed communication time of a step, seconds.
fn communication(time: &TimeBreakdown) -> f64 {
    time.tensor_parallel + time.context_parallel + time.expert_parallel + time.pipeline_transfer + time.data_parallel
}

fn memory_parts(m: &MemoryBreakdown) -> Breakdown<MemoryPart> {
    Breakdown::of(&MemoryBreakdown::PARTS, m.values())
}

/// Checks whether the layout is possible with the GEMM and storage formats, then whether it fits in memory.
fn verdict(
    i: &TrainingInput,
    (format, stored): (Format, Option<Format>),
    software: &TrainingTraits,
    out: &TrainingEstimate,
    devices: f64,
) -> Verdict {
    if i.accelerators > devices {
        return Verdict::Accelerators { needs: i.accelerators, has: devices };
    }
    let even = |what, of: f64, by: f64| ((of / by).fract() != 0.0).then_some(Verdict::Indivisible { what, of, by });
    // Packed weights cannot be trained.
    let packed = stored.filter(|stored| *stored == Format::Int4 && i.packed_bytes.is_none());
    let trained_packed = packed.map(|stored| Verdict::Format { format: stored.name(), instead: format.name() });
    let indivisible = even("query heads", f64::from(i.arch.heads), f64::from(i.tp))
        .or_else(|| even("experts", f64::from(i.arch.experts), f64::from(i.ep)))
        .or_else(|| even("sequences of a step", i.global, i.dp * i.micro))
        .or_else(|| refused(i, format))
        .or_else(|| {
            (format == Format::Int8 && !software.int8)
                .then(|| Verdict::SoftwareFormat { format: format.name(), instead: unquantized(i) })
        })
        .or(trained_packed);
    match indivisible {
        Some(verdict) => verdict,
        None if out.fits => Verdict::Fits,
        None => Verdict::Memory { needs: out.memory_upper, has: i.accelerator.capacity() },
    }
}

/// Bytes that offloaded states take in the memory of one node's host.
#[must_use]
pub fn host_bytes(scenario: &Scenario, input: &TrainingInput) -> f64 {
    let dies = scenario.machine.map_or(1.0, |machine| machine.dies);
    memory::host_bytes(input) * (scenario.accelerators_per_node * dies).min(input.accelerators)
}

/// Verdict on offloaded states that exceed the memory of the host.
fn over_host_memory(scenario: &Scenario, input: &TrainingInput) -> Option<Verdict> {
    let (needs, has) = (host_bytes(scenario, input), scenario.host_memory_gb? * 1e9);
    (needs > has).then_some(Verdict::HostMemory { needs, has })
}

/// Verdict on more slow nodes than the job has.
fn more_slow_nodes_than_nodes(scenario: &Scenario, phase: &Phase, input: &TrainingInput) -> Option<Verdict> {
    let requested = f64::from(phase.plan.simulation.slow_nodes?);
    let nodes = f64::from(hosts(scenario, input).count());
    (requested > nodes).then_some(Verdict::SlowNodes { requested, nodes })
}

/// Verdict on a job that fails faster than it recovers.
fn no_progress(seen: SimulatedTraining) -> Option<Verdict> {
    let mtbf = 86_400.0 / seen.failures_per_day;
    let recovery = seen.checkpoint_s + seen.restart_s;
    let interval = seen.checkpoint_interval_s;
    // Young's interval.
    let best = (2.0 * seen.checkpoint_s * mtbf).sqrt();
    (seen.goodput <= MIN_GOODPUT && mtbf.is_finite()).then_some(Verdict::NoProgress { mtbf, recovery, interval, best })
}

/// A supported format of at least 16 bits, or an empty string.
fn unquantized(i: &TrainingInput) -> &'static str {
    let has = |format: &Format| i.accelerator.supports(Precision::from(*format));
    let formats = [Format::Bf16, Format::Fp16, Format::Tf32, Format::Fp32];
    formats.into_iter().find(has).map_or("", Format::name)
}

/// Verdict on formats, schedule or stages that are not supported, if any.
fn refused(i: &TrainingInput, format: Format) -> Option<Verdict> {
    Some(match training::supported(i).err()? {
        Unsupported::Precision { .. } | Unsupported::StorageOnly(_) => {
            Verdict::Format { format: format.name(), instead: unquantized(i) }
        }
        Unsupported::BlockScales(_) => Verdict::Format { format: format.name(), instead: Format::Fp8.name() },
        Unsupported::IndivisibleSequence { tokens, parts, of } => Verdict::Sequence { tokens, parts, of },
        Unsupported::RecomputedLayers { stated, layers } => Verdict::RecomputedLayers { stated, layers },
        Unsupported::ShardGroups { ranks, shard } => {
            Verdict::Indivisible { what: "data-parallel ranks in groups of shard", of: ranks, by: shard }
        }
        Unsupported::ExpertRanks { ranks, group } => {
            Verdict::Indivisible { what: "ranks of a stage in groups of ep x etp", of: ranks, by: group }
        }
        Unsupported::Interleaving { micro_batches, stages } => {
            Verdict::Indivisible { what: "micro-batches of interleaved stages", of: micro_batches, by: stages }
        }
        Unsupported::Bidirectional { micro_batches, stages } => Verdict::Bidirectional { micro_batches, stages },
        Unsupported::IndivisibleHeads { heads, ranks } => {
            Verdict::Indivisible { what: "query heads by tp x cp", of: heads, by: ranks }
        }
        Unsupported::Chunks { layers, chunks } => Verdict::Stages { layers, stated: None, chunks },
        Unsupported::StageLayers { stated, layers, chunks } => Verdict::Stages { layers, stated: Some(stated), chunks },
    })
}
