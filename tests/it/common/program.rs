//! The real binary, isolated from the configuration of the user who runs the tests.

use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;

/// Root of the repository, which contains `workload/`.
pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Path of the program for long runs: another build if `cargo xtask` was given one.
pub(crate) fn driven() -> String {
    std::env::var("ATLAS_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_atlas").to_owned())
}

/// `atlas` in the given directory, without a configuration and with a UTF-8 locale.
pub(crate) fn atlas(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atlas"));
    command.current_dir(dir).env("ATLAS_CONFIG_DIR", dir.join("no-config")).env("LC_ALL", "C.UTF-8").args(args);
    for name in ["NO_COLOR", "RUST_BACKTRACE", "TERM"] {
        command.env_remove(name);
    }
    command
}

/// Output on stdout.
pub(crate) fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// Output on stderr.
pub(crate) fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}
