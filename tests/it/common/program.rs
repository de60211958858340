//! The real binary, shielded from the configuration of whoever runs the tests.

use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;

/// The repository, where `workload/` lies.
pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The program that long runs drive: another build, where `cargo xtask` was given one.
pub(crate) fn driven() -> String {
    std::env::var("ATLAS_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_atlas").to_owned())
}

/// `atlas` in the given directory, with no configuration of its own and a UTF-8 locale.
pub(crate) fn atlas(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atlas"));
    command.current_dir(dir).env("ATLAS_CONFIG_DIR", dir.join("no-config")).env("LC_ALL", "C.UTF-8").args(args);
    for name in ["NO_COLOR", "RUST_BACKTRACE", "TERM"] {
        command.env_remove(name);
    }
    command
}

/// What it wrote to stdout.
pub(crate) fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// What it wrote to stderr.
pub(crate) fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}
