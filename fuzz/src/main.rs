//! Runs one fuzz target, given by the name of the binary. It must be run in the root of the repository.
#![no_main]

#[path = "../../tests/it/fuzz/attempt.rs"]
mod attempt;
#[path = "../../tests/it/fuzz/seeds.rs"]
mod seeds;
#[path = "../../tests/it/fuzz/settings.rs"]
mod settings;
#[path = "../../tests/it/fuzz/targets.rs"]
mod targets;

use std::path::Path;

use attempt::{Bounds, attempt};
use libfuzzer_sys::fuzz_target;
use targets::{TARGETS, Target};

/// A constant, so that only the code that this target reaches is linked and counted.
const TARGET: Target = named(env!("CARGO_BIN_NAME"));

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

const fn named(name: &str) -> Target {
    let mut at = 0;
    while at < TARGETS.len() {
        if same(TARGETS[at].name.as_bytes(), name.as_bytes()) {
            return TARGETS[at];
        }
        at += 1;
    }
    panic!("fuzz/Cargo.toml names a target that tests/it/fuzz/targets.rs lacks");
}

/// Writes the seeds of the target, and their words as a dictionary.
fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let (corpus, pieces) = (folder.join("corpus"), seeds::pieces(&(TARGET.seeds)()));
    std::fs::create_dir_all(&corpus)?;
    for (number, piece) in pieces.iter().enumerate() {
        std::fs::write(corpus.join(format!("seed-{number:04}")), piece)?;
    }
    let words = seeds::words(&pieces).into_iter().filter_map(|word| std::str::from_utf8(word).ok());
    let dictionary = words.fold(String::new(), |all, word| all + "\"" + word + "\"\n");
    std::fs::write(folder.join("words"), dictionary)
}

fuzz_target!(
    init: {
        if let Some(folder) = std::env::var_os("ATLAS_FUZZ_SEEDS") {
            write_seeds(Path::new(&folder)).expect("the seeds are written");
            std::process::exit(0);
        }
    },
    |input: &[u8]| {
        if let Err(why) = attempt(&TARGET, input, Bounds::LONG) {
            panic!("{why}");
        }
    }
);
