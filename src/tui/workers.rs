//! The threads that do long work for the state: one an order, described of by messages, stopped by their gauges.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::message::Message;
use super::terminal;
use super::wait::Waker;
use super::work::{Order, Product, Progress};
use atlas_plan::search::Gauge;

/// How long a frame waits for work that was ordered just before it: half of what a key may take.
const GRACE: Duration = Duration::from_millis(8);
/// How often progress is described: often enough to be seen moving, seldom enough for a slow line.
const TELL: Duration = Duration::from_millis(125);

/// Keys come first: what works beside them, and the threads that it starts, gets what they leave. Where threads have no
/// priority of their own the scheduler's even hand has to do.
fn step_back() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        const STEPS: i32 = 10;
        const LOWEST: i32 = 19;
        let own = Some(rustix::thread::gettid());
        // One that may not be lowered works as well.
        let _ = getpriority_process(own).and_then(|now| setpriority_process(own, (now + STEPS).min(LOWEST)));
    }
}

/// An order under way.
struct Running {
    serial: u64,
    gauge: Arc<Gauge>,
    began: Instant,
    /// When its progress is described next.
    tell: Instant,
}

/// The orders under way, and what comes back of them.
pub(super) struct Workers {
    running: Vec<Running>,
    sender: Sender<(u64, Result<Product, String>)>,
    receiver: Receiver<(u64, Result<Product, String>)>,
    waker: Waker,
    /// Until when the next frame waits.
    grace: Option<Instant>,
}

impl Workers {
    /// None yet; `waker` ends the wait of the thread that takes the messages.
    pub(super) fn new(waker: Waker) -> Workers {
        let (sender, receiver) = channel();
        Workers { running: Vec::new(), sender, receiver, waker, grace: None }
    }

    /// Begins an order; what goes wrong is its answer.
    pub(super) fn start(&mut self, order: Order) {
        let now = Instant::now();
        let (serial, gauge) = (order.serial, Arc::new(Gauge::default()));
        let (sender, waker, watched) = (self.sender.clone(), self.waker.clone(), Arc::clone(&gauge));
        let work = move || {
            step_back();
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
                self.running.push(Running { serial, gauge, began: now, tell: now + TELL });
                self.grace = Some(now + GRACE);
            }
            Err(error) => {
                let _ = self.sender.send((serial, Err(format!("no thread can be started: {error}"))));
                self.waker.wake();
            }
        }
    }

    /// Stops an order; nothing comes of it any more.
    pub(super) fn cancel(&mut self, serial: u64) {
        self.running.retain(|running| {
            if running.serial == serial {
                running.gauge.cancel();
            }
            running.serial != serial
        });
    }

    /// How long nothing is to be described: for ever where nothing runs.
    pub(super) fn patience(&self) -> Option<Duration> {
        let next = self.running.iter().map(|running| running.tell).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// What has come back, and progress whose time has come.
    pub(super) fn messages(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Ok((serial, product)) = self.receiver.try_recv() {
            messages.extend(self.finished(serial, product));
        }
        let now = Instant::now();
        for running in self.running.iter_mut().filter(|running| running.tell <= now) {
            let (done, total) = running.gauge.progress();
            let seconds = running.began.elapsed().as_secs_f64();
            messages.push(Message::Progress(running.serial, Progress { done, total, seconds }));
            running.tell = now + TELL;
        }
        messages
    }

    /// The result of work started just now, if it arrives before the frame is due. Call it until it returns `None`.
    pub(super) fn at_once(&mut self) -> Option<Message> {
        let until = self.grace.filter(|_| !self.running.is_empty())?;
        let left = until.saturating_duration_since(Instant::now());
        match self.receiver.recv_timeout(left) {
            // What was cancelled meanwhile is nothing to wait for, nor a reason to wait no longer.
            Ok((serial, product)) => self.finished(serial, product).or_else(|| self.at_once()),
            Err(_) => {
                self.grace = None;
                None
            }
        }
    }

    fn finished(&mut self, serial: u64, product: Result<Product, String>) -> Option<Message> {
        let known = self.running.len();
        self.running.retain(|running| running.serial != serial);
        (self.running.len() < known || product.is_err()).then_some(Message::Worked(serial, product))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for running in &self.running {
            running.gauge.cancel();
        }
    }
}
