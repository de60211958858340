//! Determines which term of the estimate best explains why training steps take longer.
//!
//! Every cause starts with its prior probability. It is then weighted by the shape of the deviation (level, noise,
//! spikes, drift), by how much its term of the estimate would have to grow, and by timers, ranks and devices if they
//! are logged.

use super::cause::{Cause, Diagnosis, Scale};
use super::devices::{Change, Devices};
use super::prediction::{Part, Prediction};
use super::shift::{Shape, shape};
use super::timers::Timers;
use super::track::Point;
use atlas_core::time_unit::TimeUnit;
use atlas_core::{math, statistics};

/// Data about a deviation.
#[derive(Debug)]
pub struct Case<'a> {
    /// The prediction.
    pub prediction: &'a Prediction,
    /// Points before the deviation; empty if it existed from the start.
    pub before: &'a [Point],
    /// Points since the deviation began.
    pub after: &'a [Point],
    /// Timers of the tool.
    pub timers: &'a Timers,
    /// Samples of devices.
    pub devices: &'a Devices,
    /// Time since the deviation began, s.
    pub age: f64,
    /// A rank that is slower than the others, with the relative slowdown, if several ranks log their own times.
    pub slow_rank: Option<(&'a str, f64)>,
}

/// Computes the likelihoods of the causes of a slower training run.
#[must_use]
pub fn training(case: &Case<'_>) -> Diagnosis {
    let mut scale = Scale::default();
    let prediction = case.prediction;
    let several = prediction.accelerators > 1.0;
    let from_start = case.before.is_empty();
    if several {
        scale.prior(Cause::Network, 0.3);
        scale.prior(Cause::Straggler, 0.25);
    }
    scale.prior(Cause::Clocks, 0.2);
    scale.prior(Cause::Host, 0.25);
    if from_start {
        scale.prior(Cause::Plan, 0.6);
        scale.add_evidence(Cause::Plan, 0.0, "slower than predicted from the first step");
    }
    let reference = if from_start { None } else { super::track::median(case.before) }.unwrap_or(prediction.seconds);
    let Some(now) = super::track::median(case.after) else { return scale.normalize() };
    // The mean also includes single long steps.
    let mean = case.after.iter().map(|point| point.value).sum::<f64>() / case.after.len().max(1) as f64;
    let extra = (now.max(mean) - reference).max(0.0);
    growth(&mut scale, prediction, extra);
    if let Some(after) = shape(case.after) {
        let before = shape(case.before).filter(|_| case.before.len() >= 4);
        shapes(&mut scale, before, after, now / reference - 1.0);
    }
    if !from_start && let Some(first) = case.after.first() {
        timers(&mut scale, case.timers, first.step, extra);
        devices(&mut scale, &case.devices.changes_at(case.age));
    }
    if let Some((rank, share)) = case.slow_rank {
        scale.add_evidence(
            Cause::Straggler,
            3.0,
            format!("{rank} is {:.0} % slower than the other ranks", 100.0 * share),
        );
    }
    if let Some((rank, row)) = case.timers.slowest.filter(|(_, row)| *row >= 3) {
        scale.add_evidence(Cause::Straggler, 1.5, format!("rank {rank} was the slowest in the last {row} reports"));
    }
    scale.normalize()
}

/// Weighs causes by how much their term would have to grow.
fn growth(scale: &mut Scale, prediction: &Prediction, extra: f64) {
    let network = prediction.of(Part::Network);
    let device = prediction.of(Part::Device);
    if network > 0.0 {
        let factor = 1.0 + extra / network;
        let term = prediction.largest(Part::Network).unwrap_or("network");
        let text = format!("communication ({term}) would explain it if it took {factor:.1} times as long as predicted");
        // Links that lose lanes or share switches are commonly slower by a factor of two to ten, but not by a hundred.
        let odds = if factor <= 10.0 { 0.0 } else { -math::ln(factor / 10.0) };
        scale.add_evidence(Cause::Network, odds, text);
    } else {
        scale.add_evidence(Cause::Network, -2.0, "the estimate has no exposed communication");
    }
    if device > 0.0 {
        let share = extra / device;
        // Throttled devices lose up to half of their clock rate.
        scale.add(Cause::Clocks, if share <= 0.6 { 0.0 } else { -4.0 * (share - 0.6) });
        scale.add(Cause::Straggler, if share <= 2.0 { 0.0 } else { -(share - 2.0) });
    }
}

