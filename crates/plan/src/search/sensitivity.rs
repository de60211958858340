//! Sensitivity of a metric to knobs and hardware parameters, for tornado charts. Each is changed alone, by one step or
//! ten percent in both directions. Everything else is unchanged, except that the number of replicas follows the layout.

use super::condition::fits;
use super::optimize::freed;
use crate::engine::estimate_into;
use crate::estimate::{Estimate, Metric, Verdict};
use crate::knob::{Knob, KnobValues as _, Setting, ValueType};
use crate::scenario::{Machine, Parts, Scenario};
use atlas_core::plan::Format;
use atlas_core::sort;
use atlas_perf::accelerator::Precision;
use atlas_perf::roofline::power_limited;

/// Relative change of a hardware parameter.
pub const SHARE: f64 = 0.10;

/// Hardware parameter, or price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hardware {
    /// Peak rate of the matrix units, in all formats.
    PeakFlops,
    /// Memory bandwidth.
    MemoryBandwidth,
    /// Memory size.
    Memory,
    /// Bandwidth of the links inside a node.
    Link,
    /// Network bandwidth of an accelerator.
    Network,
    /// Rent of a node.
    Price,
    /// Nominal power of a node, and TDP of its accelerators.
    Power,
}

impl Hardware {
    /// All hardware parameters.
    pub const ALL: [Hardware; 7] = [
        Hardware::PeakFlops,
        Hardware::MemoryBandwidth,
        Hardware::Memory,
        Hardware::Link,
        Hardware::Network,
        Hardware::Price,
        Hardware::Power,
    ];

    /// Name of the parameter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Hardware::PeakFlops => "peak FLOP/s",
            Hardware::MemoryBandwidth => "memory bandwidth",
            Hardware::Memory => "memory size",
            Hardware::Link => "intra-node link",
            Hardware::Network => "network (NIC)",
            Hardware::Price => "price",
            Hardware::Power => "power",
        }
    }

    /// Returns the scenario with this parameter multiplied by `factor`.
    pub(super) fn scaled(self, scenario: &Scenario, factor: f64) -> Scenario {
        let mut scenario = scenario.clone();
        let mut machine = |change: &dyn Fn(&mut Machine)| {
            if let Some(machine) = &mut scenario.machine {
                change(machine);
            }
        };
        match self {
            Hardware::PeakFlops => machine(&|machine| {
                for rate in &mut machine.device.flops {
                    *rate *= factor;
                }
            }),
            Hardware::MemoryBandwidth => machine(&|machine| machine.device.mem_bw *= factor),
            Hardware::Memory => {
                machine(&|machine| machine.device.mem_bytes *= factor);
                scenario.memory_gb_per_accel *= factor;
            }
            Hardware::Link => machine(&|machine| machine.device.link_bw *= factor),
            Hardware::Network => machine(&|machine| machine.device.nic_bw *= factor),
            Hardware::Price => scenario.hourly_usd = scenario.hourly_usd.map(|usd| usd * factor),
            Hardware::Power => {
                machine(&|machine| machine.device.tdp_w = machine.device.tdp_w.map(|watts| watts * factor));
                scenario.node_watts *= factor;
            }
        }
        scenario
    }
}

/// Knob or hardware parameter that is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lever {
    /// Knob, changed by one step.
    Knob(Knob),
    /// Hardware parameter, changed by ten percent.
    Hardware(Hardware),
}

impl Lever {
    /// Name of the knob or parameter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Lever::Knob(knob) => knob.name(),
            Lever::Hardware(hardware) => hardware.name(),
        }
    }
}

/// Value of the metric after a change.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// New value of a knob, or relative change of a parameter: `+10 %`.
    pub to: String,
    /// Value of the metric.
    pub value: f64,
    /// Why the scenario cannot run with the change; `None` if it can.
    pub failure: Option<String>,
}

/// Effect of a lever in both directions. `None` if it is at the end of its range, or the metric has no value there.
#[derive(Debug, Clone, PartialEq)]
pub struct Swing {
    /// The lever.
    pub lever: Lever,
    /// Current value.
    pub from: String,
    /// Result one step or ten percent down. For words, the previous one; for toggles, off.
    pub down: Option<Outcome>,
    /// Result one step or ten percent up.
    pub up: Option<Outcome>,
    /// Largest relative change of the metric over the results that can run.
    pub max_change: f64,
}

impl Swing {
    /// Whether the step is not a small change: one from zero, which enables a feature, or of the number of nodes.
    #[must_use]
    pub fn is_large_step(&self) -> bool {
        self.from == "0" || self.lever == Lever::Knob(Knob::NumNodes)
    }
}

