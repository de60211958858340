//! Tests that run for a given time.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Program under test.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Driven {
    /// Binary of atlas to test [default: build one with the profile `checked`]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// Runs an ignored integration test on an optimized build with overflow checks and assertions. The test prints its
/// results.
pub(crate) fn run(name: &str, driven: &Driven, variables: &[(&str, String)]) -> ExitCode {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--package", "atlas-fabric", "--test", "it"]);
    match &driven.binary {
        // The test itself need not be optimized. It runs in the root of the repository.
        Some(path) => cargo.env("ATLAS_BINARY", std::path::absolute(path).unwrap_or_else(|_| path.clone())),
        None => cargo.args(["--profile", "checked"]),
    };
    cargo
        .args(["--", "--ignored", "--nocapture", "--test-threads", "1", name])
        .envs(variables.iter().map(|(name, value)| (name, value)));
    match cargo.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: cargo cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