fn shapes(scale: &mut Scale, before: Option<Shape>, after: Shape, rise: f64) {
    let noise = before.map_or(1.0, |before| math::exp(math::ln(after.noise.max(1e-3) / before.noise.max(1e-3))));
    // A few long steps between normal ones.
    let bursts = after.mean - 1.0 > rise.max(0.0) && after.spikes > 0.0 && after.spikes < 0.4 && rise < 0.05;
    if bursts {
        let text = format!("{:.0} % of the steps take much longer, the others as long as before", 100.0 * after.spikes);
        scale.add_evidence(Cause::Host, 2.0, text);
        scale.add(Cause::Network, 0.5);
        scale.add(Cause::Straggler, -2.0);
        scale.add(Cause::Clocks, -2.0);
    }
    if let Some(period) = after.period {
        let text = format!("a long step every {period} steps, as with checkpoints or evaluation");
        scale.add_evidence(Cause::Host, 1.0, text);
    }
    if after.drift > 0.05 && after.drift > 4.0 * after.noise {
        let text = format!("step times drift: {:.0} % longer at the end than at the beginning", 100.0 * after.drift);
        scale.add_evidence(Cause::Clocks, 1.5, text.clone());
        scale.add_evidence(Cause::Host, 0.7, text);
        scale.add(Cause::Straggler, -1.0);
        scale.add(Cause::Network, -0.5);
        return;
    }
    if bursts {
        return;
    }
    if noise >= 2.0 {
        let text = format!("step times vary {noise:.1} times as much as before, as with contention");
        scale.add_evidence(Cause::Network, 0.9 * math::ln(noise).min(2.0), text.clone());
        scale.add_evidence(Cause::Host, 0.5 * math::ln(noise).min(2.0), text);
        scale.add(Cause::Straggler, -0.5 * math::ln(noise).min(2.0));
        scale.add(Cause::Clocks, -0.7 * math::ln(noise).min(2.0));
    } else if before.is_some() {
        let text = "all steps became slower at once by the same factor";
        scale.add_evidence(Cause::Straggler, 0.9, text);
        scale.add_evidence(Cause::Clocks, 0.5, text);
        scale.add(Cause::Network, -0.5);
    }
}

/// Weighs causes by the tool's own timers.
fn timers(scale: &mut Scale, timers: &Timers, since: u64, extra: f64) {
    let changes = timers.changes_at(since);
    if !changes.any || extra <= 0.0 {
        return;
    }
    let share = |seconds: f64| (seconds / extra).clamp(-1.0, 1.0);
    let mut weigh = |cause: Cause, seconds: f64, what: &str| {
        let share = share(seconds);
        if share > 0.15 {
            let text = format!("{what} grew by {} per step, {:.0} % of the delay", duration(seconds), 100.0 * share);
            scale.add_evidence(cause, 5.0 * share, text);
        } else {
            scale.add(cause, -1.0);
        }
    };
    weigh(Cause::Host, changes.host, "host timers");
    if changes.ranks {
        // A rank that waits for a slow rank waits inside collectives. The rank that waits least shows the cost of the
        // network.
        weigh(Cause::Network, changes.network, "collective timers on the rank that waits least");
        weigh(Cause::Straggler, changes.gap, "the difference in compute time between the slowest and fastest rank");
        weigh(Cause::Clocks, changes.device, "compute time on the fastest rank");
    } else {
        weigh(Cause::Network, changes.network, "collective timers");
        // The timers of a single rank do not distinguish a slow network from a slow rank elsewhere.
        scale.add(Cause::Straggler, 2.0 * share(changes.network).max(0.0));
        let text = "compute time on the logging rank";
        let grown = share(changes.device);
        if grown > 0.15 {
            scale.add_evidence(
                Cause::Clocks,
                3.0 * grown,
                format!("{text} grew by {} per step", duration(changes.device)),
            );
            scale.add_evidence(Cause::Straggler, 3.0 * grown, format!("{text} grew: this rank may be the straggler"));
        }
    }
}

