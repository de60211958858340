//! Measured runs side by side: throughput, step times, utilization, cost, energy, memory, time to a budget of tokens,
//! and whether loss and learning rate are those of a run that learns; a prediction alongside them where there is one.

mod judge;
mod learning;
pub mod plan;
pub mod prediction;
pub mod story;
mod table;

pub use self::judge::judge;
pub use self::learning::alike;
pub use self::table::table;

use serde::Serialize;
use serde_json::{Value, json};

use self::plan::Plan;
use self::prediction::Prediction;
use super::{ReportError, csv, serialized};

/// Assumptions about runs that no file states.
#[derive(Debug, Clone, Default)]
pub struct Assumptions {
    /// Parameters that a token passes through.
    pub parameters: Option<f64>,
    /// Model of the catalog, where one was named.
    pub model: Option<String>,
    /// Dollars for one accelerator and hour; the cheapest price of the catalog where it is not said.
    pub usd_per_gpu_hour: Option<f64>,
    /// Dollars for a kilowatt-hour.
    pub usd_per_kwh: f64,
    /// Number format whose peak the MFU refers to; that of the file, else bf16.
    pub precision: Option<String>,
    /// Tokens of the whole training.
    pub budget: Option<f64>,
    /// What an experiment's configuration states about the run; flags and the run's own file take precedence.
    pub plan: Option<Plan>,
}

/// One figure of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Its name, with the unit.
    pub name: &'static str,
    /// Its value.
    pub value: Option<f64>,
    /// Whether more is better, where that can be said.
    #[serde(skip)]
    pub more: Option<bool>,
}

/// One measured run.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// What it is called in the table.
    pub name: String,
    /// The accelerator as the file names it.
    pub device: Option<String>,
    /// The system it ran on: what, and what the file says.
    pub system: Vec<(&'static str, String)>,
    /// Figures, the same in every run.
    pub figures: Vec<Figure>,
    /// What a reader should know: what was assumed, what looks wrong.
    pub notes: Vec<String>,
    /// Tokens per second that an engine predicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_tokens_per_second: Option<f64>,
    /// Predictions of an engine, and the measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Prediction>,
    /// Memory of one accelerator, GB.
    #[serde(skip)]
    pub capacity_gb: Option<f64>,
    /// Step by step, as far as the file says.
    #[serde(skip)]
    pub steps: Steps,
}

/// What a run did step by step.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    /// Time of each, s.
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
    /// A figure of it by name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).and_then(|figure| figure.value)
    }

    /// The system that its file states.
    fn system_value(&self, name: &str) -> Option<&str> {
        self.system.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// What a prediction is compared with.
    #[must_use]
    pub fn measured(&self) -> prediction::Measured {
        prediction::Measured {
            tokens_per_second: self.figure("tokens/s"),
            step_seconds: self.figure("step time, mean s"),
            memory_gb: self.figure("memory used GB"),
        }
    }

    /// Adds a prediction.
    pub fn lay_beside(&mut self, predicted: Prediction) {
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

/// Properties of the system that any of the runs states, in order.
fn system_rows(runs: &[Measured]) -> Vec<&'static str> {
    let mut out: Vec<&'static str> = Vec::new();
    for (name, _) in runs.iter().flat_map(|run| &run.system) {
        if !out.contains(name) {
            out.push(name);
        }
    }
    out
}

/// The runs for programs.
///
/// # Errors
///
/// Where they cannot be written.
pub fn document(runs: &[Measured], yaml: bool) -> Result<String, ReportError> {
    serialized(&json!({"measured": runs}), yaml)
}

/// The runs as CSV, a row a figure.
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
        let cells: Vec<String> =
            values.map(|value| value.map_or_else(String::new, |value| value.to_string())).collect();
        out += &csv::line(std::iter::once(figure.name).chain(cells.iter().map(String::as_str)));
    }
    out
}
