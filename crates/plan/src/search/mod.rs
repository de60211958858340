//! Search for better knobs, and analysis of their effect on metrics.
//!
//! * [`space`] – axes over knobs, and the points that they span
//! * [`mod@around`] – default values of an axis around the current value
//! * [`metric`] – metrics that can be goals and constraints
//! * [`trade_off`] – pairs of metrics with a trade-off
//! * [`condition`] – constraints, in the syntax of `--where`
//! * [`rule`] – divisibility rules of layouts, checked before estimating
//! * [`mod@optimize`] – the best point of a space, proven by exhaustive search if possible
//! * [`sweep`] – every point of a space, in order, in constant memory
//! * [`mod@sensitivity`] – the knobs and hardware parameters with the largest effect
//! * [`methodology`] – comparison of targets
//! * [`break_even`] – rent or own
//! * [`frontier`] – throughput against interactivity, for increasing concurrency
//! * [`hill_climb`] – the best single change, as in the predecessor system

pub mod around;
pub mod break_even;

pub mod condition;
pub mod frontier;
pub mod gauge;
pub mod goal;
pub mod hill_climb;
pub mod methodology;
pub mod metric;
pub mod optimize;
pub mod rule;
pub mod sensitivity;
pub mod space;
pub mod sweep;
pub mod trade_off;

pub use around::axis_around;
pub use condition::{Condition, ConditionError};
pub use gauge::Gauge;
pub use goal::goal_seek;
pub use methodology::Methodology;
pub use optimize::{Optimum, Problem, optimize};
pub use sensitivity::sensitivity;
pub use space::{Axis, Space, SpaceError};
