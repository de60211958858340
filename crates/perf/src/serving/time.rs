//! Parts of the time of a step.

use crate::parts::TimePart;

/// Seconds of a step by cause, which sum to [`StepTime::total`], and its memory traffic.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepTime {
    /// Arithmetic of linear layers and attention.
    pub compute: f64,
    /// Reading weights.
    pub weights: f64,
    /// Reading the KV cache.
    pub kv: f64,
    /// Reading and writing activations outside GEMMs.
    pub activations: f64,
    /// Collectives between ranks and stages.
    pub communication: f64,
    /// Kernel launches, and gaps between kernels.
    pub launch: f64,
    /// Host work between steps.
    pub host: f64,
    /// Encoding images.
    pub images: f64,
    /// Memory traffic of a rank, in seconds at the full bandwidth, whatever it overlaps with. It is not part of the total,
    /// and does not include that of encoding images.
    pub traffic: f64,
}

impl StepTime {
    /// The parts of the total in order of declaration.
    pub const PARTS: [TimePart; 8] = [
        TimePart::Compute,
        TimePart::Weights,
        TimePart::KvCache,
        TimePart::Activations,
        TimePart::Communication,
        TimePart::Launch,
        TimePart::Host,
        TimePart::Images,
    ];

    /// Values of [`StepTime::PARTS`], s.
    pub fn values(&self) -> [f64; 8] {
        [self.compute, self.weights, self.kv, self.activations, self.communication, self.launch, self.host, self.images]
    }

    /// Sum of all parts, s.
    pub fn total(&self) -> f64 {
        self.compute
            + self.weights
            + self.kv
            + self.activations
            + self.communication
            + self.launch
            + self.host
            + self.images
    }

    /// `self + factor * other`, part by part.
    pub fn add(&self, other: &StepTime, factor: f64) -> StepTime {
        StepTime {
            compute: self.compute + factor * other.compute,
            weights: self.weights + factor * other.weights,
            kv: self.kv + factor * other.kv,
            activations: self.activations + factor * other.activations,
            communication: self.communication + factor * other.communication,
            launch: self.launch + factor * other.launch,
            host: self.host + factor * other.host,
            images: self.images + factor * other.images,
            traffic: self.traffic + factor * other.traffic,
        }
    }

    /// Every part multiplied by `factor`.
    pub fn scaled(&self, factor: f64) -> StepTime {
        StepTime::default().add(self, factor)
    }
}
