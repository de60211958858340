//! Default values of an axis around the current value of a knob, for curves and heat maps.

use atlas_core::math;
use std::sync::Arc;

use crate::knob::{Knob, Setting, Step, ValueType};
use crate::scenario::Scenario;
use atlas_core::plan::Engine;
use atlas_core::sort;
use atlas_document::decode::Bounds;

use super::space::{Axis, divisors, doublings, stages};

/// Number of doublings and halvings from the current value of a count.
const MAX_DOUBLINGS: u32 = 6;
/// Maximum number of words of a choice; all knobs have fewer.
const MAX_CHOICES: usize = 64;

/// Values of a knob around its current one, which is included: all words and switches, ranks of a layout up to the
/// number of accelerators, counts in powers of two, real numbers in `steps` steps over their range or from a quarter to
/// four times their value. `None` if there is nothing to vary: the seed, a knob without effect in this scenario, a
/// single word.
#[must_use]
pub fn axis_around(knob: Knob, scenario: &Scenario, fabrics: &[(Arc<str>, f64)], steps: u32) -> Option<Axis> {
    if !scenario.uses(knob) {
        return None;
    }
    let now = scenario.get(knob);
    let mut values: Vec<Setting> = match (knob.spec().kind, &now) {
        (ValueType::Toggle, _) => vec![Setting::Toggle(false), Setting::Toggle(true)],
        // Simulations take too long for the points of a curve.
        (ValueType::Choice(words), _) if knob == Knob::Engine => {
            let quick = |word: &&&str| Engine::named(word).is_some_and(|engine| !engine.simulates());
            words.iter().filter(quick).map(|word| Setting::Choice((*word).into())).collect()
        }
        (ValueType::Choice(words), _) => {
            words.iter().take(MAX_CHOICES).map(|word| Setting::Choice((*word).into())).collect()
        }
        (ValueType::Fabric, _) => fabrics.iter().map(|(name, _)| Setting::Choice(name.clone())).collect(),
        (ValueType::Number { bounds, step }, Setting::Number(now)) => {
            numbers(knob, scenario, bounds, step, *now, steps.max(2)).into_iter().map(Setting::Number).collect()
        }
        _ => return None,
    };
    values.dedup();
    (values.len() > 1).then_some(Axis { knob, values })
}

fn numbers(knob: Knob, scenario: &Scenario, bounds: Bounds, step: Step, now: f64, steps: u32) -> Vec<f64> {
    let model = scenario.model.unwrap_or_default();
    let devices = scenario.devices();
    let parts = |of: f64| -> Vec<f64> {
        if of >= 1.0 { divisors(of).filter(|part| *part <= devices).collect() } else { doublings(1.0, devices) }
    };
    let mut values = match (knob, step) {
        // Ranks that split the model: only divisors are valid layouts.
        (Knob::Tp, _) => parts(f64::from(model.heads)),
        (Knob::Pp, _) => stages(model.depth(), devices, scenario.mode()),
        (Knob::Vpp, _) => {
            let max_vpp = (model.depth() + 2.0) / scenario.base.shape.pp;
            (1..=8)
                .map(f64::from)
                .chain(divisors(model.depth().max(1.0)))
                .filter(|vpp| *vpp <= max_vpp.max(1.0))
                .collect()
        }
        (Knob::Ep, _) => parts(f64::from(model.experts)),
        (Knob::Cp | Knob::Dp, _) => doublings(1.0, devices),
        (_, Step::Double) => {
            let max_factor = math::exp2(f64::from(MAX_DOUBLINGS));
            let from = if now > 0.0 { math::exp2(math::log2(now / max_factor).ceil()) } else { 1.0 };
            let from = if bounds.whole { from.max(1.0) } else { from };
            let mut values = doublings(from, (now * max_factor).max(max_factor));
            if bounds.contains(0.0) {
                values.insert(0, 0.0);
            }
            values
        }
        (_, Step::Add(by)) if bounds.whole => {
            (0..=steps).map(|i| now + by * (f64::from(i) - f64::from(steps / 2))).collect()
        }
        // A share: its whole range.
        (_, Step::Add(_)) if bounds.max <= 1.0 => {
            (0..=steps).map(|i| bounds.min + (bounds.max - bounds.min) * f64::from(i) / f64::from(steps)).collect()
        }
        (_, Step::Add(by)) if now <= 0.0 => (0..=steps).map(|i| by * f64::from(i)).collect(),
        (_, Step::Add(_)) => {
            (0..=steps).map(|i| now * math::powf(4f64, 2.0 * f64::from(i) / f64::from(steps) - 1.0)).collect()
        }
    };
    for value in &mut values {
        *value = if bounds.whole { value.round() } else { rounded(*value) };
    }
    values.push(now);
    values.retain(|value| bounds.contains(*value));
    sort::numbers(&mut values);
    values.dedup();
    values
}

/// Rounds to three digits, so that values on an axis are easy to read and type.
fn rounded(value: f64) -> f64 {
    let scale = math::powf(10f64, 2.0 - math::log10(value.abs().max(1e-12)).floor());
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    use crate::scenario::Parts;
    use crate::testing;

    fn each(check: impl Fn(&Scenario, &Parts, Knob, Option<Axis>)) {
        for (target, workload) in [("h100-sxm-8", "llama3.1-70b-serve"), ("NVIDIA_H100_8x_NVLink", "gpt5_1t_train")] {
            let (parts, scenario) = testing::scenario(target, workload, &[]);
            for knob in Knob::all() {
                check(&scenario, &parts, knob, axis_around(knob, &scenario, parts.fabrics(), 32));
            }
        }
    }

    #[test]
    fn nearby_values_are_valid_and_include_the_current_one() {
        each(|scenario, parts, knob, axis| {
            let Some(axis) = axis else { return };
            assert!(axis.values.contains(&scenario.get(knob)), "{axis:?}");
            assert!((2..=80).contains(&axis.values.len()), "{axis:?}");
            for value in &axis.values {
                assert_eq!(scenario.clone().set(knob, value, parts), Ok(()), "{} = {value}", knob.name());
            }
        });
    }

    #[test]
    fn only_used_knobs_except_the_seed_have_a_sweep_axis() {
        each(|scenario, _, knob, axis| {
            let sweepable = scenario.uses(knob) && knob != Knob::Seed;
            assert!(axis.is_none() || sweepable, "{}", knob.name());
            if [Knob::Tp, Knob::Concurrency, Knob::HourlyUsd, Knob::CudaGraphs].contains(&knob) {
                assert_eq!(axis.is_some(), sweepable, "{}", knob.name());
            }
        });
    }
}
