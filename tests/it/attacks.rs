//! Regression tests for attacks on the binary other than malformed documents: odd file names, special files, programs
//! that grow while they are read.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

/// A file name that is not valid Unicode.
const NO_TEXT: &[u8] = b"a\xff\xfeb";
const SCENARIO: [&str; 4] = ["--target", "h100-sxm-8", "--workload", "llama3.1-8b-serve"];

/// Runs the program with 500 MB of address space and a limit of five minutes, as the machine may be loaded; returns the
/// exit code and the output.
fn limited(dir: &Path, arguments: &[&OsStr]) -> (Option<i32>, String) {
    let mut command = Command::new("sh");
    let line = "ulimit -v 500000; exec timeout 300 \"$0\" \"$@\"";
    command.args(["-c", line, env!("CARGO_BIN_EXE_atlas")]).args(arguments);
    command.current_dir(dir).env("ATLAS_CONFIG_DIR", dir.join("none")).env("RUST_BACKTRACE", "0");
    command.env("ATLAS_STATE_DIR", dir.join("state")).env_remove("ATLAS_HISTORY");
    let output = command.output().unwrap();
    (
        output.status.code(),
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat(),
    )
}

#[test]
fn output_files_are_written_to_non_utf8_paths() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(OsStr::from_bytes(NO_TEXT));
    std::fs::create_dir(&folder).unwrap();
    for (command, flag, file) in [
        ("report", "--out", "r.html"),
        ("report", "--out", "r.md"),
        ("run", "--out", "o"),
        ("simulate", "--out", "d"),
        ("simulate", "--trace", "t.json"),
        ("launch", "--out", "l"),
        ("frontier", "--svg", "f.svg"),
        ("scenario export", "--out", "x.json"),
    ] {
        let path = folder.join(file);
        let words = command.split(' ').chain(SCENARIO).chain([flag]).map(OsStr::new);
        let arguments: Vec<&OsStr> = words.chain([path.as_os_str()]).collect();
        let (code, described) = limited(dir.path(), &arguments);
        assert_eq!(code, Some(0), "{command} {flag} {file}: {described}");
        assert!(path.exists(), "{command} {flag} {file}");
    }
}

#[test]
fn non_regular_files_in_the_history_are_reported_without_blocking() {
    let dir = tempfile::tempdir().unwrap();
    let run = ["run"].into_iter().chain(SCENARIO).map(OsStr::new).collect::<Vec<_>>();
    assert_eq!(limited(dir.path(), &run).0, Some(0));
    let month = dir.path().join("state/history/2025-01");
    std::fs::create_dir(&month).unwrap();
    let pipe = month.join("20250101T000000000-run-00000000.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", month.join("20250101T000000001-run-00000001.json")).unwrap();
    let (code, described) = limited(dir.path(), &[OsStr::new("history")]);
    assert_eq!(code, Some(0), "{described}");
    assert_eq!(described.matches("not a regular file").count(), 2, "{described}");
}

#[test]
fn a_pipe_is_not_watched_as_a_log() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success());
    let (code, described) = limited(dir.path(), &["watch", "pipe", "--once"].map(OsStr::new));
    assert_eq!(code, Some(1), "{described}");
    assert!(described.contains("not a regular file"), "{described}");
}

#[test]
fn programs_whose_values_double_at_every_line_are_read_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let signs = format!("x={}1\nLLM(model=\"m\", tensor_parallel_size=x)\n", "-".repeat(200_001));
    let joined = format!("l = [{}]\nLLM(model=\"{}\".join(l))\n", "1,".repeat(50_000), "s".repeat(50_000));
    for (name, text) in [
        ("text.py", format!("x=\"a\"\n{}LLM(model=x)\n", "x=x+x\n".repeat(60))),
        ("more.py", format!("x=\"a\"\n{}LLM(model=x)\n", "x+=x\n".repeat(60))),
        ("list.py", format!("x=[\"a\"]\n{}LLM(model=x)\n", "x=x+x\n".repeat(60))),
        ("nested.py", format!("x={{}}\n{}LLM(**x)\n", "x={\"a\":x, \"b\":x}\n".repeat(60))),
        ("shown.py", format!("x=\"a\"\n{}LLM(model=x)\n", "x=f\"{x}{x}{x}\"\n".repeat(60))),
        ("append.py", format!("x=[]\n{}LLM(model=x)\n", "x.append(x)\nx.extend(x)\n".repeat(60))),
        ("joined.py", joined),
        ("double.sh", format!("x=aaaa\n{}vllm serve $x\n", "x=$x$x\n".repeat(60))),
        ("array.sh", format!("A=(x)\n{}vllm serve \"${{A[@]}}\"\n", "A+=(\"${A[@]}\" x)\n".repeat(60))),
        ("signs.py", signs),
    ] {
        std::fs::write(dir.path().join(name), text).unwrap();
        let (code, described) = limited(dir.path(), &[OsStr::new("import"), OsStr::new(name)]);
        assert!(matches!(code, Some(0 | 1)), "{name}: {code:?}, {described}");
    }
}
