//! One exchange over HTTP: a request, and the events of its response as they arrive. The connection has a thread of its
//! own, so that whoever waits can stop at any time. HTTPS goes through [`curl`].

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::message::Request;
use super::settings::{Settings, is_local};
use super::{EndpointError, curl};

/// Maximum bytes of a response, and of one event.
const MOST_BYTES: u64 = 8 << 20;
const MOST_EVENT: usize = 1 << 20;
/// Bytes of an error's text that are shown.
const ERROR_TEXT: u64 = 2_000;
/// How often a waiting caller looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Longest wait that an endpoint can ask for between attempts.
const MOST_WAIT: Duration = Duration::from_secs(30);

/// What this program calls itself.
pub(super) const USER_AGENT: &str = concat!("atlas/", env!("CARGO_PKG_VERSION"));

/// What counts of a response's status and headers.
#[derive(Debug)]
pub(super) struct Head {
    /// The status.
    pub status: u16,
    /// Whether the body is a stream of events.
    pub streams: bool,
    /// When to try again, as the endpoint asks.
    pub after: Option<Duration>,
}

impl Head {
    /// From the status and the headers of these names.
    pub(super) fn new(status: u16, content_type: Option<&str>, retry_after: Option<&str>) -> Head {
        let after = retry_after.and_then(|text| text.trim().parse::<f64>().ok());
        let after = after.filter(|seconds| (0.0..=1e6).contains(seconds)).map(Duration::from_secs_f64);
        let streams = content_type.is_none_or(|kind| !kind.starts_with("application/json"));
        Head { status, streams, after }
    }
}

/// What the connection's thread sends.
enum Sent {
    Event(String),
    /// A line that says nothing, such as the comments that keep a connection open.
    Nothing,
    End(Result<(), EndpointError>),
}

/// Sends a request and hands over every event. Busy and failing endpoints are tried again, as long as nothing has
/// arrived.
pub(super) fn exchange(
    request: &Request,
    settings: &Settings,
    cancelled: &dyn Fn() -> bool,
    retrying: &mut dyn FnMut(&EndpointError, Duration),
    event: &mut dyn FnMut(&str) -> Result<(), EndpointError>,
) -> Result<(), EndpointError> {
    let mut wait = settings.backoff;
    let mut attempt = 0;
    loop {
        let mut arrived = false;
        let outcome = once(request, settings, cancelled, &mut |data| {
            arrived = true;
            event(data)
        });
        let Err(error) = outcome else { return Ok(()) };
        if arrived || attempt >= settings.retries || !error.is_passing() {
            return Err(error);
        }
        let pause = error.retry_after().unwrap_or(wait).min(MOST_WAIT);
        retrying(&error, pause);
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if cancelled() {
                return Err(EndpointError::Cancelled);
            }
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        attempt += 1;
        wait *= 2;
    }
}

/// One attempt.
fn once(
    request: &Request,
    settings: &Settings,
    cancelled: &dyn Fn() -> bool,
    event: &mut dyn FnMut(&str) -> Result<(), EndpointError>,
) -> Result<(), EndpointError> {
    let (sender, receiver): (SyncSender<Sent>, Receiver<Sent>) = sync_channel(64);
    let (request, settings) = (request.clone(), settings.clone());
    let begin = std::thread::Builder::new().name("endpoint".to_owned()).spawn(move || {
        let end = read(&request, &settings, &sender);
        // Whoever stopped waiting does not hear it.
        let _ = sender.send(Sent::End(end));
    });
    begin.map_err(|error| EndpointError::Connection(error.to_string()))?;
    loop {
        if cancelled() {
            return Err(EndpointError::Cancelled);
        }
        match receiver.recv_timeout(LOOK) {
            Ok(Sent::Event(data)) => event(&data)?,
            Ok(Sent::End(end)) => return end,
            Ok(Sent::Nothing) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(EndpointError::Connection("the connection's thread ended".to_owned()));
            }
        }
    }
}

