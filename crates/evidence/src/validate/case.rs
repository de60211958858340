//! A measured row resolved to a scenario, with its measured metrics.

use std::sync::Arc;

use atlas_catalog::Catalog;
use atlas_config::{Mode, Target, Workload};
use atlas_document::{Diagnostics, Node, Severity};
use atlas_perf::interval::{self, Factors, Regime, Release};
use atlas_perf::serving::ServingInput;
use atlas_perf::training::TrainingInput;
use atlas_plan::estimate::Estimate;
use atlas_plan::scenario::{Parts, Scenario};
use serde_json::Value;

use super::MeasurementKind;
use super::documents::Documents;
use super::table::Row;

/// Published metric on which a case is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Tokens per second per accelerator of a training run.
    TrainingRate,
    /// Generated tokens per second.
    OutputRate,
    /// Prompt and generated tokens per second.
    TotalRate,
    /// Requests per second.
    RequestRate,
    /// Time to first token.
    Ttft,
    /// Time per output token.
    Tpot,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Metric; 6] =
        [Metric::TrainingRate, Metric::OutputRate, Metric::TotalRate, Metric::RequestRate, Metric::Ttft, Metric::Tpot];

    /// Name in verdicts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Metric::TrainingRate => "tokens_per_sec_per_accel",
            Metric::OutputRate => "output_tokens_per_sec_total",
            Metric::TotalRate => "total_tokens_per_sec",
            Metric::RequestRate => "requests_per_sec",
            Metric::Ttft => "ttft_ms",
            Metric::Tpot => "tpot_ms",
        }
    }

    /// Whether it is a latency.
    #[must_use]
    pub const fn is_latency(self) -> bool {
        matches!(self, Metric::Ttft | Metric::Tpot)
    }
}

/// Resolved scenario of a row.
#[derive(Debug, Clone)]
pub struct RowScenario {
    /// Documents of the row.
    pub documents: Documents,
    /// Target, workload, accelerator and model.
    pub parts: Parts,
    /// Scenario for the engines.
    pub scenario: Scenario,
}

impl RowScenario {
    /// Resolves a row with the same code as documents written by users.
    ///
    /// # Errors
    /// Returns everything that prevents the row from being resolved.
    pub fn of(row: &Row, kind: MeasurementKind, catalog: &Catalog) -> Result<RowScenario, String> {
        RowScenario::resolve(Documents::of(row, kind, catalog)?, catalog)
    }

    /// Resolves documents with the same code as those written by users.
    ///
    /// # Errors
    /// Returns everything that prevents them from being resolved.
    pub fn resolve(documents: Documents, catalog: &Catalog) -> Result<RowScenario, String> {
        let target = decode(&documents.target, "target", Target::decode)?;
        let workload = decode(&documents.workload, "workload", Workload::decode)?;
        let none = atlas_document::Diagnostic {
            severity: Severity::Error,
            file: "row".into(),
            at: atlas_document::Position::default(),
            path: String::new(),
            message: "no profile".to_owned(),
            help: None,
        };
        let parts = Parts::with(catalog, &target, &workload, Err(none)).map_err(|problems| joined(&problems))?;
        let mut scenario = Scenario::from_files(&parts);
        scenario.engine = atlas_core::plan::Engine::Analytical;
        scenario.check(&parts).map_err(|problem| problem.to_string())?;
        Ok(RowScenario { documents, parts, scenario })
    }

    /// Resolves the same row without its software release, so that the newest known release is assumed.
    ///
    /// # Errors
    /// Returns everything that prevents it from being resolved.
    pub fn without_release(&self, catalog: &Catalog) -> Result<RowScenario, String> {
        RowScenario::resolve(self.documents.clone().without_release(), catalog)
    }

    /// Whether the row specifies the release of its software.
    #[must_use]
    pub fn release(&self) -> Release {
        Release::assumed_if(self.scenario.active_software.release_assumed())
    }

    /// Returns the engine input of a training run.
    #[must_use]
    pub fn training(&self) -> Option<TrainingInput> {
        self.scenario.training_input(&self.scenario.base)
    }

    /// Returns the engine input of a deployment.
    #[must_use]
    pub fn serving(&self) -> Option<ServingInput> {
        self.scenario.serving_input(&self.scenario.base)
    }
}

fn joined(problems: &Diagnostics) -> String {
    problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("; ")
}

