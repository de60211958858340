//! Efficiency factors of the analytical engine: how much better or worse than the shipped constants a target's own
//! stack does, by what limits it. `atlas calibrate` finds them; a target or a profile carries them.

use atlas_document::decode::{Bounds, Fields};
pub use atlas_perf::efficiency::Factors;

/// What a file may say of a factor: beyond it no calibration can be meant.
pub const BOUNDS: Bounds = Bounds { min: 0.2, max: 5.0, whole: false };

fn factors(fields: &mut Fields<'_>) -> Factors {
    Factors::of(Factors::NAMES.map(|name| fields.number(name, BOUNDS).unwrap_or(1.0)))
}

/// The factors of both kinds of software: training frameworks and serving engines.
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
