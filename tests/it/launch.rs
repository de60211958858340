//! `atlas launch` for several scenarios at once.

use std::path::{Path, PathBuf};

use crate::common::program::atlas;

const TARGETS: [&str; 4] = ["--target", "h100-sxm-8", "--target", "mi300x-8"];

fn launched(dir: &Path, more: &[&str]) -> (bool, String) {
    let fixed =
        ["launch", "--workload", "llama3.1-8b-train", "--tool", "megatron-lm", "--wrap", "slurm", "--out", "out"];
    let args: Vec<&str> = fixed.iter().chain(&TARGETS).chain(more).copied().collect();
    let output = atlas(dir, &args).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn scripts(dir: &Path) -> Vec<(String, String)> {
    let folders = std::fs::read_dir(dir.join("out")).unwrap().map(|entry| entry.unwrap().path());
    let script = |folder: PathBuf| {
        let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let script = files.into_iter().find(|file| file.extension().is_some_and(|end| end == "sbatch")).unwrap();
        (folder.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(script).unwrap())
    };
    let mut all: Vec<_> = folders.map(script).collect();
    all.sort();
    all
}

#[test]
fn every_target_and_methodology_has_a_directory_and_its_own_partition() {
    let dir = tempfile::tempdir().unwrap();
    let methodologies = ["--methodology", "identical-config", "--methodology", "maximum-performance"];
    let partitions = ["--partition", "usual", "--partition", "mi300x-8=amd"];
    let (written, problems) = launched(dir.path(), &[methodologies, partitions].concat());
    assert!(written, "{problems}");
    let all = scripts(dir.path());
    let of = |target: &str, methodology: &str| {
        let folder = format!("llama3-1-8b-train-{target}-{methodology}");
        all.iter().find(|(name, _)| *name == folder).map(|(_, text)| text.as_str()).unwrap()
    };
    assert_eq!(all.len(), 4);
    for (target, partition) in [("h100-sxm-8", "usual"), ("mi300x-8", "amd")] {
        for methodology in ["identical-config", "maximum-performance"] {
            assert!(of(target, methodology).contains(&format!("#SBATCH --partition={partition}\n")), "{target}");
        }
    }
    assert_ne!(
        of("h100-sxm-8", "identical-config"),
        of("h100-sxm-8", "maximum-performance"),
        "the search changed nothing"
    );
}

#[test]
fn nothing_is_written_where_one_scenario_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (written, problems) = launched(dir.path(), &["--set", "tp=16"]);
    assert!(!written && !dir.path().join("out").exists(), "{problems}");
}

#[test]
fn launch_rejects_foreign_duplicate_and_unused_flag_values() {
    let dir = tempfile::tempdir().unwrap();
    for (flags, named) in [
        (["--partition", "h200-sxm-8=x"], "h200-sxm-8=x"),
        (["--partition=a", "--partition=b"], "--partition b"),
        (["--image=h100-sxm-8=a", "--image=h100-sxm-8=b"], "for h100-sxm-8"),
        (["--objective", "cost"], "--objective requires --methodology maximum-performance"),
        (["--top", "3"], "--top is supported only by `atlas optimize`"),
    ] {
        let (written, problems) = launched(dir.path(), &flags);
        assert!(!written && problems.contains(named), "{problems}");
    }
    assert!(!dir.path().join("out").exists());
}
