//! Copies between devices and host memory, if rollout, frozen models and training do not fit in device memory together.

use super::{Rollout, Training};
use crate::engine::answer::throttle;
use crate::estimate::MemoryPart;
use crate::scenario::Scenario;
use atlas_core::units::{BYTES_PER_GB, duration};

/// Bytes per second of a device's link to its host, if it is known.
fn host_link_rate(scenario: &Scenario) -> Option<f64> {
    let link = scenario.machine.and_then(|machine| machine.host.link_bw)?;
    let input = scenario.training_input(&scenario.base)?;
    Some(link * throttle::training(scenario, &input).link_fraction)
}

/// A note if the hosts lack memory for `bytes` of each device.
fn host_memory_note(what: &str, scenario: &Scenario, bytes: f64) -> Option<String> {
    let dies = scenario.machine.map_or(1.0, |machine| machine.dies);
    let needs = bytes * scenario.accelerators_per_node * dies / 1e9;
    let has = scenario.host_memory_gb.filter(|has| *has < needs)?;
    Some(format!("{what} need {needs:.0} GB of host memory per node, of {has:.0} GB (host_memory_gb)"))
}

/// Seconds per step to copy optimizer states and gradients of training to host memory and back, if they do not fit beside
/// the rollout on the same devices. Nothing moves where host and device share one memory.
pub(super) fn moves(training: &Training, rollout: &Rollout, notes: &mut Vec<String>) -> f64 {
    let scenario = &training.scenario;
    let (Some(trained), Some(served)) = (training.estimate.detail, rollout.estimate.detail) else { return 0.0 };
    let of = |part| trained.memory.parts.part(part);
    let states = of(MemoryPart::Optimizer) + of(MemoryPart::Gradients);
    let held = states + of(MemoryPart::Weights);
    let shared = scenario.machine.is_some_and(|machine| machine.host.unified);
    if shared || states <= 0.0 || served.memory.upper + held <= served.memory.capacity {
        return 0.0;
    }
    let gb = |bytes: f64| bytes / BYTES_PER_GB;
    let seconds = host_link_rate(scenario).map(|rate| 2.0 * states / rate);
    let time = seconds.map_or_else(
        || "takes a time that is unknown and not part of the estimate".to_owned(),
        |seconds| format!("takes {}", duration(seconds)),
    );
    notes.push(format!(
        "states of training ({:.1} GB per device) do not fit beside the rollout ({:.1} of {:.1} GB): copying optimizer \
         states and gradients to host memory and back {time}",
        gb(held),
        gb(served.memory.upper),
        gb(served.memory.capacity)
    ));
    notes.extend(host_memory_note("optimizer states and gradients", scenario, states));
    seconds.unwrap_or(0.0)
}

/// Seconds per step to load `models` frozen models with `weights` bytes per device each from host memory, if they do not
/// fit beside training.
pub(super) fn loading(training: &Training, models: f64, weights: f64, notes: &mut Vec<String>) -> f64 {
    let (scenario, Some(detail)) = (&training.scenario, training.estimate.detail.as_ref()) else { return 0.0 };
    let frozen = models * weights;
    let free = (detail.memory.capacity - detail.memory.upper).max(0.0);
    if frozen <= free {
        return 0.0;
    }
    let places = (free / weights).floor();
    // All places but one hold a model for good. Without a place, states of training are moved away and back.
    let moved = if places >= 1.0 { (models - places + 1.0) * weights } else { frozen + 2.0 * (weights - free) };
    let seconds = host_link_rate(scenario).map(|rate| moved / rate);
    let gb = |bytes: f64| bytes / BYTES_PER_GB;
    let time = seconds.map_or_else(
        || "the time to load them from host memory is unknown and not part of the estimate".to_owned(),
        |seconds| format!("scoring includes {} to load them from host memory", duration(seconds)),
    );
    notes.push(format!(
        "frozen models ({:.1} GB per device) and training (up to {:.1} GB) exceed the {:.1} GB of a device: {time}",
        gb(frozen),
        gb(detail.memory.upper),
        gb(detail.memory.capacity)
    ));
    notes.extend(host_memory_note("frozen models", scenario, frozen));
    seconds.unwrap_or(0.0)
}
