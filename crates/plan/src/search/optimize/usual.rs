//! Defaults of a search: the knobs that it varies and its constraints.

use super::super::space::{Axis, Space, degrees, divisors_within, doubling, stages};
use super::{Condition, Problem};
use crate::engine::answer::training::STATE_BYTES;
use crate::estimate::detail::HEADROOM;
use crate::estimate::{Metric, MetricId, Section};
use crate::knob::{Knob, Setting};
use crate::scenario::{Parts, Scenario};
use crate::search::condition::Relation;
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::plan::{CpuOffload, Sharding};
use atlas_core::sort;
use atlas_perf::arch::Architecture;
use atlas_perf::serving::Load;
use atlas_perf::traits::GraphCapture;

/// Default upper bound of TTFT, ms: MLPerf Inference v5.1 allows 2 s for the server scenario of Llama 3.1 8B.
pub const TTFT_MS: f64 = 2000.0;
/// Default upper bound of TPOT, ms: 20 tokens per second are several times faster than reading speed.
pub const TPOT_MS: f64 = 50.0;

/// Latency metrics, their default upper bounds in ms, and the metrics whose constraints also limit them.
const LATENCY: [(MetricId, f64, &[MetricId]); 2] =
    [(MetricId::TtftMs, TTFT_MS, &LIMITING_TTFT), (MetricId::TpotMs, TPOT_MS, &LIMITING_TPOT)];

/// Metrics whose constraints limit TTFT.
pub(super) const LIMITING_TTFT: [MetricId; 5] =
    [MetricId::TtftMs, MetricId::TtftP99Ms, MetricId::P50Ms, MetricId::P95Ms, MetricId::P99Ms];

/// Metrics whose constraints limit TPOT.
pub(super) const LIMITING_TPOT: [MetricId; 6] = [
    MetricId::TpotMs,
    MetricId::ItlP99Ms,
    MetricId::TokensPerSecPerUser,
    MetricId::P50Ms,
    MetricId::P95Ms,
    MetricId::P99Ms,
];

/// Number of model chunks per stage up to which every number is tried; above, only divisors of the layers.
const EXHAUSTIVE_VPP: f64 = 8.0;
/// Number of stages up to which a search for the fewest accelerators tries every number; above, only divisors.
const EXHAUSTIVE_PP: u32 = 8;
/// Maximum number of serving replicas in a search for the fewest accelerators.
const MAX_REPLICAS: u32 = 512;
/// Maximum number of model chunks per stage.
const MAX_VPP: f64 = 20.0;

/// Default constraints, unless one on the same metrics is stated. A twentieth of the memory stays free. For interactive
/// loads, TTFT is at most 2 s and TPOT at most 50 ms, or at most the workload's own SLOs.
#[must_use]
pub fn default_conditions(start: &Scenario, objective: &Metric, stated: &[Condition]) -> Vec<Condition> {
    let bounded = |ids: &[MetricId]| {
        let by = |condition: &Condition| match condition {
            Condition::Metric(metric, ..) => ids.contains(&metric.id),
            _ => false,
        };
        ids.contains(&objective.id) || stated.iter().any(by)
    };
    if !start.engine.models_hardware() {
        return Vec::new();
    }
    let memory = (!bounded(&[MetricId::Headroom, MetricId::PeakMemGb])).then_some(Condition::Metric(
        MetricId::Headroom.metric(),
        Relation::AtLeast,
        HEADROOM,
    ));
    match start.mode() {
        Mode::Training => memory.into_iter().collect(),
        Mode::Inference => {
            let interactive = matches!(start.load(&start.base), Load::Closed { .. } | Load::Open { .. });
            let slo = &start.base.plan.simulation;
            let stated = [slo.slo_ttft_ms, slo.slo_tpot_ms];
            let latencies = LATENCY.iter().zip(stated).filter(|((_, _, by), _)| interactive && !bounded(by));
            latencies
                .map(|((id, usual, _), stated)| (id.metric(), stated.unwrap_or(*usual)))
                .filter(|(metric, _)| metric.applies_to(start))
                .map(|(metric, bound)| Condition::at_most(metric, bound))
                .chain(memory)
                .collect()
        }
    }
}

/// Whether the constraint is on TTFT or TPOT.
pub(super) fn is_latency(condition: &Condition) -> bool {
    matches!(condition, Condition::Metric(metric, ..) if LATENCY.iter().any(|(id, ..)| *id == metric.id))
}

/// Returns the starting point with derived values released: a stated number of replicas is derived from the target
/// again, unless `held`, and a global batch that is derived from the layout is fixed at its current value, so that
/// every candidate trains the same model.
#[must_use]
pub fn freed(start: &Scenario, held: &dyn Fn(Knob) -> bool, parts: &Parts) -> Scenario {
    let mut scenario = start.clone();
    if scenario.mode() == Mode::Training {
        let global = scenario.global(&scenario.base);
        scenario.base.plan.global.get_or_insert(Count::floor(global));
    }
    if held(Knob::Dp) {
        return scenario;
    }
    for phase in std::iter::once(&mut scenario.base).chain(&mut scenario.phases) {
        phase.plan.dp = None;
    }
    // Setting any knob to its current value recomputes the number of replicas.
    let tp = scenario.get(Knob::Tp);
    let _ = scenario.set(Knob::Tp, &tp, parts);
    scenario
}

