//! Import, launch and watch.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
mod import_documents;
mod import_files;
mod import_flags;
mod import_handed;
mod import_properties;
mod import_python;
mod import_references;
mod import_serving;
mod import_shell;
mod import_styles;
mod import_training;
mod launch_features;
mod launch_round_trip;
mod launch_settings;
mod watch;
