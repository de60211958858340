//! Builds the optimized binary of a target, and determines how to run it on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{ReleaseError, cargo, host, output, system};

/// Targets that need no system C library.
const STATIC: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

fn is_installed(target: &str) -> bool {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"])).unwrap_or_default();
    Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir()
}

/// The installed static targets, else this machine's target.
pub(super) fn targets() -> Result<Vec<String>, ReleaseError> {
    let installed: Vec<String> = STATIC.into_iter().filter(|target| is_installed(target)).map(str::to_owned).collect();
    for missing in STATIC.iter().filter(|target| !installed.iter().any(|found| found == *target)) {
        eprintln!("skipped {missing}: the target is not installed (rustup target add {missing})");
    }
    if installed.is_empty() { Ok(vec![host()?]) } else { Ok(installed) }
}

/// Name of cargo's environment variable for the linker or runner of a target.
fn variable(target: &str, what: &str) -> String {
    format!("CARGO_TARGET_{}_{what}", target.to_uppercase().replace('-', "_"))
}

/// Compiler flags that replace local paths in messages, so that they do not depend on the location of the sources and
/// of cargo's home.
fn remapped() -> Result<String, ReleaseError> {
    let here = std::env::current_dir().map_err(system("the current directory"))?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let given = std::env::var("RUSTFLAGS").unwrap_or_default();
    let flags = home.iter().map(|home| (home.as_path(), "/cargo")).chain([(here.as_path(), "/atlas")]);
    Ok(flags.fold(given, |all, (from, to)| format!("{all} --remap-path-prefix={}={to}", from.display())))
}

fn architecture(target: &str) -> &str {
    target.split_once('-').map_or(target, |(architecture, _)| architecture)
}

/// Builds the binary; `time` is used as build time, so that builds are reproducible.
pub(super) fn binary(target: &str, time: &str) -> Result<PathBuf, ReleaseError> {
    let mut build = cargo();
    build.args(["build", "--profile", "dist", "--locked", "--package", "atlas-fabric", "--target", target]);
    let linker = variable(target, "LINKER");
    let foreign = architecture(target) != architecture(&host()?);
    if foreign && target.contains("musl") && std::env::var_os(&linker).is_none() {
        // The toolchain includes everything that a static binary is linked with, so no cross compiler is needed.
        build.env(linker, "rust-lld");
    }
    output(build.env("SOURCE_DATE_EPOCH", time).env("RUSTFLAGS", remapped()?))?;
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    Ok(folder.join(target).join("dist/atlas"))
}

/// How binaries of a target can be run on this machine.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Runs {
    /// Directly.
    Natively,
    /// With a program that takes the binary's path as its argument.
    By(PathBuf),
    /// They cannot be run.
    Not,
}

impl Runs {
    /// Uses the program that cargo runs tests of the target with, or QEMU.
    pub(super) fn here(target: &str) -> Result<Runs, ReleaseError> {
        let on_linux = target.contains("linux") && cfg!(target_os = "linux");
        if target == host()? || on_linux && architecture(target) == std::env::consts::ARCH {
            return Ok(Runs::Natively);
        }
        if let Some(runner) = std::env::var_os(variable(target, "RUNNER")) {
            return Ok(Runs::By(runner.into()));
        }
        let names = ["-static", ""].map(|kind| format!("qemu-{}{kind}", architecture(target)));
        let folders: Vec<PathBuf> =
            std::env::var_os("PATH").iter().flat_map(std::env::split_paths).filter(|_| on_linux).collect();
        let mut paths = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        Ok(paths.find(|path| path.is_file()).map_or(Runs::Not, Runs::By))
    }

    /// Command that runs the binary.
    pub(super) fn command(&self, binary: &Path) -> Option<Command> {
        match self {
            Runs::Natively => Some(Command::new(binary)),
            Runs::By(runner) => {
                let mut command = Command::new(runner);
                command.arg(binary);
                Some(command)
            }
            Runs::Not => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_target_variable_name_is_built_from_the_triple() {
        assert_eq!(variable("aarch64-unknown-linux-musl", "LINKER"), "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER");
    }

    #[test]
    fn foreign_target_does_not_run_on_the_host() {
        assert_eq!(Runs::here("sparc-sun-solaris").ok(), Some(Runs::Not));
        assert_eq!(host().and_then(|host| Runs::here(&host)).ok(), Some(Runs::Natively));
    }
}
