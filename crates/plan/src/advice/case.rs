//! Input of advice rules: values of the scenario under short names, and helpers for changes that keep the scenario
//! consistent.

use super::Changes;
use crate::estimate::{Cause, Detail, Estimate, TimePart, Verdict};
use crate::knob::{Knob, Setting};
use crate::scenario::{Parts, Phase, Scenario};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::math;
use atlas_core::plan::{CpuOffload, Format, LoadKind, Optimizer, Recompute, Sharding};
use atlas_perf::accelerator::{Accelerator, Precision};
use atlas_perf::arch::Architecture;

/// A scenario and its estimate, as the input of advice rules.
pub(super) struct Case<'a> {
    /// The scenario.
    pub(super) scenario: &'a Scenario,
    /// Fabrics that the profile is calibrated for.
    pub(super) fabrics: &'a [(std::sync::Arc<str>, f64)],
    /// Its estimate.
    pub(super) estimate: Estimate,
    /// The device; a default value if unknown, which only rules of the calibrated model encounter.
    pub(super) device: Accelerator,
    /// The model; a default value if unknown, likewise.
    pub(super) arch: Architecture,
    /// Devices in a scale-up domain.
    pub(super) domain: f64,
    /// Devices of the target.
    pub(super) devices: f64,
    pub(super) tp: f64,
    pub(super) pp: f64,
    pub(super) cp: f64,
    pub(super) ep: f64,
    pub(super) dp: f64,
    pub(super) vpp: f64,
    /// Sequences per micro-batch.
    pub(super) micro: f64,
    /// Sequences per step.
    pub(super) global: f64,
    /// Tokens per sequence.
    pub(super) sequence: f64,
    pub(super) sharding: Sharding,
    pub(super) recompute: Recompute,
    pub(super) format: Format,
}

impl<'a> Case<'a> {
    pub(super) fn of(scenario: &'a Scenario, parts: &'a Parts, estimate: Estimate) -> Case<'a> {
        let Phase { shape, plan, .. } = &scenario.base;
        let machine = scenario.machine;
        Case {
            device: machine.map_or_else(Accelerator::default, |machine| machine.device),
            arch: scenario.model.unwrap_or_default(),
            domain: machine.map_or(f64::from(scenario.accelerators_per_node), |machine| machine.domain),
            devices: scenario.devices(),
            tp: f64::from(shape.tp),
            pp: f64::from(shape.pp),
            cp: if shape.mode == Mode::Training { f64::from(plan.cp.unwrap_or(Count::ONE)) } else { 1.0 },
            ep: f64::from(scenario.base.ep()),
            dp: f64::from(shape.dp),
            vpp: f64::from(plan.vpp.unwrap_or(Count::ONE)),
            micro: f64::from(scenario.microbatch),
            global: scenario.global(&scenario.base),
            sequence: (shape.prompt + shape.generate).max(1.0),
            sharding: scenario.sharding(&scenario.base),
            recompute: scenario.recompute(&scenario.base),
            format: scenario.format(&scenario.base),
            scenario,
            fabrics: parts.fabrics(),
            estimate,
        }
    }

    pub(super) fn detail(&self) -> Option<&Detail> {
        self.estimate.detail.as_ref()
    }

    /// Whether the scenario does not fit in memory.
    pub(super) fn exceeds_memory(&self) -> bool {
        self.detail().is_some_and(|detail| matches!(detail.verdict, Verdict::Memory { .. }))
    }

    /// Devices per replica.
    pub(super) fn replica(&self) -> f64 {
        self.tp * self.pp * self.scenario.base.groups()
    }

    /// Share of the time of a bottleneck.
    pub(super) fn share(&self, cause: Cause) -> f64 {
        self.detail().map_or(0.0, |detail| detail.limits.share(cause))
    }

    /// Share of the time of a part of the breakdown.
    pub(super) fn part(&self, part: TimePart) -> f64 {
        self.detail().map_or(0.0, |detail| detail.time.part(part) / detail.time.total().max(1e-12))
    }

    /// Whether the device supports a format, at a higher rate than 16-bit formats.
    pub(super) fn gains_from(&self, precision: Precision) -> bool {
        self.device.supports(precision) && self.device.peak(precision) > 1.01 * self.device.peak(Precision::Bf16)
    }

    /// Concurrent requests.
    pub(super) fn concurrency(&self) -> f64 {
        self.scenario.concurrency(&self.scenario.base)
    }

    /// Whether requests arrive at a given rate (open load) rather than with a given concurrency.
    pub(super) fn open_load(&self) -> bool {
        self.scenario.base.plan.serving.request_rate.is_some()
    }

    /// Whether the load decodes tokens, rather than prompts of an encoder, or prompts only.
    pub(super) fn decodes(&self) -> bool {
        let base = &self.scenario.base;
        base.generates && base.shape.generate > 0.0 && base.plan.serving.load != Some(LoadKind::PrefillOnly)
    }

    /// Numeric value of a knob in effect.
    pub(super) fn number(&self, knob: Knob) -> f64 {
        match self.scenario.get(knob) {
            Setting::Number(value) => value,
            _ => 0.0,
        }
    }

    /// Changes to another layout over the same devices. The number of replicas follows, and the batch does not change.
    /// Empty if the model cannot be split this way.
    pub(super) fn layout(&self, tp: f64, pp: f64, cp: f64) -> Changes {
        self.cut(tp, pp, cp, self.micro)
    }

    /// Changes to another micro-batch size, with the same global batch.
    pub(super) fn micro(&self, micro: f64) -> Changes {
        self.cut(self.tp, self.pp, self.cp, micro)
    }

    /// Like [`Case::layout`], and changes the micro-batch size too.
    pub(super) fn cut(&self, tp: f64, pp: f64, cp: f64, micro: f64) -> Changes {
        let mut changes = Changes::new();
        let sound = |ranks: f64| ranks >= 1.0 && ranks.fract() == 0.0;
        if !(sound(tp) && sound(pp) && sound(cp)) || pp > self.arch.layers || self.arch.heads % tp != 0.0 {
            return changes;
        }
        let ranks = [(Knob::Tp, self.tp, tp), (Knob::Pp, self.pp, pp), (Knob::Cp, self.cp, cp)];
        for (knob, now, then) in ranks.into_iter().chain([(Knob::Microbatch, self.micro, micro)]) {
            if now != then {
                changes.push(number(knob, then));
            }
        }
        if changes.is_empty() {
            return changes;
        }
        // Every chunk except the first and last needs at least one layer.
        if pp != self.pp && self.vpp > 1.0 && pp * self.vpp > self.arch.depth() + 2.0 {
            changes.push(number(Knob::Vpp, 1.0));
        }
        let mut dp = self.dp;
        if ranks.iter().any(|(_, now, then)| now != then) {
            let pinned = self.scenario.base.plan.dp.is_some();
            let used = self.tp * self.pp * self.cp * self.dp;
            let have = if pinned { used.min(self.devices) } else { self.devices };
            dp = (have / (tp * pp * cp)).floor().max(1.0);
            if pinned && dp != self.dp {
                changes.push(number(Knob::Dp, dp));
            }
        }
        self.keep_load(&mut changes, dp, micro);
        changes
    }

    /// Pins defaults that depend on the number of replicas, so that the amount of work does not change.
    pub(super) fn keep_load(&self, changes: &mut Changes, dp: f64, micro: f64) {
        let plan = &self.scenario.base.plan;
        match self.scenario.mode() {
            Mode::Training if plan.global.is_none() && dp * micro != self.global => {
                changes.push((Knob::Global, Setting::Number(self.global)));
            }
            Mode::Inference if plan.serving.concurrency.is_none() && !self.open_load() && dp != self.dp => {
                changes.push((Knob::Concurrency, Setting::Number(self.concurrency())));
            }
            _ => {}
        }
    }
}

