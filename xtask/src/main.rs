//! Maintenance commands of this repository: `cargo xtask <COMMAND>`.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use long_test::Driven;

mod accuracy;
mod calibration;
mod convert;
mod fit;
mod fuzz;
mod long_test;
mod optimized;
mod properties;
mod published;
mod release;
mod soak;

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
        kind: Option<atlas_evidence::validate::MeasurementKind>,
    },
    /// Update the accuracy tables in README.md and docs/accuracy.md and the index of measured rows.
    ///
    /// Run it after a change to measurements, constants, intervals or engines, and commit the result.
    Accuracy,
    /// Refit the constants, leaving out one source at a time, and write constants and intervals to the source code.
    ///
    /// Takes minutes: run it with --release. `atlas validate --fit` prints the same without writing.
    Fit,
    /// Estimate variance components of clusters, accelerators, software, models and operator classes from the built-in
    /// measurements, and write the table used by `atlas calibrate`.
    VarianceComponents,
    /// Calibrate every source with a few of its runs, evaluate on the rest, and update docs/calibration.md.
    CalibrationExperiment {
        /// Number of runs to calibrate each source with.
        #[arg(long, default_value_t = 3)]
        after_runs: usize,
        /// Print the tables instead of writing them.
        #[arg(long)]
        print: bool,
    },
    /// Search the best layout of built-in targets and workloads, and update docs/findings.md. Run it with --release.
    Optimized(optimized::Args),
    /// Estimate the published results in tests/data/published, and update docs/findings.md.
    Published,
    /// Check properties of estimates on random scenarios. Run it with --release.
    Properties(properties::Args),
    /// Fuzz the parsers for longer than the tests do.
    Fuzz(fuzz::Args),
    /// Inject a fault into every system call of every command that writes, and check the files left behind; needs
    /// `strace`.
    Faults {
        /// Inject every error at every call instead of alternating; takes five times as long.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        driven: Driven,
    },
    /// Run many instances, watched logs and requests, and report CPU time and memory of each.
    Load(Driven),
    /// Send SIGINT and SIGTERM to every long-running command, and report how long it takes to exit.
    Cancel(Driven),
    /// Drive the interface with random keys, resizes and file changes, and report memory, descriptors and threads.
    Soak(soak::Args),
    /// Render every view at three sizes in two themes as PNG.
    Screens {
        /// Output directory.
        directory: PathBuf,
    },
    /// Build the binary and package it with completions, man pages, licenses, SBOM and checksum.
    Release(release::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::ConvertMeasurements { old, new, kind } => {
            convert::file(&old, &new, kind).map(|report| eprint!("{report}")).map_err(|error| error.to_string())
        }
        Command::Accuracy => accuracy::write(&root())
            .map(|written| match written.as_slice() {
                [] => eprintln!("everything is up to date"),
                written => written.iter().for_each(|path| eprintln!("wrote {}", path.display())),
            })
            .map_err(|error| error.to_string()),
        Command::VarianceComponents => calibration::components().map_err(|error| error.to_string()),
        Command::CalibrationExperiment { after_runs, print } => {
            calibration::experiment(after_runs, print).map_err(|error| error.to_string())
        }
        Command::Properties(args) => return properties::run(&args),
        Command::Published => published::write(&root()).map_err(|error| error.to_string()),
        Command::Optimized(args) => optimized::run(&args, &root()).map_err(|error| error.to_string()),
        Command::Fuzz(args) => return fuzz::run(&args),
        Command::Faults { all, driven } => {
            let every = all.then(|| ("ATLAS_FAULTS_ALL", "1".to_owned()));
            return long_test::run("faults::long_run", &driven, every.as_slice());
        }
        Command::Load(driven) => return long_test::run("load::", &driven, &[]),
        Command::Cancel(driven) => return long_test::run("cancel::long_run", &driven, &[]),
        Command::Soak(args) => return soak::run(&args),
        Command::Screens { directory } => {
            // The test runs in the root of the repository.
            let directory = std::path::absolute(&directory).unwrap_or(directory);
            return long_test::run(
                "pictures::write_all",
                &Driven::default(),
                &[("ATLAS_SCREENS", directory.display().to_string())],
            );
        }
        Command::Release(args) => release::run(&args).map_err(|error| error.to_string()),
        Command::Fit => fit::write(&root()).map(|refit| fitted(&refit)).map_err(|error| error.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Prints the errors of a fit on sources that it did not use.
fn fitted(refit: &atlas_evidence::validate::Refit) {
    for judged in &refit.judged {
        let (all, [stated, withheld]) = (&judged.all, judged.inside.map(|share| 100.0 * share));
        eprintln!(
            "{}: {} rows, median {:.1} %, p90 {:.1} %, inside {stated:.0} % ({withheld:.0} % with releases withheld)",
            judged.title, all.n, all.median, all.p90
        );
    }
    eprintln!("wrote constants and intervals; run `cargo xtask accuracy` next");
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
    fn every_direct_dependency_has_a_documented_reason() {
        let direct = section("workspace.dependencies").chain(section("dev-dependencies"));
        let direct: BTreeSet<&str> = direct.filter(|name| !name.starts_with("atlas-")).collect();
        let rows = TABLE.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
        let described: BTreeSet<&str> = rows.filter(|(_, why)| why.len() > 8).map(|(name, _)| name).collect();
        assert_eq!(described, direct);
        assert!(direct.len() > 20);
    }
}
