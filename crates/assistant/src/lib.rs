//! What users type as a question, as typed values: `cheapest tpot<50ms ttft<2s 10% free on h100, h200`.
//!
//! * [`Question`] – the objective, the constraints, the settings, the model and the hardware that a line asks for
//! * [`Known`] – the targets and workloads that words can name
//! * [`grammar`] – the rules
//!
//! Nothing here touches a terminal, a file or the network.

pub mod grammar;
mod known;
mod objective;
mod question;

pub use grammar::{Trouble, parse};
pub use known::{Known, KnownTarget, KnownWorkload};
pub use objective::Objective;
pub use question::{Hardware, Intent, Question};
