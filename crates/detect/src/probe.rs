//! Runs tools and records failures of tools that are installed.

use std::time::Duration;

use crate::model::Undetermined;
use crate::runner::{Command, Output, Runner};

/// Runs tools for one part of the detection.
pub(crate) struct Probe<'a> {
    runner: &'a dyn Runner,
    timeout: Duration,
    /// Tools that did not answer in time; they are not run again.
    silent: Vec<String>,
    /// Failures of tools that are installed.
    pub(crate) failures: Vec<Undetermined>,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(runner: &'a dyn Runner, timeout: Duration) -> Probe<'a> {
        Probe { runner, timeout, silent: Vec::new(), failures: Vec::new() }
    }

    /// Output of a command, whatever its exit status; `None` if the tool is not installed or could not be run to its
    /// end.
    pub(crate) fn output(&mut self, program: &str, arguments: &[&str], limit: usize) -> Option<Output> {
        if self.timed_out(program) {
            return None;
        }
        let command = Command::new(program, arguments).with_timeout(self.timeout).with_output_limit(limit);
        match self.runner.run(&command) {
            Ok(output) => Some(output),
            Err(error) if error.is_absent() => None,
            Err(error) => {
                self.silent.push(program.to_owned());
                self.fail(&command.shell_line(), &error.to_string());
                None
            }
        }
    }

    /// Runs a command and parses its output with `read`. If `read` finds nothing, a failure is recorded with the tool's
    /// message.
    pub(crate) fn read<T>(
        &mut self,
        program: &str,
        arguments: &[&str],
        limit: usize,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let output = self.output(program, arguments, limit)?;
        let found = read(&output.stdout);
        let line = Command::new(program, arguments).shell_line();
        match (&found, output.unreliability()) {
            (_, Some(complaint)) => self.fail(&line, &complaint),
            (None, None) => self.fail(&line, "its output could not be parsed"),
            (Some(_), None) => {}
        }
        found
    }

    /// Like [`Probe::read`], but without recording a failure if nothing is found: for queries that a working tool may
    /// not support.
    pub(crate) fn try_read<T>(
        &mut self,
        program: &str,
        arguments: &[&str],
        limit: usize,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let output = self.output(program, arguments, limit)?;
        if output.truncated { None } else { read(&output.stdout) }
    }

    fn fail(&mut self, line: &str, reason: &str) {
        let state = format!("run `{line}` to see its output, or write the target by hand");
        let failure = Undetermined::new(line, reason, state);
        if !self.failures.contains(&failure) {
            self.failures.push(failure);
        }
    }

    /// Whether the tool did not answer in time.
    pub(crate) fn timed_out(&self, program: &str) -> bool {
        self.silent.iter().any(|silent| silent == program)
    }

    /// Removes the failures recorded since there were `from` of them: another command gave the answer.
    pub(crate) fn discard_failures(&mut self, from: usize) {
        self.failures.truncate(from);
    }
}

/// Turns an empty list into `None`: it is not an answer.
pub(crate) fn non_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
