//! Selects the measurements that reduce uncertainty the most, by a linear Gaussian design. Every parameter has a
//! variance, from its calibration or a prior. The user's metrics depend on the parameters through their sensitivities.
//! A measurement determines a combination of parameters up to its own error. Measurements are chosen greedily: the next
//! one removes the most of the remaining variance of the metrics.

use atlas_core::math;
use serde_json::{Value, json};

use super::bench::RowPredictor;
use super::check::{RequiredAction, ages};
use super::observation::Observation;
use super::parameter::{NODE_WATTS, SLOTS};
use super::predict::predicted;
use super::predicted_metric::PredictedMetric;
use super::{Outcome, Start};
use crate::runs::components::Components;
use atlas_config::Mode;
use atlas_config::corrections::{Class, Factor, Quantity};
use atlas_core::plan::Engine;
use atlas_plan::engine::answer::corrected::shares;
use atlas_plan::scenario::Scenario;

/// A possible measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measurement {
    /// Training on one accelerator, for several batch sizes and sequence lengths.
    BaseThroughput,
    /// The same model at several degrees of tensor parallelism.
    TensorParallel,
    /// The same model at several numbers of pipeline stages.
    PipelineParallel,
    /// Collectives over each fabric.
    Fabrics,
    /// With and without CUDA graphs.
    CudaGraphs,
    /// With and without GPUDirect RDMA.
    Gpudirect,
    /// A hundred runs under virtualization.
    Jitter,
    /// Latency at several batch sizes.
    Latency,
    /// Latency percentiles and throughput of a server under load.
    Serving,
    /// Power when idle and under load.
    Power,
}

impl Measurement {
    /// All measurements.
    pub const ALL: [Measurement; 10] = [
        Measurement::BaseThroughput,
        Measurement::TensorParallel,
        Measurement::PipelineParallel,
        Measurement::Fabrics,
        Measurement::CudaGraphs,
        Measurement::Gpudirect,
        Measurement::Jitter,
        Measurement::Latency,
        Measurement::Serving,
        Measurement::Power,
    ];

