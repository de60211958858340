//! What cross-validation leaves out together.

use super::case::Case;

/// The unit that is left out: the source of a throughput, the model of a latency, since all latencies have one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit<'a> {
    Source(&'a str),
    Model(&'a str),
}

/// The unit of a case.
pub(super) fn unit(case: &Case) -> Unit<'_> {
    if case.metric.is_latency() { Unit::Model(&case.model) } else { Unit::Source(&case.source) }
}

/// The name of the unit that a case belongs to.
#[must_use]
pub fn unit_name(case: &Case) -> &str {
    match unit(case) {
        Unit::Source(name) | Unit::Model(name) => name,
    }
}
