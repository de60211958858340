//! All commands that write, with a failing disk: each file is the complete old or the complete new one, no temporary
//! files are left, and failures are reported.
//!
//! Here the file size is limited (`ulimit -f`), which truncates a write and then rejects further ones.
//! `cargo xtask faults` makes each system call fail in turn, using `strace`.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::program::driven;

const OLD: &[u8] = b"what was there before\n";
/// Limits of the file size, in blocks of `ulimit -f`.
const LIMITS: [u32; 5] = [0, 1, 4, 32, 256];

struct Writer {
    arguments: &'static str,
    /// Whether existing files are replaced; otherwise they cause an error.
    replaces: bool,
}

const WRITERS: [Writer; 19] = [
    Writer { arguments: "run --target h100-sxm-8 --workload llama3.1-8b-serve", replaces: true },
    Writer { arguments: "optimize --target h100-sxm-8 --workload llama3.1-8b-serve", replaces: true },
    Writer { arguments: "report --target h100-sxm-8 --workload llama3.1-8b-serve --out r.html", replaces: true },
    Writer { arguments: "report --target h100-sxm-8 --workload llama3.1-8b-serve --out r.md", replaces: true },
    Writer { arguments: "report --target h100-sxm-8 --workload llama3.1-8b-serve --out r.pdf", replaces: true },
    Writer { arguments: "report --target h100-sxm-8 --workload llama3.1-8b-serve --out r.png", replaces: true },
    Writer { arguments: "report --target h100-sxm-8 --workload llama3.1-8b-serve --out r.csv", replaces: true },
    Writer {
        arguments: "simulate --target h100-sxm-8 --workload llama3.1-8b-train --steps 2 --out d --trace t.json",
        replaces: true,
    },
    Writer {
        arguments: "scale --target h100-sxm-8 --workload llama3.1-8b-serve --nodes 1,2 --replications 1 --out d",
        replaces: true,
    },
    Writer { arguments: "frontier --target h100-sxm-8 --workload llama3.1-8b-serve --svg f.svg", replaces: true },
    Writer { arguments: "break-even --target h100-sxm-8 --workload llama3.1-8b-serve --svg b.svg", replaces: true },
    Writer { arguments: "launch --target h100-sxm-8 --workload llama3.1-8b-serve --out l", replaces: false },
    Writer { arguments: "schema --out s", replaces: true },
    Writer { arguments: "man m", replaces: true },
    Writer {
        arguments: "scenario export --target h100-sxm-8 --workload llama3.1-8b-serve --out x.json",
        replaces: true,
    },
    Writer { arguments: "config profile --target h100-sxm-8 --out p.yaml", replaces: false },
    Writer { arguments: "detect --out t.yaml", replaces: true },
    Writer {
        arguments: concat!(
            "ingest ",
            env!("CARGO_MANIFEST_DIR"),
            "/tests/data/logs/megatron --format yaml --out m.yaml"
        ),
        replaces: true,
    },
    Writer { arguments: "validate --kind latency --svg v.svg", replaces: true },
];

/// Runs the program; `before` is empty, or a command that injects faults.
fn run(dir: &Path, before: &str, arguments: &str) -> Output {
    let line = format!("{before} exec {} {arguments}", driven());
    run_line(dir, &line)
}

fn run_line(dir: &Path, line: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env_remove("RUST_BACKTRACE").env("ATLAS_HISTORY", "off");
    command.env("ATLAS_CONFIG_DIR", dir.join("none")).env("ATLAS_STATE_DIR", dir.join("none")).output().unwrap()
}

/// All files below a directory, by their relative paths.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn add(dir: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let name = below.join(entry.file_name().unwrap());
            if entry.is_dir() {
                add(&entry, &name, found);
            } else {
                found.insert(name, std::fs::read(&entry).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    add(dir, Path::new(""), &mut found);
    found
}

/// Whether a file is complete: records and reports differ in their timestamps only.
fn whole(file: &[u8], expected: &[u8]) -> bool {
    let end = |bytes: &[u8]| bytes[bytes.len().saturating_sub(6)..].to_vec();
    file.len().abs_diff(expected.len()) < 64 && end(file) == end(expected)
}

/// Files that a command writes if nothing fails.
fn expected(writer: &Writer) -> BTreeMap<PathBuf, Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), "", writer.arguments);
    assert!(output.status.success(), "{}: {}", writer.arguments, String::from_utf8_lossy(&output.stderr));
    let files = files(dir.path());
    assert!(!files.is_empty(), "{} writes nothing", writer.arguments);
    files
}

/// Checks the remaining files of a command after a fault.
fn judge(writer: &Writer, dir: &Path, expected: &BTreeMap<PathBuf, Vec<u8>>, output: &Output, fault: &str) {
    let found = files(dir);
    let (arguments, stderr) = (writer.arguments, String::from_utf8_lossy(&output.stderr));
    let place = format!("{arguments}, {fault}: {:?}, {stderr}", output.status);
    let mut missing = 0;
    for (path, new) in expected {
        match found.get(path) {
            None => {
                assert!(!writer.replaces, "{place}: {} is gone", path.display());
                missing += 1;
            }
            Some(file) if file == OLD => missing += 1,
            Some(file) => {
                assert!(whole(file, new), "{place}: {} has {} bytes of {}", path.display(), file.len(), new.len())
            }
        }
    }
    let others: Vec<_> = found.keys().filter(|path| !expected.contains_key(*path)).collect();
    assert!(others.is_empty(), "{place}: left behind: {others:?}");
    assert!(output.status.signal().is_none() && output.status.code() != Some(101), "{place}");
    if missing > 0 {
        assert!(!output.status.success(), "{place}: {missing} files were not written");
    }
}

