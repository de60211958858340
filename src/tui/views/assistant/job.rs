//! Computes an answer on a thread.

use std::sync::Arc;

use super::online::Endpoint;
use super::{Answer, Question};
use crate::tui::work::job::{Job, Product};
use atlas_assistant::offline::{self, Context};
use atlas_config::library::Library;
use atlas_plan::search::Gauge;

/// A question, with everything needed to answer it.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) library: Arc<Library>,
    pub(super) question: Question,
    pub(super) flags: Vec<String>,
    pub(super) endpoint: Endpoint,
}

impl Job for Work {
    fn run(&self, gauge: &Gauge) -> Result<Product, String> {
        let setup = &self.question.setup;
        let context = Context {
            library: &self.library,
            target: Arc::clone(&setup.target),
            workload: Arc::clone(&setup.workload),
            overrides: setup.overrides.clone(),
            flags: self.flags.clone(),
        };
        let text = self.question.text.as_str();
        let answer = if let Some(text) = text.strip_prefix("!!") {
            Answer::Endpoint(Arc::new(self.endpoint.preview(text.trim(), &context)?))
        } else if let Some(text) = text.strip_prefix('!') {
            Answer::Endpoint(Arc::new(self.endpoint.ask(text.trim(), &context, gauge)?))
        } else {
            let reply = offline::answer(text, &context, gauge).map_err(|refusal| refusal.to_string())?;
            Answer::Computed(Arc::new(reply))
        };
        Ok(Product::Reply(answer))
    }
}
