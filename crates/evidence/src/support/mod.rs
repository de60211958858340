//! Measured rows that support an estimate: their number for the accelerator, software, format and regime, and the
//! nearest row with the prediction error there.
//!
//! The rows are in an index that is embedded in the binary ([`atlas_catalog::evidence`]); [`csv()`] generates it.
//! [`FIELDS`] defines the distance between scenarios. It is a sum over fields with few distinct values, so the points
//! of every value are computed once, and a row takes one addition per field.

mod entries;
mod key;

use std::fmt;
use std::sync::OnceLock;

use atlas_catalog::evidence::{self, Column, Index};
use atlas_config::Mode;
use atlas_plan::estimate::MetricId;
use atlas_plan::scenario::{Parts, Scenario};
use serde::{Serialize, Serializer};

pub use entries::csv;
pub use key::{COMPARABLE, DistanceRule, FIELDS, Field, FieldId, Key};

use crate::validate::accuracy::AccuracyMetric;
use crate::validate::case::{Metric, regime};
use crate::validate::family;

/// Number of measured rows and of their sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Property that the rows share: `vllm`, `fp8`, `closed loop` ...
    pub of: String,
    /// Number of rows.
    pub rows: usize,
    /// Number of sources.
    pub sources: usize,
}

/// Evidence for one metric of an estimate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Support {
    /// The metric.
    pub figure: AccuracyMetric,
    /// Rows on this accelerator.
    pub accelerator: Count,
    /// Rows with this software family.
    pub software: Count,
    /// Rows with weights in this number format.
    pub format: Count,
    /// Rows in this regime.
    pub regime: Count,
    /// Rows that share all of these properties.
    pub all: Count,
    /// Nearest row, if there is any with this metric.
    pub nearest: Option<Nearest>,
}

/// Id of a measured row. Ids are stored compressed, so they are only decoded for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowId(usize);

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&evidence::id(self.0).unwrap_or_default())
    }
}

impl Serialize for RowId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A measured row near a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nearest {
    /// Id, as accepted by `atlas validate --row`.
    pub id: RowId,
    /// Publisher.
    pub source: &'static str,
    /// Distance from the scenario, in points.
    pub distance: f64,
    /// Whether the row is close enough to be evidence.
    pub comparable: bool,
    /// Fields in which it differs.
    pub differs: Vec<Difference>,
    /// Accelerator.
    pub accelerator: &'static str,
    /// Number of accelerators of the run.
    pub accelerators: &'static str,
    /// Model.
    pub model: &'static str,
    /// Software and release.
    pub software: String,
    /// Number format of the weights.
    pub format: &'static str,
    /// Measured metric: `output_tokens_per_sec_total`, `ttft_ms` ...
    pub metric: &'static str,
    /// Measured value.
    pub measured: f64,
    /// Prediction of the analytical engine for the row.
    pub predicted: f64,
    /// Lower bound of its 90 % interval.
    pub lower: f64,
    /// Upper bound of its 90 % interval.
    pub upper: f64,
    /// Relative error: predicted over measured, less one.
    pub error: f64,
    /// Whether the measured value is within the interval.
    pub inside: bool,
}

/// A field in which a row differs from the scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Name of the field.
    pub field: &'static str,
    /// Value in the scenario.
    pub here: String,
    /// Value in the row.
    pub there: &'static str,
    /// Contribution to the distance.
    pub points: f64,
}

impl Support {
    /// Summary in one line: number of similar rows, and the error at the nearest one.
    #[must_use]
    pub fn line(&self) -> String {
        let rows = |count: &Count| {
            let sources = if count.sources == 1 { "source" } else { "sources" };
            let plural = if count.rows == 1 { "row" } else { "rows" };
            format!("{} {plural}, {} {sources}", count.rows, count.sources)
        };
        let known = if self.accelerator.rows == 0 {
            "no measured row for this accelerator".to_owned()
        } else if self.all.rows == 0 {
            format!("{} on this accelerator, none similar", rows(&self.accelerator))
        } else {
            rows(&self.all)
        };
        match &self.nearest {
            Some(near) if near.comparable => format!("{known}; nearest: {}, {:+.0} %", near.name(), 100.0 * near.error),
            _ => format!("{known}; nothing comparable was measured"),
        }
    }
}

impl Nearest {
    /// Accelerator, model, format and software: `h100-sxm-80gb llama-3.1-70b fp8 vllm`.
    #[must_use]
    pub fn name(&self) -> String {
        let accelerator = self.accelerator.split_once('-').map_or(self.accelerator, |(_vendor, product)| product);
        format!("{accelerator} {} {} {}", self.model, self.format, family(&self.software))
    }
}