/// Weighs causes by power, clocks and temperatures.
fn devices(scale: &mut Scale, changes: &[Change]) {
    let ratios = |get: fn(&Change) -> Option<[f64; 2]>| -> Vec<(usize, f64)> {
        let ratio = |(index, change)| get(change).filter(|[before, _]| *before > 0.0).map(|[b, a]| (index, a / b));
        changes.iter().enumerate().filter_map(ratio).collect()
    };
    let median = |ratios: &[(usize, f64)]| statistics::median(ratios.iter().map(|(_, ratio)| *ratio));
    let clocks = ratios(|change| change.clock);
    if let Some(typical) = median(&clocks) {
        let slow: Vec<usize> =
            clocks.iter().filter(|(_, ratio)| *ratio < 0.93 * typical).map(|(index, _)| *index).collect();
        if typical < 0.95 {
            let hot = changes.iter().filter_map(|change| change.celsius).map(|[_, now]| now).fold(f64::NAN, f64::max);
            let heat = if hot >= 80.0 { format!(", at up to {hot:.0} °C") } else { String::new() };
            let text = format!("device clocks dropped by {:.0} %{heat}", 100.0 * (1.0 - typical));
            scale.add_evidence(Cause::Clocks, 4.0, text);
        } else {
            scale.add_evidence(Cause::Clocks, -3.0, "clocks of most devices did not drop");
        }
        if let [first, ..] = slow.as_slice() {
            let text = format!("clocks dropped more on {} than on the other devices", named(*first, slow.len()));
            scale.add_evidence(Cause::Straggler, 4.0, text);
        }
    }
    let watts = ratios(|change| change.watts);
    let Some(typical) = median(&watts).filter(|_| watts.len() > 1) else {
        if let Some(ratio) = median(&watts).filter(|ratio| *ratio < 0.93) {
            let text = format!("power dropped by {:.0} %: the device is waiting", 100.0 * (1.0 - ratio));
            for cause in [Cause::Network, Cause::Host, Cause::Straggler] {
                scale.add_evidence(cause, 0.7, text.clone());
            }
        }
        return;
    };
    if typical < 0.95 {
        let busy: Vec<usize> = watts.iter().filter(|(_, ratio)| *ratio > 1.08 * typical).map(|(i, _)| *i).collect();
        let few = busy.len() * 4 <= watts.len();
        match busy.as_slice() {
            [first, ..] if few => {
                let text = format!(
                    "power dropped by {:.0} % on all devices except {}: they are waiting for it",
                    100.0 * (1.0 - typical),
                    named(*first, busy.len())
                );
                scale.add_evidence(Cause::Straggler, 3.5, text);
            }
            _ => {
                let dropped = 100.0 * (1.0 - typical);
                let text = format!("power dropped by {dropped:.0} % on all devices: they are waiting");
                scale.add_evidence(Cause::Network, 1.2, text.clone());
                scale.add_evidence(Cause::Host, 1.2, text);
            }
        }
    }
}

fn named(index: usize, count: usize) -> String {
    if count == 1 { format!("device {index}") } else { format!("device {index} and {} others", count - 1) }
}

/// Formats a duration.
#[must_use]
pub fn duration(seconds: f64) -> String {
    let [text] = durations([seconds]);
    text
}

/// Formats several durations with the unit of the shortest.
#[must_use]
pub fn durations<const N: usize>(seconds: [f64; N]) -> [String; N] {
    let sizes = seconds.map(f64::abs).into_iter().filter(|size| *size > 0.0);
    let shortest = sizes.reduce(f64::min).unwrap_or_default();
    let (unit, decimals) = match shortest {
        size if size >= TimeUnit::Day.seconds() => (TimeUnit::Day, 1),
        size if size >= TimeUnit::Hour.seconds() => (TimeUnit::Hour, 1),
        size if size >= 2.0 * TimeUnit::Minute.seconds() => (TimeUnit::Minute, 1),
        size if size >= 1.0 => (TimeUnit::Second, 2),
        _ => (TimeUnit::Millisecond, 1),
    };
    seconds.map(|seconds| format!("{:.decimals$} {}", seconds / unit.seconds(), unit.symbol()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_a_range_have_one_unit() {
        assert_eq!(durations([127.0, 105.75, 189.55]), ["127.00 s", "105.75 s", "189.55 s"]);
        assert_eq!(durations([26_640.0, 6120.0]), ["7.4 h", "1.7 h"]);
        assert_eq!(duration(0.0285), "28.5 ms");
    }
}
