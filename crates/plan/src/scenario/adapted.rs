//! Values of a workload file that a target cannot run as they are: the file was written for another one.

use super::{Parts, Phase, Scenario};
use crate::knob::{Knob, Overrides, Setting};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::plan::Format;
use atlas_perf::accelerator::Precision;

impl Scenario {
    /// Adapts the global batch and the format of a training workload to a target that was named without further settings,
    /// where `overrides` do not state them: the batch to the nearest one that the layout can divide, MXFP8 to fp8 where
    /// matrix units apply no block scales. Adds the new values to `overrides`, and returns a note on each.
    pub fn adapt_to_target(&mut self, overrides: &mut Overrides, parts: &Parts) -> Vec<String> {
        let stated = |knobs: &[Knob]| knobs.iter().any(|knob| overrides.contains_key(knob));
        let mut changes = Vec::new();
        if self.replaceable_mxfp8() && !stated(&[Knob::Precision, Knob::Compute]) {
            let note = "the accelerator does not support mxfp8: using fp8".to_owned();
            changes.push((Knob::Precision, Setting::Choice(Format::Fp8.name().into()), note));
        }
        if let Some(rounded) = self.divisible_global().filter(|_| !stated(&[Knob::Global])) {
            let (before, dp) = (self.global(&self.base), self.base.shape.dp);
            let note = format!(
                "the workload's batch of {before} sequences is rounded to {rounded}, which {dp} replicas can divide"
            );
            changes.push((Knob::Global, Setting::Number(rounded), note));
        }
        let mut notes = Vec::new();
        for (knob, setting, note) in changes {
            if self.set(knob, &setting, parts).is_ok() {
                overrides.insert(knob, setting);
                notes.push(note);
            }
        }
        notes
    }

    /// Whether the format is MXFP8 on an accelerator that has fp8 without block scales.
    fn replaceable_mxfp8(&self) -> bool {
        self.mode() == Mode::Training
            && self.format(&self.base) == Format::Mxfp8
            && self.machine.is_some_and(|machine| {
                machine.device.supports(Precision::Fp8) && !machine.device.multiplies(Format::Mxfp8)
            })
    }

    /// Global batch nearest to the stated one that the layout can divide, if it cannot divide the stated one: a multiple
    /// of dp × micro-batch, and with interleaved stages also of pp.
    fn divisible_global(&self) -> Option<f64> {
        let (Phase { shape, plan, .. }, models) = (&self.base, self.engine.models_hardware());
        let stated = f64::from(plan.global.filter(|_| models && shape.mode == Mode::Training)?);
        let interleaved = shape.pp > 1.0 && plan.vpp.is_some_and(|chunks| chunks > Count::ONE);
        let unit = shape.dp * self.micro(&self.base) * if interleaved { f64::from(shape.pp) } else { 1.0 };
        (unit >= 1.0 && stated % unit != 0.0).then(|| (stated / unit).round().max(1.0) * unit)
    }
}
