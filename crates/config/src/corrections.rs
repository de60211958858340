//! Corrections of the analytical engine's metrics, learned from a few runs on one cluster. `atlas calibrate` writes
//! them to a profile. They apply to scenarios on the accelerator of the runs.

use atlas_core::math;
use std::sync::Arc;

use atlas_document::decode::{Bounds, Fields};
use atlas_document::node::Node;

/// A metric that can be corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Tokens per second of a training run.
    Training,
    /// Tokens or requests per second of serving.
    Serving,
    /// Time per output token.
    Tpot,
    /// Time to first token.
    Ttft,
}

impl Quantity {
    /// All quantities.
    pub const ALL: [Quantity; 4] = [Quantity::Training, Quantity::Serving, Quantity::Tpot, Quantity::Ttft];

    /// Key in profiles.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Quantity::Training => "training_throughput",
            Quantity::Serving => "serving_throughput",
            Quantity::Tpot => "tpot",
            Quantity::Ttft => "ttft",
        }
    }

    /// Name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::Training => "training throughput",
            Quantity::Serving => "serving throughput",
            Quantity::Tpot => "time per output token",
            Quantity::Ttft => "time to first token",
        }
    }
}

/// A class of operators, by limiting resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Matrix multiplications and attention.
    Compute,
    /// Memory traffic.
    Memory,
    /// Communication, and waiting for other pipeline stages.
    Network,
    /// Launches, scheduling and all other host work.
    Host,
}

impl Class {
    /// All classes, in the order of [`Features::shares`].
    pub const ALL: [Class; 4] = [Class::Compute, Class::Memory, Class::Network, Class::Host];

    /// Name in profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Class::Compute => "compute",
            Class::Memory => "memory",
            Class::Network => "network",
            Class::Host => "host",
        }
    }
}

/// Features by which a scenario is compared with measured runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features<'a> {
    /// Key of the accelerator in the catalog.
    pub accelerator: &'a str,
    /// Software family, without its release.
    pub software: &'a str,
    /// Name of the model.
    pub model: &'a str,
    /// Shares of the time by class of operator, in the order of [`Class::ALL`].
    pub shares: [f64; 4],
    /// The configuration as numbers.
    pub shape: Shape,
    /// Uncertainty of the shipped estimate: the wider half of its 90 % interval, in natural logarithms.
    pub uncertainty: f64,
}

/// Natural logarithms of the numbers that describe a configuration: accelerators, layers × hidden size², tokens of a
/// sequence or prompt, output tokens, sequences of a micro-batch or of a replica's batch, tensor-parallel ranks,
/// pipeline stages.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shape(pub [f64; 7]);

impl Shape {
    /// Sum of the absolute differences: 0.7 for a factor of two in one of the numbers.
    #[must_use]
    pub fn distance(&self, other: &Shape) -> f64 {
        self.0.iter().zip(other.0).map(|(a, b)| (a - b).abs()).sum()
    }
}

/// A measured configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// Key of the accelerator in the catalog.
    pub accelerator: Arc<str>,
    /// Software family.
    pub software: Arc<str>,
    /// The configuration as numbers.
    pub shape: Shape,
    /// Decrease of similarity with distance: exp(−falloff × distance).
    pub falloff: f64,
}

impl Configuration {
    /// Similarity of a scenario: 1 for the same shape, 0 for other hardware or software.
    fn similarity(&self, features: &Features<'_>) -> f64 {
        if *self.accelerator != *features.accelerator || *self.software != *features.software {
            return 0.0;
        }
        math::exp(-self.falloff * self.shape.distance(&features.shape))
    }
}

/// Subject of an effect. Effects are added on the logarithm of measured over estimated.
#[derive(Debug, Clone, PartialEq)]
pub enum Factor {
    /// All runs on the cluster.
    Cluster,
    /// Runs on this accelerator.
    Accelerator(Arc<str>),
    /// Runs with this software family.
    Software(Arc<str>),
    /// Runs of this model.
    Model(Arc<str>),
    /// Runs in proportion to the share of time of a class of operators.
    Class(Class),
    /// Runs with a similar configuration.
    Near(Configuration),
}

