//! Fuzzing of every parser and decoder, in this process and on stable Rust: inputs are mutated from small corpora of real
//! files, and what must hold of any input is checked. A short run is part of the tests; `cargo xtask fuzz` runs longer.
//!
//! An input that fails is written to `target/fuzz/`; put it into `tests/corpus/TARGET/` once it is mended, so that
//! it is tried first from then on.

mod mutate;
mod seeds;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use self::mutate::Mutator;
use self::targets::{TARGETS, Target};

/// Inputs of a target in the short run.
const SHORT: u64 = 150;
/// Inputs between two looks at the memory.
const BATCH: u64 = 50;
/// Longest input that is made.
const LONGEST: usize = 64 << 10;

/// What an input may take.
#[derive(Clone, Copy)]
struct Bounds {
    patience: Duration,
    /// Bytes.
    memory: u64,
}

/// Time that this thread has run, which other load on the machine does not lengthen; elsewhere than on Linux, time that
/// has passed.
fn worked() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let nanoseconds = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| BEGAN.elapsed(), Duration::from_nanos)
}

/// Tries one input; the answer says what does not hold.
fn attempt(target: &Target, input: &[u8], patience: Duration) -> Result<(), String> {
    let began = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    if began.elapsed() > patience {
        // Once more, by the time that only this thread has worked.
        let began = worked();
        let _ = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
        let took = worked().saturating_sub(began);
        if took > patience {
            return Err(format!("it takes {took:?}"));
        }
    }
    result.unwrap_or_else(|_| Err("it panics".to_owned()))
}

/// Resident memory now, or the most since [`forget_peak`], in bytes; elsewhere than on Linux, nothing.
fn resident(peak: bool) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let name = if peak { "VmHWM:" } else { "VmRSS:" };
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// How much more memory than before was in use at some time of `work`.
fn memory_of(work: impl FnOnce()) -> u64 {
    forget_peak();
    let before = resident(false);
    work();
    resident(true).zip(before).map_or(0, |(peak, before)| peak.saturating_sub(before))
}

fn failed(target: &Target, input: &[u8], why: &str) -> ! {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/fuzz");
    std::fs::create_dir_all(&dir).unwrap();
    let name = atlas_document::fingerprint::fingerprint(input);
    let path = dir.join(format!("{}-{name:016x}", target.name));
    std::fs::write(&path, input).unwrap();
    panic!("{}: {why}; the input is {}", target.name, path.display());
}

/// Inputs that failed once, and are tried in every run.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(target.name);
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Tries seeds, then mutants, until `enough` says so; answers how many were tried, and their bytes.
fn fuzz(target: &Target, seed: u64, bounds: Bounds, enough: impl Fn(u64) -> bool) -> (u64, u64) {
    let Bounds { patience, memory } = bounds;
    let kept = corpus(target);
    let mut seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{} has nothing to begin with", target.name);
    seeds.extend(kept);
    for input in &seeds {
        attempt(target, input, patience).unwrap_or_else(|why| failed(target, input, &why));
    }
    let mut mutator = Mutator::new(seed, &seeds);
    let (mut tried, mut bytes) = (0, 0);
    while !enough(tried) {
        let mut again = mutator.clone();
        let used = memory_of(|| {
            for _ in 0..BATCH {
                let input = mutator.mutant(&seeds, LONGEST);
                attempt(target, &input, patience).unwrap_or_else(|why| failed(target, &input, &why));
                bytes += input.len() as u64;
            }
        });
        tried += BATCH;
        if used > memory {
            // Which of them was it?
            for _ in 0..BATCH {
                let input = again.mutant(&seeds, LONGEST);
                let used = memory_of(|| drop(attempt(target, &input, patience)));
                if used > memory {
                    failed(target, &input, &format!("it takes {} MB", used >> 20));
                }
            }
        }
    }
    (tried, bytes)
}

#[test]
fn no_input_breaks_a_parser() {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for target in TARGETS {
        // Generous: the machine may be loaded, and other tests take memory beside this one. What takes quadratic time takes
        // far longer.
        let bounds = Bounds { patience: Duration::from_secs(20), memory: u64::MAX };
        fuzz(target, seed, bounds, |tried| tried >= SHORT);
    }
}

/// Run by `cargo xtask fuzz`, which sets the variables.
#[test]
#[ignore = "long: `cargo xtask fuzz --target NAME --seconds N`"]
fn long_run() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let wanted = variable("ATLAS_FUZZ_TARGET");
    let seconds = Duration::from_secs(variable("ATLAS_FUZZ_SECONDS").parse().expect("seconds"));
    let seed = variable("ATLAS_FUZZ_SEED").parse().unwrap_or_else(|_| u64::from(std::process::id()));
    let chosen: Vec<&Target> = TARGETS.iter().filter(|target| wanted == "all" || target.name == wanted).collect();
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert!(!chosen.is_empty(), "no target `{wanted}`; they are all, {}", names.join(", "));
    let bounds = Bounds { patience: Duration::from_secs(1), memory: 200 << 20 };
    for target in chosen {
        let (began, before) = (Instant::now(), worked());
        let (tried, bytes) = fuzz(target, seed, bounds, |_| began.elapsed() >= seconds);
        let busy = worked().saturating_sub(before).as_secs_f64();
        println!(
            "{}: {tried} inputs of {} bytes in {:.0} s, {:.0} a second of processor time, seed {seed}: nothing found",
            target.name,
            bytes / tried.max(1),
            began.elapsed().as_secs_f64(),
            tried as f64 / busy.max(1e-9)
        );
    }
}
