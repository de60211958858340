//! Power caps and clock limits: throughput of an accelerator whose power is limited below its design power, or its core
//! clock below the maximum.
//!
//! A power limiter controls the mean over some tens of milliseconds, which span many layers, so clocks drop until the
//! whole step draws the allowed power. The power of clocked logic is proportional to frequency times voltage squared,
//! and voltage partially follows frequency, which yields about f^2.3. Memory has its own clock and power, so
//! memory-bound work slows down only if the core clock is too low to saturate the bandwidth. A clock limit uses the
//! same model with the frequency given, so a cap and a limit at the resulting clock agree. Both are relative to the
//! clock at which the work runs without them: large GEMMs, which already run below the maximum clock for lack of power,
//! lose less than estimated here from a limit near 1. Comparison with published measurements:
//!
//! * H100 at 350 of 700 W, decoding of 70B (arXiv 2311.18677, section 3.7): almost no slowdown; here below 2 % where
//!   memory bounds it
//! * A100, inference of large models at lower clocks (arXiv 2308.12908, from memory): up to 20 % less power for at most
//!   7 % of the throughput; here, 70B decoding at 0.7 of the clock draws 24 % less for 4 %
//! * V100 at 150 of 250 W, training of BERT (arXiv 2205.09646): 7 % longer, 14 % less energy; here, GEMMs, which are a
//!   part of a step, take 15 % longer

use super::power::{
    ACTIVE_SHARE, COMPUTE_SHARE, DeviceUtilization, FREQUENCY_EXPONENT, IDLE_SHARE, MEMORY_SHARE, MIN_POWER_CAP_SHARE,
    cap, design, nodes_of_rack, traffic,
};
use crate::scenario::Scenario;
use atlas_config::Factors;
use atlas_core::math;
use atlas_perf::constants::Constants;
use atlas_perf::serving::ServingInput;
use atlas_perf::serving::arithmetic::Arithmetic;
use atlas_perf::training::{TrainingInput, memoized};
use std::borrow::Cow;

/// Minimum clock relative to the maximum: 210 of an H100's 1,980 MHz.
const MIN_CLOCK: f64 = 0.1;

/// Effect of a power cap or clock limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throttle {
    /// Power limit relative to design power.
    pub share: f64,
    /// Clock, and rate of matrix multiplications, relative to those without cap and limit.
    pub clock: f64,
    /// Memory bandwidth relative to that without cap and limit.
    pub memory: f64,
}

impl Throttle {
    /// Effect on work with utilization `used` (without cap and limit) of a power cap `share`, relative to design power,
    /// and a clock limit `limit`, relative to the maximum clock.
    #[must_use]
    pub fn at(share: f64, limit: f64, used: &DeviceUtilization) -> Throttle {
        let share = share.clamp(MIN_POWER_CAP_SHARE, 1.0);
        let limit = limit.clamp(MIN_CLOCK, 1.0);
        let clocked = ACTIVE_SHARE * used.active + COMPUTE_SHARE * used.compute;
        let drawn = |clock: f64| {
            IDLE_SHARE + clocked * math::powf(clock, FREQUENCY_EXPONENT) + MEMORY_SHARE * used.memory * traffic(clock)
        };
        // Work that would exceed the design power is limited to it without a cap too.
        let allowed = share * drawn(1.0).max(1.0);
        let (mut low, mut high) = (MIN_CLOCK, limit);
        if drawn(high) > allowed {
            for _ in 0..40 {
                let middle = 0.5 * (low + high);
                if drawn(middle) > allowed { high = middle } else { low = middle }
            }
        } else {
            low = limit;
        }
        Throttle { share, clock: low, memory: traffic(low) }
    }

    /// Effect of the cap and limit of a scenario; `None` without them.
    fn of(scenario: &Scenario, used: impl FnOnce() -> DeviceUtilization) -> Option<Throttle> {
        let share = cap(scenario).map_or(1.0, |cap| cap / design(scenario));
        let limit = scenario.terms.clock_share;
        (share < 1.0 || limit < 1.0).then(|| Throttle::at(share, limit, &used()))
    }

    fn constants(throttle: Option<Throttle>, stated: Factors) -> Cow<'static, Constants> {
        let Some(Throttle { clock, memory, .. }) = throttle else { return Constants::with_factors(&stated) };
        Constants::with_factors(&Factors { compute: stated.compute * clock, memory: stated.memory * memory, ..stated })
    }
}

/// Constants of serving: those of the target, adjusted for its power cap and clock limit.
#[must_use]
pub fn serving(scenario: &Scenario, input: &ServingInput) -> Cow<'static, Constants> {
    let stated = scenario.efficiency.serving;
    let used = || {
        let out = atlas_perf::serving::estimate(input, &Constants::with_factors(&stated));
        DeviceUtilization::serving(input, &out, &Arithmetic::of(input, &out), 1.0)
    };
    Throttle::constants(Throttle::of(scenario, used), stated)
}

