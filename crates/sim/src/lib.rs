//! Discrete-event simulation.
//!
//! It covers what closed forms do not: contention, bursts, imbalance, stragglers and failures. Every part takes plain data,
//! a seed and a [`kernel::Progress`], and returns plain data; equal input and seed give bit-identical results. There is no
//! I/O and no clock other than the simulated one.
//!
//! * [`kernel`] – time, queue of events, random streams, statistics, replications
//! * [`network`] – collectives as flows over links
//! * [`serving`] – requests through batching engines
//! * [`training`] – steps through pipelines, failures and checkpoints
//! * [`cluster`] – several jobs and a scheduler
//! * [`range`] – numbers out of range
//! * [`replay`] – a recorded step with other task times
//! * [`scaling`] – efficiency of a series of cluster sizes
//! * [`queueing`] – one station with many servers: the kernel compared with queueing theory

#![forbid(unsafe_code)]

pub mod cluster;
pub mod kernel;
pub mod network;
pub mod queueing;
pub mod range;
pub mod replay;
pub mod scaling;
pub mod serving;
pub mod training;
