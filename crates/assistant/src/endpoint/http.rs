//! One exchange over HTTP: a request, and the events of its response as they arrive. The connection has a thread of its
//! own, so that whoever waits can stop at any time.

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::message::{Head, Request};
use super::settings::Settings;
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

/// Sends, and reads until the end.
fn read(request: &Request, settings: &Settings, sender: &SyncSender<Sent>) -> Result<(), EndpointError> {
    let (head, body) = curl::send(request, settings)?;
    receive(&head, body, sender)
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
