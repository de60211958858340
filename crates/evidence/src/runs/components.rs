//! How large effects usually are: variances on the logarithm of measured over predicted.
//!
//! Meaning: `cluster` is the variance between sources; `accelerator`, `software` and `model` those between accelerators,
//! software families and models of one source; `classes` those of slopes on the shares of time in compute, memory
//! traffic, communication and the host; `residual` that of one configuration around all of these. `reach` is the number
//! of standard deviations within which nine of ten runs of a source lie that the other sources were calibrated without.
//!
//! Origin: restricted maximum likelihood is not needed, since no mean is estimated; the variances maximize the likelihood
//! of the shipped measurements, source by source. `cargo xtask variance-components` estimates them anew and writes this
//! table.

use atlas_config::corrections::Quantity;

/// Variances of one quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Components {
    /// Between sources.
    pub cluster: f64,
    /// Between accelerators of a source.
    pub accelerator: f64,
    /// Between software families of a source.
    pub software: f64,
    /// Between models of a source.
    pub model: f64,
    /// Of the slopes on shares of the time: compute, memory, network, host.
    pub classes: [f64; 4],
    /// Of a configuration.
    pub residual: f64,
    /// Standard deviations to the end of a 90 % interval.
    pub reach: f64,
}

impl Components {
    /// The shipped table's row of a quantity.
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
    accelerator: 0.00197,
    software: 0.00540,
    model: 0.00225,
    classes: [0.00000, 0.13706, 0.07943, 0.46272],
    residual: 0.01424,
    reach: 2.495,
};
const SERVING: Components = Components {
    cluster: 0.00000,
    accelerator: 0.02216,
    software: 0.03913,
    model: 0.03122,
    classes: [0.06335, 0.05263, 0.57896, 0.13699],
    residual: 0.02285,
    reach: 2.100,
};
const TPOT: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00000,
    model: 0.01690,
    classes: [0.08454, 0.03464, 0.17585, 0.01778],
    residual: 0.01673,
    reach: 2.037,
};
const TTFT: Components = Components {
    cluster: 0.00020,
    accelerator: 0.00428,
    software: 0.00431,
    model: 0.04540,
    classes: [0.00000, 0.00000, 0.00000, 0.00000],
    residual: 0.08315,
    reach: 3.352,
};
// end of the table
