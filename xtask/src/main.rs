//! Maintenance commands of this repository: `cargo xtask <COMMAND>`.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod accuracy;
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
    /// Write the accuracy tables of README.md and docs/accuracy.md and the index of judged rows anew.
    ///
    /// Run it after a change to measurements, constants, intervals or engines, and commit what it writes.
    Accuracy,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::ConvertMeasurements { old, new, kind } => {
            convert::file(&old, &new, kind).map(|report| eprint!("{report}")).map_err(|error| error.to_string())
        }
        Command::Accuracy => accuracy::write(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
            .map(|written| match written.as_slice() {
                [] => eprintln!("all is up to date"),
                written => written.iter().for_each(|path| eprintln!("wrote {}", path.display())),
            })
            .map_err(|error| error.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
