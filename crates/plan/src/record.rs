//! Serializable records of estimates with all their inputs, in the predecessor system's format.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::ser::SerializeMap as _;

use crate::engine::answer::corrected::{CorrectedMetric, corrected_metrics};
use crate::estimate::standing::is_available;
use crate::estimate::{Detail, Estimate, Latency, METRICS, MetricId, Metrics};
use crate::knob::{Knob, Setting};
use crate::scenario::Scenario;
use atlas_config::Workload;
use atlas_core::escape::file_name;
use atlas_document::{Node, files};

/// Record of a run: target, workload, knobs in effect and estimate.
#[derive(Debug, Serialize)]
pub struct Record<'a> {
    /// Time of creation, RFC 3339, UTC.
    pub ts: String,
    /// Name of the target.
    pub target: &'a str,
    /// Name of the workload.
    pub workload: &'a str,
    /// Track under which the record is filed.
    pub track: &'a str,
    /// The predecessor's five knobs, with the values in effect.
    pub knobs: Knobs<'a>,
    /// The estimate.
    pub record: Body<'a>,
    /// USD per 1000 tokens as the predecessor system counts, one node's cost over the tokens of all nodes, if a price is
    /// known.
    pub dollar_per_1k_tokens: Option<f64>,
    /// USD per 1000 tokens with the cost of all nodes.
    pub dollar_per_1k_tokens_all_nodes: Option<f64>,
    /// `pre-opt` or `post-opt`.
    pub label: &'a str,
    /// Name of the engine that made the estimate.
    pub engine: &'a str,
    /// Random seed of the noise.
    pub seed: i128,
    /// Overridden knobs as `knob=value` as for `--set`, without the seed and those of the predecessor other than
    /// `cuda_graphs`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// MetricValues that apply to the scenario, by [`Metric`](crate::estimate::metric::Metric) name.
    pub metrics: MetricValues<'a>,
    /// Estimates calibrated with measurements of the same cluster; empty if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calibrated: Vec<CorrectedMetric>,
}

/// The five knobs of the predecessor system.
#[derive(Debug, Clone, Serialize)]
pub struct Knobs<'a> {
    /// Sequences per device and step.
    pub microbatch: Whole,
    /// Whether kernels are launched as captured CUDA graphs.
    pub cuda_graphs: bool,
    /// Whether NICs read accelerator memory directly.
    pub gpudirect_rdma: bool,
    /// `bare` or `sriov`.
    pub virt: &'a str,
    /// Name of the fabric between accelerators.
    pub fabric: &'a str,
}

impl<'a> Knobs<'a> {
    /// Knobs in effect in `scenario`.
    #[must_use]
    pub fn of(scenario: &'a Scenario) -> Knobs<'a> {
        Knobs {
            microbatch: Whole(f64::from(scenario.microbatch)),
            cuda_graphs: scenario.graphs(&scenario.base),
            gpudirect_rdma: scenario.gpudirect_rdma,
            virt: if scenario.sriov { "sriov" } else { "bare" },
            fabric: &scenario.fabric,
        }
    }
}

/// MetricValues that apply to a scenario, serialized as a map from name to value: throughput, latency, cost, ownership,
/// energy, emissions. Values that are not available or not finite are null.
#[derive(Debug, Clone, Copy)]
pub struct MetricValues<'a> {
    /// The estimate.
    pub estimate: &'a Estimate,
    /// The scenario of the estimate.
    pub scenario: &'a Scenario,
}

impl Serialize for MetricValues<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for metric in METRICS.iter().filter(|metric| metric.applies_to(self.scenario)) {
            let held = self.estimate.has_metrics() || is_available(metric, self.estimate);
            let value = metric.value(self.estimate, self.scenario).filter(|value| held && value.is_finite());
            map.serialize_entry(metric.name, &value)?;
        }
        map.end()
    }
}

/// Number that is serialized without a decimal point if it is whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Whole(pub f64);

