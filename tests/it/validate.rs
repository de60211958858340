//! The analytical engine against published measurements: the errors stated in the README remain correct.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use atlas_evidence::validate::verdict::{Verdict, coverage, overall};
use atlas_evidence::validate::{MeasurementKind, Method, judge, judge_by, shipped};
use atlas_perf::interval::Release;
use atlas_plan::search::Gauge;
use serde_json::Value;

use crate::common::program::{atlas, stderr, stdout};

fn verdicts(kind: MeasurementKind) -> Vec<Verdict> {
    judge(kind, &shipped(kind).unwrap()).unwrap()
}

#[test]
fn every_row_has_a_prediction_inside_its_interval_or_a_reason() {
    for kind in MeasurementKind::ALL {
        for verdict in verdicts(kind) {
            match (verdict.predicted, &verdict.reason) {
                (Some(predicted), None) => {
                    let (lower, upper) = (verdict.lower.unwrap(), verdict.upper.unwrap());
                    assert!(predicted > 0.0 && lower < predicted && predicted < upper, "{verdict:?}");
                    assert!(verdict.measured.unwrap() > 0.0, "{verdict:?}");
                }
                (None, Some(reason)) => assert!(!reason.is_empty()),
                _ => panic!("{verdict:?}"),
            }
        }
    }
}

#[test]
fn training_prediction_errors_stay_within_the_readme_values() {
    let all = verdicts(MeasurementKind::Training);
    let stats = overall(&all);
    assert!(stats.n >= 1765, "{stats:?}");
    assert!(stats.median <= 9.6 && stats.p90 <= 33.0 && stats.bias.abs() <= 2.5, "{stats:?}");
    let (share, _) = coverage(&all);
    assert!(share >= 0.88, "{share}");
}

