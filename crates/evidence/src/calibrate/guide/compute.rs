//! Section 1 of the guide: B_base, rho_base, f_vendor.

use crate::calibrate::columns::MetricColumn;
use std::collections::BTreeMap;

use super::{Calibration, is_baseline};
use crate::calibrate::observation::Observation;
use crate::calibrate::parameter::{B_BASE, F_INFERENCE, F_TRAINING, Parameter, RHO_BASE};
use crate::calibrate::predict::predicted;
use crate::calibrate::predicted_metric::PredictedMetric;
use crate::calibrate::statistics::{Estimate, factor, location};
use atlas_config::Mode;

/// Minimum utilization of the accelerator at which a configuration counts as stable (guide, section 1.1, step 3).
const MIN_STABLE_UTILIZATION: f64 = 0.7;
/// Maximum coefficient of variation of a stable configuration (guide, section 1.1, validation criteria).
const MAX_STABLE_VARIATION: f64 = 0.05;
/// Half width of the guide's interval of B_base, relative, for a single run without a given spread (section 10).
const DEFAULT_HALF_WIDTH: f64 = 0.05;
/// Rows by configuration.
type Configurations<'a> = BTreeMap<String, Vec<&'a Observation>>;

/// Rate of a configuration.
struct Candidate<'a> {
    rate: Estimate,
    cv: Option<f64>,
    busy: Option<f64>,
    rows: Vec<&'a Observation>,
}

impl Candidate<'_> {
    fn of<'a>(rows: &[&'a Observation]) -> Option<Candidate<'a>> {
        let rates: Vec<f64> = rows.iter().filter_map(|row| Some(row.throughput()?.value)).collect();
        let mut rate = location(&rates)?;
        let single = rows.first().filter(|_| rates.len() == 1).and_then(|row| row.throughput());
        let spread = (rates.len() > 1).then(|| {
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (rates.len() - 1) as f64;
            variance.sqrt() / mean
        });
        if let Some(single) = single {
            rate.n = single.n.map_or(1, |n| n as usize);
            let half = |half: f64| Some([rate.value - half, rate.value + half]);
            let of_spread = || half(1.96 * single.std? / single.n?.max(1.0).sqrt());
            rate.interval = single.interval.or_else(of_spread).or_else(|| half(DEFAULT_HALF_WIDTH * rate.value));
        }
        let busy: Vec<f64> = rows.iter().filter_map(|row| Some(row.figure(MetricColumn::Utilization)?.value)).collect();
        let busy = location(&busy).map(|busy| busy.value);
        Some(Candidate { rate, cv: spread.or(single.and_then(|single| single.variation())), busy, rows: rows.to_vec() })
    }

    /// Size of its model, as far as its rows contain it.
    fn size(&self) -> String {
        let figure = |name: &str, unit: &str| {
            let value = self.rows.first().and_then(|row| row.number(name))?;
            Some(format!("{value}{unit}"))
        };
        let parts = [
            figure("parameters_billion", " billion parameters"),
            figure("num_layers", " layers"),
            figure("hidden_size", " wide"),
        ];
        let stated: Vec<String> = parts.into_iter().flatten().collect();
        if stated.is_empty() { "a model of unknown size".to_owned() } else { stated.join(", ") }
    }

    fn stable(&self) -> bool {
        self.busy.is_none_or(|busy| busy > MIN_STABLE_UTILIZATION) && self.cv.is_none_or(|cv| cv < MAX_STABLE_VARIATION)
    }
}

