//! Finds accelerators, their links, and the partitions of a cluster, and writes them as targets.
//!
//! * [`detect`] runs the tools that are installed on this machine and returns what they report
//! * [`idle`] looks up idle nodes, cheaply enough to be called every few seconds
//! * [`render`] writes the result as commented YAML targets
//! * [`matching`] finds the catalog entry for a device name
//! * [`read`] has one parser per tool
//!
//! This crate does not depend on the catalog: the caller passes its entries.

#![forbid(unsafe_code)]

pub mod catalog;
mod detect;
pub mod idle;
mod local;
pub mod matching;
pub mod model;
mod network;
mod options;
mod pools;
mod probe;
pub mod read;
pub mod render;
pub mod runner;
mod slurm;
pub mod text;

pub use detect::detect;
pub use options::Options;

/// Commands that detection runs if they are installed.
pub const PROGRAMS: [&str; 11] = [
    "nvidia-smi",
    "rocm-smi",
    "amd-smi",
    "xpu-smi",
    "hl-smi",
    "neuron-ls",
    "ibstat",
    "sinfo",
    "scontrol",
    "squeue",
    "kubectl",
];
