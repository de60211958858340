//! `atlas ask` from the command line: the answers, and all commands that they list.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::program::{self, atlas, stderr, stdout};

/// Questions with target and workload.
fn questions() -> Vec<[&'static str; 3]> {
    let lines = include_str!("../../crates/assistant/tests/data/questions.txt").lines();
    let cells = lines.filter(|line| !line.starts_with('#')).map(|line| line.split(" | ").collect::<Vec<_>>());
    cells.map(|cells| [cells[0], cells[1], cells[2]]).collect()
}

/// Values of `--NAME` in a command.
fn values<'c>(command: &'c [&str], name: &str) -> Vec<&'c str> {
    command.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1]).collect()
}

#[test]
fn commands_in_answers_run_and_reproduce_the_metric() {
    let dir = tempfile::tempdir().unwrap();
    let mut ran: BTreeSet<Vec<String>> = BTreeSet::new();
    let mut held = 0;
    for [question, target, workload] in questions() {
        let asked = ["ask", "--format", "json", "--target", target, "--workload", workload, question];
        let reply: Value = serde_json::from_str(&stdout(&atlas(dir.path(), &asked).assert().success())).unwrap();
        for command in reply["commands"].as_array().unwrap() {
            let words: Vec<&str> = command.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
            // It evaluates all measured rows, which other tests do.
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
                // The derivation states times in seconds and costs for another number of tokens: the values differ by a
                // power of ten.
                let apart = (explained / said).log10();
                assert!((apart - apart.round()).abs() < 1e-9, "{question}: {said} explained as {explained}");
                held += 1;
            }
        }
    }
    assert!(held > 20, "{held}");
}

#[test]
fn unclear_questions_exit_2_and_suggested_commands_keep_file_flags() {
    let dir = tempfile::tempdir().unwrap();
    let refused = atlas(dir.path(), &["ask", "why is the sky blue?"]).assert().code(2);
    assert!(
        stderr(&refused).contains("unknown word `sky`") && stderr(&refused).contains("You can ask"),
        "{}",
        stderr(&refused)
    );

    let data = format!("{}/tests/data/screens", program::ROOT);
    let files = ["--targets", &format!("{data}/targets.yaml"), "--workloads", &format!("{data}/workloads.yaml")]
        .map(str::to_owned);
    let mut asked = vec!["ask"];
    asked.extend(files.iter().map(String::as_str));
    asked.extend(["what", "limits", "throughput?"]);
    let shown = stdout(&atlas(dir.path(), &asked).assert().success());
    assert!(shown.contains(&files.join(" ")), "{shown}");
}

/// An endpoint that answers every request with these events and counts the requests.
fn endpoint(events: &'static str) -> (String, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let mut request = Vec::new();
            let mut piece = [0; 65_536];
            // The body is one JSON document, so it ends with a closing brace.
            while !request.ends_with(b"}") {
                match stream.read(&mut piece) {
                    Ok(0) | Err(_) => break,
                    Ok(size) => request.extend_from_slice(&piece[..size]),
                }
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}{events}").as_bytes());
        }
    });
    (url, count)
}

const HOSTILE: &str = "data: {\"choices\": [{\"delta\": {\"content\": \"\\u001b]0;owned\\u0007\\u001b[2Jred 42.5 ms\"}}]}\n\n\
                       data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";

#[test]
fn previews_send_nothing_and_endpoint_text_is_escaped() {
    let dir = tempfile::tempdir().unwrap();
    let (url, count) = endpoint(HOSTILE);
    let ask = |args: &[&str]| {
        let mut command = atlas(dir.path(), &[&["ask"], args, &["how fast is it?"]].concat());
        command
            .env("ATLAS_ASSISTANT_URL", &url)
            .env("ATLAS_ASSISTANT_MODEL", "mock")
            .env("ATLAS_ASSISTANT_KEY", "sk-1");
        command
    };
    let shown = stdout(&ask(&["--preview"]).assert().success());
    assert!(shown.contains("POST http://127.0.0.1") && shown.contains("how fast is it?"), "{shown}");
    assert!(!shown.contains("sk-1"), "{shown}");
    assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 0);

    let shown = stdout(&ask(&["--online", "--save", "talk.json"]).assert().success());
    assert!(
        shown.contains("red 42.5 ms") && shown.contains("NOT from a tool, to be verified") && shown.contains("42.5"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown:?}");
    let shown = stdout(&ask(&["--online", "--continue", "talk.json", "--save", "talk.md"]).assert().success());
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let markdown = std::fs::read_to_string(dir.path().join("talk.md")).unwrap();
    assert!(markdown.matches("## how fast is it?").count() == 2 && !markdown.contains('\u{1b}'), "{markdown}");
    ask(&["--online", "--save", "talk.md"]).assert().failure();
    let nowhere = atlas(dir.path(), &["ask", "--online", "how fast is it?"]).assert().code(2);
    assert!(stderr(&nowhere).contains("no endpoint is configured"), "{}", stderr(&nowhere));
}
