//! Derivations for the calibrated model, with the symbols of the calibration guide: the engine's own equations,
//! evaluated over terms instead of numbers.

use super::expression::{Written, max};
use super::{Context, Origin, Term, mean_over_phases, unit};
use crate::engine::semi_empirical::{quantity, switches};
use crate::estimate::{Latency, MetricId, Metrics, Queue};
use crate::knob::Knob;
use crate::scenario::Phase;
use atlas_config::Mode;
use atlas_legacy::semi_empirical::coefficients::Coefficient;
use atlas_legacy::semi_empirical::{Answer, Quantity, Source, answer};

/// Derivation of a metric; `None` for metrics that the model does not have.
pub(super) fn explain(whole: &Context<'_>, id: MetricId, value: f64) -> Option<Term> {
    let scenario = whole.scenario;
    if scenario.phases.is_empty() {
        let described = Reported { whole, phase: &scenario.base, metrics: whole.total };
        return described.term(id, value);
    }
    if id == MetricId::PeakMemGb {
        let each: Option<Vec<Term>> = scenario
            .phases
            .iter()
            .zip(&whole.estimate.phases)
            .map(|(phase, metrics)| Reported { whole, phase, metrics }.term(id, metrics.peak_mem_gb))
            .collect();
        let largest = each?.into_iter().map(Written::from).reduce(max)?;
        return Some(Term::stated("M", "", "GB", value, largest));
    }
    mean_over_phases(whole, value, unit(id.metric()), |i, metrics| {
        let phase = scenario.phases.get(i)?;
        let described = Reported { whole, phase, metrics };
        described.term(id, read(id, metrics)?)
    })
}

/// Value of a metric of a phase, including queueing if any. A phase without the metric counts as 0, as in the mean.
fn read(id: MetricId, metrics: &Metrics) -> Option<f64> {
    let latency = |get: fn(&Latency) -> f64| metrics.queued_latency().as_ref().map_or(0.0, get);
    let queued = |get: fn(&Queue) -> f64| metrics.queue.as_ref().map_or(0.0, get);
    Some(match id {
        MetricId::TokensPerSec => metrics.tokens_per_sec,
        MetricId::StepTimeMs => metrics.step_time_ms.unwrap_or(0.0),
        MetricId::P50Ms => latency(|latency| latency.p50),
        MetricId::P95Ms => latency(|latency| latency.p95),
        MetricId::P99Ms => latency(|latency| latency.p99),
        MetricId::TtftMs => latency(|latency| latency.ttft),
        MetricId::QueueWaitP99Ms => queued(|queue| queue.wait.p99),
        MetricId::QueueUtilization => queued(|queue| queue.utilization),
        MetricId::NodePowerW => metrics.node_power_w,
        MetricId::FlopUtilization => metrics.flop_utilization,
        MetricId::HbmBwUtil => metrics.hbm_bw_util,
        MetricId::CommComputeRatio => metrics.comm_compute_ratio,
        _ => return None,
    })
}

/// A phase, or the whole workload if there is no schedule.
struct Reported<'a> {
    whole: &'a Context<'a>,
    phase: &'a Phase,
    metrics: &'a Metrics,
}

