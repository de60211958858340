//! The optional endpoint: a language model that answers questions with read-only tools. Nothing is sent unless the user
//! has configured an endpoint and asks a question.
//!
//! * [`Settings`] – how to reach the endpoint, from the environment or a file that only its owner can read
//! * [`Conversation`] – the messages, to be saved, continued and exported
//! * [`ask`] – a question, rounds of tool calls, and the answer with the origin of its numbers
//!
//! Text from the endpoint is not escaped here; code that displays it must do that.

mod conversation;
mod curl;
mod gemini;
mod http;
mod marks;
mod message;
mod openai;
mod settings;
mod tools;

use std::time::Duration;

pub use conversation::Conversation;
pub use marks::{NumberOrigins, classify_numbers};
pub use message::{Call, Message, Request, Tool};
pub use settings::{Protocol, Secret, Settings, SettingsError};
pub use tools::{Toolbox, tools};

use message::Piece;

/// Maximum rounds of tool calls per question.
pub const MAX_ROUNDS: usize = 8;
/// Maximum tool calls per round.
const MAX_CALLS: usize = 16;
/// Maximum size of an answer with its calls over all rounds, bytes: about 16,000 tokens. The whole text is laid out
/// again on every frame.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Error while getting an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The connection failed or broke.
    #[error("cannot reach the endpoint: {0}")]
    Connection(String),
    /// The endpoint's certificate, or a file that is needed to verify certificates, was rejected.
    #[error("the endpoint is not trusted: {0}; set CURL_CA_BUNDLE to use your own certificate authority")]
    Untrusted(String),
    /// A timeout.
    #[error("the endpoint timed out ({0}); set ATLAS_ASSISTANT_TIMEOUT_S to wait longer")]
    Timeout(String),
    /// curl cannot be started.
    #[error("an endpoint needs the program `curl`, which cannot be started: {0}; install it")]
    NoCurl(String),
    /// The endpoint answered with a status other than 200.
    #[error("the endpoint returned status {code}{}", if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) })]
    Status {
        /// HTTP status.
        code: u16,
        /// Beginning of the response's text.
        text: String,
        /// Delay before a retry, as requested by the endpoint.
        after: Option<Duration>,
    },
    /// The stream ended before the answer did.
    #[error("incomplete answer: the stream ended early")]
    Truncated,
    /// The response does not conform to the protocol.
    #[error("cannot read the endpoint's answer: {0}")]
    Malformed(String),
    /// The response exceeds a size limit.
    #[error("the endpoint's answer is too large")]
    TooLarge,
    /// The model has used all rounds for tool calls without an answer.
    #[error("the model called tools {0} times without answering, which is the limit")]
    Rounds(usize),
    /// Canceled by the user.
    #[error("stopped")]
    Canceled,
}

impl EndpointError {
    /// Whether a retry may succeed.
    fn is_transient(&self) -> bool {
        match self {
            EndpointError::Connection(_) | EndpointError::Timeout(_) => true,
            EndpointError::Status { code, .. } => matches!(code, 408 | 429 | 500 | 502 | 503 | 504 | 529),
            _ => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            EndpointError::Status { after, .. } => *after,
            _ => None,
        }
    }

    fn read_error(error: &std::io::Error) -> EndpointError {
        match error.kind() {
            std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => EndpointError::Timeout(error.to_string()),
            std::io::ErrorKind::PermissionDenied => EndpointError::Untrusted(error.to_string()),
            _ => EndpointError::Connection(error.to_string()),
        }
    }
}

