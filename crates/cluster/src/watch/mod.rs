//! Compares running jobs with their prediction. Logs are followed as they grow, every step is compared with the
//! predicted time and its interval, and a run that leaves the interval gets a diagnosis.
//!
//! [`Feed`] reads a file with [`Tail`], which handles rotation and truncation, and parses it into observations with
//! [`atlas_ingest::Follow`],
//! [`WatchState`] contains the state that a view displays, and [`diagnose`] weighs causes.

mod alarm;
pub mod cause;
pub mod devices;
pub mod diagnose;
pub mod event;
mod feed;
pub mod job;
pub mod prediction;
mod report;
pub mod serving;
pub mod shift;
pub mod standing;
pub mod state;
pub mod tail;
pub mod timers;
pub mod track;

pub use alarm::AlarmCommand;
pub use cause::{Cause, Diagnosis, PossibleCause};
pub use event::Event;
pub use feed::Feed;
pub use job::{Job, JobError, JobState};
pub use prediction::{Prediction, Quantity};
pub use standing::Position;
pub use state::{Progress, Source, WatchState};
pub use tail::{PollResult, Tail};
pub use track::{Point, Track};
