//! Section 2 of the guide: chi_base, chi_tp, chi_pp; gamma_fabric; gamma_jitter.

use crate::calibrate::columns::MetricColumn;
use atlas_core::math;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Calibration, fabric_name};
use crate::calibrate::observation::{LARGE_MESSAGE, Observation};
use crate::calibrate::parameter::{CHI_BASE, CHI_PP, CHI_TP, FABRICS, JITTER, Parameter, files};
use crate::calibrate::statistics::{Estimate, bootstrap, factor, regress, weighted};
use atlas_config::Mode;
use atlas_core::statistics::quantile;

/// Number of runs that the guide requires for a 95th percentile of run times.
const RUNS: usize = 100;

/// One point of the regression.
struct Point<'a> {
    row: &'a Observation,
    tp: f64,
    pp: f64,
    /// Overhead over omega and gamma, in units of chi.
    overhead: f64,
    /// Multiplier of chi in the relative time lost: omega and gamma; 1 if a profiler measured the overhead itself.
    weight: f64,
    /// Half the relative width of the reference of the overhead: an error that all points with this reference share.
    shared: f64,
}

/// Settings that runs of a group may differ in, of which the cost is compared.
const IGNORED_SETTINGS: [&str; 7] = ["tp", "pp", "dp", "num_gpus", "vpp", "sp", "global_batch"];

/// Number of distinct whole numbers.
fn distinct(values: impl Iterator<Item = f64>) -> usize {
    values.map(|value| value as u64).collect::<BTreeSet<u64>>().len()
}

impl<'a> Calibration<'a> {
    /// chi: non-negative regression of the overhead on tp − 1 and pp − 1.
    pub(super) fn intensity(&mut self) {
        let needs = "step times or tokens/s at tp = pp = 1 and at several larger degrees, same model and batch size";
        let omega = self.c().omega;
        if omega <= 0.0 {
            return self.warn("chi: not determined, since the profile's overhead_weight is 0 and hides all overhead");
        }
        let (points, references) = self.overheads(omega);
        let tp = distinct(points.iter().map(|point| point.tp));
        let pp = distinct(points.iter().map(|point| point.pp));
        if points.len() < 2 || (tp < 2 && pp < 2) {
            if !self.relative_intensity(omega) {
                for symbol in ["chi_base", "chi_tp", "chi_pp"] {
                    self.record_missing(symbol, needs);
                }
            }
            return;
        }
        let wanted = [true, tp > 1, pp > 1];
        let xs: Vec<Vec<f64>> = points.iter().map(|point| vec![point.tp - 1.0, point.pp - 1.0]).collect();
        let ys: Vec<f64> = points.iter().map(|point| point.overhead).collect();
        // The error of a time is proportional to it, and so is that of the overhead plus one.
        let scale = |point: &Point<'a>| 1.0 / (1.0 + point.weight * point.overhead.max(0.0));
        let scales: Vec<f64> = points.iter().map(scale).collect();
        let Some(fit) = weighted(&xs, &ys, &scales, &wanted, true) else {
            return self.record_missing("chi_tp", "runs with several combinations of tp and pp that differ in both");
        };
        let described = "overhead relative to a run without parallelism, divided by omega and gamma, regressed on \
                         tp - 1 and pp - 1 (Huber, non-negative)";
        for (index, slot) in [CHI_BASE, CHI_TP, CHI_PP].iter().enumerate() {
            match fit.estimate(index).filter(|_| wanted.get(index) == Some(&true)) {
                Some(found) => {
                    let rows = points.iter().map(|point| point.row).chain(references.iter().copied());
                    // The reference run without parallelism has its own error, which shifts all points together.
                    let shared = points.iter().map(|point| point.shared).fold(0.0, f64::max);
                    let weight = points.first().map_or(1.0, |point| point.weight);
                    let shift = if index == 0 { found.value + 1.0 / weight } else { found.value };
                    let found = found.widened(&[shared * shift]);
                    self.take(Parameter::new(slot, found.at_least(0.0), described, rows));
                }
                None => self.record_missing(slot.symbol, "runs that differ in this degree of parallelism"),
            }
        }
        if fit.r2.is_some_and(|r2| r2 < 0.5) {
            self.warn(
                "chi: the regression explains less than half of the variance: the runs differ in more than tp and pp",
            );
        }
    }

    /// Accelerator-seconds per token, or per step if tokens are not known.
    fn cost(&self, row: &Observation) -> Option<f64> {
        let per_token = row.throughput().map(|rate| self.bench.accelerators(row) / rate.value);
        let per_step = || row.figure(MetricColumn::StepTimeS).map(|time| time.value);
        per_token.or_else(per_step).filter(|cost| cost.is_finite() && *cost > 0.0)
    }

