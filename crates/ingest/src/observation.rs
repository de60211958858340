//! Observations: what a line of a growing log reports.

use crate::run::Step;

/// One figure or group of figures of a log, as soon as its line is read.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A training step, or the average over a log interval.
    Step(Step),
    /// A part of the steps since the last one, by the tool's own timers.
    Timer(Timer),
    /// The status of a serving engine.
    Server(Server),
    /// The state of one device.
    Device(Device),
}

/// A timer of a training tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Timer {
    /// Its name in the tool.
    pub name: String,
    /// Seconds on the fastest rank, or on the only one that reports.
    pub least: f64,
    /// Seconds on the slowest rank.
    pub most: f64,
    /// The slowest rank, where the tool names it.
    pub slowest: Option<u64>,
}

/// One report of a serving engine.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Server {
    /// Prompt tokens per second.
    pub prompt_per_s: Option<f64>,
    /// Generated tokens per second.
    pub generated_per_s: Option<f64>,
    /// Requests in the batch.
    pub running: Option<f64>,
    /// Requests that wait.
    pub waiting: Option<f64>,
    /// Share of the KV cache in use, from 0 to 1.
    pub cache: Option<f64>,
}

/// One sample of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Device {
    /// Which, counted from 0 in the order in which the log names them.
    pub index: usize,
    /// Seconds since 1970, where the sample has a time.
    pub at: Option<f64>,
    /// Power, W.
    pub watts: Option<f64>,
    /// Utilization, from 0 to 1.
    pub busy: Option<f64>,
    /// Clock of the multiprocessors, MHz.
    pub clock_mhz: Option<f64>,
    /// Temperature, °C.
    pub celsius: Option<f64>,
}

/// Observations to be collected. One line has few; if they are not collected, further ones are dropped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fresh<T> {
    items: Vec<T>,
}

/// Maximum observations kept: one line has no more.
const MOST: usize = 64;

impl<T> Default for Fresh<T> {
    fn default() -> Fresh<T> {
        Fresh { items: Vec::new() }
    }
}

impl<T> Fresh<T> {
    /// Keeps one.
    pub(crate) fn push(&mut self, item: T) {
        if self.items.len() < MOST {
            self.items.push(item);
        }
    }

    /// The one that was kept last.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.items.last_mut()
    }

    /// Returns and removes the kept ones.
    pub(crate) fn take(&mut self, out: &mut Vec<Observation>, wrap: impl Fn(T) -> Observation) {
        out.extend(self.items.drain(..).map(wrap));
    }
}