/// Result of a sensitivity analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tornado {
    /// Metric.
    pub metric: &'static Metric,
    /// Its current value.
    pub value: f64,
    /// Levers that affect the metric, or whose change leads to a scenario that cannot run, largest effect first. Those
    /// whose step is not a small change are last.
    pub swings: Vec<Swing>,
    /// Levers without effect.
    pub idle: Vec<Lever>,
    /// Explanations of surprising results.
    pub notes: Vec<&'static str>,
}

/// Note for accelerators whose peak rate has no effect.
const POWER_LIMITED: &str = "peak FLOP/s: large GEMMs of this generation run at the device's power limit, so that their \
                             rate follows its power; a higher peak at the same power is no faster";

impl Tornado {
    /// Whether a result is better than the current value.
    #[must_use]
    pub fn better(&self, outcome: &Outcome) -> bool {
        self.metric.better.is_better(outcome.value, self.value)
    }
}

/// Changes every lever that applies to the scenario; `None` if its estimate does not have the metric.
#[must_use]
pub fn sensitivity(scenario: &Scenario, parts: &Parts, metric: &'static Metric) -> Option<Tornado> {
    let mut estimate = Estimate::default();
    estimate_into(scenario, &mut estimate);
    let value = metric.value(&estimate, scenario)?;
    let runs = fits(&estimate);
    let analytical = scenario.machine.is_some() && scenario.engine.models_hardware();
    let mut trial = Trial { scenario, parts, metric, estimate };
    let mut swings = trial.knobs();
    swings.extend(trial.hardware(analytical));
    for swing in &mut swings {
        let outcomes = [&swing.down, &swing.up].into_iter().flatten();
        let values = outcomes.filter(|outcome| outcome.failure.is_none() || !runs).map(|outcome| outcome.value);
        swing.max_change = values.map(|after| change(value, after).abs()).fold(0.0, f64::max);
    }
    // Effects below the rounding error count as none. Levers whose change leads to a failure are listed.
    const NEGLIGIBLE: f64 = 1e-9;
    let matters = |swing: &Swing| {
        let fails = [&swing.down, &swing.up].into_iter().flatten().any(|outcome| outcome.failure.is_some() && runs);
        swing.max_change > NEGLIGIBLE || fails
    };
    let (mut swings, idle): (Vec<Swing>, Vec<Swing>) = swings.into_iter().partition(matters);
    sort::by(&mut swings, |a, b| a.is_large_step().cmp(&b.is_large_step()).then(b.max_change.total_cmp(&a.max_change)));
    let idle: Vec<Lever> = idle.into_iter().map(|swing| swing.lever).collect();
    let limited = scenario.machine.is_some_and(|machine| power_limited(&machine.device));
    let surprising = analytical && limited && idle.contains(&Lever::Hardware(Hardware::PeakFlops));
    let notes = if surprising { vec![POWER_LIMITED] } else { Vec::new() };
    Some(Tornado { metric, value, swings, idle, notes })
}

/// Changes levers of a scenario, one at a time.
struct Trial<'s> {
    scenario: &'s Scenario,
    parts: &'s Parts,
    metric: &'static Metric,
    estimate: Estimate,
}

