//! Importers for the documents of the predecessor tools.

#![forbid(unsafe_code)]

pub mod exchange;
