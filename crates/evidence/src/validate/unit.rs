//! Units of cross-validation.

use super::case::Case;

/// Rows that are left out together: those of a source for throughput, those of a model for latencies, which all have
/// one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit<'a> {
    Source(&'a str),
    Model(&'a str),
}

/// Unit of a case.
pub(super) fn unit(case: &Case) -> Unit<'_> {
    if case.metric.is_latency() { Unit::Model(&case.model) } else { Unit::Source(&case.source) }
}

/// Name of the unit to which a case belongs.
#[must_use]
pub fn unit_name(case: &Case) -> &str {
    match unit(case) {
        Unit::Source(name) | Unit::Model(name) => name,
    }
}
