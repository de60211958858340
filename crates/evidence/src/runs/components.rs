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
    accelerator: 0.00011,
    software: 0.00098,
    model: 0.00133,
    classes: [0.00216, 0.06160, 0.01359, 0.00000],
    configuration: 0.00293,
    falloff: 0.50808,
    residual: 0.00230,
    reach: 3.6207,
    growth: 0.433,
};
const SERVING: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00216,
    model: 0.00238,
    classes: [0.00456, 0.00000, 0.00023, 0.01155],
    configuration: 0.00970,
    falloff: 0.23109,
    residual: 0.01206,
    reach: 3.0560,
    growth: 0.645,
};
const TPOT: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00000,
    model: 0.01019,
    classes: [0.02645, 0.00000, 0.00979, 0.00000],
    configuration: 0.01019,
    falloff: 0.38941,
    residual: 0.01303,
    reach: 1.9901,
    growth: 1.000,
};
const TTFT: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00000,
    model: 0.02603,
    classes: [0.00000, 0.00000, 0.00000, 0.00000],
    configuration: 0.08487,
    falloff: 0.30484,
    residual: 0.09631,
    reach: 2.6773,
    growth: 0.216,
};
// end of the table
