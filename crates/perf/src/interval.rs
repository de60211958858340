//! 90 % prediction intervals: factors on an estimate between which nine of ten measurements lie.
//!
//! Each regime has two pairs of factors: for a stated release of the software, and for the newest release as an
//! assumption. They are computed from the errors on sources held out of the fit (conformal prediction over sources).
//! `atlas validate --fit` prints them.

// A measured factor may come close to e or pi.
#![allow(clippy::approx_constant)]

use crate::constants::generation::Measured;
use crate::serving::{Load, ServingInput, Stack};
use crate::training::TrainingInput;
use atlas_core::math;

/// Factors on an estimated metric.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Factors {
    /// Lower factor.
    pub low: f64,
    /// Upper factor.
    pub high: f64,
}

impl Factors {
    /// No uncertainty.
    pub const EXACT: Factors = Factors { low: 1.0, high: 1.0 };

    const fn new(low: f64, high: f64) -> Factors {
        Factors { low, high }
    }

    /// Whether a measurement of `ratio` times the estimate lies inside the interval.
    #[must_use]
    pub fn contains(self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio)
    }

    /// Lower and upper end of the interval around `figure`.
    #[must_use]
    pub fn of(self, figure: f64) -> (f64, f64) {
        (self.low * figure, self.high * figure)
    }

    /// Multiplies both logarithms by `by`.
    #[must_use]
    fn widened(self, by: f64) -> Factors {
        Factors { low: math::powf(self.low, by), high: math::powf(self.high, by) }
    }
}

/// Whether the scenario states its software release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    /// The release is stated.
    Stated,
    /// The release is not stated: the estimate assumes the newest known one, and the measurement may be of any.
    Assumed,
}

impl Release {
    /// Both variants.
    pub const ALL: [Release; 2] = [Release::Stated, Release::Assumed];

    /// `Assumed` if `assumed`, else `Stated`.
    #[must_use]
    pub const fn assumed_if(assumed: bool) -> Release {
        if assumed { Release::Assumed } else { Release::Stated }
    }
}

/// Declares the regimes: variant, name, factors with a stated release, factors with an assumed release.
macro_rules! regimes {
    ($($(#[doc = $doc:literal])* $variant:ident: $name:literal,
       stated $low:literal, $high:literal, assumed $assumed_low:literal, $assumed_high:literal;)*) => {
        /// Kinds of runs with similar errors.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Regime { $($(#[doc = $doc])* $variant,)* }

        impl Regime {
            /// All regimes.
            pub const ALL: &'static [Regime] = &[$(Regime::$variant,)*];

            /// Name in tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Regime::$variant => $name,)* }
            }

            /// Factors on an estimate.
            #[must_use]
            pub const fn factors(self, release: Release) -> Factors {
                match (self, release) {
                    $((Regime::$variant, Release::Stated) => Factors::new($low, $high),
                    (Regime::$variant, Release::Assumed) => Factors::new($assumed_low, $assumed_high),)*
                }
            }
        }
    };
}

regimes! {
    /// Dense models on NVIDIA devices inside one fast domain.
    DenseOneDomain: "training, dense, one domain", stated 0.810, 1.226, assumed 0.684, 1.203;
    /// Dense models on NVIDIA devices across several fast domains.
    DenseManyDomains: "training, dense, many domains", stated 0.715, 1.290, assumed 0.704, 1.270;
    /// Mixture of experts on NVIDIA devices.
    Experts: "training, mixture of experts", stated 0.585, 1.527, assumed 0.530, 1.527;
    /// Frozen base models with adapters (LoRA).
    Adapters: "training, adapters", stated 0.830, 1.207, assumed 0.830, 1.207;
    /// Accelerators of other vendors with training measurements of several sources.
    OtherVendors: "training, other accelerators", stated 0.478, 1.240, assumed 0.429, 1.247;
    /// Training on accelerators with few or no measurements: a stated prior. Published runs reach between a quarter of
    /// the efficiency of the nearest measured family and slightly more than it.
    UnmeasuredTraining: "training, unmeasured accelerators", stated 0.25, 1.6, assumed 0.25, 1.6;
    /// Engines compiled ahead of time, on NVIDIA devices.
    CompiledEngine: "serving, compiled engine", stated 0.594, 1.556, assumed 0.658, 1.745;
    /// Native runtimes for few concurrent streams, on NVIDIA devices.
    NativeRuntime: "serving, native runtime", stated 0.502, 2.020, assumed 0.496, 1.505;
    /// Python engines on NVIDIA devices: static batches without a server.
    PythonBatch: "serving, Python engine, static batch", stated 0.615, 1.557, assumed 0.416, 1.299;
    /// Python engines on NVIDIA devices: all requests queued at the start.
    PythonOffline: "serving, Python engine, offline", stated 0.417, 1.821, assumed 0.345, 1.821;
    /// Python engines on NVIDIA devices: behind a server.
    PythonServer: "serving, Python engine, server", stated 0.374, 2.140, assumed 0.331, 2.025;
    /// AMD CDNA devices.
    Cdna: "serving, CDNA", stated 0.440, 2.231, assumed 0.253, 2.092;
    /// Other accelerators with serving measurements.
    OtherServing: "serving, other accelerators", stated 0.500, 1.964, assumed 0.422, 2.036;
    /// Serving on accelerators with few or no measurements: a stated prior.
    UnmeasuredServing: "serving, unmeasured accelerators", stated 0.20, 5.0, assumed 0.20, 5.0;
    /// Time per output token on NVIDIA devices.
    Tpot: "TPOT", stated 0.640, 1.407, assumed 0.647, 1.414;
    /// Time per output token on accelerators of other vendors, for which there are no latency measurements.
    UnmeasuredTpot: "TPOT, unmeasured accelerators", stated 0.30, 4.0, assumed 0.30, 4.0;
    /// Time to first token with at most 32 concurrent requests.
    LightTtft: "TTFT, at most 32 requests", stated 0.579, 2.779, assumed 0.485, 3.203;
    /// Time to first token with more concurrent requests; the measurements include overloaded and cold servers.
    HeavyTtft: "TTFT, more requests", stated 0.381, 3.803, assumed 0.428, 4.408;
    /// Time to first token on accelerators of other vendors, for which there are no latency measurements.
    UnmeasuredTtft: "TTFT, unmeasured accelerators", stated 0.20, 12.6, assumed 0.20, 12.6;
}

