//! Column names of measured rows: settings and metrics, with their names in logs and in the calibration guide.
//!
//! Columns that are knobs take names, help and type from the table of fields, and the names of measurement tables
//! ([`validate::columns`](crate::validate::columns)) are understood too, so that both engines read the same row.

use crate::validate::columns::{self, CellType};
use CellType::{Count, Positive, Text};
use atlas_core::field::Knob;

/// A known column of measured rows.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Canonical name.
    pub name: &'static str,
    /// Other names, including those of logs and of the calibration guide, but not those of the knob.
    aliases: &'static [&'static str],
    /// Corresponding knob.
    knob: Option<Knob>,
    /// Values that it accepts.
    pub takes: CellType,
    /// Its meaning, with unit.
    pub help: &'static str,
    /// Its metric, if it is a measured metric rather than a setting.
    pub figure: Option<MetricColumn>,
}

/// A column with a measured metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetricColumn {
    /// Tokens/s of the whole run; output tokens in serving.
    TokensPerSec,
    /// Tokens/s per accelerator; output tokens in serving.
    TokensPerSecPerGpu,
    /// Time of a step, s.
    StepTimeS,
    /// Time of a step, ms.
    StepTimeMs,
    /// Tokens/s of one accelerator, without communication.
    ComputeRate,
    /// Communication over computation (omega_comm), measured by a profiler.
    Overhead,
    /// Share of time that the accelerator is busy; also for power samples.
    Utilization,
    /// Achieved share of the peak FLOP/s.
    FlopUtilization,
    /// Achieved TFLOP/s per accelerator.
    TflopsPerGpu,
    /// Time of one of many identical runs, s (gamma_jitter).
    RuntimeS,
    /// Latency of one request, or mean latency, ms.
    LatencyMs,
    /// Median latency, ms.
    P50Ms,
    /// 95th percentile, ms.
    P95Ms,
    /// 99th percentile, ms.
    P99Ms,
    /// Time to first token, ms.
    TtftMs,
    /// Time per output token, ms.
    TpotMs,
    /// Number of requests of percentiles, or of repetitions of a mean.
    Samples,
    /// Standard deviation of the main metric of the row.
    Std,
    /// Power of a node, W.
    PowerW,
    /// Power of the accelerators alone, W.
    GpuPowerW,
    /// Bus bandwidth of a collective, GB/s.
    BusbwGbps,
    /// Excluded warm-up steps.
    WarmupSteps,
}

impl MetricColumn {
    /// Name of the column.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MetricColumn::TokensPerSec => "tokens_per_sec",
            MetricColumn::TokensPerSecPerGpu => "tokens_per_sec_per_gpu",
            MetricColumn::StepTimeS => "step_time_s",
            MetricColumn::StepTimeMs => "step_time_ms",
            MetricColumn::ComputeRate => "compute_rate",
            MetricColumn::Overhead => "overhead",
            MetricColumn::Utilization => "utilization",
            MetricColumn::FlopUtilization => "flop_utilization",
            MetricColumn::TflopsPerGpu => "tflops_per_gpu",
            MetricColumn::RuntimeS => "runtime_s",
            MetricColumn::LatencyMs => "latency_ms",
            MetricColumn::P50Ms => "p50_ms",
            MetricColumn::P95Ms => "p95_ms",
            MetricColumn::P99Ms => "p99_ms",
            MetricColumn::TtftMs => "ttft_ms",
            MetricColumn::TpotMs => "tpot_ms",
            MetricColumn::Samples => "samples",
            MetricColumn::Std => "std",
            MetricColumn::PowerW => "power_w",
            MetricColumn::GpuPowerW => "gpu_power_w",
            MetricColumn::BusbwGbps => "busbw_gbps",
            MetricColumn::WarmupSteps => "warmup_steps",
        }
    }
}

