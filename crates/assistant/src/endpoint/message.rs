//! Messages of a conversation with an endpoint, and the parts in which an answer arrives.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Call {
    /// Identifier assigned by the endpoint.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as JSON text, as sent by the endpoint.
    pub arguments: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Instructions for the model, and the scenario.
    System {
        /// The text.
        text: String,
    },
    /// A question.
    User {
        /// The text.
        text: String,
    },
    /// An answer or tool calls.
    Assistant {
        /// The text.
        text: String,
        /// Tool calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
    },
    /// Result of a tool call.
    Tool {
        /// The call.
        call: Call,
        /// Result as JSON text.
        result: String,
    },
}

/// Part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text.
    Text(String),
    /// Part of a tool call.
    Call {
        /// Index of the call within the answer.
        index: usize,
        /// Identifier of the call, if this part has it.
        id: Option<String>,
        /// Name of the tool, if this part has it.
        name: Option<String>,
        /// Continuation of the arguments.
        arguments: String,
    },
    /// The answer is complete.
    Done,
}

/// Description of a tool for endpoints.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Name.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// JSON Schema of its arguments.
    pub parameters: serde_json::Value,
}

/// An HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// URL.
    pub url: String,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// Header with the key, if there is one: name, key, and the text before the key.
    pub secret: Option<(&'static str, super::Secret, &'static str)>,
    /// The body.
    pub body: serde_json::Value,
}

impl Request {
    /// Renders the request as text, with the key replaced.
    #[must_use]
    pub fn preview(&self) -> String {
        let mut out = format!("POST {}\n", self.url);
        for (name, value) in &self.headers {
            out.push_str(&format!("{name}: {value}\n"));
        }
        if let Some((name, _, before)) = &self.secret {
            out.push_str(&format!("{name}: {before}[key]\n"));
        }
        let body = serde_json::to_string_pretty(&self.body).unwrap_or_else(|_| self.body.to_string());
        format!("{out}\n{body}\n")
    }
}

/// User agent of this program.
pub(super) const USER_AGENT: &str = concat!("atlas/", env!("CARGO_PKG_VERSION"));

/// The parts of a response's status and headers that are used.
#[derive(Debug)]
pub(super) struct Head {
    /// The status.
    pub status: u16,
    /// Whether the body is a stream of events.
    pub streams: bool,
    /// Delay before a retry, as requested by the endpoint.
    pub after: Option<Duration>,
}

impl Head {
    /// Interprets the status and the values of the named headers.
    pub(super) fn new(status: u16, content_type: Option<&str>, retry_after: Option<&str>) -> Head {
        let after = retry_after.and_then(|text| text.trim().parse::<f64>().ok());
        let after = after.filter(|seconds| (0.0..=1e6).contains(seconds)).map(Duration::from_secs_f64);
        let streams = content_type.is_none_or(|kind| !kind.starts_with("application/json"));
        Head { status, streams, after }
    }
}
