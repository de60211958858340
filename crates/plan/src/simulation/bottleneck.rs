//! Bottlenecks of a run, judged by the thresholds of the predecessor simulator: computing above 80 % of the time,
//! memory above 70 %, the network above 30 %. The predecessor judged formulas that its events did not affect; here
//! every share is an integral over simulated time. Further kinds of bottlenecks are added.

use atlas_core::plan::{Recompute, Sharding};
use atlas_core::plan_spec::HEADROOM;
use atlas_core::sort;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Measured;
use super::{serving, training};

/// Share of the time that devices compute above which compute is a bottleneck (predecessor document).
pub const COMPUTE: f64 = 0.8;
/// Share of memory in use above which memory is a bottleneck (predecessor document).
pub const MEMORY: f64 = 0.7;
/// Share of device memory in use above which it limits training: plans fill memory up to this share by design.
pub const FULL_MEMORY: f64 = 1.0 - HEADROOM;
/// Share of the time spent waiting for the network above which it is a bottleneck (predecessor document).
pub const NETWORK: f64 = 0.3;
/// Share of the time spent waiting for the network above which it is the dominant bottleneck (predecessor document).
pub const NETWORK_SEVERE: f64 = 0.5;
/// Share of the time lost to causes that the predecessor simulator did not have. Operators typically investigate losses
/// of a tenth of a cluster (goodput targets of 90 %: arXiv 2407.21783, section 3.3.4).
pub const OTHER: f64 = 0.1;

/// Possible bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bottleneck {
    /// Kind: `compute`, `memory`, `network` and others.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Severity: the measured share, 0 to 1.
    pub severity: f64,
    /// Share above which it is a bottleneck.
    pub threshold: f64,
    /// Whether the severity exceeds the threshold; for memory in training, whether it exceeds [`FULL_MEMORY`].
    pub limiting: bool,
    /// Recommendations; empty if it is not a bottleneck.
    pub recommendations: Vec<&'static str>,
    /// Measured shares behind the severity.
    pub metrics: Map<String, Value>,
}

