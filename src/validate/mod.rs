//! The analytical engine held against published measurements.
//!
//! A row of a measurement file becomes a scenario ([`training_rows`], [`serving_rows`], [`latency_rows`]) by conventions
//! that follow from the framework's documented defaults or the model's name, never from the result; a row that states
//! too little says so. [`judge`] puts the engine's answer and its interval beside what was measured. [`fit`] and
//! [`serving_fit`] fit the constants; [`crossval`] and [`serving_validation`] do so with one source left out at a time,
//! which is how constants and intervals are judged.

pub mod contradiction;
pub mod crossval;
pub mod fit;
pub mod hardware;
pub mod latency_rows;
mod least_squares;
pub mod models;
pub mod names;
pub mod refit;
pub mod report;
pub mod scatter;
pub mod serving_devices;
pub mod serving_fit;
pub mod serving_flags;
mod serving_loads;
pub mod serving_models;
mod serving_notes;
pub mod serving_pools;
pub mod serving_rows;
pub mod serving_validation;
pub mod story;
pub mod table;
pub mod training_rows;
mod training_stack;
mod training_words;
pub mod verdict;

use crate::catalog::{Catalog, measurements};
use crate::cores::on_all_cores;
use crate::engine::analytical::constants::Constants;
use crate::engine::analytical::serving::{self, ServingEstimate};
use crate::engine::analytical::serving_constants::ServingConstants;
use crate::engine::analytical::training::{self, Regime, interval};
use crate::engine::answer::event as simulated;
use crate::plan::Engine;
use crate::search::Gauge;
pub use refit::{Band, Width, refit};

use hardware::Hardware;
use models::Models;
use serving_rows::{Case, Metric};
use table::Row;
use verdict::Verdict;

/// Why measurements cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// The columns are those of no kind of measurements.
    #[error(
        "the first line names the columns of no kind of measurements: training has `seq_len` and `accelerator`, \
         inference `input_len` and `engine`, latency `silicon_ttft_ms`; found \"{0}\""
    )]
    Columns(String),
    /// The file is no CSV.
    #[error("not CSV: {0}")]
    Csv(#[from] csv::Error),
    /// The shipped measurements cannot be inflated.
    #[error("the shipped measurements are damaged: {0}")]
    Shipped(#[from] std::io::Error),
}

/// The kinds of measurement files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Throughput of training runs.
    Training,
    /// Throughput of serving.
    Inference,
    /// TTFT and TPOT of serving.
    Latency,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Training, Kind::Inference, Kind::Latency];

    /// `training`, `inference`, `latency`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Training => "training",
            Kind::Inference => "inference",
            Kind::Latency => "latency",
        }
    }

    /// A heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Kind::Training => "Training: tokens per second and accelerator",
            Kind::Inference => "Inference: throughput of serving",
            Kind::Latency => "Serving latency: TTFT and TPOT",
        }
    }

    /// The kind of a file, by its columns.
    pub fn of(text: &str) -> Result<Kind, ValidateError> {
        let head = text.lines().next().unwrap_or_default();
        let has = |column: &str| head.split(',').any(|name| table::canonical(name) == column);
        if has("silicon_ttft_ms") || has("silicon_tpot_ms") {
            Ok(Kind::Latency)
        } else if has("input_len") && has("engine") {
            Ok(Kind::Inference)
        } else if has("seq_len") && has("accelerator") {
            Ok(Kind::Training)
        } else {
            Err(ValidateError::Columns(head.chars().take(120).collect()))
        }
    }
}

/// The measurements of a kind that ship in the binary.
pub fn shipped(kind: Kind) -> Result<String, ValidateError> {
    Ok(match kind {
        Kind::Training => measurements::training()?,
        Kind::Inference => measurements::inference()?,
        Kind::Latency => measurements::serving_latency()?,
    })
}

/// Judges every row of a measurement file with the shipped constants.
///
/// # Errors
/// A file that is no CSV.
pub fn judge(kind: Kind, text: &str) -> Result<Vec<Verdict>, ValidateError> {
    judge_by(kind, text, Engine::Analytical, &Gauge::default())
}

/// As [`judge`], by the engine that is named: the closed form, or the events, which take minutes on all cores.
///
/// # Errors
/// As [`judge`].
pub fn judge_by(kind: Kind, text: &str, engine: Engine, gauge: &Gauge) -> Result<Vec<Verdict>, ValidateError> {
    let catalog = Catalog::built_in();
    let judge = Judge { hardware: &Hardware::of(&catalog), models: &Models::of(&catalog), engine };
    let rows = table::read(text)?;
    gauge.expect(rows.len() as u64);
    let contradicted = match kind {
        Kind::Inference => contradiction::contradicted(&rows),
        Kind::Training | Kind::Latency => Vec::new(),
    };
    let all = |(at, row): &(usize, &Row)| match kind {
        Kind::Training => vec![judge.training(row)],
        Kind::Inference => vec![judge.inference(row, contradicted.get(*at).copied().flatten())],
        Kind::Latency => judge.latency(row),
    };
    let rows: Vec<(usize, &Row)> = rows.iter().enumerate().collect();
    if !engine.simulates() {
        return Ok(rows.iter().flat_map(all).collect());
    }
    let counted = |row: &(usize, &Row)| {
        let verdicts = all(row);
        gauge.advance(1);
        verdicts
    };
    Ok(on_all_cores(&rows, |_| gauge.cancelled(), counted).into_iter().flatten().collect())
}

