//! Integration tests in one binary, so that the application is linked to the tests only once. Each topic is a module.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod cluster;
mod cluster_screen;
mod common;

mod advice;
mod analytical;
mod ask;
mod ask_esc;
mod ask_https;
mod attacks;
mod benchboard;
mod calibrate;
#[cfg(unix)]
mod cancel;
mod catalog;
mod cli;
mod cli_batch;
mod cli_calibrate;
mod cli_ingest;
mod cli_simulate;
mod cli_simulate_layers;
mod cli_watch;
mod cost;
mod demos;
mod environment;
mod equations;
mod event;
mod event_goldens;
mod evidence;
mod experiment;
mod explain;
#[cfg(target_os = "linux")]
mod faults;
mod findings;
mod fuzz;
mod goldens;
mod import_screen;
mod ingest;
mod ingest_versions;
mod launch;
mod library;
#[cfg(target_os = "linux")]
mod load;
mod measurement_rows;
mod mission;
mod optimize;
mod own_profile;
mod panels;
mod pictures;
#[cfg(unix)]
mod refused;
mod restoration;
mod robustness;
mod scenario_exchange;
mod schema;
mod screens;
mod screens_measurements;
mod search;
mod shipped;
#[cfg(target_os = "linux")]
mod soak;
mod study;
mod tasks;
mod terminal;
mod timeline;
mod tprimat;
mod validate;
mod views;
mod workspace;
