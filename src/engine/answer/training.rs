//! Training: a scenario as an optimizer step, and the step as figures.

use super::event::training::Answer;
use super::{Physics, limits, power};
use crate::engine::analytical::accelerator::Precision;
use crate::engine::analytical::arch::Architecture;
use crate::engine::analytical::constants::Constants;
use crate::engine::analytical::memory::MemoryBreakdown;
use crate::engine::analytical::training::{
    self, Offload, Optimizer, Recompute, Schedule, Sharding, Software, TimeBreakdown, TrainingEstimate, TrainingInput,
    interval,
};
use crate::estimate::{Breakdown, Detail, Figures, Interval, MemoryUse, Training, Verdict};
use crate::plan::Format;
use crate::scenario::{Machine, Phase, Scenario};

/// The engine's input of a phase; `None` where machine or model is not known.
#[must_use]
pub fn input(scenario: &Scenario, phase: &Phase) -> Option<TrainingInput> {
    let mut input = asked(scenario, phase, scenario.machine.as_ref()?, scenario.model.as_ref()?);
    training::settle(&mut input, &Constants::with(&scenario.efficiency.training), None);
    Some(input)
}

/// What the files and knobs ask for.
fn asked(scenario: &Scenario, phase: &Phase, machine: &Machine, arch: &Architecture) -> TrainingInput {
    let (shape, plan) = (&phase.shape, &phase.plan);
    let cp = plan.cp.unwrap_or(1.0);
    let overlap = plan.overlap.unwrap_or(true);
    let format = scenario.format(phase);
    let software = Software {
        overlap_tensor: overlap,
        overlap_pipeline: overlap,
        overlap_data: overlap,
        compiled: scenario.cuda_graphs,
        ..Software::default()
    };
    TrainingInput {
        arch: *arch,
        accelerator: machine.device,
        accelerators: shape.tp * cp * shape.pp * shape.dp,
        domain: machine.domain,
        nic_bw: machine.device.nic_bw,
        oversubscription: machine.oversubscription,
        seq: (shape.prompt + shape.generate).max(1.0),
        micro: scenario.microbatch,
        global: scenario.global(phase),
        tp: shape.tp,
        pp: shape.pp,
        vpp: plan.vpp.unwrap_or(1.0),
        dp: shape.dp,
        cp,
        ep: if arch.is_moe() { plan.ep.unwrap_or(1.0) } else { 1.0 },
        etp: 1.0,
        sequence_parallel: plan.sp.unwrap_or(shape.tp > 1.0),
        sharding: plan.sharding.unwrap_or(Sharding::Zero1),
        shard: plan.shard.unwrap_or(0.0),
        schedule: plan.schedule.unwrap_or(Schedule::OneForwardOneBackward),
        recompute: plan.recompute.unwrap_or(Recompute::Auto),
        precision: precision(format),
        block_scaled: matches!(format, Format::Mxfp8 | Format::Fp4),
        imbalance: plan.imbalance.unwrap_or(1.0),
        weight_bytes: if format == Format::Fp32 || format == Format::Tf32 { 4.0 } else { 2.0 },
        grad_bytes: 4.0,
        reduce_bytes: 0.0,
        optimizer: Optimizer::Adam,
        optimizer_bytes: Optimizer::Adam.bytes(true),
        offload: Offload::default(),
        target_seq: 0.0,
        bucket_bytes: 0.0,
        trained: 1.0,
        adapted_mlps: true,
        software,
    }
}

/// The arithmetic behind a format.
#[must_use]
pub fn precision(format: Format) -> Precision {
    match format {
        Format::Fp32 => Precision::Fp32,
        Format::Tf32 => Precision::Tf32,
        Format::Bf16 => Precision::Bf16,
        Format::Fp16 => Precision::Fp16,
        Format::Fp8 | Format::Mxfp8 => Precision::Fp8,
        Format::Int8 => Precision::Int8,
        Format::Fp4 => Precision::Fp4,
        Format::Int4 => Precision::Int4,
    }
}

