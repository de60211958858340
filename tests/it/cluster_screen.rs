//! The TUI on a login node: partitions with idle nodes, and jobs of the history, with stub programs on the path that
//! answer like Slurm's.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use atlas_cluster::history::{Draft, Entry, EntryKind, JOBS, Store};
use portable_pty::CommandBuilder;

use crate::common::program::{atlas, stdout};
use crate::common::pty::Session;

/// Four nodes of eight H100 in one partition, two of them idle.
const SINFO: &str = r#"case "$*" in
  *%a*) for state in idle allocated; do
          echo "gpu|up|2|$state|96|1000000|gpu:h100_sxm_80gb:8|h100|2-00:00:00|1-infinite|n[1-2]"
        done ;;
  *) echo 'gpu|gpu:h100_sxm_80gb:8|idle|2'; echo 'gpu|gpu:h100_sxm_80gb:8|allocated|2' ;;
esac"#;

fn program(dir: &Path, name: &str, body: &str) {
    let bin = dir.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let path = bin.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// `PATH` with the programs of the directory in front.
fn path(dir: &Path) -> String {
    format!("{}:/usr/bin:/bin", dir.join("bin").display())
}

#[test]
fn idle_nodes_are_shown_next_to_a_detected_target() {
    let dir = tempfile::tempdir().unwrap();
    program(dir.path(), "sinfo", SINFO);
    program(dir.path(), "squeue", "exit 0");
    program(dir.path(), "scontrol", "exit 1");
    let found = atlas(dir.path(), &["detect", "--only", "slurm"]).env("PATH", path(dir.path())).assert().success();
    let targets = stdout(&found);
    assert!(targets.contains("accelerator: nvidia-h100-sxm-80gb"), "{targets}");
    // Values that Slurm does not know are left to the user.
    let priced = "  cost: { hourly_usd: 32.0, energy_watts_node: 10200, pue: 1.2 }\n";
    let targets = targets.replace("  cost:\n", priced);
    assert!(targets.contains(priced), "{targets}");
    std::fs::create_dir_all(dir.path().join("workload")).unwrap();
    std::fs::write(dir.path().join("workload/targets.yaml"), targets).unwrap();

    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_atlas"));
    command.args(["--fresh", "--target", "gpu", "--workload", "llama3.1-8b-train"]);
    command.env("PATH", path(dir.path()));
    let mut session = Session::run(dir.path(), command);
    session.wait_for("2/4 idle");
    session.keys("q");
    assert_eq!(session.wait_for_end(), 0);
}

#[test]
fn enter_on_a_submission_opens_the_watch_on_its_job_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/screens/slow.log");
    let answer = format!(
        "echo 'JobId=4711 JobName=train UserId=a(1) JobState=RUNNING StdErr={0} StdIn=/dev/null StdOut={0}'",
        log.display()
    );
    program(dir.path(), "scontrol", &format!("case \"$*\" in *4711*) {answer} ;; *) exit 1 ;; esac"));
    let store = Store::at(dir.path().join("kept/history"));
    let draft = Draft {
        target: Some("h100-sxm-8".to_owned()),
        workload: Some("llama3.1-8b-train".to_owned()),
        figures: BTreeMap::from([("step_time_ms".to_owned(), 14_185.8)]),
        inputs: BTreeMap::from([(JOBS.to_owned(), "4711".into())]),
        ..Draft::default()
    };
    store.write(&Entry::new(EntryKind::Submission, draft)).unwrap();

    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_atlas"));
    command.args(["--fresh", "--target", "h100-sxm-8", "--workload", "llama3.1-8b-train"]);
    command.env("PATH", path(dir.path()));
    command.env_remove("ATLAS_HISTORY");
    command.env("ATLAS_STATE_DIR", dir.path().join("kept"));
    let mut session = Session::run(dir.path(), command);
    session.wait_for("h100-sxm-8");
    session.keys("vh");
    session.wait_for("submission");
    session.keys("\r");
    session.wait_for("4711");
    session.keys("\r");
    session.wait_for("90 of 300 steps");
    // The first one closes the view.
    session.keys("q");
    session.wait_for("key figures");
    session.keys("q");
    assert_eq!(session.wait_for_end(), 0);
}
