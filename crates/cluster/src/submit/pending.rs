//! Pending submissions. They are written before the scheduler is called, so that the job can be found again if the
//! process is killed between the scheduler's answer and the record.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use atlas_core::sort;
use atlas_detect::runner::{Command, Runner};
use atlas_document::files::write_new;
use atlas_document::sources::read_text;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Plan, Run, Submission, TIMEOUT, job_of};
use crate::history::{Entry, JOBS};
use crate::launch::Wrap;

/// Prefix of the file names.
const PREFIX: &str = "pending-";

/// Age from which a submission by another machine counts as interrupted, since its process cannot be observed.
const STALE: Duration = Duration::from_secs(15 * 60);

/// A submission in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    /// Tag of its jobs, such as `atlas-1f2e3d4c`.
    pub tag: String,
    /// Id of the submitting process.
    pub process: u32,
    /// Host name of the process's machine.
    pub host: Option<String>,
    /// The record, without runs.
    pub record: Submission,
    /// The entry of the history, without jobs. `None` if no history is kept.
    pub entry: Option<Entry>,
    /// The plan whose files were written.
    pub plan: Plan,
}

/// Result of looking up an interrupted submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupResult {
    /// Jobs of the scheduler with the tag.
    Jobs(Vec<Run>),
    /// The scheduler has no such jobs: nothing was submitted, or the jobs ended long ago.
    Nothing,
    /// The scheduler cannot be queried, with the reason.
    Unknown(String),
}

impl Pending {
    /// Writes the file. There is only one file per tag.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        let path = folder.join(format!("{PREFIX}{}.json", self.tag));
        write_new(&path, format!("{:#}\n", serde_json::to_value(self).map_err(io::Error::other)?))?;
        Ok(path)
    }

    /// Submissions in a directory that were started and not recorded. Files that cannot be read are ignored.
    #[must_use]
    pub fn all(folder: &Path) -> Vec<(PathBuf, Pending)> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let named = |path: &PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
        };
        let mut found: Vec<(PathBuf, Pending)> = entries
            .filter(named)
            .filter_map(|path| {
                let text = read_text(&path).ok()?;
                Some((path, serde_json::from_str(&text).ok()?))
            })
            .collect();
        sort::by(&mut found, |a, b| a.1.record.ts.cmp(&b.1.record.ts));
        found
    }

    /// Whether the submitting process may still be running, so that the submission must not be touched.
    #[must_use]
    pub fn is_in_progress(&self, host: Option<&str>, now: Timestamp) -> bool {
        let processes = Path::new("/proc/self");
        if self.host.is_some() && self.host.as_deref() == host && processes.exists() {
            return self.process != std::process::id() && Path::new("/proc").join(self.process.to_string()).exists();
        }
        self.age(now) < STALE
    }

    /// Time since the start; `Duration::MAX` if the timestamp cannot be parsed.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> Duration {
        let begun = self.record.ts.parse::<Timestamp>();
        begun.map_or(Duration::MAX, |begun| now.duration_since(begun).unsigned_abs())
    }

    /// Queries the scheduler for the jobs of the submission.
    #[must_use]
    pub fn lookup(&self, runner: &dyn Runner) -> LookupResult {
        match self.plan.wrap {
            Wrap::Slurm => self.jobs_of_slurm(runner),
            Wrap::Kubernetes => {
                let path = self.plan.folder.join(&self.plan.file).display().to_string();
                let command =
                    Command::new("kubectl", &["get", "--filename", &path, "--ignore-not-found", "--output", "name"]);
                match answer(runner, command) {
                    Err(problem) => LookupResult::Unknown(problem),
                    Ok(text) => lookup_result(job_of(Wrap::Kubernetes, &text).map(|job| (1, job)), &self.tag),
                }
            }
            // The process has no tag; its output is in the directory of the script.
            Wrap::Plain => LookupResult::Nothing,
        }
    }

    fn jobs_of_slurm(&self, runner: &dyn Runner) -> LookupResult {
        let queue = Command::new("squeue", &["--me", "--noheader", "--states=all", "--format=%i|%k"]);
        let queued = answer(runner, queue);
        // The accounting also lists jobs that are no longer in the queue, and their comments if the cluster stores
        // them.
        let since = self.record.ts.get(..19).unwrap_or_default();
        let since = format!("--starttime={since}");
        let past =
            Command::new("sacct", &["--noheader", "--parsable2", "--allocations", "--format=JobID,Comment", &since]);
        let past = answer(runner, past);
        let lines = [&queued, &past].into_iter().flatten().flat_map(|text| text.lines());
        let mut jobs: Vec<(u32, String)> = lines
            .filter_map(|line| {
                let (job, comment) = line.trim().split_once('|')?;
                let index = comment.trim().strip_prefix(&self.tag)?.strip_prefix(':')?.parse().ok()?;
                Some((index, job.to_owned()))
            })
            .collect();
        sort::ascending(&mut jobs);
        jobs.dedup();
        match (queued, jobs.is_empty()) {
            (Err(problem), true) => LookupResult::Unknown(problem),
            _ => lookup_result(jobs, &self.tag),
        }
    }

    /// Completes the record and the entry with the submitted runs.
    #[must_use]
    pub fn into_submission(self, runs: Vec<Run>) -> (Submission, Option<Entry>) {
        let record = Submission { runs, ..self.record };
        let jobs: Vec<&str> = record.runs.iter().filter_map(|run| run.job.as_deref()).collect();
        let entry = self.entry.map(|mut entry| {
            entry.inputs.insert(JOBS.to_owned(), jobs.join(" ").into());
            if let (Some(body), Ok(record)) = (entry.body.as_object_mut(), serde_json::to_value(&record)) {
                body.insert("submission".to_owned(), record);
            }
            entry
        });
        (record, entry)
    }
}

