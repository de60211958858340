//! `cargo xtask soak`: the long run of `tests/it/soak.rs` on an optimized build.

use std::process::ExitCode;

use super::long_test::{self, Driven};

/// Options of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Duration, seconds
    #[arg(long, default_value_t = 8 * 3600)]
    seconds: u64,
    /// Random seed, which determines the keys sent [default: a new one in every run]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    driven: Driven,
}

/// Runs it; results are printed as CSV while it runs.
pub(crate) fn run(args: &Args) -> ExitCode {
    let mut variables = vec![("ATLAS_SOAK_SECONDS", args.seconds.to_string())];
    variables.extend(args.seed.map(|seed| ("ATLAS_SOAK_SEED", seed.to_string())));
    long_test::run("soak::long_run", &args.driven, &variables)
}