impl Factor {
    /// Weight of the effect for a scenario: 1 or 0 for groups, a share for classes, similarity for configurations.
    #[must_use]
    pub fn weight(&self, features: &Features<'_>) -> f64 {
        let same = |own: &Arc<str>, other: &str| f64::from(u8::from(**own == *other));
        match self {
            Factor::Cluster => 1.0,
            Factor::Accelerator(name) => same(name, features.accelerator),
            Factor::Software(name) => same(name, features.software),
            Factor::Model(name) => same(name, features.model),
            Factor::Class(class) => features.shares.get(*class as usize).copied().unwrap_or(0.0),
            Factor::Near(configuration) => configuration.similarity(features),
        }
    }

    /// Kind and name, as in profiles.
    #[must_use]
    pub fn kind_and_name(&self) -> (&'static str, Option<&str>) {
        match self {
            Factor::Cluster => ("cluster", None),
            Factor::Accelerator(name) => ("accelerator", Some(name)),
            Factor::Software(name) => ("software", Some(name)),
            Factor::Model(name) => ("model", Some(name)),
            Factor::Class(class) => (class.name(), None),
            Factor::Near(_) => (CONFIGURATION_KIND, None),
        }
    }

    fn of(kind: &str, name: Option<String>) -> Option<Factor> {
        let named = |make: fn(Arc<str>) -> Factor| name.clone().map(|name| make(name.into()));
        match kind {
            "cluster" => Some(Factor::Cluster),
            "accelerator" => named(Factor::Accelerator),
            "software" => named(Factor::Software),
            "model" => named(Factor::Model),
            _ => Class::ALL.into_iter().find(|class| class.name() == kind).map(Factor::Class),
        }
    }
}

/// Name of an effect of a configuration in profiles.
const CONFIGURATION_KIND: &str = "configuration";

/// Uncertainty to which effects are normalized: about that of training on well-measured hardware, ± 25 %.
pub const REFERENCE_UNCERTAINTY: f64 = 0.25;

/// Factor on effects for a shipped estimate with this uncertainty. With few measurements, a cluster can deviate more
/// from the estimate than with many.
#[must_use]
pub fn uncertainty_scale(uncertainty: f64, growth: f64) -> f64 {
    math::powf((uncertainty / REFERENCE_UNCERTAINTY).clamp(0.1, 10.0), growth)
}

/// Standard deviation, in natural logarithms, of the effect of a group without runs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UnseenDeviation {
    /// For other accelerators.
    pub accelerator: f64,
    /// For other software families.
    pub software: f64,
    /// For other models.
    pub model: f64,
}

/// The correction of one quantity: a posterior over effects.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Correction {
    /// Number of configurations from which it was learned.
    pub runs: usize,
    /// Effects and their means.
    pub effects: Vec<(Factor, f64)>,
    /// Covariance of the effects, by row.
    pub covariance: Vec<Vec<f64>>,
    /// Standard deviations of groups without runs.
    pub unseen: UnseenDeviation,
    /// Standard deviation of single configurations around their effects.
    pub residual: f64,
    /// Half of a 90 % interval, in standard deviations.
    pub reach: f64,
    /// Effects are proportional to the uncertainty of the shipped estimate to the power of this number.
    pub growth: f64,
}

/// A correction for one scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    /// Factor on the shipped estimate.
    pub factor: f64,
    /// Half of the 90 % interval of the corrected metric, in natural logarithms.
    pub half_width: f64,
}

/// Corrections that are included in an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustments {
    /// Correction of the throughput.
    pub throughput: Option<Adjustment>,
    /// Correction of TPOT.
    pub tpot: Option<Adjustment>,
    /// Correction of TTFT.
    pub ttft: Option<Adjustment>,
}