/// Decodes a document given as JSON, like `atlas run --batch`.
fn decode<T>(
    value: &Value,
    kind: &str,
    read: impl FnOnce(&Arc<str>, &Node, &mut Diagnostics) -> Option<T>,
) -> Result<Arc<T>, String> {
    let node: Node = serde_json::from_value(value.clone()).map_err(|error| format!("{kind}: {error}"))?;
    let mut problems = Diagnostics::new();
    let decoded = read(&kind.into(), &node, &mut problems);
    let errors: Vec<String> = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .map(|problem| format!("{}: {}", problem.path, problem.message))
        .collect();
    match decoded {
        Some(decoded) if errors.is_empty() => Ok(Arc::new(decoded)),
        _ => Err(errors.join("; ")),
    }
}

/// A measured metric of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The metric.
    pub metric: Metric,
    /// Its value, per second or in milliseconds.
    pub value: f64,
}

/// Returns the measured metrics on which a row is evaluated.
///
/// # Errors
/// Returns an error if the row has none.
pub fn measured(row: &Row, kind: MeasurementKind, case: &RowScenario) -> Result<Vec<Measured>, String> {
    let of = |metric, value| Measured { metric, value };
    match kind {
        MeasurementKind::Training => Ok(vec![of(Metric::TrainingRate, training_rate(row, case)?)]),
        MeasurementKind::Inference => {
            let devices = case.documents.accelerators;
            let each = || row.positive("tokens_per_sec_per_accel").map(|rate| of(Metric::OutputRate, rate * devices));
            let found = row
                .positive("output_tokens_per_sec")
                .map(|rate| of(Metric::OutputRate, rate))
                .or_else(|| row.positive("total_tokens_per_sec").map(|rate| of(Metric::TotalRate, rate)))
                .or_else(each)
                .or_else(|| row.positive("requests_per_sec").map(|rate| of(Metric::RequestRate, rate)));
            found
                .filter(|found| found.value.is_normal())
                .map(|found| vec![found])
                .ok_or("no throughput is stated".into())
        }
        MeasurementKind::Latency => {
            let found: Vec<Measured> = [(Metric::Ttft, "ttft_ms"), (Metric::Tpot, "tpot_ms")]
                .into_iter()
                .filter_map(|(metric, column)| row.positive(column).map(|value| of(metric, value)))
                .collect();
            if found.is_empty() { Err("no latency is stated".to_owned()) } else { Ok(found) }
        }
    }
}

/// Tokens per second per accelerator: as given, or derived from step time, TFLOP/s or MFU.
fn training_rate(row: &Row, case: &RowScenario) -> Result<f64, String> {
    if let Some(rate) = row.positive("tokens_per_sec_per_accel") {
        return Ok(rate);
    }
    let input = case.training().ok_or("the model or the accelerator is not known")?;
    if let (Some(step), Some(global)) = (row.positive("step_time_s"), row.positive("global_batch")) {
        return Ok(global * input.seq / step / case.documents.accelerators);
    }
    let per_token = input.arch.palm_flops_per_token(input.seq, row.text("flop_counting") == "causal");
    if let Some(tflops) = row.positive("model_tflops_per_accel") {
        return Ok(tflops * 1e12 / per_token);
    }
    let mfu = row.positive("mfu").ok_or("no throughput is stated")?;
    let dies = case.scenario.machine.map_or(1.0, |machine| machine.dies);
    // A fraction; values above one are percentages.
    let mfu = if mfu > 1.0 { mfu / 100.0 } else { mfu };
    Ok(mfu * input.accelerator.peak(input.precision) * dies / per_token)
}

/// Returns an estimate's value of a metric, with the lower and upper bound of its 90 % interval.
#[must_use]
pub fn predicted(estimate: &Estimate, metric: Metric, accelerators: f64) -> Option<[f64; 3]> {
    let detail = estimate.detail.as_ref()?;
    let rate = estimate.total.tokens_per_sec;
    let serving = detail.serving.as_ref();
    let (value, interval) = match metric {
        Metric::TrainingRate => (rate / accelerators, detail.throughput_interval),
        Metric::OutputRate => (rate, detail.throughput_interval),
        Metric::TotalRate => (serving?.total_tokens_per_sec, detail.throughput_interval),
        Metric::RequestRate => (serving?.requests_per_sec, detail.throughput_interval),
        Metric::Ttft => (serving?.ttft_ms.mean, serving?.ttft_interval),
        Metric::Tpot => (serving?.tpot_ms.mean, serving?.tpot_interval),
    };
    (value.is_finite() && value > 0.0).then_some([value, value * interval.low, value * interval.high])
}

/// Engine input of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input {
    /// A training run.
    Training(TrainingInput),
    /// A deployment.
    Serving(ServingInput),
}

