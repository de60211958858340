//! The endpoint client against a misbehaving server on 127.0.0.1.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use atlas_assistant::endpoint::{
    Conversation, EndpointError, Event, Message, NumberOrigins, Protocol, Secret, Settings, SettingsError, Toolbox,
    ask, request,
};
use atlas_assistant::offline::Context;
use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::search::Gauge;
use serde_json::{Value, json};

/// Behavior of the server for a connection: receives the connection's number and the request's body, and writes the
/// response.
type Script = Box<dyn Fn(usize, &str, &mut TcpStream) + Send>;

/// A test server that records its requests.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

fn serve(script: Script) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&requests);
    thread::spawn(move || {
        for (at, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let Some(request) = read(&mut stream) else { continue };
            kept.lock().unwrap().push(request.clone());
            let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
            script(at, &body, &mut stream);
        }
    });
    Server { url, requests }
}

/// Reads a whole request, head and body.
fn read(stream: &mut TcpStream) -> Option<String> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
            if body.len() >= length.and_then(|length| length.parse::<usize>().ok()).unwrap_or(0) {
                return Some(text);
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(size) => bytes.extend_from_slice(&piece[..size]),
        }
    }
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn say(stream: &mut TcpStream, text: &str) {
    // Some tests make the client give up early.
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.flush();
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn delta(delta: Value) -> String {
    event(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

fn end() -> String {
    let last = event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    last + "data: [DONE]\n\n"
}

fn status(stream: &mut TcpStream, code: u16, headers: &str, body: &str) {
    let length = body.len();
    say(stream, &format!("HTTP/1.1 {code} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"));
}

fn settings(url: &str, protocol: Protocol) -> Settings {
    Settings {
        protocol,
        url: url.to_owned(),
        model: "mock".to_owned(),
        key: Some(Secret::new("sk-hidden")),
        timeout: Duration::from_secs(5),
        retries: 2,
        backoff: Duration::from_millis(10),
    }
}

/// Everything that resulted from a question.
struct Came {
    outcome: Result<NumberOrigins, EndpointError>,
    conversation: Conversation,
    text: String,
    tools: Vec<String>,
    retries: usize,
}

fn ask_with(settings: &Settings, canceled: &dyn Fn() -> bool) -> Came {
    static LIBRARY: std::sync::LazyLock<Library> =
        std::sync::LazyLock::new(|| Library::load(&Sources::built_in(), None));
    let context = Context::new(&LIBRARY, "h100-sxm-8", "llama3.1-70b-serve");
    let gauge = Gauge::default();
    let toolbox = Toolbox { context: &context, gauge: &gauge };
    let mut conversation = Conversation::begin("mock", &context);
    conversation.question("how fast is it?");
    let (mut text, mut tools, mut retries) = (String::new(), Vec::new(), 0);
    let outcome = ask(settings, &mut conversation, &toolbox, canceled, &mut |event| match event {
        Event::Text(piece) => text.push_str(piece),
        Event::Tool(call) => tools.push(call.name.clone()),
        Event::Retry(..) => retries += 1,
    });
    Came { outcome, conversation, text, tools, retries }
}

fn ask_server(server: &Server) -> Came {
    ask_with(&settings(&server.url, Protocol::OpenAi), &|| false)
}

/// Result of the tool call in a request.
fn result(body: &str) -> Option<Value> {
    let body: Value = serde_json::from_str(body).unwrap();
    let tool = body["messages"].as_array()?.iter().rev().find(|message| message["role"] == "tool")?.clone();
    serde_json::from_str(tool["content"].as_str()?).ok()
}

#[test]
fn tool_is_called_and_numbers_in_the_answer_are_marked() {
    let server = serve(Box::new(|_, body, stream| {
        say(stream, STREAM);
        let Some(result) = result(body) else {
            // The arguments arrive in parts, as from some real servers.
            let call = |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]});
            let first = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "estimate", "arguments": ""}}]});
            say(stream, &delta(first));
            say(stream, &delta(call("{\"set\": [\"tp")));
            say(stream, &delta(call("=8\"]}")));
            return say(stream, &end());
        };
        let tpot = result["figures"]["tpot_ms"]["value"].as_f64().unwrap();
        for word in [format!("TPOT is {tpot:.2} ms"), ", or 123.45".to_owned(), " with magic.".to_owned()] {
            say(stream, &delta(json!({"content": word})));
        }
        say(stream, &end());
    }));
    let came = ask_server(&server);
    let marks = came.outcome.unwrap();
    assert_eq!((came.tools, marks.tools.len()), (vec!["estimate".to_owned()], 1));
    assert_eq!(marks.unverified, ["123.45"]);
    assert!(came.text.starts_with("TPOT is ") && came.text.ends_with("magic."), "{}", came.text);
    let requests = server.requests.lock().unwrap();
    let result = result(requests[1].split_once("\r\n\r\n").unwrap().1).unwrap();
    assert!(result["command"].as_str().unwrap().ends_with("--set tp=8"), "{result}");
    assert!(requests[0].to_lowercase().contains("authorization: bearer sk-hidden"));

    // Save, read again, export.
    let json = came.conversation.json().unwrap();
    assert_eq!(Conversation::read(&json).unwrap(), came.conversation);
    assert!(!json.contains("sk-hidden"));
    let markdown = came.conversation.markdown();
    assert!(markdown.contains("## how fast is it?") && markdown.contains("NOT from a tool"), "{markdown}");
}

