#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use crate::tui::app::Overlay;
use crate::tui::message::Effect;
use crate::tui::testing::TestApp;
use atlas_assistant::endpoint::{Protocol, Settings};
use atlas_document::Sources;

/// The shipped catalog, serving 70B.
fn serving() -> TestApp {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys(":serve 70b<Enter>");
    hands
}

#[test]
fn enter_applies_the_change_proposed_by_an_answer() {
    let mut hands = serving();
    let before = hands.app.now.setup.clone();
    hands.keys("Awhat if tp=8?<Enter>").work();
    assert!(hands.text().contains("With tp"), "{}", hands.text());
    assert!(hands.text().contains("Enter applies"), "{}", hands.text());
    hands.keys("<Enter>");
    assert!(hands.app.overlay.is_none() && hands.app.now.setup != before, "{}", hands.text());
    hands.keys("u");
    assert_eq!(hands.app.now.setup, before, "one undo takes it back");
}

#[test]
fn palette_accepts_questions_with_and_without_ask() {
    for typed in [":ask what limits throughput?<Enter>", ":what limits throughput?<Enter>"] {
        let mut hands = serving();
        hands.keys(typed).work();
        assert!(hands.text().contains("bound by"), "{typed}: {}", hands.text());
    }
}

#[test]
fn up_and_down_recall_earlier_questions_and_esc_closes_the_pane() {
    let mut hands = serving();
    hands.keys("Awhat does mfu mean?<Enter>").work();
    hands.keys("what does tp mean?<Enter>").work();
    hands.keys("<Up><Up>");
    assert_eq!(hands.app.assistant.line.text(), "what does mfu mean?");
    hands.keys("<Down><Down>");
    assert_eq!(hands.app.assistant.line.text(), "");
    hands.keys("<Esc>");
    assert!(hands.app.overlay.is_none());
    hands.keys("A");
    assert_eq!((hands.app.assistant.turns.len(), &hands.app.overlay), (2, &Some(Overlay::Assistant)));
}

#[test]
fn unrecognized_question_lists_the_supported_questions() {
    let mut hands = serving();
    hands.keys("Awhy is the sky blue?<Enter>").work();
    assert!(hands.text().contains("unknown word `sky`") && hands.text().contains("You can ask"), "{}", hands.text());
}

#[test]
fn the_answer_is_copied_with_its_commands() {
    let mut hands = serving();
    hands.keys("Awhat limits throughput?<Enter>").work();
    hands.effects.clear();
    hands.keys("<C-y>");
    let copied = hands.effects.iter().find_map(|effect| match effect {
        Effect::Copy { text, .. } => Some(text.clone()),
        _ => None,
    });
    assert!(copied.is_some_and(|text| text.contains("atlas sensitivity")));
}

#[test]
fn a_long_answer_scrolls_from_its_first_line() {
    let mut hands = serving();
    hands.app.size = (80, 24);
    hands.keys("Awhat limits throughput?<Enter>").work();
    assert!(hands.text().contains("> what limits throughput?"), "{}", hands.text());
    hands.keys("<C-d><C-d><C-d>");
    assert!(hands.text().contains("Enter applies"), "{}", hands.text());
}

/// An endpoint that answers every request with these bytes and closes.
fn endpoint(answers: Vec<String>) -> Settings {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (answer, stream) in answers.iter().zip(listener.incoming()) {
            let Ok(mut stream) = stream else { return };
            let mut text = Vec::new();
            let mut piece = [0; 4096];
            // The request ends with its body, whose length its head states.
            loop {
                let Ok(size) = stream.read(&mut piece) else { return };
                text.extend_from_slice(&piece[..size]);
                let whole = String::from_utf8_lossy(&text).to_lowercase();
                let Some((head, body)) = whole.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                if size == 0 || body.len() >= length.unwrap_or(0_usize) {
                    break;
                }
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let (timeout, backoff) = (Duration::from_secs(10), Duration::from_millis(1));
    Settings { protocol: Protocol::OpenAi, url, model: "mock".to_owned(), key: None, timeout, retries: 0, backoff }
}

fn stream(deltas: &[&str]) -> String {
    let events = deltas.iter().map(|delta| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n"));
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{}data: [DONE]\n\n",
        events.collect::<String>()
    )
}

#[test]
fn endpoint_answers_use_tools_and_their_text_is_escaped() {
    let call =
        r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"list","arguments":"{\"kind\":\"targets\"}"}}]}"#;
    let answers =
        vec![stream(&[call]), stream(&[r#"{"content":"It is \u001b[31m1234567 tok/s"}"#, r#"{"content":" or so."}"#])];
    let mut hands = serving();
    hands.app.assistant.settings = Some(endpoint(answers));
    hands.keys("A!how fast?<Enter>").work();
    let text = hands.text();
    assert!(text.contains("1234567 tok/s or so."), "{text}");
    assert!(text.contains("tool list"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(hands.app.assistant.talk.as_ref().unwrap().messages.len() >= 5, "the next question continues it");
}

#[test]
fn truncated_or_failed_endpoint_answers_show_the_reason_in_the_pane() {
    let mut hands = serving();
    let cut = stream(&[r#"{"content":"half an ans"}"#]).replace("data: [DONE]\n\n", "");
    hands.app.assistant.settings =
        Some(endpoint(vec![cut, "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n".to_owned()]));
    hands.keys("A!why?<Enter>").work();
    assert!(hands.text().contains("half an ans") && hands.text().contains("incomplete answer"), "{}", hands.text());
    hands.keys("!why?<Enter>").work();
    assert!(hands.text().contains("status 500"), "{}", hands.text());
    assert_eq!(hands.app.overlay, Some(Overlay::Assistant));
}

#[test]
fn double_exclamation_mark_previews_the_request_without_sending() {
    let mut hands = serving();
    let url = "http://127.0.0.1:1/v1".to_owned();
    hands.app.assistant.settings = Some(Settings { url, ..endpoint(Vec::new()) });
    hands.keys("A!!how fast?<Enter>").work();
    hands.keys("<C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d><C-d>");
    assert!(hands.text().contains("nothing was sent"), "{}", hands.text());
    assert!(hands.app.assistant.talk.is_none());
}

#[test]
fn stored_answers_are_bounded_in_bytes_and_the_latest_is_kept() {
    let mut hands = serving();
    for size in [40_000, 40_000, 40_000, 40_000, 40_000, 500_000] {
        let said = super::online::EndpointAnswer { answer: "x ".repeat(size / 2), remarks: Vec::new(), talk: None };
        let answer = Ok(super::Answer::Endpoint(std::sync::Arc::new(said)));
        super::turn(&mut hands.app, super::Turn { question: "!why?".to_owned(), answer });
        let turns = &hands.app.assistant.turns;
        let bytes: usize = turns.iter().map(super::Turn::bytes).sum();
        assert!(bytes <= super::MAX_TURN_BYTES || turns.len() == 1, "{bytes} bytes in {} turns", turns.len());
        assert_eq!(turns.last().map(|turn| turn.bytes() >= size), Some(true));
    }
}
