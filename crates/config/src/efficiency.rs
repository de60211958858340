//! Efficiency factors of the analytical engine: performance of a target's software relative to the built-in constants,
//! by limiting resource. `atlas calibrate` fits them; targets and profiles state them.

use atlas_document::decode::{Bounds, Fields};
pub use atlas_perf::efficiency::Factors;

/// Accepted range of a factor.
pub const BOUNDS: Bounds = Bounds { min: 0.2, max: 5.0, whole: false };

fn factors(fields: &mut Fields<'_>) -> Factors {
    Factors::of(Factors::NAMES.map(|name| fields.number(name, BOUNDS).unwrap_or(1.0)))
}

/// Factors of training frameworks and of serving engines.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Efficiency {
    /// In training.
    pub training: Factors,
    /// In serving.
    pub serving: Factors,
}

impl Efficiency {
    /// Reads the optional section `efficiency`.
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Efficiency> {
        fields.map("efficiency", |section| Efficiency {
            training: section.map("training", factors).unwrap_or_default(),
            serving: section.map("serving", factors).unwrap_or_default(),
        })
    }
}