    /// Returns the overheads given in rows, or relative to the run of their group without parallelism, and the
    /// reference rows.
    fn overheads(&self, omega: f64) -> (Vec<Point<'a>>, Vec<&'a Observation>) {
        let mut points = Vec::new();
        let mut references: Vec<&'a Observation> = Vec::new();
        let mut groups: BTreeMap<String, Vec<(&'a Observation, f64)>> = BTreeMap::new();
        for row in self.own().filter(|row| row.mode() == Mode::Training) {
            let Some(known) = self.communication(row) else { continue };
            if let Some(stated) = row.figure(MetricColumn::Overhead) {
                if stated.value.is_finite() && stated.value >= 0.0 && known.tp * known.pp > 1.0 {
                    // An overhead measured by a profiler is omega_comm itself; omega weights it only in times.
                    let overhead = stated.value / known.gamma;
                    points.push(Point { row, tp: known.tp, pp: known.pp, overhead, weight: 1.0, shared: 0.0 });
                }
            } else if let Some(cost) = self.cost(row) {
                groups.entry(row.configuration_key(&IGNORED_SETTINGS)).or_default().push((row, cost));
            }
        }
        for rows in groups.values() {
            let bare = |row: &Observation| row.ranks("tp") == 1.0 && row.ranks("pp") == 1.0;
            let least = rows.iter().filter(|(row, _)| bare(row)).map(|(row, _)| self.bench.accelerators(row));
            let Some(least) = least.reduce(f64::min) else { continue };
            let reference = |(row, _): &&(&'a Observation, f64)| bare(row) && self.bench.accelerators(row) == least;
            let costs: Vec<f64> = rows.iter().filter(reference).map(|(_, cost)| *cost).collect();
            let Some(without) = factor(&costs) else { continue };
            references.extend(rows.iter().filter(reference).map(|(row, _)| *row));
            for (row, cost) in rows.iter().filter(|(row, _)| !bare(row)) {
                if let Some(known) = self.communication(row) {
                    let weight = omega * known.gamma;
                    let overhead = (cost / without.value - 1.0) / weight;
                    let shared = without.relative_width().unwrap_or(0.0);
                    points.push(Point { row, tp: known.tp, pp: known.pp, overhead, weight, shared });
                }
            }
        }
        (points, references)
    }

    /// Without a run free of parallelism: increments by tp and pp relative to each other, with chi_base unchanged.
    fn relative_intensity(&mut self, omega: f64) -> bool {
        let mut groups: BTreeMap<String, Vec<(&'a Observation, f64, super::Communication)>> = BTreeMap::new();
        for row in self.own().filter(|row| row.mode() == Mode::Training) {
            if let (Some(cost), Some(known)) = (self.cost(row), self.communication(row)) {
                groups.entry(row.configuration_key(&IGNORED_SETTINGS)).or_default().push((row, cost, known));
            }
        }
        let Some(rows) = groups.into_values().max_by_key(Vec::len).filter(|rows| rows.len() >= 3) else { return false };
        let several = |of: fn(&super::Communication) -> f64| distinct(rows.iter().map(|(.., known)| of(known))) > 1;
        let wanted = [true, several(|known| known.tp), several(|known| known.pp)];
        if !wanted.iter().skip(1).any(|wanted| *wanted) {
            return false;
        }
        let xs: Vec<Vec<f64>> = rows.iter().map(|(.., known)| vec![known.tp - 1.0, known.pp - 1.0]).collect();
        // In units of the lowest cost, so that the numbers are near 1.
        let least = rows.iter().map(|(_, cost, _)| *cost).fold(f64::INFINITY, f64::min);
        let ys: Vec<f64> = rows.iter().map(|(_, cost, _)| cost / least).collect();
        let Some(fit) = regress(&xs, &ys, &wanted, true) else { return false };
        let gamma = rows.first().map_or(1.0, |(.., known)| known.gamma);
        let base = 1.0 + omega * gamma * self.c().chi_base;
        let described = "accelerator time per token regressed on tp - 1 and pp - 1, relative to each other; chi_base \
                         is unchanged, since no run is without parallelism";
        for (index, slot) in [(1, CHI_TP), (2, CHI_PP)] {
            if wanted.get(index) != Some(&true) {
                continue;
            }
            let of = |beta: &[f64]| {
                let (alpha, slope) = (beta.first().copied().unwrap_or(1.0), beta.get(index).copied().unwrap_or(0.0));
                slope / alpha * base / (omega * gamma)
            };
            if let Some(found) = fit.derived(of).filter(|found| found.value.is_finite()) {
                self.take(Parameter::new(&slot, found.at_least(0.0), described, rows.iter().map(|(row, ..)| *row)));
            }
        }
        self.record_missing("chi_base", "a run without tensor and pipeline parallelism as the reference");
        true
    }

    /// gamma_fabric: bandwidth of InfiniBand over that of the fabric, by message size.
    pub(super) fn fabrics(&mut self) {
        let known = self.figures.fabrics.clone();
        let mut by_fabric: BTreeMap<Arc<str>, Vec<(&'a Observation, f64, f64)>> = BTreeMap::new();
        let mut unnamed = 0;
        for row in self.own().filter(|row| !row.collective.is_empty()) {
            let Some(word) = row.word("fabric") else {
                unnamed += 1;
                continue;
            };
            let name = fabric_name(&word, &known);
            let large = row.collective.iter().filter(|(bytes, rate)| *bytes >= LARGE_MESSAGE && *rate > 0.0);
            by_fabric.entry(name).or_default().extend(large.map(|(bytes, rate)| (row, *bytes, *rate)));
        }
        if unnamed > 0 {
            self.warn(format!(
                "gamma_fabric: the fabric of {unnamed} collective benchmarks is not specified; append it to the file \
                 name, as in ib.log:fabric=IB"
            ));
        }
        // The reference is the fabric whose factor is 1 by definition.
        let Some((reference, base)) = ["IB", "NVLink"].iter().find_map(|name| by_fabric.get_key_value(*name)) else {
            return self
                .record_missing("gamma_fabric", "nccl-tests over InfiniBand or NVLink and over the other fabrics");
        };
        let (reference, base) = (Arc::clone(reference), base.clone());
        let mut others = 0;
        for (name, rows) in &by_fabric {
            if *name == reference {
                continue;
            }
            let mut ratios = Vec::new();
            for (row, bytes, rate) in rows {
                let same = |other: &&(&Observation, f64, f64)| {
                    let op = |row: &Observation| row.word("op");
                    let size = (other.1 == *bytes) || math::ln(other.1 / bytes).abs() < 0.01;
                    size && (op(other.0).is_none() || op(row).is_none() || op(other.0) == op(row))
                };
                let matching: Vec<f64> = base.iter().filter(same).map(|(.., rate)| *rate).collect();
                if let Some(with) = factor(&matching) {
                    ratios.push(with.value / rate);
                }
            }
            if ratios.is_empty() {
                // No message of the same size: compare the best bandwidth of each fabric.
                let best = |rows: &[(&Observation, f64, f64)]| rows.iter().map(|(.., rate)| *rate).fold(0.0, f64::max);
                if best(rows) > 0.0 {
                    ratios.push(best(&base) / best(rows));
                }
            }
            let Some(found) = factor(&ratios) else { continue };
            if !(0.05..=100.0).contains(&found.value) {
                self.warn(format!(
                    "gamma_fabric: the factor of {name} would be {:.3}, expected 0.05 to 100; it was discarded",
                    found.value
                ));
                continue;
            }
            others += 1;
            let rows = rows.iter().chain(&base).map(|(row, ..)| *row);
            self.take(Parameter {
                symbol: format!("gamma_fabric({name})"),
                path: format!("{FABRICS}.{name}"),
                value: found.value,
                interval: found.interval,
                n: found.n,
                r2: None,
                before: None,
                method: format!("bus bandwidth of {reference} divided by that of {name}, messages of at least 1 MB"),
                sources: files(rows),
            });
        }
        if others == 0 {
            self.record_missing("gamma_fabric", "nccl-tests over more than one fabric");
        }
    }

    /// gamma_jitter: 95th percentile over mean of the run times under SR-IOV.
    pub(super) fn jitter(&mut self) {
        let virtual_ = |row: &&'a Observation| row.word("virt").is_some_and(|virt| virt.eq_ignore_ascii_case("sriov"));
        let rows: Vec<&'a Observation> = self.own().filter(virtual_).collect();
        let times: Vec<f64> = rows.iter().filter_map(|row| Some(row.figure(MetricColumn::RuntimeS)?.value)).collect();
        let times: Vec<f64> = times.into_iter().filter(|time| *time > 0.0).collect();
        let ratio = |values: &mut Vec<f64>| {
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            quantile(values, 0.95) / mean
        };
        let of_runs = || (times.len() >= 2).then(|| bootstrap(&times, ratio)).flatten();
        let of_steps = || {
            let summed = rows.iter().filter_map(|row| {
                let series = row.figure(MetricColumn::RuntimeS).or_else(|| row.figure(MetricColumn::StepTimeS))?;
                let [p95, mean] = series.p95_and_mean?;
                (mean > 0.0).then_some((p95 / mean, series.n.unwrap_or(0.0)))
            });
            let summed: Vec<(f64, f64)> = summed.collect();
            let ratios: Vec<f64> = summed.iter().map(|(ratio, _)| *ratio).collect();
            let n = summed.iter().map(|(_, n)| n).sum::<f64>() as usize;
            Some(Estimate { n, ..factor(&ratios)? })
        };
        let Some(found) = of_runs().or_else(of_steps) else {
            return self
                .record_missing("gamma_jitter", "at least 100 run times of one workload under SR-IOV (virt=sriov)");
        };
        if found.n < RUNS {
            self.warn(format!("gamma_jitter: 95th percentile of {} runs, expected at least {RUNS}", found.n));
        }
        let method = "95th percentile of the run times under SR-IOV divided by their mean, minus 1";
        self.take(Parameter::new(&JITTER, found.plus(-1.0).at_least(0.0), method, rows));
    }
}