    /// Name, also used for its scripts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Measurement::BaseThroughput => "base-throughput",
            Measurement::TensorParallel => "tensor-parallel",
            Measurement::PipelineParallel => "pipeline-parallel",
            Measurement::Fabrics => "fabrics",
            Measurement::CudaGraphs => "cuda-graphs",
            Measurement::Gpudirect => "gpudirect",
            Measurement::Jitter => "jitter",
            Measurement::Latency => "latency",
            Measurement::Serving => "serving",
            Measurement::Power => "power",
        }
    }

    /// Parameters that it determines, for display.
    #[must_use]
    pub fn determines(self) -> &'static str {
        match self {
            Measurement::BaseThroughput => "B_base, rho_base, f_vendor(training), e_compute and e_host",
            Measurement::TensorParallel => "chi_base, chi_tp, e_network",
            Measurement::PipelineParallel => "chi_base, chi_pp",
            Measurement::Fabrics => "gamma_fabric",
            Measurement::CudaGraphs => "delta_rho_cuda",
            Measurement::Gpudirect => "delta_rho_gpudirect",
            Measurement::Jitter => "gamma_jitter",
            Measurement::Latency => "lat_min, lat_base_coeff",
            Measurement::Serving => "p95_mult, p99_mult, f_vendor(inference), e_memory and e_host of serving",
            Measurement::Power => "p_node_nominal, phi_idle, phi_util",
        }
    }

    /// Coefficients that it determines directly, with the relative error of the measurement. Source: section 10 of the
    /// calibration guide (B_base 2 %, rho_base 3 %, chi_tp 5 %, lat_min 10 %, p95 8 %); others like the most similar of
    /// these.
    fn direct(self) -> &'static [(&'static str, f64)] {
        match self {
            Measurement::BaseThroughput => &[
                ("compute.base_tokens_per_accel", 0.02),
                ("utilization.base", 0.03),
                ("compute.factors.training", 0.03),
            ],
            Measurement::TensorParallel => {
                &[("communication.intensity.base", 0.05), ("communication.intensity.per_tp", 0.05)]
            }
            Measurement::PipelineParallel => {
                &[("communication.intensity.base", 0.05), ("communication.intensity.per_pp", 0.05)]
            }
            Measurement::Fabrics => &[("communication.fabric_factors", 0.05)],
            Measurement::CudaGraphs => &[("utilization.knob_increments.cuda_graphs", 0.05)],
            Measurement::Gpudirect => &[("utilization.knob_increments.gpudirect_rdma", 0.05)],
            Measurement::Jitter => &[("communication.jitter_per_sriov", 0.08)],
            Measurement::Latency => &[("latency.min_p50_ms", 0.10), ("latency.base_p50_coeff", 0.10)],
            Measurement::Serving => &[
                ("latency.tail.p95_multiplier", 0.08),
                ("latency.tail.p99_multiplier", 0.08),
                ("compute.factors.inference", 0.03),
            ],
            Measurement::Power => &[(NODE_WATTS, 0.02), ("power.idle_fraction", 0.03), ("power.util_fraction", 0.03)],
        }
    }

    /// Runs with which the analytical engine is compared, and their mode.
    fn runs(self, target_node: f64) -> (Mode, Vec<Value>) {
        let gpt = |tp: f64, pp: f64, batch: f64, seq: f64| {
            json!({
                "num_gpus": tp * pp, "tp": tp, "pp": pp, "dp": 1, "batch": batch, "global_batch": batch * 4.0 * pp,
                "seq_len": seq, "num_layers": 8, "hidden_size": 4096, "num_attention_heads": 32, "vocab_size": 32000,
                "precision": "bf16",
            })
        };
        let served = |concurrency: f64| {
            json!({
                "num_gpus": 1, "tp": 1, "pp": 1, "dp": 1, "seq_len": 1024, "generate": 256, "concurrency": concurrency,
                "model": SERVING_MODEL,
            })
        };
        let node = target_node.max(1.0);
        match self {
            Measurement::BaseThroughput => (
                Mode::Training,
                vec![gpt(1.0, 1.0, 1.0, 512.0), gpt(1.0, 1.0, 4.0, 2048.0), gpt(1.0, 1.0, 4.0, 4096.0)],
            ),
            Measurement::TensorParallel => (
                Mode::Training,
                [2.0, 4.0, 8.0].into_iter().filter(|tp| *tp <= node).map(|tp| gpt(tp, 1.0, 4.0, 2048.0)).collect(),
            ),
            Measurement::PipelineParallel => (
                Mode::Training,
                [2.0, 4.0, 8.0].into_iter().filter(|pp| *pp <= node).map(|pp| gpt(1.0, pp, 4.0, 2048.0)).collect(),
            ),
            Measurement::Serving => (Mode::Inference, [1.0, 16.0, 64.0].map(served).to_vec()),
            _ => (Mode::Training, Vec::new()),
        }
    }

    /// Duration on an idle node, minutes.
    #[must_use]
    pub fn minutes(self) -> f64 {
        match self {
            Measurement::BaseThroughput | Measurement::Power => 30.0,
            Measurement::Fabrics => 10.0,
            Measurement::Serving | Measurement::Jitter => 25.0,
            _ => 15.0,
        }
    }
}

/// Model of the serving script: it is in the catalog and fits on one accelerator.
pub const SERVING_MODEL: &str = "llama-3.1-8b";

/// Standard deviation of the logarithm of a coefficient that was never calibrated. Source: the expected ranges of the
/// guide, interpreted as 95 % intervals; a factor of two in either direction if it gives none.
fn unmeasured(path: &str) -> f64 {
    let of = |low: f64, high: f64| math::ln(high / low) / 2.0 / 1.96;
    match path {
        "compute.base_tokens_per_accel" => of(800.0, 1200.0),
        "utilization.base" => of(0.4, 0.6),
        "utilization.knob_increments.cuda_graphs" => of(0.05, 0.15),
        "communication.fabric_factors" => of(1.2, 1.5),
        "power.idle_fraction" => of(0.3, 0.5),
        "power.util_fraction" => of(0.5, 0.7),
        "latency.tail.p95_multiplier" | "latency.tail.p99_multiplier" => of(2.2, 2.8),
        NODE_WATTS => of(0.8, 1.2),
        _ => of(0.5, 2.0),
    }
}

/// A measurement in the plan.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Step {
    /// The measurement.
    pub measurement: Measurement,
    /// Expected reduction of the variance of the metrics, as a share of the initial variance.
    pub reduction: f64,
    /// Relative standard deviation of the metrics that remains after it and all previous ones.
    pub left: f64,
}

