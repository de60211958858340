//! Column names of measured rows: settings and metrics, with their names in logs and in the calibration guide.

/// A known column of measured rows.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Canonical name.
    pub name: &'static str,
    /// Other names, including those of logs and of the calibration guide.
    pub aliases: &'static [&'static str],
    /// Its meaning, with unit.
    pub help: &'static str,
    /// Whether it is a measured metric rather than a setting.
    pub figure: bool,
}

const fn setting(name: &'static str, aliases: &'static [&'static str], help: &'static str) -> Column {
    Column { name, aliases, help, figure: false }
}

const fn figure(name: &'static str, aliases: &'static [&'static str], help: &'static str) -> Column {
    Column { name, aliases, help, figure: true }
}

/// All known columns.
pub const COLUMNS: [Column; 54] = [
    setting("mode", &["kind_of_run"], "training or inference"),
    setting("hardware", &["device", "device_name", "accelerator", "gpu"], "accelerator of the run"),
    setting("baseline", &["is_baseline"], "true for rows of the reference accelerator of f_vendor"),
    setting("model", &["model_name", "config"], "name of the model"),
    setting(
        "num_gpus",
        &["accelerators", "gpus", "num_accelerators", "world_size", "device_count", "ngpus"],
        "accelerators in the run",
    ),
    setting("tp", &["tensor_parallel", "tensor_model_parallel_size"], "tensor-parallel ranks"),
    setting("pp", &["pipeline_parallel", "pipeline_model_parallel_size"], "pipeline stages"),
    setting("vpp", &["virtual_pipeline_parallel"], "model chunks per stage"),
    setting("cp", &["context_parallel"], "context-parallel ranks"),
    setting("ep", &["expert_parallel"], "expert-parallel ranks"),
    setting("dp", &["data_parallel"], "data-parallel replicas"),
    setting("sp", &["sequence_parallel"], "sequence parallelism, true or false"),
    setting("zero_stage", &["zero"], "ZeRO stage"),
    setting("batch", &["batch_size", "micro_batch_size", "microbatch", "mbs"], "micro-batch size, sequences"),
    setting("global_batch", &["global_batch_size", "gbs"], "sequences per step"),
    setting("seq_len", &["sequence_length", "seq", "isl", "input_len", "prompt"], "tokens per sequence, or per prompt"),
    setting("generate", &["osl", "output_len"], "output tokens"),
    setting("concurrency", &["max_concurrency"], "concurrent requests"),
    setting("request_rate", &[], "offered requests per second"),
    setting("precision", &["dtype"], "number format"),
    setting("num_layers", &["layers", "n_layers"], "layers of the model"),
    setting("hidden_size", &["hidden"], "hidden size of the model"),
    setting("num_attention_heads", &["heads", "n_heads"], "attention heads of the model"),
    setting("vocab_size", &["vocab"], "vocabulary size of the model"),
    setting("parameters_billion", &["params_billion"], "parameters of the model, billions"),
    setting("fabric", &["network", "interconnect"], "fabric that carried the collective or the run: IB, RoCE, …"),
    setting("virt", &["virtualization"], "bare or sriov"),
    setting("cuda_graphs", &["graphs"], "CUDA graphs, true or false"),
    setting("gpudirect_rdma", &["gpudirect", "gdr"], "GPUDirect RDMA, true or false"),
    setting("load", &["load_level"], "offered load, share of the peak throughput"),
    setting("message_bytes", &["bytes", "message_size", "size_bytes", "size"], "message size of the collective, bytes"),
    setting("op", &["collective", "pattern"], "collective: all_reduce, …"),
    figure(
        "tokens_per_sec",
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
        "tokens_per_sec_per_gpu",
        &[
            "tokens_per_s_per_gpu",
            "tokens_per_sec_per_accel",
            "tokens_per_second_per_gpu",
            "reported_tokens_per_s_per_gpu",
            "tokens_per_s_per_gpu_reported",
        ],
        "tokens/s per accelerator; output tokens in serving",
    ),
    figure("step_time_s", &["time", "time_s", "step_time", "avg_step_time_seconds", "seconds"], "time of a step, s"),
    figure("step_time_ms", &["time_ms"], "time of a step, ms"),
    figure("compute_rate", &["rate", "compute_rates"], "tokens/s of one accelerator, without communication"),
    figure(
        "overhead",
        &["comm_overhead", "communication_overhead"],
        "communication over computation (omega_comm), measured by a profiler",
    ),
    figure(
        "utilization",
        &["util", "gpu_utilization", "target_util", "utilisation", "mean_utilization_percent"],
        "share of time that the accelerator is busy; also for power samples",
    ),
    figure(
        "flop_utilization",
        &["mfu", "hfu", "mfu_percent_reported", "mfu_percent", "flops_utilization"],
        "achieved share of the peak FLOP/s",
    ),
    figure(
        "tflops_per_gpu",
        &["tflops", "actual_tflops", "tflops_per_gpu_reported"],
        "achieved TFLOP/s per accelerator",
    ),
    figure("runtime_s", &["runtime"], "time of one of many identical runs, s (gamma_jitter)"),
    figure("latency_ms", &["latency"], "latency of one request, or mean latency, ms"),
    figure("p50_ms", &["p50", "p50_latency_ms", "median_ms"], "median latency, ms"),
    figure("p95_ms", &["p95", "p95_latency_ms"], "95th percentile, ms"),
    figure("p99_ms", &["p99", "p99_latency_ms"], "99th percentile, ms"),
    figure("ttft_ms", &["ttft"], "time to first token, ms"),
    figure("tpot_ms", &["tpot"], "time per output token, ms"),
    figure(
        "samples",
        &["n", "requests", "successful_requests", "n_samples", "requests_completed"],
        "number of requests of percentiles, or of repetitions of a mean",
    ),
    figure("std", &["stddev", "std_dev"], "standard deviation of the main metric of the row"),
    figure("power_w", &["power", "node_power_w", "watts", "power_watts", "mean_ac_w"], "power of a node, W"),
    figure("gpu_power_w", &["mean_total_power_w"], "power of the accelerators alone, W"),
    figure(
        "busbw_gbps",
        &["bandwidth", "busbw", "bus_bandwidth", "bandwidth_gbps", "max_busbw_out_of_place"],
        "bus bandwidth of a collective, GB/s",
    ),
    figure("warmup_steps", &["warmup_dropped", "warmup"], "excluded warm-up steps"),
];

/// Returns the column with this name or alias, ignoring case and treating `-` and spaces as `_`.
#[must_use]
pub fn column(name: &str) -> Option<&'static Column> {
    let name = name.trim().to_lowercase().replace(['-', ' '], "_");
    COLUMNS.iter().find(|column| column.name == name || column.aliases.contains(&name.as_str()))
}