#[test]
fn preview_equals_the_sent_request_with_the_key_masked() {
    let server = serve(Box::new(|_, _, stream| {
        say(stream, STREAM);
        say(stream, &delta(json!({"content": "Yes."})));
        say(stream, &end());
    }));
    let settings = settings(&server.url, Protocol::OpenAi);
    let library = Library::load(&Sources::built_in(), None);
    let context = Context::new(&library, "h100-sxm-8", "llama3.1-70b-serve");
    let mut conversation = Conversation::begin("mock", &context);
    conversation.question("how fast is it?");
    let preview = request(&settings, &conversation).preview();
    assert!(!preview.contains("sk-hidden") && preview.contains("authorization: Bearer [key]"), "{preview}");
    assert!(server.requests.lock().unwrap().is_empty(), "a preview sends nothing");
    ask_with(&settings, &|| false).outcome.unwrap();
    let sent = server.requests.lock().unwrap()[0].split_once("\r\n\r\n").unwrap().1.to_owned();
    let (_, shown) = preview.split_once("\n\n").unwrap();
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(shown), value(&sent));
}

#[test]
fn busy_endpoint_is_retried_and_permanent_errors_are_not() {
    for (code, attempts) in [(429, 3), (500, 3), (503, 3), (401, 1), (404, 1)] {
        let server = serve(Box::new(move |_, _, stream| status(stream, code, "", "{\"error\": \"\u{1b}[31mno\"}")));
        let came = ask_server(&server);
        assert!(
            matches!(&came.outcome, Err(EndpointError::Status { code: found, .. }) if *found == code),
            "{:?}",
            came.outcome
        );
        assert_eq!((server.requests.lock().unwrap().len(), came.retries), (attempts, attempts - 1), "{code}");
    }
    let server = serve(Box::new(|at, _, stream| {
        if at == 0 {
            return status(stream, 429, "retry-after: 0\r\n", "slow down");
        }
        say(stream, STREAM);
        say(stream, &delta(json!({"content": "fine"})));
        say(stream, &end());
    }));
    let came = ask_server(&server);
    assert_eq!((came.outcome.is_ok(), came.text.as_str(), came.retries), (true, "fine", 1));
}