/// Answers of `atlas run --batch` to the scenarios of `atlas validate --scenarios`, by id.
fn batch(kind: MeasurementKind) -> BTreeMap<String, (Value, f64)> {
    let atlas = env!("CARGO_BIN_EXE_atlas");
    let scenarios = Command::new(atlas).args(["validate", "--scenarios", "--kind", kind.name()]).output().unwrap();
    assert!(scenarios.status.success(), "{}", String::from_utf8_lossy(&scenarios.stderr));
    let mut run = Command::new(atlas)
        .args(["run", "--batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = run.stdin.take().unwrap();
    let asked: Vec<Value> = String::from_utf8(scenarios.stdout.clone())
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let writer = std::thread::spawn(move || input.write_all(&scenarios.stdout).unwrap());
    let out = run.wait_with_output().unwrap();
    writer.join().unwrap();
    let answers = String::from_utf8(out.stdout).unwrap();
    answers
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .zip(asked)
        .map(|(answer, asked)| {
            let target = &asked["target"];
            let count = |key: &str| target[key].as_f64().unwrap();
            let accelerators = count("accelerators_per_node") * count("num_nodes");
            (answer["id"].as_str().unwrap().to_owned(), (answer, accelerators))
        })
        .collect()
}

#[test]
fn predicted_rows_equal_the_same_scenario_run_by_a_user() {
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    for kind in MeasurementKind::ALL {
        let answers = batch(kind);
        let mut compared = 0;
        for verdict in verdicts(kind).iter().filter(|verdict| verdict.predicted.is_some()) {
            let (answer, accelerators) = &answers[&verdict.id];
            let record = &answer["record"];
            let detail = &record["detail"];
            let serving = &detail["serving"];
            let (figure, interval) = match verdict.metric_name() {
                "tokens_per_sec_per_accel" => {
                    (record["tokens_per_sec"].as_f64().unwrap() / accelerators, &detail["throughput_interval"])
                }
                "output_tokens_per_sec_total" => {
                    (record["tokens_per_sec"].as_f64().unwrap(), &detail["throughput_interval"])
                }
                "total_tokens_per_sec" => {
                    (serving["total_tokens_per_sec"].as_f64().unwrap(), &detail["throughput_interval"])
                }
                "requests_per_sec" => (serving["requests_per_sec"].as_f64().unwrap(), &detail["throughput_interval"]),
                "ttft_ms" => (serving["ttft_ms"][0].as_f64().unwrap(), &serving["ttft_interval"]),
                "tpot_ms" => (serving["tpot_ms"][0].as_f64().unwrap(), &serving["tpot_interval"]),
                other => panic!("{other}"),
            };
            let (low, high) = (interval["low"].as_f64().unwrap(), interval["high"].as_f64().unwrap());
            assert!(near(figure, verdict.predicted.unwrap()), "{verdict:?}: {figure}");
            assert!(near(figure * low, verdict.lower.unwrap()), "{verdict:?}: {low}");
            assert!(near(figure * high, verdict.upper.unwrap()), "{verdict:?}: {high}");
            compared += 1;
        }
        assert!(compared > 1500, "{}: {compared}", kind.name());
    }
}

#[test]
fn serving_prediction_errors_stay_within_the_readme_values() {
    let all = verdicts(MeasurementKind::Inference);
    let stats = overall(&all);
    assert!(stats.n >= 3900 && stats.median <= 16.5 && stats.p90 <= 61.0, "{stats:?}");
    assert!(coverage(&all).0 >= 0.9, "{:?}", coverage(&all));
    let latency = verdicts(MeasurementKind::Latency);
    for (metric, most) in [("tpot_ms", 12.0), ("ttft_ms", 27.9)] {
        let of: Vec<Verdict> = latency.iter().filter(|verdict| verdict.metric_name() == metric).cloned().collect();
        let stats = overall(&of);
        assert!(stats.n >= 2240 && stats.median <= most, "{metric}: {stats:?}");
        assert!(coverage(&of).0 >= 0.88, "{metric}");
    }
}

#[test]
fn intervals_cover_measurements_with_an_assumed_release() {
    let method = Method { release: Release::Assumed, ..Method::default() };
    for kind in MeasurementKind::ALL {
        let withheld = judge_by(kind, &shipped(kind).unwrap(), method, &Gauge::default()).unwrap();
        let counted: Vec<Verdict> = withheld.into_iter().filter(|v| v.copy_of.is_none() && !v.inferred).collect();
        let stated: BTreeMap<String, Verdict> =
            verdicts(kind).into_iter().map(|v| (format!("{} {}", v.id, v.metric_name()), v)).collect();
        let as_stated = |v: &&Verdict| stated.get(&format!("{} {}", v.id, v.metric_name())).and_then(|s| s.predicted);
        let moved = counted.iter().filter(|v| as_stated(v) != v.predicted).count();
        assert!(moved > counted.len() / 20, "{kind:?}: the release changes {moved} of {} figures", counted.len());
        let (share, _) = coverage(&counted);
        assert!((0.88..0.96).contains(&share), "{kind:?}: {share}");
    }
}

#[test]
fn unknown_measurement_table_error_lists_expected_and_found_columns() {
    let problem = MeasurementKind::of("a,b,c\n1,2,3\n").unwrap_err().to_string();
    assert!(problem.contains("seq_len") && problem.contains("a,b,c"), "{problem}");
    assert_eq!(MeasurementKind::of(&shipped(MeasurementKind::Latency).unwrap()).unwrap(), MeasurementKind::Latency);
    assert_eq!(MeasurementKind::of(&shipped(MeasurementKind::Inference).unwrap()).unwrap(), MeasurementKind::Inference);
    assert_eq!(MeasurementKind::of(&shipped(MeasurementKind::Training).unwrap()).unwrap(), MeasurementKind::Training);
}

#[test]
fn validate_command_prints_all_rows_as_json_table_and_csv() {
    let run = |arguments: &[&str]| {
        let out =
            std::process::Command::new(env!("CARGO_BIN_EXE_atlas")).arg("validate").args(arguments).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let json: serde_json::Value = serde_json::from_str(&run(&["--kind", "training", "--format", "json"])).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), verdicts(MeasurementKind::Training).len());
    assert!(rows.iter().all(|row| row["predicted"].is_number() != row["reason"].is_string()));
    let table = run(&["--kind", "training", "--source", "vtrain"]);
    assert!(table.contains("vTrain") && table.contains("horizontal: measured"), "{table}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.csv");
    std::fs::write(&path, shipped(MeasurementKind::Latency).unwrap().lines().take(4).collect::<Vec<_>>().join("\n"))
        .unwrap();
    let csv = run(&["--measurements", path.to_str().unwrap(), "--format", "csv"]);
    assert_eq!(csv.lines().count(), 1 + 2 * 3, "two figures a row: {csv}");
}

#[test]
fn validate_row_prints_the_steps_of_its_prediction() {
    let described = |id: &str| {
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_atlas"))
            .args(["validate", "--row", id])
            .env("LC_ALL", "C.UTF-8")
            .output();
        let out = out.unwrap();
        (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap(), out.status.success())
    };
    let (story, _, ok) = described("nemo-0004");
    assert!(ok);
    for wanted in ["gpt3-175b", "tp 4 · pp 8 · vpp 6 · dp 16", "measured step time", "100.0 %", "90 % interval"] {
        assert!(story.contains(wanted), "{wanted} is not in\n{story}");
    }
    let (_, complaint, ok) = described("no-such-row");
    assert!(!ok && complaint.contains("unknown row \"no-such-row\""), "{complaint}");
}

/// Runs `atlas validate` on a table with this text: stdout, stderr, and whether it succeeded.
fn validate_text(text: &str, arguments: &[&str]) -> (String, String, bool) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.csv");
    std::fs::write(&path, text).unwrap();
    let mut atlas = Command::new(env!("CARGO_BIN_EXE_atlas"));
    let out =
        atlas.current_dir(&dir).args(["validate", "--measurements", "mine.csv"]).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(out.stdout), text(out.stderr), out.status.success())
}