impl Input {
    /// Returns the input of a resolved row.
    #[must_use]
    pub fn of(found: &RowScenario) -> Option<Input> {
        Input::of_scenario(&found.scenario)
    }

    /// Returns the input of a scenario, or `None` if accelerator or model is not known.
    #[must_use]
    pub fn of_scenario(scenario: &Scenario) -> Option<Input> {
        match scenario.mode() {
            Mode::Training => scenario.training_input(&scenario.base).map(Input::Training),
            Mode::Inference => scenario.serving_input(&scenario.base).map(Input::Serving),
        }
    }
}

/// A measured metric with all data needed by fits and intervals.
#[derive(Debug, Clone)]
pub struct Case {
    /// Id of the row.
    pub id: String,
    /// Publisher.
    pub source: String,
    /// Accelerator, as given in the row.
    pub accelerator: String,
    /// Model, as given in the row.
    pub model: String,
    /// Software and release in effect.
    pub software: String,
    /// Benchmark client that measured it, if given.
    pub harness: String,
    /// Regime, within which errors are similar.
    pub regime: &'static str,
    /// The metric.
    pub metric: Metric,
    /// Measured value, per second or in milliseconds.
    pub measured: f64,
    /// Input of the engine.
    pub input: Input,
    /// Whether the row specifies the release of its software.
    pub release: Release,
    /// Input of the engine with the newest known release instead.
    pub without_release: Input,
    /// Devices of the input per accelerator of the row.
    pub devices: f64,
    /// Whether a value was inferred from the result of the row itself.
    pub inferred: bool,
    /// Measured peak memory of the first device, bytes.
    pub memory: Option<f64>,
}

impl Case {
    /// Returns the cases of a row.
    ///
    /// # Errors
    /// Returns why the row cannot be predicted.
    pub fn of(row: &Row, kind: MeasurementKind, catalog: &Catalog) -> Result<Vec<Case>, String> {
        let found = super::usable(row, kind, catalog)?;
        let input = Input::of(&found).ok_or("the model or the accelerator is not known")?;
        let release = found.release();
        // If the newest release cannot run the row, no user could have assumed it.
        let newest = match release {
            Release::Stated => found.without_release(catalog).ok().and_then(|newest| Input::of(&newest)),
            Release::Assumed => None,
        };
        let devices = found.scenario.machine.map_or(1.0, |machine| machine.dies);
        let name = if row.text("model").is_empty() { row.text("model_name") } else { row.text("model") };
        let case = |measured: &Measured| Case {
            id: row.text("id").to_owned(),
            source: row.text("source").to_owned(),
            accelerator: row.text("accelerator").to_owned(),
            model: name.to_owned(),
            software: found.scenario.active_software.name.to_string(),
            harness: row.text("harness").to_owned(),
            regime: regime(&input, measured.metric),
            metric: measured.metric,
            measured: measured.value,
            input,
            release,
            without_release: newest.unwrap_or(input),
            devices,
            inferred: !row.text("inferred").is_empty(),
            memory: row.positive("peak_memory_gb").map(|gb| gb * 1024.0 * 1024.0 * 1024.0),
        };
        Ok(measured(row, kind, &found)?.iter().map(case).collect())
    }

    /// Returns the input of a training run.
    #[must_use]
    pub fn training(&self) -> Option<&TrainingInput> {
        match &self.input {
            Input::Training(input) => Some(input),
            Input::Serving(_) => None,
        }
    }

    /// Returns the input of a deployment.
    #[must_use]
    pub fn serving(&self) -> Option<&ServingInput> {
        match &self.input {
            Input::Serving(input) => Some(input),
            Input::Training(_) => None,
        }
    }

    /// Factors on the prediction between which the measured value lies in nine of ten cases.
    #[must_use]
    pub fn interval(&self, release: Release) -> Factors {
        match (&self.input, self.metric) {
            (Input::Training(input), _) => interval::training(input, release),
            (Input::Serving(input), Metric::Ttft) => interval::ttft(input, release),
            (Input::Serving(input), Metric::Tpot) => interval::tpot(input, release),
            (Input::Serving(input), _) => interval::throughput(input, release),
        }
    }
}

/// Regime of a case, within which errors are similar.
#[must_use]
pub fn regime(input: &Input, metric: Metric) -> &'static str {
    let regime = match input {
        Input::Training(input) => Regime::of_training(input),
        Input::Serving(input) => match metric {
            Metric::Ttft => Regime::of_ttft(input),
            Metric::Tpot => Regime::of_tpot(input),
            _ => Regime::of_throughput(input),
        },
    };
    regime.name()
}
