//! Two fair ways to compare targets: with the same knobs, or each with its own best ones under the same constraints,
//! which [`super::optimise()`] finds from what [`super::optimise::freed`] leaves free.

use crate::knob::{Knob, Setting};
use crate::scenario::Scenario;
pub use atlas_core::plan::Methodology;

/// Knobs that differ between the scenarios that they affect, with their values; `None` where they have no effect.
#[must_use]
pub fn differences(scenarios: &[&Scenario]) -> Vec<(Knob, Vec<Option<Setting>>)> {
    let values = |knob: Knob| -> Vec<Option<Setting>> {
        scenarios.iter().map(|scenario| scenario.heeds(knob).then(|| scenario.get(knob))).collect()
    };
    Knob::all()
        .map(|knob| (knob, values(knob)))
        .filter(|(_, values)| values.windows(2).any(|pair| matches!(pair, [a, b] if a != b)))
        // Layers of the end stages follow from the layout, which is listed.
        .filter(|(knob, _)| {
            let stages = matches!(knob, Knob::FirstLayers | Knob::LastLayers);
            !stages || scenarios.iter().any(|scenario| !scenario.follows(*knob))
        })
        .collect()
}
