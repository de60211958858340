//! Why a scenario cannot run, and the smallest changes with which it can.
//!
//! Each knob that affects the problem has a ladder of values, ordered by distance from the current value. Single knobs
//! are tried before pairs, and only the first value of each that makes the scenario run is returned. Whether it fits in
//! memory is decided by the upper bound, as everywhere.

use super::case::{Case, further_offloads, smaller_optimizers, toggle, word};
use super::trial::{Trial, verdict};
use super::{Advice, Changes, Objective, rules};
use crate::estimate::{Estimate, Verdict};
use crate::knob::{Knob, Setting};
use crate::scenario::{Parts, Scenario};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::plan::{CpuOffload, LoadKind, PipelineSchedule, Recompute, Sharding, Trained};
use atlas_core::sort;
use atlas_perf::accelerator::Precision;

/// Maximum number of estimates per call of [`fit`].
const MAX_TRIALS: usize = 240;

/// Why a scenario cannot run, and changes with which it can.
#[derive(Debug, Clone)]
pub struct Fit {
    /// Verdict.
    pub verdict: Verdict,
    /// Bytes by which the upper bound of memory exceeds the capacity of the fullest device; 0 if memory is not the
    /// problem.
    pub excess_bytes: f64,
    /// Smallest changes with which the scenario can run: of one knob if possible, otherwise of two. Ordered by tokens/s
    /// per accelerator, highest first.
    pub fixes: Vec<Advice>,
}

/// Determines why a scenario cannot run and how to fix it; `None` if it runs. A simulated scenario is judged by the
/// closed form of the same physics, as in [`super::advise`].
#[must_use]
pub fn fit(scenario: &Scenario, parts: &Parts, estimate: &Estimate) -> Option<Fit> {
    let found = verdict(estimate);
    if found.fits() {
        return None;
    }
    if scenario.engine.simulates() {
        let twin = crate::engine::analytical_scenario(scenario);
        return fit(&twin, parts, &crate::engine::estimate(&twin));
    }
    let mut trial = Trial::new(scenario, parts, estimate, Objective::Throughput, MAX_TRIALS);
    let case = Case::of(scenario, parts, trial.before());
    let mut fixes = search(&mut trial, &case);
    for fix in &mut fixes {
        fix.text = trial.words(&fix.changes);
    }
    let excess_bytes = match found {
        Verdict::Memory { needs, has } => (needs - has).max(0.0),
        _ => 0.0,
    };
    Some(Fit { verdict: found, excess_bytes, fixes })
}

/// Values of one knob, nearest to the current one first.
struct KnobCandidates {
    knob: Knob,
    rungs: Vec<Setting>,
}

/// Finds changes with which the scenario can run, highest throughput per accelerator first.
pub(super) fn search(trial: &mut Trial<'_>, case: &Case<'_>) -> Vec<Advice> {
    let ladders = knob_candidates(case);
    let mut fixes: Vec<Advice> = Vec::new();
    for ladder in &ladders {
        let found = ladder.rungs.iter().find_map(|rung| attempt(trial, case, &[(ladder.knob, rung)]));
        fixes.extend(found);
    }
    if fixes.is_empty() {
        for (i, a) in ladders.iter().enumerate() {
            for b in ladders.iter().skip(i + 1) {
                fixes.extend(pair(trial, case, a, b));
            }
        }
    }
    // Compare throughput per accelerator, since more nodes always yield more tokens/s.
    let per_accelerator = |fix: &Advice| {
        let nodes = fix.changes.iter().find(|(knob, _)| *knob == Knob::NumNodes);
        let count = match nodes {
            Some((_, Setting::Number(nodes))) => *nodes,
            _ => f64::from(case.scenario.num_nodes),
        };
        fix.rate / count
    };
    sort::by(&mut fixes, |a, b| per_accelerator(b).total_cmp(&per_accelerator(a)));
    fixes
}

