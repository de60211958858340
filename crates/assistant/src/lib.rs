//! Questions: the query grammar of the command line, offline answers, and answers of an endpoint.
//!
//! * [`Question`] – objective, constraints, settings, model and hardware given in a line
//! * [`Known`] – targets and workloads that a question can name
//! * [`grammar`] – the query grammar: `cheapest tpot<50ms ttft<2s 10% free on h100, h200`
//! * [`offline`] – natural-language questions answered by the engines: `what if prices fall by a third?`
//! * [`endpoint`] – a language model with read-only tools, if the user has configured one
//!
//! This crate has no terminal code. Only the endpoint accesses the network, and a file with its settings.

pub mod endpoint;
pub mod grammar;
mod known;
mod objective;
pub mod offline;

pub use grammar::question::{Hardware, Intent, Question};
pub use grammar::{ParseError, parse};
pub use known::{Known, KnownTarget, KnownWorkload};
pub use objective::Objective;
