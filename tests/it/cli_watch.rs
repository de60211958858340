//! `atlas watch` and `atlas history`, through the real binary.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::program::{atlas, stderr, stdout};
use assert_cmd::Command;
use serde_json::Value;

const RUN: [&str; 5] = ["run", "--target", "h100-sxm-64", "--workload", "llama3.1-8b-train"];

/// `atlas` with a separate history.
fn kept(dir: &Path, args: &[&str]) -> Command {
    let mut command = atlas(dir, args);
    command.env("ATLAS_STATE_DIR", dir.join("state")).env_remove("ATLAS_HISTORY");
    command
}

/// Predicted step time of the last record, s, and the upper end of its interval.
fn predicted(dir: &Path) -> (f64, f64) {
    let record: Value = serde_json::from_str(&std::fs::read_to_string(dir.join("out/last_run.json")).unwrap()).unwrap();
    let seconds = record["record"]["step_time_ms"].as_f64().unwrap() / 1e3;
    let low = record["record"]["detail"]["throughput_interval"]["low"].as_f64().unwrap();
    (seconds, seconds / low)
}

fn log(steps: std::ops::RangeInclusive<u64>, seconds: f64, noise: f64) -> String {
    let mut out = String::new();
    for step in steps {
        let chance = (step as f64 * 0.618_034).fract() - 0.5;
        let _ = writeln!(
            out,
            " iteration {step:8}/     300 | consumed samples: {:12} | elapsed time per iteration (ms): {:.3} | learning \
             rate: 2.000000E-05 | global batch size:   256 | lm loss: 9.{step:06}E+00 | number of nan iterations:   0 |",
            step * 256,
            1e3 * seconds * (1.0 + noise * chance)
        );
    }
    out
}

#[test]
fn slowdown_is_reported_with_its_cause_and_exit_code_3() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path(), &RUN).assert().success();
    let (seconds, high) = predicted(dir.path());
    let path = dir.path().join("train.log");
    let watch = ["watch", "train.log", "--plan", "out/last_run.json", "--once", "--exit-code"];
    std::fs::write(&path, log(1..=120, seconds, 0.02)).unwrap();
    let fine = kept(dir.path(), &watch).assert().success();
    assert!(stdout(&fine).contains("within the interval"), "{}", stdout(&fine));

    std::fs::write(&path, log(1..=120, seconds, 0.02) + &log(121..=200, 1.2 * high, 0.02)).unwrap();
    let alarm = [
        &watch[..],
        &[
            "--format",
            "json",
            "--yes",
            "--on-alarm",
            r#"sh -c 'printf %s "$1" > alarm; echo "$2" > cause' sh {message} {cause}"#,
        ],
    ]
    .concat();
    let slow = kept(dir.path(), &alarm).assert().code(3);
    let lines: Vec<Value> = stdout(&slow).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["compared", "left_band", "ended"]);
    assert_eq!(lines[1]["since"], 121);
    assert_eq!(lines[1]["suspects"][0]["cause"], "straggler");
    assert_eq!((&lines[1]["progress"]["step"], &lines[1]["progress"]["of"]), (&200.into(), &300.into()));
    assert!(lines[1]["progress"]["usd_to_completion"].as_f64().unwrap() > 0.0);
    assert_eq!(std::fs::read_to_string(dir.path().join("cause")).unwrap(), "straggler\n");
    assert!(std::fs::read_to_string(dir.path().join("alarm")).unwrap().contains("since step 121"));
    assert!(stderr(&slow).contains("alarm command: sh -c 'printf"), "{}", stderr(&slow));
    // The watched run is in the history, with the inputs of the plan.
    let shown = kept(dir.path(), &["history", "show", "last", "--format", "json"]).assert().success();
    let entry: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    assert_eq!((&entry["kind"], &entry["target"]), (&"run".into(), &"h100-sxm-64".into()));
    assert!(entry["figures"]["measured_over_predicted"].as_f64().is_some());
    assert!(entry["inputs"]["tp"].is_string());
}