/// Returns the evidence for an estimate, throughput first. It is empty if the accelerator or the model is not in the
/// catalog, or if the engine does not derive its estimates from them.
#[must_use]
pub fn of(parts: &Parts, scenario: &Scenario) -> Vec<Support> {
    if !scenario.engine.models_hardware() {
        return Vec::new();
    }
    let (Some(key), Some(index)) = (Key::of(parts, scenario), index()) else { return Vec::new() };
    let figures: &[AccuracyMetric] = match scenario.mode() {
        Mode::Training => &[AccuracyMetric::Training],
        Mode::Inference => &[AccuracyMetric::Serving, AccuracyMetric::Tpot, AccuracyMetric::Ttft],
    };
    let search = Search::new(index, &key);
    figures.iter().filter_map(|figure| search.support(*figure)).collect()
}

/// Measured metric that is most relevant for a metric: the corresponding latency, or otherwise throughput.
#[must_use]
pub fn accuracy_metric(metric: MetricId, mode: Mode) -> AccuracyMetric {
    match (mode, metric) {
        (Mode::Training, _) => AccuracyMetric::Training,
        (Mode::Inference, MetricId::TtftMs | MetricId::TtftP99Ms) => AccuracyMetric::Ttft,
        (Mode::Inference, MetricId::TpotMs | MetricId::ItlP99Ms | MetricId::TokensPerSecPerUser) => {
            AccuracyMetric::Tpot
        }
        (Mode::Inference, _) => AccuracyMetric::Serving,
    }
}

/// Returns the evidence for throughput only.
#[must_use]
pub fn throughput(parts: &Parts, scenario: &Scenario) -> Option<Support> {
    if !scenario.engine.models_hardware() {
        return None;
    }
    let (key, index) = (Key::of(parts, scenario)?, index()?);
    let figure = if scenario.mode() == Mode::Training { AccuracyMetric::Training } else { AccuracyMetric::Serving };
    Search::new(index, &key).support(figure)
}

fn index() -> Option<&'static Index> {
    static INDEX: OnceLock<Option<Index>> = OnceLock::new();
    INDEX.get_or_init(Index::shipped).as_ref()
}

/// Distinct values of the column of every field as numbers, if they are numbers. Parsed only once, because the
/// interface searches evidence on every key press.
fn numbers(index: &Index) -> &'static [Vec<Option<f64>>] {
    static NUMBERS: OnceLock<Vec<Vec<Option<f64>>>> = OnceLock::new();
    NUMBERS.get_or_init(|| {
        let of = |field: &Field| {
            let values = index.column(field.name).map_or(&[][..], |column| column.values.as_slice());
            values.iter().map(|value| value.parse().ok()).collect()
        };
        FIELDS.iter().map(of).collect()
    })
}

/// Rows for each value of the column `figure`.
fn rows_of_figures(index: &Index) -> &'static [Vec<u16>] {
    static ROWS: OnceLock<Vec<Vec<u16>>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let Some(figures) = index.column("figure") else { return Vec::new() };
        let mut rows = vec![Vec::new(); figures.values.len()];
        for row in (0..index.rows).map_while(|row| u16::try_from(row).ok()) {
            if let Some(rows) = rows.get_mut(figures.code(row.into())) {
                rows.push(row);
            }
        }
        rows
    })
}

/// A search for rows near a key.
struct Search<'k> {
    index: &'static Index,
    key: &'k Key,
    /// For every field, its column and the points of each of its values.
    points: Vec<(&'static Column, Vec<f64>)>,
}