impl Serialize for Whole {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
        if self.0.fract() == 0.0 && self.0.abs() < 9e15 {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// Placeholders for the locations of the logs that a measured run would have.
#[derive(Debug, Clone, Copy, Serialize)]
struct Artifacts {
    logs: &'static str,
    trace: &'static str,
    env: &'static str,
}

const ARTIFACTS: Artifacts = Artifacts { logs: "sim://logs", trace: "sim://trace", env: "sim://manifest" };

#[derive(Debug, Clone, Copy, Serialize)]
struct Percentiles {
    p50: f64,
    p95: f64,
    p99: f64,
    ttft: f64,
}

/// A record has zeros for a latency that does not apply, as the predecessor's records.
impl From<Option<Latency>> for Percentiles {
    fn from(latency: Option<Latency>) -> Percentiles {
        let Latency { p50, p95, p99, ttft } = latency.unwrap_or_default();
        Percentiles { p50, p95, p99, ttft }
    }
}

/// MetricValues that every record has, of a phase or of the whole run.
#[derive(Debug, Clone, Copy, Serialize)]
struct Plain {
    tokens_per_sec: Option<f64>,
    flop_utilization: Option<f64>,
    hbm_bw_util: Option<f64>,
    comm_compute_ratio: Option<f64>,
    step_time_ms: Option<f64>,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
    ttft_ms: Option<f64>,
    peak_mem_gb: f64,
    node_power_w: Option<f64>,
    retries: u32,
    failures: u32,
    artifacts: Artifacts,
}

impl Plain {
    /// All metrics if `all`, otherwise only the memory (and the counts, which are always present). Step time and latency
    /// are 0 where they do not apply, as in the predecessor's records.
    fn of(f: &Metrics, all: bool) -> Plain {
        let held = |value: f64| all.then_some(value);
        let latency = f.latency.unwrap_or_default();
        Plain {
            tokens_per_sec: held(f.tokens_per_sec),
            flop_utilization: held(f.flop_utilization),
            hbm_bw_util: held(f.hbm_bw_util),
            comm_compute_ratio: held(f.comm_compute_ratio),
            step_time_ms: held(f.step_time_ms.unwrap_or(0.0)),
            p50_ms: held(latency.p50),
            p95_ms: held(latency.p95),
            p99_ms: held(latency.p99),
            ttft_ms: held(latency.ttft),
            peak_mem_gb: f.peak_mem_gb,
            node_power_w: held(f.node_power_w),
            retries: f.retries,
            failures: f.failures,
            artifacts: ARTIFACTS,
        }
    }
}

/// `record` of a run: the metrics, and for a workload with a schedule also its queueing metrics and phases.
#[derive(Debug, Serialize)]
pub struct Body<'a> {
    #[serde(flatten)]
    plain: Plain,
    #[serde(flatten)]
    schedule: Option<Scheduled<'a>>,
    /// Additional results of engines that model the hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Detail>,
}

#[derive(Debug, Serialize)]
struct Scheduled<'a> {
    service_latency_ms: Percentiles,
    queue_latency_ms: Percentiles,
    queue_wait_ms: Percentiles,
    queue_utilization: f64,
    queue_arrival_rate_rps: f64,
    queue_servers: f64,
    queue_wait_fraction_p99: f64,
    schedule_breakdown: Vec<PhaseEntry<'a>>,
    schedule_total_minutes: f64,
    schedule_effects: bool,
}

#[derive(Debug, Serialize)]
struct PhaseEntry<'a> {
    name: &'a str,
    weight_minutes: f64,
    settings: Settings<'a>,
    overrides: &'a Node,
    record: PhaseBody,
}

#[derive(Debug, Serialize)]
struct Settings<'a> {
    tokens_scale: &'a Node,
    autoscale_factor: &'a Node,
    request_profile: &'a Node,
}

