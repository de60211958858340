//! The optional endpoint: a model that answers with read-only tools. Nothing is sent unless the user configured an
//! endpoint and asked for it.
//!
//! * [`Settings`] – where it is, from the environment or a file that only its owner can read
//! * [`Conversation`] – what was said, to be saved, continued and exported
//! * [`ask`] – a question, rounds of tools, and the answer with its figures marked
//!
//! Text from the endpoint is not escaped here: whoever shows it does that.

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
pub use marks::{Marks, mark};
pub use message::{Call, Message, Request, Tool};
pub use settings::{Protocol, Secret, Settings, SettingsError};
pub use tools::{Toolbox, tools};

use message::Piece;

/// Rounds of tools that a question can have.
pub const MOST_ROUNDS: usize = 8;
/// Calls of tools in one round.
const MOST_CALLS: usize = 16;
/// Most bytes of an answer with its calls, over all rounds: about 16,000 tokens. All of it is laid out again at every frame.
const MOST_ANSWER: usize = 64 << 10;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// No connection, or it broke.
    #[error("cannot reach the endpoint: {0}")]
    Connection(String),
    /// Its certificate, or one of the files that certificates are checked with, is refused.
    #[error("the endpoint is not trusted: {0}; set CURL_CA_BUNDLE to use your own certificate authority")]
    Untrusted(String),
    /// Nothing arrived in time.
    #[error("the endpoint timed out ({0}); set ATLAS_ASSISTANT_TIMEOUT_S to wait longer")]
    Timeout(String),
    /// The program that sends requests cannot be started.
    #[error("an endpoint needs the program `curl`, which cannot be started: {0}; install it")]
    NoCurl(String),
    /// It answers with a status other than 200.
    #[error("the endpoint returned status {code}{}", if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) })]
    Status {
        /// The status.
        code: u16,
        /// What it says, at most the beginning.
        text: String,
        /// When to try again, as it asks.
        after: Option<Duration>,
    },
    /// The stream ended before the answer did.
    #[error("incomplete answer: the stream ended early")]
    Truncated,
    /// What arrived is not what the protocol says.
    #[error("cannot read the endpoint's answer: {0}")]
    Malformed(String),
    /// More arrived than is read.
    #[error("the endpoint's answer is too large")]
    TooLarge,
    /// The model only calls tools.
    #[error("the model called tools {0} times without answering, which is the limit")]
    Rounds(usize),
    /// The user stopped it.
    #[error("stopped")]
    Cancelled,
}

