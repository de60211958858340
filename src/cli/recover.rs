//! Recovery of interrupted submissions: finds their jobs by tag and records them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use atlas_cluster::history::{Origin, Store};
use atlas_cluster::submit::{self, LookupResult, Pending, Run};
use atlas_detect::runner::System;
use color_eyre::eyre::eyre;

use super::output::write_stderr;
use super::save::write_error;
use atlas_document::sources::state_dir;

/// Age below which a submission without jobs may still be in progress.
const MIN_RECOVERY_AGE: Duration = submit::TIMEOUT;

/// Records the jobs of submissions that were killed after the scheduler accepted them and before they were recorded.
/// Queries the scheduler only if there is a pending submission.
pub(super) fn recover() {
    let Some(folder) = state_dir().map(|state| submit::folder(&state)) else { return };
    let host = Origin::of_process(env!("CARGO_PKG_VERSION")).host;
    let now = jiff::Timestamp::now();
    for (path, pending) in Pending::all(&folder) {
        if pending.is_in_progress(host.as_deref(), now) {
            continue;
        }
        let name = format!("submission {} of {}", pending.record.name, pending.record.ts);
        match pending.lookup(&System) {
            LookupResult::Unknown(problem) => {
                write_stderr(&format!("{name} was interrupted; its jobs cannot be queried: {problem}"))
            }
            // The submission command may still be running after this program was killed.
            LookupResult::Nothing if pending.age(now) < MIN_RECOVERY_AGE => {
                write_stderr(&format!("{name} was interrupted a moment ago; its jobs will be looked up next time"));
            }
            LookupResult::Nothing => {
                write_stderr(&format!(
                    "{name} was interrupted and no job was found: it was not accepted, or ended long ago"
                ));
                // A record without runs, so that the files of the submission can be found.
                finish(pending, Vec::new(), &path);
            }
            LookupResult::Jobs(runs) => {
                let jobs: Vec<&str> = runs.iter().filter_map(|run| run.job.as_deref()).collect();
                write_stderr(&format!("{name} was interrupted; found {}", jobs.join(" ")));
                finish(pending, runs, &path);
            }
        }
    }
}

fn finish(pending: Pending, runs: Vec<Run>, path: &Path) {
    if let Err(problem) = record(pending, runs, path) {
        write_stderr(&format!("warning: not recorded: {problem}"));
    }
}

/// Writes the record and the history entry, and removes the pending file. Idempotent.
pub(super) fn record(pending: Pending, runs: Vec<Run>, begun: &Path) -> color_eyre::Result<PathBuf> {
    let (record, entry) = pending.into_submission(runs);
    let folder = begun.parent().ok_or_else(|| eyre!("{}: has no directory", begun.display()))?;
    let path = record.write(folder).map_err(|error| write_error(folder, &error))?;
    if let (Some(store), Some(entry)) = (Store::of_user(), entry) {
        store.write(&entry)?;
    }
    std::fs::remove_file(begun).map_err(|error| write_error(begun, &error))?;
    Ok(path)
}