impl Correction {
    /// Computes the correction for a scenario with these features.
    #[must_use]
    pub fn at(&self, features: &Features<'_>) -> Adjustment {
        let (mut mean, mut variance) = (0.0, 0.0);
        let mut seen = [false; 3];
        for ((factor, value), row) in self.effects.iter().zip(&self.covariance) {
            let weight = factor.weight(features);
            if weight == 0.0 {
                continue;
            }
            match factor {
                Factor::Accelerator(_) => seen[0] = true,
                Factor::Software(_) => seen[1] = true,
                Factor::Model(_) => seen[2] = true,
                Factor::Cluster | Factor::Class(_) | Factor::Near(_) => {}
            }
            mean += weight * value;
            let along = |((other, _), cell): (&(Factor, f64), &f64)| other.weight(features) * cell;
            variance += weight * self.effects.iter().zip(row).map(along).sum::<f64>();
        }
        for (seen, sd) in seen.into_iter().zip([self.unseen.accelerator, self.unseen.software, self.unseen.model]) {
            if !seen {
                variance += sd * sd;
            }
        }
        let scale = uncertainty_scale(features.uncertainty, self.growth);
        // At least the spread of configurations around their effects.
        let sd = math::hypot(scale * variance.max(0.0).sqrt(), self.residual);
        Adjustment { factor: math::exp(scale * mean), half_width: self.reach * sd }
    }
}

/// All corrections of a profile.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Corrections {
    /// Accelerator of the runs; estimates for other hardware are not corrected.
    pub accelerator: Arc<str>,
    /// Names of the runs.
    pub runs: Vec<String>,
    /// Corrections in the order of [`Quantity::ALL`].
    all: [Option<Correction>; 4],
}

impl Corrections {
    /// Creates an empty set of corrections from runs on an accelerator.
    #[must_use]
    pub fn on(accelerator: Arc<str>, runs: Vec<String>) -> Corrections {
        Corrections { accelerator, runs, all: Default::default() }
    }

    /// The correction of a quantity, if runs measured it.
    #[must_use]
    pub fn of(&self, quantity: Quantity) -> Option<&Correction> {
        self.all.get(quantity as usize)?.as_ref()
    }

    /// Sets the correction of a quantity.
    pub fn set(&mut self, quantity: Quantity, correction: Correction) {
        if let Some(slot) = self.all.get_mut(quantity as usize) {
            *slot = Some(correction);
        }
    }

    /// Whether there are no corrections.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.iter().all(Option::is_none)
    }

    /// Reads the optional section `corrections`.
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Corrections> {
        fields.map("corrections", |section| {
            let accelerator = section.required_text("accelerator").unwrap_or_default();
            let mut corrections = Corrections::on(accelerator.into(), section.texts("runs"));
            for quantity in Quantity::ALL {
                if let Some(correction) = section.map(quantity.key(), correction) {
                    corrections.set(quantity, correction);
                }
            }
            corrections
        })
    }
}

/// Limits factors to e^3, and variances accordingly.
const LOGARITHM: Bounds = Bounds { min: -3.0, max: 3.0, whole: false };
const DEVIATION: Bounds = Bounds { min: 0.0, max: 3.0, whole: false };
const EXPONENT: Bounds = Bounds { min: 0.0, max: 1.0, whole: false };
const COVARIANCE: Bounds = Bounds { min: -10.0, max: 10.0, whole: false };
const LOGARITHM_OF_COUNT: Bounds = Bounds { min: -20.0, max: 80.0, whole: false };

fn correction(section: &mut Fields<'_>) -> Correction {
    let runs = section.required_number("runs", Bounds::COUNT).unwrap_or(1.0) as usize;
    let residual = section.required_number("residual", DEVIATION).unwrap_or(0.0);
    let reach = section.required_number("reach", Bounds { min: 0.5, max: 10.0, whole: false }).unwrap_or(1.0);
    let unseen = section.required_map("unseen", &["accelerator", "software", "model"], |unseen| UnseenDeviation {
        accelerator: unseen.required_number("accelerator", DEVIATION).unwrap_or(0.0),
        software: unseen.required_number("software", DEVIATION).unwrap_or(0.0),
        model: unseen.required_number("model", DEVIATION).unwrap_or(0.0),
    });
    // Missing in profiles of earlier versions.
    let growth = section.number("growth", EXPONENT).unwrap_or(0.0);
    let effects = effects(section);
    let covariance = covariance(section, effects.len());
    Correction { runs, effects, covariance, unseen: unseen.unwrap_or_default(), residual, reach, growth }
}

