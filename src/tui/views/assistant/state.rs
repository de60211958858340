//! The conversation.

use super::online;
use crate::demo::Setup;
use crate::tui::widgets::line::Line;
use atlas_assistant::endpoint::Settings;
use atlas_assistant::offline::Reply;
use std::sync::Arc;

/// A question and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The question.
    pub question: String,
    /// The answer, or why it failed.
    pub answer: Result<Answer, String>,
}

impl Turn {
    /// Size of the texts in bytes. Answers of the engines are short and not counted.
    pub(super) fn bytes(&self) -> usize {
        let answer = match &self.answer {
            Ok(Answer::Endpoint(said)) => said.answer.len() + said.remarks.iter().map(String::len).sum::<usize>(),
            Ok(Answer::Computed(_)) => 0,
            Err(refusal) => refusal.len(),
        };
        self.question.len() + answer
    }
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Computed by the engines.
    Computed(Arc<Reply>),
    /// Given by the endpoint, or the preview of a request to it.
    Endpoint(Arc<online::EndpointAnswer>),
}

impl Answer {
    /// The answer as text of this width.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        match self {
            Answer::Computed(reply) => reply.text(width),
            Answer::Endpoint(said) => said.text(),
        }
    }

    /// The answer of the engines.
    #[must_use]
    pub fn computed(&self) -> Option<&Reply> {
        match self {
            Answer::Computed(reply) => Some(reply),
            Answer::Endpoint(_) => None,
        }
    }
}

/// A question to the workers.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Serial number, so that the same question can be asked again.
    pub(in crate::tui) serial: u64,
    /// As it was typed.
    pub text: String,
    /// The scenario to which the question refers if it names none.
    pub setup: Setup,
}

/// The conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    /// The questions and answers, oldest first.
    pub turns: Vec<Turn>,
    /// The text.
    pub line: Line,
    /// First line of the conversation that is shown.
    pub scroll: usize,
    /// Index of the turn whose question is in the input line.
    pub(in crate::tui) recalled: Option<usize>,
    /// Flags that commands need to find the same files.
    pub flags: Vec<String>,
    /// The question that is being answered.
    pub(in crate::tui) pending: Option<Question>,
    pub(in crate::tui) serial: u64,
    /// The conversation with the endpoint, so that the next question continues it.
    pub talk: Option<online::SharedConversation>,
    /// Settings of the endpoint; read from the environment and its file if unset.
    pub settings: Option<Settings>,
    /// The text of the running answer as it arrives.
    pub(in crate::tui) live: online::PartialAnswer,
    /// The part of it that is shown.
    pub arriving: String,
}
