//! The complete workflow and job arrays on a real Slurm, if it is installed.

use std::path::Path;
use std::process::Command;

/// Runs a script of `tests/slurm`; exit status 77 means that Slurm is missing.
fn passes_or_is_skipped(script: &str, port: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm").join(script);
    let output = Command::new("bash")
        .arg(&path)
        .arg(env!("CARGO_BIN_EXE_atlas"))
        .env("STC_PORT", port)
        .env_remove("ATLAS_STATE_DIR")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match output.status.code() {
        Some(77) => println!("{script}: {out}"),
        Some(0) => assert!(out.contains("passed"), "{script} ended without its last line:\n{out}"),
        code => panic!("{script} ended with {code:?}:\n{out}\n{err}"),
    }
}

#[test]
fn full_workflow_script_passes_on_slurm() {
    passes_or_is_skipped("loop.sh", "28110");
}

#[test]
fn arrays_survive_requeue_node_failure_and_a_killed_merge_on_slurm() {
    passes_or_is_skipped("arrays.sh", "28310");
}
