//! Requests through the installed `curl`, which provides certificates, proxies and security updates, so that this
//! program contains neither HTTP nor cryptography. URL, headers, key and body are passed on standard input, where
//! process lists do not show them.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::EndpointError;
use super::message::{Head, Request, USER_AGENT};
use super::settings::{Settings, is_local};

/// Maximum size of a response's header, bytes.
const MAX_HEADER_BYTES: u64 = 64 << 10;
/// Exit status of curl after a timeout.
const TIMED_OUT: i32 = 28;
/// Exit statuses of curl after a certificate was rejected, or a file that is needed to verify certificates. A retry
/// would fail the same way.
const CERTIFICATES: [i32; 7] = [51, 58, 60, 77, 83, 90, 91];

/// Sends a request; returns the response header and the body, which is read while it arrives.
pub(super) fn send(request: &Request, settings: &Settings) -> Result<(Head, Body), EndpointError> {
    let config = config(request, settings)?;
    // `--disable` ignores the user's own .curlrc, which is not meant for these requests.
    let mut child = Command::new("curl")
        .args(["--disable", "--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| EndpointError::NoCurl(error.to_string()))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
        return Err(EndpointError::Connection("curl has no pipes".to_owned()));
    };
    let mut body = Body { child, stdout: BufReader::new(stdout) };
    // If curl exits before it has read everything, its exit status tells the reason.
    let _ = stdin.write_all(config.as_bytes());
    drop(stdin);
    match head(&mut body) {
        Ok(head) => Ok((head, body)),
        Err(error) => Err(EndpointError::read_error(&error)),
    }
}

/// Body of a response. Dropping it stops curl.
#[derive(Debug)]
pub(super) struct Body {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Body {
    /// Waits for curl to exit. Returns an error with its message if the transfer failed.
    fn end(&mut self) -> io::Result<()> {
        let status = self.child.wait()?;
        if status.success() {
            return Ok(());
        }
        let mut text = String::new();
        if let Some(stderr) = self.child.stderr.take() {
            stderr.take(MAX_HEADER_BYTES).read_to_string(&mut text)?;
        }
        let text = text.lines().next().map_or_else(|| format!("curl: {status}"), str::to_owned);
        let kind = match status.code() {
            Some(TIMED_OUT) => io::ErrorKind::TimedOut,
            Some(code) if CERTIFICATES.contains(&code) => io::ErrorKind::PermissionDenied,
            _ => io::ErrorKind::Other,
        };
        Err(io::Error::new(kind, text))
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.stdout.read(buffer)?;
        if size == 0 && !buffer.is_empty() {
            self.end()?;
        }
        Ok(size)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // curl may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads status and headers, skipping interim responses such as `100 Continue`.
fn head(body: &mut Body) -> io::Result<Head> {
    loop {
        let mut lines = Vec::new();
        let mut reader = (&mut body.stdout).take(MAX_HEADER_BYTES);
        loop {
            let mut line = Vec::new();
            if reader.read_until(b'\n', &mut line)? == 0 {
                body.end()?;
                return Err(io::Error::other("the response ended within its headers"));
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            lines.push(line);
        }
        let head = read_head(&lines).ok_or_else(|| io::Error::other("the response has no HTTP status"))?;
        if head.status >= 200 {
            return Ok(head);
        }
    }
}

fn read_head(lines: &[String]) -> Option<Head> {
    let (first, headers) = lines.split_first()?;
    let mut words = first.split_ascii_whitespace();
    let status = words.next().filter(|version| version.starts_with("HTTP/")).and(words.next())?;
    let header = |name: &str| {
        let of = |line: &String| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        };
        headers.iter().find_map(of)
    };
    Some(Head::new(status.parse().ok()?, header("content-type").as_deref(), header("retry-after").as_deref()))
}

/// Configuration file for curl.
fn config(request: &Request, settings: &Settings) -> Result<String, EndpointError> {
    let seconds = settings.timeout.as_secs_f64();
    // A transfer of less than one byte within this many whole seconds counts as a timeout.
    let silence = settings.timeout.max(Duration::from_secs(1)).as_secs_f64().ceil();
    let mut config = format!(
        "silent\nshow-error\nno-buffer\ninclude\ngloboff\nsuppress-connect-headers\nconnect-timeout = {seconds}\n\
         speed-limit = 1\nspeed-time = {silence}\nuser-agent = {}\n",
        quoted(USER_AGENT)
    );
    if is_local(&request.url) {
        config.push_str("noproxy = \"*\"\n");
    } else if let Some(proxy) = upper_case_proxy(&request.url) {
        let _ = writeln!(config, "proxy = {}", quoted(&proxy));
    }
    let mut option = |name: &str, value: &str| {
        let _ = writeln!(config, "{name} = {}", quoted(value));
    };
    let plain = |what: &str, text: String| match text.contains(char::is_control) {
        false => Ok(text),
        true => Err(EndpointError::Malformed(format!("{what} contains a control character"))),
    };
    option("url", &plain("the URL", request.url.clone())?);
    // An empty `Expect` header avoids a round trip before the body is sent, which is short.
    option("header", "Expect:");
    for (name, value) in &request.headers {
        option("header", &plain(name, format!("{name}: {value}"))?);
    }
    if let Some((name, key, before)) = &request.secret {
        option("header", &plain(name, format!("{name}: {before}{}", key.reveal()))?);
    }
    option("data-raw", &request.body.to_string());
    Ok(config)
}

/// Proxy in `HTTP_PROXY`. curl itself reads only the lower-case variable, which a web server cannot set.
fn upper_case_proxy(url: &str) -> Option<String> {
    let unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
    let wanted = url.starts_with("http://") && unset("http_proxy");
    wanted.then(|| std::env::var("HTTP_PROXY").ok()).flatten().filter(|proxy| !proxy.is_empty())
}

/// Quotes a value for curl's configuration file.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::TcpListener;

    use serde_json::json;

    use super::super::settings::{Protocol, Secret};
    use super::*;

    fn settings() -> Settings {
        Settings {
            protocol: Protocol::OpenAi,
            url: String::new(),
            model: String::new(),
            key: None,
            timeout: Duration::from_secs(5),
            retries: 0,
            backoff: Duration::ZERO,
        }
    }

    fn request(url: String, key: &str) -> Request {
        Request {
            url,
            headers: vec![("x-test", "a \"b\" \\c".to_owned())],
            secret: Some(("authorization", Secret::new(key), "Bearer ")),
            body: json!({"text": "@/etc/passwd \"quoted\"\n\ttab \\ ünï"}),
        }
    }

    /// Serves one request with the given response; the thread returns the request.
    fn serve(response: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
            while !bytes.ends_with(b"}") {
                let size = stream.read(&mut piece).unwrap();
                bytes.extend(piece.iter().take(size));
            }
            stream.write_all(response.as_bytes()).unwrap();
            String::from_utf8(bytes).unwrap()
        });
        (url, server)
    }

    #[test]
    #[ignore = "needs curl"]
    fn curl_sends_the_configured_request_and_returns_the_response() {
        let (url, server) = serve(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nconnection: \
             close\r\n\r\ndata: one\n\n",
        );
        let request = request(url, "sk-hidden");
        let (head, mut body) = send(&request, &settings()).unwrap();
        let mut text = String::new();
        body.read_to_string(&mut text).unwrap();
        assert_eq!((head.status, head.streams, text.as_str()), (200, true, "data: one\n\n"));
        let arrived = server.join().unwrap();
        let (head, sent) = arrived.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /v1 ") && head.contains("authorization: Bearer sk-hidden\r\n"), "{head}");
        assert!(head.contains("x-test: a \"b\" \\c\r\n") && !head.to_lowercase().contains("expect"), "{head}");
        assert_eq!(sent, request.body.to_string());
    }

    #[test]
    #[ignore = "needs curl"]
    fn retry_after_header_of_a_503_response_is_parsed() {
        let (url, _server) = serve(
            "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
        );
        let (head, _) = send(&request(url, "k"), &settings()).unwrap();
        assert_eq!((head.status, head.after, head.streams), (503, Some(Duration::from_secs(7)), false));
    }

    #[test]
    #[ignore = "needs curl"]
    fn curl_error_output_becomes_the_connection_error() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = send(&request(format!("https://{closed}/v1"), "k"), &settings()).unwrap_err();
        assert!(matches!(&error, EndpointError::Connection(text) if text.starts_with("curl: (7)")), "{error:?}");
    }

    #[test]
    fn api_key_with_a_line_break_is_refused() {
        let outcome = config(&request("https://127.0.0.1/v1".to_owned(), "k\r\nx: y"), &settings());
        assert!(matches!(outcome, Err(EndpointError::Malformed(_))), "{outcome:?}");
    }

    #[test]
    fn every_quoted_curl_option_is_on_one_line() {
        let config = config(&request("https://127.0.0.1/v1".to_owned(), "k"), &settings()).unwrap();
        let quoted = config.lines().filter(|line| line.contains('"'));
        assert!(quoted.clone().count() >= 6 && quoted.clone().all(|line| line.ends_with('"')), "{config}");
    }
}
