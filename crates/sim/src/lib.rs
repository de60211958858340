//! Discrete-event simulation: the engine whose answer is its events.
//!
//! What closed forms cannot see – contention, bursts, imbalance, stragglers, failures – is found by letting it happen.
//! Every part takes plain data, a seed and a [`kernel::Progress`], and answers plain data; the same input and seed give
//! the same answer bit for bit. No I/O, no clock but the simulated one.
//!
//! * [`kernel`] – time, queue of events, random streams, statistics, replications
//! * [`network`] – collectives as flows over links
//! * [`serving`] – requests through batching engines
//! * [`training`] – steps through pipelines, failures and checkpoints
//! * [`cluster`] – several jobs and a scheduler
//! * [`range`] – numbers that make no sense
//! * [`replay`] – a recorded step under other times
//! * [`scaling`] – what more accelerators bring
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