const HEAD: &str = "id,accelerator,num_accelerators,model,seq_len,global_batch,tp,tokens_per_sec_per_accel,mfu";

#[test]
fn bad_cells_are_located_and_their_rows_are_skipped() {
    let good = "a,nvidia-h100-sxm-80gb,8,llama-3.1-8b,8192,64,1,12000,";
    for (row, found) in [
        (
            "b,nvidia-h100-sxm-80gb,8,llama-3.1-8b,8192,64,1,-5,0.4",
            "mine.csv:3:8: tokens_per_sec_per_accel: found \"-5\"",
        ),
        (
            "b,nvidia-h100-sxm-80gb,8,llama-3.1-8b,8192,64,1,NaN,0.4",
            "mine.csv:3:8: tokens_per_sec_per_accel: found \"NaN\"",
        ),
        ("b,nvidia-h100-sxm-80gb,-8,llama-3.1-8b,8192,64,1,12000,", "mine.csv:3:3: num_accelerators: found \"-8\""),
        ("b,nvidia-h100-sxm-80gb,8,llama-3.1-8b,8192,64,0.5,12000,", "mine.csv:3:7: tp: found \"0.5\""),
        ("b,nvidia-h100-sxm-80gb,8,llama-3.1-8b,8192,3.7,1,12000,", "mine.csv:3:6: global_batch: found \"3.7\""),
    ] {
        let (out, complaints, ok) = validate_text(&format!("{HEAD}\n{good}\n{row}\n"), &["--format", "json"]);
        assert!(ok && complaints.contains(found), "{complaints}");
        let json: Value = serde_json::from_str(&out).unwrap();
        assert!(json["rows"][0]["predicted"].is_number(), "{out}");
        assert!(json["rows"][1]["predicted"].is_null() && json["rows"][1]["reason"].is_string(), "{out}");
        assert_eq!(json["kinds"][0]["skipped"]["not predicted"], 1);
    }
    let (_, complaint, ok) = validate_text("id,accelerator,seq_len,tp,tp\na,h100,8192,1,2\n", &[]);
    assert!(!ok && complaint.contains("mine.csv: line 1: duplicate column `tp`"), "{complaint}");
}

