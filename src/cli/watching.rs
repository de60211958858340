//! Long-running work on the command line: a progress bar on stderr, and graceful cancellation with Ctrl-C.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::output::write_stderr;
use atlas_core::units;
use atlas_plan::search::Gauge;
use atlas_plan::simulation;

/// Work whose progress can be shown and that can be canceled.
pub trait Cancelable: Sync {
    /// Units of work done, and in total; the total is 0 while unknown.
    fn progress(&self) -> (u64, u64);

    /// Requests cancellation.
    fn cancel(&self);

    /// Template of the progress bar, in the syntax of indicatif.
    fn template(&self, what: &str) -> String {
        format!("{{bar:30}} {{human_pos}} of {{human_len}} {what}, {{per_sec}}, {{eta}} left")
    }

    /// Progress as a line, where a bar cannot be drawn.
    fn line(&self, what: &str) -> String {
        let (done, total) = self.progress();
        format!("{} of {} {what}", units::si(done as f64), units::si(total as f64))
    }
}

impl Cancelable for Gauge {
    fn progress(&self) -> (u64, u64) {
        Gauge::progress(self)
    }

    fn cancel(&self) {
        Gauge::cancel(self);
    }
}

impl Cancelable for simulation::RunsProgress {
    fn progress(&self) -> (u64, u64) {
        ((self.share() * 1000.0) as u64, 1000)
    }

    fn cancel(&self) {
        simulation::RunsProgress::cancel(self);
    }

    fn template(&self, what: &str) -> String {
        format!("{{bar:30}} {{percent}} % {what}, {{eta}} left")
    }

    fn line(&self, what: &str) -> String {
        format!("{:.0} % {what}", 100.0 * self.share())
    }
}

/// Exit code after Ctrl-C, following the convention of shells.
const INTERRUPTED: i32 = 130;
/// Maximum interval between progress updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(20);
/// Interval between lines of progress, if stderr is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// State of the signal handlers.
struct Signals {
    /// A signal arrived while work was running. This state is permanent: no further work is started.
    stop: Arc<AtomicBool>,
    /// No work is running, so a signal ends the process as if it were not caught.
    idle: Arc<AtomicBool>,
}

/// Installs the signal handlers, once per process: removing a handler would not restore the default action.
fn signals() -> io::Result<&'static Signals> {
    static SIGNALS: OnceLock<Signals> = OnceLock::new();
    static SIGNALS_LOCK: Mutex<()> = Mutex::new(());
    let _catching = SIGNALS_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(caught) = SIGNALS.get() {
        return Ok(caught);
    }
    let caught = Signals { stop: Arc::default(), idle: Arc::new(AtomicBool::new(true)) };
    for signal in [SIGINT, SIGTERM] {
        // Handlers run in this order, so only a second signal finds the `stop` flag set.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&caught.idle))?;
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&caught.stop))?;
        signal_hook::flag::register(signal, Arc::clone(&caught.stop))?;
    }
    Ok(SIGNALS.get_or_init(|| caught))
}

/// Runs `work` while another thread shows the progress of `gauge`, if stderr is a terminal and `patience` has passed.
/// The first Ctrl-C or SIGTERM cancels the gauge; a second one ends the program at once. After the work, while its
/// result is rendered and written, the first signal ends the program, unless the result is that of canceled work.
pub fn run_with_progress<T>(
    gauge: &impl Cancelable,
    patience: Duration,
    what: &str,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let signals = signals()?;
    signals.idle.store(false, Relaxed);
    let over = AtomicBool::new(false);
    let (answer, canceled) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| show(gauge, patience, what, &signals.stop, &over));
        let answer = {
            // Also ends the watcher if the work panics.
            let _ends = StopOnDrop(&over);
            work()
        };
        (answer, watcher.join().unwrap_or(false))
    });
    if !signals.stop.load(Relaxed) {
        signals.idle.store(true, Relaxed);
    } else if !canceled {
        // The signal arrived after the work was done: the result is not partial, and its output is not wanted.
        std::process::exit(INTERRUPTED);
    }
    Ok(answer)
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Shows the progress until the work is done, and returns whether it was canceled.
fn show(gauge: &impl Cancelable, patience: Duration, what: &str, stop: &AtomicBool, over: &AtomicBool) -> bool {
    let began = Instant::now();
    let on_terminal = io::stderr().is_terminal();
    let mut bar: Option<ProgressBar> = None;
    let mut canceled = false;
    let mut next_line = LINE_INTERVAL;
    while !over.load(Relaxed) {
        if stop.load(Relaxed) {
            gauge.cancel();
            canceled = true;
        }
        let (done, total) = gauge.progress();
        if bar.is_none() && on_terminal && total > 0 && began.elapsed() > patience {
            let template = gauge.template(what);
            let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
            let made = ProgressBar::new(total).with_style(style.progress_chars("##-"));
            bar = Some(made.with_elapsed(began.elapsed()));
        }
        if let Some(bar) = &bar {
            // A computation of several searches does not know the total in advance.
            bar.set_length(total);
            bar.set_position(done);
        } else if !on_terminal && total > 0 && began.elapsed() > next_line {
            next_line += LINE_INTERVAL;
            write_stderr(&gauge.line(what));
        }
        std::thread::sleep(UPDATE_INTERVAL.min(Duration::from_millis(5).max(began.elapsed() / 10)));
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    canceled
}
