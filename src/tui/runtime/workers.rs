//! Worker threads: one per order, reporting by messages, canceled by their gauges.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::tui::message::Message;
use crate::tui::runtime::terminal;
use crate::tui::runtime::wait::Waker;
use crate::tui::work::job::{Order, Product};
use crate::tui::work::query::Progress;
use atlas_plan::search::Gauge;

/// How long a frame waits for work that was just ordered: half of the time budget of a key press.
const FRAME_WAIT: Duration = Duration::from_millis(8);
/// Interval of progress reports: short enough to look alive, long enough for slow connections.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(125);

/// Lowers the priority of this worker and of the threads that it starts, so that key presses are handled first. Does
/// nothing on systems where threads have no priority of their own.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        const STEPS: i32 = 10;
        const LOWEST: i32 = 19;
        let own = Some(rustix::thread::gettid());
        // Failure to lower it is harmless.
        let _ = getpriority_process(own).and_then(|now| setpriority_process(own, (now + STEPS).min(LOWEST)));
    }
}

/// A running order.
struct Running {
    serial: u64,
    gauge: Arc<Gauge>,
    began: Instant,
    /// Time of its next progress report.
    tell: Instant,
}

/// Running orders and their results.
pub(in crate::tui) struct Workers {
    running: Vec<Running>,
    sender: Sender<(u64, Result<Product, String>)>,
    receiver: Receiver<(u64, Result<Product, String>)>,
    waker: Waker,
    /// Deadline until which the next frame waits.
    grace: Option<Instant>,
}

impl Workers {
    /// Creates an instance without running orders. `waker` wakes the thread that receives the messages.
    pub(in crate::tui) fn new(waker: Waker) -> Workers {
        let (sender, receiver) = channel();
        Workers { running: Vec::new(), sender, receiver, waker, grace: None }
    }

    /// Starts an order; failures are reported as its result.
    pub(in crate::tui) fn start(&mut self, order: Order) {
        let now = Instant::now();
        let (serial, gauge) = (order.serial, Arc::new(Gauge::default()));
        let (sender, waker, watched) = (self.sender.clone(), self.waker.clone(), Arc::clone(&gauge));
        let work = move || {
            lower_priority();
            let product = catch_unwind(AssertUnwindSafe(|| order.job.run(&watched)));
            let product = product.unwrap_or_else(|_| {
                let panic = terminal::background_panic().unwrap_or_default();
                Err(format!("internal error (please report): {panic}"))
            });
            if sender.send((serial, product)).is_ok() {
                waker.wake();
            }
        };
        match thread::Builder::new().name(format!("work {serial}")).spawn(work) {
            Ok(_) => {
                self.running.push(Running { serial, gauge, began: now, tell: now + PROGRESS_INTERVAL });
                self.grace = Some(now + FRAME_WAIT);
            }
            Err(error) => {
                let _ = self.sender.send((serial, Err(format!("cannot start a thread: {error}"))));
                self.waker.wake();
            }
        }
    }

    /// Cancels an order; its result is dropped.
    pub(in crate::tui) fn cancel(&mut self, serial: u64) {
        self.running.retain(|running| {
            if running.serial == serial {
                running.gauge.cancel();
            }
            running.serial != serial
        });
    }

    /// Time until the next progress report; `None` if nothing runs.
    pub(in crate::tui) fn timeout(&self) -> Option<Duration> {
        let next = self.running.iter().map(|running| running.tell).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Results that arrived and progress reports that are due.
    pub(in crate::tui) fn messages(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Ok((serial, product)) = self.receiver.try_recv() {
            messages.extend(self.finished(serial, product));
        }
        let now = Instant::now();
        for running in self.running.iter_mut().filter(|running| running.tell <= now) {
            let (done, total) = running.gauge.progress();
            let seconds = running.began.elapsed().as_secs_f64();
            messages.push(Message::Progress(running.serial, Progress { done, total, seconds }));
            running.tell = now + PROGRESS_INTERVAL;
        }
        messages
    }

    /// The result of work started just now, if it arrives before the frame is due. Call it until it returns `None`.
    pub(in crate::tui) fn wait_briefly(&mut self) -> Option<Message> {
        let until = self.grace.filter(|_| !self.running.is_empty())?;
        let left = until.saturating_duration_since(Instant::now());
        match self.receiver.recv_timeout(left) {
            // Skip results of canceled orders and keep waiting.
            Ok((serial, product)) => self.finished(serial, product).or_else(|| self.wait_briefly()),
            Err(_) => {
                self.grace = None;
                None
            }
        }
    }

    fn finished(&mut self, serial: u64, product: Result<Product, String>) -> Option<Message> {
        let known = self.running.len();
        self.running.retain(|running| running.serial != serial);
        (self.running.len() < known || product.is_err()).then_some(Message::WorkFinished(serial, product))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for running in &self.running {
            running.gauge.cancel();
        }
    }
}