/// A directory with the files that a command will replace.
fn prepared(writer: &Writer, expected: &BTreeMap<PathBuf, Vec<u8>>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for path in expected.keys().filter(|_| writer.replaces) {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, OLD).unwrap();
    }
    dir
}

#[test]
fn full_disk_leaves_each_file_either_old_or_new() {
    for writer in &WRITERS {
        let expected = expected(writer);
        for limit in LIMITS {
            let dir = prepared(writer, &expected);
            let output = run(dir.path(), &format!("trap '' XFSZ; ulimit -f {limit};"), writer.arguments);
            judge(writer, dir.path(), &expected, &output, &format!("{limit} blocks"));
            if limit == 0 {
                let said = String::from_utf8_lossy(&output.stderr);
                // The message names a file, or the directory of the files.
                let named = |path: &PathBuf| path.iter().any(|part| said.contains(&*part.to_string_lossy()));
                assert!(expected.keys().any(named), "{}: {said}", writer.arguments);
            }
        }
    }
}

#[test]
fn sweep_interrupted_by_a_full_disk_resumes_to_identical_output() {
    const SWEEP: &str =
        "sweep --target h100-sxm-8 --workload llama3.1-8b-serve --over tp=1,2,4,8 --over concurrency=1..40";
    for kind in ["csv", "jsonl", "parquet"] {
        let arguments = format!("{SWEEP} --out s.{kind}");
        let dir = tempfile::tempdir().unwrap();
        assert!(run(dir.path(), "", &arguments).status.success());
        let whole = std::fs::read(dir.path().join(format!("s.{kind}"))).unwrap();
        for limit in LIMITS {
            let dir = tempfile::tempdir().unwrap();
            let cut = run(dir.path(), &format!("trap '' XFSZ; ulimit -f {limit};"), &arguments);
            let there = std::fs::read(dir.path().join(format!("s.{kind}"))).unwrap_or_default();
            assert_eq!(cut.status.success(), there == whole, "{kind}, {limit} blocks");
            if !cut.status.success() {
                let said = String::from_utf8_lossy(&cut.stderr);
                assert!(said.contains(&format!("s.{kind}")), "{kind}, {limit} blocks: {said}");
                let again = run(dir.path(), "", &arguments);
                assert!(again.status.success(), "{kind}, {limit}: {}", String::from_utf8_lossy(&again.stderr));
            }
            let left = files(dir.path());
            assert_eq!(left.keys().map(|path| path.display().to_string()).collect::<Vec<_>>(), [format!("s.{kind}")]);
            assert!(left.values().all(|file| *file == whole), "{kind}, {limit} blocks: not the same bytes");
        }
    }
}

/// System calls, with the maximum number of faults each: writes also go to stdout.
const CALLS: [(&str, u32); 6] =
    [("write", 6), ("fsync", 4), ("rename,renameat,renameat2", 3), ("openat", 2), ("fchmod,fchown", 2), ("linkat", 2)];
const ERRORS: [&str; 5] = ["ENOSPC", "EIO", "EROFS", "EDQUOT", "ESTALE"];

/// Runs a command with one failing call; returns whether that call occurred.
fn fails(writer: &Writer, expected: &BTreeMap<PathBuf, Vec<u8>>, (calls, when): (&str, u32), errno: &str) -> bool {
    let dir = prepared(writer, expected);
    let beside = tempfile::tempdir().unwrap();
    let trace = beside.path().join("trace");
    let program = driven();
    // Only calls on files of this directory, not those that load the program.
    let inject = format!("-e trace={calls} -e inject={calls}:error={errno}:when={when}");
    let at = if calls == "openat" { format!("-P {}", dir.path().display()) } else { String::new() };
    let out = trace.display();
    let line = format!("exec strace -f -qq -o {out} {at} {inject} {program} {}", writer.arguments);
    let output = run_line(dir.path(), &line);
    judge(writer, dir.path(), expected, &output, &format!("{calls} {when}: {errno}"));
    String::from_utf8_lossy(&std::fs::read(&trace).unwrap_or_default()).contains("(INJECTED)")
}

/// Run by `cargo xtask faults`. Each call of each command fails once, alternating between the errors; with `--all`,
/// each call fails with every error.
#[test]
#[ignore = "long: `cargo xtask faults`"]
fn long_run() {
    let all = std::env::var_os("ATLAS_FAULTS_ALL").is_some();
    let (mut runs, mut turn) = (0_u32, 0_usize);
    for writer in &WRITERS {
        let expected = expected(writer);
        for (calls, most) in CALLS {
            for when in 1..=most {
                let errors = if all { &ERRORS[..] } else { &ERRORS[turn % ERRORS.len()..][..1] };
                turn += 1;
                let mut there = true;
                for errno in errors {
                    there &= fails(writer, &expected, (calls, when), errno);
                    runs += 1;
                }
                // There are no further calls.
                if !there {
                    break;
                }
            }
        }
        println!("{}: {runs} faults so far, every file the old one or the new one", writer.arguments);
    }
}
