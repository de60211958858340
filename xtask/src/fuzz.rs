//! `cargo xtask fuzz`: runs the targets of `tests/it/fuzz/` under libFuzzer, which keeps inputs that reach new code and
//! mutates them further. It begins with small inputs and lets them grow.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const MANIFEST: &str = "fuzz/Cargo.toml";
/// Directory for corpora, dictionaries and failing inputs.
const FOLDER: &str = "target/fuzz";
/// Compiler flags for the coverage instrumentation that libFuzzer needs.
const INSTRUMENTED: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table --cfg fuzzing";

/// Options of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fuzz targets, separated by commas; `all` runs all of them in turn
    #[arg(long, default_value = "all", value_delimiter = ',')]
    target: Vec<String>,
    /// Seconds per target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Maximum length of an input, bytes
    #[arg(long, default_value_t = 4096)]
    longest: usize,
    /// Random seed [default: a new one in every run]
    #[arg(long)]
    seed: Option<u32>,
}

/// Error of a fuzzing run.
#[derive(Debug, thiserror::Error)]
enum FuzzError {
    #[error("{what}: {source}")]
    System { what: String, source: std::io::Error },
    #[error("{0} failed")]
    Failed(String),
    #[error("unknown target `{found}`; known targets: all, {}", .names.join(", "))]
    Unknown { found: String, names: Vec<String> },
}

fn system(what: &Path) -> impl FnOnce(std::io::Error) -> FuzzError {
    let what = what.display().to_string();
    move |source| FuzzError::System { what, source }
}

/// Names of the binaries.
fn names() -> Result<Vec<String>, FuzzError> {
    let manifest = std::fs::read_to_string(MANIFEST).map_err(system(Path::new(MANIFEST)))?;
    let binaries = manifest.split("[[bin]]").skip(1);
    Ok(binaries.filter_map(|bin| bin.split('"').nth(1)).map(str::to_owned).collect())
}

/// Builds the targets; returns the directory of the binaries.
fn build(host: &str, targets: &[String]) -> Result<PathBuf, FuzzError> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // With an explicit target, the flags do not apply to build scripts, which run without libFuzzer.
    cargo.args(["build", "--release", "--manifest-path", MANIFEST, "--target-dir", "target/libfuzzer"]);
    cargo.args(["--target", host]).args(targets.iter().flat_map(|target| ["--bin", target]));
    let status = cargo.env("RUSTFLAGS", INSTRUMENTED).status().map_err(system(Path::new("cargo")))?;
    if status.success() {
        Ok(Path::new("target/libfuzzer").join(host).join("release"))
    } else {
        Err(FuzzError::Failed("cargo build".to_owned()))
    }
}

/// Statistics of a run, as reported by libFuzzer.
#[derive(Debug, Default, PartialEq)]
struct Summary {
    executions: u64,
    /// Covered and total number of instrumented locations.
    reached: u64,
    places: u64,
    /// Number of inputs in the corpus.
    corpus: u64,
}

impl Summary {
    fn of(said: &str) -> Summary {
        let after = |text: &str, name: &str| -> Option<u64> {
            text.split_once(name)?.1.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty())?.parse().ok()
        };
        let last = |name: &str| said.lines().rev().find_map(|line| after(line, name));
        let counters = said.lines().find(|line| line.contains("inline 8-bit counters"));
        Summary {
            executions: last("stat::number_of_executed_units:").or_else(|| last("#")).unwrap_or(0),
            reached: last(" cov: ").unwrap_or(0),
            places: counters.and_then(|line| after(line, "(")).unwrap_or(0),
            corpus: last(" corp: ").unwrap_or(0),
        }
    }
}

/// Fuzzes one target; returns whether no failure was found.
fn fuzz(binary: &Path, target: &str, args: &Args) -> Result<bool, FuzzError> {
    let folder = Path::new(FOLDER).join(target);
    let corpus = folder.join("corpus");
    let written = Command::new(binary).env("ATLAS_FUZZ_SEEDS", &folder).status().map_err(system(binary))?;
    if !written.success() {
        return Err(FuzzError::Failed(binary.display().to_string()));
    }
    let mut command = Command::new(binary);
    command.arg(&corpus);
    // Inputs of earlier failures.
    let kept = Path::new("tests/corpus").join(target);
    command.args(kept.is_dir().then_some(kept));
    command.args([
        format!("-dict={}", folder.join("words").display()),
        format!("-max_total_time={}", args.seconds),
        format!("-max_len={}", args.longest),
        format!("-artifact_prefix={}/", folder.display()),
        // The target checks time and memory itself; this limit is for inputs that never return.
        "-timeout=120".to_owned(),
        "-rss_limit_mb=4096".to_owned(),
        "-print_final_stats=1".to_owned(),
    ]);
    command.args(args.seed.map(|seed| format!("-seed={seed}")));
    let output = command.stderr(Stdio::piped()).output().map_err(system(binary))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let log = folder.join("log");
    std::fs::write(&log, said.as_bytes()).map_err(system(&log))?;
    let Summary { executions, reached, places, corpus } = Summary::of(&said);
    let per_second = executions / args.seconds.max(1);
    println!(
        "{target}: {executions} inputs, {per_second} per second; {corpus} inputs cover {reached} of {places} locations"
    );
    if !output.status.success() {
        let why = said.lines().filter(|line| line.contains("panicked at") || line.contains("ERROR: libFuzzer"));
        println!(
            "{target}: FAILED: {}; for the path of the failing input, see the end of {}",
            why.collect::<Vec<_>>().join("; "),
            log.display()
        );
    }
    Ok(output.status.success())
}

fn all(args: &Args) -> Result<bool, FuzzError> {
    let names = names()?;
    let chosen: Vec<String> = if args.target == ["all"] { names.clone() } else { args.target.clone() };
    if let Some(found) = chosen.iter().find(|target| !names.contains(target)) {
        return Err(FuzzError::Unknown { found: found.clone(), names });
    }
    let host = super::release::host().map_err(|_| FuzzError::Failed("rustc -vV".to_owned()))?;
    let binaries = build(&host, &chosen)?;
    let mut sound = true;
    for target in &chosen {
        sound &= fuzz(&binaries.join(target), target, args)?;
    }
    Ok(sound)
}

/// Fuzzes the targets and prints the results.
pub(crate) fn run(args: &Args) -> ExitCode {
    match all(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzz_summary_is_parsed_from_libfuzzer_output() {
        let said = "INFO: Running with entropic power schedule (0xFF, 100).\nINFO: Seed: 1\nINFO: Loaded 1 modules   (5123 \
                    inline 8-bit counters): 5123 [0x5, 0x6),\n#2\tINITED cov: 90 ft: 91 corp: 1/1b exec/s: 0 rss: 30Mb\n#64\tNEW    \
                    cov: 120 ft: 150 corp: 12/80b lim: 4 exec/s: 0 rss: 31Mb L: 4/4 MS: 1 CopyPart-\n";
        let cut = Summary { executions: 64, reached: 120, places: 5123, corpus: 12 };
        assert_eq!(Summary::of(said), cut);
        let ended = format!("{said}stat::number_of_executed_units: 70\nstat::average_exec_per_sec:     0\n");
        assert_eq!(Summary::of(&ended), Summary { executions: 70, ..cut });
        assert_eq!(Summary::of("error while loading shared libraries"), Summary::default());
    }
}