/// Progress while a question is answered.
#[derive(Debug)]
pub enum Event<'e> {
    /// Part of the answer's text, as sent by the endpoint.
    Text(&'e str),
    /// A tool call.
    Tool(&'e Call),
    /// An attempt failed and will be repeated after the delay.
    Retry(&'e EndpointError, Duration),
}

/// Builds the next request of a conversation.
#[must_use]
pub fn request(settings: &Settings, conversation: &Conversation) -> Request {
    match settings.protocol {
        Protocol::OpenAi => openai::request(settings, &conversation.messages, &tools()),
        Protocol::Gemini => gemini::request(settings, &conversation.messages, &tools()),
    }
}

/// Sends a conversation that ends in a question, and appends calls, their results and the answer to it. If the answer
/// is interrupted, the part that has arrived is kept.
///
/// # Errors
/// The endpoint cannot be reached, answers with an error or a malformed response, or does not stop calling tools.
pub fn ask(
    settings: &Settings,
    conversation: &mut Conversation,
    toolbox: &Toolbox<'_>,
    canceled: &dyn Fn() -> bool,
    sink: &mut dyn FnMut(Event<'_>),
) -> Result<NumberOrigins, EndpointError> {
    let from = conversation.messages.len().saturating_sub(1);
    let mut taken = 0;
    for _ in 0..MAX_ROUNDS {
        let request = request(settings, conversation);
        let mut turn = PartialAnswer { taken, ..PartialAnswer::default() };
        let outcome = turn.exchange(&request, settings, canceled, sink);
        let (text, calls) = (turn.text, turn.calls);
        taken = turn.taken;
        if outcome.is_err() || calls.is_empty() {
            if !text.is_empty() {
                conversation.messages.push(Message::Assistant { text: text.clone(), calls: Vec::new() });
            }
            outcome?;
            if text.trim().is_empty() {
                return Err(EndpointError::Malformed("it is empty".to_owned()));
            }
            return Ok(conversation.number_origins(from, &text));
        }
        conversation.messages.push(Message::Assistant { text, calls: calls.clone() });
        for call in calls {
            if canceled() {
                return Err(EndpointError::Canceled);
            }
            sink(Event::Tool(&call));
            let result = toolbox.call(&call);
            conversation.messages.push(Message::Tool { call, result });
        }
    }
    Err(EndpointError::Rounds(MAX_ROUNDS))
}

/// Decodes a recorded response, as a stream or as one document, and returns its text and calls.
///
/// # Errors
/// The same as [`ask`] for a malformed response.
pub fn replay(protocol: Protocol, stream: bool, body: &[u8]) -> Result<(String, Vec<Call>), EndpointError> {
    let (mut turn, mut outcome) = (PartialAnswer::default(), Ok(()));
    let mut event = |data: Option<String>| {
        if let Some(data) = data {
            outcome = turn.read(protocol, &data, &mut |_| ());
        }
        outcome.is_ok()
    };
    let read =
        if stream { http::events(body, &mut event) } else { http::read_document(body, &mut |text| event(Some(text))) };
    read.and(outcome)?;
    turn.end()?;
    Ok((turn.text, turn.calls))
}

/// One answer, while it arrives.
#[derive(Debug, Default)]
struct PartialAnswer {
    text: String,
    calls: Vec<Call>,
    done: bool,
    /// Bytes received in this round and earlier ones.
    taken: usize,
}

impl PartialAnswer {
    fn exchange(
        &mut self,
        request: &Request,
        settings: &Settings,
        canceled: &dyn Fn() -> bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), EndpointError> {
        // Both closures need mutable access to the sink.
        let sink = std::cell::RefCell::new(sink);
        http::exchange(
            request,
            settings,
            canceled,
            &mut |error, pause| (*sink.borrow_mut())(Event::Retry(error, pause)),
            &mut |data| self.read(settings.protocol, data, &mut **sink.borrow_mut()),
        )?;
        self.end()
    }

    /// Handles one event of the response.
    fn read(&mut self, protocol: Protocol, data: &str, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), EndpointError> {
        let pieces = match protocol {
            Protocol::OpenAi => openai::pieces(data),
            Protocol::Gemini => gemini::pieces(data, self.calls.len()),
        };
        pieces.map_err(EndpointError::Malformed)?.into_iter().try_for_each(|piece| self.take(piece, sink))
    }

    /// Returns an error unless the answer is complete.
    fn end(&self) -> Result<(), EndpointError> {
        if !self.done {
            return Err(EndpointError::Truncated);
        }
        if let Some(call) = self.calls.iter().find(|call| call.name.is_empty()) {
            return Err(EndpointError::Malformed(format!("a tool call has no name: {}", call.arguments)));
        }
        Ok(())
    }

    fn take(&mut self, piece: Piece, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), EndpointError> {
        self.taken += match &piece {
            Piece::Text(text) => text.len(),
            Piece::Call { name, arguments, .. } => name.as_ref().map_or(0, String::len) + arguments.len(),
            Piece::Done => 0,
        };
        if self.taken > MAX_ANSWER_BYTES {
            return Err(EndpointError::TooLarge);
        }
        match piece {
            Piece::Text(text) => {
                sink(Event::Text(&text));
                self.text.push_str(&text);
            }
            Piece::Call { index, id, name, arguments } => {
                if index >= MAX_CALLS {
                    return Err(EndpointError::Malformed(format!("more than {MAX_CALLS} tool calls in one response")));
                }
                while self.calls.len() <= index {
                    let id = format!("call_{}", self.calls.len());
                    self.calls.push(Call { id, ..Call::default() });
                }
                if let Some(call) = self.calls.get_mut(index) {
                    if let Some(id) = id.filter(|id| !id.is_empty()) {
                        call.id = id;
                    }
                    call.name.push_str(name.as_deref().unwrap_or_default());
                    call.arguments.push_str(&arguments);
                }
            }
            Piece::Done => self.done = true,
        }
        Ok(())
    }
}
