//! The engines compared with published measurements.
//!
//! A row of a measurement table becomes target and workload documents ([`documents`]), is resolved to a scenario by the
//! code that resolves what users write ([`case`]), and is answered by the engine facade. [`judge`] puts the figure and its
//! interval beside what was measured. [`fit`] and [`serving_fit`] fit the constants; [`crossval`] and
//! [`serving_validation`] do so with one source left out at a time, from which intervals follow.

pub mod case;
pub mod columns;
pub mod conformal;
pub mod documents;
pub mod exam;
pub mod fit;
mod least_squares;
pub mod refit;
pub mod report;
pub mod scatter;

pub mod held_out;
pub mod story;
pub mod table;
pub mod verdict;

use atlas_catalog::{Catalog, measurements};
use atlas_core::cores::on_all_cores;
use atlas_core::plan::Engine;
use atlas_plan::engine;
use atlas_plan::estimate::Estimate;
use atlas_plan::search::Gauge;
pub use refit::{Band, Refit, exam as examination, refit};

use case::{RowScenario, measured, predicted, regime};
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
        let has = |column: &str| head.split(',').any(|name| columns::canonical(name) == column);
        const RATES: [&str; 4] =
            ["output_tokens_per_sec", "total_tokens_per_sec", "tokens_per_sec_per_accel", "requests_per_sec"];
        if has("seq_len") && has("accelerator") {
            return Ok(Kind::Training);
        }
        // Serving tables share their columns: one without any throughput is one of latencies.
        let rates = table::read(text)?.iter().any(|row| RATES.iter().any(|rate| row.positive(rate).is_some()));
        if has("input_len") && rates {
            Ok(Kind::Inference)
        } else if has("ttft_ms") || has("tpot_ms") {
            Ok(Kind::Latency)
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
    let judge = Judge { kind, catalog: &catalog, engine };
    let rows = table::read(text)?;
    gauge.expect(rows.len() as u64);
    if !engine.simulates() {
        return Ok(rows.iter().flat_map(|row| judge.row(row)).collect());
    }
    let counted = |row: &Row| {
        let verdicts = judge.row(row);
        gauge.advance(1);
        verdicts
    };
    Ok(on_all_cores(&rows, |_| gauge.cancelled(), counted).into_iter().flatten().collect())
}

/// The scenarios of all rows that have one, as lines for `atlas run --batch`.
///
/// # Errors
/// A file that is no CSV.
pub fn scenarios(kind: Kind, text: &str) -> Result<Vec<serde_json::Value>, ValidateError> {
    let catalog = Catalog::built_in();
    let rows = table::read(text)?;
    let stated = |row: &Row| {
        let usable = row.text("excluded").is_empty();
        let found = usable.then(|| RowScenario::of(row, kind, &catalog).ok()).flatten()?;
        measured(row, kind, &found).ok()?;
        Some(found.documents.line(row.text("id")))
    };
    Ok(rows.iter().filter_map(stated).collect())
}

/// How rows are judged.
#[derive(Clone, Copy)]
struct Judge<'a> {
    kind: Kind,
    catalog: &'a Catalog,
    engine: Engine,
}

impl Judge<'_> {
    /// One verdict for every figure that a row states, or one with the reason why the row cannot be predicted.
    fn row(self, row: &Row) -> Vec<Verdict> {
        self.judged(row).unwrap_or_else(|reason| {
            let metrics: &[&'static str] = match self.kind {
                Kind::Training => &["tokens_per_sec_per_accel"],
                Kind::Inference => &["throughput"],
                Kind::Latency => &["ttft_ms", "tpot_ms"],
            };
            metrics.iter().map(|metric| Verdict::refused(row, metric, &reason)).collect()
        })
    }

    fn judged(self, row: &Row) -> Result<Vec<Verdict>, String> {
        if !row.text("excluded").is_empty() {
            return Err(format!("excluded: {}", row.text("excluded")));
        }
        let found = RowScenario::of(row, self.kind, self.catalog)?;
        let figures = measured(row, self.kind, &found)?;
        let mut scenario = found.scenario.clone();
        scenario.engine = self.engine;
        let mut estimate = Estimate::default();
        engine::estimate_into(&scenario, &mut estimate);
        estimate.finite()?;
        let input = match self.kind {
            Kind::Training => found.training().map(case::Input::Training),
            Kind::Inference | Kind::Latency => found.serving().map(case::Input::Serving),
        };
        let input = input.ok_or("the model or the accelerator is not known")?;
        let judge = |figure: &case::Measured| {
            let metric = figure.metric;
            let Some([value, lower, upper]) = predicted(&estimate, metric, found.documents.accelerators) else {
                return Verdict::refused(row, metric.name(), "the engine gives no finite figure");
            };
            Verdict {
                measured: Some(figure.value),
                predicted: Some(value),
                lower: Some(lower),
                upper: Some(upper),
                regime: regime(&input, metric),
                reason: None,
                ..Verdict::refused(row, metric.name(), "")
            }
        };
        Ok(figures.iter().map(judge).collect())
    }
}