impl Trial<'_> {
    /// Swings of all knobs with an effect.
    fn knobs(&mut self) -> Vec<Swing> {
        // Price and network bandwidth are among the hardware parameters.
        let skipped = [Knob::Engine, Knob::Seed, Knob::Noise, Knob::HourlyUsd, Knob::NetworkGbps];
        let mut swings = Vec::new();
        for knob in Knob::all().filter(|knob| self.scenario.uses(*knob) && !skipped.contains(knob)) {
            // Unless stated, bits per weight follow the format.
            if knob == Knob::WeightBits && self.scenario.base.plan.weight_bits.is_none() {
                continue;
            }
            let from = self.scenario.get(knob);
            let (down, up) = (self.knob_moved(knob, &from, -1), self.knob_moved(knob, &from, 1));
            swings.push(Swing { lever: Lever::Knob(knob), from: from.to_string(), down, up, max_change: 0.0 });
        }
        swings
    }

    /// Result with the next lower (`by` < 0) or higher value of a knob, if there is one.
    fn knob_moved(&mut self, knob: Knob, from: &Setting, by: i32) -> Option<Outcome> {
        if let Some(formats) = formats_beyond(knob, from, by) {
            // Use the next format that accelerator and software support.
            return formats.iter().find_map(|format| {
                let (mut scenario, to) = (self.scenario.clone(), Setting::Choice(format.name().into()));
                scenario.set(knob, &to, self.parts).ok()?;
                scenario.check(self.parts).ok()?;
                let (outcome, unsupported) = self.outcome(&scenario, to.to_string())?;
                (!unsupported).then_some(outcome)
            });
        }
        let to = step(knob, from, by, self.parts)?;
        // The number of replicas follows the layout; otherwise no rank of a full target could be changed alone.
        let layout = matches!(knob, Knob::Tp | Knob::Pp | Knob::Cp | Knob::NumNodes);
        let mut scenario = if layout { freed(self.scenario, &|_| false, self.parts) } else { self.scenario.clone() };
        scenario.set(knob, &to, self.parts).ok()?;
        scenario.check(self.parts).ok()?;
        Some(self.outcome(&scenario, to.to_string())?.0)
    }

    /// Swings of the hardware parameters; all of them if the engine is `analytical`.
    fn hardware(&mut self, analytical: bool) -> Vec<Swing> {
        let parameters = Hardware::ALL
            .into_iter()
            .filter(|hardware| analytical || matches!(hardware, Hardware::Price | Hardware::Power | Hardware::Memory));
        let swing = |hardware: Hardware| {
            let [down, up] = [1.0 - SHARE, 1.0 + SHARE].map(|factor| {
                let to = format!("{:+.0} %", 100.0 * (factor - 1.0));
                Some(self.outcome(&hardware.scaled(self.scenario, factor), to)?.0)
            });
            Swing { lever: Lever::Hardware(hardware), from: String::new(), down, up, max_change: 0.0 }
        };
        parameters.map(swing).collect()
    }

    /// Result of a change to `scenario`, and whether it leads to a format that is not supported; `None` without a value.
    fn outcome(&mut self, scenario: &Scenario, to: String) -> Option<(Outcome, bool)> {
        estimate_into(scenario, &mut self.estimate);
        let verdict = self.estimate.detail.as_ref().map(|detail| detail.verdict).filter(|verdict| !verdict.fits());
        let unsupported = matches!(
            verdict,
            Some(Verdict::Format { .. } | Verdict::SoftwareFormat { .. } | Verdict::CacheFormat { .. })
        );
        let failure = verdict.map(|verdict| verdict.describe());
        Some((Outcome { to, value: self.metric.value(&self.estimate, scenario)?, failure }, unsupported))
    }
}

/// One format per size, fewest bits first; formats of the same size differ little in speed. Gradients have 16 or 32
/// bits.
const FORMATS: [Format; 3] = [Format::Fp4, Format::Fp8, Format::Bf16];
const GRADIENTS: [Format; 2] = [Format::Bf16, Format::Fp32];
/// Bits per weight of common quantized model files: Q3_K_M, Q4_K_M, Q5_K_M, Q6_K, Q8_0.
const SIZES: [f64; 5] = [3.91, 4.85, 5.69, 6.56, 8.5];

/// Formats with fewer (`by` < 0) or more bits than `from`, nearest first; `None` if the knob does not select a format.
fn formats_beyond(knob: Knob, from: &Setting, by: i32) -> Option<Vec<Format>> {
    let all = match knob {
        Knob::Precision | Knob::Compute | Knob::ExpertPrecision | Knob::KvPrecision => &FORMATS[..],
        Knob::GradientFormat => &GRADIENTS[..],
        _ => return None,
    };
    let Setting::Choice(name) = from else { return None };
    let size = |format: Format| Precision::from(format).bytes();
    let current = size(Format::named(name)?);
    let beyond = |format: &Format| if by < 0 { size(*format) < current } else { size(*format) > current };
    let formats = all.iter().copied().filter(beyond);
    Some(if by < 0 { formats.rev().collect() } else { formats.collect() })
}

/// Value one step away; `None` at the end of the range.
fn step(knob: Knob, from: &Setting, by: i32, parts: &Parts) -> Option<Setting> {
    let to = match (knob.spec().kind, from) {
        (_, Setting::Number(now)) if knob == Knob::WeightBits => {
            let mut sizes = SIZES.iter();
            let next = if by < 0 { sizes.rfind(|size| *size < now) } else { sizes.find(|size| *size > now) };
            Setting::Number(*next?)
        }
        // Real numbers change by ten percent, like hardware parameters: their steps are meant for editing.
        (ValueType::Number { bounds, .. }, Setting::Number(now)) if !bounds.whole && *now > 0.0 => {
            let moved = now * (1.0 + SHARE * f64::from(by));
            Setting::Number(moved.clamp(bounds.min, bounds.max))
        }
        _ => knob.step(from, by, parts.fabrics()),
    };
    (to != *from).then_some(to)
}

