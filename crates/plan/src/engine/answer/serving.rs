//! Serving: converts the estimate of a deployment under load to metrics.

use super::event::serving::Answer;
use super::{Physics, Results, limits, power, refused_nvfp4, throttle};
use crate::estimate::{Breakdown, Detail, Interval, Latency, MemoryPart, MemoryUse, Metrics, Serving, Verdict};
use crate::scenario::{Phase, Scenario};
use atlas_core::count::Count;
use atlas_core::plan::{Format, caches_in};
use atlas_core::units::BYTES_PER_GB;
use atlas_perf::accelerator::Precision;
use atlas_perf::constants::Constants;
use atlas_perf::interval::{self, Release};
use atlas_perf::serving;
use atlas_perf::serving::arithmetic::Arithmetic;
use atlas_perf::serving::formats::Refused;
use atlas_perf::serving::latency::{FirstToken, Spread};
use atlas_perf::serving::shape::Shape;
use atlas_perf::serving::terms::Rate;
use atlas_perf::serving::{Layout, Load, ServingEstimate, ServingInput, kv, step};

/// Input, constants and result of the closed form for a phase, for use by explanations.
#[must_use]
pub fn closed(scenario: &Scenario, phase: &Phase) -> Option<(ServingInput, Constants, ServingEstimate)> {
    let input = scenario.serving_input(phase)?;
    let constants = throttle::serving(scenario, &input);
    let out = serving::estimate(&input, &constants);
    Some((input, constants.into_owned(), out))
}

/// KV cache capacity of a replica; of a decode replica if prefill is disaggregated.
#[must_use]
pub fn kv_capacity(input: &ServingInput, c: &Constants) -> kv::Capacity {
    capacity_of(input, &input.decode_layout(), c)
}

/// KV cache capacity of a replica of `layout`.
fn capacity_of(input: &ServingInput, layout: &Layout, c: &Constants) -> kv::Capacity {
    kv::capacity(input, layout, &Shape::of(input, layout), c)
}

/// Writes metrics and detail of a phase. `None` without machine or model.
pub(super) fn answer(
    scenario: &Scenario,
    phase: &Phase,
    physics: &mut impl Physics,
    results: &mut Results<'_>,
) -> Option<()> {
    let input = scenario.serving_input(phase)?;
    let constants = throttle::serving(scenario, &input);
    let closed = serving::estimate(&input, &constants);
    let answer = physics.serving(scenario, phase, &input, closed);
    describe(scenario, phase, answer.input(&input), &answer, &constants, results);
    Some(())
}

