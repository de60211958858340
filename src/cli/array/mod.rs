//! Work as a Slurm job array: it is submitted, its parts are merged in order as they arrive, and failed tasks are
//! resubmitted.

mod part;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use atlas_cluster::array::{Array, indices};
use atlas_detect::runner::System;
use color_eyre::eyre::eyre;
use signal_hook::consts::{SIGINT, SIGTERM};

pub use self::part::{MAX_PARTS, Part, range};
use super::confirm;
use super::output::write_stderr;

/// Interval at which parts and signals are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between queries to Slurm.
const QUERY_INTERVAL: Duration = Duration::from_secs(10);
/// Interval between progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);

/// Options of work that can run as a job array.
#[derive(Debug, Clone, clap::Args)]
pub struct ArrayArgs {
    /// Compute as a Slurm job array; results are merged here as they arrive
    #[arg(long, requires = "out", help_heading = "Slurm")]
    pub slurm: bool,
    /// Number of array tasks
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=MAX_PARTS), requires = "slurm", conflicts_with = "part", help_heading = "Slurm")]
    pub tasks: u64,
    /// sbatch option, such as --partition=cpu; repeatable
    #[arg(
        long,
        value_name = "OPTION",
        allow_hyphen_values = true,
        requires = "slurm",
        conflicts_with = "part",
        help_heading = "Slurm"
    )]
    pub sbatch: Vec<String>,
    /// Number of times to resubmit failed tasks
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "slurm",
        conflicts_with = "part",
        help_heading = "Slurm"
    )]
    pub retries: u32,
    /// Submit without confirmation
    #[arg(long, requires = "slurm", conflicts_with = "part", help_heading = "Slurm")]
    pub yes: bool,
    /// Cancel the array submitted by the same command
    #[arg(long, requires = "slurm", conflicts_with = "part", help_heading = "Slurm")]
    pub cancel: bool,
    /// What one task of an array computes
    #[arg(long, value_name = "I/N@FINGERPRINT", hide = true, requires = "out", conflicts_with = "slurm")]
    pub part: Option<Part>,
}

/// Outcome of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeOutcome {
    /// All parts are merged.
    Whole,
    /// Stopped by the user; the array keeps running.
    Stopped,
}

/// Work divided into parts, and the files that belong to it.
#[derive(Debug)]
pub struct Work<'a> {
    args: &'a ArrayArgs,
    array: Array,
    parts: u64,
}

