//! Efficiency factors of the analytical engine for one target, by Bayesian shrinkage: the prior is that the shipped
//! constants hold, as well as they hold for the targets they were validated on; each configuration measured pulls the
//! factors towards itself by what it can tell. Three measurements already help, and none can make the factors absurd:
//! the prior holds against few, a heavy-tailed likelihood against wild ones, and a range against all.

use std::collections::BTreeMap;

use super::observation::{Measured, Observation};
use super::parameter::files;
use super::predict::{Bench, Figure, interval, predicted};
use super::statistics::inverse;
use atlas_config::{Efficiency, Factors, Mode};
use atlas_plan::scenario::Scenario;

/// Share of the variance of logarithmic errors that targets and sources differ by, rather than the configurations of one:
/// what a factor can take away. Origin: the shipped measurements in groups of one source and accelerator, scaled median
/// absolute deviations of the groups' medians (0.147 in training, 0.247 in serving) and within groups (0.112, 0.192);
/// a test works them out again.
pub const SHARE_OF_TARGETS: [f64; 2] = [0.64, 0.62];
/// Norm of the sensitivities of the throughput to the four factors, typical of the shipped measurements: what a standard
/// deviation of the throughput is divided by to give one of the factors.
const SENSITIVITY: [f64; 2] = [0.77, 0.61];
/// Standard deviations from the middle to the end of a 90 % interval.
const OF_90_PERCENT: f64 = 1.645;

/// What is known before anything is measured on the target: standard deviations of logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// Of each factor.
    pub factor: f64,
    /// Of what is a configuration's own, and no factor of the target explains.
    pub configuration: f64,
}

impl Prior {
    /// From the standard deviation of the engine's errors, which its 90 % interval tells regime by regime.
    #[must_use]
    pub fn of(mode: Mode, spread: f64) -> Prior {
        let [training, serving] = SHARE_OF_TARGETS;
        let [sensitivity_of_training, sensitivity_of_serving] = SENSITIVITY;
        let (share, sensitivity) = match mode {
            Mode::Training => (training, sensitivity_of_training),
            Mode::Inference => (serving, sensitivity_of_serving),
        };
        Prior { factor: spread * share.sqrt() / sensitivity, configuration: spread * (1.0 - share).sqrt() }
    }
}

/// The standard deviation of the engine's errors on a scenario's figure, by its 90 % interval.
#[must_use]
pub fn spread(scenario: &Scenario, figure: Figure) -> f64 {
    let usual = if scenario.mode() == Mode::Training { 0.106 } else { 0.44 };
    interval(scenario, figure).map_or(usual, |[low, high]| (high / low).ln() / 2.0 / OF_90_PERCENT)
}

/// Range of a factor, whatever is measured: an effect beyond it is a wrong configuration, not a machine's own pace.
pub const RANGE: [f64; 2] = [0.5, 1.6];
/// Degrees of freedom of the likelihood (Student's t): heavy tails, so that a wild row weighs little.
const TAILS: f64 = 4.0;

/// The factors of one kind of software as they were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior {
    /// Training or inference.
    pub mode: Mode,
    /// The factors.
    pub factors: Factors,
    /// 95 % intervals of the factors.
    pub intervals: [[f64; 2]; 4],
    /// Covariance of their logarithms.
    pub covariance: Vec<Vec<f64>>,
    /// Configurations behind them.
    pub n: usize,
    /// Share of the squared logarithmic errors that the factors take away.
    pub r2: Option<f64>,
    /// Standard deviation of the logarithm of a factor before.
    pub prior: f64,
    /// Files behind them.
    pub sources: Vec<String>,
}

impl Posterior {
    /// Before anything is measured.
    #[must_use]
    pub fn before(mode: Mode, prior: &Prior) -> Posterior {
        let variance = prior.factor.powi(2);
        let covariance: Vec<Vec<f64>> =
            (0..4).map(|i| (0..4).map(|j| if i == j { variance } else { 0.0 }).collect()).collect();
        Posterior {
            mode,
            factors: Factors::default(),
            intervals: intervals(&[0.0; 4], &covariance),
            covariance,
            n: 0,
            r2: None,
            prior: prior.factor,
            sources: Vec::new(),
        }
    }
}