/// Converts a serving estimate to the metrics common to all engines.
pub(super) fn describe(
    scenario: &Scenario,
    phase: &Phase,
    input: &ServingInput,
    answer: &Answer,
    constants: &Constants,
    results: &mut Results<'_>,
) {
    let Answer { estimate: out, simulated, .. } = answer;
    let dies = scenario.machine.as_ref().map_or(1.0, |machine| machine.dies);
    let domain = scenario.machine.as_ref().map_or(1.0, |machine| machine.domain);
    let devices = scenario.accelerators() * dies;
    let decode = Shape::of(input, &input.decode_layout());
    let arithmetic = Arithmetic::with_shape(input, out, &decode);
    let mut used = power::DeviceUtilization::serving(input, out, &arithmetic, scenario.terms.clock_share);
    if let Some(seen) = simulated.and_then(|simulated| simulated.serving) {
        used = used.while_active(seen.busy);
    }
    let at_work = (input.accelerators() / devices).min(1.0);
    let mut limits = limits::serving(input, domain, &out.time, constants);
    let offered = match input.load {
        Load::Closed { concurrency, .. } => concurrency / input.layout.dp.max(Count::ONE),
        _ => out.batch,
    };
    // The token limit of a step may limit the batch before memory does.
    let full = out.batch > 0.9 * out.max_concurrency;
    limits.memory_capacity = full && out.max_concurrency < input.max_sequences() && offered > out.max_concurrency;
    limits.load = matches!(input.load, Load::Open { .. }) && out.ttft.mean.is_finite();
    limits.prefill_pool = matches!(out.rate, Rate::PrefillPool { .. });
    let ms = |s: Spread| s.map(|seconds| seconds * 1e3);
    let first = &out.first_token;
    let release = Release::assumed_if(scenario.active_software.release_assumed());
    let factors = |f: interval::Factors| Interval { low: f.low, high: f.high };
    let memory = memory(input, out, &kv::capacity(input, &input.decode_layout(), &decode, constants), constants);
    let power = power::node(scenario, &used, at_work);
    *results.detail = Some(Detail {
        time: Breakdown::of(&step::StepTime::PARTS, out.time.values()),
        memory,
        limits,
        verdict: refused(scenario, phase, input).unwrap_or_else(|| verdict(input, out, devices, &memory)),
        throughput_interval: factors(interval::throughput(input, release)).widened(simulated.as_ref()),
        power: Some(power),
        training: None,
        simulated: *simulated,
        adjustments: None,
        serving: Some(Serving {
            total_tokens_per_sec: out.total_tokens_per_sec,
            requests_per_sec: out.requests_per_sec,
            tokens_per_sec_per_user: out.tokens_per_sec_per_user,
            ttft_ms: ms(out.ttft),
            tpot_ms: ms(out.tpot),
            itl_ms: ms(out.itl),
            e2e_ms: ms(out.e2e),
            first_token: Breakdown::of(&FirstToken::PARTS, first.values().map(|seconds| seconds * 1e3)),
            batch: out.batch,
            max_concurrency: out.max_concurrency,
            capacity_requests_per_sec: out.capacity_requests_per_sec,
            ttft_interval: factors(interval::ttft(input, release)),
            tpot_interval: factors(interval::tpot(input, release)),
        }),
    });
    let total = out.time.total().max(1e-12);
    *results.metrics = Metrics {
        tokens_per_sec: out.output_tokens_per_sec,
        flop_utilization: at_work * arithmetic.useful.clamp(0.0, 1.0),
        hbm_bw_util: at_work * used.memory,
        comm_compute_ratio: out.time.communication / total,
        latency: Some(Latency {
            p50: out.e2e.p50 * 1e3,
            p95: out.e2e.p95 * 1e3,
            p99: out.e2e.p99 * 1e3,
            ttft: out.ttft.mean * 1e3,
        }),
        peak_mem_gb: memory.total() * dies / BYTES_PER_GB,
        node_power_w: power.total(),
        minutes: phase.minutes,
        ..Metrics::default()
    };
}

/// Memory use of a device: weights, KV cache of running sequences, engine reserve. A paging engine allocates its whole
/// share of memory at start. The point estimate counts what the load uses of it; the upper bound assumes that every
/// sequence has its full length, and at least one must fit.
fn memory(input: &ServingInput, out: &ServingEstimate, decode: &kv::Capacity, c: &Constants) -> MemoryUse {
    let decode = memory_of_pool(input, decode, out);
    // A replica of the prefill pool holds at least one prompt.
    let prefill = input.pools.map(|pools| {
        let prompts = ServingInput { osl: 1.0, ..*input };
        let one = ServingEstimate { batch: 1.0, ..*out };
        memory_of_pool(input, &capacity_of(&prompts, &pools.prefill, c), &one)
    });
    match prefill {
        Some(prefill) if prefill.excess() > decode.excess() => prefill,
        _ => decode,
    }
}

/// Memory use of a device in a pool with the given capacity.
fn memory_of_pool(input: &ServingInput, capacity: &kv::Capacity, out: &ServingEstimate) -> MemoryUse {
    let kv::Capacity { free_bytes, shared_bytes: shared, whole_sequence, weight_bytes: weights, groups, .. } =
        *capacity;
    let usable = input.accelerator.capacity() * input.memory_utilization;
    let reserve = (usable - weights - free_bytes).max(0.0);
    let share = if out.max_concurrency > 0.0 { (out.batch / out.max_concurrency).min(1.0) } else { 0.0 };
    let keys = shared.min(free_bytes.max(0.0)) + share * (free_bytes - shared).max(0.0);
    // Each sequence belongs to one attention group.
    let sequences = (out.batch / groups).max(1.0);
    let whole = (shared + whole_sequence * sequences).min(free_bytes).max(shared + whole_sequence).max(keys);
    let parts =
        Breakdown::of(&[MemoryPart::Weights, MemoryPart::KvCache, MemoryPart::EngineReserve], [weights, keys, reserve]);
    // If the KV cache fills the free memory, avoid a rounding error in the sum.
    let upper = weights + reserve + whole;
    let upper = if whole <= free_bytes { upper.min(usable) } else { upper };
    MemoryUse { parts, upper, capacity: usable }
}

