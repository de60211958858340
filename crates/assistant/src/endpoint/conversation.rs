//! A conversation, saved as JSON and exported as Markdown.

use std::fmt::Write as _;

use atlas_core::escape;
use serde::{Deserialize, Serialize};

use super::marks::{NumberOrigins, classify_numbers};
use super::message::Message;
use crate::offline::Context;

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Conversation {
    /// Name of the model.
    pub model: String,
    /// Messages in order.
    pub messages: Vec<Message>,
}

impl Conversation {
    /// Starts a conversation about a scenario.
    #[must_use]
    pub fn begin(model: &str, context: &Context<'_>) -> Conversation {
        let set: Vec<String> =
            context.overrides.iter().map(|(knob, setting)| format!("{}={setting}", knob.name())).collect();
        let scenario = serde_json::json!({"target": &*context.target, "workload": &*context.workload, "set": set});
        let text = format!(
            "You answer questions about planning AI accelerators with the tools of atlas, a calculator of throughput, \
             latency, cost, power and memory. Every figure in an answer must come from a tool; call tools before you state \
             one, and say when a tool gives no figure. Name the target, the workload and the settings that a figure belongs \
             to. Be brief and concrete. Current scenario of the user: {scenario}. Arguments that a tool call omits \
             default to this scenario."
        );
        Conversation { model: model.to_owned(), messages: vec![Message::System { text }] }
    }

    /// Copies the conversation with a system message for the current scenario.
    #[must_use]
    pub fn about(&self, context: &Context<'_>) -> Conversation {
        let mut next = Conversation::begin(&self.model, context);
        let kept = self.messages.iter().filter(|message| !matches!(message, Message::System { .. }));
        next.messages.extend(kept.cloned());
        next
    }

    /// Text of the last answer.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        self.messages.iter().rev().find_map(|message| match message {
            Message::Assistant { text, .. } => Some(text.as_str()),
            _ => None,
        })
    }

    /// Appends a question.
    pub fn question(&mut self, text: &str) {
        self.messages.push(Message::User { text: text.to_owned() });
    }

    /// Classifies the numbers of an answer by origin. Questions and scenarios count up to message `from`, results of
    /// tools in the whole conversation.
    #[must_use]
    pub fn number_origins(&self, from: usize, answer: &str) -> NumberOrigins {
        let mut tools = Vec::new();
        let mut given = Vec::new();
        for (at, message) in self.messages.iter().enumerate() {
            match message {
                Message::Tool { result, .. } => tools.push(result.as_str()),
                Message::User { text } | Message::System { text } if at <= from => given.push(text.as_str()),
                _ => {}
            }
        }
        classify_numbers(answer, &tools, &given)
    }

    /// Serializes the conversation as JSON, to be read by [`Conversation::read`].
    ///
    /// # Errors
    /// Returns the error of the JSON serializer.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Reads a saved conversation.
    ///
    /// # Errors
    /// The text is not a saved conversation.
    pub fn read(text: &str) -> Result<Conversation, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Renders Markdown: questions, tool calls, and answers with the origin of their numbers.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = format!("# Conversation with {}\n", escape::markdown(&self.model));
        for (at, message) in self.messages.iter().enumerate() {
            match message {
                Message::System { .. } => {}
                Message::User { text } => {
                    let _ = write!(out, "\n## {}\n", escape::markdown(text));
                }
                Message::Assistant { text, calls } => {
                    for call in calls {
                        let _ = write!(out, "\nTool {}:\n\n", escape::markdown(&call.name));
                        out.push_str(&escape::markdown_block("json", &call.arguments));
                    }
                    if !text.is_empty() {
                        // The model's text is quoted verbatim, so that none of it is interpreted as markup.
                        let _ = write!(out, "\n{}", escape::markdown_block("", text));
                        for line in self.number_origins(at, text).lines() {
                            let _ = write!(out, "\n- {}\n", escape::markdown(&line));
                        }
                    }
                }
                Message::Tool { call, result } => {
                    let _ = write!(out, "\nResult of {}:\n\n", escape::markdown(&call.name));
                    out.push_str(&escape::markdown_block("json", result));
                }
            }
        }
        out
    }
}
