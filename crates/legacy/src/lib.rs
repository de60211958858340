//! The predecessor tools: importers for their documents, and their engines.
//!
//! * [`exchange`] – documents
//! * [`semi_empirical`] – the calibrated model
//! * [`benchboard`] – the dashboard's estimator
//! * [`number`] – what the engines compute with: numbers, or equations that explain them

#![forbid(unsafe_code)]

pub mod benchboard;
pub mod exchange;
pub mod number;
pub mod semi_empirical;