/// Measurements in the recommended order.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Plan {
    /// Metrics whose uncertainty the plan reduces, with the current relative standard deviation of each.
    pub figures: Vec<(String, f64)>,
    /// Root mean square of these standard deviations.
    pub now: f64,
    /// Measurements, most informative first; those without information about the metrics come last.
    pub steps: Vec<Step>,
    /// Parameters that are due for calibration by the guide's calendar.
    pub due: Vec<String>,
}

/// Parameters and their covariance: coefficients, fabric and power, then the effects of both modes.
struct State {
    paths: Vec<&'static str>,
    covariance: Vec<Vec<f64>>,
}

impl State {
    fn of(start: &Start, outcome: Option<&Outcome>) -> State {
        let mut paths: Vec<&'static str> = SLOTS.iter().map(|slot| slot.path).collect();
        paths.push("communication.fabric_factors");
        paths.push(NODE_WATTS);
        let known = |path: &str| -> Option<f64> {
            let relative = |value: f64, [low, high]: [f64; 2]| {
                let sd = (high - low).abs() / 2.0 / 1.96 / value.abs();
                (sd.is_finite() && sd > 0.0).then_some(sd)
            };
            let found = outcome.and_then(|outcome| {
                let one = outcome.parameters.iter().find(|one| one.path.starts_with(path))?;
                relative(one.value, one.interval?)
            });
            found.or_else(|| {
                let calibration = start.profile.as_ref()?.calibration.as_ref()?;
                let one = calibration.parameters.iter().find(|one| one.path.starts_with(path))?;
                relative(one.value?, one.interval?)
            })
        };
        let mut variances: Vec<f64> =
            paths.iter().map(|path| known(path).unwrap_or(unmeasured(path)).powi(2)).collect();
        let head = paths.len();
        for (_, effects) in effects() {
            for (path, variance) in effects {
                paths.push(path);
                variances.push(variance);
            }
        }
        let n = paths.len();
        let mut covariance: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..n).map(|j| if i == j { variances.get(i).copied().unwrap_or(0.0) } else { 0.0 }).collect())
            .collect();
        // Covariance of the effects that existing runs share with all runs of the machine.
        let found = outcome.and_then(|outcome| outcome.corrections.as_ref()).or(start.corrections.as_ref());
        for (at, (quantity, _)) in effects().into_iter().enumerate() {
            let Some(found) = found.and_then(|found| found.of(quantity)) else { continue };
            let place = |factor: &Factor| match factor {
                Factor::Cluster => Some(head + at * EFFECTS_PER_MODE),
                Factor::Class(class) => Some(head + at * EFFECTS_PER_MODE + 1 + *class as usize),
                Factor::Accelerator(_) | Factor::Software(_) | Factor::Model(_) | Factor::Near(_) => None,
            };
            for ((one, _), row) in found.effects.iter().zip(&found.covariance) {
                for ((other, _), cell) in found.effects.iter().zip(row) {
                    let slot = place(one).zip(place(other)).and_then(|(i, j)| covariance.get_mut(i)?.get_mut(j));
                    if let Some(slot) = slot {
                        *slot = *cell;
                    }
                }
            }
        }
        State { paths, covariance }
    }

    fn variance(&self, slope: &[f64]) -> f64 {
        let row = |row: &Vec<f64>| row.iter().zip(slope).map(|(c, s)| c * s).sum::<f64>();
        self.covariance.iter().zip(slope).map(|(c, s)| s * row(c)).sum()
    }

    /// Updates the covariance after observing the combination `slope` of the parameters with an error of variance
    /// `noise`.
    fn update_covariance(&mut self, slope: &[f64], noise: f64) {
        let moved: Vec<f64> =
            self.covariance.iter().map(|row| row.iter().zip(slope).map(|(c, s)| c * s).sum()).collect();
        let total = moved.iter().zip(slope).map(|(m, s)| m * s).sum::<f64>() + noise;
        if total <= 0.0 {
            return;
        }
        for (row, a) in self.covariance.iter_mut().zip(&moved) {
            row.iter_mut().zip(&moved).for_each(|(cell, b)| *cell -= a * b / total);
        }
    }

    fn unit(&self, path: &str) -> Option<Vec<f64>> {
        let at = self.paths.iter().position(|known| *known == path)?;
        Some((0..self.paths.len()).map(|i| f64::from(u8::from(i == at))).collect())
    }

    /// Gradient of the logarithm of the throughput of a mode with respect to the effects.
    fn factors(&self, mode: Mode, shares: [f64; 4]) -> Vec<f64> {
        let head = self.paths.len() - 2 * EFFECTS_PER_MODE + if mode == Mode::Training { 0 } else { EFFECTS_PER_MODE };
        let [a, b, c, d] = shares;
        let slopes = [1.0, a, b, c, d];
        (0..self.paths.len()).map(|i| i.checked_sub(head).and_then(|k| slopes.get(k).copied()).unwrap_or(0.0)).collect()
    }
}

