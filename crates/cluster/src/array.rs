//! Work that is split into parts and computed by a Slurm job array.
//!
//! Each task writes one part atomically, so that a task may be run twice, requeued or killed. The array is found again
//! by its name, which is derived from the work, so that no other state has to be stored.

use std::path::PathBuf;
use std::time::Duration;

use atlas_detect::runner::{Command, Output, RunError, Runner};
use atlas_detect::text::shell_word;
use atlas_document::files;

/// Timeout of Slurm commands.
const SLURM_TIMEOUT: Duration = Duration::from_secs(60);

/// A job array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// Job name in the queue, unique to this work.
    pub name: String,
    /// Directory of the parts, the logs and the script.
    pub folder: PathBuf,
    /// The command that each task runs; `--part` and `--out` are appended.
    pub command: Vec<String>,
    /// Text that is appended to the part number in `--part`.
    pub part: String,
    /// File extension of the parts.
    pub ending: String,
    /// Further options of `sbatch`.
    pub options: Vec<String>,
}

/// Why a Slurm operation failed.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    /// A command could not be run.
    #[error("{0}")]
    Run(#[from] RunError),
    /// A command failed.
    #[error("{command}: {reason}")]
    Refused {
        /// The command.
        command: String,
        /// Its error message.
        reason: String,
    },
    /// The script could not be written.
    #[error("{}: {source}", path.display())]
    Script {
        /// Path of the script.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

impl Array {
    /// The batch script that is passed to `sbatch`.
    #[must_use]
    pub fn script(&self) -> String {
        let folder = self.folder.display().to_string();
        let command: Vec<String> = self.command.iter().map(|word| shell_word(word)).collect();
        // In log file names `%` begins a pattern, and quotes and backslashes must be escaped.
        let log = folder.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
        format!(
            "#!/bin/bash\n#SBATCH --job-name={}\n#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH \
             --output=\"{log}/part-%a.log\"\nexec {} --part \"$SLURM_ARRAY_TASK_ID{}\" --out {}/part-\"$SLURM_ARRAY_TASK_ID\".{}\n",
            self.name,
            command.join(" "),
            self.part,
            shell_word(&folder),
            shell_word(&self.ending),
        )
    }

    /// Path of the batch script.
    #[must_use]
    pub fn script_path(&self) -> PathBuf {
        self.folder.join("job.sh")
    }

    /// The command that submits the tasks of these parts.
    #[must_use]
    pub fn submission(&self, parts: &[u64]) -> Command {
        let (array, script) = (format!("--array={}", indices(parts)), self.script_path().display().to_string());
        let options = self.options.iter().map(String::as_str);
        let words: Vec<&str> = ["--parsable", &array].into_iter().chain(options).chain([script.as_str()]).collect();
        Command::new("sbatch", &words).with_timeout(SLURM_TIMEOUT)
    }

    /// Submits the tasks of these parts and returns the job number.
    ///
    /// # Errors
    /// If the script cannot be written, or `sbatch` fails.
    pub fn submit(&self, runner: &dyn Runner, parts: &[u64]) -> Result<String, ArrayError> {
        let path = self.script_path();
        files::write(&path, self.script()).map_err(|source| ArrayError::Script { path, source })?;
        let output = run_checked(runner, &self.submission(parts))?;
        Ok(output.stdout.trim().split(';').next().unwrap_or_default().to_owned())
    }

    /// Number of tasks that are pending or running.
    ///
    /// # Errors
    /// If `squeue` fails.
    pub fn active(&self, runner: &dyn Runner) -> Result<usize, ArrayError> {
        let name = format!("--name={}", self.name);
        let output =
            run_checked(runner, &Command::new("squeue", &["-h", "-r", &name, "-o", "%T"]).with_timeout(SLURM_TIMEOUT))?;
        Ok(output.stdout.lines().filter(|line| !line.trim().is_empty()).count())
    }

    /// Cancels all tasks that are pending or running.
    ///
    /// # Errors
    /// If `scancel` fails.
    pub fn cancel(&self, runner: &dyn Runner) -> Result<(), ArrayError> {
        let name = format!("--name={}", self.name);
        run_checked(runner, &Command::new("scancel", &[&name]).with_timeout(SLURM_TIMEOUT)).map(|_| ())
    }
}

/// Runs a command and returns its output, or an error if it failed.
fn run_checked(runner: &dyn Runner, command: &Command) -> Result<Output, ArrayError> {
    let output = runner.run(command)?;
    match output.unreliability() {
        None => Ok(output),
        Some(reason) => Err(ArrayError::Refused { command: command.shell_line(), reason }),
    }
}

/// Formats ascending numbers for `sbatch --array`: `0-3,7`.
#[must_use]
pub fn indices(parts: &[u64]) -> String {
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for part in parts {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == *part => *last = *part,
            _ => ranges.push([*part, *part]),
        }
    }
    let range = |[from, to]: &[u64; 2]| if from == to { from.to_string() } else { format!("{from}-{to}") };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_script_quotes_paths_and_arguments_for_the_shell() {
        let array = Array {
            name: "atlas-1".to_owned(),
            folder: PathBuf::from("/data/a b;rm/50%.parts"),
            command: ["/opt/atlas", "sweep", "--where", "tpot<=50"].map(str::to_owned).to_vec(),
            part: "/4@00ff".to_owned(),
            ending: "csv".to_owned(),
            options: vec!["--partition=cpu".to_owned()],
        };
        let script = array.script();
        assert!(
            script.contains("exec /opt/atlas sweep --where 'tpot<=50' --part \"$SLURM_ARRAY_TASK_ID/4@00ff\""),
            "{script}"
        );
        assert!(script.contains("--out '/data/a b;rm/50%.parts'/part-\"$SLURM_ARRAY_TASK_ID\".csv"), "{script}");
        assert!(script.contains("#SBATCH --output=\"/data/a b;rm/50%%.parts/part-%a.log\"\n"), "{script}");
        let line = array.submission(&[0, 1, 2, 5]).shell_line();
        assert_eq!(line, "sbatch --parsable --array=0-2,5 --partition=cpu '/data/a b;rm/50%.parts/job.sh'");
    }
}
