//! Observations: what individual lines of a growing log report.

use crate::run::Step;

/// Values reported by a line of a log, available as soon as the line is read.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A training step, or the average over a log interval.
    Step(Step),
    /// Duration of a part of the steps since the last report, measured by the tool's own timers.
    Timer(Timer),
    /// The status of a serving engine.
    Server(Server),
    /// The state of one device.
    Device(Device),
}

/// A timer value of a training tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Timer {
    /// Name of the timer in the tool.
    pub name: String,
    /// Seconds on the fastest rank, or on the only one that reports.
    pub min_seconds: f64,
    /// Seconds on the slowest rank.
    pub max_seconds: f64,
    /// Index of the slowest rank, if the tool states it.
    pub slowest: Option<u64>,
}

/// A status report of a serving engine.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Server {
    /// Prompt tokens per second.
    pub prompt_per_s: Option<f64>,
    /// Generated tokens per second.
    pub generated_per_s: Option<f64>,
    /// Number of running requests.
    pub running: Option<f64>,
    /// Number of waiting requests.
    pub waiting: Option<f64>,
    /// Fraction of the KV cache in use, from 0 to 1.
    pub cache: Option<f64>,
}

/// A sample of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Device {
    /// Index of the device, from 0 in the order of their appearance in the log.
    pub index: usize,
    /// Unix time in seconds, if the sample has a time stamp.
    pub at: Option<f64>,
    /// Power, W.
    pub watts: Option<f64>,
    /// Utilization, from 0 to 1.
    pub busy: Option<f64>,
    /// SM clock, MHz.
    pub clock_mhz: Option<f64>,
    /// Temperature, °C.
    pub celsius: Option<f64>,
}

/// Buffer of observations. Observations beyond its capacity are dropped if they are not collected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingObservations<T> {
    items: Vec<T>,
}

/// Capacity of [`PendingObservations`]. No single line has more observations.
const MAX_ITEMS: usize = 64;

impl<T> Default for PendingObservations<T> {
    fn default() -> PendingObservations<T> {
        PendingObservations { items: Vec::new() }
    }
}

impl<T> PendingObservations<T> {
    /// Adds an observation, unless the buffer is full.
    pub(crate) fn push(&mut self, item: T) {
        if self.items.len() < MAX_ITEMS {
            self.items.push(item);
        }
    }

    /// Most recently added observation.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.items.last_mut()
    }

    /// Moves all observations to `out`.
    pub(crate) fn take(&mut self, out: &mut Vec<Observation>, wrap: impl Fn(T) -> Observation) {
        out.extend(self.items.drain(..).map(wrap));
    }
}
