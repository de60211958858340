//! Tests the binary in an empty root directory: without C library, environment, home directory or terminal.

use std::path::Path;
use std::process::{Command, Stdio};

use super::build::Runs;
use super::{ReleaseError, system};

/// Commands to run. None prints times or durations, so that all architectures print the same bytes.
const COMMANDS: [&str; 9] = [
    "--version",
    "list targets",
    "check",
    "compare --workload llama3.1-70b-serve --format json",
    "explain step_time_ms --target h100-sxm-64 --workload llama3.1-8b-train",
    "optimize --target h100-sxm-8 --workload llama3.1-70b-serve --format csv",
    "simulate --target h100-sxm-64 --workload llama3.1-8b-train --steps 3 --format json",
    "simulate --target h100-sxm-8 --workload llama3.1-8b-serve --replications 2 --format json",
    "validate --format json",
];

/// Commands and their output.
pub(super) type Answers = Vec<(&'static str, Vec<u8>)>;

fn in_root(root: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "chroot"]).arg(root);
    command
}

/// Runs the commands; `None` if users may not change their root, or an emulator needs libraries.
pub(super) fn answers(binary: &Path, runs: &Runs) -> Result<Option<Answers>, ReleaseError> {
    let mut trial = in_root(Path::new("/"));
    let trial = trial.arg("true").stderr(Stdio::null()).status();
    if !trial.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let root = std::env::temp_dir().join(format!("atlas-minimal-{}", std::process::id()));
    std::fs::create_dir_all(&root).map_err(system(root.display().to_string()))?;
    let answers = within(&root, binary, runs);
    std::fs::remove_dir_all(&root).map_err(system(root.display().to_string()))?;
    answers
}

fn within(root: &Path, binary: &Path, runs: &Runs) -> Result<Option<Answers>, ReleaseError> {
    let copy = |from: &Path, name: &str| {
        std::fs::copy(from, root.join(name)).map(drop).map_err(system(from.display().to_string()))
    };
    copy(binary, "atlas")?;
    let before: &[&str] = match runs {
        Runs::Natively => &[],
        Runs::By(emulator) if emulator.to_string_lossy().ends_with("-static") => {
            copy(emulator, "emulator")?;
            &["/emulator"]
        }
        Runs::By(_) | Runs::Not => return Ok(None),
    };
    let answer = |line: &'static str| {
        let mut command = in_root(root);
        command.args(before).arg("/atlas").args(line.split(' '));
        let path = std::env::var_os("PATH").unwrap_or_default();
        // `unshare` and `chroot` are found on this path, which does not exist in the new root.
        let output = command.env_clear().env("PATH", path).stdin(Stdio::null()).output().map_err(system("unshare"))?;
        if !output.status.success() || output.stdout.is_empty() {
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(ReleaseError::Minimal { line, stderr });
        }
        Ok((line, output.stdout))
    };
    COMMANDS.into_iter().map(answer).collect::<Result<Answers, _>>().map(Some)
}

/// First command whose output differs.
pub(super) fn difference(one: &Answers, other: &Answers) -> Option<&'static str> {
    one.iter().zip(other).find(|(one, other)| one != other).map(|((line, _), _)| *line)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn dynamically_linked_binary_fails_in_an_empty_root() {
        // The shell needs a C library, and a statically linked one fails on `--version` as well.
        match answers(Path::new("/bin/sh"), &Runs::Natively) {
            Ok(None) => eprintln!("skipped: users may not change their root here"),
            other => assert!(matches!(other, Err(ReleaseError::Minimal { line: "--version", .. })), "{other:?}"),
        }
        assert!(answers(Path::new("/bin/sh"), &Runs::By(PathBuf::from("/bin/sh"))).unwrap().is_none());
    }

    #[test]
    fn difference_reports_the_first_unequal_output() {
        let answers = |text: &str| vec![("check", b"same".to_vec()), ("run", text.as_bytes().to_vec())];
        assert_eq!(difference(&answers("1.0"), &answers("1.0")), None);
        assert_eq!(difference(&answers("1.0"), &answers("1.1")), Some("run"));
    }
}