const fn setting(name: &'static str, aliases: &'static [&'static str], takes: CellType, help: &'static str) -> Column {
    Column { name, aliases, knob: None, takes, help, figure: None }
}

/// Creates a column for a knob, with its names, type and help.
const fn field(name: &'static str, aliases: &'static [&'static str], knob: Knob) -> Column {
    let spec = knob.spec();
    Column { name, aliases, knob: Some(knob), takes: CellType::of(spec), help: spec.help, figure: None }
}

const fn figure(metric: MetricColumn, aliases: &'static [&'static str], help: &'static str) -> Column {
    Column { name: metric.name(), aliases, knob: None, takes: Positive, help, figure: Some(metric) }
}

impl Column {
    const fn takes(self, takes: CellType) -> Column {
        Column { takes, ..self }
    }
}

/// All known columns.
pub const COLUMNS: [Column; 54] = [
    setting("mode", &["kind_of_run"], Text, "training or inference"),
    setting("hardware", &["device", "device_name", "accelerator", "gpu"], Text, "accelerator of the run"),
    setting("baseline", &["is_baseline"], CellType::Flag, "true for rows of the reference accelerator of f_vendor"),
    setting("model", &["model_name", "config"], Text, "name of the model"),
    setting(
        "num_gpus",
        &["accelerators", "gpus", "num_accelerators", "world_size", "device_count", "ngpus"],
        Count,
        "accelerators in the run",
    ),
    field("tp", &[], Knob::Tp),
    field("pp", &[], Knob::Pp),
    field("vpp", &["virtual_pipeline_parallel"], Knob::Vpp),
    field("cp", &[], Knob::Cp),
    field("ep", &[], Knob::Ep),
    field("dp", &[], Knob::Dp),
    field("sp", &[], Knob::Sp),
    setting("zero_stage", &["zero"], Positive, "ZeRO stage"),
    field("batch", &["batch_size"], Knob::Microbatch),
    field("global_batch", &[], Knob::Global),
    field("seq_len", &[], Knob::Prompt),
    field("generate", &[], Knob::Generate).takes(Positive),
    field("concurrency", &["max_concurrency"], Knob::Concurrency).takes(Positive),
    field("request_rate", &[], Knob::RequestRate),
    field("precision", &[], Knob::Precision),
    setting("num_layers", &["layers", "n_layers"], Count, "layers of the model"),
    setting("hidden_size", &["hidden"], Count, "hidden size of the model"),
    setting("num_attention_heads", &["heads", "n_heads"], Count, "attention heads of the model"),
    setting("vocab_size", &["vocab"], Count, "vocabulary size of the model"),
    setting("parameters_billion", &["params_billion"], Positive, "parameters of the model, billions"),
    field("fabric", &["interconnect"], Knob::Fabric),
    field("virt", &[], Knob::Virt),
    field("cuda_graphs", &[], Knob::CudaGraphs),
    field("gpudirect_rdma", &[], Knob::GpudirectRdma),
    setting("load", &["load_level"], Text, "offered load, share of the peak throughput"),
    setting(
        "message_bytes",
        &["bytes", "message_size", "size_bytes", "size"],
        Positive,
        "message size of the collective, bytes",
    ),
    setting("op", &["collective", "pattern"], Text, "collective: all_reduce, …"),
    figure(
        MetricColumn::TokensPerSec,
        &[
            "tokens_per_second",
            "tokens_per_s",
            "throughput",
            "reported_tokens_per_s",
            "output_throughput",
            "output_tokens_per_sec",
        ],
        "tokens/s of the whole run; output tokens in serving",
    ),
    figure(
        MetricColumn::TokensPerSecPerGpu,
        &[
            "tokens_per_s_per_gpu",
            "tokens_per_sec_per_accel",
            "tokens_per_second_per_gpu",
            "reported_tokens_per_s_per_gpu",
            "tokens_per_s_per_gpu_reported",
        ],
        "tokens/s per accelerator; output tokens in serving",
    ),
    figure(
        MetricColumn::StepTimeS,
        &["time", "time_s", "step_time", "avg_step_time_seconds", "seconds"],
        "time of a step, s",
    ),
    figure(MetricColumn::StepTimeMs, &["time_ms"], "time of a step, ms"),
    figure(MetricColumn::ComputeRate, &["rate", "compute_rates"], "tokens/s of one accelerator, without communication"),
    figure(
        MetricColumn::Overhead,
        &["comm_overhead", "communication_overhead"],
        "communication over computation (omega_comm), measured by a profiler",
    ),
    figure(
        MetricColumn::Utilization,
        &["util", "gpu_utilization", "target_util", "utilisation", "mean_utilization_percent"],
        "share of time that the accelerator is busy; also for power samples",
    ),
    figure(
        MetricColumn::FlopUtilization,
        &["mfu", "hfu", "mfu_percent_reported", "mfu_percent", "flops_utilization"],
        "achieved share of the peak FLOP/s",
    ),
    figure(
        MetricColumn::TflopsPerGpu,
        &["tflops", "actual_tflops", "tflops_per_gpu_reported"],
        "achieved TFLOP/s per accelerator",
    ),
    figure(MetricColumn::RuntimeS, &["runtime"], "time of one of many identical runs, s (gamma_jitter)"),
    figure(MetricColumn::LatencyMs, &["latency"], "latency of one request, or mean latency, ms"),
    figure(MetricColumn::P50Ms, &["p50", "p50_latency_ms", "median_ms"], "median latency, ms"),
    figure(MetricColumn::P95Ms, &["p95", "p95_latency_ms"], "95th percentile, ms"),
    figure(MetricColumn::P99Ms, &["p99", "p99_latency_ms"], "99th percentile, ms"),
    figure(MetricColumn::TtftMs, &["ttft"], "time to first token, ms"),
    figure(MetricColumn::TpotMs, &["tpot"], "time per output token, ms"),
    figure(
        MetricColumn::Samples,
        &["n", "requests", "successful_requests", "n_samples", "requests_completed"],
        "number of requests of percentiles, or of repetitions of a mean",
    ),
    figure(MetricColumn::Std, &["stddev", "std_dev"], "standard deviation of the main metric of the row"),
    figure(MetricColumn::PowerW, &["power", "node_power_w", "watts", "power_watts", "mean_ac_w"], "power of a node, W"),
    figure(MetricColumn::GpuPowerW, &["mean_total_power_w"], "power of the accelerators alone, W"),
    figure(
        MetricColumn::BusbwGbps,
        &["bandwidth", "busbw", "bus_bandwidth", "bandwidth_gbps", "max_busbw_out_of_place"],
        "bus bandwidth of a collective, GB/s",
    ),
    figure(MetricColumn::WarmupSteps, &["warmup_dropped", "warmup"], "excluded warm-up steps"),
];

/// Returns the column with this name or alias, ignoring case and treating `-` and spaces as `_`.
#[must_use]
pub fn column(name: &str) -> Option<&'static Column> {
    let name = normalized(name);
    // Names that only measurement tables know denote the same column as the other names of their column.
    named(&name).or_else(|| columns::find(&name)?.names().find_map(named))
}

