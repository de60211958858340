//! The coefficients of the calibrated model: symbol in the calibration guide, path in a profile, unit.

macro_rules! coefficients {
    ($( $(#[doc = $doc:literal])+ $constant:ident, $field:ident, $symbol:literal, $path:literal, $unit:literal; )*) => {
        /// The values of all coefficients. Without a unit they are shares or factors.
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct Coefficients {
            $( $(#[doc = $doc])+ pub $field: f64, )*
        }

        $(
            $(#[doc = $doc])+
            pub const $constant: Coefficient =
                Coefficient { symbol: $symbol, path: $path, unit: $unit, get: |all| all.$field };
        )*

        /// All of them.
        pub const ALL: &[Coefficient] = &[$($constant),*];
    };
}

/// One coefficient.
#[derive(Debug, Clone, Copy)]
pub struct Coefficient {
    /// Its symbol in the calibration guide.
    pub symbol: &'static str,
    /// Where profiles state it.
    pub path: &'static str,
    /// Its unit; empty for plain numbers.
    pub unit: &'static str,
    /// Its value.
    pub get: fn(&Coefficients) -> f64,
}

coefficients! {
    /// Rate of one accelerator alone, tok/s.
    B_BASE, b_base, "B_base", "compute.base_tokens_per_accel", "tok/s";
    /// Factor on the rate in training.
    F_TRAINING, f_training, "f_vendor", "compute.factors.training", "";
    /// Factor on the rate in inference.
    F_INFERENCE, f_inference, "f_vendor", "compute.factors.inference", "";
    /// How much communication takes from FLOP utilization.
    KAPPA_COMM, kappa_comm, "kappa_comm", "compute.comm_penalty_coeff", "";
    /// Utilization without any optimization.
    RHO_BASE, rho_base, "rho_base", "utilization.base", "";
    /// Utilization gained by CUDA graphs.
    DELTA_RHO_CUDA, delta_rho_cuda, "delta_rho_cuda", "utilization.knob_increments.cuda_graphs", "";
    /// Utilization gained by GPUDirect RDMA.
    DELTA_RHO_GPUDIRECT, delta_rho_gpudirect, "delta_rho_gpudirect",
        "utilization.knob_increments.gpudirect_rdma", "";
    /// Utilization gained by inference over training.
    DELTA_RHO_INFER, delta_rho_infer, "delta_rho_infer", "utilization.knob_increments.inference_bonus", "";
    /// Utilization that is never exceeded.
    RHO_MAX, rho_max, "rho_max", "utilization.max", "";
    /// Intensity of communication without parallelism.
    CHI_BASE, chi_base, "chi_base", "communication.intensity.base", "";
    /// Added per further tensor-parallel rank.
    CHI_TP, chi_tp, "chi_tp", "communication.intensity.per_tp", "";
    /// Added per further pipeline stage.
    CHI_PP, chi_pp, "chi_pp", "communication.intensity.per_pp", "";
    /// Intensity of inference over that of training.
    CHI_INFER_SCALE, chi_infer_scale, "chi_infer_scale", "communication.intensity.inference_scale", "";
    /// What SR-IOV adds to the overhead of communication.
    JITTER_SRIOV, jitter_sriov, "jitter", "communication.jitter_per_sriov", "";
    /// Factor of GPUDirect RDMA on the overhead of communication.
    GAMMA_GPUDIRECT, gamma_gpudirect, "gamma_gpudirect", "communication.gpudirect_multiplier", "";
    /// Least overhead of communication.
    OMEGA_MIN, omega_min, "omega_min", "communication.min_overhead", "";
    /// Weight of the overhead of communication in throughput.
    OMEGA, omega, "omega", "throughput.overhead_weight", "";
    /// Least median latency, ms.
    LAT_MIN, lat_min, "lat_min", "latency.min_p50_ms", "ms";
    /// Median latency times rate, ms·tok/s.
    LAT_BASE_COEFF, lat_base_coeff, "lat_base_coeff", "latency.base_p50_coeff", "";
    /// Time to first token over the median latency.
    R_TTFT, r_ttft, "r_ttft", "latency.ttft_ratio", "";
    /// 95th percentile over the median.
    M95, m95, "m95", "latency.tail.p95_multiplier", "";
    /// 99th percentile over the median.
    M99, m99, "m99", "latency.tail.p99_multiplier", "";
    /// Widening of tails by communication.
    TAIL_COMM, tail_comm, "tail_comm", "latency.tail.comm_tail", "";
    /// Widening of tails by SR-IOV.
    TAIL_SRIOV, tail_sriov, "tail_sriov", "latency.tail.sriov_tail", "";
    /// Share of the nominal power that is drawn at rest.
    PHI_IDLE, phi_idle, "phi_idle", "power.idle_fraction", "";
    /// Share of the nominal power that full utilization adds.
    PHI_UTIL, phi_util, "phi_util", "power.util_fraction", "";
    /// Utilization of memory bandwidth at sequence length 0.
    HBM_BASE, hbm_base, "hbm_base", "hbm.base", "";
    /// Added per `hbm_seq_norm` tokens.
    HBM_SEQ_SCALE, hbm_seq_scale, "hbm_seq_scale", "hbm.seq_scale", "";
    /// Tokens of a sequence that `hbm_seq_scale` is stated for.
    HBM_SEQ_NORM, hbm_seq_norm, "hbm_seq_norm", "hbm.seq_norm", "tok";
    /// Utilization of memory bandwidth that is never exceeded.
    HBM_MAX, hbm_max, "hbm_max", "hbm.max", "";
    /// Full width of the noise of throughput.
    SIGMA_NOISE, sigma_noise, "sigma_noise", "noise.amplitude", "";
    /// Noise of the tails over that of throughput.
    SIGMA_TAIL, sigma_tail, "sigma_tail", "noise.tail_scale", "";
    /// Memory per hidden width and layer, GB.
    PEAK_TOKENS_FACTOR, peak_tokens_factor, "peak_tokens_factor", "memory.peak_tokens_factor", "GB";
    /// Overhead of communication from which a retry is counted.
    OVERHEAD_THRESHOLD, overhead_threshold, "overhead_threshold", "retries.overhead_threshold", "";
}
