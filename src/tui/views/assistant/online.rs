//! Questions to the endpoint that the user configured. The answer is shown as it arrives, numbers that no tool computed
//! are listed, and nothing is sent without a question of the user.

use std::sync::{Arc, Mutex, PoisonError};

use atlas_assistant::endpoint::{Conversation, Event, Settings, Toolbox, ask, request};
use atlas_assistant::offline::Context;
use atlas_plan::search::Gauge;

/// The conversation with the endpoint.
pub type SharedConversation = Arc<Conversation>;

/// An answer of the endpoint, or the preview of a request to it.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointAnswer {
    /// The answer, or the request.
    pub answer: String,
    /// Calls of tools, and where the numbers come from.
    pub remarks: Vec<String>,
    /// The conversation with this answer; `None` if nothing was sent.
    pub talk: Option<SharedConversation>,
}

impl EndpointAnswer {
    /// The answer and its remarks as text.
    #[must_use]
    pub fn text(&self) -> String {
        let remarks: String = self.remarks.iter().map(|remark| format!("\n{remark}")).collect();
        format!("{}\n{remarks}", self.answer.trim_end())
    }
}

/// The part of an answer that has arrived, shared with the thread that receives it.
#[derive(Debug, Clone, Default)]
pub struct PartialAnswer(Arc<Mutex<String>>);

impl PartialEq for PartialAnswer {
    fn eq(&self, other: &PartialAnswer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialAnswer {
    /// The text that has arrived.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, piece: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(piece);
    }
}

/// The endpoint, the conversation so far, and the buffer for the answer.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) talk: Option<SharedConversation>,
    pub(super) settings: Option<Settings>,
    pub(super) live: PartialAnswer,
}

impl Endpoint {
    /// Returns the request that would be sent.
    pub(super) fn preview(&self, question: &str, context: &Context<'_>) -> Result<EndpointAnswer, String> {
        let (settings, mut talk) = self.begin(context)?;
        talk.question(question);
        let answer = request(&settings, &talk).preview();
        Ok(EndpointAnswer {
            answer,
            remarks: vec!["nothing was sent; use ! instead of !! to send it".to_owned()],
            talk: None,
        })
    }

    /// Sends the question and returns the answer.
    pub(super) fn ask(&self, question: &str, context: &Context<'_>, gauge: &Gauge) -> Result<EndpointAnswer, String> {
        let (settings, mut talk) = self.begin(context)?;
        talk.question(question);
        let toolbox = Toolbox { context, gauge };
        let mut remarks = Vec::new();
        let outcome = ask(&settings, &mut talk, &toolbox, &|| gauge.canceled(), &mut |event| match event {
            Event::Text(piece) => self.live.add(piece),
            Event::Tool(call) => {
                let line = format!("tool {}: {}", call.name, call.arguments);
                self.live.add(&format!("\n[{line}]\n"));
                remarks.push(line);
            }
            Event::Retry(error, pause) => {
                let line = format!("{error}; next attempt in {:.1} s", pause.as_secs_f64());
                self.live.add(&format!("\n[{line}]\n"));
            }
        });
        let marks = outcome.map_err(|error| {
            let arrived = self.live.text();
            if arrived.trim().is_empty() { error.to_string() } else { format!("{}\n{error}", arrived.trim_end()) }
        })?;
        remarks.extend(marks.lines());
        Ok(EndpointAnswer { answer: talk.answer().unwrap_or_default().to_owned(), remarks, talk: Some(Arc::new(talk)) })
    }

    fn begin(&self, context: &Context<'_>) -> Result<(Settings, Conversation), String> {
        let settings = match &self.settings {
            Some(settings) => settings.clone(),
            None => Settings::load().map_err(|error| error.to_string())?,
        };
        // Tell the endpoint which scenario is the current one.
        let talk = match &self.talk {
            Some(talk) => talk.about(context),
            None => Conversation::begin(&settings.model, context),
        };
        Ok((settings, talk))
    }
}