fn agent(request: &Request, settings: &Settings) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_resolve(Some(settings.timeout))
        .timeout_connect(Some(settings.timeout))
        .timeout_send_request(Some(settings.timeout))
        .timeout_send_body(Some(settings.timeout))
        .timeout_recv_response(Some(settings.timeout))
        .timeout_per_read(Some(settings.timeout))
        .user_agent(USER_AGENT);
    // A proxy does not lead back to this machine.
    if is_local(&request.url) {
        config = config.proxy(None);
    }
    config.build().new_agent()
}

/// Sends, and reads until the end.
fn read(request: &Request, settings: &Settings, sender: &SyncSender<Sent>) -> Result<(), EndpointError> {
    if request.url.starts_with("https://") {
        let (head, body) = curl::send(request, settings)?;
        return receive(&head, body, sender);
    }
    let mut post = agent(request, settings).post(&request.url);
    for (name, value) in &request.headers {
        post = post.header(*name, value);
    }
    if let Some((name, key, before)) = &request.secret {
        post = post.header(*name, format!("{before}{}", key.reveal()));
    }
    let mut response = post.send(request.body.to_string()).map_err(|error| EndpointError::of(&error))?;
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let head = Head::new(response.status().as_u16(), header("content-type"), header("retry-after"));
    receive(&head, response.body_mut().as_reader(), sender)
}

/// Reads the body of a response until its end.
fn receive(head: &Head, body: impl std::io::Read, sender: &SyncSender<Sent>) -> Result<(), EndpointError> {
    if head.status != 200 {
        let mut text = String::new();
        let read = body.take(ERROR_TEXT).read_to_string(&mut text);
        let text = if read.is_ok() { text } else { String::new() };
        return Err(EndpointError::Status { code: head.status, text, after: head.after });
    }
    let body = body.take(MOST_BYTES + 1);
    // Whoever stopped waiting needs no more.
    let mut send = |data: Option<String>| sender.send(data.map_or(Sent::Nothing, Sent::Event)).is_ok();
    if head.streams { events(body, &mut send) } else { whole(body, &mut |text| send(Some(text))) }
}

/// A response that is one document.
pub(super) fn whole(mut body: impl std::io::Read, event: &mut dyn FnMut(String) -> bool) -> Result<(), EndpointError> {
    let mut text = String::new();
    let size = body.read_to_string(&mut text).map_err(|error| EndpointError::reading(&error))?;
    if size as u64 > MOST_BYTES {
        return Err(EndpointError::TooLarge);
    }
    event(text);
    Ok(())
}

/// Server-sent events: `data:` lines up to an empty one; `None` for an empty line without them. Ends where `event` wants no
/// more, which a stream that only keeps the connection open has to be asked as well.
pub(super) fn events(
    body: impl std::io::Read,
    event: &mut dyn FnMut(Option<String>) -> bool,
) -> Result<(), EndpointError> {
    let mut reader = BufReader::new(body);
    let mut data = String::new();
    let mut total = 0_u64;
    loop {
        let mut line = Vec::new();
        let room = u64::try_from(MOST_EVENT).unwrap_or(u64::MAX);
        let size =
            reader.by_ref().take(room).read_until(b'\n', &mut line).map_err(|error| EndpointError::reading(&error))?;
        total += size as u64;
        if size >= MOST_EVENT || data.len() > MOST_EVENT || total > MOST_BYTES {
            return Err(EndpointError::TooLarge);
        }
        let line = String::from_utf8_lossy(&line);
        let text = line.trim_end_matches(['\n', '\r']);
        if let Some(rest) = text.strip_prefix("data:") {
            if !data.is_empty() {
                data.push('\n');
            }
            data.push_str(rest.strip_prefix(' ').unwrap_or(rest));
        }
        let ended = text.is_empty() || size == 0;
        if ended && !event(Some(std::mem::take(&mut data)).filter(|data| !data.is_empty())) {
            return Ok(());
        }
        if size == 0 {
            return Ok(());
        }
    }
}
