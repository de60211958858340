//! What a reader of this model's numbers must know: its weaknesses where they bear on the scenario at hand.

use crate::scenario::Scenario;
use crate::spec::Mode;

/// Notes on an estimate of this engine, most important first.
#[must_use]
pub fn notes(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    let c = &scenario.coefficients;
    let shape = &scenario.base.shape;
    notes.push(
        "calibrated model: throughput scales with accelerators and utilisation, not with the size of the model"
            .to_owned(),
    );
    let wanted = shape.tp * shape.pp * shape.dp;
    let have = scenario.accelerators();
    if wanted > have {
        notes.push(format!(
            "tp × pp × dp = {wanted} needs more than the target's {have} accelerators; this model does not check"
        ));
    }
    let peak = c.peak_tokens_factor * shape.hidden * shape.layers;
    if peak > scenario.memory_gb_per_accel {
        notes.push(format!(
            "memory is clipped at the {} GB an accelerator has; the formula says {peak:.0} GB, so it may not fit",
            scenario.memory_gb_per_accel
        ));
    }
    if shape.mode == Mode::Inference {
        notes.push(format!(
            "p50 is the profile's floor of {} ms for any fast accelerator; it does not grow with the output",
            c.lat_min
        ));
    }
    if scenario.num_nodes > 1.0 {
        notes.push(
            "cost and power count all nodes; records keep the founding figure of one node's cost as `parity`"
                .to_owned(),
        );
    }
    notes
}
