//! Fuzzing of every parser and decoder, in this process and on stable Rust: inputs are mutated from small corpora of real
//! files, and what must hold of any input is checked. A short run is part of the tests; `cargo xtask fuzz` runs longer.
//!
//! An input that fails is written to `target/fuzz/`; put it into `tests/corpus/TARGET/` once it is mended, so that
//! it is tried first from then on.

mod mutate;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use self::mutate::Mutator;
use self::targets::{TARGETS, Target};

/// Inputs of a target in the short run.
const SHORT: u64 = 150;
/// Longest input that is made.
const LONGEST: usize = 64 << 10;

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
    let began = worked();
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let took = worked().saturating_sub(began);
    match result {
        Err(_) => Err("it panics".to_owned()),
        Ok(Err(why)) => Err(why),
        Ok(Ok(())) if took > patience => Err(format!("it takes {took:?}")),
        Ok(Ok(())) => Ok(()),
    }
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

/// Tries seeds, then mutants, until `enough` says so; answers how many were tried.
fn fuzz(target: &Target, seed: u64, patience: Duration, enough: impl Fn(u64) -> bool) -> u64 {
    let kept = corpus(target);
    for input in &kept {
        attempt(target, input, patience).unwrap_or_else(|why| failed(target, input, &why));
    }
    let mut seeds = (target.seeds)();
    seeds.extend(kept);
    assert!(!seeds.is_empty(), "{} has nothing to begin with", target.name);
    for input in &seeds {
        attempt(target, input, patience).unwrap_or_else(|why| failed(target, input, &why));
    }
    let mut mutator = Mutator::new(seed);
    let mut tried = 0;
    while !enough(tried) {
        let input = mutator.mutant(&seeds, LONGEST);
        attempt(target, &input, patience).unwrap_or_else(|why| failed(target, &input, &why));
        tried += 1;
    }
    tried
}

#[test]
fn no_input_breaks_a_parser() {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for target in TARGETS {
        // Generous: the machine may be loaded. What takes quadratic time takes far longer.
        fuzz(target, seed, Duration::from_secs(20), |tried| tried >= SHORT);
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
    for target in chosen {
        let began = Instant::now();
        let tried = fuzz(target, seed, Duration::from_secs(1), |_| began.elapsed() >= seconds);
        println!("{}: {tried} inputs in {:?}, seed {seed}: nothing found", target.name, began.elapsed());
    }
}