fn effects(section: &mut Fields<'_>) -> Vec<(Factor, f64)> {
    let Some(list) = section.node("effects") else {
        section.missing("effects");
        return Vec::new();
    };
    let items = list.items().unwrap_or_default();
    if items.is_empty() {
        section.error("effects", format!("found {}, expected a list of effects", list.describe()), None);
    }
    let file = Arc::clone(section.file());
    let mut effects = Vec::new();
    for item in items {
        let problems = section.diagnostics();
        let Some(mut fields) = Fields::open(&file, "corrections.effects", item, problems) else { continue };
        let kind = fields.required_text("of").unwrap_or_default();
        let name = fields.text("name");
        let value = fields.required_number("value", LOGARITHM).unwrap_or(0.0);
        let factor = if kind == CONFIGURATION_KIND { configuration(&mut fields) } else { Factor::of(&kind, name) };
        match factor {
            Some(factor) => effects.push((factor, value)),
            None if kind == CONFIGURATION_KIND => fields.error(
                "of",
                "expected `accelerator`, `software`, `falloff` and `at`, a list of 7 numbers".to_owned(),
                Some("run `atlas calibrate` again".to_owned()),
            ),
            None => fields.error(
                "of",
                format!("found \"{kind}\", expected cluster, configuration, compute, memory, network or host, or with a `name` accelerator, software or model"),
                None,
            ),
        }
        fields.finish();
    }
    effects
}

fn configuration(fields: &mut Fields<'_>) -> Option<Factor> {
    let accelerator = fields.text("accelerator");
    let software = fields.text("software");
    let falloff = fields.number("falloff", Bounds { min: 0.0, max: 100.0, whole: false });
    let at = fields.node("at")?;
    let at: Vec<f64> =
        at.items()?.iter().filter_map(Node::number).filter(|value| LOGARITHM_OF_COUNT.contains(*value)).collect();
    Some(Factor::Near(Configuration {
        accelerator: accelerator?.into(),
        software: software?.into(),
        shape: Shape(at.try_into().ok()?),
        falloff: falloff?,
    }))
}

/// Reads a symmetric matrix with one row per effect.
fn covariance(section: &mut Fields<'_>, size: usize) -> Vec<Vec<f64>> {
    let Some(list) = section.node("covariance") else {
        section.missing("covariance");
        return Vec::new();
    };
    let row = |row: &Node| -> Option<Vec<f64>> {
        let numbers: Vec<f64> =
            row.items()?.iter().filter_map(Node::number).filter(|value| COVARIANCE.contains(*value)).collect();
        (numbers.len() == size).then_some(numbers)
    };
    let rows: Vec<Vec<f64>> = list.items().unwrap_or_default().iter().filter_map(row).collect();
    let symmetric = rows.iter().enumerate().all(|(i, row)| {
        row.iter().enumerate().all(|(j, cell)| {
            rows.get(j).and_then(|other| other.get(i)).is_some_and(|other| (other - cell).abs() <= 1e-9)
                && (i != j || *cell >= 0.0)
        })
    });
    if rows.len() != size || !symmetric {
        let message = format!("expected a symmetric matrix of {size} rows of {size} numbers, one for each effect");
        section.error("covariance", message, Some("run `atlas calibrate` again".to_owned()));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(growth: f64, uncertainty: f64) -> Adjustment {
        let correction = Correction {
            effects: vec![(Factor::Cluster, 0.2)],
            covariance: vec![vec![0.01]],
            residual: 0.05,
            reach: 1.645,
            growth,
            ..Correction::default()
        };
        let shape = Shape::default();
        correction.at(&Features { accelerator: "", software: "", model: "", shares: [0.0; 4], shape, uncertainty })
    }

    #[test]
    fn uncertain_estimates_are_corrected_more_and_keep_wider_intervals() {
        let (certain, uncertain) = (at(0.5, 0.25), at(0.5, 1.0));
        assert!((certain.factor - math::exp(0.2)).abs() < 1e-12 && (uncertain.factor - math::exp(0.4)).abs() < 1e-12);
        assert!((certain.half_width - 1.645 * math::hypot(0.1, 0.05)).abs() < 1e-12);
        assert!((uncertain.half_width - 1.645 * math::hypot(0.2, 0.05)).abs() < 1e-12);
        assert_eq!(at(0.0, 0.25), at(0.0, 1.0), "a profile without growth corrects all alike");
    }
}
