//! A calibrated parameter: its symbol in the guide, its path in the profile, its value, and how it was found.

use std::sync::Arc;

use super::observation::Observation;
use super::statistics::Estimate;
use atlas_config::profile::Coefficients;

/// A calibrated parameter.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Parameter {
    /// Symbol in the calibration guide.
    pub symbol: String,
    /// Path in the profile.
    pub path: String,
    /// Value found.
    pub value: f64,
    /// Bounds of the 95 % interval, if the data determine one.
    pub interval: Option<[f64; 2]>,
    /// Number of measurements behind it.
    pub n: usize,
    /// Share of the variance explained, if the value was fitted.
    pub r2: Option<f64>,
    /// Value before the calibration.
    pub before: Option<f64>,
    /// Method by which it was found.
    pub method: String,
    /// Files with the measurements.
    pub sources: Vec<String>,
}

impl Parameter {
    /// Creates a parameter from an estimate and the rows behind it.
    #[must_use]
    pub fn new<'a>(
        slot: &Slot,
        found: Estimate,
        method: impl Into<String>,
        rows: impl IntoIterator<Item = &'a Observation>,
    ) -> Parameter {
        Parameter {
            symbol: slot.symbol.to_owned(),
            path: slot.path.to_owned(),
            value: found.value,
            interval: found.interval,
            n: found.n,
            r2: found.r2,
            before: None,
            method: method.into(),
            sources: files(rows),
        }
    }
}

/// Files of the rows, without duplicates.
#[must_use]
pub fn files<'a>(rows: impl IntoIterator<Item = &'a Observation>) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for row in rows {
        // The name may be followed by a line, run or result within the file.
        let file = row.source.split(" result ").next().unwrap_or(&row.source);
        let cut = file.rfind([':', '#']).filter(|at| {
            let rest = file.get(at + 1..).unwrap_or_default();
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
        });
        let file = cut.and_then(|at| file.get(..at)).unwrap_or(file).to_owned();
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

/// The location of a parameter among the coefficients.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// Symbol in the calibration guide.
    pub symbol: &'static str,
    /// Path in the profile.
    pub path: &'static str,
    /// Returns the value.
    pub get: fn(&Coefficients) -> f64,
    /// Sets the value.
    pub set: fn(&mut Coefficients, f64),
    /// Valid range; values outside of it indicate a wrong measurement.
    pub range: [f64; 2],
}

macro_rules! slots {
    ($($name:ident $symbol:literal $path:literal $field:ident [$low:literal, $high:literal];)+) => {
        $(
            #[doc = $symbol]
            pub const $name: Slot =
                Slot { symbol: $symbol, path: $path, get: |c| c.$field, set: |c, value| c.$field = value, range: [$low, $high] };
        )+
        /// All coefficients that can be calibrated.
        pub const SLOTS: &[Slot] = &[$($name),+];
    };
}

slots! {
    B_BASE "B_base" "compute.base_tokens_per_accel" b_base [1e-3, 1e9];
    F_TRAINING "f_vendor(training)" "compute.factors.training" f_training [0.01, 100.0];
    F_INFERENCE "f_vendor(inference)" "compute.factors.inference" f_inference [0.01, 100.0];
    RHO_BASE "rho_base" "utilization.base" rho_base [0.005, 1.0];
    DELTA_CUDA "delta_rho_cuda" "utilization.knob_increments.cuda_graphs" delta_rho_cuda [-0.5, 0.9];
    DELTA_GPUDIRECT "delta_rho_gpudirect" "utilization.knob_increments.gpudirect_rdma" delta_rho_gpudirect [-0.5, 0.9];
    DELTA_INFER "delta_rho_infer" "utilization.knob_increments.inference_bonus" delta_rho_infer [-0.9, 0.9];
    CHI_BASE "chi_base" "communication.intensity.base" chi_base [0.0, 10.0];
    CHI_TP "chi_tp" "communication.intensity.per_tp" chi_tp [0.0, 10.0];
    CHI_PP "chi_pp" "communication.intensity.per_pp" chi_pp [0.0, 10.0];
    JITTER "gamma_jitter - 1" "communication.jitter_per_sriov" jitter_sriov [0.0, 10.0];
    LAT_MIN "lat_min" "latency.min_p50_ms" lat_min [1e-4, 1e7];
    LAT_COEFF "lat_base_coeff" "latency.base_p50_coeff" lat_base_coeff [1e-6, 1e12];
    R_TTFT "r_ttft" "latency.ttft_ratio" r_ttft [1e-4, 1.0];
    M95 "p95_mult" "latency.tail.p95_multiplier" m95 [0.5, 100.0];
    M99 "p99_mult" "latency.tail.p99_multiplier" m99 [0.5, 1000.0];
    PHI_IDLE "phi_idle" "power.idle_fraction" phi_idle [0.0, 1.0];
    PHI_UTIL "phi_util" "power.util_fraction" phi_util [0.0, 1.0];
}

/// Path of p_node_nominal in a profile.
pub const NODE_WATTS: &str = "power.node_nominal_w";
/// Path of the fabric factors in a profile.
pub const FABRICS: &str = "communication.fabric_factors";

/// Numbers of a profile that calibration may change: coefficients, fabrics, node power.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileValues {
    /// The coefficients.
    pub coefficients: Coefficients,
    /// gamma_fabric by name of the fabric.
    pub fabrics: Vec<(Arc<str>, f64)>,
    /// p_node_nominal, W, if measured.
    pub node_watts: Option<f64>,
}

/// Valid range of p_node_nominal, W.
pub const NODE_WATTS_RANGE: [f64; 2] = [1.0, 1e7];

impl ProfileValues {
    /// Whether a parameter is in its valid range.
    #[must_use]
    pub fn is_in_range(parameter: &Parameter) -> bool {
        let slot = SLOTS.iter().find(|slot| slot.path == parameter.path);
        let [low, high] =
            slot.map_or(if parameter.path == NODE_WATTS { NODE_WATTS_RANGE } else { [0.05, 100.0] }, |slot| slot.range);
        parameter.value.is_finite() && (low..=high).contains(&parameter.value)
    }

    /// Stores a parameter, and records the previous value in it.
    pub fn take(&mut self, mut parameter: Parameter) -> Parameter {
        if let Some(slot) = SLOTS.iter().find(|slot| slot.path == parameter.path) {
            parameter.before = Some((slot.get)(&self.coefficients));
            (slot.set)(&mut self.coefficients, parameter.value);
        } else if parameter.path == NODE_WATTS {
            parameter.before = self.node_watts;
            self.node_watts = Some(parameter.value);
        } else if let Some(name) = parameter.path.strip_prefix(FABRICS).and_then(|rest| rest.strip_prefix('.')) {
            match self.fabrics.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                Some((_, factor)) => {
                    parameter.before = Some(*factor);
                    *factor = parameter.value;
                }
                None => self.fabrics.push((name.into(), parameter.value)),
            }
        }
        parameter
    }
}
