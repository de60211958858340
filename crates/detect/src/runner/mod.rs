//! Runs commands and returns their output or the error.

mod recorded;
mod system;

use std::time::Duration;

pub use recorded::Recorded;
pub use system::{System, find_program};

/// Default timeout of one command.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// Default limit on a command's output, in bytes.
pub const DEFAULT_LIMIT: usize = 4 << 20;

/// One command: a program by name, its arguments, and its limits. No shell is involved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Name of the executable, without a path.
    pub program: String,
    /// Arguments, passed as they are.
    pub arguments: Vec<String>,
    /// Time after which the command is killed.
    pub timeout: Duration,
    /// Maximum number of bytes of standard output; a command that writes more is killed.
    pub limit: usize,
}

impl Command {
    /// Creates a command with the default timeout and output limit.
    #[must_use]
    pub fn new(program: &str, arguments: &[&str]) -> Command {
        Command {
            program: program.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            timeout: DEFAULT_TIMEOUT,
            limit: DEFAULT_LIMIT,
        }
    }

    /// Sets the timeout.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Command {
        Command { timeout, ..self }
    }

    /// Sets the output limit, in bytes.
    #[must_use]
    pub fn with_output_limit(self, limit: usize) -> Command {
        Command { limit, ..self }
    }

    /// Formats the command as one line that can be pasted into a shell.
    #[must_use]
    pub fn shell_line(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        words.map(|word| crate::text::shell_word(word)).collect::<Vec<_>>().join(" ")
    }

    /// Formats the command as one line without quoting: the key of recordings.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = self.program.clone();
        for argument in &self.arguments {
            line.push(' ');
            line.push_str(argument);
        }
        line
    }
}

/// Output and exit status of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// The first 16 KiB of standard error.
    pub stderr: String,
    /// Exit status; `None` if the command was ended by a signal.
    pub status: Option<i32>,
    /// Whether standard output was truncated at the limit.
    pub truncated: bool,
}

impl Output {
    /// Whether the command ended with status 0 and its output is complete.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.status == Some(0) && !self.truncated
    }

    /// Why the output is not reliable, in one line; `None` if it is.
    #[must_use]
    pub fn unreliability(&self) -> Option<String> {
        if self.truncated {
            return Some("its output exceeds the size limit".to_owned());
        }
        let ended = match self.status {
            Some(0) => return None,
            Some(code) => format!("exit status {code}"),
            None => "terminated by a signal".to_owned(),
        };
        let said = self.stderr.lines().chain(self.stdout.lines()).find(|line| !line.trim().is_empty());
        Some(match said {
            Some(line) => format!("{ended}: {}", crate::text::clean(line)),
            None => ended,
        })
    }
}

/// Why a command produced no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// `PATH` has no executable of that name.
    #[error("{program}: not on PATH")]
    NotFound {
        /// The name that was searched for.
        program: String,
    },
    /// The command was killed after its timeout.
    #[error("{program}: no answer within {} s", .after.as_secs_f64())]
    TimedOut {
        /// The program that was killed.
        program: String,
        /// Its timeout.
        after: Duration,
    },
    /// The command could not be started or waited for.
    #[error("{program}: {reason}")]
    Failed {
        /// The program.
        program: String,
        /// The operating system's error message.
        reason: String,
    },
}

impl RunError {
    /// Whether the program is not installed.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, RunError::NotFound { .. })
    }
}

/// Runs commands. It is shared between threads, so that slow commands run in parallel.
pub trait Runner: Sync {
    /// Runs one command until it exits or its timeout expires.
    ///
    /// # Errors
    /// If the program does not exist, cannot be started, or does not exit in time. A nonzero exit status is not an
    /// error: many tools print their results and then fail.
    fn run(&self, command: &Command) -> Result<Output, RunError>;
}
