//! `atlas schema`: JSON Schemas of all document types, for completion and validation in editors.

mod catalog;
mod described;
mod foreign;
mod measurements;
mod shape;
mod used;

use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::Value;

use super::output::{self, write_stderr};
use super::save;
use atlas_report::to_json;

/// Print the JSON Schema of a document type.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas schema workloads > workloads.schema.json
  atlas schema --out schemas        write all schemas to a directory

To use a schema with the YAML language server, add it to the first line of the file:
  # yaml-language-server: $schema=schemas/workloads.schema.json")]
pub struct Args {
    /// Document type
    #[arg(required_unless_present = "out")]
    pub document: Option<Document>,
    /// Write the schemas of all document types to this directory
    #[arg(long, value_name = "DIR", conflicts_with = "document")]
    pub out: Option<PathBuf>,
}

/// The documents that users write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Document {
    /// targets.yaml
    Targets,
    /// workloads.yaml
    Workloads,
    /// profiles/*.yaml
    Profiles,
    /// accelerators/*.yaml
    Accelerators,
    /// models.yaml
    Models,
    /// prices.yaml
    Prices,
    /// config.yaml, an experiment of the predecessor comparison tool
    Config,
    /// JSON scenarios of the predecessor dashboard
    Scenarios,
    /// demo/*.yaml
    Demos,
    /// themes/*.yaml
    Themes,
    /// Columns of measurement tables (CSV)
    Measurements,
}

impl Document {
    /// Name of the document type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Document::Targets => "targets",
            Document::Workloads => "workloads",
            Document::Profiles => "profiles",
            Document::Accelerators => "accelerators",
            Document::Models => "models",
            Document::Prices => "prices",
            Document::Config => "config",
            Document::Scenarios => "scenarios",
            Document::Demos => "demos",
            Document::Themes => "themes",
            Document::Measurements => "measurements",
        }
    }

    /// JSON Schema of the document type, draft 2020-12.
    #[must_use]
    pub fn schema(self) -> Value {
        let (schema, title) = match self {
            Document::Targets => (shape::list(used::target()), "Targets: hardware to rent or own"),
            Document::Workloads => (shape::list(used::workload()), "Workloads: training or serving of a model"),
            Document::Profiles => (used::profile(), "A profile: coefficients of the semi-empirical model"),
            Document::Accelerators => (shape::list(catalog::accelerator()), "Accelerators: datasheets"),
            Document::Models => (shape::list(catalog::model()), "Models: neural network architectures"),
            Document::Prices => (shape::list(catalog::price()), "Rental prices"),
            Document::Config => (foreign::experiment(), "An experiment: platforms, models, training, parallelism"),
            Document::Scenarios => (foreign::scenarios(), "Scenarios and hardware profiles of the dashboard"),
            Document::Demos => (described::demo(), "A guided tour"),
            Document::Themes => (described::theme(), "A color theme"),
            Document::Measurements => (shape::list(measurements::row()), "Measurement tables: the columns of a row"),
        };
        shape::document(schema, title)
    }
}

/// Prints one schema, or writes all.
pub fn run(args: Args) -> color_eyre::Result<()> {
    if let Some(out) = &args.out {
        save::create_directory(out)?;
        for document in Document::value_variants() {
            let path = out.join(format!("{}.schema.json", document.name()));
            let text = to_json(&document.schema())?;
            save::write(&path, &text)?;
        }
        write_stderr(&format!("wrote {} schemas to {}", Document::value_variants().len(), out.display()));
    }
    if let Some(document) = args.document {
        output::print(&to_json(&document.schema())?)?;
    }
    Ok(())
}
