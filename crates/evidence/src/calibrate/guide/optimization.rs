//! Section 5 of the guide: delta_rho from pairs of runs that differ in one switch.

use super::Calibration;
use crate::calibrate::columns::MetricColumn;
use crate::calibrate::observation::Observation;
use crate::calibrate::parameter::{DELTA_CUDA, DELTA_GPUDIRECT, DELTA_INFER, Parameter, Slot};
use crate::calibrate::statistics::{Estimate, location};
use atlas_config::Mode;

impl<'a> Calibration<'a> {
    /// delta_rho of CUDA graphs, GPUDirect and inference.
    pub(super) fn increments(&mut self) {
        for (slot, switch) in [(DELTA_CUDA, "cuda_graphs"), (DELTA_GPUDIRECT, "gpudirect_rdma")] {
            self.pairs(&slot, switch);
        }
        self.bonus();
    }

    /// Difference in utilization within pairs of rows that are identical except for the switch.
    fn pairs(&mut self, slot: &Slot, switch: &'static str) {
        let on: Vec<&'a Observation> = self.own().filter(|row| row.switch(switch) == Some(true)).collect();
        let off: Vec<&'a Observation> = self.own().filter(|row| row.switch(switch) == Some(false)).collect();
        let mut taken = vec![false; off.len()];
        let mut gains = Vec::new();
        let mut rows: Vec<&'a Observation> = Vec::new();
        let mut spread = None;
        for with in on {
            let matching = off.iter().zip(&mut taken).find(|(without, taken)| {
                !**taken && with.configuration_key(&[switch]) == without.configuration_key(&[switch])
            });
            let Some((without, taken)) = matching else { continue };
            if let Some(gain) = self.gain(with, without) {
                *taken = true;
                gains.push(gain.0);
                spread = gain.1;
                rows.extend([with, *without]);
            }
        }
        let Some(mut found) = location(&gains) else {
            let needs = if switch == "cuda_graphs" {
                "pairs of runs with and without CUDA graphs (cuda_graphs=on, off), otherwise identical"
            } else {
                "pairs of runs with and without GPUDirect (gpudirect_rdma=on, off), otherwise identical"
            };
            return self.record_missing(slot.symbol, needs);
        };
        if let (1, Some(half)) = (gains.len(), spread) {
            found.interval = Some([found.value - half, found.value + half]);
        }
        let method = format!("utilization with {switch} minus utilization without it, {} pairs of runs", gains.len());
        let room = self.c().rho_max;
        if !(-room..=room).contains(&found.value) {
            return self.warn(format!(
                "{}: a utilization gain of {:+.2} is out of range, expected -{room:.2} to {room:.2}; it was \
                 discarded",
                slot.symbol, found.value
            ));
        }
        if found.value < 0.0 {
            self.warn(format!("{}: the runs with {switch} are slower", slot.symbol));
        }
        self.take(Parameter::new(slot, found, method, rows));
    }

    /// Gain in utilization of one run over another, and half the width of its interval if the rows contain it.
    fn gain(&self, with: &Observation, without: &Observation) -> Option<(f64, Option<f64>)> {
        for metric in [MetricColumn::FlopUtilization, MetricColumn::Utilization] {
            if let (Some(a), Some(b)) = (with.figure(metric), without.figure(metric)) {
                let error = |one: &crate::calibrate::observation::Measured| Some(one.std?.powi(2) / one.n?.max(1.0));
                let half = error(&a).zip(error(&b)).map(|(a, b)| 1.96 * (a + b).sqrt());
                return Some((a.value - b.value, half));
            }
        }
        let (a, b) = (with.throughput()?.value, without.throughput()?.value);
        // The run without the switch has utilization rho_base, so this is the difference in units of full utilization.
        Some((self.c().rho_base * (a / b - 1.0), None))
    }

    /// delta_rho_infer: utilization of inference over that of training.
    fn bonus(&mut self) {
        let mut rows = Vec::new();
        let mut values = Vec::new();
        for row in self.own().filter(|row| row.mode() == Mode::Inference) {
            if let Some((share, _)) = self.achieved(row).filter(|(share, _)| (0.0..=1.0).contains(share)) {
                let lost = self.communication(row).map_or(0.0, |known| self.c().kappa_comm * known.omega_comm);
                values.push(share / (1.0 - lost).max(0.1));
                rows.push(row);
            }
        }
        let base = self.found.iter().find(|found| found.path == "utilization.base").map(|found| found.value);
        if let (Some(base), Some(found)) = (base, location(&values)) {
            let found: Estimate = found.plus(-base);
            let method = "share of the peak FLOP/s in inference, minus rho_base";
            self.take(Parameter::new(&DELTA_INFER, found, method, rows));
        }
    }
}
