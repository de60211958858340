//! Discrete-event simulation.
//!
//! Covers what closed-form estimates do not: contention, bursts, imbalance, stragglers and failures. Every simulation
//! takes plain data, a seed and a [`kernel::Progress`], and returns plain data. Equal inputs and seeds give
//! bit-identical results. There is no I/O, and no clock other than the simulated one.
//!
//! * [`kernel`] – time, event queue, random streams, statistics, replications
//! * [`network`] – collectives as flows over links
//! * [`serving`] – requests through batching engines
//! * [`training`] – steps through pipelines, failures and checkpoints
//! * [`cluster`] – several jobs and a scheduler
//! * [`range`] – range checks of numbers
//! * [`replay`] – reruns a recorded step with other task times
//! * [`scaling`] – efficiency over a series of cluster sizes
//! * [`queueing`] – one station with many servers, to compare the kernel with queueing theory

#![forbid(unsafe_code)]

pub mod cluster;
#[cfg(test)]
mod fixtures;
pub mod kernel;
pub mod network;
pub mod queueing;
pub mod range;
pub mod replay;
pub mod scaling;
pub mod serving;
pub mod training;