/// Constants of training: those of the target, adjusted for its power cap and clock limit.
#[must_use]
pub fn training(scenario: &Scenario, input: &TrainingInput) -> Cow<'static, Constants> {
    let stated = scenario.efficiency.training;
    let used = || DeviceUtilization::training(&memoized(input, &Constants::with_factors(&stated), None), 1.0);
    Throttle::constants(Throttle::of(scenario, used), stated)
}

/// Notes on the power cap and clock limit.
#[must_use]
pub fn notes(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    let tdp = design(scenario);
    if let Some((kw, nodes)) = scenario.terms.rack_kw.zip(nodes_of_rack(scenario)) {
        let racks = (scenario.num_nodes / nodes).ceil();
        let counted = |count: f64, one: &str| format!("{count} {one}{}", if count == 1.0 { "" } else { "s" });
        notes.push(format!("{} per rack of {kw} kW: {}", counted(nodes, "node"), counted(racks, "rack")));
    }
    if scenario.terms.clock_share < 1.0 {
        let percent = 100.0 * scenario.terms.clock_share;
        let boost = scenario.machine.and_then(|machine| machine.boost_mhz);
        let mhz = boost.map(|mhz| format!(": {:.0} of {mhz:.0} MHz", mhz * scenario.terms.clock_share));
        notes.push(format!("the core clock is limited to {percent:.0} % of its maximum{}", mhz.unwrap_or_default()));
    }
    let Some(watts) = cap(scenario) else { return notes };
    if watts >= tdp {
        notes.push(format!("a power cap of {watts:.0} W has no effect: the TDP is {tdp:.0} W"));
    } else if watts < MIN_POWER_CAP_SHARE * tdp {
        let min_watts = MIN_POWER_CAP_SHARE * tdp;
        notes.push(format!("{watts} W per accelerator is below the minimum power cap: using {min_watts:.0} W"));
    } else {
        notes.push(format!(
            "accelerators are capped at {watts:.0} of {tdp:.0} W: clocks drop when the work would draw more"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::engine::estimate;
    use crate::estimate::Estimate;

    use crate::testing;

    /// Utilization in training of a large model and in decoding, on 8 H100.
    const TRAINING: DeviceUtilization = DeviceUtilization { compute: 0.45, memory: 0.3, active: 1.0 };
    const DECODING: DeviceUtilization = DeviceUtilization { compute: 0.1, memory: 0.62, active: 1.0 };

    #[test]
    fn lower_power_cap_slows_the_clock_before_memory() {
        for used in [TRAINING, DECODING] {
            let mut before = Throttle::at(1.0, 1.0, &used);
            assert_eq!((before.clock, before.memory), (1.0, 1.0));
            for percent in (30..100).rev() {
                let now = Throttle::at(f64::from(percent) / 100.0, 1.0, &used);
                assert!(now.clock <= before.clock && now.memory <= before.memory && now.clock <= now.memory, "{now:?}");
                before = now;
            }
        }
        // arXiv 2311.18677: half of the power does not slow down decoding.
        assert_eq!(Throttle::at(0.5, 1.0, &DECODING).memory, 1.0);
        let products = Throttle::at(0.5, 1.0, &TRAINING).clock;
        assert!((0.6..0.8).contains(&products), "{products}");
    }

    #[test]
    fn capped_work_takes_less_energy() {
        let whole = super::super::power::device(700.0, &TRAINING, 1.0);
        for share in [0.5, 0.6, 0.7] {
            let throttle = Throttle::at(share, 1.0, &TRAINING);
            assert!(throttle.clock / (share * 700.0) > 1.0 / whole, "{share}");
        }
    }
    #[test]
    fn power_cap_and_clock_limit_at_its_clock_throttle_equally() {
        for used in [TRAINING, DECODING] {
            for percent in [45, 50, 60, 70] {
                let share = f64::from(percent) / 100.0;
                let capped = Throttle::at(share, 1.0, &used);
                let limited = Throttle::at(1.0, capped.clock, &used);
                assert!((limited.clock - capped.clock).abs() < 1e-9 && limited.memory == capped.memory);
                if capped.clock < 1.0 {
                    // If all of the work is slowed by the same factor, it draws the power that the cap allows.
                    let slowed = DeviceUtilization {
                        compute: used.compute * capped.clock,
                        memory: used.memory * capped.memory,
                        ..used
                    };
                    let drawn = super::super::power::device(1.0, &slowed, capped.clock);
                    assert!((drawn - share).abs() < 1e-9, "{drawn} under a cap of {share}");
                }
            }
        }
        // The lower of both limits applies; a cap that the limited clock already meets has no effect.
        let limited = Throttle::at(1.0, 0.6, &TRAINING);
        assert_eq!(Throttle::at(0.9, 0.6, &TRAINING).clock, limited.clock);
        assert!(Throttle::at(0.35, 0.6, &TRAINING).clock < limited.clock);
    }

    #[test]
    fn cap_at_tdp_does_not_throttle_work_above_tdp() {
        let all = DeviceUtilization { compute: 1.0, memory: 0.5, active: 1.0 };
        assert_eq!(Throttle::at(1.0, 1.0, &all).clock, 1.0);
        assert!(Throttle::at(0.99, 1.0, &all).clock > 0.99);
    }

    fn answer(target: &str, workload: &str, set: &[&str]) -> Result<(Scenario, Estimate), String> {
        let parts = testing::parts(target, workload);
        let set = testing::overrides(set);
        let scenario = Scenario::resolve(&parts, &set).map_err(|refused| refused.to_string())?;
        let estimate = estimate(&scenario);
        Ok((scenario, estimate))
    }

    const SERVED: [&str; 4] = ["concurrency=32", "prompt=256", "generate=256", "requests=64"];

    /// Tokens per second and power of a node in W at a clock.
    fn at_clock(workload: &str, engine: &str, clock: f64) -> (f64, f64) {
        let (engine, clock) = (format!("engine={engine}"), format!("clock_share={clock}"));
        let mut set = vec![engine.as_str(), clock.as_str()];
        if workload.ends_with("serve") {
            set.extend(SERVED);
        }
        let total = answer("h100-sxm-8", workload, &set).unwrap().1.total;
        (total.tokens_per_sec, total.node_power_w)
    }

    #[test]
    fn lower_clock_slows_training_more_than_serving() {
        for engine in ["analytical", "event"] {
            for (workload, low, high) in [("llama3.1-8b-train", 0.7, 0.8), ("llama3.1-8b-serve", 0.93, 1.0)] {
                let whole = at_clock(workload, engine, 1.0);
                let mut before = whole;
                for clock in [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3] {
                    let now = at_clock(workload, engine, clock);
                    assert!(
                        now.0 <= before.0 * 1.001 && now.1 <= before.1 * 1.001,
                        "{workload} {engine} {clock}: {now:?}"
                    );
                    before = now;
                }
                let kept = at_clock(workload, engine, 0.7).0 / whole.0;
                assert!((low..=high).contains(&kept), "{workload} by {engine} keeps {kept} at 70 % of the clock");
            }
        }
    }

    #[test]
    fn work_per_joule_is_best_at_a_clock_between_the_least_and_the_highest() {
        for workload in ["llama3.1-8b-train", "llama3.1-8b-serve"] {
            let per_joule = |clock: f64| {
                let (rate, watts) = at_clock(workload, "analytical", clock);
                rate / watts
            };
            let all: Vec<f64> = (2..=20).map(|step| per_joule(0.05 * f64::from(step))).collect();
            let best = (0..all.len()).max_by(|a, b| all[*a].total_cmp(&all[*b])).unwrap();
            assert!(best > 0 && best < all.len() - 1, "{workload}: {all:?}");
            assert!(all[..=best].is_sorted() && all[best..].is_sorted_by(|a, b| a >= b), "{workload}: {all:?}");
        }
    }

    #[test]
    fn power_cap_equals_clock_limit_in_rate_and_nearly_in_power() {
        for (workload, more) in [("llama3.1-8b-train", &[][..]), ("llama3.1-8b-serve", &SERVED[..])] {
            let whole = answer("h100-sxm-8", workload, more).unwrap().0;
            let used = match workload.ends_with("train") {
                true => {
                    let input = whole.training_input(&whole.base).unwrap();
                    DeviceUtilization::training(
                        &memoized(&input, &Constants::with_factors(&whole.efficiency.training), None),
                        1.0,
                    )
                }
                false => {
                    let input = whole.serving_input(&whole.base).unwrap();
                    let constants = Constants::with_factors(&whole.efficiency.serving);
                    let out = atlas_perf::serving::estimate(&input, &constants);
                    DeviceUtilization::serving(&input, &out, &Arithmetic::of(&input, &out), 1.0)
                }
            };
            for watts in [250.0, 300.0, 350.0] {
                let clock = Throttle::at(watts / 700.0, 1.0, &used).clock;
                let (cap, limit) = (format!("power_cap={watts}"), format!("clock_share={clock}"));
                let capped = answer("h100-sxm-8", workload, &[more, &[cap.as_str()]].concat()).unwrap().1.total;
                let limited = answer("h100-sxm-8", workload, &[more, &[limit.as_str()]].concat()).unwrap().1.total;
                assert!((limited.tokens_per_sec / capped.tokens_per_sec - 1.0).abs() < 1e-6, "{workload} {watts}");
                assert!(
                    (limited.node_power_w / capped.node_power_w - 1.0).abs() < 0.06,
                    "{workload} {watts} {limited:?} {capped:?}"
                );
            }
        }
    }

    #[test]
    fn clock_share_is_refused_where_the_vendor_has_no_tool() {
        let refused = |target: &str| answer(target, "llama3.1-8b-train", &["clock_share=0.7"]).unwrap_err();
        for target in ["tpu-v5p-128", "trn2-16"] {
            assert!(refused(target).contains("clock_share 1: no tool of its vendor limits the clock"), "{target}");
            assert!(answer(target, "llama3.1-8b-train", &["clock_share=1"]).is_ok(), "{target}");
        }
        let (scenario, _) = answer("mi300x-8", "llama3.1-8b-train", &["clock_share=0.7"]).unwrap();
        assert!(notes(&scenario).iter().any(|note| note.contains("70 % of its maximum: 1470 of 2100 MHz")));
    }
}
