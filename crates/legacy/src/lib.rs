//! Compatibility with the predecessor tools: importers for their documents, and their engines.
//!
//! * [`exchange`] – import of scenarios, hardware profiles and experiments
//! * [`semi_empirical`] – the calibrated model
//! * [`benchboard`] – the dashboard's estimator
//! * [`measurements`] – conversion of measurement tables with the columns of version 0.1
//! * [`simulator`] – configurations of the simulator, converted to the inputs of `atlas-sim`
//! * [`number`] – the numeric trait of the engines: plain numbers, or equations that explain a result

#![forbid(unsafe_code)]

pub mod benchboard;
pub mod exchange;
pub mod measurements;
pub mod number;
pub mod semi_empirical;
pub mod simulator;
