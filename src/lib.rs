//! Atlas Fabric: a planner for AI accelerators that lives in the terminal.
//!
//! Data flows one way, from what a user writes to what a user sees; each floor imports only from the floors above
//! it in this list:
//!
//! | floor | what it holds |
//! | --- | --- |
//! | [`units`] | how quantities are shown: prefixes, significant digits, deltas |
//! | `cores` | work dealt out to all cores |
//! | [`order`] | stable sorting that is compiled once |
//! | [`plan`] | the words of a run: engines, shardings, formats, servers |
//! | [`spec`] | the YAML documents: parsing with positions, decoding, diagnostics |
//! | [`catalog`] | what ships: accelerators, models, prices, published measurements |
//! | [`exchange`] | documents of the founding tools, turned into targets, workloads and knobs |
//! | [`library`] | everything in force: the layers of files over what ships, hot-reloadable |
//! | [`knob`] | the one registry of everything a user may turn |
//! | `atlas-physics` | a crate of its own: the physics of training and serving, plain inputs to plain answers, here as [`engine::analytical`] and [`engine::event`] |
//! | [`scenario`] | target × workload × profile × knobs, resolved to plain numbers |
//! | [`estimate`] | what an engine answers, and the registry of metrics that names each figure |
//! | [`engine`] | pure functions from scenario to estimate |
//! | [`validate`] | the analytical engine held against published measurements |
//! | `atlas-ingest` | a crate of its own: real logs turned into measurements, one file a format, here as [`ingest`]; `atlas-lines` below it reads lines, numbers and series, compiled for speed |
//! | [`calibrate`] | measurements turned into better numbers: coefficients, efficiency factors, what to measure next |
//! | [`advice`] | the rules of the trade, each tried on the scenario at hand; what makes an infeasible one fit |
//! | [`explain`] | the derivation of a figure: equations, numbers, and where each input was written |
//! | [`simulation`] | studies with the event engine: replications, bottlenecks, scaling, failures, several jobs |
//! | [`search`] | finding better knobs: optimum, sweeps, sensitivity, fair comparison |
//! | [`record`], [`report`] | estimates written down, and told |
//! | [`demo`] | guided tours: scripts that are also tests |
//! | [`watch`] | file watching, with polling where the file system is silent |
//! | `atlas-painter` | a crate of its own, compiled for speed: text into cells and cells onto the terminal, for [`tui`] |
//! | [`cli`], [`tui`] | the two faces; they know everybody, nobody knows them |

#![forbid(unsafe_code)]

pub mod advice;
pub mod calibrate;
pub mod catalog;
pub mod cli;
mod cores;
pub mod demo;
pub mod engine;
pub mod estimate;
pub mod exchange;
pub mod explain;
pub mod knob;
pub mod library;
pub mod order;
pub mod plan;
pub mod record;
pub mod report;
pub mod scenario;
pub mod search;
pub mod simulation;
pub mod spec;
pub mod tui;
pub mod units;
pub mod validate;
pub mod watch;

pub use atlas_ingest as ingest;