/// Figures and detail of a phase.
pub(super) fn answer(scenario: &Scenario, phase: &Phase, physics: &mut impl Physics) -> Option<(Figures, Detail)> {
    let (machine, arch) = (scenario.machine.as_ref()?, scenario.model.as_ref()?);
    let dies = machine.dies;
    let mut input = asked(scenario, phase, machine, arch);
    let closed = training::settle(&mut input, &Constants::with(&scenario.efficiency.training), physics.memo());
    let answer = physics.training(scenario, phase, &input, closed);
    let out = &answer.estimate;
    let limits = limits::training(&input, &out.time, answer.stragglers + answer.failures);
    let (low, high) = interval::bounds(&input);
    let used = power::Use::training(out);
    let devices = scenario.accelerators() * dies;
    let detail = Detail {
        time: breakdown(&answer),
        memory: MemoryUse {
            parts: memory(&out.memory),
            upper: out.memory_upper,
            capacity: input.accelerator.capacity(),
        },
        limits,
        verdict: verdict(&input, out, devices),
        throughput_interval: Interval { low, high }.widened(answer.simulated.as_ref()),
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
    };
    let figures = Figures {
        tokens_per_sec: out.tokens_per_second,
        flop_utilization: out.mfu,
        hbm_bw_util: used.memory,
        comm_compute_ratio: communication(&out.time) / out.step_seconds.max(1e-12),
        step_time_ms: out.step_seconds * 1e3,
        peak_mem_gb: detail.memory.total() * dies * 1e-9,
        node_power_w: power::node(scenario, &used, input.accelerators / devices),
        minutes: phase.minutes,
        ..Figures::default()
    };
    Some((figures, detail))
}

/// Parts of a step that was simulated: what only a simulation sees stands behind the closed form's.
const SIMULATED: [&str; TimeBreakdown::NAMES.len() + 2] = {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m] = TimeBreakdown::NAMES;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, "stragglers", "failures"]
};

/// Where a step's time goes.
fn breakdown(answer: &Answer) -> Breakdown {
    let closed = answer.estimate.time.values();
    if answer.simulated.is_none() {
        return Breakdown::of(&TimeBreakdown::NAMES, closed);
    }
    let [a, b, c, d, e, f, g, h, i, j, k, l, m] = closed;
    Breakdown::of(&SIMULATED, [a, b, c, d, e, f, g, h, i, j, k, l, m, answer.stragglers, answer.failures])
}

/// Seconds of a step in which communication is waited for.
fn communication(time: &TimeBreakdown) -> f64 {
    time.tensor_parallel + time.context_parallel + time.expert_parallel + time.pipeline_transfer + time.data_parallel
}

fn memory(m: &MemoryBreakdown) -> Breakdown {
    Breakdown::of(&MemoryBreakdown::NAMES, m.values())
}

/// Whether the layout is possible, and then whether it fits.
fn verdict(i: &TrainingInput, out: &TrainingEstimate, devices: f64) -> Verdict {
    if i.accelerators > devices {
        return Verdict::Accelerators { needs: i.accelerators, has: devices };
    }
    let even = |what, of: f64, by: f64| ((of / by).fract() != 0.0).then_some(Verdict::Indivisible { what, of, by });
    let indivisible = even("query heads", i.arch.heads, i.tp)
        .or_else(|| even("experts", i.arch.experts, i.ep))
        .or_else(|| even("sequences of a step", i.global, i.dp * i.micro))
        .or_else(|| {
            (i.pp * i.vpp > i.arch.layers).then_some(Verdict::Indivisible {
                what: "layers",
                of: i.arch.layers,
                by: i.pp * i.vpp,
            })
        });
    match indivisible {
        Some(verdict) => verdict,
        None if out.fits => Verdict::Fits,
        None => Verdict::Memory { needs: out.memory_upper, has: i.accelerator.capacity() },
    }
}
