//! The comparison as a document.

use std::sync::Arc;

use super::view::metrics;
use crate::tui::app::{App, Setup};
use crate::tui::dialogs::export::parts::{empty, entry, of_study};
use atlas_plan::estimate::Metric;
use atlas_report::document::Document;

/// A study of all compared targets; `None` if none has an estimate.
pub(in crate::tui) fn document(app: &App, made: &str) -> Option<Document> {
    let mut study = empty(app, made);
    for (name, answer) in &app.columns {
        let setup = Setup { target: Arc::clone(name), ..app.now.setup.clone() };
        match (entry(answer, &setup), &answer.outcome) {
            (Some(entry), _) => study.entries.push(entry),
            (None, Err(why)) => study.failed.push((name.to_string(), why.clone())),
            (None, Ok(_)) => study.failed.push((name.to_string(), "its metrics are not finite".to_owned())),
        }
    }
    (!study.entries.is_empty()).then(|| of_study(&study))
}

/// One row per target, one column per metric, separated by tabs.
pub(super) fn text(app: &App) -> String {
    let metrics: Vec<&Metric> = metrics(app).collect();
    let mut text = "target\tfits".to_owned();
    metrics.iter().for_each(|metric| text += &format!("\t{}", metric.name));
    for (name, answer) in &app.columns {
        text += &format!("\n{name}\t{}", answer.fits());
        for metric in &metrics {
            text += &answer.value(metric).map_or_else(|| "\t".to_owned(), |value| format!("\t{value}"));
        }
    }
    text + "\n"
}