impl EndpointError {
    /// Whether another attempt may succeed.
    fn is_passing(&self) -> bool {
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

    fn reading(error: &std::io::Error) -> EndpointError {
        match error.kind() {
            std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => EndpointError::Timeout(error.to_string()),
            std::io::ErrorKind::PermissionDenied => EndpointError::Untrusted(error.to_string()),
            _ => EndpointError::Connection(error.to_string()),
        }
    }
}

/// What happens while a question is answered.
#[derive(Debug)]
pub enum Event<'e> {
    /// Text arrives, as the endpoint sent it.
    Text(&'e str),
    /// A tool is called.
    Tool(&'e Call),
    /// An attempt failed; there is another one after a while.
    Retry(&'e EndpointError, Duration),
}

/// The request that a conversation sends next.
#[must_use]
pub fn request(settings: &Settings, conversation: &Conversation) -> Request {
    match settings.protocol {
        Protocol::OpenAi => openai::request(settings, &conversation.messages, &tools()),
        Protocol::Gemini => gemini::request(settings, &conversation.messages, &tools()),
    }
}

/// Sends a conversation that ends in a question, and adds calls, their results and the answer to it. What arrived of an
/// answer that is interrupted stays in the conversation.
///
/// # Errors
/// The endpoint cannot be reached, answers with an error, sends what cannot be read, or never stops to call tools.
pub fn ask(
    settings: &Settings,
    conversation: &mut Conversation,
    toolbox: &Toolbox<'_>,
    cancelled: &dyn Fn() -> bool,
    sink: &mut dyn FnMut(Event<'_>),
) -> Result<Marks, EndpointError> {
    let from = conversation.messages.len().saturating_sub(1);
    let mut taken = 0;
    for _ in 0..MOST_ROUNDS {
        let request = request(settings, conversation);
        let mut turn = Turn { taken, ..Turn::default() };
        let outcome = turn.exchange(&request, settings, cancelled, sink);
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
            return Ok(conversation.marks(from, &text));
        }
        conversation.messages.push(Message::Assistant { text, calls: calls.clone() });
        for call in calls {
            if cancelled() {
                return Err(EndpointError::Cancelled);
            }
            sink(Event::Tool(&call));
            let result = toolbox.call(&call);
            conversation.messages.push(Message::Tool { call, result });
        }
    }
    Err(EndpointError::Rounds(MOST_ROUNDS))
}

/// Reads a recorded response, as a stream or as one document, and answers the text and the calls in it.
///
/// # Errors
/// As [`ask`], of a response that cannot be read.
pub fn replay(protocol: Protocol, stream: bool, body: &[u8]) -> Result<(String, Vec<Call>), EndpointError> {
    let (mut turn, mut outcome) = (Turn::default(), Ok(()));
    let mut event = |data: Option<String>| {
        if let Some(data) = data {
            outcome = turn.read(protocol, &data, &mut |_| ());
        }
        outcome.is_ok()
    };
    let read = if stream { http::events(body, &mut event) } else { http::whole(body, &mut |text| event(Some(text))) };
    read.and(outcome)?;
    turn.end()?;
    Ok((turn.text, turn.calls))
}

/// One answer as it arrives.
#[derive(Debug, Default)]
struct Turn {
    text: String,
    calls: Vec<Call>,
    done: bool,
    /// Bytes that were taken in this round and the ones before it.
    taken: usize,
}

impl Turn {
    fn exchange(
        &mut self,
        request: &Request,
        settings: &Settings,
        cancelled: &dyn Fn() -> bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), EndpointError> {
        // Both closures speak to the same listener.
        let sink = std::cell::RefCell::new(sink);
        http::exchange(
            request,
            settings,
            cancelled,
            &mut |error, pause| (*sink.borrow_mut())(Event::Retry(error, pause)),
            &mut |data| self.read(settings.protocol, data, &mut **sink.borrow_mut()),
        )?;
        self.end()
    }

    /// Takes what one event of the response says.
    fn read(&mut self, protocol: Protocol, data: &str, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), EndpointError> {
        let pieces = match protocol {
            Protocol::OpenAi => openai::pieces(data),
            Protocol::Gemini => gemini::pieces(data, self.calls.len()),
        };
        pieces.map_err(EndpointError::Malformed)?.into_iter().try_for_each(|piece| self.take(piece, sink))
    }

    /// Whether the answer is complete.
    fn end(&self) -> Result<(), EndpointError> {
        if !self.done {
            return Err(EndpointError::Truncated);
        }
        if let Some(call) = self.calls.iter().find(|call| call.name.is_empty()) {
            return Err(EndpointError::Malformed(format!("a call has no name: {}", call.arguments)));
        }
        Ok(())
    }

    fn take(&mut self, piece: Piece, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), EndpointError> {
        self.taken += match &piece {
            Piece::Text(text) => text.len(),
            Piece::Call { name, arguments, .. } => name.as_ref().map_or(0, String::len) + arguments.len(),
            Piece::Done => 0,
        };
        if self.taken > MOST_ANSWER {
            return Err(EndpointError::TooLarge);
        }
        match piece {
            Piece::Text(text) => {
                sink(Event::Text(&text));
                self.text.push_str(&text);
            }
            Piece::Call { index, id, name, arguments } => {
                if index >= MOST_CALLS {
                    return Err(EndpointError::Malformed(format!("more than {MOST_CALLS} calls at once")));
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
