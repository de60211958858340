//! Maintenance commands of this repository: `cargo xtask <COMMAND>`.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod convert;
mod fuzz;
mod release;

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
    /// Fuzz the parsers for longer than the tests do.
    Fuzz(fuzz::Args),
    /// Build the binary and pack it with completions, man pages, licenses, bill of materials and checksum.
    Release(release::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::ConvertMeasurements { old, new, kind } => match convert::file(&old, &new, kind) {
            Ok(report) => {
                eprint!("{report}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Release(args) => match release::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    const MANIFEST: &str = include_str!("../../Cargo.toml");
    const TABLE: &str = include_str!("../../docs/dependencies.md");

    /// Names on the left of `=` in a section of the manifest.
    fn section(name: &str) -> impl Iterator<Item = &'static str> {
        let after = MANIFEST.split_once(&format!("\n[{name}]\n")).map_or("", |(_, after)| after);
        let lines = after.lines().take_while(|line| !line.starts_with('['));
        lines.filter_map(|line| line.split_once([' ', '.', '=']).map(|(name, _)| name).filter(|name| !name.is_empty()))
    }

    #[test]
    fn every_dependency_has_a_line_that_says_what_for() {
        let direct = section("workspace.dependencies").chain(section("dev-dependencies"));
        let direct: BTreeSet<&str> = direct.filter(|name| !name.starts_with("atlas-")).collect();
        let rows = TABLE.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
        let told: BTreeSet<&str> = rows.filter(|(_, why)| why.len() > 8).map(|(name, _)| name).collect();
        assert_eq!(told, direct);
        assert!(direct.len() > 20);
    }
}
