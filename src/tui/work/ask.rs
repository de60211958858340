//! Submits the question of a query. A new question cancels the work on the previous one.

use std::sync::Arc;

use super::job::{Job, Order};
use super::query::{Progress, Query, Stage};
use crate::tui::message::Effect;

impl<Q: Clone + PartialEq, A> Query<Q, A> {
    /// Submits `question`, unless it is the current one. Work on another question is canceled.
    pub fn ask(
        &mut self,
        question: Q,
        serials: &mut u64,
        effects: &mut Vec<Effect>,
        job: impl FnOnce(&Q) -> Result<Arc<dyn Job>, String>,
    ) {
        if self.current.as_ref().is_some_and(|(current, _)| *current == question) {
            return;
        }
        self.cancel(effects);
        let stage = match job(&question) {
            Ok(job) => {
                *serials += 1;
                effects.push(Effect::Work(Order { serial: *serials, job }));
                Stage::Running { serial: *serials, progress: Progress::default() }
            }
            Err(trouble) => Stage::Failed(trouble),
        };
        self.current = Some((question, stage));
    }

    fn cancel(&self, effects: &mut Vec<Effect>) {
        if let Some((_, Stage::Running { serial, .. })) = &self.current {
            effects.push(Effect::Cancel(*serial));
        }
    }

    /// Stops running work. Returns whether there was any.
    pub fn stop(&mut self, effects: &mut Vec<Effect>) -> bool {
        self.cancel(effects);
        let running = self.progress().is_some();
        if let Some((_, stage)) = self.current.as_mut().filter(|_| running) {
            *stage = Stage::Stopped;
        }
        running
    }

    /// Cancels work in progress. If there is no fresh answer, submitting the same question again restarts the work.
    pub fn forget(&mut self, effects: &mut Vec<Effect>) {
        self.cancel(effects);
        if !self.is_fresh() {
            self.current = None;
        }
    }
}