impl<'a> Work<'a> {
    /// Prepares work that writes `out`. `items` is the number of items that the parts divide. `dropped` names further
    /// options of this command, each with a value, that are not passed to the tasks.
    ///
    /// # Errors
    /// The program path or an argument cannot be put into a script.
    pub fn of(
        args: &'a ArrayArgs,
        out: &Path,
        work: u64,
        items: u64,
        ending: &str,
        dropped: &[&str],
    ) -> color_eyre::Result<Work<'a>> {
        let out = std::path::absolute(out)?;
        let parts = args.tasks.min(items.max(1));
        // The directory name identifies work and number of parts, so that parts of other work are never merged.
        let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = out.with_file_name(format!("{name}.{work:016x}-{parts}.parts"));
        let words = std::env::args_os().skip(1).map(|word| word.into_string());
        let words: Result<Vec<String>, _> = words.collect();
        let words = words.map_err(|word| eyre!("an argument is not UTF-8: {}", word.display()))?;
        let mut command = vec![std::env::current_exe()?.display().to_string()];
        command.extend(words_of_tasks(&words, dropped));
        let array = Array {
            name: format!("atlas-{work:016x}-{parts}"),
            folder,
            command,
            part: format!("/{parts}@{work:016x}"),
            ending: ending.to_owned(),
            options: args.sbatch.clone(),
        };
        Ok(Work { args, array, parts })
    }

    /// Number of parts.
    #[must_use]
    pub fn parts(&self) -> u64 {
        self.parts
    }

    /// Cancels pending and running tasks.
    ///
    /// # Errors
    /// Slurm cannot be queried.
    pub fn cancel(&self) -> color_eyre::Result<()> {
        self.array.cancel(&System)?;
        write_stderr(&format!("canceled; finished parts are kept in {}", self.array.folder.display()));
        Ok(())
    }

    fn file(&self, index: u64) -> PathBuf {
        self.array.folder.join(format!("part-{index}.{}", self.array.ending))
    }

    /// Removes all parts, so that they are computed again.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn forget(&self) -> std::io::Result<()> {
        (0..self.parts).try_for_each(|index| match std::fs::remove_file(self.file(index)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
    }

    /// Submits missing parts from `next` on, and passes the content of each part to `merge` in order. The text that
    /// `merge` returns is appended to the progress messages.
    ///
    /// # Errors
    /// Slurm reports an error, tasks fail more often than the allowed retries, a part cannot be read, or `merge` fails.
    pub fn run(
        &self,
        mut next: u64,
        mut merge: impl FnMut(u64, &[u8]) -> color_eyre::Result<String>,
    ) -> color_eyre::Result<MergeOutcome> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        let missing =
            |next: u64| -> Vec<u64> { (next..self.parts).filter(|index| !self.file(*index).exists()).collect() };
        let (mut tries, mut queried, mut described) = (0, None::<Instant>, Instant::now());
        let mut so_far = String::new();
        loop {
            while next < self.parts && self.file(next).exists() {
                let path = self.file(next);
                let lines = part::read(&path, part::MAX_BYTES)?;
                so_far = merge(next, &lines)?;
                next += 1;
            }
            if next == self.parts {
                return Ok(MergeOutcome::Whole);
            }
            if stop.load(Relaxed) {
                write_stderr(
                    "the array keeps running; run the same command to resume merging, or add --cancel to cancel it",
                );
                return Ok(MergeOutcome::Stopped);
            }
            if queried.is_none_or(|at| at.elapsed() > QUERY_INTERVAL) {
                // The query must precede the check for files: a task that ends in between has then written its part.
                let active = self.array.active(&System)?;
                let lacking = missing(next);
                queried = Some(Instant::now());
                if active == 0 && !lacking.is_empty() {
                    if tries > self.args.retries {
                        return Err(eyre!(
                            "parts {} are missing after {tries} submission{}; see {} for the reason; run the same \
                             command to retry",
                            indices(&lacking),
                            if tries == 1 { "" } else { "s" },
                            self.array.folder.join("part-I.log").display()
                        ));
                    }
                    self.confirm(&lacking, tries)?;
                    let job = self.array.submit(&System, &lacking)?;
                    write_stderr(&format!("submitted job {job}: {} of {} parts", lacking.len(), self.parts));
                    tries += 1;
                } else if described.elapsed() > PROGRESS_INTERVAL {
                    described = Instant::now();
                    let done = self.parts - lacking.len() as u64;
                    write_stderr(&format!(
                        "{done} of {} parts done, {active} tasks pending or running{so_far}",
                        self.parts
                    ));
                }
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }

    /// Removes parts, logs and the script after everything is merged and written.
    pub fn clean_up(&self) {
        for index in 0..self.parts {
            let _ = std::fs::remove_file(self.file(index));
            let _ = std::fs::remove_file(self.array.folder.join(format!("part-{index}.log")));
        }
        let _ = std::fs::remove_file(self.array.script_path());
        // Unfinished files of killed tasks.
        for entry in std::fs::read_dir(&self.array.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(".atlas-") {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        // Fails if the directory contains other files, which are kept.
        let _ = std::fs::remove_dir(&self.array.folder);
    }

    /// Shows what is submitted, and asks for confirmation unless `--yes` is given. Resubmissions are not confirmed
    /// again.
    fn confirm(&self, parts: &[u64], tries: u32) -> color_eyre::Result<()> {
        if tries > 0 {
            write_stderr(&format!("parts {} failed; resubmitting", indices(parts)));
            return Ok(());
        }
        write_stderr(&format!("{}\n# {}", self.array.script(), self.array.submission(parts).shell_line()));
        if self.args.yes {
            return Ok(());
        }
        if confirm::confirmed("submit?")? {
            Ok(())
        } else {
            Err(eyre!("nothing submitted: confirm in a terminal or use --yes"))
        }
    }
}

/// Arguments for the tasks: without those for the array and for files written here.
fn words_of_tasks(words: &[String], dropped: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let flag = word.split('=').next().unwrap_or_default();
        match flag {
            "--slurm" | "--yes" | "--restart" | "--cancel" => {}
            _ if ["--out", "--tasks", "--sbatch", "--retries"].iter().chain(dropped).any(|name| *name == flag) => {
                if !word.contains('=') {
                    rest.next();
                }
            }
            _ => out.push(word.clone()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::words_of_tasks;

    #[test]
    fn array_options_are_stripped_from_the_command_of_a_task() {
        let words = "sweep --slurm --over tp=1,2 --out a.csv --tasks=4 --sbatch -p --sbatch=cpu --yes --workload w";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(words_of_tasks(&words, &[]).join(" "), "sweep --over tp=1,2 --workload w");
        assert_eq!(words_of_tasks(&words, &["--over"]).join(" "), "sweep --workload w");
    }
}
