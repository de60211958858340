//! The calibration guide, parameter by parameter. If the guide's formula differs from the model's equation, the
//! parameter is the value with which the model reproduces the measured quantity of the guide.

mod communication;
mod compute;
mod latency;
mod optimization;
mod power;

use std::sync::Arc;

use super::bench::RowPredictor;
use super::observation::Observation;
use super::parameter::{Parameter, ProfileValues};
use atlas_config::Mode;
use atlas_config::profile::Coefficients;

/// State of a calibration: rows, current coefficients, results and messages.
pub(super) struct Calibration<'a> {
    /// Context for comparing rows with the engines.
    pub bench: &'a RowPredictor<'a>,
    /// All rows.
    pub rows: &'a [Observation],
    /// Current coefficients. Later parameters depend on earlier ones.
    pub figures: ProfileValues,
    /// Parameters found.
    pub found: Vec<Parameter>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Parameters that could not be determined, and the measurements they need.
    pub missing: Vec<Missing>,
}

/// A parameter that the measurements do not determine.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Missing {
    /// Symbol in the guide.
    pub symbol: &'static str,
    /// Measurements that it needs.
    pub needs: &'static str,
}

impl<'a> Calibration<'a> {
    /// Determines all parameters of the guide, in the order of their dependencies.
    pub(super) fn run(&mut self) {
        self.base_throughput();
        self.fabrics();
        self.jitter();
        self.intensity();
        self.utilization();
        self.increments();
        self.vendor_factors();
        self.latency();
        self.tails();
        self.power();
    }

    fn take(&mut self, parameter: Parameter) {
        if !ProfileValues::is_in_range(&parameter) {
            let value = atlas_core::units::significant(parameter.value, 4);
            let text = format!(
                "{}: {value} is out of range and was discarded; check the rows that it was determined from",
                parameter.symbol
            );
            return self.warn(text);
        }
        let parameter = self.figures.take(parameter);
        self.found.push(parameter);
    }

    fn record_missing(&mut self, symbol: &'static str, needs: &'static str) {
        self.missing.push(Missing { symbol, needs });
    }

    fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    /// Rows of the target itself, excluding those of a baseline.
    fn own(&self) -> impl Iterator<Item = &'a Observation> + use<'a> {
        self.rows.iter().filter(|row| !is_baseline(row))
    }

    /// Returns the communication overhead of a row in the model: omega_comm, and the multiplier of chi in it.
    fn communication(&self, row: &Observation) -> Option<Communication> {
        let scenario = self.bench.semi_empirical(row, &self.figures.coefficients, &self.figures.fabrics)?;
        let c = &self.figures.coefficients;
        let infer = scenario.base.shape.mode == Mode::Inference;
        let jitter = if scenario.sriov { 1.0 + c.jitter_sriov } else { 1.0 };
        let direct = if scenario.gpudirect_rdma { c.gamma_gpudirect } else { 1.0 };
        let gamma = scenario.fabric_factor? * jitter * direct;
        let scale = if infer { c.chi_infer_scale } else { 1.0 };
        let (tp, pp) = (scenario.base.shape.tp, scenario.base.shape.pp);
        let chi = (c.chi_base + c.chi_tp * (tp - 1.0) + c.chi_pp * (pp - 1.0)) * scale;
        Some(Communication {
            gamma: gamma * scale,
            omega_comm: (chi * gamma).max(c.omega_min),
            tp: f64::from(tp),
            pp: f64::from(pp),
        })
    }

    /// The current coefficients.
    fn c(&self) -> &Coefficients {
        &self.figures.coefficients
    }
}

/// Communication of a row in the model.
#[derive(Debug, Clone, Copy)]
struct Communication {
    /// Multiplier of chi_base + chi_tp (tp − 1) + chi_pp (pp − 1).
    gamma: f64,
    /// omega_comm.
    omega_comm: f64,
    tp: f64,
    pp: f64,
}

/// Whether a row is of the baseline accelerator.
fn is_baseline(row: &Observation) -> bool {
    row.switch("baseline") == Some(true)
}

/// Name of a fabric as spelled in profiles.
fn fabric_name(word: &str, known: &[(Arc<str>, f64)]) -> Arc<str> {
    let lower = word.to_lowercase();
    let usual = match lower.as_str() {
        "infiniband" | "ib" | "ndr" | "hdr" => "IB",
        "nvlink" | "nvswitch" => "NVLink",
        "roce" | "rocev2" => "RoCE",
        _ => word,
    };
    known
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(usual))
        .map_or_else(|| usual.into(), |(name, _)| Arc::clone(name))
}
