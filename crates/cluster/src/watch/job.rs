//! Slurm jobs: their log files, and whether they are still running.

use std::path::PathBuf;
use std::time::Duration;

use atlas_detect::runner::{Command, RunError, Runner};

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Waiting to start.
    Pending,
    /// Running, or about to be restarted.
    Running,
    /// Completed successfully.
    Completed,
    /// Ended in any other way.
    Failed,
}

/// A Slurm job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Job id.
    pub id: String,
    /// State.
    pub state: JobState,
    /// State as reported by Slurm.
    pub reported: String,
    /// Log files, standard output first.
    pub logs: Vec<PathBuf>,
}

/// Why the state of a job is unknown.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The command could not be run.
    #[error("job {id}: {source}")]
    Run {
        /// Job id.
        id: String,
        /// The error.
        source: RunError,
    },
    /// Slurm does not know the job, or no longer.
    #[error("job {id}: scontrol: {reason}; pass its log file instead")]
    Unknown {
        /// Job id.
        id: String,
        /// Slurm's message.
        reason: String,
    },
}

/// Whether a text is a job id: `1234`, `1234_7`.
#[must_use]
pub fn is_id(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('_') {
        Some((job, task)) => digits(job) && digits(task),
        None => digits(text),
    }
}

/// Queries Slurm for a job.
///
/// # Errors
/// If `scontrol` is not installed, does not answer in time, or does not know the job.
pub fn query(runner: &dyn Runner, id: &str, timeout: Duration) -> Result<Job, JobError> {
    let command = Command::new("scontrol", &["show", "job", "-o", id]).with_timeout(timeout);
    let output = runner.run(&command).map_err(|source| JobError::Run { id: id.to_owned(), source })?;
    let unknown = |reason: String| JobError::Unknown { id: id.to_owned(), reason };
    if let Some(complaint) = output.unreliability() {
        return Err(unknown(complaint));
    }
    read(id, &output.stdout).ok_or_else(|| unknown("the output contains no JobState".to_owned()))
}

/// Parses the output, which has one line per job or array task.
fn read(id: &str, text: &str) -> Option<Job> {
    let line = text.lines().find(|line| line.contains("JobState="))?;
    let field = |name: &str| {
        let key = format!(" {name}=");
        let from = line.find(&key)? + key.len();
        let rest = line.get(from..)?;
        // Paths may contain spaces, so that a value ends where the next name begins.
        let next = rest.match_indices(' ').find(|(at, _)| {
            let word = rest.get(at + 1..).unwrap_or_default();
            let name = word.split(['=', ' ']).next().unwrap_or_default();
            word.get(name.len()..).is_some_and(|behind| behind.starts_with('='))
                && name.starts_with(|c: char| c.is_ascii_uppercase())
        });
        let end = next.map_or(rest.trim_end().len(), |(at, _)| at);
        rest.get(..end).map(str::trim).filter(|value| !value.is_empty() && *value != "(null)")
    };
    let reported = field("JobState")?;
    let state = match reported.split(['+', ' ', ',']).next().unwrap_or_default() {
        "PENDING" | "CONFIGURING" | "SUSPENDED" | "REQUEUED" | "REQUEUE_HOLD" | "SPECIAL_EXIT" | "STAGE_OUT" => {
            JobState::Pending
        }
        "RUNNING" | "COMPLETING" | "RESIZING" | "SIGNALING" | "STOPPED" => JobState::Running,
        "COMPLETED" => JobState::Completed,
        _ => JobState::Failed,
    };
    let expand = |path: &str| {
        let number = |name: &str| field(name).unwrap_or_default().to_owned();
        let (array, task, job) = (number("ArrayJobId"), number("ArrayTaskId"), number("JobId"));
        let name = number("JobName");
        let array = if array.is_empty() { job.clone() } else { array };
        let expanded = path.replace("%A", &array).replace("%a", &task).replace("%j", &job).replace("%x", &name);
        PathBuf::from(expanded)
    };
    let mut logs: Vec<PathBuf> = [field("StdOut"), field("StdErr")].into_iter().flatten().map(expand).collect();
    logs.dedup();
    logs.retain(|path| path.as_os_str() != "/dev/null");
    Some(Job { id: id.to_owned(), state, reported: reported.to_owned(), logs })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "JobId=12 ArrayJobId=11 ArrayTaskId=3 JobName=my train UserId=root(0) JobState=RUNNING \
        Reason=None Requeue=1 WorkDir=/home/a b StdErr=/home/a b/slurm-%A_%a.err StdIn=/dev/null \
        StdOut=/home/a b/slurm-%A_%a.out Power= \n";

    #[test]
    fn job_state_and_log_paths_are_parsed_with_spaces_and_patterns() {
        let job = read("12", SHOWN).unwrap();
        assert_eq!(job.state, JobState::Running);
        assert_eq!(job.logs, ["/home/a b/slurm-11_3.out", "/home/a b/slurm-11_3.err"].map(PathBuf::from));
        for (word, state) in [
            ("PENDING", JobState::Pending),
            ("COMPLETED", JobState::Completed),
            ("NODE_FAIL", JobState::Failed),
            ("TIMEOUT", JobState::Failed),
        ] {
            assert_eq!(read("12", &SHOWN.replace("RUNNING", word)).unwrap().state, state);
        }
        assert_eq!(read("12", "slurm_load_jobs error: Invalid job id specified"), None);
    }

    #[test]
    fn job_ids_are_distinguished_from_file_names() {
        assert!(["1", "1234_7"].into_iter().all(is_id));
        assert!(!["", "a", "1.log", "_1", "1_", "12345678901234"].into_iter().any(is_id));
    }
}
