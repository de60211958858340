//! Long work on the command line: a bar on stderr once it takes long, and Ctrl-C that ends it in good order.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};

use atlas_plan::search::Gauge;
use atlas_plan::simulation;

/// What can be watched and ended.
pub trait Watched: Sync {
    /// Units of work done, and of all work; the latter 0 while it is not known.
    fn progress(&self) -> (u64, u64);

    /// Asks the work to end soon.
    fn cancel(&self);

    /// How the bar tells it, in indicatif's words.
    fn template(&self, what: &str) -> String {
        format!("{{bar:30}} {{human_pos}} of {{human_len}} {what}, {{per_sec}}, {{eta}} left")
    }
}

impl Watched for Gauge {
    fn progress(&self) -> (u64, u64) {
        Gauge::progress(self)
    }

    fn cancel(&self) {
        Gauge::cancel(self);
    }
}

impl Watched for simulation::Gauge {
    fn progress(&self) -> (u64, u64) {
        ((self.share() * 1000.0) as u64, 1000)
    }

    fn cancel(&self) {
        simulation::Gauge::cancel(self);
    }

    fn template(&self, what: &str) -> String {
        format!("{{bar:30}} {{percent}} % {what}, {{eta}} left")
    }
}

/// How often the watcher looks.
const GLANCE: Duration = Duration::from_millis(50);

/// Does `work` while a second thread shows how far `gauge` is, where somebody looks at stderr and `patience` is over.
/// The first Ctrl-C or SIGTERM cancels the gauge; a second one ends the program at once.
pub fn watching<T>(gauge: &impl Watched, patience: Duration, what: &str, work: impl FnOnce() -> T) -> io::Result<T> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Registered first, so that it sees the flag before the handler behind it raises it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let over = AtomicBool::new(false);
    Ok(std::thread::scope(|scope| {
        scope.spawn(|| show(gauge, patience, what, &stop, &over));
        // Also where the work panics: the watcher must not wait for ever.
        let _ends = Ends(&over);
        work()
    }))
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn show(gauge: &impl Watched, patience: Duration, what: &str, stop: &AtomicBool, over: &AtomicBool) {
    let began = Instant::now();
    let somebody_looks = io::stderr().is_terminal();
    let mut bar: Option<ProgressBar> = None;
    while !over.load(Relaxed) {
        if stop.load(Relaxed) {
            gauge.cancel();
        }
        let (done, total) = gauge.progress();
        if bar.is_none() && somebody_looks && total > 0 && began.elapsed() > patience {
            let template = gauge.template(what);
            let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
            let made = ProgressBar::new(total).with_style(style.progress_chars("##-"));
            bar = Some(made.with_elapsed(began.elapsed()));
        }
        if let Some(bar) = &bar {
            bar.set_position(done);
        }
        std::thread::sleep(GLANCE.min(Duration::from_millis(5).max(began.elapsed() / 10)));
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}
