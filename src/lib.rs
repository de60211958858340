//! Atlas Fabric: a planner for AI accelerators that runs in the terminal.
//!
//! This crate is the application: the command line ([`cli`]), which starts the terminal interface ([`tui`]), guided
//! tours ([`demo`]) and themes ([`theme`]). Everything else is in crates under `crates/`; docs/architecture.md lists
//! them.

#![forbid(unsafe_code)]

pub mod cli;
pub mod demo;
pub mod theme;
pub mod tui;