#[test]
fn watch_follows_a_growing_log_to_its_last_step_without_repeats() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path(), &RUN).assert().success();
    let (seconds, _) = predicted(dir.path());
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_atlas"));
    command
        .args(["watch", "train.log", "--target", "h100-sxm-64", "--workload", "llama3.1-8b-train", "--poll", "0.05"])
        .current_dir(dir.path())
        .env("ATLAS_STATE_DIR", dir.path().join("state"))
        .env_remove("ATLAS_HISTORY")
        .env("ATLAS_CONFIG_DIR", dir.path().join("no-config"))
        .stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let text = log(1..=300, seconds, 0.02);
    let bytes = text.as_bytes();
    for piece in bytes.chunks(bytes.len() / 7 + 1) {
        use std::io::Write as _;
        let mut file =
            std::fs::OpenOptions::new().append(true).create(true).open(dir.path().join("train.log")).unwrap();
        file.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(120));
    }
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    let lines: Vec<&str> = out.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert!(lines[1].starts_with("step 300: within the interval"), "{out}");
}

#[test]
fn watch_rejects_unusable_logs_plans_and_alarm_commands() {
    let dir = tempfile::tempdir().unwrap();
    for (args, said) in [
        (&["watch", "none.log", "--once"][..], "none.log: no such file"),
        (&["watch", "a.log", "--plan", "nothing"], "--plan: nothing: no such file"),
        (&["watch", "a.log", "--on-alarm", "mail 'x"], "unclosed single quote"),
        (&["watch", "a.log", "--target", "h100-sxm-64"], "--workload"),
    ] {
        let assert = kept(dir.path(), args).assert().failure();
        assert!(stderr(&assert).contains(said), "{}", stderr(&assert));
    }
    std::fs::write(dir.path().join("notes.txt"), "no log\n").unwrap();
    let assert = kept(dir.path(), &["watch", "notes.txt", "--once"]).assert().failure();
    assert!(stderr(&assert).contains("no training step or server report found"));
}

#[test]
fn history_lists_diffs_and_exports_entries() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path(), &RUN).assert().success();
    kept(dir.path(), &[&RUN[..], &["--set", "tp=8"]].concat()).assert().success();
    let list = kept(dir.path(), &["history", "--kind", "prediction", "--format", "json"]).assert().success();
    let entries: Vec<Value> = serde_json::from_str(&stdout(&list)).unwrap();
    assert_eq!(entries.len(), 2);
    for (filter, count) in [(["--target", "h100"], 2), (["--workload", "8b-train"], 2), (["--target", "h200"], 0)] {
        // Filters are accepted before and after the subcommand.
        for args in [[&["history"], &filter[..], &["list"]].concat(), [&["history", "list"], &filter[..]].concat()] {
            let list = kept(dir.path(), &[&args[..], &["--format", "json"]].concat()).assert().success();
            let entries: Vec<Value> = serde_json::from_str(&stdout(&list)).unwrap();
            assert_eq!(entries.len(), count, "{args:?}");
        }
    }
    let name = |entry: &Value| entry["id"].as_str().unwrap().to_owned();
    let diff = kept(dir.path(), &["history", "diff", "last~1", "last", "--format", "json"]).assert().success();
    let diff: Value = serde_json::from_str(&stdout(&diff)).unwrap();
    assert_eq!((&diff["first"], &diff["second"]), (&name(&entries[1]).into(), &name(&entries[0]).into()));
    assert!(diff["inputs"].as_array().unwrap().iter().any(|change| change["name"] == "tp" && change["after"] == "8"));
    let changes = kept(dir.path(), &["history", "changes", "tokens_per_sec"]).assert().success();
    assert!(stdout(&changes).contains("tp:"), "{}", stdout(&changes));
    let trend = kept(dir.path(), &["history", "trend", "tokens_per_sec"]).assert().success();
    assert!(stdout(&trend).contains("h100-sxm-64 × llama3.1-8b-train, prediction (analytical)"));
    kept(dir.path(), &["history", "export", "--out", "all.csv"]).assert().success();
    kept(dir.path(), &["history", "export", "--out", "all.csv"]).assert().failure();
    let rows = std::fs::read_to_string(dir.path().join("all.csv")).unwrap();
    assert_eq!(rows.lines().count(), 3);
    let wrong = kept(dir.path(), &["history", "trend", "nonsense"]).assert().code(2);
    assert!(stderr(&wrong).contains("tokens_per_sec"));
    // A history entry can be used as a plan, like a record file.
    std::fs::write(dir.path().join("t.log"), log(1..=20, predicted(dir.path()).0, 0.0)).unwrap();
    let id = name(&entries[0]);
    kept(dir.path(), &["watch", "t.log", "--once", "--plan", &id]).assert().success();
    let run = kept(dir.path(), &["history", "show", "last", "--format", "json"]).assert().success();
    assert_eq!(serde_json::from_str::<Value>(&stdout(&run)).unwrap()["sources"][0], id.as_str());
}

