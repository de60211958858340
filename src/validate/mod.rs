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
pub mod serving_models;
pub mod serving_rows;
pub mod serving_validation;
pub mod story;
pub mod table;
pub mod training_rows;
mod training_words;
pub mod verdict;

use crate::catalog::{Catalog, measurements};
use crate::engine::analytical::constants::Constants;
use crate::engine::analytical::serving::interval as interval_of_serving;
use crate::engine::analytical::serving_constants::ServingConstants;
use crate::engine::analytical::training::{self, Regime, interval};
pub use refit::refit;

use hardware::Hardware;
use models::Models;
use serving_rows::Metric;
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
pub fn judge(kind: Kind, text: &str) -> Result<Vec<Verdict>, ValidateError> {
    let catalog = Catalog::built_in();
    let (hardware, models) = (Hardware::of(&catalog), Models::of(&catalog));
    let rows = table::read(text)?;
    Ok(match kind {
        Kind::Training => rows.iter().map(|row| judge_training(row, &hardware, &models)).collect(),
        Kind::Inference => {
            let contradicted = contradiction::contradicted(&rows);
            let judged = rows.iter().zip(contradicted);
            judged.map(|(row, reason)| judge_inference(row, reason, &hardware, &models)).collect()
        }
        Kind::Latency => rows.iter().flat_map(|row| judge_latency(row, &hardware, &models)).collect(),
    })
}

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

fn judge_training(row: &Row, hardware: &Hardware, models: &Models) -> Verdict {
    const METRIC: &str = "tokens_per_sec_per_accel";
    let case = match training_rows::case(row, hardware, models) {
        Ok(case) => case,
        Err(reason) => return refused(row, METRIC, "accelerator", reason),
    };
    let predicted =
        training::estimate(&case.input, &Constants::default()).tokens_per_second_per_accelerator * case.devices;
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

fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::OutputRate => "output_tokens_per_sec_total",
        Metric::TotalRate => "total_tokens_per_sec",
        Metric::RequestRate => "requests_per_sec",
        Metric::Ttft => "ttft_ms",
        Metric::Tpot => "tpot_ms",
    }
}

fn served(case: serving_rows::Case) -> Verdict {
    let seconds = matches!(case.metric, Metric::Ttft | Metric::Tpot);
    let scale = if seconds { 1000.0 } else { 1.0 };
    let predicted = serving_fit::predicted(&case, &ServingConstants::default()) * scale;
    let factors = match case.metric {
        Metric::Ttft => interval_of_serving::ttft(&case.input),
        Metric::Tpot => interval_of_serving::tpot(&case.input),
        Metric::OutputRate | Metric::TotalRate | Metric::RequestRate => interval_of_serving::throughput(&case.input),
    };
    Verdict {
        id: case.id,
        metric: metric_name(case.metric),
        source: case.source,
        accelerator: case.accelerator,
        regime: case.regime,
        measured: Some(case.measured * scale),
        predicted: Some(predicted),
        lower: Some(predicted * factors.low),
        upper: Some(predicted * factors.high),
        reason: None,
    }
}

/// `contradicted`: why another row of the file makes this one unfit to be judged.
fn judge_inference(row: &Row, contradicted: Option<&'static str>, hardware: &Hardware, models: &Models) -> Verdict {
    let case = serving_rows::case(row, hardware, models);
    match contradicted.map_or(case, Err) {
        Ok(case) => served(case),
        Err(reason) => refused(row, "throughput", "accelerator", reason),
    }
}

fn judge_latency(row: &Row, hardware: &Hardware, models: &Models) -> Vec<Verdict> {
    match latency_rows::cases(row, hardware, models) {
        Ok(cases) => cases.map(served).into(),
        Err(reason) => ["ttft_ms", "tpot_ms"].map(|metric| refused(row, metric, "system", reason)).into(),
    }
}
