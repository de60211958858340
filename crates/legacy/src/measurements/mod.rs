//! Tables of measurements with the columns of version 0.1, whose meaning is partly in notes, names and dates, converted
//! to typed ones. Every value that is not copied verbatim is listed with its reason in the row.

mod architecture;
mod contradictions;
mod devices;
mod latency;
mod names;
mod record;
mod schema;
mod serving;
mod software;
mod table;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
mod text;
mod training;

use std::fmt;

use atlas_catalog::Catalog;

use record::Record;

/// The kinds of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// Throughput of training runs.
    Training,
    /// Throughput of serving.
    Inference,
    /// Time to first token and per output token of serving.
    Latency,
}

impl TableKind {
    /// All of them.
    #[cfg(test)]
    const ALL: [TableKind; 3] = [TableKind::Training, TableKind::Inference, TableKind::Latency];

    /// The kind of a table, by its columns.
    fn of(headers: &[String]) -> Option<TableKind> {
        let has = |column: &str| headers.iter().any(|name| table::canonical(name).eq_ignore_ascii_case(column));
        if has("silicon_ttft_ms") || has("silicon_tpot_ms") {
            Some(TableKind::Latency)
        } else if has("seq_len") && !has("input_len") {
            Some(TableKind::Training)
        } else if has("input_len") || has("engine") {
            Some(TableKind::Inference)
        } else if has("framework") {
            Some(TableKind::Training)
        } else {
            None
        }
    }
}

/// Why a table cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The text is no CSV.
    #[error("not CSV: {0}")]
    Csv(#[from] csv::Error),
    /// The columns are those of no kind.
    #[error(
        "the first line names the columns of no kind of measurements: expected seq_len and framework (training), \
         input_len and engine (inference) or silicon_ttft_ms (latency); found \"{0}\"; or pass --kind"
    )]
    Columns(String),
}

/// Whether a conversion reads prose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prose {
    /// Notes, source and date are read: for a conversion that is checked by hand.
    Read,
    /// Only typed cells are read; prose is copied.
    Ignore,
}

/// Columns of prose.
const PROSE: [&str; 4] = ["source", "source_path", "date", "notes"];

/// The result of a conversion.
#[derive(Debug, Default)]
pub struct Report {
    typed_before: bool,
    rows: usize,
    excluded: usize,
    inferred: usize,
    cells: [usize; 3],
    problems: Vec<(String, record::Problem)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.typed_before {
            return writeln!(f, "{} rows, already typed: copied unchanged", self.rows);
        }
        for (id, problem) in &self.problems {
            writeln!(f, "{id}: {}: found \"{}\", expected {}", problem.column, problem.found, problem.expected)?;
        }
        let [converted, assumed, inferred] = self.cells;
        writeln!(f, "{} rows, {} excluded, {} with inferred values", self.rows, self.excluded, self.inferred)?;
        writeln!(f, "cells: {converted} converted, {assumed} assumed, {inferred} inferred")?;
        let mut columns: Vec<(&str, usize)> = Vec::new();
        for (_, problem) in &self.problems {
            match columns.iter_mut().find(|(name, _)| *name == problem.column) {
                Some((_, count)) => *count += 1,
                None => columns.push((&problem.column, 1)),
            }
        }
        let listed: Vec<String> = columns.iter().map(|(name, count)| format!("{name} {count}")).collect();
        match listed.is_empty() {
            true => writeln!(f, "nothing left unconverted"),
            false => writeln!(f, "not converted: {}", listed.join(", ")),
        }
    }
}

/// Whether CSV text has the columns of version 0.1 rather than typed ones.
#[must_use]
pub fn is_old(text: &str) -> bool {
    let Ok((headers, _)) = table::head(text) else { return false };
    let has = |column: &str| headers.iter().any(|name| name.eq_ignore_ascii_case(column));
    // Columns that no typed table has.
    const OLD: [&str; 6] =
        ["params_b", "intra_node_link", "inter_node_link", "speculative", "silicon_ttft_ms", "silicon_tpot_ms"];
    !schema::is_typed(&headers) && OLD.iter().any(|column| has(column))
}

/// Converts the text of a table. `kind` is that of its columns where none is given.
///
/// # Errors
/// Text that is no CSV, or columns of no kind.
pub fn convert(text: &str, kind: Option<TableKind>, prose: Prose) -> Result<(String, Report), ConvertError> {
    let (headers, rows) = table::read(text)?;
    if schema::is_typed(&headers) {
        return Ok((text.to_owned(), Report { typed_before: true, rows: rows.len(), ..Report::default() }));
    }
    let Some(kind) = kind.or_else(|| TableKind::of(&headers)) else {
        return Err(ConvertError::Columns(headers.join(",").chars().take(120).collect()));
    };
    let catalog = Catalog::built_in();
    let converted = |row: &table::Row| match kind {
        TableKind::Training => training::convert(row, &catalog),
        TableKind::Inference => serving::convert(row, &catalog),
        TableKind::Latency => latency::convert(row, &catalog),
    };
    let mut records: Vec<Record> = rows
        .iter()
        .map(|row| match prose {
            Prose::Read => converted(row),
            Prose::Ignore => {
                let mut record = converted(&row.without(&PROSE));
                PROSE.iter().for_each(|column| record.keep(column, row.text(column)));
                record
            }
        })
        .collect();
    match kind {
        TableKind::Inference => {
            for (record, reason) in records.iter_mut().zip(contradictions::contradicted(&rows)) {
                if let Some(reason) = reason {
                    record.exclude(reason);
                }
            }
        }
        TableKind::Latency => latency::duplicates(&mut records),
        TableKind::Training => {}
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(schema::columns(kind).map(|column| column.name))?;
    let mut report = Report { rows: records.len(), ..Report::default() };
    for (at, record) in records.iter().enumerate() {
        writer.write_record(record.row())?;
        let counts = record.counts();
        for (sum, count) in report.cells.iter_mut().zip(counts) {
            *sum += count;
        }
        report.excluded += usize::from(record.is_excluded());
        report.inferred += usize::from(counts[2] > 0);
        let id = match record.text("id") {
            "" => format!("row {}", at + 2),
            id => id.to_owned(),
        };
        report.problems.extend(record.problems.iter().map(|problem| (id.clone(), problem.clone())));
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), report))
}

/// A date as `YYYY-MM-DD` or `YYYY-MM`: `20260216` and `2026/02/16` too; other text stays.
fn iso_date(text: &str) -> String {
    let text = text.trim().replace(['/', '.'], "-");
    let digits = text.len() >= 8 && text.bytes().take(8).all(|b| b.is_ascii_digit());
    match (digits, text.get(..4), text.get(4..6), text.get(6..8)) {
        (true, Some(year), Some(month), Some(day)) => format!("{year}-{month}-{day}"),
        _ => text,
    }
}
