//! Comparison of measured runs: throughput, step times, utilization, cost, energy, memory, time to a budget of tokens,
//! and whether loss and learning rate look plausible; with a prediction where there is one.

mod judge;
mod learning;
pub mod plan;
pub mod prediction;
pub mod story;
mod table;

pub use self::judge::judge;
pub use self::learning::compare_training_curves;
pub use self::table::table;

use serde::Serialize;
use serde_json::{Value, json};

use self::plan::Plan;
use self::prediction::Prediction;
use super::{ReportError, csv, serialized};

/// Assumptions for values that the run files do not state.
#[derive(Debug, Clone, Default)]
pub struct Assumptions {
    /// Active parameters per token.
    pub parameters: Option<f64>,
    /// Name of the model in the catalog.
    pub model: Option<String>,
    /// USD per accelerator-hour; if unset, the cheapest price of the catalog.
    pub usd_per_gpu_hour: Option<f64>,
    /// USD per kWh.
    pub usd_per_kwh: f64,
    /// Number format whose peak the MFU is relative to; if unset, that of the run's file, else bf16.
    pub precision: Option<String>,
    /// Total training tokens.
    pub budget: Option<f64>,
    /// Settings of the run from an experiment's configuration. Flags and the run's own file take precedence.
    pub plan: Option<Plan>,
}

/// One metric of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RunMetric {
    /// Name with the unit.
    pub name: &'static str,
    /// Its value.
    pub value: Option<f64>,
    /// Whether higher is better; `None` if neither direction is.
    #[serde(skip)]
    pub more: Option<bool>,
}

/// One measured run.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Name in the table.
    pub name: String,
    /// Accelerator name as stated in the file.
    pub device: Option<String>,
    /// Properties of the system the run was measured on: name and value as stated in the file.
    pub system: Vec<(&'static str, String)>,
    /// Metrics; the same list for every run.
    pub figures: Vec<RunMetric>,
    /// Notes for the reader: assumptions and suspicious values.
    pub notes: Vec<String>,
    /// Throughput predicted by an engine, tokens/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_tokens_per_second: Option<f64>,
    /// Predictions of an engine with the measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Prediction>,
    /// Memory capacity of one accelerator, GB.
    #[serde(skip)]
    pub capacity_gb: Option<f64>,
    /// Values per step, as far as the file has them.
    #[serde(skip)]
    pub steps: Steps,
}

/// Values per step of a run.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    /// Step times, s.
    pub seconds: Vec<f64>,
    /// Loss.
    pub loss: Vec<f64>,
    /// Learning rate.
    pub learning_rate: Vec<f64>,
}

impl Steps {
    fn of(run: &Value) -> Steps {
        let values = |name: &str| -> Vec<f64> {
            run.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_f64).collect()
        };
        Steps { seconds: values("step_times"), loss: values("loss_values"), learning_rate: values("learning_rates") }
    }
}

impl Measured {
    /// Value of a metric by name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).and_then(|figure| figure.value)
    }

    /// Value of a system property by name.
    fn system_value(&self, name: &str) -> Option<&str> {
        self.system.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Measurements that a prediction is compared with.
    #[must_use]
    pub fn measured(&self) -> prediction::Measured {
        prediction::Measured {
            tokens_per_second: self.figure("tokens/s"),
            step_seconds: self.figure("step time, mean s"),
            memory_gb: self.figure("memory used GB"),
        }
    }

    /// Adds a prediction and its notes.
    pub fn add_prediction(&mut self, predicted: Prediction) {
        if let Some(verdict) = &predicted.verdict {
            self.notes.push(format!("engine verdict: {verdict}"));
        }
        if !predicted.assumed.is_empty() {
            let assumed = predicted.assumed.join(", ");
            self.notes.push(format!("assumed for the prediction, since the file does not state it: {assumed}"));
        }
        self.predicted_tokens_per_second = Some(predicted.tokens_per_second.value);
        self.predicted = Some(predicted);
    }
}

/// Names of the system properties that at least one run states, in order of first occurrence.
fn system_rows(runs: &[Measured]) -> Vec<&'static str> {
    let mut out: Vec<&'static str> = Vec::new();
    for (name, _) in runs.iter().flat_map(|run| &run.system) {
        if !out.contains(name) {
            out.push(name);
        }
    }
    out
}

/// Returns the runs as JSON or YAML.
///
/// # Errors
///
/// Returns an error if serialization fails.
pub fn document(runs: &[Measured], yaml: bool) -> Result<String, ReportError> {
    serialized(&json!({"measured": runs}), yaml)
}

/// Returns the runs as CSV, a row per metric.
#[must_use]
pub fn rows(runs: &[Measured]) -> String {
    let names = runs.iter().map(|run| run.name.as_str());
    let mut out = csv::line(std::iter::once("figure").chain(names));
    out += &csv::line(
        std::iter::once("accelerator").chain(runs.iter().map(|run| run.device.as_deref().unwrap_or_default())),
    );
    for name in system_rows(runs) {
        let cells = runs.iter().map(|run| run.system_value(name).unwrap_or_default());
        out += &csv::line(std::iter::once(name).chain(cells));
    }
    for (line, figure) in runs.first().into_iter().flat_map(|run| run.figures.iter()).enumerate() {
        let values = runs.iter().map(|run| run.figures.get(line).and_then(|figure| figure.value));
        out += &csv::line(std::iter::once(figure.name.to_owned()).chain(values.map(csv::optional)));
    }
    out
}
