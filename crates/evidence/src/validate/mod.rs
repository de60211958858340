//! Validation of the engines with published measurements.
//!
//! A row of a measurement table is converted to target and workload documents ([`documents`]), resolved to a scenario
//! by the same code as documents of users ([`case`]), and estimated by the engine facade. [`judge`] compares the
//! estimate and its interval with the measured value. [`fit`] fits the constants, [`held_out`] does so with one source
//! left out at a time, and [`conformal`] derives the intervals from these errors. Sources of the [`exam`] are excluded
//! from all of this.

pub mod accuracy;
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
pub mod unit;
pub mod verdict;

use atlas_catalog::{Catalog, measurements};
use atlas_core::cores::parallel_map;
use atlas_core::plan::Engine;
use atlas_perf::interval::Release;
use atlas_plan::engine;
use atlas_plan::engine::answer::event;
use atlas_plan::estimate::Estimate;
use atlas_plan::search::Gauge;
pub use refit::{Band, Refit, exam as examination, refit};

use case::{Metric, RowScenario, measured, predicted, regime};
pub use table::BadCell;
use table::Row;
use verdict::Verdict;

/// Reason why measurements cannot be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// The columns match no kind of measurements.
    #[error(
        "unknown kind of measurements; expected the columns `seq_len` and `accelerator` (training), `input_len` and \
         `engine` (inference), or `silicon_ttft_ms` (latency) in line 1; found \"{0}\""
    )]
    Columns(String),
    /// The header contains a column twice.
    #[error("line 1: duplicate column `{column}` in the header, at positions {first} and {again}; remove one of them")]
    Twice {
        /// The column.
        column: String,
        /// Position of the first occurrence, from 1.
        first: usize,
        /// Position of the repetition.
        again: usize,
    },
    /// The file is not valid CSV.
    #[error("not CSV: {0}")]
    Csv(#[from] csv::Error),
    /// The shipped measurements cannot be decompressed.
    #[error("the shipped measurements are damaged: {0}")]
    Shipped(#[from] std::io::Error),
}

/// The kinds of measurement files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MeasurementKind {
    /// Throughput of training runs.
    Training,
    /// Throughput of serving.
    Inference,
    /// TTFT and TPOT of serving.
    Latency,
}

impl MeasurementKind {
    /// All kinds.
    pub const ALL: [MeasurementKind; 3] =
        [MeasurementKind::Training, MeasurementKind::Inference, MeasurementKind::Latency];

    /// `training`, `inference`, `latency`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MeasurementKind::Training => "training",
            MeasurementKind::Inference => "inference",
            MeasurementKind::Latency => "latency",
        }
    }

    /// Metrics of its rows; `None`: the one of several throughputs that a row states.
    #[must_use]
    pub const fn metrics(self) -> &'static [Option<Metric>] {
        match self {
            MeasurementKind::Training => &[Some(Metric::TrainingRate)],
            MeasurementKind::Inference => &[None],
            MeasurementKind::Latency => &[Some(Metric::Ttft), Some(Metric::Tpot)],
        }
    }

    /// Heading for display.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            MeasurementKind::Training => "Training: tokens per second per accelerator",
            MeasurementKind::Inference => "Inference: serving throughput",
            MeasurementKind::Latency => "Serving latency: TTFT and TPOT",
        }
    }

    /// Determines the kind of a file from its columns.
    pub fn of(text: &str) -> Result<MeasurementKind, ValidateError> {
        let head = text.lines().next().unwrap_or_default();
        let has = |column: &str| head.split(',').any(|name| columns::canonical(name) == column);
        const RATES: [&str; 4] =
            ["output_tokens_per_sec", "total_tokens_per_sec", "tokens_per_sec_per_accel", "requests_per_sec"];
        if has("seq_len") && has("accelerator") {
            return Ok(MeasurementKind::Training);
        }
        // Serving tables share their columns: one without any throughput is a table of latencies.
        let rates = table::read(text)?.iter().any(|row| RATES.iter().any(|rate| row.positive(rate).is_some()));
        if has("input_len") && rates {
            Ok(MeasurementKind::Inference)
        } else if has("ttft_ms") || has("tpot_ms") {
            Ok(MeasurementKind::Latency)
        } else {
            Err(ValidateError::Columns(head.chars().take(120).collect()))
        }
    }
}

/// Returns the measurements of a kind that are embedded in the binary.
pub fn shipped(kind: MeasurementKind) -> Result<String, ValidateError> {
    Ok(match kind {
        MeasurementKind::Training => measurements::training()?,
        MeasurementKind::Inference => measurements::inference()?,
        MeasurementKind::Latency => measurements::serving_latency()?,
    })
}

/// Evaluates every row of a measurement file with the shipped constants.
///
/// # Errors
/// Returns an error if the file is not valid CSV.
pub fn judge(kind: MeasurementKind, text: &str) -> Result<Vec<Verdict>, ValidateError> {
    judge_by(kind, text, Method::default(), &Gauge::default())
}

/// How rows are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// Engine of the predictions. The simulation takes minutes on all cores.
    pub engine: Engine,
    /// [`Release::Assumed`] withholds the releases given in rows, so that they are predicted as for users who give
    /// none.
    pub release: Release,
}

impl Default for Method {
    fn default() -> Method {
        Method { engine: Engine::Analytical, release: Release::Stated }
    }
}

