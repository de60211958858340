//! The analytical engine against published measurements: what the README says of its errors stays true.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use atlas_fabric::catalog::Catalog;
use atlas_fabric::engine::analytical::constants::Constants;
use atlas_fabric::validate::hardware::Hardware;
use atlas_fabric::validate::models::Models;
use atlas_fabric::validate::report::quantile;
use atlas_fabric::validate::verdict::{Verdict, coverage, overall};
use atlas_fabric::validate::{Kind, judge, shipped, table, training_rows};

fn verdicts(kind: Kind) -> Vec<Verdict> {
    judge(kind, &shipped(kind).unwrap()).unwrap()
}

#[test]
fn every_row_has_a_prediction_inside_its_interval_or_a_reason() {
    for kind in Kind::ALL {
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
fn training_is_predicted_as_well_as_the_readme_says() {
    let all = verdicts(Kind::Training);
    let stats = overall(&all);
    assert!(stats.n >= 1560, "{stats:?}");
    assert!(stats.median <= 8.5 && stats.p90 <= 24.5 && stats.bias.abs() <= 2.0, "{stats:?}");
    let (share, _) = coverage(&all);
    assert!(share >= 0.88, "{share}");
}

#[test]
fn stated_memory_is_met_within_a_few_percent() {
    let catalog = Catalog::built_in();
    let (hardware, models) = (Hardware::of(&catalog), Models::of(&catalog));
    let rows = table::read(&shipped(Kind::Training).unwrap()).unwrap();
    let cases = rows.iter().filter_map(|row| training_rows::case(row, &hardware, &models).ok());
    let mut errors: Vec<f64> =
        cases.filter_map(|case| case.memory_error(&Constants::default())).map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    assert_eq!(errors.len(), 21);
    assert!(quantile(&errors, 0.5) < 0.05 && quantile(&errors, 0.9) < 0.10, "{errors:?}");
}

#[test]
fn serving_is_predicted_as_well_as_the_readme_says() {
    let all = verdicts(Kind::Inference);
    let stats = overall(&all);
    assert!(stats.n >= 3675 && stats.median <= 14.0 && stats.p90 <= 43.5, "{stats:?}");
    assert!(coverage(&all).0 >= 0.9, "{:?}", coverage(&all));
    let latency = verdicts(Kind::Latency);
    for (metric, most) in [("tpot_ms", 13.5), ("ttft_ms", 29.5)] {
        let of: Vec<Verdict> = latency.iter().filter(|verdict| verdict.metric == metric).cloned().collect();
        let stats = overall(&of);
        assert!(stats.n >= 2800 && stats.median <= most, "{metric}: {stats:?}");
        assert!(coverage(&of).0 >= 0.88, "{metric}");
    }
}

#[test]
fn a_file_of_no_known_kind_says_what_was_expected() {
    let problem = Kind::of("a,b,c\n1,2,3\n").unwrap_err().to_string();
    assert!(problem.contains("seq_len") && problem.contains("a,b,c"), "{problem}");
    assert_eq!(Kind::of(&shipped(Kind::Latency).unwrap()).unwrap(), Kind::Latency);
    assert_eq!(Kind::of(&shipped(Kind::Inference).unwrap()).unwrap(), Kind::Inference);
    assert_eq!(Kind::of(&shipped(Kind::Training).unwrap()).unwrap(), Kind::Training);
}

#[test]
fn the_command_writes_what_the_engine_says() {
    let run = |arguments: &[&str]| {
        let out =
            std::process::Command::new(env!("CARGO_BIN_EXE_atlas")).arg("validate").args(arguments).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let json: serde_json::Value = serde_json::from_str(&run(&["--kind", "training", "--format", "json"])).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), verdicts(Kind::Training).len());
    assert!(rows.iter().all(|row| row["predicted"].is_number() != row["reason"].is_string()));
    let table = run(&["--kind", "training", "--source", "vtrain"]);
    assert!(table.contains("vTrain") && table.contains("measured across"), "{table}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.csv");
    std::fs::write(&path, shipped(Kind::Latency).unwrap().lines().take(4).collect::<Vec<_>>().join("\n")).unwrap();
    let csv = run(&["--measurements", path.to_str().unwrap(), "--format", "csv"]);
    assert_eq!(csv.lines().count(), 1 + 2 * 3, "two figures a row: {csv}");
}

#[test]
fn a_row_is_told_step_by_step() {
    let told = |id: &str| {
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_atlas"))
            .args(["validate", "--row", id])
            .env("LC_ALL", "C.UTF-8")
            .output();
        let out = out.unwrap();
        (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap(), out.status.success())
    };
    let (story, _, ok) = told("nemo-0004");
    assert!(ok);
    for wanted in ["gpt3-175b", "tp 4 · pp 8 · vpp 6 · dp 16", "step measured", "100.0 %", "90 % interval"] {
        assert!(story.contains(wanted), "{wanted} is not in\n{story}");
    }
    let (_, complaint, ok) = told("no-such-row");
    assert!(!ok && complaint.contains("no row has the id \"no-such-row\""), "{complaint}");
}
