//! Messages of a conversation with an endpoint, and the pieces that an answer arrives in.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Call {
    /// The endpoint's name for it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments as JSON text, as the endpoint sent them.
    pub arguments: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the model is to do, and the scenario.
    System {
        /// The text.
        text: String,
    },
    /// A question.
    User {
        /// The text.
        text: String,
    },
    /// An answer, or calls of tools.
    Assistant {
        /// The text.
        text: String,
        /// The calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
    },
    /// What a tool answered.
    Tool {
        /// The call.
        call: Call,
        /// JSON text.
        result: String,
    },
}

/// A piece of an answer that arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text.
    Text(String),
    /// A part of a call: what belongs to the same call has the same place.
    Call {
        /// Its place among the calls of the answer.
        index: usize,
        /// Its name at the endpoint, where this piece has it.
        id: Option<String>,
        /// The tool, where this piece has it.
        name: Option<String>,
        /// More of its arguments.
        arguments: String,
    },
    /// The answer is complete.
    Done,
}

/// A tool as endpoints are shown it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// JSON Schema of its arguments.
    pub parameters: serde_json::Value,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The address.
    pub url: String,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// The header that holds the key, where there is one.
    pub secret: Option<(&'static str, super::Secret, &'static str)>,
    /// The body.
    pub body: serde_json::Value,
}

impl Request {
    /// Everything that is sent, with the key replaced.
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

/// The name of this program in requests.
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