#[test]
fn table_without_predictions_is_reported_without_nan() {
    let text = format!("{HEAD}\na,no-such-accelerator,8,llama-3.1-8b,8192,64,1,12000,\n");
    let (table, _, ok) = validate_text(&text, &[]);
    assert!(
        ok && table.contains("no row was predicted") && table.contains("1 rows: 0 counted, 1 not predicted"),
        "{table}"
    );
    assert!(!table.contains("NaN"), "{table}");
    let (json, _, _) = validate_text(&text, &["--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["kinds"][0]["errors"]["median_pct"].is_null() && json["kinds"][0]["interval_coverage"].is_null());
}

#[test]
fn a_row_that_repeats_another_is_predicted_but_counted_once() {
    let row = "nvidia-h100-sxm-80gb,8,llama-3.1-8b,8192,64,1,12000,";
    let (out, _, ok) = validate_text(&format!("{HEAD}\na,{row}\nb,{row}\n"), &["--format", "json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert!(ok && json["rows"][1]["predicted"].is_number(), "{out}");
    assert_eq!(json["rows"][1]["copy_of"], "a");
    assert_eq!(json["kinds"][0]["errors"]["n"], 1);
}

#[test]
fn the_shipped_latency_table_excludes_its_duplicates() {
    let latency = verdicts(MeasurementKind::Latency);
    let duplicates =
        latency.iter().filter(|v| v.reason.as_deref().is_some_and(|reason| reason.starts_with("excluded: duplicate")));
    assert!(duplicates.count() >= 2 * 400);
    assert!(latency.iter().all(|verdict| verdict.predicted.is_none() || verdict.copy_of.is_none()));
}

/// Output of a long validation that gets SIGINT after `seconds`.
#[cfg(unix)]
fn interrupted_after(seconds: u64) -> std::process::Output {
    let mut atlas = Command::new(env!("CARGO_BIN_EXE_atlas"));
    let arguments = ["validate", "--engine", "event", "--kind", "inference", "--format", "json"];
    let run = atlas.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(seconds));
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    run.wait_with_output().unwrap()
}

#[cfg(unix)]
#[test]
fn an_interrupted_validation_fails_and_marks_its_result_as_partial() {
    // The default action of the signal ends the program silently if it arrives before the handler is installed, which
    // may take long on a busy machine.
    let waits = [1, 2, 4, 8, 16, 32];
    let out = waits.into_iter().map(interrupted_after).find(|out| !out.stdout.is_empty()).unwrap();
    let (text, complaint) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert!(!out.status.success() && complaint.contains("interrupted after"), "{complaint}");
    let partial = &serde_json::from_str::<Value>(&text).unwrap()["partial"];
    assert!(partial["rows_judged"].as_u64().unwrap() < partial["rows"].as_u64().unwrap(), "{partial}");
}

#[test]
fn version_0_1_table_is_converted_and_its_notes_do_not_affect_results() {
    let dir = tempfile::tempdir().unwrap();
    let head = "id,source,date,engine,engine_version,accelerator,num_accelerators,intra_node_link,model,params_b,tp,\
                precision_weights,input_len,output_len,concurrency,output_tokens_per_sec_total,speculative,notes";
    let judged = |date: &str, notes: &str| -> Value {
        let row = format!(
            "a,s,{date},vLLM,0.11.0,nvidia-h100-sxm5-80gb,8,NVLink4,meta-llama/Llama-3.1-70B-Instruct,70.6,8,fp8,1024,1024,64,\
             2500,none,{notes}"
        );
        std::fs::write(dir.path().join("old.csv"), format!("{head}\n{row}\n")).unwrap();
        let arguments = ["validate", "--measurements", "old.csv", "--kind", "inference", "--format", "json"];
        let run = atlas(dir.path(), &arguments).assert().code(0);
        assert!(stderr(&run).contains("columns of version 0.1"), "{}", stderr(&run));
        serde_json::from_str(&stdout(&run)).unwrap()
    };
    let plain = judged("", "");
    let rows = plain.as_array().or(plain["rows"].as_array()).unwrap();
    assert!(rows[0]["predicted"].as_f64().unwrap() > 0.0, "{plain}");
    assert_eq!(judged("2024-01-01", "enforce eager; total tokens"), plain);
}
