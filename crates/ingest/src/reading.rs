//! Results of one recognizer for one file.

use serde_json::Value;

pub use super::config::{Config, Origin, SETTINGS, Setting, SettingSpec};
pub use super::context::Context;
pub(crate) use super::facts::object;
pub use super::facts::{Facts, number_to_json};
use super::run::Run;

/// Kinds of measurement, in ascending order of importance. If a file has several, the most important is listed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Importance {
    /// Table of the state of devices at one point in time.
    State,
    /// Samples of power, memory or utilization.
    Samples,
    /// Status lines of a server.
    Server,
    /// Step lines of a training log, which other tools may write in the same form.
    #[default]
    Steps,
    /// Results printed at the end of a benchmark.
    Result,
    /// A machine-readable record.
    Record,
}

/// A power sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerSample {
    /// Index of the device in [`Reading::devices`].
    pub device: u32,
    /// Unix time in seconds. Times without a zone are taken as UTC.
    pub at: f64,
    /// Power, W.
    pub watts: f64,
}

/// Result of one recognizer for one document.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Tool that wrote the log, named like the directory of its samples.
    pub tool: &'static str,
    /// Name of the format.
    pub format: &'static str,
    /// `training`, `serving`, `power`, …
    pub kind: &'static str,
    /// Rank among the readings of a file.
    pub importance: Importance,
    /// Facts found.
    pub facts: Facts,
    /// Configuration found.
    pub config: Config,
    /// Runs of a training log.
    pub runs: Vec<Run>,
    /// Number of steps that always count as warm-up: one for most tools.
    pub tool_warmup_steps: usize,
    /// Power samples with a time, to be joined with benchmarks that ran at that time.
    pub power: Vec<PowerSample>,
    /// Names of the sampled devices.
    pub devices: Vec<String>,
    /// Start and end of a benchmark, as Unix times in seconds.
    pub window: Option<[f64; 2]>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The original document if it is benchmark JSON, so that it can be written again without loss.
    pub document: Option<Box<Value>>,
}

impl Reading {
    /// Merges the settings of the reading with those of `run`, which take precedence except over settings of the user.
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

    /// Returns a reading of a list of results, with its length as the fact `count`. Returns `None` if the list is
    /// empty.
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