#[test]
fn truncated_answer_is_an_error_and_partial_text_is_kept() {
    let truncated = serve(Box::new(|_, _, stream| {
        say(stream, STREAM);
        say(stream, &delta(json!({"content": "It is 20"})));
    }));
    let came = ask_server(&truncated);
    assert_eq!((came.outcome, came.text.as_str()), (Err(EndpointError::Truncated), "It is 20"));
    assert!(matches!(came.conversation.messages.last(), Some(Message::Assistant { text, .. }) if text == "It is 20"));

    let promised = serve(Box::new(|_, _, stream| {
        say(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\n");
        say(stream, &delta(json!({"content": "half"})));
    }));
    assert!(ask_server(&promised).outcome.is_err());

    let reset = serve(Box::new(|_, _, stream| {
        // Closing with unread input resets the connection.
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }));
    let came = ask_server(&reset);
    assert!(matches!(came.outcome, Err(EndpointError::Connection(_))), "{:?}", came.outcome);
    assert_eq!(came.retries, 2, "nothing had arrived");
}

#[test]
fn invalid_and_oversized_responses_are_refused() {
    let bodies = [
        "data: {\"choices\": [\n\n",
        "data: []\n\n",
        "data: {\"error\": {\"message\": \"overloaded\"}}\n\n",
        "data: \u{0}\n\n",
    ];
    for body in bodies {
        let server = serve(Box::new(move |_, _, stream| {
            say(stream, STREAM);
            say(stream, body);
        }));
        let came = ask_server(&server);
        assert!(matches!(came.outcome, Err(EndpointError::Malformed(_))), "{body}: {:?}", came.outcome);
    }
    let endless = serve(Box::new(|_, _, stream| {
        say(stream, STREAM);
        let line = "x".repeat(1 << 16);
        while stream.write_all(line.as_bytes()).is_ok() {}
    }));
    assert_eq!(ask_server(&endless).outcome, Err(EndpointError::TooLarge));
    // An endless stream of valid events: the text is limited, both in one answer and over many rounds of tool calls.
    let talkative = serve(Box::new(|_, _, stream| {
        say(stream, STREAM);
        let event = delta(json!({"content": "x".repeat(1000)}));
        while stream.write_all(event.as_bytes()).is_ok() {}
    }));
    let came = ask_server(&talkative);
    assert_eq!(came.outcome, Err(EndpointError::TooLarge));
    assert!(came.text.len() < 100_000, "{} bytes were shown", came.text.len());
    let wordy = serve(Box::new(|_, _, stream| {
        say(stream, STREAM);
        let arguments = json!({"kind": "x".repeat(20_000)}).to_string();
        let call = json!([{"index": 0, "function": {"name": "list", "arguments": arguments}}]);
        say(stream, &delta(json!({"tool_calls": call})));
        say(stream, &end());
    }));
    assert_eq!(ask_server(&wordy).outcome, Err(EndpointError::TooLarge));
    let nameless = serve(Box::new(|_, _, stream| {
        say(stream, STREAM);
        say(stream, &delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})));
        say(stream, &end());
    }));
    assert!(matches!(ask_server(&nameless).outcome, Err(EndpointError::Malformed(_))));
    let many = serve(Box::new(|_, _, stream| {
        say(stream, STREAM);
        say(stream, &delta(json!({"tool_calls": [{"index": 4_000_000_000_u64, "function": {"name": "list"}}]})));
        say(stream, &end());
    }));
    assert!(matches!(ask_server(&many).outcome, Err(EndpointError::Malformed(_))));
}

#[test]
fn endless_tool_calls_stop_at_the_round_limit() {
    let server = serve(Box::new(|_, _, stream| {
        say(stream, STREAM);
        let call = json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "list", "arguments": "{\"what\": \"targets\"}"}}]});
        say(stream, &delta(call));
        say(stream, &end());
    }));
    let came = ask_server(&server);
    assert_eq!(came.outcome, Err(EndpointError::Rounds(8)));
    assert_eq!((came.tools.len(), server.requests.lock().unwrap().len()), (8, 8));
}

#[test]
fn invalid_tool_calls_are_answered_with_the_error() {
    for (name, arguments, expected) in [
        ("rm", "{}", "unknown tool"),
        ("estimate", "{\"set\":", "cannot be read"),
        ("estimate", "{\"target\": \"nowhere\"}", "nowhere"),
        ("estimate", "{\"set\": [\"tp=elephant\"]}", "elephant"),
        ("optimize", "{\"where\": [\"wibble\"]}", "wibble"),
    ] {
        let server = serve(Box::new(move |_, body, stream| {
            say(stream, STREAM);
            match result(body) {
                None => say(
                    stream,
                    &delta(
                        json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": name, "arguments": arguments}}]}),
                    ),
                ),
                Some(result) => say(stream, &delta(json!({"content": result["error"]}))),
            }
            say(stream, &end());
        }));
        let came = ask_server(&server);
        assert!(came.text.contains(expected), "{name} {arguments}: {} {:?}", came.text, came.outcome);
    }
}

