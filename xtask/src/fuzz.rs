//! `cargo xtask fuzz`: the long run of `tests/it/fuzz.rs`, optimized.

use std::process::ExitCode;

use super::long_test;

/// What to fuzz, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Target by name; `all` for each in turn
    #[arg(long, default_value = "all")]
    target: String,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seed; a run with the same seed tries the same inputs [default: another in every run]
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs it; what it finds is printed.
pub(crate) fn run(args: &Args) -> ExitCode {
    let mut variables =
        vec![("ATLAS_FUZZ_TARGET", args.target.clone()), ("ATLAS_FUZZ_SECONDS", args.seconds.to_string())];
    variables.extend(args.seed.map(|seed| ("ATLAS_FUZZ_SEED", seed.to_string())));
    long_test::run("fuzz::long_run", &variables)
}