/// Verdict on formats or pools that the device or software does not support, regardless of memory.
fn refused(scenario: &Scenario, phase: &Phase, input: &ServingInput) -> Option<Verdict> {
    if let Some(refused) = phase.serving_defaults.refused {
        let a = &input.accelerator;
        let has = |format: &Format| a.supports(Precision::from(*format));
        let instead = [Format::Bf16, Format::Fp16, Format::Tf32, Format::Fp32].into_iter().find(has);
        let instead = instead.map_or("", Format::name);
        let unscaled = |format: Format| if format == Format::Mxfp8 && has(&Format::Fp8) { "fp8" } else { instead };
        return Some(match refused {
            Refused::Device(format) => Verdict::Format { format: format.name(), instead: unscaled(format) },
            Refused::Software(format) => Verdict::SoftwareFormat { format: format.name(), instead },
        });
    }
    if let Some(verdict) = refused_nvfp4(phase.serving_defaults.nvfp4, &input.accelerator) {
        return Some(verdict);
    }
    // Software offers NVFP4 as the only KV cache in four bits of floating point.
    if let Some(kv) = phase.plan.kv.filter(|_| input.arch.causal) {
        let offered = caches_in(&scenario.active_software.name, kv);
        if !offered || (kv == Format::Fp4 && !input.accelerator.multiplies_nvfp4()) {
            return Some(Verdict::CacheFormat { format: kv.name(), accelerator: offered });
        }
    }
    if input.arch.causal && phase.shape.generate <= 0.0 && !matches!(input.load, Load::PrefillOnly { .. }) {
        return Some(Verdict::NoOutput);
    }
    if !input.arch.causal && matches!(input.load, Load::DecodeOnly { .. }) {
        return Some(Verdict::NoDecode);
    }
    let generates = input.arch.causal && !matches!(input.load, Load::PrefillOnly { .. });
    if let Some(limit) = input.osl_max.map(f64::from).filter(|limit| generates && *limit < input.osl) {
        return Some(Verdict::OutputLimit { limit, mean: input.osl });
    }
    impossible_prefill_pool(phase, input)
}

/// Verdict on a stated number of prefill accelerators that is no multiple of a replica, or leaves none for decoding.
fn impossible_prefill_pool(phase: &Phase, input: &ServingInput) -> Option<Verdict> {
    // Stated workers take precedence.
    let stated = phase.plan.serving.pools.prefill.workers.is_some_and(|workers| workers > 0.0);
    let requested = phase.plan.serving.prefill_accelerators.filter(|_| input.arch.causal && !stated)?;
    let (requested, replica) = (f64::from(requested), phase.prefill_layout().replica());
    if input.pools.is_some() && requested % replica == 0.0 {
        return None;
    }
    let decode = phase.decode_layout();
    let most = (f64::from(decode.dp) - 1.0) * decode.replica();
    let most = (most / replica).floor();
    let below = (requested / replica).floor().min(most);
    let above = (requested / replica).floor() + 1.0;
    let size = |workers: f64| (1.0..=most).contains(&workers).then_some(workers * replica);
    let nearest = [size(below), size(above)];
    Some(Verdict::PrefillPool { requested, replica, replicas: f64::from(input.layout.dp), nearest })
}

/// Checks whether the layout is possible, then whether it fits in memory, then whether it sustains the load.
fn verdict(i: &ServingInput, out: &ServingEstimate, devices: f64, memory: &MemoryUse) -> Verdict {
    let needs = i.accelerators();
    if needs > devices {
        return Verdict::Accelerators { needs, has: devices };
    }
    let even = |what, of: f64, by: f64| ((of / by).fract() != 0.0).then_some(Verdict::Indivisible { what, of, by });
    let layouts = i.pools.map_or([i.layout; 2], |pools| [pools.prefill, pools.decode]);
    let indivisible = layouts.iter().find_map(|layout| {
        let copies = layout.redundant;
        let experts = if copies > 0.0 { "experts and their copies" } else { "experts" };
        even("query heads", f64::from(i.arch.heads), f64::from(layout.tp))
            .or_else(|| even(experts, i.arch.experts + copies, f64::from(layout.ep)))
            .or_else(|| {
                (layout.pp > i.arch.layers).then_some(Verdict::Indivisible {
                    what: "layers",
                    of: f64::from(i.arch.layers),
                    by: f64::from(layout.pp),
                })
            })
    });
    match (indivisible, i.load) {
        (Some(verdict), _) => verdict,
        (None, _) if memory.excess() > 0.0 => Verdict::Memory { needs: memory.upper, has: memory.capacity },
        (None, Load::Open { rate }) if !out.ttft.mean.is_finite() => {
            Verdict::Overload { offered: rate, capacity: out.capacity_requests_per_sec }
        }
        _ => Verdict::Fits,
    }
}