/// A configuration: its scenario, what of it was measured, and by how much that may be off.
#[derive(Debug, Clone)]
pub struct Case<'a> {
    /// The scenario.
    pub scenario: Scenario,
    /// The figure that is held against it.
    pub figure: Figure,
    /// The logarithm of what was measured.
    pub measured: f64,
    /// Variance of that, from the spread of the measurement.
    pub variance: f64,
    /// Standard deviation of the engine's errors on such scenarios.
    pub spread: f64,
    /// The rows behind it.
    pub rows: Vec<&'a Observation>,
}

/// Which figure tells the pace: throughput; of requests that come at a given rate, whose throughput is that rate, the
/// time of an output token.
#[must_use]
pub fn pace(row: &Observation) -> Option<(Figure, Measured)> {
    let offered = row.number("request_rate").is_some();
    let figures = if offered { &[Figure::TpotMs][..] } else { &[Figure::TokensPerSec, Figure::TpotMs] };
    figures.iter().find_map(|figure| Some((*figure, figure.measured(row)?)))
}

/// Variance of the logarithm of a measured figure, from what it says of its own spread.
#[must_use]
pub fn own_variance(measured: &Measured) -> f64 {
    let of_interval = measured.interval.map(|[low, high]| (high - low) / 2.0 / 1.96 / measured.value);
    let of_spread = || Some(measured.std? / measured.n?.max(1.0).sqrt() / measured.value);
    let sd = of_interval.or_else(of_spread).filter(|sd| sd.is_finite()).unwrap_or(0.0);
    sd * sd
}

/// The cases of all rows of a mode; rows of one configuration are one case, since they share what is peculiar to it.
/// Rows that the engine cannot answer are told, with the reason.
#[must_use]
pub fn cases<'a>(bench: &Bench<'_>, rows: &'a [Observation], mode: Mode) -> (Vec<Case<'a>>, Vec<(String, String)>) {
    let mut groups: BTreeMap<String, Vec<&'a Observation>> = BTreeMap::new();
    let own = rows.iter().filter(|row| row.switch("baseline") != Some(true) && row.mode() == mode);
    for row in own.filter(|row| pace(row).is_some()) {
        groups.entry(row.alike(&["hardware"])).or_default().push(row);
    }
    let (mut cases, mut refused) = (Vec::new(), Vec::new());
    for rows in groups.into_values() {
        let Some(first) = rows.first() else { continue };
        let scenario = match bench.analytical(first) {
            Ok(scenario) => scenario,
            Err(reason) => {
                refused.push((first.source.clone(), reason));
                continue;
            }
        };
        let figures: Vec<(Figure, Measured)> = rows.iter().filter_map(|row| pace(row)).collect();
        let Some((figure, _)) = figures.first().copied() else { continue };
        let same: Vec<Measured> =
            figures.iter().filter(|(other, _)| *other == figure).map(|(_, measured)| *measured).collect();
        let n = same.len() as f64;
        // The median of the repeats: one that went wrong does not count.
        let logs: Vec<f64> = same.iter().map(|measured| measured.value.ln()).collect();
        let centre = super::statistics::median(&logs);
        let between = logs.iter().map(|log| (log - centre).powi(2)).sum::<f64>() / (n - 1.0).max(1.0) / n;
        let variance = same.iter().map(own_variance).sum::<f64>() / (n * n) + between;
        if predicted(&scenario, figure).is_none() {
            refused.push((first.source.clone(), "the engine gives no figure for it".to_owned()));
            continue;
        }
        let spread = spread(&scenario, figure);
        cases.push(Case { scenario, figure, measured: centre, variance, spread, rows });
    }
    (cases, refused)
}

/// The logarithm of what is predicted with these logarithms of factors.
fn predicted_log(case: &Case<'_>, mode: Mode, logs: &[f64; 4]) -> Option<f64> {
    let mut scenario = case.scenario.clone();
    lay(&mut scenario.efficiency, mode, Factors::of(logs.map(f64::exp)));
    predicted(&scenario, case.figure).map(f64::ln)
}

