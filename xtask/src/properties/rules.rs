//! Invariants of estimates.

use atlas_core::count::Count;
use atlas_perf::accelerator::{Accelerator, Precision};
use atlas_plan::engine::estimate;
use atlas_plan::estimate::{Estimate, METRICS, MetricId, TimePart};
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::Scenario;
use atlas_plan::search::optimize::{Candidate, Problem, freed, optimize};
use atlas_plan::search::{Gauge, metric};

use super::draw::Drawn;

/// An invariant. The check returns `None` if it does not apply, and an error if it is violated.
pub(super) struct Rule {
    /// Description.
    pub(super) name: &'static str,
    /// The rule is checked on every n-th scenario.
    pub(super) every: u64,
    pub(super) check: fn(&Drawn) -> Option<Result<(), String>>,
}

pub(super) const RULES: [Rule; 10] = [
    Rule { name: "figures are finite and not negative", every: 1, check: finite },
    Rule { name: "MFU, HFU and shares of hardware are at most 1", every: 1, check: shares },
    Rule { name: "tokens/s × time = tokens", every: 1, check: conserved },
    Rule { name: "more memory bandwidth is not slower", every: 1, check: |d| faster(d, EVEN, |a| a.mem_bw *= 1.3) },
    Rule {
        name: "more FLOP/s are not slower",
        every: 1,
        check: |d| {
            // Large GEMMs on some devices run at the power limit, so higher FLOP/s need more power.
            faster(d, EVEN, |a| {
                a.flops = a.flops.map(|f| 1.3 * f);
                a.tdp_w = a.tdp_w.map(|watts| 1.3 * watts);
            })
        },
    },
    Rule { name: "more memory is not slower", every: 1, check: |d| faster(d, LARGER, |a| a.mem_bytes *= 1.3) },
    Rule {
        name: "faster links are not slower",
        every: 1,
        check: |d| {
            faster(d, EVEN, |a| {
                a.link_bw *= 1.3;
                a.nic_bw *= 1.3;
            })
        },
    },
    Rule { name: "neighbors in length or batch differ by less than 10 %", every: 1, check: neighbors },
    Rule {
        name: "fp8 is at least as fast as bf16 at high concurrency, where launches are not most of the time",
        every: 1,
        check: eight_bits,
    },
    Rule { name: "optimize is never below its start", every: 200, check: optimum },
];

/// Tolerance for rounding.
const DUST: f64 = 1e-6;

/// Share by which better hardware may be slower: batches that fill different waves, and hosts whose kernel launches are
/// just about hidden by the device.
const EVEN: f64 = 5e-3;
/// Tolerance for larger batches, whose prompts wait longer for each other.
const LARGER: f64 = 0.02;

/// Parts of the time breakdown that differ, in ms.
fn parts(a: &Estimate, b: &Estimate) -> String {
    let (Some(a), Some(b)) = (a.detail, b.detail) else { return String::new() };
    let differ = a.time.parts().zip(b.time.parts()).filter(|((_, a), (_, b))| a != b);
    differ
        .map(|((part, a), (_, b))| format!("{} {:.4} -> {:.4}", part.name(), 1e3 * a, 1e3 * b))
        .collect::<Vec<_>>()
        .join(", ")
}

fn rate(answer: &Estimate) -> f64 {
    answer.total.tokens_per_sec
}

fn holds(yes: bool, otherwise: impl FnOnce() -> String) -> Option<Result<(), String>> {
    Some(if yes { Ok(()) } else { Err(otherwise()) })
}

/// Whether a scenario fits. The latencies of an overloaded scenario are unbounded.
fn fits(answer: &Estimate) -> bool {
    answer.detail.is_some_and(|detail| detail.verdict.fits())
}

