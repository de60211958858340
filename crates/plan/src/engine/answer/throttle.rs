//! Power caps: what an accelerator still does when it may draw less than its design power.
//!
//! A limiter holds the mean of some tens of milliseconds, many layers long, so that clocks fall until the whole step draws
//! what is allowed: power of clocked logic goes with frequency times voltage squared, and voltage follows frequency in
//! part, which gives about f^2.3. Memory keeps its own clock and its power, so that work bound by memory is slowed only
//! where clocks are too low to saturate it. Held against what was published:
//!
//! | device and work | published | here |
//! | --- | --- | --- |
//! | H100 at 350 of 700 W, decoding of 70B (arXiv 2311.18677, section 3.7) | almost no slowdown | below 2 % where memory bounds it |
//! | V100 at 150 of 250 W, training of BERT (arXiv 2205.09646) | 7 % longer, 14 % less energy | products 15 % longer, which are part of a step |

use super::power::{ACTIVE_SHARE, AROUND_LOADED, COMPUTE_SHARE, IDLE_SHARE, MEMORY_SHARE, Use, design};
use crate::scenario::Scenario;
use atlas_config::Factors;
use atlas_core::count::Count;
use atlas_perf::constants::Constants;
use atlas_perf::serving::ServingInput;
use atlas_perf::training::{TrainingInput, memoized};

/// Power of clocked logic goes with this power of its frequency.
const EXPONENT: f64 = 2.3;
/// Least share of the design power that drivers let users set: 200 of an H100's 700 W, 100 of an A100's 400 (nvidia-smi).
pub const LEAST_SHARE: f64 = 0.3;
/// Least clock over the highest: 210 of an H100's 1,980 MHz.
const LEAST_CLOCK: f64 = 0.1;
/// Clock, over the highest, from which on memory is saturated: decoding keeps its pace to about half of the clock.
const MEMORY_CLOCK: f64 = 0.5;

/// What a cap does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throttle {
    /// Most that an accelerator draws, over its design power.
    pub share: f64,
    /// Rate of matrix multiplications over that without a cap.
    pub clock: f64,
    /// Rate of memory traffic over that without a cap.
    pub memory: f64,
}

impl Throttle {
    /// Work that uses an accelerator so without a cap, under a cap of this share of the design power.
    #[must_use]
    pub fn at(share: f64, used: &Use) -> Throttle {
        let share = share.clamp(LEAST_SHARE, 1.0);
        let clocked = ACTIVE_SHARE * used.active + COMPUTE_SHARE * used.compute;
        let traffic = |clock: f64| (clock / MEMORY_CLOCK).min(1.0);
        let drawn =
            |clock: f64| IDLE_SHARE + clocked * clock.powf(EXPONENT) + MEMORY_SHARE * used.memory * traffic(clock);
        let (mut low, mut high) = (LEAST_CLOCK, 1.0);
        if drawn(high) > share {
            for _ in 0..40 {
                let middle = 0.5 * (low + high);
                if drawn(middle) > share { high = middle } else { low = middle }
            }
        } else {
            low = 1.0;
        }
        Throttle { share, clock: low, memory: traffic(low) }
    }

    /// Under the cap of a scenario, if it has one below the design power.
    fn of(scenario: &Scenario, used: impl FnOnce() -> Use) -> Option<Throttle> {
        let share = cap(scenario)? / design(scenario);
        (share < 1.0).then(|| Throttle::at(share, &used()))
    }

    fn constants(throttle: Option<Throttle>, stated: Factors) -> Constants {
        let Some(Throttle { clock, memory, .. }) = throttle else { return Constants::with(&stated) };
        Constants::with(&Factors { compute: stated.compute * clock, memory: stated.memory * memory, ..stated })
    }
}

/// The constants of serving: those of the target, at the clocks that its cap allows.
#[must_use]
pub fn serving(scenario: &Scenario, input: &ServingInput) -> Constants {
    let stated = scenario.efficiency.serving;
    let used = || Use::serving(input, &atlas_perf::serving::estimate(input, &Constants::with(&stated)));
    Throttle::constants(Throttle::of(scenario, used), stated)
}