impl Reported<'_> {
    fn infer(&self) -> bool {
        self.phase.shape.mode == Mode::Inference
    }

    /// Parameter of the phase: the phase's own override, otherwise the workload's knob.
    fn shape(&self, symbol: &'static str, knob: Knob, value: f64) -> Term {
        let term = self.whole.inputs.knob(symbol, knob);
        if self.phase.pinned.contains(knob) {
            return Term { value, ..term }.from(self.of_schedule("the phase's override"));
        }
        Term { value, ..term }
    }

    /// Origin of the schedule.
    fn of_schedule(&self, otherwise: &'static str) -> Origin {
        self.whole.inputs.in_workload(&["schedule"]).map_or(Origin::Default(otherwise), Origin::File)
    }

    fn term(&self, id: MetricId, value: f64) -> Option<Term> {
        let of = answer(self, switches(self.whole.scenario, self.phase));
        Some(match id {
            MetricId::TokensPerSec => {
                let rate = match self.scale() {
                    Some(scale) => max(of.tokens_per_sec * scale, 1.0),
                    None => of.tokens_per_sec,
                };
                Term::stated("X", "tokens per second of all accelerators", "tok/s", value, rate)
            }
            MetricId::StepTimeMs if self.infer() => {
                Term::input("T_step", "", "ms", value).from(Origin::Engine("serving has no optimizer step"))
            }
            MetricId::StepTimeMs => {
                let step = match self.scale() {
                    Some(scale) => of.step_ms / scale,
                    None => of.step_ms,
                };
                Term::stated("T_step", "", "ms", value, step)
            }
            MetricId::P50Ms | MetricId::P95Ms | MetricId::P99Ms | MetricId::TtftMs => self.latency(id, value, of),
            MetricId::QueueWaitP99Ms | MetricId::QueueUtilization => self.queue(id, value),
            MetricId::NodePowerW => {
                let scaled = self.scale().map(|_| {
                    Term::input("autoscale", "autoscale_factor of the phase", "", self.phase.autoscale_factor)
                        .from(self.of_schedule("the phase's scales"))
                });
                let watts = match scaled {
                    Some(factor) => of.node_watts * factor,
                    None => of.node_watts,
                };
                Term::stated("P_node", "", "W", value, watts)
            }
            MetricId::FlopUtilization => Term::stated("u_flop", "", "", value, of.flop_utilization),
            MetricId::HbmBwUtil => Term::stated("u_hbm", "", "", value, of.memory_utilization),
            MetricId::CommComputeRatio => Term::stated("r_comm", "", "", value, of.communication),
            MetricId::PeakMemGb => Term::stated("M", "", "GB", value, of.memory_gb),
            _ => return None,
        })
    }

    /// Scale of a scheduled phase, if it is not 1.
    fn scale(&self) -> Option<Term> {
        let scale = self.phase.tokens_scale * self.phase.autoscale_factor;
        let name = "tokens_scale times autoscale_factor of the phase";
        let term = Term::input("scale", name, "", scale).from(self.of_schedule("the phase's scales"));
        (!self.whole.scenario.phases.is_empty() && scale != 1.0).then_some(term)
    }

    fn latency(&self, id: MetricId, value: f64, of: Answer<Written>) -> Term {
        let (service, get): (Written, fn(&Latency) -> f64) = match id {
            MetricId::P50Ms => (of.p50, |latency| latency.p50),
            MetricId::P95Ms => (of.p95, |latency| latency.p95),
            MetricId::P99Ms => (of.p99, |latency| latency.p99),
            _ => (of.ttft, |latency| latency.ttft),
        };
        if !self.infer() {
            return Term::input("latency", "", "ms", value).from(Origin::Default("does not apply to training"));
        }
        match self.metrics.queue {
            None => Term::stated("latency", "", "ms", value, service),
            Some(queue) => {
                let waited = Term::input("wait", "queueing time", "ms", get(&queue.wait))
                    .from(Origin::Engine(
                        "Allen–Cunneen in the predecessor's form, capped relative to the service time",
                    ))
                    .depending_on(queueing(&queue));
                Term::stated("latency", "", "ms", value, service + waited)
            }
        }
    }

    fn queue(&self, id: MetricId, value: f64) -> Term {
        let how = Origin::Engine("Allen–Cunneen in the predecessor's form, capped relative to the service time");
        let bearing = self.metrics.queue.as_ref().map_or_else(Vec::new, queueing);
        let symbol = if id == MetricId::QueueUtilization { "rho_queue" } else { "w99" };
        Term::input(symbol, "", unit(id.metric()), value).from(how).depending_on(bearing)
    }
}

impl Source for Reported<'_> {
    type Number = Written;

    fn coefficient(&self, of: &Coefficient) -> Written {
        let value = (of.get)(&self.whole.scenario.coefficients);
        self.whole.inputs.coefficient(of.symbol, of.path, of.unit, value).into()
    }

    fn quantity(&self, of: Quantity) -> Written {
        let inputs = self.whole.inputs;
        let value = quantity(self.whole.scenario, self.phase, of);
        let of_params = |name: &'static str, field: &'static str| {
            let place = inputs.in_workload(&["params", field]);
            Term::input(name, field, "", value).from(place.map_or(NOT_STATED, Origin::File))
        };
        let term = match of {
            Quantity::Accelerators => inputs.accelerators(),
            Quantity::Tp => self.shape("tp", Knob::Tp, value),
            Quantity::Pp => self.shape("pp", Knob::Pp, value),
            Quantity::Dp => self.shape("dp", Knob::Dp, value),
            Quantity::Prompt => self.shape("prompt", Knob::Prompt, value),
            Quantity::Generate => self.shape("g", Knob::Generate, value),
            Quantity::Microbatch => inputs.knob("micro", Knob::Microbatch),
            Quantity::Fabric => Term {
                value,
                name: format!("factor of fabric {}", self.whole.scenario.fabric).into(),
                text: None,
                ..inputs.knob("gamma_fabric", Knob::Fabric)
            },
            Quantity::NodeWatts => inputs.node_watts(),
            Quantity::MemoryGb => Term::input("memory", "accelerator memory", "GB", value)
                .from(inputs.target(&["memory_gb_per_accel"], "not stated in the files")),
            Quantity::Hidden => of_params("hidden", "hidden_size"),
            Quantity::Layers => of_params("layers", "n_layers"),
            Quantity::Draw => {
                Term::input("U", "first draw of the generator", "", value).from(inputs.of_knob(Knob::Seed))
            }
        };
        term.into()
    }
}

/// Origin of a value that no file states.
const NOT_STATED: Origin = Origin::Default("not stated in the files");

/// Dependencies of a queueing time.
fn queueing(queue: &Queue) -> Vec<Term> {
    let engine = |symbol: &'static str, name: &'static str, unit: &'static str, value: f64| {
        Term::input(symbol, name, unit, value).from(Origin::Engine("of the phase's arrivals and its request profile"))
    };
    vec![
        engine("lambda", "arrivals", "req/s", queue.arrival_rate),
        engine("m", "parallel servers", "", queue.servers),
        engine("S", "mean service time", "ms", queue.service_mean_ms),
        engine("ca", "coefficient of variation of arrivals", "", queue.arrival_cv),
        engine("cs", "coefficient of variation of service times", "", queue.service_cv),
    ]
}
