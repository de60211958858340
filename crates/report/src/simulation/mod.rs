//! Output of simulation results: tables for people, documents and plots for files, traces for viewers.
//!
//! * [`table`] – one run, or several compared, as text
//! * [`plots`] – charts of a run
//! * [`trace`] – its tasks in the Trace Event Format
//! * [`goodput`], [`scale`], [`jobs`] – the studies

pub mod goodput;
pub mod jobs;
pub mod plots;
pub mod replay;
pub mod scale;
pub mod table;
pub mod trace;

use serde_json::{Map, Value, json};

use super::csv;
use atlas_core::sort;
use atlas_plan::simulation::{CONFIDENCE_LEVEL, Cost, Measured, MetricRuns, Outcome, Plan, serving, training};
use atlas_sim::kernel::Quantiles;

/// A run as a document: a summary under the predecessor simulator's names, metrics with their intervals, and the
/// measurements.
#[must_use]
pub fn document(plan: &Plan, outcome: &Outcome) -> Value {
    let mut out = Map::new();
    let mut set = |name: &str, value: Value| out.insert(name.to_owned(), value);
    set("name", json!(plan.name));
    set("seed", json!(plan.seed));
    set("replications", json!(plan.replications));
    set("cancelled", json!(outcome.canceled));
    if outcome.canceled {
        // A canceled simulation reports the first run as far as it got, and of the others only the complete ones.
        let runs = outcome.metrics.first().map_or(0, |metric| metric.runs.len());
        set("partial", json!({"runs_described": runs, "runs": plan.replications}));
    }
    match &outcome.first {
        Measured::Training(m) => {
            set("kind", json!("training"));
            of_training(m, &mut set);
        }
        Measured::Serving(m) => {
            set("kind", json!("serving"));
            of_serving(m, &mut set);
        }
    }
    set("figures", figures(outcome));
    if let Some(cost) = Cost::of(plan, outcome) {
        set("cost", json!(cost));
    }
    set("bottlenecks", json!(outcome.bottlenecks));
    set("total_events", json!(outcome.events));
    set("notes", json!(plan.notes));
    Value::Object(out)
}

/// All metrics: mean, half width of the confidence interval (null for a single run), and the values of all runs.
fn figures(outcome: &Outcome) -> Value {
    let one = |found: &MetricRuns| {
        let interval = found.interval();
        let value = json!({
            "mean": interval.mean,
            "half_width": interval.half_width,
            "level": CONFIDENCE_LEVEL,
            "unit": found.metric.unit().name(),
            "runs": found.runs,
        });
        (found.metric.name().to_owned(), value)
    };
    Value::Object(sort::collect_unsorted(outcome.metrics.iter().map(one)))
}

fn of_training(m: &training::Measured, set: &mut impl FnMut(&str, Value) -> Option<Value>) {
    let o = &m.output;
    let steps = o.steps.len() as f64;
    set(
        "summary",
        json!({
            "avg_iteration_time": o.step.mean,
            "min_iteration_time": o.step.least,
            "max_iteration_time": o.step.most,
            "avg_compute_time": m.parts.compute,
            "avg_communication_time": m.parts.communication,
            "communication_overhead_ratio": m.parts.communication / o.step.mean.max(1e-12),
            "throughput_samples_per_sec": m.samples_per_second(),
            "total_samples_processed": steps * m.system.global,
            "compute_efficiency": m.parts.compute / o.step.mean.max(1e-12),
            "tokens_per_sec": o.tokens_per_second,
            "mfu": m.mfu(),
            "mfu_causal": m.mfu_causal(),
            "sample": m.sample,
        }),
    );
    let parts = m.parts.list().map(|(part, seconds)| (part.name().replace(' ', "_"), json!(seconds)));
    set("breakdown", Value::Object(sort::collect_unsorted(parts)));
    set(
        "analytical",
        json!({"iteration_time": m.analytical_step, "simulated_over_analytical": o.step.mean / m.analytical_step.max(1e-12)}),
    );
    let s = &m.system;
    set(
        "model_info",
        json!({
            "total_parameters": s.arch.params(),
            "flops_per_token": m.flops_per_token,
            "flops_per_iteration": m.flops_per_token * s.global * s.seq,
            "model_size_gb": s.arch.params() * s.weight_bytes * 1e-9,
        }),
    );
    set(
        "layout",
        json!({
            "accelerators": s.accelerators, "tp": s.tp, "pp": s.pp, "vpp": s.vpp, "dp": s.dp, "cp": s.cp, "ep": s.ep,
            "micro_batch": s.micro, "global_batch": s.global, "micro_batches": s.micro_batches(), "sequence": s.seq,
            "replicas_simulated": o.replicas,
        }),
    );
    let memory: Map<String, Value> = m
        .memory
        .parts()
        .map(|(part, bytes)| (part.name().replace(' ', "_"), json!(bytes / atlas_core::units::BYTES_PER_GB)))
        .collect();
    let stages = o.stages.iter().enumerate().map(|(stage, load)| {
        json!({
            "stage": stage,
            "compute_utilization": load.compute / o.step.mean.max(1e-12),
            "network_utilization": load.data / o.step.mean.max(1e-12),
        })
    });
    set(
        "resources",
        json!({
            "compute_utilization": o.busy,
            "network_utilization": m.network_busy,
            "memory_utilization": m.memory.total() / m.capacity.max(1.0),
            "memory_gb": memory,
            "memory_capacity_gb": m.capacity / atlas_core::units::BYTES_PER_GB,
            "stages": stages.collect::<Vec<_>>(),
        }),
    );
    let a = &m.allocation;
    set(
        "allocator",
        json!({
            "stage": a.stage, "states_gb": a.states * 1e-9, "peak_allocated_gb": a.allocated * 1e-9,
            "peak_reserved_gb": a.reserved * 1e-9, "fragmentation": a.fragmentation(), "allocations": a.allocations,
        }),
    );
    set("iterations", json!(o.steps));
    set("final_simulation_time", json!(o.steps.iter().sum::<f64>()));
}