/// Converts the jobs that were found to runs.
fn lookup_result(jobs: impl IntoIterator<Item = (u32, String)>, tag: &str) -> LookupResult {
    let runs: Vec<Run> = jobs
        .into_iter()
        .map(|(index, job)| Run { index, command: format!("found by tag {tag}"), job: Some(job), problem: None })
        .collect();
    if runs.is_empty() { LookupResult::Nothing } else { LookupResult::Jobs(runs) }
}

fn answer(runner: &dyn Runner, command: Command) -> Result<String, String> {
    let output = runner.run(&command.with_timeout(TIMEOUT)).map_err(|problem| problem.to_string())?;
    match output.unreliability() {
        Some(problem) => Err(problem),
        None => Ok(output.stdout),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

    use super::*;
    use crate::submit::Prediction;
    use atlas_detect::runner::{Output, RunError};

    /// A runner for a cluster that answers `squeue` and has no accounting.
    struct Queue(Result<&'static str, ()>);

    impl Runner for Queue {
        fn run(&self, command: &Command) -> Result<Output, RunError> {
            let answer = if command.program == "squeue" { self.0 } else { Err(()) };
            let (stdout, status) = answer.map_or((String::new(), 1), |text| (text.to_owned(), 0));
            Ok(Output { stdout, stderr: "no answer".to_owned(), status: Some(status), truncated: false })
        }
    }

    fn pending(wrap: Wrap) -> Pending {
        let predicted = Prediction { tokens_per_sec: 10.0, low: None, high: None, step_time_ms: 1.0 };
        let word = str::to_owned;
        let record = Submission {
            ts: word("2026-11-22T20:00:00.5Z"),
            name: word("job"),
            tag: word("atlas-1f"),
            tool: word("vllm"),
            place: word("slurm"),
            target: word("t"),
            workload: word("w"),
            software: word("vllm@0.11.0"),
            set: Vec::new(),
            predicted,
            files: Vec::new(),
            runs: Vec::new(),
        };
        let plan = Plan { wrap, folder: "/data".into(), file: word("job.sbatch"), runs: 2, tag: word("atlas-1f") };
        let host = Some(word("login"));
        Pending { tag: word("atlas-1f"), process: 1, host, record, entry: None, plan }
    }

    #[test]
    fn submitted_jobs_are_recovered_by_their_comment() {
        let queue = Queue(Ok("7|\n12|atlas-1f:2\n11|atlas-1f:1\n13|atlas-1ff:1\n14|other\n"));
        let LookupResult::Jobs(runs) = pending(Wrap::Slurm).lookup(&queue) else { panic!("no jobs") };
        let jobs: Vec<_> = runs.iter().map(|run| (run.index, run.job.clone().unwrap())).collect();
        assert_eq!(jobs, [(1, "11".to_owned()), (2, "12".to_owned())]);
        assert_eq!(pending(Wrap::Slurm).lookup(&Queue(Ok("7|\n"))), LookupResult::Nothing);
        assert!(matches!(pending(Wrap::Slurm).lookup(&Queue(Err(()))), LookupResult::Unknown(_)));
    }

    #[test]
    fn submission_is_active_until_timeout_or_process_exit() {
        let now: Timestamp = "2026-11-22T20:05:00Z".parse().unwrap();
        let later: Timestamp = "2026-11-22T21:00:00Z".parse().unwrap();
        let other = pending(Wrap::Slurm);
        assert!(other.is_in_progress(Some("elsewhere"), now), "another machine may be at work for a while");
        assert!(!other.is_in_progress(Some("elsewhere"), later));
        let dead = Pending { process: u32::MAX, ..pending(Wrap::Slurm) };
        assert!(!dead.is_in_progress(Some("login"), now) || !Path::new("/proc/self").exists());
    }

    #[test]
    fn pending_submission_round_trips_and_completes() {
        let folder = tempfile::tempdir().unwrap();
        let path = pending(Wrap::Slurm).write(folder.path()).unwrap();
        assert!(pending(Wrap::Slurm).write(folder.path()).is_err(), "a mark is used once");
        std::fs::write(folder.path().join("pending-damaged.json"), "{").unwrap();
        let all = Pending::all(folder.path());
        assert_eq!(all, [(path, pending(Wrap::Slurm))]);
        let runs = vec![Run { index: 1, command: String::new(), job: Some("11".to_owned()), problem: None }];
        let (record, _) = all[0].1.clone().into_submission(runs.clone());
        assert_eq!(record.runs, runs);
    }
}
