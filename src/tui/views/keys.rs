//! Keys that several views have.

use crate::tui::input::keymap::{Action, Binding, bind};

/// Keys that choose the metric.
pub(super) static METRICS: [Binding; 2] = [
    bind(&["."], Action::Metric(1), "next metric", Some("metric")),
    bind(&[","], Action::Metric(-1), "previous metric", None),
];

/// Enter, in views of parts of a metric.
pub(super) static EXPLAIN: [Binding; 1] =
    [bind(&["Enter"], Action::Accept, "explain the metric, down to its inputs", Some("explain"))];
