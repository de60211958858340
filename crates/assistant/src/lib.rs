//! Questions: the grammar of the command line, answers without a network, and answers of an endpoint.
//!
//! * [`Question`] – the objective, the constraints, the settings, the model and the hardware that a line asks for
//! * [`Known`] – the targets and workloads that words can name
//! * [`grammar`] – the rules: `cheapest tpot<50ms ttft<2s 10% free on h100, h200`
//! * [`offline`] – questions in words, answered by the engines: `what if prices fall by a third?`
//! * [`endpoint`] – a model that answers with read-only tools, where the user configured one
//!
//! Nothing here touches a terminal; only the endpoint touches the network, and its settings a file.

pub mod endpoint;
pub mod grammar;
mod known;
mod objective;
pub mod offline;
mod question;

pub use grammar::{Trouble, parse};
pub use known::{Known, KnownTarget, KnownWorkload};
pub use objective::Objective;
pub use question::{Hardware, Intent, Question};