fn quantiles(q: &Quantiles) -> Value {
    json!({
        "count": q.count, "mean": q.mean, "p50": q.p50, "p90": q.p90, "p95": q.p95, "p99": q.p99, "min": q.least, "max": q.most,
    })
}

fn of_serving(m: &serving::Measured, set: &mut impl FnMut(&str, Value) -> Option<Value>) {
    let (o, each) = (&m.output, m.tokens_per_output());
    set(
        "summary",
        json!({
            "requests": o.requests,
            "rejected": o.rejected,
            "duration": o.seconds,
            "requests_per_sec": o.requests_per_sec,
            "tokens_per_sec": each * o.output_tokens_per_sec,
            "total_tokens_per_sec": if m.system.counts_prompts() { each * o.output_tokens_per_sec } else { o.total_tokens_per_sec },
            "steady_tokens_per_sec": m.steady_rate(),
            "goodput": o.goodput,
            "good_share": o.slo_share,
            "offered_requests_per_sec": m.offered,
            "preemptions": o.preemptions,
            "prefix_hit": o.prefix_hit,
            "replica_hours": o.replica_hours,
            "engine_steps": o.steps,
        }),
    );
    set(
        "latency",
        json!({"ttft": quantiles(&o.ttft), "tpot": quantiles(&o.tpot), "itl": quantiles(&o.itl), "e2e": quantiles(&o.e2e)}),
    );
    set("slo", json!({"ttft": m.slo.ttft, "tpot": m.slo.tpot, "e2e": m.slo.e2e}));
    set("analytical", json!({"tokens_per_sec": m.analytical_tokens_per_sec}));
    let (memory, peak) = m.memory_use();
    set(
        "resources",
        json!({
            "compute_utilization": o.busy,
            "memory_utilization": memory, "max_memory_utilization": peak,
            "kv_utilization": o.kv_share, "max_kv_utilization": o.max_kv_share,
            "network_utilization": m.communication() * o.busy,
            "waiting": o.waiting, "max_waiting": o.max_waiting as f64, "running": o.running,
        }),
    );
    let column = |of: fn(&atlas_sim::serving::output::Levels) -> f64| o.timeline.iter().map(of).collect::<Vec<f64>>();
    set(
        "timeline",
        json!({
            "cell": o.cell, "waiting": column(|l| l.waiting), "running": column(|l| l.running),
            "kv": column(|l| l.kv_share),
            "replicas": column(|l| l.replicas),
        }),
    );
    set("final_simulation_time", json!(o.seconds));
}

/// All requests of the first run as CSV; `None` for training.
#[must_use]
pub fn requests_csv(measured: &Measured) -> Option<String> {
    let Measured::Serving(m) = measured else { return None };
    let mut out = csv::line([
        "arrival_s",
        "ttft_s",
        "tpot_s",
        "e2e_s",
        "prompt_tokens",
        "output_tokens",
        "replica",
        "preemptions",
    ]);
    for r in &m.output.records {
        let cells = [
            r.arrival.to_string(),
            r.ttft.to_string(),
            r.tpot.to_string(),
            r.e2e.to_string(),
            r.isl.to_string(),
            r.osl.to_string(),
            r.replica.to_string(),
            r.preemptions.to_string(),
        ];
        out += &csv::line(&cells);
    }
    Some(out)
}

/// Metrics as CSV: a line per plan and metric.
#[must_use]
pub fn figures_csv<'a>(answers: impl Iterator<Item = (&'a Plan, &'a Outcome)>) -> String {
    let mut out = csv::line(["name", "figure", "unit", "mean", "half_width", "runs"]);
    for (plan, outcome) in answers {
        for found in &outcome.metrics {
            let interval = found.interval();
            let half = if interval.half_width.is_finite() { interval.half_width.to_string() } else { String::new() };
            let (mean, runs) = (interval.mean.to_string(), found.runs.len().to_string());
            let metric = found.metric;
            out += &csv::line([&plan.name, metric.name(), metric.unit().name(), &mean, &half, &runs]);
        }
        for (name, usd) in Cost::of(plan, outcome).into_iter().flat_map(|cost| {
            [("usd_per_hour", cost.usd_per_hour), ("usd_per_million_tokens", cost.usd_per_million_tokens)]
        }) {
            out += &csv::line([&plan.name, name, "USD", &usd.to_string(), "", ""]);
        }
    }
    out
}
