//! Conversion of measurement tables from the columns of version 0.1, where part of the information is in notes, names
//! and dates, to typed columns. Every value that is not copied verbatim is listed in its row, with the reason.

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

/// Kind of a measurement table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// Training throughput.
    Training,
    /// Serving throughput.
    Inference,
    /// Serving latency: TTFT and TPOT.
    Latency,
}

impl TableKind {
    /// All kinds.
    #[cfg(test)]
    const ALL: [TableKind; 3] = [TableKind::Training, TableKind::Inference, TableKind::Latency];

    /// Detects the kind of a table from its column names.
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

/// Error of the conversion of a table.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The text is not CSV.
    #[error("not CSV: {0}")]
    Csv(#[from] csv::Error),
    /// The columns do not match any kind. Holds the start of the header.
    #[error(
        "the columns in the first line match no kind of measurement table: expected seq_len and framework (training), \
         input_len and engine (inference) or silicon_ttft_ms (latency), found \"{0}\"; pass --kind to set the kind"
    )]
    Columns(String),
}

/// Whether the conversion extracts values from free text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeText {
    /// Values are extracted from notes, source and date. The result should be checked by hand.
    Read,
    /// Free text is copied only. Values come from the other cells.
    Ignore,
}

/// Columns with free text.
const FREE_TEXT_COLUMNS: [&str; 4] = ["source", "source_path", "date", "notes"];

/// Statistics and problems of a conversion; `Display` renders them for the user.
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
            return writeln!(f, "{} rows, which already have typed columns: copied unchanged", self.rows);
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
            true => writeln!(f, "all cells were converted"),
            false => writeln!(f, "not converted: {}", listed.join(", ")),
        }
    }
}

/// Whether CSV text has the columns of version 0.1 rather than typed ones.
#[must_use]
pub fn is_untyped(text: &str) -> bool {
    let Ok((headers, _)) = table::head(text) else { return false };
    let has = |column: &str| headers.iter().any(|name| name.eq_ignore_ascii_case(column));
    // Columns that do not occur in typed tables.
    const UNTYPED_COLUMNS: [&str; 6] =
        ["params_b", "intra_node_link", "inter_node_link", "speculative", "silicon_ttft_ms", "silicon_tpot_ms"];
    !schema::is_typed(&headers) && UNTYPED_COLUMNS.iter().any(|column| has(column))
}

/// Converts a table, given as CSV text. By default, the kind is detected from the columns. A table with typed columns
/// is returned unchanged.
///
/// # Errors
/// Returns an error if the text is not CSV, or if `kind` is `None` and the columns do not match any kind.
pub fn convert(text: &str, kind: Option<TableKind>, prose: FreeText) -> Result<(String, Report), ConvertError> {
    let (headers, rows) = table::read(text)?;
    if schema::is_typed(&headers) {
        return Ok((text.to_owned(), Report { typed_before: true, rows: rows.len(), ..Report::default() }));
    }
    let Some(kind) = kind.or_else(|| TableKind::of(&headers)) else {
        return Err(ConvertError::Columns(headers.join(",").chars().take(120).collect()));
    };
    let catalog = Catalog::built_in();
    let convert_row = |row: &table::Row| match kind {
        TableKind::Training => training::convert(row, &catalog),
        TableKind::Inference => serving::convert(row, &catalog),
        TableKind::Latency => latency::convert(row, &catalog),
    };
    let mut records: Vec<Record> = rows
        .iter()
        .map(|row| match prose {
            FreeText::Read => convert_row(row),
            FreeText::Ignore => {
                let mut record = convert_row(&row.without(&FREE_TEXT_COLUMNS));
                FREE_TEXT_COLUMNS.iter().for_each(|column| record.copy_text(column, row.text(column)));
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

/// Normalizes a date to `YYYY-MM-DD` or `YYYY-MM`. Accepts `20260216` and `2026/02/16`. Other text is not validated.
fn iso_date(text: &str) -> String {
    let text = text.trim().replace(['/', '.'], "-");
    let digits = text.len() >= 8 && text.bytes().take(8).all(|b| b.is_ascii_digit());
    match (digits, text.get(..4), text.get(4..6), text.get(6..8)) {
        (true, Some(year), Some(month), Some(day)) => format!("{year}-{month}-{day}"),
        _ => text,
    }
}
