//! The complete workflow and job arrays on a real Slurm.

use std::path::Path;
use std::process::Command;

/// Runs a script of `tests/slurm`.
fn run_script(script: &str, port: &str) {
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
        Some(0) => assert!(out.contains("passed"), "{script} ended without its last line:\n{out}"),
        code => panic!("{script} ended with {code:?}:\n{out}\n{err}"),
    }
}

#[test]
#[ignore = "needs Slurm and munge"]
fn full_workflow_script_passes_on_slurm() {
    run_script("loop.sh", "28110");
}

#[test]
#[ignore = "needs Slurm and munge"]
fn arrays_survive_requeue_node_failure_and_a_killed_merge_on_slurm() {
    run_script("arrays.sh", "28310");
}