#[derive(Debug, Serialize)]
struct PhaseBody {
    #[serde(flatten)]
    plain: Plain,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_metrics: Option<QueueMetrics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_adjusted: Option<QueueAdjusted>,
}

#[derive(Debug, Serialize)]
struct QueueMetrics {
    arrival_rate: f64,
    servers: Whole,
    service_mean_ms: f64,
    service_cv: f64,
    arrival_cv: f64,
    utilization: f64,
    p50_latency_ms: f64,
    p95_latency_ms: f64,
    p99_latency_ms: f64,
    ttft_latency_ms: f64,
    wait_p50_ms: f64,
    wait_p95_ms: f64,
    wait_p99_ms: f64,
    wait_ttft_ms: f64,
    waiting_fraction_p99: f64,
}

#[derive(Debug, Serialize)]
struct QueueAdjusted {
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    ttft_ms: f64,
    waiting_fraction_p99: f64,
}

impl<'a> Body<'a> {
    /// Converts an estimate of a workload into a record body.
    #[must_use]
    pub fn of(estimate: &Estimate, workload: &'a Workload) -> Body<'a> {
        let all = estimate.has_metrics();
        let plain = Plain::of(&estimate.total, all);
        let held = |detail: Detail| {
            if all { detail } else { Detail { training: None, serving: None, simulated: None, ..detail } }
        };
        let detail = estimate.detail.map(held);
        if estimate.phases.is_empty() {
            return Body { plain, schedule: None, detail };
        }
        let queue = estimate.queue.unwrap_or_default();
        let phases = workload.phases.iter().zip(&estimate.phases);
        let schedule = Scheduled {
            // Phases without queueing count with zero wait and zero latency, as in the predecessor's records.
            service_latency_ms: estimate.service.into(),
            queue_latency_ms: Some(queue.latency).into(),
            queue_wait_ms: Some(queue.wait).into(),
            queue_utilization: queue.utilization,
            queue_arrival_rate_rps: queue.arrival_rate,
            queue_servers: queue.servers,
            queue_wait_fraction_p99: queue.waiting_fraction_p99,
            schedule_breakdown: phases
                .map(|(spec, metrics)| {
                    let [tokens_scale, autoscale_factor, request_profile] = &*spec.settings;
                    PhaseEntry {
                        name: &spec.name,
                        weight_minutes: metrics.minutes,
                        settings: Settings { tokens_scale, autoscale_factor, request_profile },
                        overrides: &spec.overrides,
                        record: PhaseBody::of(metrics, all),
                    }
                })
                .collect(),
            schedule_total_minutes: estimate.total_minutes,
            schedule_effects: true,
        };
        Body { plain, schedule: Some(schedule), detail }
    }
}

impl PhaseBody {
    fn of(metrics: &Metrics, all: bool) -> PhaseBody {
        let queue = metrics.queue.as_ref();
        PhaseBody {
            plain: Plain::of(metrics, all),
            queue_metrics: queue.map(|q| QueueMetrics {
                arrival_rate: q.arrival_rate,
                servers: Whole(q.servers),
                service_mean_ms: q.service_mean_ms,
                service_cv: q.service_cv,
                arrival_cv: q.arrival_cv,
                utilization: q.utilization,
                p50_latency_ms: q.latency.p50,
                p95_latency_ms: q.latency.p95,
                p99_latency_ms: q.latency.p99,
                ttft_latency_ms: q.latency.ttft,
                wait_p50_ms: q.wait.p50,
                wait_p95_ms: q.wait.p95,
                wait_p99_ms: q.wait.p99,
                wait_ttft_ms: q.wait.ttft,
                waiting_fraction_p99: q.waiting_fraction_p99,
            }),
            queue_adjusted: queue.map(|q| QueueAdjusted {
                p50_ms: q.latency.p50,
                p95_ms: q.latency.p95,
                p99_ms: q.latency.p99,
                ttft_ms: q.latency.ttft,
                waiting_fraction_p99: q.waiting_fraction_p99,
            }),
        }
    }
}

impl<'a> Record<'a> {
    /// Creates a record of an estimate, dated now. `overrides` are the knobs that the user has changed.
    #[must_use]
    pub fn new(
        target: &'a str,
        workload: &'a Workload,
        track: &'a str,
        label: &'a str,
        scenario: &'a Scenario,
        overrides: &crate::knob::Overrides,
        estimate: &'a Estimate,
    ) -> Record<'a> {
        let priced = estimate.has_metrics() && !MetricId::DollarPer1kTokens.metric().lacks_price(scenario);
        Record {
            ts: now(),
            target,
            workload: &workload.name,
            track,
            knobs: Knobs::of(scenario),
            record: Body::of(estimate, workload),
            dollar_per_1k_tokens: priced.then_some(estimate.cost.usd_per_1k_tokens_parity),
            dollar_per_1k_tokens_all_nodes: priced.then_some(estimate.cost.usd_per_1k_tokens),
            label,
            engine: scenario.engine.name(),
            seed: scenario.seed,
            set: assignments(overrides),
            metrics: MetricValues { estimate, scenario },
            calibrated: corrected_metrics(scenario, estimate),
        }
    }

