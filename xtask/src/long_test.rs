//! Tests that run for as long as they are asked to.

use std::process::{Command, ExitCode};

/// Runs an ignored integration test: optimized, with overflow checks and assertions. It prints what it finds.
pub(crate) fn run(name: &str, variables: &[(&str, String)]) -> ExitCode {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--profile", "checked", "--package", "atlas-fabric", "--test", "it", "--"]);
    cargo
        .args(["--ignored", "--nocapture", "--test-threads", "1", name])
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
