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
    /// Write the accuracy tables of README.md and docs/accuracy.md and the index of judged rows anew.
    ///
    /// Run it after a change to measurements, constants, intervals or engines, and commit what it writes.
    Accuracy,
    /// Fit the constants anew, with one source left out at a time, and write them and the intervals into the source.
    ///
    /// Takes minutes: run it with --release. `atlas validate --fit` prints the same without writing.
    Fit,
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
    /// Search the best layout of shipped pairs, and write the table in docs/findings.md; run it with --release.
    Optimized(optimized::Args),
    /// Answer the published results in tests/data/published, and write the table in docs/findings.md.
    Published,
    /// Draw random scenarios and look for answers that break a property; run it with --release.
    Properties(properties::Args),
    /// Fuzz the parsers for longer than the tests do.
    Fuzz(fuzz::Args),
    /// Let each system call of every command that writes fail in turn, and look at what is left; needs `strace`.
    Faults {
        /// With every error, not with one after the other: five times as long.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        driven: Driven,
    },
    /// Start many instances, watch many logs, answer many requests, and report processor time and memory of each.
    Load(Driven),
    /// Send SIGINT and SIGTERM to every command that takes long, and report how long it takes to end.
    Cancel(Driven),
    /// Drive the interface with random keys, resizes and rewritten files, and report its memory, descriptors and threads.
    Soak(soak::Args),
    /// Draw every view at three sizes in two themes, as PNG files to look at.
    Screens {
        /// Folder that the files go to.
        directory: PathBuf,
    },
    /// Build the binary and pack it with completions, man pages, licenses, bill of materials and checksum.
    Release(release::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::ConvertMeasurements { old, new, kind } => {
            convert::file(&old, &new, kind).map(|report| eprint!("{report}")).map_err(|error| error.to_string())
        }
        Command::Accuracy => accuracy::write(&root())
            .map(|written| match written.as_slice() {
                [] => eprintln!("all is up to date"),
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
            // The test runs at the root of the repository.
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

/// Prints how a fit fares on sources that it did not see.
fn fitted(refit: &atlas_evidence::validate::Refit) {
    for judged in &refit.judged {
        let all = &judged.all;
        eprintln!("{}: {} rows, median {:.1} %, p90 {:.1} %", judged.title, all.n, all.median, all.p90);
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
    fn every_dependency_has_a_line_that_says_what_for() {
        let direct = section("workspace.dependencies").chain(section("dev-dependencies"));
        let direct: BTreeSet<&str> = direct.filter(|name| !name.starts_with("atlas-")).collect();
        let rows = TABLE.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
        let described: BTreeSet<&str> = rows.filter(|(_, why)| why.len() > 8).map(|(name, _)| name).collect();
        assert_eq!(described, direct);
        assert!(direct.len() > 20);
    }
}
