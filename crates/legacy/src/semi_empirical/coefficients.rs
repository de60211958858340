//! The coefficients of the calibrated model, each with its symbol in the calibration guide, its path in a calibration
//! profile, and its unit.

macro_rules! coefficients {
    ($( $(#[doc = $doc:literal])+ $constant:ident, $field:ident, $symbol:literal, $path:literal, $unit:literal; )*) => {
        /// Values of all coefficients. Those without a unit are shares or factors.
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct Coefficients {
            $( $(#[doc = $doc])+ pub $field: f64, )*
        }

        $(
            $(#[doc = $doc])+
            pub const $constant: Coefficient =
                Coefficient { symbol: $symbol, path: $path, unit: $unit, get: |all| all.$field };
        )*

        /// All coefficients.
        pub const ALL: &[Coefficient] = &[$($constant),*];
    };
}

/// Metadata of one coefficient, and access to its value.
#[derive(Debug, Clone, Copy)]
pub struct Coefficient {
    /// Symbol in the calibration guide.
    pub symbol: &'static str,
    /// Path in a calibration profile.
    pub path: &'static str,
    /// Unit; empty for dimensionless values.
    pub unit: &'static str,
    /// Reads the value.
    pub get: fn(&Coefficients) -> f64,
}

coefficients! {
    /// Throughput of one accelerator before utilization and communication, tok/s.
    B_BASE, b_base, "B_base", "compute.base_tokens_per_accel", "tok/s";
    /// Factor on the throughput in training.
    F_TRAINING, f_training, "f_vendor", "compute.factors.training", "";
    /// Factor on the throughput in inference.
    F_INFERENCE, f_inference, "f_vendor", "compute.factors.inference", "";
    /// Relative loss of FLOP utilization per unit of communication overhead.
    KAPPA_COMM, kappa_comm, "kappa_comm", "compute.comm_penalty_coeff", "";
    /// Utilization without any optimization.
    RHO_BASE, rho_base, "rho_base", "utilization.base", "";
    /// Utilization gained by CUDA graphs.
    DELTA_RHO_CUDA, delta_rho_cuda, "delta_rho_cuda", "utilization.knob_increments.cuda_graphs", "";
    /// Utilization gained by GPUDirect RDMA.
    DELTA_RHO_GPUDIRECT, delta_rho_gpudirect, "delta_rho_gpudirect",
        "utilization.knob_increments.gpudirect_rdma", "";
    /// Utilization gained in inference, relative to training.
    DELTA_RHO_INFER, delta_rho_infer, "delta_rho_infer", "utilization.knob_increments.inference_bonus", "";
    /// Upper bound on utilization.
    RHO_MAX, rho_max, "rho_max", "utilization.max", "";
    /// Communication intensity without tensor and pipeline parallelism.
    CHI_BASE, chi_base, "chi_base", "communication.intensity.base", "";
    /// Communication intensity added per tensor-parallel rank after the first.
    CHI_TP, chi_tp, "chi_tp", "communication.intensity.per_tp", "";
    /// Communication intensity added per pipeline stage after the first.
    CHI_PP, chi_pp, "chi_pp", "communication.intensity.per_pp", "";
    /// Ratio of the communication intensity of inference to that of training.
    CHI_INFER_SCALE, chi_infer_scale, "chi_infer_scale", "communication.intensity.inference_scale", "";
    /// Relative increase of the communication overhead by SR-IOV.
    JITTER_SRIOV, jitter_sriov, "jitter", "communication.jitter_per_sriov", "";
    /// Factor of GPUDirect RDMA on the communication overhead.
    GAMMA_GPUDIRECT, gamma_gpudirect, "gamma_gpudirect", "communication.gpudirect_multiplier", "";
    /// Lower bound on the communication overhead.
    OMEGA_MIN, omega_min, "omega_min", "communication.min_overhead", "";
    /// Weight of the communication overhead in the throughput.
    OMEGA, omega, "omega", "throughput.overhead_weight", "";
    /// Lower bound on the median latency, ms.
    LAT_MIN, lat_min, "lat_min", "latency.min_p50_ms", "ms";
    /// Product of the median latency and the throughput per accelerator, ms·tok/s.
    LAT_BASE_COEFF, lat_base_coeff, "lat_base_coeff", "latency.base_p50_coeff", "";
    /// Ratio of the time to first token to the median latency.
    R_TTFT, r_ttft, "r_ttft", "latency.ttft_ratio", "";
    /// Ratio of the 95th percentile to the median latency.
    M95, m95, "m95", "latency.tail.p95_multiplier", "";
    /// Ratio of the 99th percentile to the median latency.
    M99, m99, "m99", "latency.tail.p99_multiplier", "";
    /// Relative increase of tail latencies per unit of communication overhead.
    TAIL_COMM, tail_comm, "tail_comm", "latency.tail.comm_tail", "";
    /// Relative increase of tail latencies by SR-IOV.
    TAIL_SRIOV, tail_sriov, "tail_sriov", "latency.tail.sriov_tail", "";
    /// Share of the nominal power that is drawn when idle.
    PHI_IDLE, phi_idle, "phi_idle", "power.idle_fraction", "";
    /// Share of the nominal power that is added at full utilization.
    PHI_UTIL, phi_util, "phi_util", "power.util_fraction", "";
    /// Utilization of memory bandwidth at sequence length 0.
    HBM_BASE, hbm_base, "hbm_base", "hbm.base", "";
    /// Utilization of memory bandwidth added per `hbm_seq_norm` tokens of sequence length.
    HBM_SEQ_SCALE, hbm_seq_scale, "hbm_seq_scale", "hbm.seq_scale", "";
    /// Sequence length that `hbm_seq_scale` refers to, tokens.
    HBM_SEQ_NORM, hbm_seq_norm, "hbm_seq_norm", "hbm.seq_norm", "tok";
    /// Upper bound on the utilization of memory bandwidth.
    HBM_MAX, hbm_max, "hbm_max", "hbm.max", "";
    /// Full width of the relative noise of the throughput.
    SIGMA_NOISE, sigma_noise, "sigma_noise", "noise.amplitude", "";
    /// Ratio of the noise of tail latencies to that of the throughput.
    SIGMA_TAIL, sigma_tail, "sigma_tail", "noise.tail_scale", "";
    /// Memory per unit of hidden size times layers, GB.
    PEAK_TOKENS_FACTOR, peak_tokens_factor, "peak_tokens_factor", "memory.peak_tokens_factor", "GB";
    /// Communication overhead from which a retry is counted.
    OVERHEAD_THRESHOLD, overhead_threshold, "overhead_threshold", "retries.overhead_threshold", "";
}
