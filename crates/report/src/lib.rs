//! Output of estimates and records: tables, Markdown, HTML and PDF for people; JSON, CSV and YAML for programs.

#![forbid(unsafe_code)]

pub mod advice;
pub mod breakdown;
pub mod calibration;
pub mod chart;
pub mod comparison;
pub mod configurations;
pub mod csv;
pub mod dashboard;
pub mod document;
pub mod estimate;
pub mod evidence;
pub mod explanation;
pub mod file_format;
pub mod measured;
pub mod measurements;
pub mod optimum;
pub mod parquet;
pub mod pdf;
pub mod read;
pub mod rows;
pub mod simulation;
pub mod study;
pub mod summary;
pub mod sweep;
pub mod table;
pub mod tornado;

use serde::Serialize;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// JSON
    Json,
    /// Comma-separated values with a header
    Csv,
    /// YAML
    Yaml,
}

/// Error while writing a value in a format.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// JSON serialization failed.
    #[error("cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// YAML serialization failed.
    #[error("cannot be written as YAML: {0}")]
    Yaml(#[from] serde_yaml::Error),
}

/// Serializes a value as pretty-printed JSON or as YAML.
pub fn serialized(value: &impl Serialize, yaml: bool) -> Result<String, ReportError> {
    if yaml { to_yaml(value) } else { to_json(value) }
}

/// Formats a value as YAML.
///
/// # Errors
/// If the value cannot be serialized.
pub fn to_yaml(value: &impl Serialize) -> Result<String, ReportError> {
    Ok(serde_yaml::to_string(value)?)
}

/// Formats a value as JSON with a final line break.
///
/// # Errors
/// If the value cannot be serialized.
pub fn to_json(value: &impl Serialize) -> Result<String, ReportError> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}