/// What a row is judged by.
#[derive(Clone, Copy)]
struct Judge<'a> {
    hardware: &'a Hardware,
    models: &'a Models,
    engine: Engine,
}

/// What becomes of a row that states something that is not simulated.
const NOT_SIMULATED: &str = "not simulated: no memory is left for keys and values, or the layout is none";

/// A row that cannot be predicted.
fn refused(row: &Row, metric: &'static str, accelerator: &str, reason: &str) -> Verdict {
    Verdict {
        id: row.text("id").to_owned(),
        metric,
        source: row.text("source").to_owned(),
        accelerator: row.text(accelerator).to_owned(),
        regime: "",
        measured: None,
        predicted: None,
        lower: None,
        upper: None,
        reason: Some(reason.to_owned()),
    }
}

impl Judge<'_> {
    fn training(self, row: &Row) -> Verdict {
        const METRIC: &str = "tokens_per_sec_per_accel";
        let case = match training_rows::case(row, self.hardware, self.models) {
            Ok(case) => case,
            Err(reason) => return refused(row, METRIC, "accelerator", reason),
        };
        let each = match self.engine {
            Engine::Event => simulated::training::rate(&case.input),
            _ => Some(training::estimate(&case.input, &Constants::default()).tokens_per_second_per_accelerator),
        };
        let Some(each) = each else { return refused(row, METRIC, "accelerator", NOT_SIMULATED) };
        let predicted = each * case.devices;
        let (low, high) = interval::bounds(&case.input);
        Verdict {
            id: case.id,
            metric: METRIC,
            source: case.source,
            accelerator: case.accelerator,
            regime: Regime::of(&case.input).name(),
            measured: Some(case.measured),
            predicted: Some(predicted),
            lower: Some(predicted * low),
            upper: Some(predicted * high),
            reason: None,
        }
    }

    /// `contradicted`: why another row of the file makes this one unfit to be judged.
    fn inference(self, row: &Row, contradicted: Option<&'static str>) -> Verdict {
        let case = serving_rows::case(row, self.hardware, self.models);
        match contradicted.map_or(case, Err) {
            Ok(case) => self.served(&case, self.figures(&case), row, "accelerator"),
            Err(reason) => refused(row, "throughput", "accelerator", reason),
        }
    }

    fn latency(self, row: &Row) -> Vec<Verdict> {
        match latency_rows::cases(row, self.hardware, self.models) {
            Ok(cases) => {
                // One run has both a first token and those after it.
                let figures = self.figures(&cases[0]);
                cases.iter().map(|case| self.served(case, figures, row, "system")).collect()
            }
            Err(reason) => ["ttft_ms", "tpot_ms"].map(|metric| refused(row, metric, "system", reason)).into(),
        }
    }

    /// What the engine says of a case's scenario.
    fn figures(self, case: &Case) -> Option<ServingEstimate> {
        match self.engine {
            Engine::Event => simulated::serving::figures(&case.input),
            _ => Some(serving::estimate(&case.input, &ServingConstants::default())),
        }
    }

    fn served(self, case: &Case, figures: Option<ServingEstimate>, row: &Row, accelerator: &str) -> Verdict {
        let seconds = matches!(case.metric, Metric::Ttft | Metric::Tpot);
        let scale = if seconds { 1000.0 } else { 1.0 };
        let Some(figures) = figures else { return refused(row, metric_name(case.metric), accelerator, NOT_SIMULATED) };
        let predicted = serving_fit::figure(case, &figures) * scale;
        let factors = case.interval();
        Verdict {
            id: case.id.clone(),
            metric: metric_name(case.metric),
            source: case.source.clone(),
            accelerator: case.accelerator.clone(),
            regime: case.regime,
            measured: Some(case.measured * scale),
            predicted: Some(predicted),
            lower: Some(predicted * factors.low),
            upper: Some(predicted * factors.high),
            reason: None,
        }
    }
}

fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::OutputRate => "output_tokens_per_sec_total",
        Metric::TotalRate => "total_tokens_per_sec",
        Metric::RequestRate => "requests_per_sec",
        Metric::Ttft => "ttft_ms",
        Metric::Tpot => "tpot_ms",
    }
}
