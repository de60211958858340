//! Section 4 of the guide: p_node_nominal, phi_idle, phi_util.

use super::Calibration;
use crate::calibrate::columns::MetricColumn;
use crate::calibrate::observation::Observation;
use crate::calibrate::parameter::{NODE_WATTS, PHI_IDLE, PHI_UTIL, Parameter, Slot, files};
use crate::calibrate::statistics::{Estimate, Fit, location, regress};

impl<'a> Calibration<'a> {
    /// Fits the power of a node as a line over utilization. Its value at full utilization is the nominal power;
    /// intercept and slope over it are the fractions.
    pub(super) fn power(&mut self) {
        let curve = |figure: MetricColumn, guide: &Calibration<'a>| {
            let points = guide.own().filter_map(|row| {
                let watts = row.figure(figure)?.value;
                let busy = row
                    .figure(MetricColumn::Utilization)
                    .map(|busy| busy.value)
                    .filter(|busy| (0.0..=1.0).contains(busy));
                (watts > 0.0 && watts.is_finite()).then_some((busy, watts, row))
            });
            points.collect::<Vec<(Option<f64>, f64, &'a Observation)>>()
        };
        let nodes = curve(MetricColumn::PowerW, self);
        let devices = curve(MetricColumn::GpuPowerW, self);
        if nodes.is_empty() {
            self.record_missing("p_node_nominal", "power of a node under full load (IPMI or a power meter)");
            if !devices.is_empty() {
                self.warn(
                    "power: the samples cover only the accelerators; a node draws more (fans, processors, network), so \
                     p_node_nominal is unchanged",
                );
            }
        }
        let whole = !nodes.is_empty();
        let points = if whole { nodes } else { devices };
        let known: Vec<(f64, f64, &'a Observation)> =
            points.iter().filter_map(|(busy, watts, row)| Some(((*busy)?, *watts, *row))).collect();
        match line(&known) {
            Some(fit) => self.fractions(&fit, &known, whole),
            None => {
                self.record_missing("phi_idle", "power when idle and at several loads, with the utilization");
                self.record_missing("phi_util", "power when idle and at several loads, with the utilization");
                if whole {
                    self.largest(&points);
                }
            }
        }
    }

    fn fractions(&mut self, fit: &Fit, points: &[(f64, f64, &'a Observation)], whole: bool) {
        let at = |beta: &[f64], index: usize| beta.get(index).copied().unwrap_or(0.0);
        let rows = || points.iter().map(|(.., row)| *row);
        let full = |beta: &[f64]| at(beta, 0) + at(beta, 1);
        if full(&fit.beta) <= 0.0 {
            return self
                .warn("power: the line fitted to the samples is not positive at full utilization; it was discarded");
        }
        if let (true, Some(nominal)) = (whole, fit.derived(full)) {
            let method = "power at full utilization, from a line fitted to all samples";
            self.take(nominal_watts(nominal, method, rows()));
        }
        let shares: [(Slot, Share); 2] = [
            (PHI_IDLE, |beta| beta.first().copied().unwrap_or(0.0) / beta.iter().sum::<f64>()),
            (PHI_UTIL, |beta| beta.get(1).copied().unwrap_or(0.0) / beta.iter().sum::<f64>()),
        ];
        for (slot, share) in shares {
            if let Some(found) = fit.derived(share) {
                let found = found.at_least(0.0);
                let method = "robust fit of power = p_node_nominal (phi_idle + phi_util utilization)";
                self.take(Parameter::new(&slot, found, method, rows()));
            }
        }
        if fit.beta.get(1) == Some(&0.0) {
            self.warn("power: does not increase with utilization in these samples");
        }
    }

    /// Nominal power by the guide if no utilization is known: the power under full load.
    fn largest(&mut self, points: &[(Option<f64>, f64, &'a Observation)]) {
        let most = points.iter().map(|(_, watts, _)| *watts).fold(0.0, f64::max);
        let near: Vec<f64> = points.iter().map(|(_, watts, _)| *watts).filter(|watts| *watts > 0.95 * most).collect();
        if let Some(found) = location(&near) {
            let rows = points.iter().filter(|(_, watts, _)| *watts > 0.95 * most).map(|(.., row)| *row);
            self.take(nominal_watts(found, "largest measured power, since the utilization is unknown", rows));
        }
    }
}

/// Computes a share of the power from intercept and slope.
type Share = fn(&[f64]) -> f64;

fn nominal_watts<'a>(found: Estimate, method: &str, rows: impl IntoIterator<Item = &'a Observation>) -> Parameter {
    Parameter {
        symbol: "p_node_nominal".to_owned(),
        path: NODE_WATTS.to_owned(),
        value: found.value,
        interval: found.interval,
        n: found.n,
        r2: found.r2,
        before: None,
        method: method.to_owned(),
        sources: files(rows),
    }
}

/// Fits power over utilization with a line that is not negative at either end.
fn line(points: &[(f64, f64, &Observation)]) -> Option<Fit> {
    let spread = points.iter().map(|(busy, ..)| *busy).fold(0.0, f64::max)
        - points.iter().map(|(busy, ..)| *busy).fold(1.0, f64::min);
    if spread < 0.2 {
        return None;
    }
    let xs: Vec<Vec<f64>> = points.iter().map(|(busy, ..)| vec![*busy]).collect();
    let ys: Vec<f64> = points.iter().map(|(_, watts, _)| *watts).collect();
    regress(&xs, &ys, &[true, true], true)
}