#[test]
fn version_0_1_records_are_imported_only_once() {
    let dir = tempfile::tempdir().unwrap();
    let record = r#"{"ts": "2025-08-01T10:00:00Z", "target": "a", "workload": "b", "track": "parity", "knobs":
        {"microbatch": 4, "cuda_graphs": true, "gpudirect_rdma": true, "virt": "bare", "fabric": "nvlink"},
        "record": {"tokens_per_sec": 1200.5, "artifacts": {"logs": "sim://logs"}}, "dollar_per_1k_tokens": 0.02,
        "label": "pre-opt"}"#;
    std::fs::create_dir(dir.path().join("out")).unwrap();
    std::fs::write(dir.path().join("out/a_b_parity_1337.json"), record).unwrap();
    for _ in 0..2 {
        kept(dir.path(), &["history", "import", "out"]).assert().success();
    }
    let list = kept(dir.path(), &["history", "--format", "json"]).assert().success();
    let entries: Vec<Value> = serde_json::from_str(&stdout(&list)).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (&entries[0]["at"], &entries[0]["figures"]["tokens_per_sec"]),
        (&"2025-08-01T10:00:00Z".into(), &1200.5.into())
    );
}

#[test]
fn a_killed_writer_leaves_whole_entries_only() {
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let mut killed = 0;
    // Killed at a different time in every round.
    for round in 0..12_u64 {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_atlas"))
            .args(RUN)
            .current_dir(dir.path())
            .env("ATLAS_STATE_DIR", dir.path().join("state"))
            .env("ATLAS_CONFIG_DIR", dir.path().join("no-config"))
            .env_remove("ATLAS_HISTORY")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(15 * round));
        let _ = child.kill();
        killed += u64::from(!child.wait().unwrap().success());
    }
    kept(dir.path(), &RUN).assert().success();
    let list = kept(dir.path(), &["history", "--format", "json"]).assert().success();
    assert!(!stderr(&list).contains("left out"), "{} after {killed} kills, {:?}", stderr(&list), began.elapsed());
    let entries: Vec<Value> = serde_json::from_str(&stdout(&list)).unwrap();
    assert!(!entries.is_empty() && entries.iter().all(|entry| entry["figures"]["tokens_per_sec"].is_number()));
}

#[test]
fn secrets_of_the_command_line_are_masked() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path(), &RUN).assert().success();
    std::fs::write(dir.path().join("t.log"), log(1..=20, 1.0, 0.0)).unwrap();
    let command = "curl -H 'Authorization: Bearer abcdefghij' https://x";
    kept(dir.path(), &["watch", "t.log", "--once", "--plan", "last", "--yes", "--on-alarm", command])
        .assert()
        .success();
    let shown = kept(dir.path(), &["history", "show", "--format", "json"]).assert().success();
    assert!(stdout(&shown).contains("Bearer ***") && !stdout(&shown).contains("abcdefghij"), "{}", stdout(&shown));
}