/// The constants of training: those of the target, at the clocks that its cap allows.
#[must_use]
pub fn training(scenario: &Scenario, input: &TrainingInput) -> Constants {
    let stated = scenario.efficiency.training;
    let used = || Use::training(&memoized(input, &Constants::with(&stated), None));
    Throttle::constants(Throttle::of(scenario, used), stated)
}

/// Nodes that share a rack, where its power is limited.
#[must_use]
pub fn nodes_of_rack(scenario: &Scenario) -> Option<f64> {
    let terms = &scenario.terms;
    let bears = |kw: f64| (1e3 * kw / scenario.node_watts.max(1.0)).floor().max(1.0);
    terms.rack_kw.map(|kw| terms.nodes_per_rack.map_or_else(|| bears(kw), f64::from))
}

/// Most that an accelerator may draw by knob or rack, W.
#[must_use]
pub fn cap(scenario: &Scenario) -> Option<f64> {
    let stated = scenario.terms.power_cap;
    let rack = scenario.terms.rack_kw.zip(nodes_of_rack(scenario)).and_then(|(kw, nodes)| {
        let budget = 1e3 * kw / nodes;
        let count = scenario.accelerators_per_node.max(Count::ONE);
        let around = (scenario.node_watts - count * design(scenario)).max(0.0);
        (budget < scenario.node_watts).then(|| ((budget - AROUND_LOADED * around) / count).max(0.0))
    });
    match (stated, rack) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// What a reader must know of the cap.
#[must_use]
pub fn notes(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    let tdp = design(scenario);
    if let Some((kw, nodes)) = scenario.terms.rack_kw.zip(nodes_of_rack(scenario)) {
        let racks = (scenario.num_nodes / nodes).ceil();
        notes.push(format!("{nodes} nodes per rack of {kw} kW: {racks} racks"));
    }
    let Some(watts) = cap(scenario) else { return notes };
    if watts >= tdp {
        notes.push(format!("a power cap of {watts:.0} W has no effect: the TDP is {tdp:.0} W"));
    } else if watts < LEAST_SHARE * tdp {
        let least = LEAST_SHARE * tdp;
        notes.push(format!("{watts:.0} W per accelerator is below the minimum power cap: using {least:.0} W"));
    } else {
        notes.push(format!(
            "accelerators are capped at {watts:.0} of {tdp:.0} W: clocks drop when the work would draw more"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of use of training a large model and of decoding on 8 H100.
    const TRAINING: Use = Use { compute: 0.45, memory: 0.3, active: 1.0 };
    const DECODING: Use = Use { compute: 0.1, memory: 0.62, active: 1.0 };

    #[test]
    fn a_lower_cap_slows_products_and_memory_only_at_the_last() {
        for used in [TRAINING, DECODING] {
            let mut before = Throttle::at(1.0, &used);
            assert_eq!((before.clock, before.memory), (1.0, 1.0));
            for percent in (30..100).rev() {
                let now = Throttle::at(f64::from(percent) / 100.0, &used);
                assert!(now.clock <= before.clock && now.memory <= before.memory && now.clock <= now.memory, "{now:?}");
                before = now;
            }
        }
        // arXiv 2311.18677: decoding is not slowed by half of the power.
        assert_eq!(Throttle::at(0.5, &DECODING).memory, 1.0);
        let products = Throttle::at(0.5, &TRAINING).clock;
        assert!((0.6..0.8).contains(&products), "{products}");
    }

    #[test]
    fn capped_work_takes_less_energy() {
        let whole = super::super::power::device(700.0, &TRAINING);
        for share in [0.5, 0.6, 0.7] {
            let throttle = Throttle::at(share, &TRAINING);
            assert!(throttle.clock / (share * 700.0) > 1.0 / whole, "{share}");
        }
    }
}
