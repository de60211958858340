//! The conversation.

use super::online;
use crate::demo::Setup;
use crate::tui::line::Line;
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
    /// Bytes of its texts; what the engines answer is short.
    pub(super) fn bytes(&self) -> usize {
        let answer = match &self.answer {
            Ok(Answer::Endpoint(said)) => said.answer.len() + said.remarks.iter().map(String::len).sum::<usize>(),
            Ok(Answer::Computed(_)) => 0,
            Err(refusal) => refusal.len(),
        };
        self.question.len() + answer
    }
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The engines computed it.
    Computed(Arc<Reply>),
    /// The endpoint gave it, or would be asked so.
    Endpoint(Arc<online::Said>),
}

impl Answer {
    /// As text of this width.
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
    /// Counts questions: the same one can be asked again.
    pub(in crate::tui) serial: u64,
    /// As it was typed.
    pub text: String,
    /// The scenario that it is about where it does not say.
    pub setup: Setup,
}

/// The conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    /// What was asked and answered, oldest first.
    pub turns: Vec<Turn>,
    /// The text.
    pub line: Line,
    /// First line of the conversation that is shown.
    pub scroll: usize,
    /// The earlier question that is in the line: its place among the turns.
    pub(in crate::tui) recalled: Option<usize>,
    /// Flags that commands need to find the same files.
    pub flags: Vec<String>,
    /// The question that is being answered.
    pub(in crate::tui) pending: Option<Question>,
    pub(in crate::tui) serial: u64,
    /// The conversation with the endpoint, so that the next question continues it.
    pub talk: Option<online::Talk>,
    /// The endpoint; read from the environment and its file where this is empty.
    pub settings: Option<Settings>,
    /// What arrives of an answer under way.
    pub(in crate::tui) live: online::Live,
    /// As much of it as is shown.
    pub arriving: String,
}
