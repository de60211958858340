//! How large effects usually are: variances on the logarithm of measured over predicted.
//!
//! Meaning: `cluster` is the variance between sources; `accelerator`, `software` and `model` those between accelerators,
//! software families and models of one source; `classes` those of slopes on the shares of time in compute, memory
//! traffic, communication and the host; `configuration` that of what a configuration shares with others of much the same
//! shape, where likeness falls as exp(−`falloff` × distance). These are the variances where the shipped estimate is about
//! ± 25 % uncertain; elsewhere effects are in proportion to the power `growth` of the uncertainty. `residual` is the variance
//! of one configuration around all effects.
//! `reach` is the number of standard deviations within which nine of ten runs of a source lie that the other sources were
//! calibrated without.
//!
//! Origin: the values under which three runs of a source, or of one accelerator and software of it, predict the rest of it
//! with the smallest error, over the shipped measurements. `cargo xtask variance-components` estimates them anew and writes
//! this table.

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
    /// Of what a configuration shares with others like it.
    pub configuration: f64,
    /// How fast likeness falls with the distance of two configurations.
    pub falloff: f64,
    /// Of a configuration on its own.
    pub residual: f64,
    /// Standard deviations to the end of a 90 % interval.
    pub reach: f64,
    /// The power of the shipped estimate's uncertainty that effects are in proportion to.
    pub growth: f64,
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
    accelerator: 0.00000,
    software: 0.00206,
    model: 0.00210,
    classes: [0.00028, 0.06160, 0.00216, 0.06160],
    configuration: 0.00516,
    falloff: 0.36416,
    residual: 0.00261,
    reach: 3.2284,
    growth: 0.504,
};
const SERVING: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00254,
    model: 0.00291,
    classes: [0.00430, 0.00000, 0.00068, 0.02258],
    configuration: 0.01013,
    falloff: 0.25785,
    residual: 0.01300,
    reach: 3.1267,
    growth: 0.470,
};
const TPOT: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00000,
    model: 0.01198,
    classes: [0.03269, 0.00000, 0.00009, 0.00000],
    configuration: 0.01777,
    falloff: 0.45812,
    residual: 0.01322,
    reach: 2.2864,
    growth: 0.253,
};
const TTFT: Components = Components {
    cluster: 0.00000,
    accelerator: 0.00000,
    software: 0.00000,
    model: 0.00959,
    classes: [0.00000, 0.00000, 0.00000, 0.00000],
    configuration: 0.06922,
    falloff: 0.34550,
    residual: 0.09147,
    reach: 3.0799,
    growth: 0.392,
};
// end of the table
