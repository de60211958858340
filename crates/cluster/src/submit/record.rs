//! Records of submissions.

use std::io;
use std::path::{Path, PathBuf};

use atlas_document::files::write_new;
use atlas_document::sources::read_text;
use atlas_plan::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// The predicted metrics with which a run is compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Tokens per second of all accelerators.
    pub tokens_per_sec: f64,
    /// Lower bound of the 90 % interval, if the engine provides one.
    pub low: Option<f64>,
    /// Upper bound of the interval.
    pub high: Option<f64>,
    /// Time per optimizer step, ms; 0 for serving, as in existing files.
    pub step_time_ms: f64,
}

impl Prediction {
    /// The metrics of an estimate.
    #[must_use]
    pub fn of(estimate: &Estimate) -> Prediction {
        let rate = estimate.total.tokens_per_sec;
        let bounds = estimate.detail.map(|detail| detail.throughput_interval.around(rate));
        Prediction {
            tokens_per_sec: rate,
            low: bounds.map(|(low, _)| low),
            high: bounds.map(|(_, high)| high),
            step_time_ms: estimate.total.step_time_ms.unwrap_or(0.0),
        }
    }
}

/// One run of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Index, from 1.
    pub index: u32,
    /// The submitting command, as a line for a shell.
    pub command: String,
    /// Job id of the scheduler, or the process id on this machine.
    pub job: Option<String>,
    /// Why it was rejected.
    pub problem: Option<String>,
}

/// A submission, with its plan and prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// Time of the submission, RFC 3339 in UTC.
    pub ts: String,
    /// Name of the job.
    pub name: String,
    /// Tag of its jobs.
    pub tag: String,
    /// The tool.
    pub tool: String,
    /// `plain`, `slurm` or `kubernetes`.
    pub place: String,
    /// Name of the target.
    pub target: String,
    /// Name of the workload.
    pub workload: String,
    /// The effective software, with its release.
    pub software: String,
    /// Knobs that differ from the files, in the format of `--set`.
    pub set: Vec<String>,
    /// The prediction.
    pub predicted: Prediction,
    /// The submitted files.
    pub files: Vec<PathBuf>,
    /// The runs.
    pub runs: Vec<Run>,
}

impl Submission {
    /// Writes the record to a new file, whose name contains the tag.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        let text = format!("{:#}\n", serde_json::to_value(self).map_err(io::Error::other)?);
        let time: String = self.ts.chars().filter(char::is_ascii_digit).take(14).collect();
        let path = folder.join(format!("{time}-{}-{}.json", self.name, self.tag));
        match write_new(&path, &text) {
            Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists && same(&path, &text) => Ok(path),
            written => written.map(|()| path),
        }
    }
}

/// Whether the file contains exactly this text.
fn same(path: &Path, text: &str) -> bool {
    read_text(path).is_ok_and(|there| there == text)
}

/// The current time, RFC 3339 in UTC.
#[must_use]
pub fn now() -> String {
    jiff::Timestamp::now().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_the_same_second_do_not_overwrite_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let submission = Submission {
            ts: "2026-11-22T20:00:00.5Z".to_owned(),
            name: "job".to_owned(),
            tag: "atlas-1f".to_owned(),
            tool: "vllm".to_owned(),
            place: "slurm".to_owned(),
            target: "t".to_owned(),
            workload: "w".to_owned(),
            software: "vllm@0.11.0".to_owned(),
            set: vec!["tp=2".to_owned()],
            predicted: Prediction { tokens_per_sec: 10.0, low: None, high: None, step_time_ms: 0.0 },
            files: Vec::new(),
            runs: vec![Run { index: 1, command: "sbatch x".to_owned(), job: Some("7".to_owned()), problem: None }],
        };
        let first = submission.write(folder.path()).unwrap();
        assert_eq!(submission.write(folder.path()).unwrap(), first, "the same record again is no second one");
        let other = Submission { tag: "atlas-2e".to_owned(), ..submission.clone() };
        assert_ne!(other.write(folder.path()).unwrap(), first);
        assert!(Submission { runs: Vec::new(), ..submission }.write(folder.path()).is_err());
        let read: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(first).unwrap()).unwrap();
        assert_eq!(read["runs"][0]["job"], "7");
        assert_eq!(read["predicted"]["tokens_per_sec"], 10.0);
    }
}