fn finite(drawn: &Drawn) -> Option<Result<(), String>> {
    let (answer, scenario) = (&drawn.answer, &drawn.scenario);
    if !fits(answer) {
        return None;
    }
    let bad: Vec<String> = METRICS
        .iter()
        .filter(|metric| metric.applies_to(scenario))
        // Hardware whose rent is below its running costs never breaks even.
        .filter(|metric| metric.id != MetricId::BreakEvenMonths)
        .map(|metric| (metric.name, metric.value(answer, scenario)))
        .filter(|(_, value)| !value.is_some_and(|value| value.is_finite() && value >= 0.0))
        .map(|(name, value)| format!("{name} is {value:?}"))
        .collect();
    let silent = rate(answer) <= 0.0;
    holds(bad.is_empty() && !silent, || format!("{} {}", bad.join(", "), if silent { "no throughput" } else { "" }))
}

fn shares(drawn: &Drawn) -> Option<Result<(), String>> {
    let answer = &drawn.answer;
    let detail = answer.detail.filter(|detail| detail.verdict.fits())?;
    let total = &answer.total;
    let training = detail.training.map_or((0.0, 0.0), |training| (training.mfu_causal, training.hfu));
    let all = [total.flop_utilization, total.hbm_bw_util, total.comm_compute_ratio, training.0, training.1];
    holds(all.iter().all(|share| *share <= 1.0 + DUST), || format!("{all:?}"))
}

fn conserved(drawn: &Drawn) -> Option<Result<(), String>> {
    let detail = drawn.answer.detail.filter(|detail| detail.verdict.fits())?;
    let near = |a: f64, b: f64| (a - b).abs() <= DUST * a.abs().max(b.abs());
    if let Some(training) = detail.training {
        let step_ms = drawn.answer.total.step_time_ms?;
        let made = rate(&drawn.answer) * step_ms / 1e3;
        let parts = detail.time.total() * 1e3;
        return holds(near(made, training.tokens_per_step) && near(parts, step_ms), || {
            format!("{made} tokens of {}, parts {parts} ms", training.tokens_per_step)
        });
    }
    let serving = detail.serving?;
    let shape = &drawn.scenario.base.shape;
    let held = drawn.scenario.base.plan.serving.generate_max.is_none();
    if !held || shape.generate <= 0.0 {
        return None;
    }
    let made = serving.requests_per_sec * shape.generate;
    // Without output tokens, throughput counts prompt tokens, including those of images.
    let read = serving.requests_per_sec * (shape.prompt + drawn.scenario.image_tokens(&drawn.scenario.base));
    // With prefill only, each request has one token, its first.
    let first = drawn.scenario.get(Knob::Load) == Setting::Choice("prefill-only".into());
    let one = first && near(serving.requests_per_sec, rate(&drawn.answer));
    holds(one || near(made, rate(&drawn.answer)) || near(read, rate(&drawn.answer)), || {
        format!("{made} tokens/s of requests, {} of tokens", rate(&drawn.answer))
    })
}

/// Better hardware with the same settings is not slower.
fn faster(drawn: &Drawn, even: f64, better: impl Fn(&mut Accelerator)) -> Option<Result<(), String>> {
    if !fits(&drawn.answer) {
        return None;
    }
    let mut scenario: Scenario = drawn.scenario.clone();
    better(&mut scenario.machine.as_mut()?.device);
    let then = estimate(&scenario);
    if !fits(&then) {
        return Some(Err("no longer fits in memory".to_owned()));
    }
    let (a, b) = (rate(&drawn.answer), rate(&then));
    holds(b >= a * (1.0 - even), || {
        format!("{a} became {b} tokens/s ({:+.2} %); {}", 100.0 * (b / a - 1.0), parts(&drawn.answer, &then))
    })
}