impl<'k> Search<'k> {
    fn new(index: &'static Index, key: &'k Key) -> Search<'k> {
        let points = FIELDS.iter().zip(&key.values).zip(numbers(index)).filter_map(|((field, value), numbers)| {
            let column = index.column(field.name)?;
            let cells = column.values.iter().zip(numbers);
            Some((column, cells.map(|(cell, number)| value.distance(field.points, cell, *number)).collect()))
        });
        Search { index, key, points: points.collect() }
    }

    /// Returns the first of the nearest rows, with its distance. Iterates over fields in the outer loop, so that the
    /// inner loop has no branches.
    fn nearest_row(&self, rows: &[u16]) -> Option<(usize, f64)> {
        let mut distances = vec![0.0; rows.len()];
        for (column, points) in &self.points {
            column.add(rows, points, &mut distances);
        }
        let pairs = rows.iter().zip(distances).map(|(row, distance)| (usize::from(*row), distance));
        pairs.reduce(|nearest, other| if other.1 < nearest.1 { other } else { nearest })
    }

    fn column(&self, field: FieldId) -> Option<&'static Column> {
        self.index.column(FIELDS.get(field as usize)?.name)
    }

    fn support(&self, figure: AccuracyMetric) -> Option<Support> {
        let column = |name: &str| self.index.column(name);
        let metric = Metric::ALL.into_iter().find(|metric| AccuracyMetric::of(*metric) == figure)?;
        let regime = regime(&self.key.input, metric).to_owned();
        let (figures, sources) = (column("figure")?, column("source")?);
        let wanted = figures.values.iter().position(|value| *value == figure.name());
        let rows = wanted.and_then(|wanted| rows_of_figures(self.index).get(wanted)).map_or(&[][..], Vec::as_slice);
        let common = |column: &'static Column, value: String| {
            let code = column.values.iter().position(|known| *known == value);
            Common { column, code, value, tally: Tally::new(sources) }
        };
        let shared = |field: FieldId| Some(common(self.column(field)?, self.key.cell(field)));
        let mut common = [
            shared(FieldId::Accelerator)?,
            shared(FieldId::Software)?,
            shared(FieldId::Format)?,
            common(column("regime")?, regime),
        ];
        let mut all = Tally::new(sources);
        for row in rows.iter().map(|row| usize::from(*row)) {
            let source = sources.code(row);
            let mut alike = true;
            for common in &mut common {
                alike &= common.count(row, source);
            }
            if alike {
                all.add(source);
            }
        }
        let [accelerator, software, format, regime] = common.map(Common::done);
        let words = [&accelerator.of, &software.of, &format.of, &regime.of].map(String::as_str).join(", ");
        Some(Support {
            figure,
            accelerator,
            software,
            format,
            regime,
            all: all.done(words),
            nearest: self.nearest_row(rows).and_then(|(row, distance)| self.nearest(row, distance)),
        })
    }

    fn nearest(&self, row: usize, distance: f64) -> Option<Nearest> {
        let text = |name: &str| self.index.column(name).map_or("", |column| column.text(row));
        let [measured, predicted, lower, upper] = self.index.figures(row)?.map(|figure| key::figure(f64::from(figure)));
        let differs = FIELDS.iter().zip(&self.key.values).zip(&self.points).filter_map(|((field, value), points)| {
            let (column, points) = points;
            let points = points.get(column.code(row)).copied().filter(|points| *points > 0.0)?;
            Some(Difference { field: field.name, here: value.cell(), there: column.text(row), points })
        });
        let field = |id: FieldId| self.column(id).map_or("", |column| column.text(row));
        let (family, release) = (field(FieldId::Software), field(FieldId::Release));
        Some(Nearest {
            id: RowId(row),
            source: text("source"),
            distance,
            comparable: distance <= COMPARABLE,
            differs: differs.collect(),
            accelerator: field(FieldId::Accelerator),
            accelerators: field(FieldId::Accelerators),
            model: field(FieldId::Model),
            software: if release.is_empty() { family.to_owned() } else { format!("{family}@{release}") },
            format: field(FieldId::Format),
            metric: text("metric"),
            measured,
            predicted,
            lower,
            upper,
            error: predicted / measured - 1.0,
            inside: (lower..=upper).contains(&measured),
        })
    }
}

/// Counts rows and their sources.
struct Tally {
    rows: usize,
    sources: Vec<bool>,
}

impl Tally {
    fn new(sources: &Column) -> Tally {
        Tally { rows: 0, sources: vec![false; sources.values.len()] }
    }

    fn add(&mut self, source: usize) {
        self.rows += 1;
        if let Some(seen) = self.sources.get_mut(source) {
            *seen = true;
        }
    }

    fn done(self, of: String) -> Count {
        Count { of, rows: self.rows, sources: self.sources.iter().filter(|seen| **seen).count() }
    }
}

/// Counts rows that have a value of a column in common.
struct Common {
    column: &'static Column,
    code: Option<usize>,
    value: String,
    tally: Tally,
}

impl Common {
    /// Counts a row if it has the value. Returns whether it has.
    fn count(&mut self, row: usize, source: usize) -> bool {
        let alike = Some(self.column.code(row)) == self.code;
        if alike {
            self.tally.add(source);
        }
        alike
    }

    fn done(self) -> Count {
        self.tally.done(self.value)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_evidence_row_is_listed_under_its_metric() {
        let index = index().unwrap();
        let figures = index.column("figure").unwrap();
        let mut seen = vec![false; index.rows];
        for (code, rows) in rows_of_figures(index).iter().enumerate() {
            assert!(rows.is_sorted());
            for row in rows.iter().map(|row| usize::from(*row)) {
                assert_eq!(figures.code(row), code);
                seen[row] = true;
            }
        }
        assert!(seen.iter().all(|seen| *seen), "a row has no figure");
    }

    #[test]
    fn points_are_added_per_row_for_one_and_two_byte_columns() {
        let index = index().unwrap();
        let rows: Vec<u16> = (0..u16::try_from(index.rows).unwrap()).collect();
        for row in (0..index.rows).step_by(index.rows / 7) {
            // The points are the difference of the codes, for fields of one byte and of two bytes.
            let points = index.columns.iter().filter(|column| column.values.len() > 1).map(|column| {
                let own = column.code(row);
                let points = (0..column.values.len()).map(|code| 0.37 * code.abs_diff(own) as f64);
                (column, points.collect::<Vec<f64>>())
            });
            let points: Vec<_> = points.collect();
            let mut sums = vec![0.0; rows.len()];
            points.iter().for_each(|(column, points)| column.add(&rows, points, &mut sums));
            for (other, sum) in sums.iter().enumerate().step_by(97) {
                let expected = points.iter().fold(0.0, |sum, (column, points)| sum + points[column.code(other)]);
                assert_eq!(*sum, expected, "row {other}");
            }
            assert_eq!(sums[row], 0.0);
        }
    }
}
