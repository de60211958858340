//! Unusual environments: no home directory, files of earlier versions, many entries, several instances at once.

use std::path::Path;
use std::process::Stdio;

use crate::common::program::{atlas, stderr, stdout};

const RUN: [&str; 5] = ["run", "--target", "h100-sxm-8", "--workload", "llama3.1-8b-serve"];

/// `atlas` with this home directory, or none, and a history.
fn at_home(dir: &Path, home: Option<&str>, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = atlas(dir, arguments);
    for name in ["ATLAS_HISTORY", "ATLAS_STATE_DIR", "ATLAS_CONFIG_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"] {
        command.env_remove(name);
    }
    if let Some(home) = home {
        command.env("HOME", home);
    }
    command
}

#[test]
fn unwritable_home_disables_only_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let expected = stdout(&atlas(dir.path(), &RUN).assert().code(0));
    // A file, and a directory in which even root cannot create files.
    for home in ["/dev/null", "/proc/self/fd"] {
        let run = at_home(dir.path(), Some(home), &RUN).assert().code(0);
        assert_eq!(stdout(&run), expected, "{home}");
        assert!(stderr(&run).contains("not saved in the history: history: "), "{home}: {}", stderr(&run));
        at_home(dir.path(), Some(home), &["check"]).assert().code(0);
    }
    let run = at_home(dir.path(), Some("/dev/null"), &["history"]).assert().code(1);
    let described = stderr(&run);
    assert_eq!(described.matches("Not a directory").count(), 1, "a cause is stated once: {described}");
}

#[test]
fn estimates_are_identical_without_a_home_directory() {
    let dir = tempfile::tempdir().unwrap();
    let expected = stdout(&atlas(dir.path(), &RUN).assert().code(0));
    // The system may still find a home directory; the history is off so that nothing is written there.
    let run = at_home(dir.path(), None, &RUN).env("ATLAS_HISTORY", "off").assert().code(0);
    assert_eq!(stdout(&run), expected);
}

#[test]
fn concurrent_runs_are_all_recorded_in_the_history() {
    const INSTANCES: usize = 8;
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let children: Vec<_> = (0..INSTANCES)
        .map(|_| {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_atlas"));
            command.args(RUN).current_dir(dir.path()).env("ATLAS_STATE_DIR", &state).env_remove("ATLAS_HISTORY");
            command.env("ATLAS_CONFIG_DIR", dir.path().join("none")).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let mut command = atlas(dir.path(), &["history", "--format", "json"]);
    let listed = command.env("ATLAS_STATE_DIR", &state).env_remove("ATLAS_HISTORY").assert().code(0);
    let entries: serde_json::Value = serde_json::from_str(&stdout(&listed)).unwrap();
    assert_eq!(entries.as_array().unwrap().len(), INSTANCES);
    assert_eq!(stderr(&listed), "");
    // All of them wrote the same record: it is a complete one.
    let record = std::fs::read_to_string(dir.path().join("out/last_run.json")).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&record).is_ok(), "{record}");
}

#[test]
fn ten_thousand_targets_are_checked_listed_and_run() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("workload")).unwrap();
    let target = |i: usize| {
        format!(
            "- {{name: t{i}, vendor: NVIDIA, accelerator: nvidia-h100-sxm-80gb, accelerators_per_node: 8, num_nodes: 1, \
             memory_gb_per_accel: 80, cost: {{hourly_usd: {}, energy_watts_node: 10200, pue: 1.15}}}}\n",
            10 + i % 7
        )
    };
    std::fs::write(dir.path().join("workload/targets.yaml"), (0..10_000).map(target).collect::<String>()).unwrap();
    atlas(dir.path(), &["check"]).assert().code(0);
    let listed = stdout(&atlas(dir.path(), &["list", "targets"]).assert().code(0));
    assert!(listed.lines().filter(|line| line.contains("t9999")).count() == 1, "{}", listed.len());
    let run = ["run", "--target", "t9999", "--workload", "llama3.1-8b-serve"];
    assert!(stdout(&atlas(dir.path(), &run).assert().code(0)).starts_with("t9999 × llama3.1-8b-serve"));
}

/// The fixture has all knobs, views and panes of version 0.1.
#[cfg(unix)]
#[test]
fn version_0_1_session_restores_all_knobs_and_tabs() {
    use crate::common::pty::Session;
    let dir = tempfile::tempdir().unwrap();
    let sessions = dir.path().join("state/atlas-fabric/sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/session_0_1.json");
    std::fs::copy(&fixture, sessions.join("old.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(fixture).unwrap()).unwrap();
    let mut session = Session::start(dir.path(), &["tui", "--session", "old"]);
    session.wait_for("2 wide");
    let first = document["tabs"][0]["knobs"].as_object().unwrap().len();
    session.wait_for(&format!("{first} changed"));
    assert!(!session.screen().contains("session:"), "something was lost:\n{}", session.screen());
    session.keys("]");
    let second = document["tabs"][1]["knobs"].as_object().unwrap().len();
    session.wait_for(&format!("{second} changed"));
    // The second tab shows a different view, which q only closes.
    session.keys("\u{3}");
    assert_eq!(session.wait_for_end(), 0);
    assert!(sessions.join("old.json").exists() && !sessions.join("old.json.broken").exists());
}
