//! Atlas Fabric: a planner for AI accelerators that runs in the terminal.
//!
//! This crate is the application: the command line ([`cli`]), the terminal interface ([`tui`]) and guided tours
//! ([`demo`]). Everything else is in crates under `crates/`; each depends only on crates below it:
//!
//! | crate | contents |
//! | --- | --- |
//! | `atlas-report` | tables, Markdown, HTML, SVG |
//! | `atlas-evidence` | measured rows, validation, calibration |
//! | `atlas-plan` | scenarios, engine facade, metrics, explain, search, advice, studies |
//! | `atlas-ingest` | measurements from logs of real runs |
//! | `atlas-config` | targets, workloads, profiles, the library of files in effect |
//! | `atlas-legacy` | importers for the predecessor tools |
//! | `atlas-catalog` | embedded accelerators, models, prices, documents, measurements |
//! | `atlas-document` | YAML with positions, decoding, diagnostics |
//! | `atlas-sim` | discrete-event simulation |
//! | `atlas-perf` | closed-form performance models |
//! | `atlas-core` | units, run options |

#![forbid(unsafe_code)]

pub mod cli;
pub mod demo;
pub mod tui;
