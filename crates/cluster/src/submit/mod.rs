//! Submits launch files to Slurm, to Kubernetes, or on this machine, and records the submitted scenario and its
//! prediction.

mod local;
mod pending;
mod record;

use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use atlas_detect::runner::{Command, Runner};
use serde::{Deserialize, Serialize};

pub use local::start;
pub use pending::{LookupResult, Pending};
pub use record::{Prediction, Run, Submission, now};

use crate::launch::Wrap;

/// Timeout of the scheduler's commands. A busy controller answers slowly.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// What to submit, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Where the job runs.
    pub wrap: Wrap,
    /// Directory of the files.
    pub folder: PathBuf,
    /// The file to submit.
    pub file: String,
    /// Number of runs, which are performed one after the other.
    pub runs: u32,
    /// Tag of the jobs, by which they can be found again.
    pub tag: String,
}

/// Why a job cannot be submitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The path is not valid Unicode, so that it cannot be passed to a command.
    #[error("{0}: the path is not valid Unicode and cannot be passed to a command")]
    Path(PathBuf),
    /// Several runs of a manifest would run concurrently.
    #[error("Kubernetes would start all {0} runs at the same time; submit them one by one")]
    Runs(u32),
}

impl Plan {
    /// The command that submits run `index`, counted from 1. The run waits for the job `before`.
    ///
    /// # Errors
    /// If a path is not valid Unicode, or several runs would run concurrently.
    pub fn command(&self, index: u32, before: Option<&str>) -> Result<Command, SubmitError> {
        let folder = self.folder.to_str().ok_or_else(|| SubmitError::Path(self.folder.clone()))?;
        let path = self.folder.join(&self.file);
        let path = path.to_str().ok_or_else(|| SubmitError::Path(path.clone()))?;
        let command = match self.wrap {
            Wrap::Slurm => {
                let comment = format!("--comment={}:{index}", self.tag);
                let mut arguments = vec!["--parsable".to_owned(), format!("--chdir={folder}"), comment];
                arguments.extend(before.map(|job| format!("--dependency=afterany:{job}")));
                arguments.push(path.to_owned());
                Command { arguments, ..Command::new("sbatch", &[]) }
            }
            Wrap::Kubernetes if self.runs > 1 => return Err(SubmitError::Runs(self.runs)),
            Wrap::Kubernetes => Command::new("kubectl", &["apply", "--filename", path]),
            Wrap::Plain => Command::new("bash", &[path]),
        };
        Ok(command.with_timeout(TIMEOUT))
    }

    /// The commands as lines for a shell.
    ///
    /// # Errors
    /// Errors of [`Plan::command`].
    pub fn shown(&self) -> Result<Vec<String>, SubmitError> {
        let before = |index| (index > 1).then_some("ID_OF_PREVIOUS_RUN");
        (1..=self.runs).map(|index| Ok(self.command(index, before(index))?.shell_line())).collect()
    }

    /// Submits all runs to a scheduler. Stops at the first run that is rejected, since the following ones depend on it.
    ///
    /// # Errors
    /// Errors of [`Plan::command`].
    pub fn submit(&self, runner: &dyn Runner) -> Result<Vec<Run>, SubmitError> {
        let mut runs: Vec<Run> = Vec::new();
        for index in 1..=self.runs {
            let before = runs.last().and_then(|run| run.job.clone());
            let command = self.command(index, before.as_deref())?;
            let (job, problem) = match runner.run(&command) {
                Err(problem) => (None, Some(problem.to_string())),
                Ok(output) => match (output.unreliability(), job_of(self.wrap, &output.stdout)) {
                    (Some(problem), _) => (None, Some(problem)),
                    (None, None) => (None, Some(format!("no job id in the output: {}", output.stdout.trim()))),
                    (None, Some(job)) => (Some(job), None),
                },
            };
            let failed = problem.is_some();
            runs.push(Run { index, command: command.shell_line(), job, problem });
            if failed {
                break;
            }
        }
        Ok(runs)
    }
}

