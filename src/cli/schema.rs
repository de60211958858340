//! `atlas schema`: JSON Schema of every document, so that editors complete and validate what users write.

mod catalog;
mod described;
mod foreign;
mod measurements;
mod shape;
mod used;

use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::Value;

use super::output::{self, complain};
use super::run::writing;
use atlas_document::files;
use atlas_report::serialized;

/// Print JSON Schema.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas schema workloads > workloads.schema.json
  atlas schema --out schemas        one file a document

With the YAML language server, the first line of a file names its schema:
  # yaml-language-server: $schema=schemas/workloads.schema.json")]
pub struct Args {
    /// The document to describe
    #[arg(required_unless_present = "out")]
    pub document: Option<Document>,
    /// Directory to write the schemas of all documents to
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
    /// config.yaml: an experiment of the predecessor comparison tool
    Config,
    /// Scenarios of the predecessor dashboard, JSON
    Scenarios,
    /// demo/*.yaml
    Demos,
    /// themes/*.yaml
    Themes,
    /// Tables of measurements, CSV: their columns
    Measurements,
}

impl Document {
    /// Its name.
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

    /// Its JSON Schema, draft 2020-12.
    #[must_use]
    pub fn schema(self) -> Value {
        let (schema, title) = match self {
            Document::Targets => (shape::list(used::target()), "Targets: what one can rent or own"),
            Document::Workloads => (shape::list(used::workload()), "Workloads: models put to work"),
            Document::Profiles => (used::profile(), "A profile: coefficients of the calibrated model"),
            Document::Accelerators => (shape::list(catalog::accelerator()), "Accelerators: their datasheets"),
            Document::Models => (shape::list(catalog::model()), "Models: architectures of neural networks"),
            Document::Prices => (shape::list(catalog::price()), "Prices on demand"),
            Document::Config => (foreign::experiment(), "An experiment: platforms, models, training, parallelism"),
            Document::Scenarios => (foreign::scenarios(), "Scenarios and hardware profiles of the dashboard"),
            Document::Demos => (described::demo(), "A guided tour"),
            Document::Themes => (described::theme(), "A colour theme"),
            Document::Measurements => {
                (shape::list(measurements::row()), "Tables of measurements: the columns of a row")
            }
        };
        shape::document(schema, title)
    }
}

/// Prints one schema, or writes all.
pub fn run(args: Args) -> color_eyre::Result<()> {
    if let Some(out) = &args.out {
        std::fs::create_dir_all(out).map_err(|error| writing(out, &error))?;
        for document in Document::value_variants() {
            let path = out.join(format!("{}.schema.json", document.name()));
            let text = serialized(&document.schema(), false)?;
            files::write(&path, &text).map_err(|error| writing(&path, &error))?;
        }
        complain(&format!("wrote {} schemas to {}", Document::value_variants().len(), out.display()));
    }
    if let Some(document) = args.document {
        output::print(&serialized(&document.schema(), false)?)?;
    }
    Ok(())
}
