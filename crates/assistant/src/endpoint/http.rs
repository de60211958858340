//! One HTTP exchange: a request, and the events of its response as they arrive. The connection has its own thread, so
//! that the caller can cancel at any time.

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::message::{Head, Request};
use super::settings::Settings;
use super::{EndpointError, curl};

/// Maximum size of a response and of one event, bytes.
const MAX_BYTES: u64 = 8 << 20;
const MAX_EVENT_BYTES: usize = 1 << 20;
/// Maximum length of an error message from the endpoint, bytes.
const ERROR_TEXT: u64 = 2_000;
/// Interval at which a waiting caller checks for cancellation.
const CANCELLATION_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum delay before a retry that an endpoint can request.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Message from the connection's thread.
enum ConnectionMessage {
    Event(String),
    /// A line without data, such as a comment that keeps the connection open.
    Nothing,
    End(Result<(), EndpointError>),
}

/// Sends a request and calls `event` for every event. Retries if the endpoint is busy or fails, unless an event has
/// arrived already.
pub(super) fn exchange(
    request: &Request,
    settings: &Settings,
    canceled: &dyn Fn() -> bool,
    retrying: &mut dyn FnMut(&EndpointError, Duration),
    event: &mut dyn FnMut(&str) -> Result<(), EndpointError>,
) -> Result<(), EndpointError> {
    let mut wait = settings.backoff;
    let mut attempt = 0;
    loop {
        let mut arrived = false;
        let outcome = attempt_once(request, settings, canceled, &mut |data| {
            arrived = true;
            event(data)
        });
        let Err(error) = outcome else { return Ok(()) };
        if arrived || attempt >= settings.retries || !error.is_transient() {
            return Err(error);
        }
        let pause = error.retry_after().unwrap_or(wait).min(MAX_RETRY_DELAY);
        retrying(&error, pause);
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if canceled() {
                return Err(EndpointError::Canceled);
            }
            std::thread::sleep(CANCELLATION_INTERVAL.min(until.saturating_duration_since(Instant::now())));
        }
        attempt += 1;
        wait *= 2;
    }
}

/// Makes one attempt.
fn attempt_once(
    request: &Request,
    settings: &Settings,
    canceled: &dyn Fn() -> bool,
    event: &mut dyn FnMut(&str) -> Result<(), EndpointError>,
) -> Result<(), EndpointError> {
    let (sender, receiver): (SyncSender<ConnectionMessage>, Receiver<ConnectionMessage>) = sync_channel(64);
    let (request, settings) = (request.clone(), settings.clone());
    let begin = std::thread::Builder::new().name("endpoint".to_owned()).spawn(move || {
        let end = read(&request, &settings, &sender);
        // The receiver is gone after a cancellation.
        let _ = sender.send(ConnectionMessage::End(end));
    });
    begin.map_err(|error| EndpointError::Connection(error.to_string()))?;
    loop {
        if canceled() {
            return Err(EndpointError::Canceled);
        }
        match receiver.recv_timeout(CANCELLATION_INTERVAL) {
            Ok(ConnectionMessage::Event(data)) => event(&data)?,
            Ok(ConnectionMessage::End(end)) => return end,
            Ok(ConnectionMessage::Nothing) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(EndpointError::Connection("the connection's thread ended".to_owned()));
            }
        }
    }
}

/// Sends the request and reads the response until its end.
fn read(request: &Request, settings: &Settings, sender: &SyncSender<ConnectionMessage>) -> Result<(), EndpointError> {
    let (head, body) = curl::send(request, settings)?;
    receive(&head, body, sender)
}

/// Reads the body of a response and sends its events.
fn receive(head: &Head, body: impl std::io::Read, sender: &SyncSender<ConnectionMessage>) -> Result<(), EndpointError> {
    if head.status != 200 {
        let mut text = String::new();
        let read = body.take(ERROR_TEXT).read_to_string(&mut text);
        let text = if read.is_ok() { text } else { String::new() };
        return Err(EndpointError::Status { code: head.status, text, after: head.after });
    }
    let body = body.take(MAX_BYTES + 1);
    // A failed send means that the caller was canceled, so reading stops.
    let mut send =
        |data: Option<String>| sender.send(data.map_or(ConnectionMessage::Nothing, ConnectionMessage::Event)).is_ok();
    if head.streams { events(body, &mut send) } else { read_document(body, &mut |text| send(Some(text))) }
}

/// Reads a response that is a single document.
pub(super) fn read_document(
    mut body: impl std::io::Read,
    event: &mut dyn FnMut(String) -> bool,
) -> Result<(), EndpointError> {
    let mut text = String::new();
    let size = body.read_to_string(&mut text).map_err(|error| EndpointError::read_error(&error))?;
    if size as u64 > MAX_BYTES {
        return Err(EndpointError::TooLarge);
    }
    event(text);
    Ok(())
}

/// Reads server-sent events: `data:` lines up to an empty line. Calls `event` with `None` for an empty line without
/// data, so that a stream of keep-alive comments can be canceled, too. Stops when `event` returns false.
pub(super) fn events(
    body: impl std::io::Read,
    event: &mut dyn FnMut(Option<String>) -> bool,
) -> Result<(), EndpointError> {
    let mut reader = BufReader::new(body);
    let mut data = String::new();
    let mut total = 0_u64;
    loop {
        let mut line = Vec::new();
        let room = u64::try_from(MAX_EVENT_BYTES).unwrap_or(u64::MAX);
        let size = reader
            .by_ref()
            .take(room)
            .read_until(b'\n', &mut line)
            .map_err(|error| EndpointError::read_error(&error))?;
        total += size as u64;
        if size >= MAX_EVENT_BYTES || data.len() > MAX_EVENT_BYTES || total > MAX_BYTES {
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
