//! Generates the index of evidence: measured rows and their predictions with the shipped constants.

use atlas_catalog::Catalog;
use atlas_plan::search::Gauge;

use super::key::{FIELDS, FIGURE_DIGITS, Key, Value, rounded};
use crate::validate::accuracy::AccuracyMetric;
use crate::validate::case::regime;
use crate::validate::{MeasurementKind, Method, RowEvaluator, ValidateError, shipped, table};

/// Returns the index as CSV, with one line per metric of every shipped row that counts. Rows with inferred values and
/// copies are left out.
///
/// # Errors
/// Returns an error if shipped tables are damaged.
pub fn csv() -> Result<String, ValidateError> {
    let catalog = Catalog::built_in();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = ["id", "figure", "metric", "source", "regime"];
    let figures = ["measured", "predicted", "lower", "upper"];
    writer.write_record(head.into_iter().chain(FIELDS.iter().map(|field| field.name)).chain(figures))?;
    let gauge = Gauge::default();
    for kind in MeasurementKind::ALL {
        let judge = RowEvaluator { kind, catalog: &catalog, method: Method::default(), gauge: &gauge };
        let rows = table::read(&shipped(kind)?)?;
        for (row, copy) in rows.iter().zip(table::duplicates(&rows)) {
            if copy.is_some() || !row.text("inferred").is_empty() {
                continue;
            }
            let Ok((found, verdicts)) = judge.evaluate_row(row) else { continue };
            let Some(mut key) = Key::of(&found.parts, &found.scenario) else { continue };
            if catalog.model(row.text("model")).is_err() {
                // For a model defined in the row, the name used by its source.
                let names = [row.text("model_name"), row.text("model")];
                key.set_model(names.into_iter().find(|name| !name.is_empty()).unwrap_or_default());
            }
            for verdict in verdicts {
                let values = [verdict.measured, verdict.predicted, verdict.lower, verdict.upper];
                let [Some(measured), Some(predicted), Some(lower), Some(upper)] = values else { continue };
                let Some(metric) = verdict.metric else { continue };
                let head = [
                    verdict.id,
                    AccuracyMetric::of(metric).name().to_owned(),
                    metric.name().to_owned(),
                    verdict.source,
                    regime(&key.input, metric).to_owned(),
                ];
                let fields = key.values.iter().map(Value::cell);
                let figures = [measured, predicted, lower, upper].map(|value| rounded(value, FIGURE_DIGITS));
                writer.write_record(head.into_iter().chain(fields).chain(figures))?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
