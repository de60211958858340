//! Runs tools, and notes where a tool that exists gave no answer.

use std::time::Duration;

use crate::model::Undetermined;
use crate::runner::{Command, Output, Runner};

/// Runs tools for one part of the detection.
pub(crate) struct Probe<'a> {
    runner: &'a dyn Runner,
    timeout: Duration,
    /// Tools that gave no answer in time; they are not run again.
    silent: Vec<String>,
    /// What tools that exist failed to answer.
    pub(crate) failures: Vec<Undetermined>,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(runner: &'a dyn Runner, timeout: Duration) -> Probe<'a> {
        Probe { runner, timeout, silent: Vec::new(), failures: Vec::new() }
    }

    /// The output of a command, whatever its exit status; `None` if the tool does not exist or gave none.
    pub(crate) fn output(&mut self, program: &str, arguments: &[&str], limit: usize) -> Option<Output> {
        if self.is_silent(program) {
            return None;
        }
        let command = Command::new(program, arguments).within(self.timeout).at_most(limit);
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

    /// What `read` understands of a command's output. An output in which it finds nothing is noted with the tool's
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
        match (&found, output.complaint()) {
            (_, Some(complaint)) => self.fail(&line, &complaint),
            (None, None) => self.fail(&line, "its output was not understood"),
            (Some(_), None) => {}
        }
        found
    }

    /// The same, without a note if nothing is found: for queries that a working tool may not support.
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
        let state = format!("run `{line}` by hand, or write the target yourself");
        let failure = Undetermined::new(line, reason, state);
        if !self.failures.contains(&failure) {
            self.failures.push(failure);
        }
    }

    /// Whether a tool gave no answer in time.
    pub(crate) fn is_silent(&self, program: &str) -> bool {
        self.silent.iter().any(|silent| silent == program)
    }

    /// Forgets failures of a tool whose question another command answered.
    pub(crate) fn forgive(&mut self, from: usize) {
        self.failures.truncate(from);
    }
}

/// An empty result is not an answer.
pub(crate) fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
