//! The predecessor tools: importers for their documents, and their engines.
//!
//! * [`exchange`] – documents
//! * [`semi_empirical`] – the calibrated model
//! * [`benchboard`] – the dashboard's estimator
//! * [`measurements`] – tables of measurements with the columns of version 0.1
//! * [`number`] – what the engines compute with: numbers, or equations that explain them

#![forbid(unsafe_code)]

pub mod benchboard;
pub mod exchange;
pub mod measurements;
pub mod number;
pub mod semi_empirical;