/// Smallest values of two ladders that fit together: starts from the last of both, then minimizes one after the other.
fn pair(trial: &mut Trial<'_>, case: &Case<'_>, a: &KnobCandidates, b: &KnobCandidates) -> Option<Advice> {
    let (mut x, y) = (a.rungs.last()?, b.rungs.last()?);
    let mut best = attempt(trial, case, &[(a.knob, x), (b.knob, y)])?;
    for rung in &a.rungs {
        if let Some(fix) = (rung != x).then(|| attempt(trial, case, &[(a.knob, rung), (b.knob, y)])).flatten() {
            (x, best) = (rung, fix);
            break;
        }
    }
    for rung in &b.rungs {
        if let Some(fix) = (rung != y).then(|| attempt(trial, case, &[(a.knob, x), (b.knob, rung)])).flatten() {
            best = fix;
            break;
        }
    }
    Some(best)
}

/// Tries values together. The replicas and the batch follow as in [`Case::cut`].
fn attempt(trial: &mut Trial<'_>, case: &Case<'_>, rungs: &[(Knob, &Setting)]) -> Option<Advice> {
    let value = |knob: Knob, now: f64| {
        rungs.iter().find(|(turned, _)| *turned == knob).map_or(now, |(_, setting)| match setting {
            Setting::Number(value) => *value,
            _ => now,
        })
    };
    let cut = [Knob::Tp, Knob::Pp, Knob::Cp, Knob::Microbatch];
    let mut changes = if rungs.iter().any(|(knob, _)| cut.contains(knob)) {
        let changes = case.cut(
            value(Knob::Tp, case.tp),
            value(Knob::Pp, case.pp),
            value(Knob::Cp, case.cp),
            value(Knob::Microbatch, case.micro),
        );
        if changes.is_empty() {
            return None;
        }
        changes
    } else {
        Changes::new()
    };
    for (knob, setting) in rungs.iter().filter(|(knob, _)| !cut.contains(knob)) {
        changes.push((*knob, (*setting).clone()));
    }
    trial.advice(&rules::MAKE_IT_FIT, changes, 0.0)
}

/// Repeated doublings of a number, up to `limit`.
fn doubled(from: f64, limit: f64) -> Vec<Setting> {
    let values = std::iter::successors(Some(2.0 * from), |value| Some(2.0 * value));
    values.take_while(|value| *value <= limit).take(6).map(Setting::Number).collect()
}

/// Repeated halvings of a number, down to 1.
fn halved(from: f64) -> Vec<Setting> {
    let values = std::iter::successors(Some((from / 2.0).floor()), |value| Some((value / 2.0).floor()));
    values.take_while(|value| *value >= 1.0).take(6).map(Setting::Number).collect()
}

/// Divisors of `of` up to `limit`, nearest to `from` first.
fn divisors(of: f64, from: f64, limit: f64) -> Vec<Setting> {
    let mut all: Vec<f64> = Vec::new();
    let mut by = 1.0;
    while by <= limit.min(of).min(4096.0) {
        if of % by == 0.0 {
            all.push(by);
        }
        by += 1.0;
    }
    sort::by(&mut all, |a, b| (a - from).abs().total_cmp(&(b - from).abs()));
    all.into_iter().take(3).map(Setting::Number).collect()
}

