//! `atlas ask --online` over HTTPS: certificates are verified, and a proxy sees only encrypted data. The endpoint is
//! `openssl s_server` on 127.0.0.1.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use assert_cmd::assert::Assert;

use crate::common::program::{atlas, stderr, stdout};

const HOST: &str = "models.test";
const KEY: &str = "sk-hidden";

/// Creates a self-signed certificate for the host and for 127.0.0.1.
fn certificate(dir: &Path) {
    let names = format!("subjectAltName=DNS:{HOST},IP:127.0.0.1");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=mock", "-addext", &names])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// The endpoint: answers one request with a fixed text, and passes on the decrypted request.
struct Endpoint {
    port: u16,
    server: Child,
    arrived: Receiver<String>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn endpoint(dir: &Path) -> Endpoint {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("openssl")
        .args(["s_server", "-quiet", "-accept", &format!("127.0.0.1:{port}"), "-cert", "cert.pem", "-key", "key.pem"])
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    let (sender, arrived) = channel();
    std::thread::spawn(move || {
        let mut request = Vec::new();
        let mut piece = [0; 65_536];
        while !request.ends_with(b"}") {
            match output.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(size) => request.extend_from_slice(&piece[..size]),
            }
        }
        let events = "data: {\"choices\": [{\"delta\": {\"content\": \"carried over TLS\"}}]}\n\n\
                      data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n", events.len());
        let _ = input.write_all(format!("{head}{events}").as_bytes());
        let _ = input.flush();
        let _ = sender.send(String::from_utf8_lossy(&request).into_owned());
        // s_server exits at the end of its input, so the input stays open until the client has read everything.
        std::thread::sleep(Duration::from_secs(60));
    });
    for _ in 0..500 {
        // A test connection would be mistaken for the client, so a failing bind is used to detect the listening socket.
        if TcpListener::bind(("127.0.0.1", port)).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Endpoint { port, server, arrived }
}

fn ask(dir: &Path, url: &str, variables: &[(&str, &str)]) -> Assert {
    let mut command = atlas(dir, &["ask", "--online", "how fast is it?"]);
    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"] {
        command.env_remove(name);
    }
    command.env("ATLAS_ASSISTANT_URL", url).env("ATLAS_ASSISTANT_MODEL", "mock").env("ATLAS_ASSISTANT_KEY", KEY);
    command.envs(variables.iter().copied());
    command.assert()
}

#[test]
#[ignore = "needs openssl and curl"]
fn requests_are_sent_over_tls_only_to_a_trusted_endpoint() {
    let dir = tempfile::tempdir().unwrap();
    certificate(dir.path());
    let endpoint = endpoint(dir.path());
    let url = format!("https://127.0.0.1:{}/v1", endpoint.port);
    let refused = stderr(&ask(dir.path(), &url, &[]).failure());
    assert!(refused.contains("the endpoint is not trusted") && refused.contains("certificate"), "{refused}");
    assert!(!refused.contains("next attempt"), "another attempt ends the same way: {refused}");
    assert!(endpoint.arrived.try_recv().is_err(), "a request was sent to an endpoint that is not trusted");

    let trusted = dir.path().join("cert.pem").display().to_string();
    let shown = stdout(&ask(dir.path(), &url, &[("CURL_CA_BUNDLE", &trusted)]).success());
    assert!(shown.contains("carried over TLS"), "{shown}");
    let request = endpoint.arrived.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(request.starts_with("POST /v1/chat/completions") && request.contains(KEY), "{request}");
}

/// A proxy that connects every request to one port of this machine. It passes on the first line of the request, and
/// what the client sent after it.
fn proxy(to: u16) -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, seen) = channel();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(client.try_clone().unwrap());
        let mut first = String::new();
        reader.read_line(&mut first).unwrap();
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
        let mut server = TcpStream::connect(("127.0.0.1", to)).unwrap();
        let mut back = server.try_clone().unwrap();
        std::thread::spawn(move || std::io::copy(&mut back, &mut client));
        let mut carried = Vec::new();
        let mut piece = [0; 65_536];
        while let Ok(size @ 1..) = reader.read(&mut piece) {
            carried.extend_from_slice(&piece[..size]);
            if server.write_all(&piece[..size]).is_err() {
                break;
            }
        }
        let _ = sender.send((first, carried));
    });
    (address, seen)
}

#[test]
#[ignore = "needs openssl and curl"]
fn proxy_traffic_contains_neither_key_nor_question() {
    let dir = tempfile::tempdir().unwrap();
    certificate(dir.path());
    let endpoint = endpoint(dir.path());
    let (address, seen) = proxy(endpoint.port);
    let trusted = dir.path().join("cert.pem").display().to_string();
    let variables = [("CURL_CA_BUNDLE", trusted.as_str()), ("HTTPS_PROXY", address.as_str())];
    let shown = stdout(&ask(dir.path(), &format!("https://{HOST}/v1"), &variables).success());
    assert!(shown.contains("carried over TLS"), "{shown}");
    assert!(endpoint.arrived.recv_timeout(Duration::from_secs(10)).unwrap().contains(KEY));
    drop(endpoint);
    let (first, carried) = seen.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(first, format!("CONNECT {HOST}:443 HTTP/1.1\r\n"));
    let holds = |text: &str| carried.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!carried.is_empty() && !holds(KEY) && !holds("how fast"));
}
