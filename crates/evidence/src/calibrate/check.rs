//! The guide's validation of a calibration (section 6) and its calendar (section 7).

use std::collections::BTreeMap;

use super::judge::EvaluatedMetric;
use super::observation::Observation;
use super::predicted_metric::PredictedMetric;
use atlas_config::Profile;
use atlas_core::plan::Engine;

/// One of the guide's checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Rates of different configurations, within 15 %.
    CrossValidation,
    /// Latency percentiles in production, within 10 %.
    ProductionPercentiles,
    /// Rates of one workload on different numbers of accelerators, within 20 %.
    Scaling,
}

impl Check {
    /// All checks.
    pub const ALL: [Check; 3] = [Check::CrossValidation, Check::ProductionPercentiles, Check::Scaling];

    /// Title for display.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Check::CrossValidation => "cross-validation",
            Check::ProductionPercentiles => "production percentiles",
            Check::Scaling => "scaling",
        }
    }

    /// Maximum error to pass (guide, sections 6.1, 3.2 and 6.3).
    #[must_use]
    pub fn threshold(self) -> f64 {
        match self {
            Check::CrossValidation => 0.15,
            Check::ProductionPercentiles => 0.10,
            Check::Scaling => 0.20,
        }
    }

    /// Measurements that it needs, for display.
    #[must_use]
    pub fn required_measurements(self) -> &'static str {
        match self {
            Check::CrossValidation => "throughput or time per output token of any configuration",
            Check::ProductionPercentiles => "p50_ms, p95_ms, p99_ms of served requests",
            Check::Scaling => "throughput of one workload with at least two different numbers of accelerators",
        }
    }
}

/// A check and the measurements it is based on.
#[derive(Debug, Clone)]
pub struct CheckResult {
    /// The check.
    pub check: Check,
    /// Measured metrics that it evaluates.
    pub rows: Vec<EvaluatedMetric>,
}

impl CheckResult {
    /// Measurements that fail the check.
    pub fn failures(&self) -> impl Iterator<Item = &EvaluatedMetric> {
        let threshold = self.check.threshold();
        // Written so that NaN fails.
        self.rows.iter().filter(move |row| !matches!(row.error_before().abs(), error if error < threshold))
    }

    /// Whether the check passes; `None` without data.
    #[must_use]
    pub fn passes(&self) -> Option<bool> {
        (!self.rows.is_empty()).then(|| self.failures().next().is_none())
    }

    /// Largest relative error.
    #[must_use]
    pub fn worst(&self) -> Option<f64> {
        let errors = self.rows.iter().map(EvaluatedMetric::error_before);
        errors.max_by(|a, b| a.abs().total_cmp(&b.abs()))
    }

    /// Mean relative error: a bias if it is far from zero.
    #[must_use]
    pub fn bias(&self) -> Option<f64> {
        let sum: f64 = self.rows.iter().map(EvaluatedMetric::error_before).sum();
        (!self.rows.is_empty()).then(|| sum / self.rows.len() as f64)
    }
}

/// Returns all checks for the predictions of one engine.
#[must_use]
pub fn checks(rows: &[Observation], judged: &[EvaluatedMetric], engine: Engine) -> Vec<CheckResult> {
    let own: Vec<&EvaluatedMetric> = judged.iter().filter(|one| one.engine == engine).collect();
    let rate = |one: &EvaluatedMetric| one.figure == PredictedMetric::TokensPerSec;
    // Runs that differ only in size.
    const IGNORED_SETTINGS: [&str; 10] =
        ["num_gpus", "tp", "pp", "dp", "cp", "vpp", "sp", "global_batch", "hardware", "concurrency"];
    let mut sizes: BTreeMap<String, Vec<(u64, &str)>> = BTreeMap::new();
    for row in rows {
        if let Some(n) = row.accelerators() {
            sizes
                .entry(format!("{:?} {}", row.mode(), row.configuration_key(&IGNORED_SETTINGS)))
                .or_default()
                .push((n as u64, &row.source));
        }
    }
    let scaled: Vec<&str> = sizes
        .values()
        .filter(|runs| runs.iter().any(|(n, _)| Some(n) != runs.first().map(|(n, _)| n)))
        .flatten()
        .map(|(_, source)| *source)
        .collect();
    Check::ALL
        .into_iter()
        .map(|check| {
            let wanted = |one: &&&EvaluatedMetric| match check {
                Check::CrossValidation => rate(one) || one.figure == PredictedMetric::TpotMs,
                Check::ProductionPercentiles => {
                    matches!(one.figure, PredictedMetric::P50Ms | PredictedMetric::P95Ms | PredictedMetric::P99Ms)
                }
                Check::Scaling => rate(one) && scaled.contains(&one.source.as_str()),
            };
            CheckResult { check, rows: own.iter().filter(wanted).map(|one| (*one).clone()).collect() }
        })
        .collect()
}