fn words(knob: Knob, all: &[&'static str]) -> Vec<Setting> {
    all.iter().map(|name| word(knob, name).1).collect()
}

/// Ladders of the knobs that affect the problem.
fn knob_candidates(case: &Case<'_>) -> Vec<KnobCandidates> {
    let Some(detail) = case.detail() else { return Vec::new() };
    let all = match (detail.verdict, case.scenario.mode()) {
        (Verdict::Fits, _) => Vec::new(),
        (Verdict::Memory { .. }, Mode::Training) => training_memory(case),
        (Verdict::Memory { .. }, Mode::Inference) => serving_memory(case),
        (Verdict::HostMemory { needs, .. }, _) => host_memory(case, needs),
        (Verdict::Accelerators { needs, has }, _) => accelerators(case, needs / has),
        (Verdict::Indivisible { what, .. }, _) => indivisible(case, what),
        (Verdict::RecomputedLayers { layers, .. }, _) => vec![(Knob::RecomputeLayers, vec![Setting::Number(layers)])],
        (Verdict::Sequence { tokens, parts, .. }, _) => sequence(case, tokens, parts),
        (Verdict::Stages { .. }, _) => stages(case),
        (Verdict::Bidirectional { .. }, _) => {
            vec![(
                Knob::PipelineSchedule,
                words(Knob::PipelineSchedule, &[PipelineSchedule::OneForwardOneBackward.name()]),
            )]
        }
        (Verdict::Format { instead, .. } | Verdict::SoftwareFormat { instead, .. }, _) if !instead.is_empty() => {
            // A stated format of matrix products is replaced alone.
            match case.scenario.base.plan.compute {
                Some(_) => vec![(Knob::Compute, words(Knob::Compute, &[instead]))],
                None => other_formats(case, instead),
            }
        }
        (
            Verdict::Format { .. }
            | Verdict::SoftwareFormat { .. }
            | Verdict::NoTokens
            | Verdict::PrefillPool { .. }
            | Verdict::SlowNodes { .. }
            | Verdict::NoProgress { .. },
            _,
        ) => Vec::new(),
        (Verdict::CacheFormat { .. }, _) => {
            vec![(Knob::KvPrecision, words(Knob::KvPrecision, &["fp8", "bf16"]))]
        }
        (Verdict::OutputLimit { limit, mean }, _) => vec![
            (Knob::GenerateMax, vec![Setting::Number(mean.ceil()), Setting::Number(0.0)]),
            (Knob::Generate, vec![Setting::Number(limit)]),
        ],
        (Verdict::NoOutput, _) => vec![(Knob::Load, words(Knob::Load, &[LoadKind::PrefillOnly.name()]))],
        (Verdict::NoDecode, _) => {
            vec![(Knob::Load, words(Knob::Load, &[LoadKind::Closed.name(), LoadKind::PrefillOnly.name()]))]
        }
        (Verdict::RackPower { nodes, needs, .. }, _) => vec![
            (Knob::NodesPerRack, halved(nodes)),
            // Rounded up to whole kW.
            (Knob::RackKw, vec![Setting::Number((1e-3 * needs).ceil())]),
        ],
        (Verdict::Context { most, .. }, _) => {
            let shape = &case.scenario.base.shape;
            let rest = |other: f64| vec![Setting::Number((most - other).floor())];
            let mut shorter = vec![(Knob::Prompt, rest(shape.generate)), (Knob::Generate, rest(shape.prompt))];
            shorter
                .retain(|(_, rest)| rest.iter().all(|rest| matches!(rest, Setting::Number(tokens) if *tokens >= 1.0)));
            shorter
        }
        (Verdict::Overload { offered, capacity }, _) => overload(case, offered, capacity),
    };
    let ladders = all.into_iter().map(|(knob, rungs)| KnobCandidates { knob, rungs });
    ladders.filter(|ladder| !ladder.rungs.is_empty() && case.scenario.uses(ladder.knob)).collect()
}

type CandidateValues = Vec<(Knob, Vec<Setting>)>;

fn training_memory(case: &Case<'_>) -> CandidateValues {
    let later = |names: &[&'static str], now: &str| -> Vec<Setting> {
        let at = names.iter().position(|name| *name == now).map_or(0, |at| at + 1);
        words(Knob::Sharding, names.get(at..).unwrap_or_default())
    };
    let recompute = match case.recompute {
        Recompute::Full => Vec::new(),
        Recompute::Selective => words(Knob::Recompute, &["full"]),
        Recompute::None | Recompute::Auto => words(Knob::Recompute, &["selective", "full"]),
    };
    let sharding = if case.dp * case.cp > 1.0 { later(Sharding::NAMES, case.sharding.name()) } else { Vec::new() };
    let plan = &case.scenario.base.plan;
    let shard = case.number(Knob::Shard);
    let whole = if shard > 0.0 { vec![Setting::Number(0.0)] } else { Vec::new() };
    let experts =
        if case.arch.is_moe() { doubled(case.ep, case.devices.min(case.arch.experts.into())) } else { Vec::new() };
    vec![
        (Knob::Recompute, recompute),
        (Knob::Sharding, sharding),
        (Knob::Microbatch, halved(case.micro)),
        (Knob::Tp, doubled(case.tp, case.domain.min(case.devices))),
        (Knob::Pp, doubled(case.pp, case.devices.min(case.arch.layers.into()))),
        (Knob::Ep, experts),
        (Knob::Shard, whole),
        (Knob::Cp, doubled(case.cp, 16.0f64.min(case.devices))),
        (Knob::Optimizer, smaller_optimizers(case).collect()),
        (Knob::CpuOffload, further_offloads(case).collect()),
        (
            Knob::Trained,
            if plan.trained.is_none() { words(Knob::Trained, &[Trained::Lora.name()]) } else { Vec::new() },
        ),
        (Knob::NumNodes, doubled(f64::from(case.scenario.num_nodes), 64.0 * case.scenario.num_nodes)),
    ]
}

/// Fewer states in host memory, or more host memory for them.
fn host_memory(case: &Case<'_>, needs: f64) -> CandidateValues {
    let now = case.scenario.base.plan.cpu_offload.unwrap_or(CpuOffload::None);
    let less = [CpuOffload::Optimizer, CpuOffload::None].into_iter().filter(|offload| *offload < now);
    let less: Vec<&'static str> = less.map(CpuOffload::name).collect();
    vec![
        (Knob::CpuOffload, words(Knob::CpuOffload, &less)),
        (Knob::Optimizer, smaller_optimizers(case).collect()),
        (Knob::HostMemoryGb, vec![Setting::Number((1e-9 * needs).ceil())]),
        (Knob::Sharding, words(Knob::Sharding, &[Sharding::Zero1.name(), Sharding::Zero3.name()])),
        (Knob::NumNodes, doubled(f64::from(case.scenario.num_nodes), 64.0 * case.scenario.num_nodes)),
    ]
}

/// Formats instead of one that does not run, and what a wider one may need to fit in memory. Narrow weights can be
/// unpacked where there are no products of them.
fn other_formats(case: &Case<'_>, instead: &'static str) -> CandidateValues {
    let (formats, memory): (&[&'static str], _) = match case.scenario.mode() {
        Mode::Training => (&[instead], training_memory(case)),
        Mode::Inference => (&[instead, "int8", "int4"], serving_memory(case)),
    };
    let memory = memory.into_iter().filter(|(knob, _)| *knob != Knob::Precision);
    std::iter::once((Knob::Precision, words(Knob::Precision, formats))).chain(memory).collect()
}

/// Narrower weight formats that the device or its kernels support.
fn narrower_formats(case: &Case<'_>) -> Vec<Setting> {
    let mut names: Vec<&'static str> = Vec::new();
    if case.format.name() != "fp8" && case.device.supports(Precision::Fp8) {
        names.push("fp8");
    }
    if case.device.supports(Precision::Fp4) {
        names.push("fp4");
    } else {
        names.push("int4");
    }
    names.retain(|name| *name != case.format.name());
    if matches!(case.format.name(), "fp4" | "int4") { Vec::new() } else { words(Knob::Precision, &names) }
}

fn serving_memory(case: &Case<'_>) -> CandidateValues {
    let share = case.number(Knob::GpuMemoryUtilization);
    let more = if share < 0.95 { vec![Setting::Number(0.95)] } else { Vec::new() };
    vec![
        (Knob::GpuMemoryUtilization, more),
        (Knob::Tp, doubled(case.tp, case.domain.min(case.devices))),
        (Knob::Precision, narrower_formats(case)),
        (Knob::KvPrecision, words(Knob::KvPrecision, &["fp8"])),
        (Knob::Pp, doubled(case.pp, f64::from(case.arch.layers))),
        (Knob::NumNodes, doubled(f64::from(case.scenario.num_nodes), 64.0 * case.scenario.num_nodes)),
    ]
}

fn accelerators(case: &Case<'_>, times: f64) -> CandidateValues {
    let fewer = (case.devices / (case.tp * case.pp * case.cp)).floor();
    let replicas = if fewer >= 1.0 && fewer < case.dp { vec![Setting::Number(fewer)] } else { Vec::new() };
    vec![
        (Knob::Dp, replicas),
        (Knob::NumNodes, vec![Setting::Number((case.scenario.num_nodes * times).ceil())]),
        (Knob::Tp, halved(case.tp)),
        (Knob::Pp, halved(case.pp)),
        (Knob::Cp, halved(case.cp)),
    ]
}

/// Sequence lengths near `tokens` that are divisible by `parts`, or fewer ranks that share a sequence.
fn sequence(case: &Case<'_>, tokens: f64, parts: f64) -> CandidateValues {
    let output = case.scenario.base.shape.generate;
    let up = (tokens / parts).ceil() * parts - output;
    let mut near = vec![up, up - parts];
    near.retain(|prompt| *prompt >= 1.0);
    sort::by(&mut near, |a, b| (a + output - tokens).abs().total_cmp(&(b + output - tokens).abs()));
    vec![
        (Knob::Prompt, near.into_iter().map(Setting::Number).collect()),
        (Knob::Sp, vec![toggle(Knob::Sp, false).1]),
        (Knob::Cp, halved(case.cp)),
        (Knob::Tp, halved(case.tp)),
    ]
}

/// Fewer chunks, or, for stated layers of the first or last stage, numbers that leave whole layers for the other
/// stages.
fn stages(case: &Case<'_>) -> CandidateValues {
    let (layers, plan) = (case.arch.depth(), &case.scenario.base.plan);
    let end = |knob, stated: Option<Count>, other: Option<Count>| {
        let others = (case.pp - 1.0 - if other.is_some() { 1.0 } else { 0.0 }) * case.vpp;
        let rest = layers - other.unwrap_or(Count::ZERO);
        let near = stated.map(|stated| {
            let mut near: Vec<f64> =
                (0..256).map(f64::from).filter(|own| *own <= rest && (rest - own) % others.max(1.0) == 0.0).collect();
            sort::by(&mut near, |a, b| (*a - stated).abs().total_cmp(&(*b - stated).abs()));
            near.into_iter().take(3).map(Setting::Number).collect()
        });
        (knob, near.unwrap_or_default())
    };
    vec![
        end(Knob::FirstLayers, plan.first_layers, plan.last_layers),
        end(Knob::LastLayers, plan.last_layers, plan.first_layers),
        (Knob::Vpp, halved(case.vpp)),
        (Knob::Pp, halved(case.pp)),
    ]
}

fn indivisible(case: &Case<'_>, what: &str) -> CandidateValues {
    let unit = case.dp * case.micro;
    match what {
        "query heads" => vec![(Knob::Tp, divisors(f64::from(case.arch.heads), case.tp, case.devices))],
        "experts" => vec![(Knob::Ep, divisors(f64::from(case.arch.experts), case.ep, case.devices))],
        "data-parallel ranks in groups of shard" => {
            let shard = case.number(Knob::Shard);
            vec![(Knob::Shard, divisors(case.dp * case.cp, shard, case.dp * case.cp))]
        }
        "ranks of a stage in groups of ep x etp" => {
            let ranks = case.number(Knob::Tp) * case.cp * case.dp;
            vec![
                (Knob::Etp, vec![Setting::Number(1.0)]),
                (Knob::Ep, divisors(ranks, case.ep, f64::from(case.arch.experts))),
            ]
        }
        "layers" => vec![(Knob::Vpp, halved(case.vpp)), (Knob::Pp, halved(case.pp))],
        what => {
            let groups = what == "micro-batches of interleaved stages";
            let unit = if groups { unit * case.pp } else { unit };
            let up = (case.global / unit).ceil() * unit;
            let mut near = vec![up, up - unit];
            near.retain(|global| *global >= 1.0);
            sort::by(&mut near, |a, b| (a - case.global).abs().total_cmp(&(b - case.global).abs()));
            vec![
                (Knob::Global, near.into_iter().map(Setting::Number).collect()),
                (Knob::Microbatch, divisors((case.global / case.dp).floor(), case.micro, case.micro)),
                (Knob::Dp, divisors((case.global / case.micro).floor(), case.dp, case.dp)),
                (Knob::Vpp, if groups { vec![Setting::Number(1.0)] } else { Vec::new() }),
            ]
        }
    }
}

fn overload(case: &Case<'_>, offered: f64, capacity: f64) -> CandidateValues {
    // Slightly below the capacity: at the capacity, the queue would still grow.
    let served = (0.9 * capacity * 1e3).floor() / 1e3;
    let seqs = case.number(Knob::MaxNumSeqs);
    let enough = (case.scenario.num_nodes * offered / (0.9 * capacity)).ceil().min(1e6);
    vec![
        (Knob::MaxNumSeqs, doubled(seqs, 4096.0)),
        (Knob::Tp, halved(case.tp).into_iter().chain(doubled(case.tp, case.domain.min(case.devices))).collect()),
        (Knob::KvPrecision, words(Knob::KvPrecision, &["fp8"])),
        (Knob::Precision, narrower_formats(case)),
        (Knob::ChunkedPrefill, vec![toggle(Knob::ChunkedPrefill, true).1]),
        (Knob::PrefillAccelerators, vec![Setting::Number(0.0)]),
        (Knob::NumNodes, vec![Setting::Number(enough), Setting::Number(2.0 * enough)]),
        (Knob::RequestRate, vec![Setting::Number(served)]),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::advice::advise;

    use crate::testing;

    fn scenario(target: &str, workload: &str, set: &[&str]) -> (Parts, Scenario) {
        let (parts, scenario) = testing::scenario(target, workload, set);
        (parts, scenario)
    }

    #[test]
    fn smaller_states_offload_and_adapters_are_tried_to_make_training_fit() {
        let (parts, scenario) = scenario(
            "rtx-4090-8",
            "llama3.1-8b-train",
            &["num_nodes=1", "dp=1", "tp=1", "pp=1", "global=8", "software=deepspeed"],
        );
        let fit = fit(&scenario, &parts, &crate::engine::estimate(&scenario)).unwrap();
        let tried = |knob: Knob| {
            knob_candidates(&Case::of(&scenario, &parts, crate::engine::estimate(&scenario)))
                .iter()
                .any(|ladder| ladder.knob == knob)
        };
        assert!(matches!(fit.verdict, Verdict::Memory { .. }));
        for knob in [Knob::Optimizer, Knob::CpuOffload, Knob::Trained] {
            assert!(tried(knob), "{knob:?}");
        }
        assert!(!fit.fixes.is_empty());
    }

    #[test]
    fn a_missing_format_is_replaced_by_one_that_fits_in_memory() {
        let (parts, scenario) = scenario("v100-sxm-8", "llama3.1-70b-serve", &[]);
        let fit = fit(&scenario, &parts, &crate::engine::estimate(&scenario)).unwrap();
        assert!(matches!(fit.verdict, Verdict::SoftwareFormat { .. }), "{:?}", fit.verdict);
        assert!(fit.fixes.iter().any(|fix| fix.text.contains("precision")), "{:?}", fit.fixes);
    }

    #[test]
    fn advice_on_memory_offers_recomputation_and_smaller_states_and_no_increase_as_a_decrease() {
        let (parts, scenario) = scenario("h100-sxm-8", "llama3.1-8b-train", &["software=deepspeed"]);
        let all = advise(&scenario, &parts, &crate::engine::estimate(&scenario), Objective::Memory);
        let offers = |text: &str| all.iter().any(|advice| advice.text.contains(text));
        for text in ["→ full", "adam-8bit", "cpu_offload none →"] {
            assert!(offers(text), "{text}: {:?}", all.iter().map(|advice| &advice.text).collect::<Vec<_>>());
        }
        assert!(
            all.iter().all(|advice| !advice.rule.name.starts_with("use only as much") || !advice.text.contains("tp 1"))
        );
    }
}
