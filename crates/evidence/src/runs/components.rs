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
    accelerator: 0.00208,
    software: 0.00487,
    model: 0.00272,
    classes: [0.00000, 0.11579, 0.05150, 0.37100],
    residual: 0.01112,
    reach: 2.3874,
};
const SERVING: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00755,
    software: 0.00955,
    model: 0.01256,
    classes: [0.06300, 0.02660, 0.10981, 0.09829],
    residual: 0.02659,
    reach: 2.5068,
};
const TPOT: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00000,
    model: 0.01004,
    classes: [0.03938, 0.01819, 0.01315, 0.02888],
    residual: 0.01773,
    reach: 2.1046,
};
const TTFT: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00000,
    model: 0.04330,
    classes: [0.00000, 0.00000, 0.00000, 0.00000],
    residual: 0.08266,
    reach: 3.1424,
};
// end of the table