/// Relative change.
fn change(before: f64, after: f64) -> f64 {
    if before == after {
        0.0
    } else if before == 0.0 || !after.is_finite() {
        1.0
    } else {
        after / before - 1.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    use crate::search::metric;
    use crate::testing;

    /// On Hopper, the rate of large GEMMs is limited by power; on Ampere by the peak rate, and there is no note.
    #[test]
    fn peak_flops_has_no_swing_and_a_note_where_power_is_the_limit() {
        for (target, limited) in [("h100-sxm-8", true), ("a100-sxm-80gb-8", false)] {
            let (parts, scenario) = testing::scenario(target, "llama3.1-8b-train", &[]);
            let tornado = sensitivity(&scenario, &parts, metric::named("throughput").unwrap()).unwrap();
            let moves = |hardware| tornado.swings.iter().any(|swing| swing.lever == Lever::Hardware(hardware));
            assert_eq!((moves(Hardware::Power), moves(Hardware::PeakFlops)), (limited, !limited), "{target}");
            assert_eq!(!tornado.notes.is_empty(), limited, "{target}");
        }
    }

    /// Weights with 7.2 bits and KV caches in TF32 do not exist.
    #[test]
    fn sensitivity_moves_formats_to_the_next_supported_size() {
        let moves = |target: &str, settings: &[(Knob, &str)], knob: Knob| {
            let (parts, mut scenario) = testing::scenario(target, "llama3.1-70b-serve", &[]);
            for (knob, text) in settings {
                scenario.set(*knob, &knob.parse(text, parts.fabrics()).unwrap(), &parts).unwrap();
            }
            let tornado = sensitivity(&scenario, &parts, metric::named("throughput").unwrap()).unwrap();
            let swing = tornado.swings.into_iter().find(|swing| swing.lever == Lever::Knob(knob));
            let to = |outcome: Option<Outcome>| outcome.map(|outcome| outcome.to);
            swing.map(|swing| [to(swing.down), to(swing.up)])
        };
        let some = |word: &str| Some(word.to_owned());
        assert_eq!(moves("h100-sxm-8", &[], Knob::Precision), Some([some("fp4"), some("bf16")]));
        assert_eq!(
            moves("h100-sxm-8", &[], Knob::Compute),
            Some([None, some("bf16")]),
            "Hopper does not multiply in FP4"
        );
        assert_eq!(
            moves("h100-sxm-8", &[], Knob::KvPrecision).map(|[_, up]| up),
            Some(None),
            "no KV format is wider than BF16"
        );
        assert_eq!(moves("h100-sxm-8", &[], Knob::WeightBits), None, "the format states it");
        let file = [(Knob::Software, "llama.cpp"), (Knob::Precision, "q4_k_m")];
        assert_eq!(moves("h100-sxm-8", &file, Knob::WeightBits), Some([some("3.91"), some("5.69")]));
    }

    #[test]
    fn price_swing_affects_cost_but_not_throughput() {
        let (parts, scenario) = testing::scenario("NVIDIA_H100_8x_NVLink", "gpt5_1t_inference", &[]);
        let cost = sensitivity(&scenario, &parts, metric::named("cost").unwrap()).unwrap();
        let price = cost.swings.iter().find(|swing| swing.lever == Lever::Hardware(Hardware::Price)).unwrap();
        assert!(cost.better(price.down.as_ref().unwrap()) && !cost.better(price.up.as_ref().unwrap()));
        // Energy is billed separately, so the rent is only a part of the cost.
        assert!(price.max_change > 0.05 && price.max_change < SHARE);
        let speed = sensitivity(&scenario, &parts, metric::named("throughput").unwrap()).unwrap();
        assert!(speed.idle.contains(&Lever::Hardware(Hardware::Price)));
        let small = speed.swings.iter().filter(|swing| !swing.is_large_step());
        assert!(small.is_sorted_by(|a, b| a.max_change >= b.max_change));
    }

    #[test]
    fn features_to_enable_and_more_nodes_are_listed_last() {
        let (parts, scenario) = testing::scenario("h100-sxm-8", "llama3.1-70b-serve", &[]);
        let cost = sensitivity(&scenario, &parts, metric::named("cost").unwrap()).unwrap();
        assert!(cost.swings.iter().take(3).any(|swing| swing.lever == Lever::Knob(Knob::Concurrency)));
        let large: Vec<bool> = cost.swings.iter().map(Swing::is_large_step).collect();
        assert!(large.is_sorted() && large.contains(&true), "{large:?}");
    }
}
