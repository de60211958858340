//! The physics of training and serving: pure functions from plain numbers to plain answers, in closed form or event by
//! event. It knows neither files nor scenarios, neither clock nor screen, and this crate's boundary keeps it so; being a
//! crate of its own it is also compiled for speed where the rest of the program is compiled for size.
//!
//! * [`plan`] – the words of a run: engines, shardings, formats, servers
//! * [`analytical`] – operators, rooflines, collectives, memory: an estimate in a microsecond
//! * [`event`] – the same physics as it happens: contention, queues, stragglers, failures

#![forbid(unsafe_code)]

pub mod analytical;
pub mod event;
pub mod plan;
