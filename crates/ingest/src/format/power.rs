//! Power of several devices over time: means, energy by the trapezoidal rule, and samples with time stamps.

use serde_json::Value;

use crate::observation::{Device, Observation, PendingObservations};
use crate::reading::{Facts, PowerSample, object};
use crate::series::Series;

/// Maximum number of samples kept for joining with a benchmark. Later ones are still included in means and energy.
const SAMPLES: usize = 1 << 20;
/// Maximum number of devices.
const DEVICES: usize = 4096;
/// Why a sample of a further device is skipped.
pub const TOO_MANY_DEVICES: &str = "a sample of a device beyond the limit of 4096";

/// Power samples of devices.
#[derive(Debug, Clone, Default)]
pub struct Devices {
    /// Names, in the order of their appearance.
    pub names: Vec<String>,
    watts: Vec<Series>,
    last: Vec<Option<(f64, f64)>>,
    joules: f64,
    from: Option<f64>,
    to: Option<f64>,
    /// Samples with a time.
    pub samples: Vec<PowerSample>,
    fresh: PendingObservations<Device>,
}

impl Devices {
    /// Returns the index of a device, adding it if the name is new; `None` if there are too many devices.
    pub fn index(&mut self, name: &str) -> Option<usize> {
        if let Some(index) = self.names.iter().position(|known| known == name) {
            return Some(index);
        }
        if self.names.len() >= DEVICES {
            return None;
        }
        self.names.push(name.to_owned());
        self.watts.push(Series::default());
        self.last.push(None);
        Some(self.names.len() - 1)
    }

    /// Number of devices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no device was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds a power sample.
    pub fn push(&mut self, device: usize, at: Option<f64>, watts: f64) {
        if let Some(series) = self.watts.get_mut(device) {
            series.push(watts);
        }
        self.fresh.push(Device { index: device, at, watts: Some(watts), ..Device::default() });
        let Some(at) = at else { return };
        self.from = Some(self.from.map_or(at, |known| known.min(at)));
        self.to = Some(self.to.map_or(at, |known| known.max(at)));
        if let Some(last) = self.last.get_mut(device)
            && let Some((before, power)) = last.replace((at, watts)).filter(|(before, _)| *before <= at)
        {
            self.joules += (at - before) * (power + watts) / 2.0;
        }
        if self.samples.len() < SAMPLES {
            self.samples.push(PowerSample { device: device as u32, at, watts });
        }
    }

    /// Adds other metrics of a device to its last power sample, or a new sample if there is none.
    pub fn add_metrics(&mut self, state: Device) {
        match self.fresh.last_mut().filter(|last| last.index == state.index && last.watts == state.watts) {
            Some(last) => *last = state,
            None => self.fresh.push(state),
        }
    }

    /// Appends the samples since the last call to `out`.
    pub fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.fresh.take(out, Observation::Device);
    }

    /// Records the time of a sample that may have no power.
    pub fn record_time(&mut self, at: f64) {
        self.from = Some(self.from.map_or(at, |known| known.min(at)));
        self.to = Some(self.to.map_or(at, |known| known.max(at)));
    }

    /// Whether there are any power samples.
    #[must_use]
    pub fn has_power(&self) -> bool {
        self.watts.iter().any(|series| !series.is_empty())
    }

    /// Seconds between the first and the last sample.
    #[must_use]
    pub fn duration(&self) -> Option<f64> {
        Some(self.to? - self.from?)
    }

    /// Adds facts on power.
    pub fn facts(&self, facts: &mut Facts) {
        if let Some(duration) = self.duration() {
            facts.set("duration_s", duration);
        }
        if !self.has_power() {
            return;
        }
        let means = self.names.iter().zip(&self.watts);
        let means = object(means.filter_map(|(name, series)| Some((name.clone(), series.mean()?.into()))));
        let total: f64 = self.watts.iter().filter_map(Series::mean).sum();
        facts.set("mean_power_w_per_gpu", Value::Object(means));
        facts.set("mean_total_power_w", total);
        facts.set_optional("max_power_w", self.watts.iter().filter_map(Series::max).reduce(f64::max));
        facts.set_optional("min_power_w", self.watts.iter().filter_map(Series::min).reduce(f64::min));
        if self.duration().is_some_and(|duration| duration > 0.0) {
            facts.set("energy_wh_trapezoid_per_gpu_sum", self.joules / 3600.0);
        }
    }
}
