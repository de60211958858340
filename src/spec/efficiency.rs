//! Efficiency factors of the analytical engine: how much better or worse than the shipped constants a target's own
//! stack does, by what limits it. `atlas calibrate` finds them; a target or a profile carries them.

use super::decode::{Bounds, Fields};

/// Factors on four groups of the engine's constants; 1 leaves them as they ship, 1.1 is a tenth faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factors {
    /// Share of the arithmetic peak that matrix products and attention sustain.
    pub compute: f64,
    /// Share of the memory bandwidth.
    pub memory: f64,
    /// Rate and promptness of collectives.
    pub network: f64,
    /// Speed of launches and of everything else the host does.
    pub host: f64,
}

impl Default for Factors {
    fn default() -> Factors {
        Factors { compute: 1.0, memory: 1.0, network: 1.0, host: 1.0 }
    }
}

impl Factors {
    /// Their names, in order.
    pub const NAMES: [&'static str; 4] = ["compute", "memory", "network", "host"];
    /// What a file may say: beyond it no calibration can be meant.
    pub const BOUNDS: Bounds = Bounds { min: 0.2, max: 5.0, whole: false };

    /// All of them, in the order of [`Factors::NAMES`].
    #[must_use]
    pub fn all(&self) -> [f64; 4] {
        [self.compute, self.memory, self.network, self.host]
    }

    /// From all of them.
    #[must_use]
    pub fn of([compute, memory, network, host]: [f64; 4]) -> Factors {
        Factors { compute, memory, network, host }
    }

    fn read(fields: &mut Fields<'_>) -> Factors {
        let read = Factors::NAMES.map(|name| fields.number(name, Factors::BOUNDS).unwrap_or(1.0));
        Factors::of(read)
    }
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
            training: section.map("training", Factors::read).unwrap_or_default(),
            serving: section.map("serving", Factors::read).unwrap_or_default(),
        })
    }
}