/// The recommendations that apply.
fn applicable(all: &[(&'static str, bool)]) -> Vec<&'static str> {
    all.iter().filter(|(_, applies)| *applies).map(|(text, _)| *text).collect()
}

/// Whether memory limits training. Plans fill it up to [`FULL_MEMORY`] by design.
fn limits_training(bottleneck: Bottleneck) -> Bottleneck {
    if bottleneck.severity > FULL_MEMORY {
        return bottleneck;
    }
    Bottleneck { limiting: false, recommendations: Vec::new(), ..bottleneck }
}

fn judged(
    kind: &'static str,
    severity: f64,
    threshold: f64,
    recommendations: &[&'static str],
    metrics: Value,
) -> Bottleneck {
    let severity = severity.clamp(0.0, 1.0);
    let limiting = severity > threshold;
    Bottleneck {
        kind,
        severity,
        threshold,
        limiting,
        recommendations: if limiting { recommendations.to_vec() } else { Vec::new() },
        metrics: match metrics {
            Value::Object(map) => map,
            _ => Map::new(),
        },
    }
}

/// All possible bottlenecks of a run: first those that exceed their thresholds, each group by severity, highest first.
#[must_use]
pub fn of(measured: &Measured) -> Vec<Bottleneck> {
    let mut all = match measured {
        Measured::Training(m) => of_training(m),
        Measured::Serving(m) => of_serving(m),
    };
    sort::by(&mut all, |a, b| b.limiting.cmp(&a.limiting).then(b.severity.total_cmp(&a.severity)));
    all
}

fn of_training(m: &training::Measured) -> Vec<Bottleneck> {
    let step = m.output.step.mean.max(1e-12);
    let i = &m.system;
    let busiest = m.output.stages.iter().map(|stage| stage.compute / step).fold(0.0, f64::max);
    let compute = m.parts.compute / step;
    let memory = m.memory.total() / m.capacity.max(1.0);
    let network = m.parts.communication / step;
    let network_advice: &[&str] = if network > NETWORK_SEVERE {
        &[
            "The network is the bottleneck: more than half of a step is spent waiting for it",
            "Reduce gradients less often: more micro-batches per step (knob global)",
            "Compress gradients (--compression), or reduce them in a narrower format",
            "Keep tensor, expert and context parallelism within the scale-up domain (knobs tp, ep, cp)",
            "Reduce hierarchically, within nodes first, or add bandwidth per accelerator (knob network_gbps)",
        ]
    } else {
        &[
            "Overlap the reduction with the backward pass (knob overlap), with more and smaller buckets (--buckets)",
            "Compress gradients (--compression), or use more micro-batches per step (knob global)",
        ]
    };
    let mut all = vec![
        judged(
            "compute",
            compute,
            COMPUTE,
            &applicable(&[
                ("Use more or faster accelerators; nothing else limits the step", true),
                ("Use a narrower format (knob precision)", !i.precision.is_narrow()),
                ("Recompute less if memory allows (knob recompute)", m.closed.recompute > 0.0 && memory <= FULL_MEMORY),
                ("Use CUDA graphs and fused kernels if the host is slow (knob cuda_graphs)", !i.software.compiled),
            ]),
            json!({"avg_compute_utilization": compute, "max_compute_utilization": busiest, "stages_computing": m.output.busy}),
        ),
        limits_training(judged(
            "memory",
            memory,
            MEMORY,
            &applicable(&[
                ("Use smaller micro-batches (knob microbatch)", i.micro > 1.0),
                ("Recompute activations (knob recompute)", i.recompute != Recompute::Full),
                (
                    "Shard model states over replicas (knob sharding)",
                    i.sharding != Sharding::Zero3 && i.dp * i.cp > 1.0,
                ),
                ("Shard the model further (knobs tp, pp)", i.tp * i.pp < i.accelerators),
            ]),
            json!({"avg_memory_usage_ratio": memory, "max_memory_usage_ratio": memory, "peak_memory_gb": m.memory.total() / atlas_core::units::BYTES_PER_GB}),
        )),
        judged(
            "network",
            network,
            NETWORK,
            network_advice,
            json!({"avg_communication_ratio": network, "max_communication_ratio": network, "network_busy": m.network_busy}),
        ),
    ];
    if m.system.pp > 1.0 {
        let bubble = m.parts.bubble / step;
        let advice = applicable(&[
            ("Use more micro-batches per step (knob global)", true),
            ("Use smaller micro-batches (knob microbatch)", i.micro > 1.0),
            ("Use an interleaved schedule (knob vpp)", i.vpp <= 1.0),
            ("Use a zero-bubble schedule (knob pipeline_schedule)", !i.schedule.splits_backward()),
            ("Use fewer stages (knob pp)", true),
        ]);
        all.push(judged("pipeline", bubble, OTHER, &advice, json!({"bubble_ratio": bubble})));
    }
    if m.parts.stragglers > 0.0 {
        let share = m.parts.stragglers / step;
        let advice: &[&str] = &[
            "Find and remove slow hosts; every step waits for the slowest one",
            "Reduce synchronization: less tensor and pipeline parallelism across hosts",
        ];
        all.push(judged(
            "stragglers",
            share,
            OTHER,
            advice,
            json!({"straggler_ratio": share, "even_step_s": m.even_step}),
        ));
    }
    if m.parts.loading > 0.0 {
        let share = m.parts.loading / step;
        let advice: &[&str] = &["Use more or faster data loaders; a step cannot start before its data is ready"];
        all.push(judged("data loading", share, OTHER, advice, json!({"loading_ratio": share})));
    }
    all
}

fn of_serving(m: &serving::Measured) -> Vec<Bottleneck> {
    let o = &m.output;
    let (memory, peak) = m.memory_use();
    let communication = m.communication() * o.busy;
    let compute = o.busy - communication;
    let waiting = o.waiting / (o.waiting + o.running).max(1e-12);
    vec![
        judged(
            "compute",
            compute,
            COMPUTE,
            &[
                "Use more replicas (knobs dp, num_nodes) or faster accelerators",
                "Use narrower formats for weights and KV cache (knobs precision, kv_precision)",
                "Batch more requests per step if latency allows (knob max_num_seqs)",
            ],
            json!({"avg_compute_utilization": compute, "max_compute_utilization": o.busy, "steps": o.steps}),
        ),
        judged(
            "memory",
            // Judge the KV cache by its own capacity, not by device memory: it is meant to fill what the weights leave.
            if o.preemptions > 0 { o.max_kv_share } else { o.kv_share },
            MEMORY,
            &[
                "Use a narrower KV cache format (knob kv_precision), or a larger share of memory (knob gpu_memory_utilization)",
                "Use more accelerators per replica (knob tp), or more replicas (knob dp)",
                "Limit concurrent sequences (knob max_num_seqs) if there are many preemptions",
            ],
            json!({
                "avg_memory_usage_ratio": memory, "max_memory_usage_ratio": peak,
                "avg_kv_usage_ratio": o.kv_share, "max_kv_usage_ratio": o.max_kv_share, "preemptions": o.preemptions,
            }),
        ),
        judged(
            "network",
            communication,
            NETWORK,
            &["Use fewer ranks per replica (knob tp) and more replicas", "Keep replicas within the scale-up domain"],
            json!({"avg_communication_ratio": communication, "max_communication_ratio": m.communication()}),
        ),
        judged(
            "load",
            waiting,
            OTHER,
            &[
                "Requests are queueing: use more replicas (knobs dp, num_nodes; --autoscale), or more concurrent sequences \
                 (knob max_num_seqs)",
                "Smooth out bursts, or limit admission",
            ],
            json!({"avg_waiting": o.waiting, "max_waiting": o.max_waiting as f64, "avg_running": o.running}),
        ),
    ]
}
