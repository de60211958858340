//! Fuzzing of all parsers and decoders: inputs are mutated from small pieces of real files, and invariants are checked.
//! This short run is part of the tests and needs only stable Rust. `cargo xtask fuzz` runs the same targets under
//! libFuzzer, which is guided by coverage. After fixing a failure, add its input to `tests/corpus/TARGET/`, so that
//! every later run tries it first.

mod attempt;
mod mutate;
mod seeds;
mod settings;
mod targets;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::attempt::{Bounds, attempt};
use self::mutate::Mutator;
use self::targets::{TARGETS, Target};

/// Mutants per target.
const MUTANTS: usize = 150;
/// Maximum length of an input, bytes.
const LONGEST: usize = 64 << 10;

fn failed(target: &Target, input: &[u8], why: &str) -> ! {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/fuzz");
    std::fs::create_dir_all(&dir).unwrap();
    let name = atlas_document::fingerprint::fingerprint(input);
    let path = dir.join(format!("{}-{name:016x}", target.name));
    std::fs::write(&path, input).unwrap();
    panic!("{}: {why}; the input is {}", target.name, path.display());
}

/// Inputs of earlier failures, tried in every run.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(target.name);
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn mutated_inputs_violate_no_parser_invariant() {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    // Generous, as the machine may be loaded, and other tests in this process use memory. Quadratic time would take far
    // longer.
    let patience = Duration::from_secs(20);
    let bounds = Bounds { doubt: patience, time: patience, memory: u64::MAX };
    for target in TARGETS {
        let whole = (target.seeds)();
        assert!(!whole.is_empty(), "{} has nothing to begin with", target.name);
        let kept = corpus(target);
        for input in whole.iter().chain(&kept) {
            attempt(target, input, bounds).unwrap_or_else(|why| failed(target, input, &why));
        }
        let mut pieces = seeds::pieces(&whole);
        pieces.extend(kept);
        let mut mutator = Mutator::new(seed, &pieces);
        for _ in 0..MUTANTS {
            let input = mutator.mutant(&pieces, LONGEST);
            attempt(target, &input, bounds).unwrap_or_else(|why| failed(target, &input, &why));
        }
    }
}

#[test]
fn every_fuzz_target_has_a_libfuzzer_binary() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml")).unwrap();
    let binaries = manifest.split("[[bin]]").skip(1).filter_map(|bin| bin.split('"').nth(1));
    assert_eq!(binaries.collect::<Vec<_>>(), TARGETS.iter().map(|target| target.name).collect::<Vec<_>>());
}
