//! Power, clocks and temperatures of devices during a run.

use atlas_core::statistics::median;
use atlas_ingest::observation::Device;

/// Maximum number of devices.
const MAX_DEVICES: usize = 1024;
/// Maximum number of samples per device; beyond it, every second sample is removed.
const SAMPLES: usize = 2048;

/// Samples of all devices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Devices {
    samples: Vec<Vec<Device>>,
    /// Number of samples. Divided by the number of devices, it is the time in seconds of a sample without a timestamp.
    count: u64,
}

/// Medians of one device before and after a time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Change {
    pub(super) watts: Option<[f64; 2]>,
    pub(super) busy: Option<[f64; 2]>,
    pub(super) clock: Option<[f64; 2]>,
    pub(super) celsius: Option<[f64; 2]>,
}

impl Devices {
    /// Adds a sample.
    pub fn push(&mut self, mut sample: Device) {
        if sample.index >= MAX_DEVICES {
            return;
        }
        if self.samples.len() <= sample.index {
            self.samples.resize(sample.index + 1, Vec::new());
        }
        self.count += 1;
        let devices = self.samples.len().max(1) as u64;
        // By default, `nvidia-smi -l` and `dmon` take one sample per second.
        sample.at = sample.at.or(Some((self.count / devices) as f64));
        let Some(list) = self.samples.get_mut(sample.index) else { return };
        if list.len() >= SAMPLES {
            let mut keep = false;
            list.retain(|_| {
                keep = !keep;
                keep
            });
        }
        list.push(sample);
    }

    /// Whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Median power over the last samples of all devices, W.
    #[must_use]
    pub fn watts(&self) -> Option<f64> {
        let last =
            |list: &Vec<Device>| list.iter().rev().take(60).filter_map(|sample| sample.watts).collect::<Vec<_>>();
        median(self.samples.iter().flat_map(last))
    }

    /// Medians of every device before and after the time `age` seconds before the last sample.
    pub(super) fn changes_at(&self, age: f64) -> Vec<Change> {
        let end = self.samples.iter().filter_map(|list| list.last()?.at).fold(f64::NEG_INFINITY, f64::max);
        let split = |list: &Vec<Device>| {
            let at = list.partition_point(|sample| sample.at.is_some_and(|at| at < end - age));
            let (before, after) = list.split_at_checked(at)?;
            let both = |get: fn(&Device) -> Option<f64>| {
                Some([median(before.iter().filter_map(get))?, median(after.iter().filter_map(get))?])
            };
            Some(Change {
                watts: both(|sample| sample.watts),
                busy: both(|sample| sample.busy),
                clock: both(|sample| sample.clock_mhz),
                celsius: both(|sample| sample.celsius),
            })
        };
        self.samples.iter().filter_map(split).collect()
    }
}