impl Regime {
    /// Regime of a training run.
    #[must_use]
    pub fn of_training(i: &TrainingInput) -> Regime {
        match i.accelerator.generation.properties().training_measured {
            Measured::WithCdna | Measured::WithOthers => Regime::OtherVendors,
            Measured::Hardly => Regime::UnmeasuredTraining,
            _ if i.trained < 1.0 => Regime::Adapters,
            _ if i.arch.is_moe() => Regime::Experts,
            _ if i.accelerators <= i.domain => Regime::DenseOneDomain,
            _ => Regime::DenseManyDomains,
        }
    }

    /// Regime of a serving throughput.
    #[must_use]
    pub fn of_throughput(input: &ServingInput) -> Regime {
        match (input.accelerator.generation.properties().serving_measured, input.stack) {
            // Native runtimes were not measured on CDNA devices.
            (Measured::Hardly, _) | (Measured::WithCdna, Stack::Local) => Regime::UnmeasuredServing,
            (Measured::WithCdna, _) => Regime::Cdna,
            (Measured::WithOthers, _) => Regime::OtherServing,
            (Measured::ByKindOfRun, Stack::Compiled) => Regime::CompiledEngine,
            (Measured::ByKindOfRun, Stack::Local) => Regime::NativeRuntime,
            (Measured::ByKindOfRun, Stack::Graphed | Stack::Eager) => match input.load {
                Load::Closed { .. } | Load::Open { .. } => Regime::PythonServer,
                Load::Burst { .. } => Regime::PythonOffline,
                Load::Static { .. } | Load::DecodeOnly { .. } | Load::PrefillOnly { .. } => Regime::PythonBatch,
            },
        }
    }

    /// Regime of a time per output token.
    #[must_use]
    pub fn of_tpot(input: &ServingInput) -> Regime {
        if input.accelerator.generation.runs_reference_kernels() { Regime::Tpot } else { Regime::UnmeasuredTpot }
    }

    /// Regime of a time to first token.
    #[must_use]
    pub fn of_ttft(input: &ServingInput) -> Regime {
        let requests = match input.load {
            Load::Closed { concurrency, .. } => concurrency,
            Load::Burst { requests } => requests,
            Load::Static { batch } | Load::DecodeOnly { batch } | Load::PrefillOnly { batch } => batch,
            // The number of concurrent requests follows from the rate only after the estimate.
            Load::Open { .. } => f64::INFINITY,
        };
        match input.accelerator.generation.runs_reference_kernels() {
            false => Regime::UnmeasuredTtft,
            true if requests <= LIGHT_LOAD => Regime::LightTtft,
            true => Regime::HeavyTtft,
        }
    }
}

/// Maximum number of concurrent requests of a light load.
const LIGHT_LOAD: f64 = 32.0;

/// Factors on the throughput of a training run.
#[must_use]
pub fn training(i: &TrainingInput, release: Release) -> Factors {
    // The largest measured runs have 16,384 accelerators or sequences of 2^20 tokens. The interval widens by a quarter
    // per doubling beyond.
    let beyond = math::log2((i.accelerators / 16_384.0).max(i.seq / 1_048_576.0).max(1.0));
    Regime::of_training(i).factors(release).widened(1.0 + 0.25 * beyond)
}

/// Factors on the throughput of a deployment.
#[must_use]
pub fn throughput(input: &ServingInput, release: Release) -> Factors {
    Regime::of_throughput(input).factors(release)
}

/// Factors on the time per output token of a deployment.
#[must_use]
pub fn tpot(input: &ServingInput, release: Release) -> Factors {
    Regime::of_tpot(input).factors(release)
}

/// Factors on the time to first token of a deployment.
#[must_use]
pub fn ttft(input: &ServingInput, release: Release) -> Factors {
    Regime::of_ttft(input).factors(release)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerator::Generation;

    #[test]
    fn predictions_lie_in_their_intervals_and_names_are_unique() {
        for regime in Regime::ALL {
            for f in Release::ALL.map(|release| regime.factors(release)) {
                assert!(f.low < 1.0 && f.high > 1.0, "{}", regime.name());
            }
            assert_eq!(Regime::ALL.iter().filter(|other| other.name() == regime.name()).count(), 1);
        }
    }

    #[test]
    fn unmeasured_accelerators_have_wider_intervals() {
        let known = ServingInput::default();
        let mut unknown = known;
        unknown.accelerator.generation = Generation::Other;
        for f in [throughput, tpot, ttft] {
            let (k, u) = (f(&known, Release::Stated), f(&unknown, Release::Stated));
            assert!(u.high / u.low >= k.high / k.low, "{k:?} {u:?}");
        }
        let known = TrainingInput::default();
        let mut unknown = known;
        unknown.accelerator.generation = Generation::Workstation;
        let (k, u) = (training(&known, Release::Stated), training(&unknown, Release::Stated));
        assert!(u.high / u.low > 1.5 * k.high / k.low);
    }
}