/// Column with this name, or with this name of its knob.
fn named(name: &str) -> Option<&'static Column> {
    let own = COLUMNS.iter().find(|column| column.name == name || column.aliases.contains(&name));
    let of_knob = || Knob::find(name).and_then(|knob| COLUMNS.iter().find(|column| column.knob == Some(knob)));
    own.or_else(of_knob)
}

/// A name of a column in lower case, with `_` instead of `-` and spaces.
pub(super) fn normalized(name: &str) -> String {
    name.trim().to_lowercase().replace(['-', ' '], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_column_denote_it_in_knobs_and_in_measurement_tables() {
        for own in &COLUMNS {
            let of_knob = own.knob.iter().flat_map(|knob| knob.spec().aliases);
            for name in std::iter::once(&own.name).chain(own.aliases).chain(of_knob) {
                assert_eq!(column(name).map(|column| column.name), Some(own.name), "{name}");
            }
        }
        for table in columns::COLUMNS {
            let found: Vec<Option<&str>> = table.names().map(|name| column(name).map(|column| column.name)).collect();
            assert!(found.iter().all(|name| found.first() == Some(name)), "{}: {found:?}", table.name);
        }
    }

    #[test]
    fn every_metric_has_one_column_of_its_name() {
        for own in COLUMNS.iter().filter(|column| column.figure.is_some()) {
            assert_eq!(column(own.name).and_then(|column| column.figure), own.figure, "{}", own.name);
        }
    }

    #[test]
    fn no_two_columns_share_a_name() {
        let mut seen = std::collections::BTreeSet::new();
        for name in COLUMNS.iter().flat_map(|column| std::iter::once(&column.name).chain(column.aliases)) {
            assert!(seen.insert(*name), "{name}");
        }
    }
}