#[test]
fn slow_endpoint_times_out_and_can_be_canceled() {
    let silent = || {
        serve(Box::new(|_, _, stream| {
            say(stream, STREAM);
            say(stream, &delta(json!({"content": "wait"})));
            thread::sleep(Duration::from_secs(20));
        }))
    };
    let server = silent();
    let quick = Settings { timeout: Duration::from_secs(3), retries: 0, ..settings(&server.url, Protocol::OpenAi) };
    let came = ask_with(&quick, &|| false);
    assert!(matches!(came.outcome, Err(EndpointError::Timeout(_))), "{:?}", came.outcome);
    assert_eq!(came.text, "wait");

    let server = silent();
    let patient = Settings { timeout: Duration::from_secs(600), ..settings(&server.url, Protocol::OpenAi) };
    let stop = AtomicBool::new(false);
    let came = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
        });
        ask_with(&patient, &|| stop.load(Ordering::Relaxed))
    });
    assert_eq!(came.outcome, Err(EndpointError::Canceled));
}

#[test]
fn gemini_stream_and_unstreamed_json_response_are_decoded() {
    let server = serve(Box::new(|_, body, stream| {
        say(stream, STREAM);
        let part = |part: Value, reason: Value| {
            event(&json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": reason}]}))
        };
        if body.contains("functionResponse") {
            say(stream, &part(json!({"text": "It "}), Value::Null));
            return say(stream, &part(json!({"text": "fits."}), json!("STOP")));
        }
        say(stream, &part(json!({"functionCall": {"name": "estimate", "args": {"set": ["tp=4"]}}}), json!("STOP")));
    }));
    let came = ask_with(&settings(&server.url, Protocol::Gemini), &|| false);
    assert_eq!(
        (came.outcome.is_ok(), came.text.as_str(), came.tools.as_slice()),
        (true, "It fits.", ["estimate".to_owned()].as_slice())
    );
    let requests = server.requests.lock().unwrap();
    assert!(requests[0].starts_with("POST /v1/models/mock:streamGenerateContent?alt=sse"), "{}", requests[0]);
    assert!(requests[0].to_lowercase().contains("x-goog-api-key: sk-hidden"));

    let whole = serve(Box::new(|_, _, stream| {
        let body =
            json!({"choices": [{"message": {"role": "assistant", "content": "At once."}, "finish_reason": "stop"}]})
                .to_string();
        status(stream, 200, "content-type: application/json\r\n", &body);
    }));
    assert_eq!(ask_server(&whole).text, "At once.");
}

#[test]
fn settings_load_from_environment_or_an_owner_only_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("assistant.yaml");
    std::fs::write(&file, "url: https://models.example/v1/\nmodel: m\nkey: k\n").unwrap();
    let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    let none = |_: &str| None;
    for open in [0o644, 0o640, 0o604] {
        mode(open);
        assert!(matches!(Settings::from(&none, Some(&file)), Err(SettingsError::Permissions { .. })), "{open:o}");
    }
    mode(0o600);
    let found = Settings::from(&none, Some(&file)).unwrap();
    assert_eq!((found.url.as_str(), found.key.as_ref().unwrap().reveal()), ("https://models.example/v1", "k"));
    assert!(!format!("{found:?}").contains("\"k\""), "a key is not printed");

    // The key of the file is not sent to another endpoint.
    let other = |name: &str| (name == "ATLAS_ASSISTANT_URL").then(|| "https://other.example/v1".to_owned());
    assert_eq!(Settings::from(&other, Some(&file)).unwrap().key, None);
    let plain = |name: &str| match name {
        "ATLAS_ASSISTANT_URL" => Some("http://far.example/v1".to_owned()),
        "ATLAS_ASSISTANT_MODEL" => Some("m".to_owned()),
        "ATLAS_ASSISTANT_KEY" => Some("k".to_owned()),
        _ => None,
    };
    let refused = Settings::from(&plain, None).unwrap_err().to_string();
    assert!(refused.contains("without encryption"), "{refused}");
    assert!(matches!(Settings::from(&none, None), Err(SettingsError::Missing { .. })));
    std::fs::write(&file, "url: https://x\nmodel: m\nkeey: k\n").unwrap();
    assert!(Settings::from(&none, Some(&file)).unwrap_err().to_string().contains("`keey`"));
}
