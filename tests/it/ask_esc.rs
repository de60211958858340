//! Esc while an endpoint answers, on a pseudo-terminal.

#![cfg(unix)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use portable_pty::CommandBuilder;

use crate::common::pty::{PATIENCE, Session};

/// An endpoint that begins an answer and never completes it; it signals when the client disconnects.
fn endless() -> (String, std::sync::mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, gone) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 65_536];
        while !request.ends_with(b"}") {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(size) => request.extend_from_slice(&piece[..size]),
            }
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        let first = "data: {\"choices\": [{\"delta\": {\"content\": \"half an answer\"}}]}\n\n";
        stream.write_all(format!("{head}{first}").as_bytes()).unwrap();
        while stream.write_all(b": still here\n\n").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = sender.send(());
    });
    (url, gone)
}

#[test]
fn escape_stops_an_answer_keeps_what_arrived_and_closes_the_connection() {
    let dir = tempfile::tempdir().unwrap();
    let (url, gone) = endless();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_atlas"));
    command.args(["--fresh", "--target", "h100-sxm-8", "--workload", "llama3.1-8b-train"]);
    command.env("ATLAS_ASSISTANT_URL", url);
    command.env("ATLAS_ASSISTANT_MODEL", "mock");
    let mut session = Session::run(dir.path(), command);
    session.wait_for("h100-sxm-8");
    session.keys("A");
    session.keys("!why?\r");
    session.wait_for("half an answer");
    session.keys("\u{1b}");
    session.wait("the answer to stop", |session| !session.screen().contains("Esc stops"));
    assert!(session.screen().contains("half an answer"), "{}", session.screen());
    gone.recv_timeout(PATIENCE).unwrap();
    // The pane is still open: a second Esc closes it.
    session.keys("\u{1b}");
    session.wait("the pane to close", |session| !session.screen().contains("half an answer"));
    session.keys("q");
    assert_eq!(session.wait_for_end(), 0);
}
