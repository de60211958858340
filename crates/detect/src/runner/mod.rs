//! Running commands: the command, its output, or the error.

mod recorded;
mod system;

use std::time::Duration;

pub use recorded::Recorded;
pub use system::{System, find_program};

/// Time one command may take, unless the caller sets another.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes kept of one command's output, unless the caller sets another limit.
pub const DEFAULT_LIMIT: usize = 4 << 20;

/// One command: a program by name, its arguments, and the bounds it runs under. No shell is involved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Name of the executable, without a path.
    pub program: String,
    /// Arguments, passed as they are.
    pub arguments: Vec<String>,
    /// The command is killed after this time.
    pub timeout: Duration,
    /// Bytes of standard output kept; the command is killed when it writes more.
    pub limit: usize,
}

impl Command {
    /// A command with the default timeout and output limit.
    #[must_use]
    pub fn new(program: &str, arguments: &[&str]) -> Command {
        Command {
            program: program.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            timeout: DEFAULT_TIMEOUT,
            limit: DEFAULT_LIMIT,
        }
    }

    /// The same command with another timeout.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Command {
        Command { timeout, ..self }
    }

    /// The same command with another output limit, in bytes.
    #[must_use]
    pub fn at_most(self, limit: usize) -> Command {
        Command { limit, ..self }
    }

    /// The command as one line that can be pasted into a shell.
    #[must_use]
    pub fn shell_line(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        words.map(|word| crate::text::shell_word(word)).collect::<Vec<_>>().join(" ")
    }

    /// The command as one line, not quoted: the key of recordings.
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

/// What a command wrote before it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// The first 16 KiB of standard error.
    pub stderr: String,
    /// Exit status; `None` when a signal ended the command.
    pub status: Option<i32>,
    /// Whether standard output was cut at the limit.
    pub truncated: bool,
}

impl Output {
    /// Whether the command ended with status 0 and its output is complete.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.status == Some(0) && !self.truncated
    }

    /// Why the output cannot be trusted, in one line; `None` if it can.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        if self.truncated {
            return Some("it wrote more than the limit".to_owned());
        }
        let ended = match self.status {
            Some(0) => return None,
            Some(code) => format!("exit status {code}"),
            None => "ended by a signal".to_owned(),
        };
        let said = self.stderr.lines().chain(self.stdout.lines()).find(|line| !line.trim().is_empty());
        Some(match said {
            Some(line) => format!("{ended}: {}", crate::text::clean(line)),
            None => ended,
        })
    }
}

/// Why a command gave no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// No executable of that name is on `PATH`.
    #[error("{program}: not on PATH")]
    NotFound {
        /// The name that was looked for.
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
        /// The operating system's reason.
        reason: String,
    },
}

impl RunError {
    /// Whether the program is simply not installed.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, RunError::NotFound { .. })
    }
}

/// Runs commands. Shared between threads, so that slow commands do not wait for each other.
pub trait Runner: Sync {
    /// Runs one command to its end or its timeout.
    ///
    /// # Errors
    /// When the program does not exist, cannot be started, or does not end in time. A nonzero exit status is no error:
    /// many tools print what they know and then fail.
    fn run(&self, command: &Command) -> Result<Output, RunError>;
}
