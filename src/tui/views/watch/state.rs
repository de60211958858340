//! State of the view of a running job.

use crate::tui::work::query::Query;
use atlas_cluster::watch::job;
use atlas_cluster::watch::{Event, Feed, Position, Prediction, WatchState};
use atlas_detect::runner::System;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

/// Timeout of the query to Slurm for the log of a job.
pub(in crate::tui) const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Log files of one job, or the id of a Slurm job.
    pub logs: Vec<String>,
    /// State of the job, keyed by the generation of the scenario and the number of the read.
    pub seen: Query<(u64, u64), Arc<WatchReading>>,
    pub(in crate::tui) look: u64,
    pub(in crate::tui) live: Option<(u64, Arc<Live>)>,
}

/// State of a job according to its logs.
#[derive(Debug, Clone, Default)]
pub struct WatchReading {
    /// Log files.
    pub files: Vec<PathBuf>,
    /// State of the run.
    pub state: WatchState,
    /// Latest changes.
    pub events: Vec<Change>,
}

/// A change of a watched run.
#[derive(Debug, Clone)]
pub struct Change {
    /// Verdict, if the change reports nothing else.
    pub verdict: Option<Position>,
    /// Description of the change.
    pub text: String,
}

impl Change {
    pub(in crate::tui) fn of(event: &Event, state: &WatchState) -> Change {
        Change { verdict: event.verdict(state), text: event.text(state) }
    }
}

/// The logs being followed, shared with the worker that reads them.
pub(in crate::tui) struct Live {
    pub(in crate::tui) names: Vec<String>,
    pub(in crate::tui) prediction: Option<Prediction>,
    pub(in crate::tui) began: Instant,
    pub(in crate::tui) reading: Mutex<Option<Reading>>,
}

pub(in crate::tui) struct Reading {
    pub(in crate::tui) files: Vec<PathBuf>,
    pub(in crate::tui) feeds: Vec<Feed>,
    pub(in crate::tui) state: WatchState,
    pub(in crate::tui) events: Vec<Change>,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Live {
    /// Finds the log files. A log that does not exist yet is waited for.
    pub(in crate::tui) fn begin(&self) -> Result<Reading, String> {
        let files = match self.names.as_slice() {
            [one] if job::is_id(one) && !std::path::Path::new(one).exists() => {
                job::query(&System, one, QUERY_TIMEOUT).map_err(|error| error.to_string())?.logs
            }
            names => names.iter().map(PathBuf::from).collect(),
        };
        if files.is_empty() {
            return Err("Slurm reports no output file for this job; watch its log file by path instead".to_owned());
        }
        let feeds = files.iter().map(|path| Feed::of(path)).collect();
        let names = files.iter().map(|path| path.display().to_string());
        let state = WatchState::new(self.prediction.clone(), names);
        Ok(Reading { files, feeds, state, events: Vec::new() })
    }
}