/// Number of effects of a mode: that of the cluster, and one for each class of operators.
const EFFECTS_PER_MODE: usize = 5;

/// Effects shared by all runs on a machine, by throughput metric, with their variances before any run.
fn effects() -> [(Quantity, Vec<(&'static str, f64)>); 2] {
    [Quantity::Training, Quantity::Serving].map(|quantity| {
        let c = Components::of(quantity);
        let classes = Class::ALL.into_iter().map(Class::name).zip(c.classes);
        // For a single machine, the effects of accelerator and software are part of that of the cluster.
        let machine = ("cluster", c.cluster + c.accelerator + c.software);
        (quantity, std::iter::once(machine).chain(classes).collect())
    })
}

/// Shares of the time by class of operators.
fn classes(scenario: &Scenario) -> Option<[f64; 4]> {
    atlas_plan::engine::estimate(scenario).detail.as_ref().map(shares)
}

/// Returns the plan. With an `outcome`, it starts from the uncertainty that remains after its measurements.
#[must_use]
pub fn plan(bench: &RowPredictor<'_>, start: &Start, outcome: Option<&Outcome>, today: &str) -> Plan {
    let rows = workload_rows(bench);
    let mut analytical: Vec<(Mode, Scenario)> = Vec::new();
    for row in &rows {
        if let Ok(mut scenario) = bench.analytical(row) {
            scenario.efficiency = start.efficiency;
            analytical.push((row.mode(), scenario));
        }
    }
    let mut state = State::of(start, outcome);
    let mut figures: Vec<(String, Vec<f64>)> = Vec::new();
    for (mode, scenario) in &analytical {
        if let Some(shares) = classes(scenario) {
            figures.push((
                format!("{}: {} tokens/s", Engine::Analytical.name(), mode.name()),
                state.factors(*mode, shares),
            ));
        }
    }
    for row in &rows {
        figures.extend(calibrated_figures(bench, start, outcome, row, &state));
    }
    let count = figures.len().max(1) as f64;
    let mean = |state: &State| figures.iter().map(|(_, slope)| state.variance(slope)).sum::<f64>() / count;
    let now = mean(&state);
    let described: Vec<(String, f64)> =
        figures.iter().map(|(name, slope)| (name.clone(), state.variance(slope).max(0.0).sqrt())).collect();
    let candidates = Measurement::ALL.into_iter().map(|one| (one, determined_combinations(bench, one, &state)));
    let mut candidates: Vec<(Measurement, Vec<Reported>)> = candidates.collect();
    let mut steps = Vec::new();
    while !candidates.is_empty() {
        let before = mean(&state);
        let gains = candidates.iter().map(|(_, learns)| {
            let mut next = State { paths: state.paths.clone(), covariance: state.covariance.clone() };
            learns.iter().for_each(|(slope, noise)| next.update_covariance(slope, *noise));
            before - mean(&next)
        });
        let best = gains.enumerate().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let Some((index, gain)) = best else { break };
        let (measurement, learns) = candidates.remove(index);
        learns.iter().for_each(|(slope, noise)| state.update_covariance(slope, *noise));
        let reduction = if now > 0.0 { (gain / now).max(0.0) } else { 0.0 };
        steps.push(Step { measurement, reduction, left: mean(&state).max(0.0).sqrt() });
    }
    let due = ages(start.profile.as_deref(), today).into_iter().filter(|age| age.due >= RequiredAction::SpotCheck);
    let due = due.map(|age| format!("{}: {}", age.path, age.due.described())).collect();
    Plan { figures: described, now: now.max(0.0).sqrt(), steps, due }
}

/// A combination of parameters, and the variance of the error with which it is observed.
type Reported = (Vec<f64>, f64);

/// Returns the combinations that a measurement would determine.
fn determined_combinations(bench: &RowPredictor<'_>, measurement: Measurement, state: &State) -> Vec<Reported> {
    let direct = measurement.direct().iter().filter_map(|(path, error)| Some((state.unit(path)?, error * error)));
    let mut all: Vec<Reported> = direct.collect();
    let (mode, runs) = measurement.runs(f64::from(bench.target.accelerators_per_node));
    // The scripts run their own model, independent of the user's workload.
    let bench = RowPredictor::new(bench.library, bench.target, None);
    for run in runs {
        let Some(fields) = run.as_object() else { continue };
        let (mut row, _) = Observation::of("plan", fields.iter().map(|(name, value)| (name.as_str(), value)));
        row.mode = Some(mode);
        let Ok(scenario) = bench.analytical(&row) else { continue };
        let quantity = if mode == Mode::Training { Quantity::Training } else { Quantity::Serving };
        let c = Components::of(quantity);
        if let Some(shares) = classes(&scenario) {
            // Effects that are specific to the model of the script do not apply to other models.
            all.push((state.factors(mode, shares), c.residual + c.model));
        }
    }
    all
}

/// Returns the workload as a row: the given one, or otherwise the first of each mode.
fn workload_rows(bench: &RowPredictor<'_>) -> Vec<Observation> {
    let first = |mode: Mode| bench.library.workloads().iter().find(|workload| workload.shape.mode == mode);
    let workloads = match bench.workload {
        Some(workload) => vec![workload],
        None => [Mode::Training, Mode::Inference].into_iter().filter_map(first).collect(),
    };
    let row = |workload: &&std::sync::Arc<atlas_config::Workload>| {
        let shape = workload.shape;
        let mut fields = vec![
            ("tp", json!(shape.tp)),
            ("pp", json!(shape.pp)),
            ("num_gpus", json!(bench.target.accelerators())),
            ("seq_len", json!(shape.prompt)),
            ("mode", json!(shape.mode.name())),
        ];
        if shape.generate > 0.0 {
            fields.push(("generate", json!(shape.generate)));
        }
        if let Some(model) = &workload.model {
            fields.push(("model", json!(model)));
        }
        let (mut row, _) = Observation::of(workload.name.as_ref(), fields.iter().map(|(name, value)| (*name, value)));
        row.mode = Some(shape.mode);
        row
    };
    workloads.iter().map(row).collect()
}

/// Returns metrics of the calibrated model with their sensitivities to its coefficients.
fn calibrated_figures(
    bench: &RowPredictor<'_>,
    start: &Start,
    outcome: Option<&Outcome>,
    row: &Observation,
    state: &State,
) -> Vec<(String, Vec<f64>)> {
    let Some(figures) = outcome.and_then(|outcome| outcome.figures.clone()).or_else(|| start.figures()) else {
        return Vec::new();
    };
    let wanted: &[PredictedMetric] = match row.mode() {
        Mode::Training => &[PredictedMetric::TokensPerSec, PredictedMetric::NodePowerW],
        Mode::Inference => &[PredictedMetric::TokensPerSec, PredictedMetric::P99Ms],
    };
    let scenario = |moved: Option<(&str, f64)>| {
        let mut figures = figures.clone();
        let mut watts = figures.node_watts.unwrap_or(bench.target.cost.energy_watts_node);
        if let Some((path, by)) = moved {
            if let Some(slot) = SLOTS.iter().find(|slot| slot.path == path) {
                let value = (slot.get)(&figures.coefficients);
                (slot.set)(&mut figures.coefficients, value * by);
            } else if path == NODE_WATTS {
                watts *= by;
            } else {
                figures.fabrics.iter_mut().for_each(|(_, factor)| *factor *= by);
            }
        }
        let mut scenario = bench.semi_empirical(row, &figures.coefficients, &figures.fabrics)?;
        scenario.node_watts = watts;
        Some(scenario)
    };
    const H: f64 = 0.01;
    let slope = |figure: PredictedMetric| -> Option<Vec<f64>> {
        let mut slopes = Vec::new();
        for (index, path) in state.paths.iter().enumerate() {
            if index + 2 * EFFECTS_PER_MODE >= state.paths.len() {
                slopes.push(0.0);
                continue;
            }
            let log = |by: f64| predicted(&scenario(Some((path, by)))?, figure).map(f64::ln);
            slopes.push((log(1.0 + H)? - log(1.0 - H)?) / (2.0 * H));
        }
        Some(slopes)
    };
    let name =
        |figure: PredictedMetric| format!("{}: {} {}", Engine::SemiEmpirical.name(), row.mode().name(), figure.name());
    wanted.iter().filter_map(|figure| Some((name(*figure), slope(*figure)?))).collect()
}
