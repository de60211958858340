//! Finding better knobs, and seeing how figures move with them.
//!
//! * [`space`] – axes over knobs, the points they span
//! * [`mod@around`] – the values worth looking at when one knob is changed
//! * [`figure`] – what a search may aim at or bound: every metric, and what only searches request
//! * [`compromise`] – pairs of figures that work against each other
//! * [`condition`] – bounds on figures, as `--where` writes them
//! * [`rule`] – what a layout must divide, known before it is estimated
//! * [`mod@optimize`] – the best point of a space, proved where the space allows
//! * [`sweep`] – every point of a space, in order, in constant memory
//! * [`mod@sensitivity`] – which knob and which hardware number matter most
//! * [`methodology`] – two fair ways to compare targets
//! * [`break_even`] – rent or own
//! * [`frontier`] – throughput against interactivity, as more requests are served side by side
//! * [`hill_climb`] – the predecessor system's single change

pub mod around;
pub mod break_even;
pub mod compromise;
pub mod condition;
pub mod figure;
pub mod frontier;
pub mod gauge;
pub mod goal;
pub mod hill_climb;
pub mod methodology;
pub mod optimize;
pub mod rule;
pub mod sensitivity;
pub mod space;
pub mod sweep;

pub use around::around;
pub use condition::{Condition, ConditionError};
pub use gauge::Gauge;
pub use goal::goal_seek;
pub use methodology::Methodology;
pub use optimize::{Optimum, Problem, optimize};
pub use sensitivity::sensitivity;
pub use space::{Axis, Space, SpaceError};
