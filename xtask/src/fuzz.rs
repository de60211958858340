//! `cargo xtask fuzz`: the long run of `tests/it/fuzz.rs`, optimized.

use std::process::{Command, ExitCode};

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

/// Runs it; cargo says what it finds.
pub(crate) fn run(args: &Args) -> ExitCode {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Optimized, with overflow checks and assertions; panics unwind, and are caught.
    cargo.args(["test", "--profile", "checked", "--package", "atlas-fabric", "--test", "it", "--"]);
    cargo.args(["--ignored", "--nocapture", "fuzz::long_run"]).env("ATLAS_FUZZ_TARGET", &args.target);
    cargo.env("ATLAS_FUZZ_SECONDS", args.seconds.to_string());
    if let Some(seed) = args.seed {
        cargo.env("ATLAS_FUZZ_SEED", seed.to_string());
    }
    match cargo.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: cargo cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