/// Best stable rate of every model size.
fn by_size(candidates: &[Candidate<'_>]) -> Vec<(String, f64)> {
    let mut found: BTreeMap<String, f64> = BTreeMap::new();
    for one in candidates.iter().filter(|one| one.stable()) {
        let slot = found.entry(one.size()).or_default();
        *slot = slot.max(one.rate.value);
    }
    found.into_iter().collect()
}

impl<'a> Calibration<'a> {
    /// B_base: rate of the best stable configuration on one accelerator.
    pub(super) fn base_throughput(&mut self) {
        // If a baseline accelerator was measured, f_vendor is relative to it, so B_base is its rate.
        let baseline = self.rows.iter().any(is_baseline);
        let mut groups: Configurations<'a> = BTreeMap::new();
        let flagged =
            |row: &&Observation| row.switch("cuda_graphs") == Some(true) || row.switch("gpudirect_rdma") == Some(true);
        for row in self.rows.iter().filter(|row| is_baseline(row) == baseline && self.bench.accelerators(row) == 1.0) {
            if row.mode() == Mode::Training && row.throughput().is_some() && !flagged(&row) {
                groups.entry(row.configuration_key(&[])).or_default().push(row);
            }
        }
        let candidates: Vec<Candidate<'a>> = groups.values().filter_map(|rows| Candidate::of(rows)).collect();
        let best = |stable: bool| {
            let fit = candidates.iter().filter(|one| !stable || one.stable());
            fit.max_by(|a, b| a.rate.value.total_cmp(&b.rate.value))
        };
        let Some(chosen) = best(true).or_else(|| best(false)) else {
            return self
                .record_missing("B_base", "tokens/s of training runs on one accelerator at several batch sizes");
        };
        if !chosen.stable() {
            let why = match (chosen.busy, chosen.cv) {
                (Some(busy), _) if busy <= MIN_STABLE_UTILIZATION => {
                    format!("a utilization of {:.0} %, expected above 70 %", 100.0 * busy)
                }
                (_, Some(cv)) => format!("a spread of {:.1} %, expected below 5 %", 100.0 * cv),
                _ => "no measured spread or utilization".to_owned(),
            };
            self.warn(format!("B_base: no configuration is stable; the fastest one has {why}"));
        }
        if chosen.cv.is_none() {
            self.warn("B_base: a single run without a measured spread; the interval is the default of the guide, 5 %");
        }
        let tried = candidates.len();
        let stable = candidates.iter().filter(|one| one.stable()).count();
        let sizes = by_size(&candidates);
        let over = if sizes.len() > 1 { format!(", {} model sizes", sizes.len()) } else { String::new() };
        let method = format!("best configuration on one accelerator ({stable} of {tried} stable{over})");
        let parameter = Parameter::new(&B_BASE, chosen.rate, method, chosen.rows.iter().copied());
        let (row, value) = (chosen.rows.first().copied(), chosen.rate.value);
        // Rates of other sequence lengths are compared for the same model only.
        let same: Vec<&Candidate<'a>> = candidates.iter().filter(|one| one.size() == chosen.size()).collect();
        self.range_over_sequences(&same, value);
        self.range_over_sizes(&sizes);
        self.take(parameter);
        if let Some(row) = row {
            self.check_against_datasheet(row, value);
        }
    }

    /// Checks that rates of different sequence lengths are within 30 % of each other, as the guide requires.
    fn range_over_sequences(&mut self, candidates: &[&Candidate<'a>], best: f64) {
        let mut by_length: BTreeMap<u64, f64> = BTreeMap::new();
        for one in candidates.iter().filter(|one| one.stable()) {
            if let Some(length) = one.rows.first().and_then(|row| row.number("seq_len")) {
                let slot = by_length.entry(length as u64).or_default();
                *slot = slot.max(one.rate.value);
            }
        }
        let least = by_length.values().copied().reduce(f64::min);
        if let Some(least) = least.filter(|least| by_length.len() > 1 && *least < 0.7 * best) {
            let share = 100.0 * (1.0 - least / best);
            self.warn(format!(
                "B_base: throughput differs by {share:.0} % between sequence lengths, expected at most 30 %"
            ));
        }
    }

    /// B_base is a single rate, but models of other sizes have other rates. Lists them, so that the coefficient is
    /// determined for the planned model size.
    fn range_over_sizes(&mut self, sizes: &[(String, f64)]) {
        let rates = || sizes.iter().map(|(_, rate)| *rate);
        let (Some(least), Some(most)) = (rates().reduce(f64::min), rates().reduce(f64::max)) else { return };
        if sizes.len() > 1 && least < 0.7 * most {
            let list: Vec<String> = sizes.iter().map(|(size, rate)| format!("{rate:.0} tok/s with {size}")).collect();
            self.warn(format!(
                "B_base: the highest throughput of several model sizes, which differ by {:.0} %: {}; remove the sizes \
                 that you do not plan to run",
                100.0 * (1.0 - least / most),
                list.join(", ")
            ));
        }
    }

    /// The guide's cross-check with theory: within 20 % of the rate that the analytical engine derives from the
    /// datasheet.
    fn check_against_datasheet(&mut self, row: &Observation, value: f64) {
        let Ok(scenario) = self.bench.analytical(row) else { return };
        let Some(theory) = predicted(&scenario, PredictedMetric::TokensPerSec) else { return };
        let off = value / theory - 1.0;
        if off.abs() > 0.2 {
            self.warn(format!(
                "B_base: {value:.0} tok/s differs by {:+.0} % from the {theory:.0} tok/s of the analytical engine, \
                 expected within 20 %; check warm-up, clocks and other processes",
                100.0 * off
            ));
        }
        let mfu = atlas_plan::engine::estimate(&scenario).total.flop_utilization * value / theory;
        if mfu < 0.3 {
            self.warn(format!(
                "B_base: {:.0} % of the peak FLOP/s seems too low; check the measurement setup",
                100.0 * mfu
            ));
        } else if mfu > 0.9 {
            self.warn(format!("B_base: {:.0} % of the peak FLOP/s seems too high; check the measurement", 100.0 * mfu));
        }
    }

    /// rho_base: achieved over peak FLOP/s, without CUDA graphs and GPUDirect.
    pub(super) fn utilization(&mut self) {
        let mut values = Vec::new();
        let mut rows = Vec::new();
        let mut bare = None;
        for row in self.own() {
            let tuned = row.switch("cuda_graphs") == Some(true) || row.switch("gpudirect_rdma") == Some(true);
            if tuned || row.mode() != Mode::Training {
                continue;
            }
            let Some(share) = self.achieved(row) else { continue };
            let kappa = self.c().kappa_comm;
            let lost = self.communication(row).map_or(0.0, |known| kappa * known.omega_comm);
            let rho = share.0 / (1.0 - lost).max(0.1);
            if (0.0..=1.0).contains(&rho) && rho > 0.0 {
                bare = Some((rho, share.1));
                values.push(rho);
                rows.push(row);
            } else {
                self.warn(format!(
                    "rho_base: {}: utilization {rho:.2}, expected above 0 and at most 1; the row is ignored",
                    row.short()
                ));
            }
        }
        let Some(mut rho) = location(&values) else {
            return self
                .record_missing("rho_base", "MFU or TFLOP/s of training runs without CUDA graphs and GPUDirect");
        };
        if let (1, Some((value, width))) = (values.len(), bare) {
            rho.interval = width.map(|half| [(value - half).max(0.0), (value + half).min(1.0)]);
        }
        let most = self.c().rho_max;
        if rho.value > most {
            self.warn(format!("rho_base: {:.2} exceeds rho_max, so the model caps it at {most:.2}", rho.value));
        }
        let method = "achieved over peak FLOP/s, corrected for communication (kappa_comm)";
        self.take(Parameter::new(&RHO_BASE, rho, method, rows));
    }

    /// Share of the peak FLOP/s that a row achieves, and half the width of its interval if the row contains it.
    pub(super) fn achieved(&self, row: &Observation) -> Option<(f64, Option<f64>)> {
        let half = |std: Option<f64>, n: Option<f64>| Some(1.96 * std? / n?.max(1.0).sqrt());
        if let Some(share) = row.figure(MetricColumn::FlopUtilization).filter(|share| share.value > 0.0) {
            return Some((share.value, half(share.std, share.n)));
        }
        let peak = || {
            let scenario = self.bench.analytical(row).ok()?;
            let machine = scenario.machine?;
            let format = atlas_perf::accelerator::Precision::from(scenario.format(&scenario.base));
            Some(machine.device.peak(format) * machine.dies)
        };
        if let Some(tflops) = row.figure(MetricColumn::TflopsPerGpu).filter(|rate| rate.value > 0.0) {
            let peak = peak()?;
            let share = |value: f64| value * 1e12 / peak;
            return Some((share(tflops.value), half(tflops.std.map(share), tflops.n)));
        }
        None
    }

    /// f_vendor: the guide's ratio to a baseline accelerator if one was measured, or otherwise the value with which the
    /// model reproduces the measured rates.
    pub(super) fn vendor_factors(&mut self) {
        for (mode, slot) in [(Mode::Training, F_TRAINING), (Mode::Inference, F_INFERENCE)] {
            if !self.ratio_to_baseline(mode, &slot) {
                self.closing_factor(mode, &slot);
            }
        }
    }

    fn ratio_to_baseline(&mut self, mode: Mode, slot: &crate::calibrate::parameter::Slot) -> bool {
        const IGNORED_SETTINGS: [&str; 3] = ["hardware", "baseline", "num_gpus"];
        let per_accelerator = |row: &Observation| Some(row.throughput()?.value / self.bench.accelerators(row));
        let mut ratios = Vec::new();
        let mut rows = Vec::new();
        for other in self.rows.iter().filter(|row| is_baseline(row) && row.mode() == mode) {
            for own in self.own().filter(|row| {
                row.mode() == mode
                    && row.configuration_key(&IGNORED_SETTINGS) == other.configuration_key(&IGNORED_SETTINGS)
            }) {
                if let (Some(rate), Some(base)) = (per_accelerator(own), per_accelerator(other)) {
                    ratios.push(rate / base);
                    rows.push(own);
                    rows.push(other);
                }
            }
        }
        let Some(found) = factor(&ratios) else { return false };
        let method = "throughput of the target divided by that of the baseline accelerator in the same benchmark";
        self.take(Parameter::new(slot, found, method, rows));
        true
    }

    fn closing_factor(&mut self, mode: Mode, slot: &crate::calibrate::parameter::Slot) {
        let mut c = *self.c();
        (slot.set)(&mut c, 1.0);
        let mut many = Vec::new();
        let mut few = Vec::new();
        for row in self.own().filter(|row| row.mode() == mode) {
            let Some(rate) = row.throughput() else { continue };
            let Some(scenario) = self.bench.semi_empirical(row, &c, &self.figures.fabrics) else { continue };
            if let Some(one) = predicted(&scenario, PredictedMetric::TokensPerSec).filter(|one| *one > 1.0) {
                let width = rate.interval.map(|[low, high]| (high - low) / 2.0 / rate.value);
                let list = if self.bench.accelerators(row) > 1.0 { &mut many } else { &mut few };
                list.push((row, rate.value / one, width));
            }
        }
        let mut used = many;
        if used.is_empty() {
            // In a sweep over batch sizes on one accelerator, the best rate is used, as for B_base.
            used = few.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).into_iter().collect();
        }
        let factors: Vec<f64> = used.iter().map(|(_, factor, _)| *factor).collect();
        let Some(mut found) = factor(&factors) else {
            let needs = match mode {
                Mode::Training => "tokens/s of training runs",
                Mode::Inference => "tokens/s of serving runs, with prompt and output lengths",
            };
            return self.record_missing(slot.symbol, needs);
        };
        if let [(_, value, width)] = used.as_slice() {
            found.interval = Some(
                [1.0 - width.unwrap_or(DEFAULT_HALF_WIDTH), 1.0 + width.unwrap_or(DEFAULT_HALF_WIDTH)]
                    .map(|by| value * by),
            );
        }
        // The quantities that the factor compensates are uncertain as well: utilization and base rate multiply it.
        let halves: Vec<f64> = ["compute.base_tokens_per_accel", "utilization.base"]
            .iter()
            .filter_map(|path| self.found.iter().find(|one| one.path == *path))
            .filter_map(|one| one.interval.map(|[low, high]| (high - low) / 2.0 / one.value * found.value))
            .collect();
        let found = found.widened(&halves);
        let method = "measured throughput divided by that of the model with f_vendor = 1";
        self.take(Parameter::new(slot, found, method, used.iter().map(|(row, ..)| *row)));
    }
}