/// Age of a parameter, and the action that the guide's calendar requires.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Age {
    /// Path of the parameter in the profile.
    pub path: String,
    /// Date of the measurement.
    pub date: Option<String>,
    /// Days since then.
    pub days: Option<i64>,
    /// Action that is due.
    pub due: RequiredAction,
}

/// Action required by the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequiredAction {
    /// No action.
    Nothing,
    /// A spot check: older than a month.
    SpotCheck,
    /// Full recalibration: older than a quarter.
    Recalibration,
    /// Calibration: never measured, or the date is missing.
    Calibration,
}

impl RequiredAction {
    /// Text for display.
    #[must_use]
    pub fn described(self) -> &'static str {
        match self {
            RequiredAction::Nothing => "fresh",
            RequiredAction::SpotCheck => "spot check due (monthly)",
            RequiredAction::Recalibration => "full recalibration due (quarterly)",
            RequiredAction::Calibration => "never calibrated",
        }
    }
}

/// A month and a quarter, days.
const MONTH: i64 = 31;
const QUARTER: i64 = 92;

/// Entries of the guide's calendar (section 7), independent of age.
pub const CALENDAR: [&str; 4] = [
    "monthly: spot-check B_base, p_node_nominal and one workload",
    "quarterly: repeat the full calibration",
    "after hardware changes: repeat all measurements",
    "after software updates: repeat the measurements for delta_rho_* and the efficiency factors",
];

/// Returns the age of every calibrated parameter, or a single entry for all if none was calibrated.
#[must_use]
pub fn ages(profile: Option<&Profile>, today: &str) -> Vec<Age> {
    let calibration = profile.and_then(|profile| profile.calibration.as_deref());
    let never = |path: &str| Age { path: path.to_owned(), date: None, days: None, due: RequiredAction::Calibration };
    let Some(calibration) = calibration.filter(|calibration| !calibration.parameters.is_empty()) else {
        return vec![never("all")];
    };
    let today: Option<jiff::civil::Date> = today.parse().ok();
    let age = |path: &str, date: Option<&String>| {
        let then: Option<jiff::civil::Date> = date.and_then(|date| date.parse().ok());
        let days = today.zip(then).map(|(today, then)| i64::from(today.since(then).map_or(0, |span| span.get_days())));
        let due = match days {
            None => RequiredAction::Calibration,
            Some(days) if days > QUARTER => RequiredAction::Recalibration,
            Some(days) if days > MONTH => RequiredAction::SpotCheck,
            Some(_) => RequiredAction::Nothing,
        };
        Age { path: path.to_owned(), date: date.cloned(), days, due }
    };
    let entries = calibration.parameters.iter();
    entries.map(|one| age(&one.path, one.date.as_ref().or(calibration.date.as_ref()))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use atlas_document::{Diagnostics, parse};

    fn profile(date: &str) -> Profile {
        let file = "p.yaml".into();
        let mut problems = Diagnostics::new();
        let text = format!(
            "efficiency: {{ training: {{ compute: 1.1 }} }}\ncalibration:\n  date: \"{date}\"\n  parameters:\n    \
             efficiency.training.compute: {{ value: 1.1, n: 3 }}\n"
        );
        let node = parse::parse(&file, &text, &mut problems).unwrap();
        Profile::decode(&file, "p", &node, &mut problems).unwrap()
    }

    #[test]
    fn calibration_age_determines_what_is_due() {
        for (date, due) in [
            ("2026-06-20", RequiredAction::Nothing),
            ("2026-05-15", RequiredAction::SpotCheck),
            ("2026-01-01", RequiredAction::Recalibration),
            ("soon", RequiredAction::Calibration),
        ] {
            assert_eq!(ages(Some(&profile(date)), "2026-07-01")[0].due, due, "{date}");
        }
        assert_eq!(ages(None, "2026-07-01")[0].due, RequiredAction::Calibration);
    }
}
