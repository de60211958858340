//! Adapter to the estimator of the predecessor dashboard: converts scenarios to its input and its output to estimates.

pub mod contrast;

pub use atlas_legacy::benchboard as estimator;

use self::estimator::{Answer, Bottleneck, Input};
use crate::estimate::{
    Breakdown, Cause, Cost, Detail, Estimate, Interval, Limits, MemoryPart, MemoryUse, Metrics, TimePart, Training,
    Verdict,
};
use crate::scenario::{Dashboard, Phase, Scenario};
use atlas_config::Mode;
use atlas_core::plan::Recompute;

/// Input of the estimator for a phase.
#[must_use]
pub fn input(scenario: &Scenario, phase: &Phase) -> Input {
    let (known, shape, plan) = (&scenario.dashboard, &phase.shape, &phase.plan);
    Input {
        parameters: known.parameters,
        hidden: known.hidden,
        layers: known.layers,
        context: shape.prompt + shape.generate,
        bytes_per_value: Dashboard::width(phase).unwrap_or(f64::NAN),
        batch: match shape.mode {
            Mode::Training => scenario.global(phase),
            Mode::Inference => scenario.concurrency(phase),
        },
        micro_batch: f64::from(scenario.microbatch),
        dp: f64::from(shape.dp),
        tp: f64::from(shape.tp),
        pp: f64::from(shape.pp),
        checkpointing: matches!(plan.recompute, Some(Recompute::Full | Recompute::Selective)),
        tflops: known.tflops,
        memory_gb: scenario.dashboard_memory_gb(),
        link_gb_per_sec: known.link_gb_per_sec,
        usd_per_hour: scenario.hourly_usd.unwrap_or(0.0) / scenario.accelerators_per_node,
        tpu: known.tpu,
        gpu: known.gpu,
    }
}

/// Estimates a scenario, ignoring its schedule.
pub fn estimate_into(scenario: &Scenario, estimate: &mut Estimate) {
    let phase = &scenario.base;
    let i = input(scenario, phase);
    let answer = estimator::estimate(&i);
    estimate.phases.clear();
    estimate.service = None;
    estimate.queue = None;
    estimate.total_minutes = phase.minutes;
    estimate.total = Metrics {
        tokens_per_sec: answer.tokens_per_sec,
        flop_utilization: answer.mfu,
        hbm_bw_util: 0.0,
        comm_compute_ratio: answer.communication_percent / 100.0,
        step_time_ms: Some(answer.step_ms()),
        peak_mem_gb: answer.total_gib(),
        node_power_w: scenario.node_watts,
        minutes: phase.minutes,
        ..Metrics::default()
    };
    let per_thousand = answer.usd_per_million / 1000.0;
    estimate.cost = Cost {
        usd_per_hour: answer.usd_per_hour,
        energy_usd_per_hour: 0.0,
        usd_per_1k_tokens: per_thousand,
        usd_per_1k_tokens_parity: per_thousand,
    };
    estimate.detail = Some(detail(scenario, phase, &i, &answer));
}

fn detail(scenario: &Scenario, phase: &Phase, i: &Input, answer: &Answer) -> Detail {
    // Treat GiB as GB, as the dashboard's estimator does; otherwise the verdict would differ.
    let bytes = |gib: f64| gib * 1e9;
    let (compute, network) = (answer.compute_ms / 1000.0, answer.all_reduce_ms / 1000.0);
    let mut limits = Limits::of(Cause::ALL.map(|cause| match cause {
        Cause::Compute => (cause, compute),
        Cause::IntraNode => (cause, network),
        other => (other, 0.0),
    }));
    limits.memory_capacity = answer.bottleneck == Bottleneck::Memory;
    let training = Training {
        mfu: answer.mfu,
        mfu_causal: answer.mfu,
        hfu: answer.mfu,
        recompute: if i.checkpointing { Recompute::Full } else { Recompute::None },
        full_recompute_share: f64::from(u8::from(i.checkpointing)),
        micro_batches: i.batch / (i.dp * i.computed_sequences()),
        tokens_per_step: i.batch * i.context,
        run_tokens: phase.plan.train_tokens.unwrap_or(1e12),
    };
    Detail {
        time: Breakdown::of(&[TimePart::Compute, TimePart::AllReduce], [compute, network]),
        memory: MemoryUse {
            parts: Breakdown::of(
                &[MemoryPart::WeightsAndGradients, MemoryPart::OptimizerStates, MemoryPart::Activations],
                [answer.model_gib, answer.optimizer_gib, answer.activation_gib].map(bytes),
            ),
            upper: bytes(answer.total_gib()),
            capacity: bytes(i.memory_gb),
        },
        limits,
        verdict: if answer.memory_percent > 100.0 {
            Verdict::Memory { needs: bytes(answer.total_gib()), has: bytes(i.memory_gb) }
        } else {
            Verdict::Fits
        },
        // This engine was never validated, so its metrics have no interval.
        throughput_interval: Interval { low: 1.0, high: 1.0 },
        power: None,
        training: (scenario.mode() == Mode::Training).then_some(training),
        serving: None,
        simulated: None,
        adjustments: None,
    }
}