/// Variants of Adam with smaller states than the optimizer in effect, largest first.
pub(super) fn smaller_optimizers(case: &Case<'_>) -> impl Iterator<Item = Setting> + use<> {
    let now = case.scenario.base.plan.optimizer.unwrap_or(Optimizer::Adam);
    let adam = [Optimizer::Adam, Optimizer::Adam16bit, Optimizer::Adam8bit];
    let at = adam.iter().position(|optimizer| *optimizer == now).unwrap_or(adam.len());
    adam.into_iter().skip(at + 1).map(|optimizer| Setting::Choice(optimizer.name().into()))
}

/// What host memory may hold beyond what it holds, if the software supports it, least first.
pub(super) fn further_offloads(case: &Case<'_>) -> impl Iterator<Item = Setting> + use<> {
    let now = case.scenario.base.plan.cpu_offload.unwrap_or(CpuOffload::None);
    let allowed = case.scenario.active_software.training.most_offload;
    let all = [CpuOffload::Optimizer, CpuOffload::Parameters].into_iter();
    all.filter(move |offload| now < *offload && *offload <= allowed)
        .map(|offload| Setting::Choice(offload.name().into()))
}

/// Change of a knob to a number.
pub(super) fn number(knob: Knob, value: f64) -> (Knob, Setting) {
    (knob, Setting::Number(value))
}

/// Change of a knob to a word.
pub(super) fn word(knob: Knob, word: &'static str) -> (Knob, Setting) {
    (knob, Setting::Choice(word.into()))
}

/// Change of a knob to on or off.
pub(super) fn toggle(knob: Knob, on: bool) -> (Knob, Setting) {
    (knob, Setting::Toggle(on))
}

/// Largest power of two up to `value`, at least 1.
pub(super) fn floor_power(value: f64) -> f64 {
    if value < 1.0 { 1.0 } else { math::exp2(math::log2(value).floor()) }
}

/// Largest whole number up to `limit` that divides `of`.
pub(super) fn divisor(of: f64, limit: f64) -> f64 {
    let mut by = limit.min(of).floor().clamp(1.0, 4096.0);
    while by > 1.0 && of % by != 0.0 {
        by -= 1.0;
    }
    by
}
