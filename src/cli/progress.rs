//! A progress bar for work that is counted by its caller.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Delay before a bar is shown.
const DELAY: Duration = Duration::from_millis(500);

/// A progress bar on stderr, shown after `DELAY` if stderr is a terminal.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    template: &'static str,
    is_wanted: bool,
    /// Total number of units; without it, a spinner is shown.
    total: Option<u64>,
    started: Instant,
    done: u64,
}

impl Progress {
    /// Starts the clock. No bar is shown if it is not wanted, because results go to the terminal.
    pub(super) fn new(total: Option<u64>, template: &'static str, is_wanted: bool) -> Progress {
        let is_wanted = is_wanted && io::stderr().is_terminal();
        Progress { bar: None, template, is_wanted, total, started: Instant::now(), done: 0 }
    }

    /// Counts units of work.
    pub(super) fn advance(&mut self, by: u64) {
        self.done += by;
        if self.bar.is_none() && self.is_wanted && self.started.elapsed() > DELAY {
            self.bar = Some(self.start());
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        }
    }

    fn start(&self) -> ProgressBar {
        let bar = self.total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        let style = ProgressStyle::with_template(self.template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.with_style(style.progress_chars("##-").tick_chars("|/-\\ ")).with_elapsed(self.started.elapsed())
    }

    /// Hides the bar while something writes to the terminal.
    pub(super) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