fn neighbors(drawn: &Drawn) -> Option<Result<(), String>> {
    if !fits(&drawn.answer) {
        return None;
    }
    let scenario = &drawn.scenario;
    // Graphs of fixed shape round lengths and batches up to powers of two. Static batching processes a whole number of
    // batches one after another.
    let whole = scenario.get(Knob::Load) == Setting::Choice("static".into());
    if !drawn.trains() && (scenario.base.serving_defaults.fixed_shapes || whole) {
        return None;
    }
    let shape = &scenario.base.shape;
    let by = |value: f64| (value * 1.01).round().max(value + 1.0);
    let mut changed = Vec::new();
    // The GEMMs of a training step fill whole tiles at these lengths. At others the last tile is partly empty, and
    // groups of experts have few tiles each.
    let tile = 128.0 * scenario.base.plan.cp.unwrap_or(Count::ONE);
    let experts = scenario.model.is_some_and(|model| model.is_moe());
    match drawn.trains() {
        true if !experts && shape.prompt % tile == 0.0 && shape.prompt >= 32.0 * tile => {
            changed.push((Knob::Prompt, shape.prompt + tile));
        }
        false if shape.prompt >= 128.0 => changed.push((Knob::Prompt, by(shape.prompt))),
        _ => {}
    }
    if drawn.trains() {
        let (global, pass) = (scenario.global(&scenario.base), scenario.micro(&scenario.base) * shape.dp);
        // With fewer micro-batches, the pipeline bubble itself changes by more.
        let groups = if scenario.base.plan.vpp.unwrap_or(Count::ONE) > 1.0 { shape.pp } else { Count::ONE };
        if global / pass >= 12.0 * shape.pp * groups.max(Count::ONE) {
            changed.push((Knob::Global, global + pass * groups.max(Count::ONE)));
        }
    } else {
        let concurrency = scenario.concurrency(&scenario.base);
        if concurrency >= 32.0 * shape.dp {
            changed.push((Knob::Concurrency, by(concurrency)));
        }
    }
    let mut seen = false;
    for (knob, value) in changed {
        // A different batch may be divided among more or fewer replicas.
        let alike = |next: &Drawn| fits(&next.answer) && next.scenario.base.shape.dp == shape.dp;
        let Some(next) = drawn.but(knob, &value.to_string()).filter(alike) else { continue };
        seen = true;
        let (a, b) = (rate(&drawn.answer), rate(&next.answer));
        if (a / b - 1.0).abs() > 0.1 {
            return Some(Err(format!("{} = {value}: {a} and {b} tokens/s", knob.name())));
        }
    }
    seen.then_some(Ok(()))
}

fn eight_bits(drawn: &Drawn) -> Option<Result<(), String>> {
    let scenario = &drawn.scenario;
    let device = scenario.machine?.device;
    if drawn.trains()
        || device.peak(Precision::Fp8) < 1.2 * device.peak(Precision::Bf16)
        || scenario.concurrency(&scenario.base) < 512.0 * scenario.base.shape.dp
    {
        return None;
    }
    let of = |format| drawn.but(Knob::Precision, format).filter(|drawn| fits(&drawn.answer));
    let (wide, narrow) = (of("bf16")?, of("fp8")?);
    let launches = |drawn: &Drawn| {
        let time = drawn.answer.detail.map(|detail| detail.time)?;
        let of = time.part(TimePart::Launch) + time.part(TimePart::Host);
        Some(of / time.total())
    };
    // Quantization needs additional kernels.
    let hit = scenario.base.plan.serving.prefix_hit.unwrap_or(0.0);
    let pools = scenario.base.pools().is_some() && scenario.base.shape.prompt * (1.0 - hit) < 512.0;
    if pools || [&wide, &narrow].into_iter().any(|drawn| launches(drawn).is_none_or(|share| share > 0.25)) {
        return None;
    }
    let (a, b) = (rate(&wide.answer), rate(&narrow.answer));
    holds(b >= a * (1.0 - EVEN), || format!("bf16 {a}, fp8 {b} tokens/s; {}", parts(&wide.answer, &narrow.answer)))
}

fn optimum(drawn: &Drawn) -> Option<Result<(), String>> {
    let objective = MetricId::TokensPerSec.metric();
    let start = freed(&drawn.scenario, &|_| false, &drawn.parts);
    let mut problem = Problem::of(&start, &drawn.parts, objective).from(&drawn.scenario).with_default_conditions(&[]);
    problem.max_candidates = 5000;
    let found = optimize(&problem, &Gauge::default());
    let score = |candidate: &Candidate| metric::score(objective, &candidate.estimate, &candidate.scenario);
    if !found.objections(&problem, &found.start).is_empty() || !score(&found.start).is_finite() {
        return None;
    }
    let best = found.best.as_ref().map(score);
    holds(best.is_some_and(|best| best <= score(&found.start)), || {
        format!("start {}, best {best:?}", score(&found.start))
    })
}