/// Starting point in which recomputation reserves as much free memory as the constraints require.
pub(super) fn reserving(problem: &Problem<'_>) -> Scenario {
    let mut start = problem.start.clone();
    let requested = problem.conditions.iter().filter_map(|condition| match condition {
        Condition::Metric(metric, Relation::AtLeast | Relation::Above, share) if metric.id == MetricId::Headroom => {
            Some(*share)
        }
        _ => None,
    });
    let reserve = requested.fold(0.0, f64::max).min(0.9);
    let less = start.base.plan.recompute_reserve.unwrap_or(HEADROOM) < reserve;
    if start.uses(Knob::RecomputeReserve) && less && !problem.space.turns(Knob::RecomputeReserve) {
        // Cannot fail: the share is within the bounds of the knob.
        let _ = start.set(Knob::RecomputeReserve, &Setting::Number(reserve), problem.parts);
    }
    start
}

/// Knobs that a search varies by default: the layout, and trade-offs between memory and time, as far as the software
/// supports them. Knobs that affect model quality (formats, the global batch) or are properties of the software are not
/// varied.
#[must_use]
pub fn default_space(start: &Scenario, objective: &Metric) -> Space {
    let devices = start.devices();
    let model = start.model.unwrap_or_default();
    let defaults = DefaultAxes { start, model, devices, objective, fewest: objective.id == MetricId::Accelerators };
    let mut axes = defaults.layout();
    axes.extend(match start.mode() {
        Mode::Training => defaults.training(),
        Mode::Inference => defaults.serving(),
    });
    axes.push(toggle(Knob::GpudirectRdma));
    axes.push(words(Knob::Virt, &["bare", "sriov"]));
    axes.retain(|axis| axis.turns(start));
    Space::of(axes).unwrap_or_default()
}

fn words(knob: Knob, words: &[&str]) -> Axis {
    Axis { knob, values: words.iter().map(|word| Setting::Choice((*word).into())).collect() }
}

fn toggle(knob: Knob) -> Axis {
    Axis { knob, values: vec![Setting::Toggle(false), Setting::Toggle(true)] }
}

/// Axes of [`default_space`].
struct DefaultAxes<'s> {
    start: &'s Scenario,
    model: Architecture,
    /// Devices of the target.
    devices: f64,
    objective: &'s Metric,
    /// Whether the objective is the number of accelerators.
    fewest: bool,
}

