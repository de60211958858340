//! Atlas Fabric: a planner for AI accelerators that runs in the terminal.
//!
//! This crate is the application: the command line ([`cli`]), the terminal interface ([`tui`]) and guided tours
//! ([`demo`]). Everything else is in crates under `crates/`; docs/architecture.md lists them.

#![forbid(unsafe_code)]

pub mod cli;
pub mod demo;
pub mod tui;
