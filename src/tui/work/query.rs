//! Queries of views: the last question and the last answer.

use atlas_core::units;

/// Progress of a job.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Units of work done.
    pub done: u64,
    /// Total number of units; 0 if unknown.
    pub total: u64,
    /// Elapsed time in s.
    pub seconds: f64,
}

impl Progress {
    /// Fraction done, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.total == 0 { 0.0 } else { (self.done as f64 / self.total as f64).min(1.0) }
    }

    /// Units of work per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.done as f64 / self.seconds.max(1e-3)
    }

    /// Estimated time left in s; `None` while unknown.
    #[must_use]
    pub fn left(&self) -> Option<f64> {
        let rest = self.total.checked_sub(self.done).filter(|_| self.done > 0 && self.total > 0)?;
        Some(rest as f64 / self.rate())
    }

    /// Formats the progress: `43 %, 1.2 M/s, 3 s left`. Numbers are padded to a constant width.
    #[must_use]
    pub fn describe(&self) -> String {
        if self.done == 0 {
            return "starting".to_owned();
        }
        let left = self.left().map_or_else(String::new, |left| format!(", {} left", units::duration(left)));
        format!("{:>3.0} %, {}/s{left}", 100.0 * self.share(), units::si(self.rate()))
    }
}

/// State of the last question.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    Running { serial: u64, progress: Progress },
    Answered,
    Stopped,
    Failed(String),
}

/// A query of a view: the last question, and the last answer with its question.
#[derive(Debug, Clone)]
pub struct Query<Q, A> {
    pub(super) current: Option<(Q, Stage)>,
    pub(super) answer: Option<(Q, A)>,
}

impl<Q, A> Default for Query<Q, A> {
    fn default() -> Query<Q, A> {
        Query { current: None, answer: None }
    }
}

impl<Q: Clone + PartialEq, A> Query<Q, A> {
    /// Returns the last question.
    #[must_use]
    pub fn current(&self) -> Option<&Q> {
        self.current.as_ref().map(|(question, _)| question)
    }

    /// Returns the progress of running work.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        match &self.current {
            Some((_, Stage::Running { progress, .. })) => Some(*progress),
            _ => None,
        }
    }

    /// Returns why the last question has no answer.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        match &self.current {
            Some((_, Stage::Failed(trouble))) => Some(trouble),
            Some((_, Stage::Stopped)) => Some("stopped"),
            _ => None,
        }
    }

    /// Returns the last answer, even if another question was asked since.
    #[must_use]
    pub fn answer(&self) -> Option<&A> {
        self.answer.as_ref().map(|(_, answer)| answer)
    }

    /// Returns the question of the last answer.
    #[must_use]
    pub fn question(&self) -> Option<&Q> {
        self.answer.as_ref().map(|(question, _)| question)
    }

    /// Whether the last answer is for the last question.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        matches!(&self.current, Some((_, Stage::Answered)))
    }

    /// Whether `order` is running for this query.
    pub(in crate::tui) fn awaits(&self, order: u64) -> bool {
        matches!(&self.current, Some((_, Stage::Running { serial, .. })) if *serial == order)
    }

    pub(in crate::tui) fn store_answer(&mut self, serial: u64, answer: A) -> bool {
        let awaited = self.awaits(serial);
        if let Some((question, stage)) = self.current.as_mut().filter(|_| awaited) {
            self.answer = Some((question.clone(), answer));
            *stage = Stage::Answered;
        }
        awaited
    }

    pub(in crate::tui) fn failed(&mut self, order: u64, trouble: &str) -> bool {
        let awaited = self.awaits(order);
        if let Some((_, stage)) = self.current.as_mut().filter(|_| awaited) {
            *stage = Stage::Failed(trouble.to_owned());
        }
        awaited
    }

    pub(in crate::tui) fn progressed(&mut self, order: u64, now: Progress) {
        if let Some((_, Stage::Running { serial, progress })) = &mut self.current
            && *serial == order
        {
            *progress = now;
        }
    }
}
