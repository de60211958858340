//! Errors on rows that a fit did not see, by leaving out one group of rows at a time.

use super::case::{Case, Metric};
use super::fit;
use super::unit::{Unit, unit};
use atlas_core::cores::parallel_map;
use atlas_perf::constants::Constants;
use std::collections::{BTreeMap, BTreeSet};

/// Whether a case may be used to fit the fold without the unit `left_out`: it is neither part of it, nor a measurement
/// of the same campaign in another table.
fn may_train(case: &Case, left_out: Unit<'_>, campaigns: &BTreeSet<&str>) -> bool {
    if unit(case) == left_out {
        return false;
    }
    let other_table = case.metric.is_latency() != matches!(left_out, Unit::Model(_));
    !(other_table && !case.harness.is_empty() && campaigns.contains(case.harness.as_str()))
}

/// ln(predicted / measured) of a case with constants that were fitted without it.
#[derive(Debug, Clone, Copy)]
pub struct Errors {
    /// With the software release given in the row.
    pub as_stated: f64,
    /// With the newest release.
    pub without_release: f64,
}

/// Fits constants without each unit, and returns the errors of every case with those fitted without it.
#[must_use]
pub fn residuals(cases: &[Case]) -> Vec<Errors> {
    let units: Vec<Unit<'_>> = cases.iter().map(unit).collect::<BTreeSet<_>>().into_iter().collect();
    let without = |left_out: &Unit<'_>| {
        // A campaign that publishes its raw results is in both tables.
        let published = |case: &&Case| unit(case) == *left_out && case.metric != Metric::TrainingRate;
        let campaigns: BTreeSet<&str> = cases
            .iter()
            .filter(published)
            .map(|case| case.harness.as_str())
            .filter(|harness| CAMPAIGNS.contains(harness))
            .collect();
        let train: Vec<&Case> = cases.iter().filter(|case| may_train(case, *left_out, &campaigns)).collect();
        fit::fit(&train)
    };
    let fitted: BTreeMap<Unit<'_>, Constants> =
        units.iter().copied().zip(parallel_map(&units, |_| false, without)).collect();
    let fallback = Constants::literature();
    let errors = |case: &Case| {
        let constants = fitted.get(&unit(case)).unwrap_or(&fallback);
        Errors {
            as_stated: fit::log_error(case, constants),
            without_release: fit::log_error_without_release(case, constants),
        }
    };
    cases.iter().map(errors).collect()
}

/// Harnesses whose results form one campaign, regardless of the publisher. Others are tools that anyone can run.
const CAMPAIGNS: [&str; 1] = ["inferencemax"];