/// Parses the job from the scheduler's output: `1234` or `1234;cluster` of `sbatch --parsable`, or `job.batch/name
/// created`.
fn job_of(wrap: Wrap, answer: &str) -> Option<String> {
    let lines = answer.lines().map(str::trim).filter(|line| !line.is_empty());
    match wrap {
        Wrap::Slurm => {
            let mut lines = lines;
            let last = lines.next_back()?.split(';').next()?.to_owned();
            last.chars().all(|c| c.is_ascii_digit()).then_some(last)
        }
        Wrap::Kubernetes => {
            let objects: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
            let job = |object: &&&str| {
                ["job.batch/", "deployment.apps/", "leaderworkerset", "dynamographdeployment"]
                    .iter()
                    .any(|kind| object.starts_with(kind))
            };
            objects.iter().find(job).or(objects.first()).map(|object| (*object).to_owned())
        }
        Wrap::Plain => None,
    }
}

/// The program that submits jobs, so that callers can check that it is installed before anything is written.
#[must_use]
pub fn program(wrap: Wrap) -> &'static str {
    match wrap {
        Wrap::Plain => "bash",
        Wrap::Slurm => "sbatch",
        Wrap::Kubernetes => "kubectl",
    }
}

/// Creates a new tag for the jobs of a submission.
#[must_use]
pub fn tag() -> String {
    format!("atlas-{:016x}", std::hash::RandomState::new().build_hasher().finish())
}

/// Directory of the records of submissions, in the user's state directory.
#[must_use]
pub fn folder(state: &Path) -> PathBuf {
    state.join("submissions")
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_detect::runner::{Output, RunError};
    use std::sync::Mutex;

    /// A runner that returns the given answers in turn and records the commands.
    struct Answers(Mutex<Vec<(String, i32)>>, Mutex<Vec<String>>);

    impl Runner for Answers {
        fn run(&self, command: &Command) -> Result<Output, RunError> {
            self.1.lock().unwrap().push(command.line());
            let (stdout, status) = self.0.lock().unwrap().remove(0);
            Ok(Output { stdout, stderr: "sbatch: error: refused".to_owned(), status: Some(status), truncated: false })
        }
    }

    fn plan(wrap: Wrap, runs: u32) -> Plan {
        Plan { wrap, folder: "/home/a b".into(), file: "job.sbatch".to_owned(), runs, tag: "atlas-1f".to_owned() }
    }

    #[test]
    fn each_submitted_run_depends_on_the_previous_one() {
        let answers = Answers(Mutex::new(vec![("11\n".into(), 0), ("12;cluster\n".into(), 0)]), Mutex::default());
        let runs = plan(Wrap::Slurm, 2).submit(&answers).unwrap();
        let jobs: Vec<_> = runs.iter().map(|run| run.job.clone().unwrap()).collect();
        assert_eq!(jobs, ["11", "12"]);
        let commands = answers.1.lock().unwrap();
        assert_eq!(commands[0], "sbatch --parsable --chdir=/home/a b --comment=atlas-1f:1 /home/a b/job.sbatch");
        assert!(commands[1].contains("--comment=atlas-1f:2 --dependency=afterany:11"), "{}", commands[1]);
    }

    #[test]
    fn refused_submission_is_recorded_and_stops_the_remaining_runs() {
        let answers = Answers(Mutex::new(vec![(String::new(), 1), ("12\n".into(), 0)]), Mutex::default());
        let runs = plan(Wrap::Slurm, 2).submit(&answers).unwrap();
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].problem.as_deref(), Some("exit status 1: sbatch: error: refused"));
    }

    #[test]
    fn job_name_is_parsed_from_kubectl_output() {
        let answer = "configmap/x created\nservice/x created\njob.batch/x created\n";
        assert_eq!(job_of(Wrap::Kubernetes, answer).as_deref(), Some("job.batch/x"));
        assert_eq!(plan(Wrap::Kubernetes, 3).shown(), Err(SubmitError::Runs(3)));
    }

    #[test]
    fn displayed_submit_command_is_quoted_for_the_shell() {
        let shown = plan(Wrap::Slurm, 1).shown().unwrap();
        assert_eq!(shown, ["sbatch --parsable '--chdir=/home/a b' --comment=atlas-1f:1 '/home/a b/job.sbatch'"]);
    }
}
