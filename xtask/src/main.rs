//! Maintenance commands of this repository: `cargo xtask <COMMAND>`.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod calibration;
mod convert;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Maintenance commands of this repository")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Convert a table of measurements from the old columns to the typed ones.
    ///
    /// Cells that could not be converted are listed on stderr. A file that is already typed is copied unchanged.
    ConvertMeasurements {
        /// Table with the old columns (CSV).
        old: PathBuf,
        /// Where to write the typed table.
        new: PathBuf,
        /// Kind of the table; detected from its header if absent.
        #[arg(long)]
        kind: Option<convert::Kind>,
    },
    /// Estimate how large the effects of clusters, accelerators, software, models and operator classes are, from the
    /// shipped measurements, and write the table that `atlas calibrate` starts from.
    VarianceComponents,
    /// Calibrate every source with a few of its runs, judge the rest, and write the tables in docs/calibration.md.
    CalibrationExperiment {
        /// Runs that each source is calibrated with.
        #[arg(long, default_value_t = 3)]
        after_runs: usize,
        /// Print the tables instead of writing them.
        #[arg(long)]
        print: bool,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::ConvertMeasurements { old, new, kind } => {
            convert::file(&old, &new, kind).map(|report| eprint!("{report}")).map_err(|error| error.to_string())
        }
        Command::VarianceComponents => calibration::components().map_err(|error| error.to_string()),
        Command::CalibrationExperiment { after_runs, print } => {
            calibration::experiment(after_runs, print).map_err(|error| error.to_string())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