/// Like [`judge`], with another method.
///
/// # Errors
/// Returns the same errors as [`judge`].
pub fn judge_by(
    kind: MeasurementKind,
    text: &str,
    method: Method,
    gauge: &Gauge,
) -> Result<Vec<Verdict>, ValidateError> {
    let rows = table::read(text)?;
    gauge.add_expected(rows.len() as u64);
    if gauge.canceled() {
        return Ok(Vec::new());
    }
    let catalog = Catalog::built_in();
    let judge = RowEvaluator { kind, catalog: &catalog, method, gauge };
    let rows: Vec<(&Row, Option<&Row>)> = rows.iter().zip(table::duplicates(&rows)).collect();
    let counted = |(row, copy_of): &(&Row, Option<&Row>)| {
        let mut verdicts = judge.row(row);
        if gauge.canceled() {
            // A canceled simulation has no result.
            return Vec::new();
        }
        for verdict in &mut verdicts {
            verdict.copy_of = copy_of.map(|first| first.text("id").to_owned());
        }
        gauge.advance(1);
        verdicts
    };
    if method.engine.simulates() {
        return Ok(parallel_map(&rows, |_| gauge.canceled(), counted).into_iter().flatten().collect());
    }
    Ok(rows.iter().take_while(|_| !gauge.canceled()).flat_map(counted).collect())
}

/// Returns the cells of a table that their columns do not accept. Rows with such cells are not predicted.
///
/// # Errors
/// Returns an error if the file is not valid CSV.
pub fn bad_cells(text: &str) -> Result<Vec<BadCell>, ValidateError> {
    Ok(table::read(text)?.iter().filter(|row| row.text("excluded").is_empty()).flat_map(Row::bad_cells).collect())
}

/// Returns the scenarios of all usable rows, as lines for `atlas run --batch`, and the total number of rows.
///
/// # Errors
/// Returns an error if the file is not valid CSV.
pub fn scenarios(kind: MeasurementKind, text: &str) -> Result<(Vec<serde_json::Value>, usize), ValidateError> {
    let catalog = Catalog::built_in();
    let rows = table::read(text)?;
    let stated = |row: &Row| {
        let found = usable(row, kind, &catalog).ok()?;
        measured(row, kind, &found).ok()?;
        Some(found.documents.line(row.text("id")))
    };
    Ok((rows.iter().filter_map(stated).collect(), rows.len()))
}

/// Evaluates the rows of a table.
#[derive(Clone, Copy)]
pub(crate) struct RowEvaluator<'a> {
    pub(crate) kind: MeasurementKind,
    pub(crate) catalog: &'a Catalog,
    pub(crate) method: Method,
    /// Progress, and cancellation of the simulations.
    pub(crate) gauge: &'a Gauge,
}

impl RowEvaluator<'_> {
    /// Returns one verdict for every measured metric of a row, or verdicts with the reason why it cannot be predicted.
    fn row(self, row: &Row) -> Vec<Verdict> {
        self.evaluate_row(row).map(|(_, verdicts)| verdicts).unwrap_or_else(|reason| {
            self.kind.metrics().iter().map(|metric| Verdict::refused(row, *metric, &reason)).collect()
        })
    }

    /// Returns the scenario of a row, and one verdict for every measured metric.
    pub(crate) fn evaluate_row(self, row: &Row) -> Result<(RowScenario, Vec<Verdict>), String> {
        let mut found = usable(row, self.kind, self.catalog)?;
        let figures = measured(row, self.kind, &found)?;
        if self.method.release == Release::Assumed {
            found = found.without_release(self.catalog)?;
        }
        let mut scenario = found.scenario.clone();
        scenario.engine = self.method.engine;
        let mut estimate = Estimate::default();
        if !scenario.engine.simulates() {
            engine::estimate_into(&scenario, &mut estimate);
        } else if !event::estimate_until(&scenario, &self.gauge.part(), &mut estimate) {
            return Err("the simulation was stopped".to_owned());
        }
        estimate.finite()?;
        let input = case::Input::of(&found).ok_or("the model or the accelerator is not known")?;
        let judge = |figure: &case::Measured| {
            let metric = figure.metric;
            let Some([value, lower, upper]) = predicted(&estimate, metric, found.documents.accelerators) else {
                return Verdict::refused(row, Some(metric), "the engine's estimate is not finite");
            };
            Verdict {
                measured: Some(figure.value),
                predicted: Some(value),
                lower: Some(lower),
                upper: Some(upper),
                regime: regime(&input, metric),
                software: family(&scenario.active_software.name).to_owned(),
                format: scenario.format(&scenario.base).name(),
                reason: None,
                ..Verdict::refused(row, Some(metric), "")
            }
        };
        let verdicts = figures.iter().map(judge).collect();
        Ok((found, verdicts))
    }
}

/// Software family without the release: `vllm` for `vllm@0.11.0`.
#[must_use]
pub fn family(software: &str) -> &str {
    software.split('@').next().unwrap_or(software)
}

/// Resolves a row, unless it is excluded or has invalid cells.
fn usable(row: &Row, kind: MeasurementKind, catalog: &Catalog) -> Result<RowScenario, String> {
    if !row.text("excluded").is_empty() {
        return Err(format!("excluded: {}", row.text("excluded")));
    }
    let bad: Vec<String> = row.bad_cells().map(|cell| cell.to_string()).collect();
    if !bad.is_empty() {
        return Err(bad.join("; "));
    }
    RowScenario::of(row, kind, catalog)
}
