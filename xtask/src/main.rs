//! Maintenance commands of this repository: `cargo xtask <COMMAND>`.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
}

fn main() -> ExitCode {
    let Command::ConvertMeasurements { old, new, kind } = Cli::parse().command;
    match convert::file(&old, &new, kind) {
        Ok(report) => {
            eprint!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
