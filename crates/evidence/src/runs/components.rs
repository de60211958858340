//! Typical sizes of effects: variances on the logarithm of measured over predicted.
//!
//! `cluster` is the variance between sources. `accelerator`, `software` and `model` are those between accelerators,
//! software families and models of one source. `classes` are those of slopes on the shares of time in compute, memory
//! traffic, communication and the host. `configuration` is the variance of the effect that a configuration shares with
//! others of similar shape; similarity decreases as exp(−`falloff` × distance). These variances apply where the shipped
//! estimate has an uncertainty of about ± 25 %; elsewhere effects are proportional to the uncertainty to the power of
//! `growth`. `residual` is the variance of one configuration around all effects. `reach` is the number of standard
//! deviations within which nine of ten runs of a source lie that was calibrated with components of the other sources.
//!
//! Source: the values with which three runs of a source, or of one accelerator and software of it, predict the rest of
//! it with the smallest error, over the shipped measurements. `cargo xtask variance-components` estimates them again
//! and writes this table.

use atlas_config::corrections::Quantity;

/// Variance components of one quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Components {
    /// Variance between sources.
    pub cluster: f64,
    /// Variance between accelerators of a source.
    pub accelerator: f64,
    /// Variance between software families of a source.
    pub software: f64,
    /// Variance between models of a source.
    pub model: f64,
    /// Variances of the slopes on shares of the time: compute, memory, network, host.
    pub classes: [f64; 4],
    /// Variance of the effect that a configuration shares with similar ones.
    pub configuration: f64,
    /// Rate at which similarity decreases with the distance of two configurations.
    pub falloff: f64,
    /// Variance of a single configuration.
    pub residual: f64,
    /// Number of standard deviations to the bounds of a 90 % interval.
    pub reach: f64,
    /// Exponent of the uncertainty of the shipped estimate to which effects are proportional.
    pub growth: f64,
}

impl Components {
    /// Returns the components of a quantity from the shipped table.
    #[must_use]
    pub fn of(quantity: Quantity) -> Components {
        match quantity {
            Quantity::Training => TRAINING,
            Quantity::Serving => SERVING,
            Quantity::Tpot => TPOT,
            Quantity::Ttft => TTFT,
        }
    }
}

// begin of the table
const TRAINING: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00267,
    model: 0.00126,
    classes: [0.00083, 0.03269, 0.01278, 0.00005],
    configuration: 0.00255,
    falloff: 0.44868,
    residual: 0.00227,
    reach: 3.7140,
    growth: 0.432,
};
const SERVING: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00013,
    software: 0.00181,
    model: 0.00236,
    classes: [0.00361, 0.00000, 0.00000, 0.01284],
    configuration: 0.00941,
    falloff: 0.23021,
    residual: 0.01202,
    reach: 3.0720,
    growth: 0.640,
};
const TPOT: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00000,
    model: 0.01035,
    classes: [0.02522, 0.00000, 0.00979, 0.00000],
    configuration: 0.01035,
    falloff: 0.37849,
    residual: 0.01286,
    reach: 1.9930,
    growth: 1.000,
};
const TTFT: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00000,
    model: 0.03093,
    classes: [0.00000, 0.00000, 0.00000, 0.00000],
    configuration: 0.08160,
    falloff: 0.29978,
    residual: 0.09513,
    reach: 2.6750,
    growth: 0.213,
};
// end of the table