    /// `<target>_<workload>_<track>_<seed>.json`, with each name sanitized for file systems.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}_{}_{}_{}.json", file_name(self.target), file_name(self.workload), file_name(self.track), self.seed)
    }

    /// `optimized_<target>_<workload>_<seed>.json`, with each name sanitized for file systems.
    #[must_use]
    pub fn optimized_file_name(&self) -> String {
        format!("optimized_{}_{}_{}.json", file_name(self.target), file_name(self.workload), self.seed)
    }

    /// Returns the record as JSON. A seed beyond 64 bits becomes a floating-point number.
    ///
    /// # Errors
    /// The record cannot be serialized.
    pub fn to_value(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::from_str(&serde_json::to_string(self)?)
    }

    /// Writes the record to `dir` as `name` and as `last_run.json`. Returns the path of the former.
    pub fn write(&self, dir: &Path, name: &str) -> std::io::Result<PathBuf> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let path = dir.join(name);
        files::write(&path, &text)?;
        files::write(&dir.join("last_run.json"), &text)?;
        Ok(path)
    }
}

/// Overridden knobs that are not in [`Knobs`] (nor the seed), as `knob=value` as for `--set`. CUDA graphs are in both:
/// [`Knobs`] does not tell whether they were switched or follow from the software.
fn assignments(overrides: &crate::knob::Overrides) -> Vec<String> {
    const ELSEWHERE: [Knob; 5] = [Knob::Microbatch, Knob::GpudirectRdma, Knob::Virt, Knob::Fabric, Knob::Seed];
    let further = overrides.iter().filter(|(knob, _)| !ELSEWHERE.contains(knob));
    further.map(|(knob, setting): (&Knob, &Setting)| format!("{}={setting}", knob.name())).collect()
}

/// Current time, RFC 3339 in UTC, without a fraction of a second.
#[must_use]
pub fn now() -> String {
    at(jiff::Timestamp::now())
}

/// Formats a timestamp as RFC 3339 in UTC, without a fraction of a second.
pub fn at(moment: jiff::Timestamp) -> String {
    jiff::Timestamp::from_second(moment.as_second()).unwrap_or(moment).to_string()
}

#[cfg(test)]
mod tests {
    use super::assignments;
    use crate::testing::overrides;

    #[test]
    fn set_lists_cuda_graphs_but_not_the_knobs_listed_elsewhere() {
        let knobs = overrides(&["cuda_graphs=off", "tp=2", "microbatch=2", "virt=sriov"]);
        let listed = assignments(&knobs);
        assert!(listed.contains(&"cuda_graphs=off".to_owned()) && listed.contains(&"tp=2".to_owned()), "{listed:?}");
        assert_eq!(listed.len(), 2, "{listed:?}");
    }
}
