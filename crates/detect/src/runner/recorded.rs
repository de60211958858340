//! A runner that returns recorded outputs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{Command, Output, RunError, Runner};

/// Returns the output recorded for each command line. A command without a recording is reported as not installed.
#[derive(Debug, Default)]
pub struct Recorded {
    answers: BTreeMap<String, Result<Output, RunError>>,
    commands: Mutex<Vec<String>>,
}

impl Recorded {
    /// Creates a runner for which no command exists.
    #[must_use]
    pub fn new() -> Recorded {
        Recorded::default()
    }

    /// Records a successful run of the command line `line`.
    #[must_use]
    pub fn with(self, line: &str, stdout: &str) -> Recorded {
        self.with_output(
            line,
            Output { stdout: stdout.to_owned(), stderr: String::new(), status: Some(0), truncated: false },
        )
    }

    /// Records a run that exits with `status` and a message on standard error.
    #[must_use]
    pub fn with_failure(self, line: &str, status: i32, stderr: &str) -> Recorded {
        self.with_output(
            line,
            Output { stdout: String::new(), stderr: stderr.to_owned(), status: Some(status), truncated: false },
        )
    }

    /// Records an arbitrary output for the command line `line`.
    #[must_use]
    pub fn with_output(mut self, line: &str, output: Output) -> Recorded {
        self.answers.insert(line.to_owned(), Ok(output));
        self
    }

    /// Records an error for the command line `line`.
    #[must_use]
    pub fn with_error(mut self, line: &str, error: RunError) -> Recorded {
        self.answers.insert(line.to_owned(), Err(error));
        self
    }

    /// Command lines run so far, in order.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Runner for Recorded {
    fn run(&self, command: &Command) -> Result<Output, RunError> {
        let line = command.line();
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push(line.clone());
        match self.answers.get(&line) {
            Some(Ok(output)) => {
                let mut output = output.clone();
                if output.stdout.len() > command.limit {
                    let cut = (0..=command.limit).rev().find(|&at| output.stdout.is_char_boundary(at));
                    output.stdout.truncate(cut.unwrap_or(0));
                    output.truncated = true;
                }
                Ok(output)
            }
            Some(Err(error)) => Err(error.clone()),
            None => Err(RunError::NotFound { program: command.program.clone() }),
        }
    }
}