impl DefaultAxes<'_> {
    /// A count, or the number of devices if that is smaller. Without a model, only the devices limit the layout.
    fn up_to(&self, count: f64) -> f64 {
        if count > 0.0 { count.min(self.devices) } else { self.devices }
    }

    /// All degrees of a kind of parallelism.
    fn all(&self, knob: Knob) -> Axis {
        Axis::of(knob, degrees(knob, self.start).unwrap_or_default())
    }

    fn layout(&self) -> Vec<Axis> {
        let (start, model) = (self.start, &self.model);
        let mut axes = Vec::new();
        if self.fewest {
            axes.push(Axis::of(Knob::NumNodes, (1..=64).map(f64::from).filter(|nodes| *nodes <= start.num_nodes)));
        }
        axes.push(self.all(Knob::Tp));
        let mut depths = degrees(Knob::Pp, start).unwrap_or_default();
        if self.fewest && start.mode() == Mode::Inference {
            // Serving software distributes layers unevenly, so the fewest accelerators may be any number.
            depths.extend((1..=EXHAUSTIVE_PP).map(f64::from).filter(|pp| *pp <= self.up_to(model.depth())));
            sort::numbers(&mut depths);
            depths.dedup();
        }
        axes.push(Axis::of(Knob::Pp, depths));
        axes
    }

    fn training(&self) -> Vec<Axis> {
        let (start, model, devices) = (self.start, &self.model, self.devices);
        let (global, traits) = (start.global(&start.base), &start.active_software.training);
        let mut axes = vec![self.all(Knob::Cp)];
        if self.fewest {
            axes.push(Axis::of(Knob::Dp, divisors_within(global, devices)));
        }
        // A single value: reverts a stated setting, but is not searched.
        axes.push(Axis::of(Knob::Etp, [1.0]));
        axes.push(Axis::of(Knob::RecomputeLayers, [0.0]));
        if model.is_moe() {
            axes.push(self.all(Knob::Ep));
        }
        axes.push(Axis::of(Knob::Microbatch, doubling(global.min(64.0))));
        axes.push(Axis::of(Knob::Vpp, chunks(model.depth(), devices)));
        let shardings = Sharding::WORDS.iter().filter(|(_, sharding)| *sharding <= traits.most_sharding);
        axes.push(words(Knob::Sharding, &shardings.map(|(word, _)| *word).collect::<Vec<_>>()));
        axes.push(words(Knob::Recompute, &["auto", "selective", "full"]));
        axes.push(toggle(Knob::Sp));
        // Offloading is slower than sharding, so it is tried only if the states exceed the memory of all devices. The
        // fewest accelerators are those that need no offload: with it, one would be enough.
        let memory = start.machine.map_or(0.0, |machine| machine.device.capacity()) * devices;
        let exceeds = STATE_BYTES * start.trained_params(&start.base) > memory;
        if start.engine.models_hardware() && !self.fewest && exceeds {
            let offloads = CpuOffload::WORDS.iter().filter(|(_, offload)| *offload <= traits.most_offload);
            axes.push(words(Knob::CpuOffload, &offloads.map(|(word, _)| *word).collect::<Vec<_>>()));
        }
        axes.push(toggle(Knob::CudaGraphs));
        axes
    }

    fn serving(&self) -> Vec<Axis> {
        let (start, model, devices) = (self.start, &self.model, self.devices);
        let traits = &start.active_software.serving;
        let groups = if model.is_moe() && traits.attention_dp { devices } else { 1.0 };
        let mut axes = vec![self.all(Knob::AttentionDp)];
        if self.fewest {
            axes.push(Axis::of(Knob::Dp, (1..=MAX_REPLICAS).map(f64::from).filter(|dp| *dp <= devices)));
        }
        if model.is_moe() {
            axes.push(self.all(Knob::Ep));
            if traits.wide_ep && traits.attention_dp {
                axes.push(words(Knob::MoeDispatcher, &["alltoall", "deepep"]));
                axes.push(toggle(Knob::TwoBatchOverlap));
                if traits.pools {
                    axes.push(Axis::of(Knob::PrefillTp, [f64::from(start.base.prefill_layout().tp)]));
                    axes.push(Axis::of(Knob::PrefillAttentionDp, doubling(groups.min(64.0))));
                    axes.push(Axis::of(Knob::PrefillEp, doubling(groups.min(64.0))));
                }
            }
        }
        axes.push(Axis::of(Knob::ContextRanks, [1.0]));
        let shares: &[f64] = if traits.pools { &[0.0, 0.25, 0.5] } else { &[0.0] };
        axes.push(Axis::of(Knob::PrefillAccelerators, shares.iter().map(|share| (share * devices).floor())));
        // The concurrency is varied only if the objective is throughput or cost and there is no request rate; otherwise
        // it is the given load.
        let rated = start.base.plan.serving.request_rate.is_some();
        if !rated && self.objective.section != Section::Latency && !self.fewest {
            axes.push(Axis::of(Knob::Concurrency, doubling(16_384.0)));
        }
        axes.push(Axis::of(Knob::MaxNumSeqs, doubling(4096.0).filter(|seqs| *seqs >= 16.0)));
        axes.push(Axis::of(Knob::MaxNumBatchedTokens, doubling(32_768.0).filter(|tokens| *tokens >= 1024.0)));
        axes.push(toggle(Knob::ChunkedPrefill));
        // Serving software that captures graphs does so by default, and is slower without them.
        if traits.decode_graphs != GraphCapture::None {
            axes.push(Axis { knob: Knob::CudaGraphs, values: vec![Setting::Toggle(true)] });
        }
        axes
    }
}

/// Numbers of model chunks per stage: all small ones, divisors of the layers, and those for which the first and last
/// chunk are empty and all others have one layer.
fn chunks(layers: f64, devices: f64) -> Vec<f64> {
    let max_vpp = layers.clamp(1.0, MAX_VPP);
    let mut all: Vec<f64> = (1..=20).map(f64::from).filter(|vpp| *vpp <= max_vpp.min(EXHAUSTIVE_VPP)).collect();
    all.extend(divisors_within(layers, max_vpp));
    all.extend(stages(layers, devices, Mode::Training).into_iter().map(|pp| (layers + 2.0) / pp));
    all.retain(|vpp| vpp.fract() == 0.0 && (1.0..=max_vpp).contains(vpp));
    sort::numbers(&mut all);
    all.dedup();
    all
}

/// Default trade-off: throughput against interactivity in serving, throughput against free memory in training.
pub(super) fn front(start: &Scenario, objective: &'static Metric) -> Vec<&'static Metric> {
    let traded = match start.mode() {
        Mode::Training => [MetricId::TokensPerSec, MetricId::Headroom],
        Mode::Inference => [MetricId::TokensPerSecPerAccel, MetricId::TokensPerSecPerUser],
    };
    let mut front: Vec<&'static Metric> = traded.map(MetricId::metric).to_vec();
    front.retain(|metric| metric.applies_to(start));
    // On one target, these objectives are functions of the throughput.
    let follows = matches!(objective.id, MetricId::TokensPerSec | MetricId::DollarPer1mTokens | MetricId::TimeToTrainH);
    if !follows && !front.contains(&objective) {
        front.insert(0, objective);
    }
    front
}
