//! `atlas ask` as it is typed: the answers, and every command that they end with.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::program::{self, atlas, stderr, stdout};

/// Question, target, workload.
fn questions() -> Vec<[&'static str; 3]> {
    let lines = include_str!("../../crates/assistant/tests/data/questions.txt").lines();
    let cells = lines.filter(|line| !line.starts_with('#')).map(|line| line.split(" | ").collect::<Vec<_>>());
    cells.map(|cells| [cells[0], cells[1], cells[2]]).collect()
}

/// The values of `--NAME` in a command.
fn values<'c>(command: &'c [&str], name: &str) -> Vec<&'c str> {
    command.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1]).collect()
}

#[test]
fn every_command_of_an_answer_runs_and_explains_the_figure_that_the_answer_has() {
    let dir = tempfile::tempdir().unwrap();
    let mut ran: BTreeSet<Vec<String>> = BTreeSet::new();
    let mut held = 0;
    for [question, target, workload] in questions() {
        let asked = ["ask", "--format", "json", "--target", target, "--workload", workload, question];
        let reply: Value = serde_json::from_str(&stdout(&atlas(dir.path(), &asked).assert().success())).unwrap();
        for command in reply["commands"].as_array().unwrap() {
            let words: Vec<&str> = command.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
            // A run over all rows of measurements, tested elsewhere.
            if words[0] == "validate" || !ran.insert(words.iter().map(ToString::to_string).collect()) {
                continue;
            }
            if words[0] != "explain" {
                let assert = atlas(dir.path(), &words).assert();
                assert!(assert.get_output().status.success(), "{question}: {words:?}\n{}", stderr(&assert));
                continue;
            }
            let all = [words.as_slice(), &["--format", "json"]].concat();
            let tree: Value = serde_json::from_str(&stdout(&atlas(dir.path(), &all).assert().success())).unwrap();
            let about = serde_json::json!({
                "target": values(&words, "--target")[0],
                "workload": values(&words, "--workload")[0],
                "set": values(&words, "--set"),
            });
            let figures = reply["figures"].as_array().unwrap();
            let figure = figures.iter().find(|figure| figure["metric"] == words[1] && figure["about"] == about);
            if let Some(figure) = figure {
                let (said, explained) = (figure["value"].as_f64().unwrap(), tree["value"].as_f64().unwrap());
                // The tree states times in seconds and money for another number of tokens: a power of ten apart.
                let apart = (explained / said).log10();
                assert!((apart - apart.round()).abs() < 1e-9, "{question}: {said} explained as {explained}");
                held += 1;
            }
        }
    }
    assert!(held > 20, "{held}");
}

#[test]
fn questions_that_are_not_understood_exit_2_and_files_that_are_named_stay_named() {
    let dir = tempfile::tempdir().unwrap();
    let refused = atlas(dir.path(), &["ask", "why is the sky blue?"]).assert().code(2);
    assert!(
        stderr(&refused).contains("`sky` is not known") && stderr(&refused).contains("You can ask"),
        "{}",
        stderr(&refused)
    );

    let data = format!("{}/tests/data/screens", program::ROOT);
    let files = ["--targets", &format!("{data}/targets.yaml"), "--workloads", &format!("{data}/workloads.yaml")]
        .map(str::to_owned);
    let mut asked = vec!["ask"];
    asked.extend(files.iter().map(String::as_str));
    asked.extend(["what", "limits", "throughput?"]);
    let told = stdout(&atlas(dir.path(), &asked).assert().success());
    assert!(told.contains(&files.join(" ")), "{told}");
}