/// Writes the factors of a mode.
pub fn lay(efficiency: &mut Efficiency, mode: Mode, factors: Factors) {
    match mode {
        Mode::Training => efficiency.training = factors,
        Mode::Inference => efficiency.serving = factors,
    }
}

/// How the logarithm of a case's figure follows the logarithms of the factors.
#[must_use]
pub fn sensitivities(case: &Case<'_>, mode: Mode, at: &[f64; 4]) -> Option<[f64; 4]> {
    const H: f64 = 0.02;
    let mut out = [0.0; 4];
    for (index, slot) in out.iter_mut().enumerate() {
        let moved = |by: f64| {
            let mut logs = *at;
            if let Some(log) = logs.get_mut(index) {
                *log += by;
            }
            predicted_log(case, mode, &logs)
        };
        *slot = (moved(H)? - moved(-H)?) / (2.0 * H);
    }
    Some(out)
}

/// Finds the factors of a mode: Gauss and Newton on the posterior, rows reweighted by their tails.
#[must_use]
pub fn find(cases: &[Case<'_>], mode: Mode) -> Posterior {
    let spreads: Vec<f64> = cases.iter().map(|case| case.spread).collect();
    let prior = Prior::of(mode, super::statistics::median(&spreads));
    let mut logs = [0.0_f64; 4];
    let [low, high] = RANGE.map(f64::ln);
    let mut covariance = Posterior::before(mode, &prior).covariance;
    for _ in 0..25 {
        let mut matrix: Vec<Vec<f64>> =
            (0..4).map(|i| (0..4).map(|j| if i == j { prior.factor.powi(-2) } else { 0.0 }).collect()).collect();
        let mut right: Vec<f64> = logs.iter().map(|log| -log / prior.factor.powi(2)).collect();
        for case in cases {
            let (Some(at), Some(slopes)) = (predicted_log(case, mode, &logs), sensitivities(case, mode, &logs)) else {
                continue;
            };
            let variance = Prior::of(mode, case.spread).configuration.powi(2) + case.variance;
            let residual = case.measured - at;
            let weight = (TAILS + 1.0) / (TAILS + residual * residual / variance) / variance;
            for ((row, slope), right) in matrix.iter_mut().zip(&slopes).zip(&mut right) {
                row.iter_mut().zip(&slopes).for_each(|(cell, other)| *cell += weight * slope * other);
                *right += weight * slope * residual;
            }
        }
        let Some(inverted) = inverse(matrix) else { break };
        let step: Vec<f64> = inverted.iter().map(|row| row.iter().zip(&right).map(|(a, b)| a * b).sum()).collect();
        covariance = inverted;
        let before = logs;
        for (log, step) in logs.iter_mut().zip(&step) {
            *log = (*log + step.clamp(-0.2, 0.2)).clamp(low, high);
        }
        if logs.iter().zip(&before).all(|(a, b)| (a - b).abs() < 1e-7) {
            break;
        }
    }
    let errors = |logs: &[f64; 4]| -> f64 {
        let residual = |case: &Case<'_>| Some((case.measured - predicted_log(case, mode, logs)?).powi(2));
        cases.iter().filter_map(residual).sum()
    };
    let before = errors(&[0.0; 4]);
    Posterior {
        mode,
        factors: Factors::of(logs.map(f64::exp)),
        intervals: intervals(&logs, &covariance),
        covariance,
        n: cases.len(),
        r2: (before > 0.0 && cases.len() > 1).then(|| 1.0 - errors(&logs) / before),
        prior: prior.factor,
        sources: files(cases.iter().flat_map(|case| case.rows.iter().copied())),
    }
}

fn intervals(logs: &[f64; 4], covariance: &[Vec<f64>]) -> [[f64; 2]; 4] {
    let mut out = [[1.0; 2]; 4];
    for (index, (slot, log)) in out.iter_mut().zip(logs).enumerate() {
        let variance = covariance.get(index).and_then(|row| row.get(index)).copied().unwrap_or(0.0);
        let half = 1.96 * variance.max(0.0).sqrt();
        *slot = [(log - half).exp(), (log + half).exp()];
    }
    out
}
