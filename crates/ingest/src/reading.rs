//! What one recognizer made of one file.

use serde_json::Value;

pub use super::config::{Config, Origin, SETTINGS, Setting};
pub use super::context::Context;
pub(crate) use super::facts::object;
pub use super::facts::{Facts, tidy};
use super::run::Run;

/// Kinds of measurement; the best one is listed first if a file has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Weight {
    /// A table of the state of devices at one moment.
    State,
    /// Samples of power, memory or utilization.
    Samples,
    /// Status lines of a server.
    Server,
    /// Step lines that other tools write, too.
    #[default]
    Steps,
    /// Results at the end of a benchmark.
    Result,
    /// A machine-readable record.
    Record,
}

/// One sample of power.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerSample {
    /// Which device, as an index into the names seen.
    pub device: u32,
    /// Seconds since 1970, taken as UTC.
    pub at: f64,
    /// Watts.
    pub watts: f64,
}

/// What one recognizer made of one file.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The tool that wrote it, as the folders of samples name it.
    pub tool: &'static str,
    /// Its format.
    pub format: &'static str,
    /// `training`, `serving`, `power`, …
    pub kind: &'static str,
    /// Rank among the readings of a file.
    pub weight: Weight,
    /// What was found.
    pub facts: Facts,
    /// Configuration found.
    pub config: Config,
    /// Runs of a training log.
    pub runs: Vec<Run>,
    /// Steps that always count as warm-up: one, with some tools more.
    pub usual_warmup: usize,
    /// Samples of power with a time, for joining with what ran meanwhile.
    pub power: Vec<PowerSample>,
    /// Names of the devices that the samples are of.
    pub devices: Vec<String>,
    /// When a benchmark ran, seconds since 1970.
    pub window: Option<[f64; 2]>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The document itself where it is benchmark JSON, so that it is written again without loss.
    pub document: Option<Box<Value>>,
}

impl Reading {
    /// The settings of one of its runs: the run's own, else those of the reading.
    #[must_use]
    pub fn settings_of(&self, run: &Run) -> Config {
        let mut out = Config::default();
        for (name, value, origin) in self.config.iter() {
            if origin == Origin::User || run.config.value(name).is_none() {
                out.note(name, value.clone(), origin);
            }
        }
        out.merge(&run.config);
        out
    }

    /// The reading of a list of results, whose length is the fact `count`; `None` if it is empty.
    #[must_use]
    pub fn of_results(count: &'static str, results: Vec<Value>) -> Option<Reading> {
        if results.is_empty() {
            return None;
        }
        let mut facts = Facts::default();
        facts.set(count, results.len());
        facts.set("results", results);
        Some(Reading { facts, ..Reading::default() })
    }
}
