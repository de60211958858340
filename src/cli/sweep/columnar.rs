//! Points of a sweep as row groups of a Parquet file.

use std::io;

use super::file::Output;
use super::rows::{VERDICTS, verdict};
use atlas_plan::estimate::Metric;
use atlas_plan::estimate::standing::is_available;
use atlas_plan::knob::Setting;
use atlas_plan::search::sweep::{Row, Sweep};
use atlas_report::parquet::{Column, ColumnKind, Group, MAGIC, Values, footer, group};

/// Rows per group. A group takes a few megabytes, and is the most that a killed sweep has to repeat.
const GROUP: usize = 1 << 16;

/// Points of a block as written by a worker: dictionary indices row by row, and numbers.
#[derive(Default)]
pub(super) struct Batch {
    places: Vec<u32>,
    figures: Vec<f64>,
}

/// Columns of a sweep, and the pending rows of the next group.
pub(super) struct Columnar<'s> {
    metrics: &'s [&'static Metric],
    /// For each contender, whether each metric applies.
    applies: Vec<Vec<bool>>,
    columns: Vec<Column>,
    pending: Vec<Values>,
    rows: usize,
    /// First point after the pending rows.
    next: u64,
}

impl<'s> Columnar<'s> {
    pub(super) fn new(sweep: &Sweep, metrics: &'s [&'static Metric]) -> Columnar<'s> {
        let names = |name: &dyn Fn(&atlas_plan::scenario::Parts) -> String| {
            ColumnKind::Words(sweep.contenders.iter().map(|(parts, _)| name(parts)).collect())
        };
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let mut columns = vec![
            column("target", names(&|parts| parts.target.name.to_string())),
            column("workload", names(&|parts| parts.workload.name.to_string())),
        ];
        columns.extend(sweep.space.axes().iter().map(|axis| {
            let number = |value: &Setting| match value {
                Setting::Number(number) => Some(*number),
                _ => None,
            };
            let numbers: Option<Vec<f64>> = axis.values.iter().map(number).collect();
            let words = || ColumnKind::Words(axis.values.iter().map(Setting::to_string).collect());
            column(axis.knob.name(), numbers.map_or_else(words, ColumnKind::Numbers))
        }));
        columns.extend(metrics.iter().map(|metric| column(metric.name, ColumnKind::Figures)));
        columns.push(column("verdict", ColumnKind::Words(VERDICTS.map(str::to_owned).to_vec())));
        let applies = sweep
            .contenders
            .iter()
            .map(|(_, scenario)| metrics.iter().map(|metric| metric.applies_to(scenario)).collect());
        let mut columnar =
            Columnar { metrics, applies: applies.collect(), columns, pending: Vec::new(), rows: 0, next: 0 };
        columnar.empty();
        columnar
    }

    /// The file header.
    pub(super) fn header(&self) -> Vec<u8> {
        MAGIC.to_vec()
    }

    fn empty(&mut self) {
        let values = |column: &Column| match column.kind {
            ColumnKind::Figures => Values::Figures(Vec::new()),
            _ => Values::Places(Vec::new()),
        };
        self.pending = self.columns.iter().map(values).collect();
        self.rows = 0;
    }

    /// Writes a point.
    pub(super) fn write_row(&self, out: &mut Batch, row: &Row<'_>) {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        // The contender's index also serves as dictionary index for target and workload.
        out.places.extend([place(row.contender), place(row.contender)]);
        out.places.extend(row.digits.iter().map(|digit| place(*digit)));
        let described = verdict(row.estimate);
        out.places.push(place(VERDICTS.iter().position(|known| *known == described).unwrap_or_default()));
        let applies = self.applies.get(row.contender).map_or(&[][..], |applies| applies);
        out.figures.extend(self.metrics.iter().zip(applies).map(|(metric, applies)| {
            let held = *applies && is_available(metric, row.estimate);
            // The columns have NaN where there is no value.
            metric.value(row.estimate, row.scenario).filter(|_| held).unwrap_or(f64::NAN)
        }));
    }

    /// Adds a block; writes a group when there are enough rows.
    pub(super) fn take(&mut self, batch: &Batch, next: u64, output: &mut Output) -> io::Result<()> {
        let (mut places, mut figures) = (0, 0);
        for values in &mut self.pending {
            match values {
                Values::Places(_) => places += 1,
                Values::Figures(_) => figures += 1,
            }
        }
        let (mut place, mut figure) = (0, 0);
        for values in &mut self.pending {
            match values {
                Values::Places(all) => {
                    all.extend(batch.places.iter().skip(place).step_by(places));
                    place += 1;
                    self.rows = all.len();
                }
                Values::Figures(all) => {
                    all.extend(batch.figures.iter().skip(figure).step_by(figures.max(1)));
                    figure += 1;
                }
            }
        }
        self.next = next;
        if self.rows >= GROUP { self.flush(output) } else { Ok(()) }
    }

    fn flush(&mut self, output: &mut Output) -> io::Result<()> {
        if self.next == 0 {
            return Ok(());
        }
        let mut bytes = Vec::new();
        let described: Vec<Group> = if self.rows > 0 {
            vec![group(&self.columns, &self.pending, output.bytes(), &mut bytes)]
        } else {
            Vec::new()
        };
        output.write_group(&bytes, self.next, described)?;
        self.empty();
        Ok(())
    }

    /// Writes pending rows and the footer. The file is then readable even if the sweep is incomplete and resumed later.
    pub(super) fn end(&mut self, output: &mut Output) -> io::Result<()> {
        self.flush(output)?;
        let end = footer(&self.columns, output.groups());
        output.write_end(&end)
    }
}
